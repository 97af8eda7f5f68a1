//! `segmented` on the device against the oracle.

use super::common::{device, run};
use gustav_core::{
    Csr, Dense, Error, MaxTimes, MinPlus, OrAnd, PlusFirst, PlusSecond, PlusTimes, Reduce, Scalar,
    bf16, f16,
};
use gustav_cuda::spmm::segmented::{Config, Reduction};
use gustav_cuda::{Call, Device, DeviceBuffer, DeviceCsr, DeviceDense, Options, SpmmPlan};
use gustav_plan::Algorithm;
use gustav_plan::orders::{Order, Search, WarpShape};
use gustav_testkit::battery::matrices::random_rows;
use gustav_testkit::battery::{Settings, check_spmm};

batteries! {
    Segmented:
    f32_plus_times: f32, u32, u32, PlusTimes;
    f64_plus_times: f64, u32, u32, PlusTimes;
    f16_plus_times: f16, u32, u32, PlusTimes;
    bf16_plus_times: bf16, u32, u32, PlusTimes;
    i32_plus_times: i32, u32, u32, PlusTimes;
    i64_plus_times: i64, u64, u64, PlusTimes;
    f32_wide_offsets: f32, u32, u64, PlusTimes;
    f32_wide_indices: f32, u64, u32, PlusTimes;
    f64_wide: f64, u64, u64, PlusTimes;
    f32_min_plus: f32, u32, u32, MinPlus;
    i32_min_plus: i32, u32, u32, MinPlus;
    f64_max_times: f64, u32, u32, MaxTimes;
    f32_or_and: f32, u32, u32, OrAnd;
    f16_plus_first: f16, u32, u32, PlusFirst;
    f32_plus_second: f32, u32, u32, PlusSecond;
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

fn options(config: Config) -> Options<'static> {
    Options { config: Some(gustav_cuda::Config::Segmented(config)), ..Options::default() }
}

fn configured<T: Scalar>(config: Config) {
    crate::common::configured::<T, u32, u32, PlusTimes>(gustav_cuda::Config::Segmented(config));
}

#[test]
#[ignore = "needs a CUDA device"]
fn cut_rows_meet_by_fix_up() {
    configured::<f32>(config(4, 8, 1, 1));
    configured::<f16>(config(8, 4, 2, 4));
    configured::<f64>(config(2, 8, 2, 2));
}

#[test]
#[ignore = "needs a CUDA device"]
fn cut_rows_meet_by_reductions() {
    let device = device();
    let reductions = options(Config { reduction: Reduction::Atomic, ..config(4, 16, 1, 2) });
    check_spmm::<f32, u32, u32, PlusTimes>(&Settings::default(), |case| {
        // Reductions in memory flush subnormal sums in f32, which their documentation says.
        let subnormal = case.name == "tiny magnitudes";
        let options = if subnormal { options(config(4, 16, 1, 2)) } else { reductions };
        run::<f32, u32, u32, PlusTimes>(&device, &options, case)
    });
    configured::<f64>(Config { reduction: Reduction::Atomic, ..config(2, 8, 2, 4) });
}

#[test]
#[ignore = "needs a CUDA device"]
fn whole_rows_without_a_list() {
    configured::<f32>(Config { longest: None, ..config(4, 32, 1, 1) });
    configured::<f32>(Config { longest: None, ..config(4, 4, 2, 8) });
}

#[test]
#[ignore = "needs a CUDA device"]
fn rows_of_a_through_shared_memory() {
    configured::<f32>(Config { prefetch_a: true, ..config(4, 4, 1, 8) });
    configured::<f16>(Config { prefetch_a: true, longest: Some(64), ..config(8, 8, 1, 1) });
}

#[test]
#[ignore = "needs a CUDA device"]
fn rows_of_b_through_shared_memory() {
    configured::<f32>(Config { stages: 2, ..config(4, 8, 1, 1) });
    configured::<f32>(Config { stages: 3, chunk: 2, longest: None, ..config(4, 4, 2, 4) });
}

#[test]
#[ignore = "needs a CUDA device"]
fn rows_of_b_through_shared_memory_in_other_types() {
    configured::<f64>(Config { stages: 1, ..config(2, 16, 1, 2) });
    configured::<f16>(Config { stages: 4, chunk: 2, ..config(8, 8, 1, 1) });
}

/// More vectors a lane than registers would hold.
#[test]
#[ignore = "needs a CUDA device"]
fn many_vectors_a_lane_through_shared_memory() {
    configured::<f32>(Config { stages: 1, chunk: 2, ..config(4, 8, 4, 1) });
    configured::<f32>(Config { stages: 2, chunk: 1, longest: None, ..config(4, 2, 3, 1) });
}

