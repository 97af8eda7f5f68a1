//! `b-stationary`.

use gustav_core::{
    Csr, DType, Dense, Epilogue, Index, Layout, PlusTimes, Scalar, StaticSemiring, bf16, f16,
};
use gustav_cuda::spmm::b_stationary::Config;
use gustav_cuda::spmm::segmented::Reduction;
use gustav_cuda::{Call, DeviceCsr, DeviceDense, Options, SpmmPlan};
use gustav_plan::{Algorithm, Chooser};
use gustav_testkit::battery::{Settings, check_spmm, matrices};

use crate::common::{device, run};
use crate::papers::{check_values, product};

/// TileSegments so short and panels so narrow that the battery's matrices have many of them.
fn small<T: Scalar>() -> Config {
    Config {
        vector: 16 / T::DTYPE.bytes() as u32,
        lanes: 4,
        tiles: 2,
        stages: 2,
        longest: 8,
        reduction: Reduction::FixUp,
        block: 64,
    }
}

fn small_segments<T: Scalar, I: Index, O: Index, S: StaticSemiring<T::Accum>>() {
    crate::common::configured::<T, I, O, S>(gustav_cuda::Config::BStationary(small::<T>()));
}

#[test]
#[ignore = "needs a CUDA device"]
fn its_own_choice() {
    // Reductions in memory flush subnormal sums in f32, which their documentation says.
    let options = Options { chooser: Chooser::Named(Algorithm::BStationary), ..Options::default() };
    by_reductions::<f32>(&options, &Options { config: fix_up::<f32>(), ..options });
    by_reductions::<f64>(&options, &options);
    by_reductions::<bf16>(&options, &options);
}

#[test]
#[ignore = "needs a CUDA device"]
fn parts_meet_by_reductions() {
    let of = |config| {
        let config = Config { reduction: Reduction::Atomic, ..config };
        Options { config: Some(gustav_cuda::Config::BStationary(config)), ..Options::default() }
    };
    let fix_up = Options { config: fix_up::<f32>(), ..Options::default() };
    by_reductions::<f32>(&of(small::<f32>()), &fix_up);
    by_reductions::<f64>(&of(small::<f64>()), &of(small::<f64>()));
    by_reductions::<f16>(&of(small::<f16>()), &of(small::<f16>()));
}

fn fix_up<T: Scalar>() -> Option<gustav_cuda::Config> {
    Some(gustav_cuda::Config::BStationary(small::<T>()))
}

/// The battery with `options`, but for subnormal numbers with `exact`.
fn by_reductions<T: Scalar>(options: &Options<'_>, exact: &Options<'_>)
where
    PlusTimes: StaticSemiring<T::Accum>,
{
    let settings = Settings { nonfinite: T::DTYPE != DType::F64, ..Settings::default() };
    let device = device();
    check_spmm::<T, u32, u32, PlusTimes>(&settings, |case| {
        let options = if case.name == "tiny magnitudes" { exact } else { options };
        run::<T, u32, u32, PlusTimes>(&device, options, case)
    });
}

crate::common::of_every_type!(small_segments);

