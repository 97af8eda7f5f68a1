//! Max and min on the device against the oracle, and the nonzeros that win.

use gustav_core::{
    Csr, Dense, Error, Extremum, Index, IndexSlice, IndexType, Layout, Reduce, Result, Scalar,
    Semiring, WinnersMut, bf16, f16,
};
use gustav_cuda::spmm::segmented::{Config, Reduction};
use gustav_cuda::{
    Call, Device, DeviceBuffer, DeviceCsr, DeviceDense, DeviceWinnersMut, Options, SpmmPlan,
    WinnerGradients,
};
use gustav_plan::{Algorithm, Chooser};
use gustav_testkit::battery::{Settings, SpmmExtremumCase, check_spmm_extremum};
use gustav_testkit::oracle;

use crate::common::device;

/// One case of the battery, on a stream of its own.
fn run<T: Scalar, I: Index, O: Index>(
    device: &Device,
    extremum: Extremum,
    options: &Options<'_>,
    mut case: SpmmExtremumCase<'_, T, I, O>,
) -> Result<()> {
    let a = DeviceCsr::upload(device, &case.a)?;
    let b = DeviceDense::upload(device, &case.b)?;
    let mut c = DeviceDense::upload(device, &case.c.as_view())?;
    let problem = a.pattern().spmm(b.ncols()).problem.transpose_a(case.transpose_a);
    let problem = problem.layouts(b.layout(), c.layout()).reduce(extremum.reduce());
    let mut plan = SpmmPlan::new(a.pattern(), &problem, options)?;
    let stream = device.new_stream()?;
    let mut call = Call::new().on(&stream);
    if let Some(alpha) = case.alpha {
        call = call.alpha(alpha);
    }
    if let Some(empty) = case.empty {
        call = call.empty(empty);
    }
    match case.winners {
        None => plan.execute(&a, &b, &mut c, call)?,
        Some(WinnersMut::U32(to)) => {
            let mut winners = DeviceBuffer::from_slice(device, to, "winners")?;
            plan.execute_with_winners(&a, &b, &mut c, &mut winners, call)?;
            stream.synchronize()?;
            to.copy_from_slice(&winners.to_host()?);
        }
        Some(WinnersMut::U64(to)) => {
            let mut winners = DeviceBuffer::from_slice(device, to, "winners")?;
            plan.execute_with_winners(&a, &b, &mut c, &mut winners, call)?;
            stream.synchronize()?;
            to.copy_from_slice(&winners.to_host()?);
        }
    }
    stream.synchronize()?;
    let result = c.data().to_host()?;
    case.c.as_mut_slice().expect("a slice").copy_from_slice(&result);
    Ok(())
}

/// The battery, of few columns, since every width is three kernels.
fn check<T: Scalar, I: Index, O: Index>(
    extremum: Extremum,
    columns: &[usize],
    options: &Options<'_>,
) {
    let device = device();
    let settings = Settings { columns: columns.to_vec(), ..Settings::default() };
    check_spmm_extremum::<T, I, O>(extremum, &settings, |case| {
        run(&device, extremum, options, case)
    });
}

macro_rules! by_the_rules {
    ($($name:ident: $t:ty, $i:ty, $o:ty, $extremum:ident;)*) => {$(
        #[test]
        #[ignore = "needs a CUDA device"]
        fn $name() {
            let columns = [1, 3, 33, 64, 128];
            check::<$t, $i, $o>(Extremum::$extremum, &columns, &Options::default());
        }
    )*};
}

by_the_rules! {
    f32_max: f32, u32, u32, Max;
    f32_min_wide: f32, u64, u64, Min;
    f64_max_wide_offsets: f64, u32, u64, Max;
    f64_min: f64, u32, u32, Min;
    f16_max: f16, u32, u32, Max;
    bf16_min: bf16, u64, u32, Min;
    i32_min: i32, u32, u32, Min;
    i64_max: i64, u64, u32, Max;
}

/// A configuration that cuts rows short, so that small matrices exercise every path.
fn config(vector: u32, lanes: u32, tiles: u32, subgroups: u32) -> Config {
    Config {
        vector,
        lanes,
        tiles,
        subgroups,
        warps: 1,
        chunk: 4,
        segments_per_group: 1,
        at_once: false,
        prefetch_b: false,
        stages: 0,
        prefetch_a: false,
        longest: Some(32),
        first: 32,
        window: 1024,
        reduction: Reduction::FixUp,
        block: 128,
        resident: 384,
    }
}