#[test]
#[ignore = "needs a CUDA device"]
fn many_vectors_a_lane_through_shared_memory_in_other_types() {
    configured::<f64>(Config { stages: 1, chunk: 2, ..config(2, 2, 4, 1) });
    configured::<f16>(Config { stages: 1, chunk: 2, ..config(8, 1, 4, 1) });
}

#[test]
#[ignore = "needs a CUDA device"]
fn rows_come_first_or_stay_as_stored() {
    for (first, window) in [(64, 1024), (256, 64), (32, 1)] {
        configured::<f32>(Config { longest: Some(512), first, window, ..config(4, 8, 1, 1) });
        let several = Config { segments_per_group: 2, longest: Some(512), ..config(2, 4, 2, 1) };
        configured::<f64>(Config { first, window, ..several });
    }
}

/// Groups of lanes that take several segments one after another.
fn one_after_another(vector: u32, lanes: u32, tiles: u32) -> Config {
    Config { segments_per_group: 4, window: 32, ..config(vector, lanes, tiles, 1) }
}

#[test]
#[ignore = "needs a CUDA device"]
fn segments_one_after_another() {
    configured::<f32>(one_after_another(4, 16, 2));
    configured::<f32>(Config { chunk: 3, prefetch_b: true, ..one_after_another(4, 32, 1) });
}

#[test]
#[ignore = "needs a CUDA device"]
fn whole_rows_one_after_another_and_by_atomics() {
    let whole =
        Config { segments_per_group: 3, chunk: 8, longest: None, ..one_after_another(2, 8, 1) };
    configured::<f32>(whole);
    let atomic =
        Config { reduction: Reduction::Atomic, prefetch_b: true, ..one_after_another(4, 8, 2) };
    configured::<f32>(atomic);
}

#[test]
#[ignore = "needs a CUDA device"]
fn segments_one_after_another_in_other_types() {
    configured::<f64>(Config { chunk: 5, prefetch_b: true, ..one_after_another(2, 4, 2) });
    configured::<f16>(Config { window: 1024, ..one_after_another(8, 8, 1) });
    configured::<bf16>(Config {
        segments_per_group: 2,
        longest: None,
        ..one_after_another(1, 1, 5)
    });
}

#[test]
#[ignore = "needs a CUDA device"]
fn long_rows_are_shared_beside_several_segments_per_group() {
    configured::<f32>(Config {
        subgroups: 4,
        longest: Some(256),
        first: 64,
        ..one_after_another(4, 8, 1)
    });
    configured::<f64>(Config {
        subgroups: 2,
        chunk: 3,
        prefetch_a: true,
        ..one_after_another(2, 8, 2)
    });
    configured::<f32>(Config {
        subgroups: 8,
        reduction: Reduction::Atomic,
        ..one_after_another(4, 4, 2)
    });
}

