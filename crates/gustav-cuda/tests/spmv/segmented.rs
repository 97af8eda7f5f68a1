//! `segmented`, which takes every type and semiring.

use gustav_core::{Csr, Index, MinPlus, PlusTimes, Scalar, StaticSemiring};
use gustav_cuda::spmm::segmented::{Config as Listed, Reduction};
use gustav_cuda::spmv::Config;
use gustav_cuda::spmv::segmented::{Config as Segmented, InOrder};
use gustav_cuda::{Call, DeviceBuffer, DeviceCsr, SpmvPlan};
use gustav_plan::Algorithm;
use gustav_testkit::oracle;

use crate::{device, named};

fn check<T: Scalar, I: Index, O: Index, S: StaticSemiring<T::Accum>>(config: Segmented) {
    crate::check::<T, I, O, S>(Algorithm::Segmented, Some(Config::Segmented(config)));
}

#[test]
#[ignore = "needs a CUDA device"]
fn every_type() {
    crate::check_every_type(Algorithm::Segmented);
}

#[test]
#[ignore = "needs a CUDA device"]
fn every_semiring() {
    crate::check_every_semiring(Algorithm::Segmented);
}

#[test]
#[ignore = "needs a CUDA device"]
fn one_lane_and_a_whole_warp() {
    let one = InOrder { lanes: 1, loads_in_flight: 1, threads: 32, longest: 5, part: 7 };
    check::<f32, u32, u32, PlusTimes>(Segmented::InOrder(one));
    let warp = InOrder { lanes: 32, loads_in_flight: 8, threads: 256, longest: 64, part: 1024 };
    check::<f64, u32, u32, PlusTimes>(Segmented::InOrder(warp));
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_list_of_segments() {
    let list = Listed {
        vector: 1,
        lanes: 1,
        tiles: 1,
        subgroups: 8,
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
        resident: 1024,
    };
    check::<f32, u32, u32, PlusTimes>(Segmented::Listed(list));
    check::<f64, u64, u64, PlusTimes>(Segmented::Listed(Listed { subgroups: 2, chunk: 2, ..list }));
    check::<f32, u32, u32, MinPlus>(Segmented::Listed(Listed { subgroups: 32, ..list }));
}

/// Rows of one part, of several, and of more than a warp adds at once; many runs of one plan.
#[test]
#[ignore = "needs a CUDA device"]
fn long_rows_give_the_same_bits_in_every_run() {
    let device = device();
    let lengths = [3, 40_000, 33, 0, 1025, 70_001, 1024, 2048, 5];
    let columns = 100_000;
    let (mut offsets, mut indices, mut values) = (vec![0u32], Vec::new(), Vec::new());
    for (r, length) in lengths.into_iter().enumerate() {
        indices.extend((0..length).map(|k| ((k * 13 + r * 7) % columns) as u32));
        values.extend((0..length).map(|k| ((k * 29 + r) % 17) as f32 / 8.0 - 1.0));
        offsets.push(indices.len() as u32);
    }
    let host = Csr::new(lengths.len(), columns, offsets, indices, values).expect("a matrix");
    let x: Vec<f32> = (0..columns).map(|k| (k % 23) as f32 / 11.0 - 1.0).collect();
    let a = DeviceCsr::upload(&device, &host.view()).expect("A");
    let x_there = DeviceBuffer::from_slice(&device, &x, "x").expect("x");
    let mut y = DeviceBuffer::zeros(&device, lengths.len(), "y").expect("y");
    let options = named(Algorithm::Segmented, None);
    let mut plan =
        SpmvPlan::new(a.pattern(), &a.pattern().spmv().problem.deterministic(true), &options)
            .expect("a plan");
    let mut first: Option<Vec<u32>> = None;
    for _ in 0..20 {
        y.fill(0xff, device.stream()).expect("poison");
        plan.execute(&a, &x_there, &mut y, Call::new()).expect("y");
        let found = y.to_host().expect("y");
        let plus_times = gustav_core::Semiring::PlusTimes;
        let verdict = oracle::spmv(plus_times, host.view(), false, &x, 1.0, 0.0, None, &found);
        assert!(verdict.expect("shapes fit").ok);
        let bits: Vec<u32> = found.iter().map(|v| v.to_bits()).collect();
        assert_eq!(*first.get_or_insert_with(|| bits.clone()), bits);
    }
}