#[test]
#[ignore = "needs a CUDA device"]
fn other_tiles() {
    for (lanes, tiles, stages, block) in [(16, 1, 1, 1024), (32, 1, 4, 128), (1, 2, 3, 32)] {
        let config = Config { lanes, tiles, stages, block, longest: 16, ..small::<f32>() };
        let config = gustav_cuda::Config::BStationary(config);
        crate::common::configured::<f32, u32, u32, PlusTimes>(config);
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn values_may_change_under_a_plan() {
    check_values(Algorithm::BStationary, |problem| problem);
}

/// Rows over so many tiles that every multiprocessor holds many, one after another, some of them in part.
fn tiles_follow<T: Scalar>(epilogue: Epilogue)
where
    PlusTimes: StaticSemiring<T::Accum>,
{
    let device = device();
    let (rows, inner, columns) = (300, 90_000, 40);
    let (mut offsets, mut indices) = (vec![0u32], Vec::new());
    for r in 0..rows as u32 {
        // Every seventh row is empty, every fifth has its columns backwards.
        let length = if r % 7 == 0 { 0 } else { 40 * (r % 37) };
        let row = (0..length).map(|k| (r * 31 + k * (inner as u32 / length)) % inner as u32);
        let mut row: Vec<u32> = row.collect();
        row.sort_unstable();
        if r % 5 == 0 {
            row.reverse();
        }
        indices.extend(row);
        offsets.push(indices.len() as u32);
    }
    let values = |round: usize| -> Vec<f32> {
        (0..indices.len()).map(|k| ((k + round) % 7) as f32 - 3.0).collect()
    };
    let host =
        Csr::new(rows, inner, offsets.clone(), indices.clone(), values(0)).expect("a matrix");
    let b =
        Dense::from_fn(inner, columns, Layout::RowMajor, |i, j| ((i + j) % 5) as f32).expect("B");
    let narrow = |of: &[f32]| of.iter().map(|v| T::from_f64(f64::from(*v))).collect::<Vec<T>>();
    let a = Csr::new(rows, inner, offsets, indices.clone(), narrow(&values(0))).expect("A");
    let mut a = DeviceCsr::upload(&device, &a.view()).expect("A");
    let b_on =
        Dense::from_fn(inner, columns, Layout::RowMajor, |i, j| b.view().get(i, j)).expect("B");
    let b_on = Dense::from_fn(inner, columns, Layout::RowMajor, |i, j| {
        T::from_f64(f64::from(b_on.view().get(i, j)))
    })
    .expect("B");
    let b_on = DeviceDense::upload(&device, &b_on.view()).expect("B");
    let mut c = DeviceDense::<T>::zeros(&device, rows, columns, Layout::RowMajor).expect("C");
    let problem = a.pattern().spmm(columns).problem.epilogue(epilogue);
    // A panel so wide that few rows of B fit.
    let own = Config { lanes: 32, tiles: 8, block: 256, longest: 64, ..small::<T>() };
    let streams = [device.new_stream().expect("a stream"), device.new_stream().expect("a stream")];
    for stages in [1, 2, 3] {
        for reduction in [Reduction::FixUp, Reduction::Atomic] {
            let config = Config { stages, reduction, ..own };
            let config = Some(gustav_cuda::Config::BStationary(config));
            let options = Options { config, ..Options::default() };
            let mut plan = SpmmPlan::new(a.pattern(), &problem, &options).expect("a plan");
            for round in 0..3 {
                a.values_mut().write(&narrow(&values(round))).expect("values");
                let mut host = host.clone();
                host.values_mut().copy_from_slice(&values(round));
                let sums = product(&host, &b);
                let rectified = sums.iter().map(|s| if epilogue.relu { s.max(0.0) } else { *s });
                let expected = narrow(&rectified.collect::<Vec<f32>>());
                let stream = &streams[round % 2];
                c.data_mut().fill(0xff, stream).expect("NaN");
                let one = T::one().to_accum();
                let zero = T::zero().to_accum();
                plan.execute(&a, &b_on, &mut c, Call::new().alpha(one).beta(zero).on(stream))
                    .expect("C");
                stream.synchronize().expect("C");
                let found = c.data().to_host().expect("C");
                assert!(found[..] == expected, "{stages}, {reduction:?}, round {round}");
            }
        }
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn tiles_follow_one_another() {
    tiles_follow::<f32>(Epilogue::default());
    tiles_follow::<bf16>(Epilogue::default());
    tiles_follow::<f32>(Epilogue { relu: true, ..Epilogue::default() });
}

/// Of two matrices, the larger of which needs more shared memory.
#[test]
#[ignore = "needs a CUDA device"]
fn plans_of_several_sizes_share_a_kernel() {
    let device = device();
    let options = Options { chooser: Chooser::Named(Algorithm::BStationary), ..Options::default() };
    let of = |inner: usize| {
        let host = matrices::random_rows::<f32, u32, u32>(80, inner, 1, |_| 50);
        let a = DeviceCsr::upload(&device, &host.view()).expect("A");
        let ones = Dense::from_fn(inner, 64, Layout::RowMajor, |_, _| 1.0f32).expect("B");
        let b = DeviceDense::upload(&device, &ones.view()).expect("B");
        let plan =
            SpmmPlan::new(a.pattern(), &a.pattern().spmm(64).problem, &options).expect("a plan");
        (a, b, plan)
    };
    let mut all = [of(9000), of(60)];
    for (a, b, plan) in &mut all {
        let a = &*a;
        let mut c = DeviceDense::zeros(&device, 80, 64, Layout::RowMajor).expect("C");
        plan.execute(a, b, &mut c, Call::new()).expect("C");
        device.stream().synchronize().expect("C");
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn auto_takes_it_where_rows_meet_tiles_often() {
    let device = device();
    let (rows, inner, columns) = (6000, 3000, 128);
    let host = matrices::random_rows::<f32, u32, u32>(rows, inner, 1, |_| 300);
    let whole = host.values().iter().map(|v| v.signum()).collect::<Vec<f32>>();
    let mut host = host;
    host.values_mut().copy_from_slice(&whole);
    let a = DeviceCsr::upload(&device, &host.view()).expect("A");
    let b =
        Dense::from_fn(inner, columns, Layout::RowMajor, |i, j| ((i + j) % 5) as f32).expect("B");
    let b_on = DeviceDense::upload(&device, &b.view()).expect("B");
    let mut c = DeviceDense::zeros(&device, rows, columns, Layout::RowMajor).expect("C");
    let problem = a.pattern().spmm(columns).problem.calls(1000);
    let mut plan = SpmmPlan::new(a.pattern(), &problem, &Options::default()).expect("a plan");
    if device.profile().compute_capability >= (9, 0) {
        assert_eq!(plan.choice().algorithm, Algorithm::BStationary, "{}", plan.choice().reason);
    }
    c.data_mut().fill(0xff, device.stream()).expect("NaN");
    plan.execute(&a, &b_on, &mut c, Call::new()).expect("C");
    assert!(c.data().to_host().expect("C")[..] == product(&host, &b));
}