fn configured<T: Scalar>(extremum: Extremum, config: Config) {
    let config = Some(gustav_cuda::Config::Segmented(config));
    let options = Options { config, ..Options::default() };
    check::<T, u32, u32>(extremum, &[33, 64], &options);
}

#[test]
#[ignore = "needs a CUDA device"]
fn parts_of_cut_rows_and_subgroups_merge() {
    configured::<f32>(Extremum::Max, config(4, 8, 1, 4));
    configured::<f32>(Extremum::Min, config(1, 1, 1, 32));
    configured::<f16>(Extremum::Min, config(8, 4, 2, 2));
    configured::<f64>(Extremum::Max, config(2, 8, 2, 1));
    configured::<f32>(Extremum::Max, Config { warps: 4, ..config(4, 8, 1, 4) });
    let cta_per_segment = Config { warps: 8, block: 256, longest: None, ..config(2, 4, 3, 8) };
    configured::<f64>(Extremum::Min, cta_per_segment);
}

#[test]
#[ignore = "needs a CUDA device"]
fn whole_rows_copies_of_b_and_several_segments() {
    configured::<f32>(Extremum::Max, Config { longest: None, ..config(4, 16, 1, 2) });
    configured::<f32>(Extremum::Min, Config { stages: 2, ..config(4, 8, 1, 2) });
    configured::<f16>(Extremum::Max, Config { stages: 1, chunk: 2, ..config(8, 8, 1, 1) });
    let several = Config { segments_per_group: 4, window: 32, ..config(4, 16, 1, 1) };
    configured::<f32>(Extremum::Min, several);
    configured::<f64>(Extremum::Max, Config { vector: 2, chunk: 3, prefetch_b: true, ..several });
    let at_once = Config { segments_per_group: 2, at_once: true, ..config(4, 8, 1, 4) };
    configured::<f32>(Extremum::Max, at_once);
}

#[test]
#[ignore = "needs a CUDA device"]
fn atomic_reductions_add_only() {
    let device = device();
    let a = DeviceCsr::upload(&device, &ragged(60).view()).expect("A");
    let config = Config { reduction: Reduction::Atomic, ..config(4, 8, 1, 1) };
    let config = Some(gustav_cuda::Config::Segmented(config));
    let options = Options { config, ..Options::default() };
    let problem = a.pattern().spmm(8).problem.reduce(Reduce::Max);
    let error = SpmmPlan::<f32>::new(a.pattern(), &problem, &options).err().expect("a refusal");
    assert!(error.to_string().contains("sums of plus-times"), "{error}");
}

/// Rows of 0 to 300 nonzeros.
fn ragged(rows: usize) -> Csr<f32> {
    let (mut offsets, mut indices, mut values) = (vec![0u32], Vec::new(), Vec::new());
    for r in 0..rows {
        for k in 0..r * 7 % 301 {
            indices.push(((r * 31 + k * 17) % rows) as u32);
            values.push(((r + k) % 13) as f32 - 6.0);
        }
        offsets.push(indices.len() as u32);
    }
    Csr::new(rows, rows, offsets, indices, values).expect("a matrix")
}

