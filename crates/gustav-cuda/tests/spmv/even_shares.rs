//! `even-shares`, which takes every type and semiring.

use gustav_core::{Csr, Index, MinPlus, PlusTimes, Scalar, StaticSemiring, bf16};
use gustav_cuda::spmv::Config;
use gustav_cuda::spmv::even_shares::Config as EvenShares;
use gustav_cuda::{Call, DeviceBuffer, DeviceCsr, SpmvPlan};
use gustav_plan::Algorithm;
use gustav_testkit::battery::{Settings, check_spmv};
use gustav_testkit::oracle;

use crate::{device, named, run_refined};

fn check<T: Scalar, I: Index, O: Index, S: StaticSemiring<T::Accum>>(config: EvenShares) {
    crate::check::<T, I, O, S>(Algorithm::EvenShares, Some(Config::EvenShares(config)));
}

#[test]
#[ignore = "needs a CUDA device"]
fn every_type() {
    crate::check_every_type(Algorithm::EvenShares);
}

#[test]
#[ignore = "needs a CUDA device"]
fn every_semiring() {
    crate::check_every_semiring(Algorithm::EvenShares);
}

#[test]
#[ignore = "needs a CUDA device"]
fn small_and_large_shares() {
    let small = EvenShares { items: 4, threads: 32, resident: 1024 };
    check::<f32, u32, u32, PlusTimes>(small);
    check::<f64, u64, u32, PlusTimes>(small);
    let large = EvenShares { items: 16, threads: 256, resident: 768 };
    check::<f64, u32, u32, PlusTimes>(large);
    check::<bf16, u32, u64, PlusTimes>(large);
}

/// Where shares begin is kept in the plan.
#[test]
#[ignore = "needs a CUDA device"]
fn many_calls() {
    let (device, options) = (device(), named(Algorithm::EvenShares, None));
    check_spmv::<f32, u32, u32, PlusTimes>(&Settings::default(), |case| {
        run_refined::<f32, u32, u32, PlusTimes>(&device, &options, |p| p.calls(9), case)
    });
    check_spmv::<f64, u64, u32, MinPlus>(&Settings::default(), |case| {
        run_refined::<f64, u64, u32, MinPlus>(&device, &options, |p| p.calls(9), case)
    });
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
    let options = named(Algorithm::EvenShares, None);
    let mut plan = SpmvPlan::new(
        a.pattern(),
        &a.pattern().spmv().problem.calls(20).deterministic(true),
        &options,
    )
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

/// Arrays that begin anywhere, of values and columns together and each alone.
#[test]
#[ignore = "needs a CUDA device"]
fn arrays_need_no_alignment() {
    let device = device();
    let (rows, columns) = (300, 200);
    let (mut offsets, mut indices, mut values) = (vec![0u32], Vec::new(), Vec::new());
    for r in 0..rows {
        indices.extend((0..r * 7 % 41).map(|k| ((r + k * 3) % columns) as u32));
        values.extend((0..r * 7 % 41).map(|k| ((r + k) % 9) as f32 - 4.0));
        offsets.push(indices.len() as u32);
    }
    let host = Csr::new(rows, columns, offsets, indices, values).expect("a matrix");
    let x: Vec<f32> = (0..columns).map(|k| (k % 5) as f32 - 2.0).collect();
    let x_there = DeviceBuffer::from_slice(&device, &x, "x").expect("x");
    for (shift, shift_values) in [(1, 1), (0, 3), (2, 0)] {
        let shifted_indices = [&vec![0; shift], host.indices()].concat();
        let shifted_values = [&vec![0.0; shift_values][..], &host.values()].concat();
        let owners = (
            DeviceBuffer::from_slice(&device, &shifted_indices, "columns").expect("memory"),
            DeviceBuffer::from_slice(&device, &shifted_values, "values").expect("memory"),
        );
        let offsets = DeviceBuffer::from_slice(&device, host.offsets(), "offsets").expect("memory");
        let (first, first_value) =
            (owners.0.address() + 4 * shift as u64, owners.1.address() + 4 * shift_values as u64);
        // SAFETY: the arrays lie in `owners`, which outlive them, and are those of a matrix.
        let a = unsafe {
            let indices = DeviceBuffer::<u32>::borrowed(&device, first, host.nnz());
            let values = DeviceBuffer::<f32>::borrowed(&device, first_value, host.nnz());
            DeviceCsr::from_parts(rows, columns, offsets, indices, values).expect("A")
        };
        let mut y = DeviceBuffer::<f32>::zeros(&device, rows, "y").expect("y");
        y.fill(0xff, device.stream()).expect("poison");
        let options = named(Algorithm::EvenShares, None);
        let mut plan = SpmvPlan::new(a.pattern(), &a.pattern().spmv().problem.calls(9), &options)
            .expect("a plan");
        plan.execute(&a, &x_there, &mut y, Call::new()).expect("y");
        let found = y.to_host().expect("y");
        let plus_times = gustav_core::Semiring::PlusTimes;
        let verdict = oracle::spmv(plus_times, host.view(), false, &x, 1.0, 0.0, None, &found);
        assert!(verdict.expect("shapes fit").ok, "shifts {shift} and {shift_values}");
    }
}