/// Groups of lanes that take so many segments at the same time.
fn at_once(number: u32, vector: u32, lanes: u32, tiles: u32) -> Config {
    Config {
        segments_per_group: number,
        at_once: true,
        chunk: 1,
        ..config(vector, lanes, tiles, 1)
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn segments_at_once() {
    configured::<f32>(Config {
        subgroups: 4,
        longest: Some(256),
        first: 64,
        ..at_once(2, 4, 8, 1)
    });
    configured::<f32>(Config { chunk: 2, block: 64, ..at_once(4, 4, 32, 1) });
    configured::<f32>(Config { longest: None, chunk: 3, ..at_once(3, 4, 16, 1) });
}

#[test]
#[ignore = "needs a CUDA device"]
fn segments_at_once_in_other_types() {
    configured::<f64>(Config { subgroups: 2, window: 32, ..at_once(2, 2, 16, 1) });
    configured::<f16>(Config { subgroups: 8, chunk: 2, ..at_once(3, 8, 4, 1) });
    configured::<bf16>(Config { longest: None, ..at_once(2, 1, 1, 2) });
    configured::<f64>(Config { reduction: Reduction::Atomic, ..at_once(4, 2, 4, 2) });
}

/// All of so many warps share a segment.
fn cta_per_segment(warps: u32, vector: u32, lanes: u32, tiles: u32) -> Config {
    Config { warps, block: 32 * warps, ..config(vector, lanes, tiles, 32 / lanes) }
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_cta_per_segment() {
    configured::<f32>(cta_per_segment(8, 4, 8, 1));
    configured::<f32>(Config { longest: None, prefetch_a: true, ..cta_per_segment(4, 4, 32, 2) });
    configured::<f32>(Config { longest: Some(256), chunk: 2, ..cta_per_segment(2, 1, 1, 3) });
    configured::<f32>(Config { reduction: Reduction::Atomic, ..cta_per_segment(8, 4, 4, 1) });
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_cta_per_segment_in_other_types() {
    configured::<f64>(cta_per_segment(8, 2, 16, 1));
    configured::<f64>(Config { longest: None, ..cta_per_segment(32, 2, 8, 4) });
    configured::<f16>(Config { chunk: 8, ..cta_per_segment(4, 8, 4, 1) });
    configured::<bf16>(Config { longest: None, ..cta_per_segment(8, 1, 2, 5) });
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_cta_per_segment_with_wide_positions_and_in_an_order() {
    let wide = gustav_cuda::Config::Segmented(cta_per_segment(4, 4, 8, 1));
    crate::common::configured::<f32, u64, u64, PlusTimes>(wide);
    let device = device();
    let config = Config { longest: None, window: 1, ..cta_per_segment(2, 4, 8, 1) };
    let settings = Settings::default().untransposed();
    check_spmm::<f32, u32, u32, PlusTimes>(&settings, |case| {
        let order = Order::Lpt.of(&case.a.pattern(), WarpShape::default(), Search::Auto)?;
        run::<f32, u32, u32, PlusTimes>(
            &device,
            &Options { order: Some(&order), ..options(config) },
            case,
        )
    });
}

/// One small product of each, for race detection, under which a battery takes too long.
#[test]
#[ignore = "needs a CUDA device"]
fn a_cta_per_segment_of_a_small_matrix() {
    let device = device();
    let (a, b) = ragged_operands(&device, 90, 36);
    let problem = a.pattern().spmm(36).problem;
    let product = |options: &Options<'_>| {
        let mut c = DeviceDense::zeros(&device, 90, 36, Default::default()).expect("C");
        let mut plan = SpmmPlan::new(a.pattern(), &problem, options).expect("a plan");
        plan.execute(&a, &b, &mut c, Call::new()).expect("C");
        c.data().to_host().expect("C")
    };
    let expected = product(&options(config(4, 8, 1, 4)));
    for shared in [
        cta_per_segment(8, 4, 8, 1),
        Config { longest: None, ..cta_per_segment(2, 4, 8, 2) },
        Config { reduction: Reduction::Atomic, ..cta_per_segment(4, 4, 4, 1) },
    ] {
        for (found, expected) in product(&options(shared)).iter().zip(&expected[..]) {
            assert!((found - expected).abs() < 1e-2, "{found} {expected}, {shared:?}");
        }
    }
}

/// All configurations with half vectors that are candidates, cut so short that small matrices have all paths.
#[test]
#[ignore = "needs a CUDA device"]
fn half_vectors() {
    let a = random_rows::<f16, u32, u32>(9, 9, 1, |_| 3);
    for columns in [8, 32] {
        let problem = a.pattern().spmm(columns).problem;
        let candidates = gustav_cuda::Config::candidates(Algorithm::Segmented, &problem);
        let half = candidates.into_iter().filter_map(|config| match config {
            gustav_cuda::Config::Segmented(config) if config.vector == 4 => Some(config),
            _ => None,
        });
        let half: Vec<_> = half.collect();
        assert_eq!(half.len(), 5, "{half:?}");
        for config in half {
            let longest = config.longest.map(|_| 32);
            configured::<f16>(Config { longest, first: 32, ..config });
            configured::<bf16>(Config { longest, first: 32, ..config });
        }
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn other_chunks_and_blocks() {
    configured::<f32>(Config { chunk: 8, block: 256, ..config(4, 8, 1, 1) });
    configured::<f64>(Config { chunk: 2, block: 64, ..config(2, 16, 1, 2) });
    configured::<f32>(Config { chunk: 1, ..config(1, 1, 1, 32) });
}

/// A ragged matrix whose rows are cut.
fn ragged(rows: usize) -> Csr<f32> {
    let mut offsets = vec![0u32];
    let (mut indices, mut values) = (Vec::new(), Vec::new());
    for r in 0..rows {
        for k in 0..r * 7 % 301 {
            indices.push(((r * 31 + k * 17) % rows) as u32);
            values.push(((r + k) % 13) as f32 / 7.0 - 0.8);
        }
        offsets.push(indices.len() as u32);
    }
    Csr::new(rows, rows, offsets, indices, values).expect("a matrix")
}

/// That matrix on the device, and a B of so many columns.
fn ragged_operands(
    device: &Device,
    rows: usize,
    columns: usize,
) -> (DeviceCsr<f32>, DeviceDense<f32>) {
    let a = DeviceCsr::upload(device, &ragged(rows).view()).expect("A");
    let element = |i, j| ((i * columns + j) % 29) as f32 / 9.0;
    let b = Dense::from_fn(rows, columns, Default::default(), element).expect("B");
    (a, DeviceDense::upload(device, &b.view()).expect("B"))
}

#[test]
#[ignore = "needs a CUDA device"]
fn deterministic_runs_give_the_same_bits() {
    let device = device();
    let (a, b) = ragged_operands(&device, 700, 48);
    let problem = a.pattern().spmm(48).problem.deterministic(true);
    let options = Options {
        config: Some(gustav_cuda::Config::Segmented(config(4, 4, 3, 2))),
        ..Options::default()
    };
    let mut first: Option<Vec<u32>> = None;
    for _ in 0..20 {
        let mut c = DeviceDense::zeros(&device, 700, 48, Default::default()).expect("C");
        let mut plan = SpmmPlan::new(a.pattern(), &problem, &options).expect("a plan");
        plan.execute(&a, &b, &mut c, Call::new()).expect("C");
        let bits: Vec<u32> = c.data().to_host().expect("C").iter().map(|v| v.to_bits()).collect();
        assert_eq!(*first.get_or_insert_with(|| bits.clone()), bits);
    }
}

/// A's indices and values `shift` elements past an aligned address, behind the buffers that hold them.
fn shifted(
    device: &Device,
    host: &Csr<f32>,
    shift: usize,
) -> (DeviceCsr<f32>, [DeviceBuffer<u32>; 2]) {
    let nnz = host.nnz();
    let padded = |words: Vec<u32>| {
        let words = [vec![0; shift], words].concat();
        DeviceBuffer::from_slice(device, &words, "an array of A").expect("memory")
    };
    let words = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect();
    let owners = [padded(host.indices().to_vec()), padded(words(&host.values()))];
    let [indices, values] = owners.each_ref().map(|o| o.address() + 4 * shift as u64);
    // SAFETY: the arrays lie in `owners`, which the caller keeps.
    let (indices, values) = unsafe {
        (DeviceBuffer::borrowed(device, indices, nnz), DeviceBuffer::borrowed(device, values, nnz))
    };
    let offsets = DeviceBuffer::from_slice(device, host.offsets(), "offsets").expect("memory");
    let a = DeviceCsr::from_parts(host.nrows(), host.ncols(), offsets, indices, values);
    (a.expect("A"), owners)
}

/// Nonzeros after the last whole chunk of A: their sums have the same bits wherever A lies in memory, and of equal
/// products the first wins.
#[test]
#[ignore = "needs a CUDA device"]
fn last_nonzeros_are_summed_in_the_same_order_wherever_they_lie() {
    let device = device();
    let (rows, columns) = (301, 33);
    let config = Config { chunk: 8, longest: Some(64), resident: 256, ..config(1, 4, 9, 8) };
    let options = options(config);
    // Values that repeat, so that products tie.
    let b =
        Dense::from_fn(rows, columns, Default::default(), |i, j| ((i % 3 + j % 2) as f32) / 3.0);
    let b = b.expect("B");
    let on_device = DeviceDense::upload(&device, &b.view()).expect("B");
    for left in [7, 1, 0] {
        let full = ragged(rows);
        let nnz = full.nnz() / 8 * 8 - 8 + left;
        let offsets: Vec<u32> = full.offsets().iter().map(|o| (*o).min(nnz as u32)).collect();
        let (indices, values) = (full.indices()[..nnz].to_vec(), full.values()[..nnz].to_vec());
        let host = Csr::new(rows, rows, offsets, indices, values).expect("a matrix");
        for reduce in [Reduce::Sum, Reduce::Max, Reduce::Min] {
            let mut first = None;
            for shift in 0..4 {
                let (a, _owners) = shifted(&device, &host, shift);
                let problem = a.pattern().spmm(columns).problem.reduce(reduce);
                let mut c =
                    DeviceDense::zeros(&device, rows, columns, Default::default()).expect("C");
                let mut won =
                    DeviceBuffer::<u32>::zeros(&device, rows * columns, "winners").expect("memory");
                let mut plan = SpmmPlan::new(a.pattern(), &problem, &options).expect("a plan");
                match reduce {
                    Reduce::Sum => plan.execute(&a, &on_device, &mut c, Call::new()).expect("C"),
                    _ => plan
                        .execute_with_winners(&a, &on_device, &mut c, &mut won, Call::new())
                        .expect("C"),
                };
                let bits: Vec<u32> =
                    c.data().to_host().expect("C").iter().map(|v| v.to_bits()).collect();
                let won = won.to_host().expect("winners");
                if reduce == Reduce::Max {
                    for (at, winner) in won.iter().enumerate().filter(|(_, w)| **w != u32::MAX) {
                        let (row, j) = (at / columns, at % columns);
                        let product = |k: usize| {
                            host.values()[k] * b.data()[host.indices()[k] as usize * columns + j]
                        };
                        let of_row = host.offsets()[row] as usize..host.offsets()[row + 1] as usize;
                        let best = of_row.clone().map(product).fold(f32::NEG_INFINITY, f32::max);
                        let expected = of_row.clone().find(|k| product(*k) == best);
                        assert_eq!(
                            Some(*winner as usize),
                            expected,
                            "row {row}, column {j}, shift {shift}"
                        );
                    }
                }
                assert_eq!(
                    *first.get_or_insert((bits.clone(), won.clone())),
                    (bits, won),
                    "{reduce:?}, shift {shift}"
                );
            }
        }
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn wrong_operands_are_refused() {
    let device = device();
    let host = ragged(60);
    let a = DeviceCsr::upload(&device, &host.view()).expect("A");
    let problem = a.pattern().spmm(8).problem;
    let mut plan = SpmmPlan::new(a.pattern(), &problem, &Options::default()).expect("a plan");
    let dense = |rows, columns| {
        DeviceDense::<f32>::zeros(&device, rows, columns, Default::default()).expect("a matrix")
    };
    let b = dense(60, 8);
    let stream = device.stream();
    let shape = plan.execute(&a, &dense(59, 8), &mut dense(60, 8), Call::new().on(stream));
    assert!(matches!(shape, Err(Error::Shape { .. })), "{shape:?}");
    // SAFETY: the memory is B's, which outlives the view; the overlap is what must be refused.
    let memory = unsafe { gustav_cuda::DeviceBuffer::borrowed(&device, b.data().address(), 480) };
    let mut overlapping = DeviceDense::new(60, 8, Default::default(), 8, memory).expect("a view");
    let aliased = plan.execute(&a, &b, &mut overlapping, Call::new().on(stream));
    assert!(matches!(aliased, Err(Error::Argument { name: "C", .. })), "{aliased:?}");
    let other = DeviceCsr::upload(&device, &ragged(61).view()).expect("A");
    let pattern = plan.execute(&other, &b, &mut dense(60, 8), Call::new().on(stream));
    assert!(matches!(pattern, Err(Error::Pattern { .. })), "{pattern:?}");
}

#[test]
#[ignore = "needs a CUDA device"]
fn too_much_memory_is_an_error_and_the_device_lives_on() {
    let device = device();
    let total = device.profile().memory_bytes;
    let asked = DeviceDense::<f32>::zeros(&device, total / 4, 2, Default::default());
    assert!(matches!(asked, Err(Error::OutOfMemory { available: Some(_), .. })), "{asked:?}");
    let host = ragged(40);
    let a = DeviceCsr::upload(&device, &host.view()).expect("A");
    assert_eq!(a.download().expect("A"), host);
}

#[test]
#[ignore = "needs a CUDA device"]
fn values_may_change_under_a_plan() {
    let device = device();
    let host = ragged(50);
    let mut a = DeviceCsr::upload(&device, &host.view()).expect("A");
    let ones = Dense::from_fn(50, 1, Default::default(), |_, _| 1.0f32).expect("B");
    let b = DeviceDense::upload(&device, &ones.view()).expect("B");
    let mut c = DeviceDense::zeros(&device, 50, 1, Default::default()).expect("C");
    for transpose in [false, true] {
        let problem = a.pattern().spmm(1).problem.transpose_a(transpose);
        let mut plan = SpmmPlan::new(a.pattern(), &problem, &Options::default()).expect("a plan");
        a.values_mut().write(&vec![1.0; host.nnz()]).expect("values");
        plan.execute(&a, &b, &mut c, Call::new().alpha(2.0)).expect("C");
        let counted =
            if transpose { host.view().transpose().expect("a transpose") } else { host.clone() };
        let expected: Vec<f32> = (0..50).map(|r| 2.0 * counted.view().row_len(r) as f32).collect();
        assert_eq!(c.data().to_host().expect("C")[..], expected);
        a.values_mut().write(&host.values()).expect("values");
    }
}