#[test]
#[ignore = "needs a CUDA device"]
fn winners_may_lie_anywhere_and_are_the_same_in_every_run() {
    let device = device();
    let (n, host) = (64, ragged(400));
    let a = DeviceCsr::upload(&device, &host.view()).expect("A");
    let of_b = Dense::from_fn(400, n, Layout::RowMajor, |i, j| ((i + j) % 5) as f32).expect("B");
    let b = DeviceDense::upload(&device, &of_b.view()).expect("B");
    let problem = a.pattern().spmm(n).problem.reduce(Reduce::Max);
    let mut plan = SpmmPlan::new(a.pattern(), &problem, &Options::default()).expect("a plan");
    let mut c = DeviceDense::zeros(&device, 400, n, Layout::RowMajor).expect("C");
    // Vectors of winners at a multiple of 16 bytes, and single ones beside it.
    for shift in [0, 1, 2, 3].into_iter().cycle().take(8) {
        let memory = DeviceBuffer::<u32>::zeros(&device, 400 * n + 4, "winners").expect("memory");
        let address = memory.address() + 4 * shift;
        // SAFETY: the memory outlives the view.
        let mut winners = unsafe { DeviceBuffer::<u32>::borrowed(&device, address, 400 * n) };
        plan.execute_with_winners(&a, &b, &mut c, &mut winners, Call::new()).expect("C");
        let found = winners.to_host().expect("winners");
        let of_c = c.download().expect("C");
        let reference = oracle::SpmmExtremum {
            extremum: Extremum::Max,
            a: host.view(),
            transpose_a: false,
            b: of_b.view(),
            alpha: 1.0,
            empty: 0.0,
        };
        let verdict = reference.verify(of_c.view(), Some(IndexSlice::new(&found)));
        let verdict = verdict.expect("a verdict");
        assert!(verdict.ok, "{shift}: {verdict}");
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn what_a_reduction_has_not_is_refused() {
    let device = device();
    let a = DeviceCsr::upload(&device, &ragged(60).view()).expect("A");
    let dense = || DeviceDense::<f32>::zeros(&device, 60, 8, Layout::RowMajor).expect("a matrix");
    let (b, mut c) = (dense(), dense());
    let of = |reduce| a.pattern().spmm(8).problem.reduce(reduce);
    let plan = |reduce| {
        SpmmPlan::<f32>::new(a.pattern(), &of(reduce), &Options::default()).expect("a plan")
    };
    let mut max = plan(Reduce::Max);
    let winners = |count| DeviceBuffer::<u32>::zeros(&device, count, "winners").expect("memory");
    let beta = max.execute(&a, &b, &mut c, Call::new().beta(1.0));
    assert!(matches!(beta, Err(Error::Argument { name: "beta", .. })), "{beta:?}");
    let few = max.execute_with_winners(&a, &b, &mut c, &mut winners(479), Call::new());
    assert!(matches!(few, Err(Error::Length { what: "winners", .. })), "{few:?}");
    for (reads, address) in [("B", b.data().address()), ("C", c.data().address())] {
        // SAFETY: the memory outlives the view; the overlap is what must be refused.
        let mut over = unsafe { DeviceBuffer::<u32>::borrowed(&device, address, 480) };
        let over = DeviceWinnersMut::from(&mut over);
        assert_eq!(over.description(), (IndexType::U32, 480));
        let aliased = max.execute_with_winners(&a, &b, &mut c, over, Call::new());
        let error = aliased.expect_err("an overlap");
        assert!(matches!(error, Error::Argument { name: "winners", .. }), "{error}");
        assert!(error.to_string().contains(reads), "{error}");
    }
    for reduce in [Reduce::Sum, Reduce::Mean] {
        let empty = plan(reduce).execute(&a, &b, &mut c, Call::new().empty(1.0));
        assert!(matches!(empty, Err(Error::Argument { name: "empty", .. })), "{empty:?}");
        let mut won = winners(480);
        let asked = plan(reduce).execute_with_winners(&a, &b, &mut c, &mut won, Call::new());
        assert!(matches!(asked, Err(Error::Argument { name: "winners", .. })), "{asked:?}");
        let gradients = WinnerGradients::<f32>::new(a.pattern(), &of(reduce)).err();
        assert!(matches!(gradients, Some(Error::Unsupported { .. })), "{gradients:?}");
    }
    for algorithm in [Algorithm::EvenShares, Algorithm::RowBlock, Algorithm::BStationary] {
        let options = Options { chooser: Chooser::Named(algorithm), ..Options::default() };
        let refused = SpmmPlan::<f32>::new(a.pattern(), &of(Reduce::Min), &options).err();
        let text = refused.expect("a refusal").to_string();
        assert!(text.contains(algorithm.name()) && text.contains("segmented"), "{text}");
    }
    let over = of(Reduce::Min).semiring(Semiring::MinPlus);
    let refused = SpmmPlan::<f32>::new(a.pattern(), &over, &Options::default()).err();
    assert!(refused.expect("a refusal").to_string().contains("plus-times"));
}
