//! What every product has to satisfy, on matrices larger than the battery's.

use std::ops::ControlFlow;

use gustav_core::{Csr, CsrView, Error, Scalar, bf16};
use gustav_cuda::spgemm::tiled::Progress;
use gustav_cuda::spgemm::{Options, SpgemmPlan, catalog};
use gustav_cuda::{Device, DeviceBuffer, DeviceCsr, SpgemmCall};
use gustav_plan::{Algorithm, Chooser};
use gustav_testkit::battery::matrices::{random_rows, unsorted};
use gustav_testkit::oracle;

use crate::device;

/// A·B by `algorithm`, or the one that is chosen, checked against the oracle; nothing where it refuses.
fn product_by<T: Scalar>(
    device: &Device,
    algorithm: Option<Algorithm>,
    a: CsrView<'_, T>,
    b: CsrView<'_, T>,
) -> Option<Csr<T>> {
    let (on_a, on_b) = (DeviceCsr::upload(device, &a), DeviceCsr::upload(device, &b));
    let (on_a, on_b) = (on_a.expect("A"), on_b.expect("B"));
    let chooser = algorithm.map_or(Chooser::Auto, Chooser::Named);
    let options = Options { chooser, ..Options::default() };
    let mut plan = match SpgemmPlan::new(
        on_a.pattern(),
        on_b.pattern(),
        &on_a.pattern().spgemm(on_b.pattern()).problem,
        &options,
    ) {
        Err(Error::Unsupported { .. }) if algorithm.is_some() => return None,
        other => other.expect("a plan"),
    };
    let one = T::one().to_accum();
    let c =
        plan.execute(&on_a, &on_b, SpgemmCall::new().alpha(one)).expect("C").download().expect("C");
    let verdict = oracle::Spgemm::new(a, b).verify(c.view()).expect("shapes fit");
    assert!(verdict.ok, "{algorithm:?}: {verdict}");
    Some(c)
}

/// A·B with the algorithm that is chosen, checked against the oracle.
fn product<T: Scalar>(device: &Device, a: CsrView<'_, T>, b: CsrView<'_, T>) -> Csr<T> {
    product_by(device, None, a, b).expect("a product")
}

/// Every algorithm of ours, and the choice among them.
fn algorithms() -> impl Iterator<Item = Option<Algorithm>> {
    let ours = catalog().iter().map(|entry| entry.algorithm);
    [None].into_iter().chain(ours.filter(|a| *a != Algorithm::Vendor).map(Some))
}

/// Rows of mixed lengths, every hundredth of them long.
fn mixed(rows: usize, columns: usize, seed: u64) -> Csr<f64> {
    random_rows(rows, columns, seed, |row| match row % 100 {
        0 => columns / 3,
        1..=20 => 0,
        r => r % 17,
    })
}

fn eye(n: usize) -> Csr<f64> {
    let offsets = (0..=n as u32).collect::<Vec<_>>();
    let indices = (0..n as u32).collect::<Vec<_>>();
    Csr::new(n, n, offsets, indices, vec![1.0; n]).expect("a matrix")
}

#[test]
#[ignore = "needs a CUDA device"]
fn the_identity_changes_nothing() {
    let device = device();
    let a = mixed(3000, 2000, 1);
    for algorithm in algorithms() {
        let right = product_by(&device, algorithm, a.view(), eye(2000).view());
        let left = product_by(&device, algorithm, eye(3000).view(), a.view());
        for c in [right, left] {
            assert!(c.is_none_or(|c| c == a), "{algorithm:?}");
        }
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn products_associate() {
    let device = device();
    let (a, b, c) = (mixed(900, 800, 2), mixed(800, 700, 3), mixed(700, 600, 4));
    // Small integers: sums are exact in any order.
    let whole = |m: &Csr<f64>| with(m, |v| (v * 4.0).round());
    // What the magnitudes of all terms add up to.
    let sizes = [&a, &b, &c].map(|m| with(m, f64::abs));
    let bound = product(&device, sizes[0].view(), sizes[1].view());
    let bound = product(&device, bound.view(), sizes[2].view());
    for algorithm in algorithms() {
        let both = |a: &Csr<f64>, b: &Csr<f64>, c: &Csr<f64>| {
            let times =
                |a: &Csr<f64>, b: &Csr<f64>| product_by(&device, algorithm, a.view(), b.view());
            Some([times(&times(a, b)?, c)?, times(a, &times(b, c)?)?])
        };
        if let Some([left, right]) = both(&whole(&a), &whole(&b), &whole(&c)) {
            assert_eq!(left, right, "{algorithm:?}");
        }
        let Some([left, right]) = both(&a, &b, &c) else { continue };
        assert_eq!((left.offsets(), left.indices()), (right.offsets(), right.indices()));
        // Each side rounds a term at most once for every other of its two sums.
        let terms = (800 + 700) as f64;
        for ((l, r), most) in left.values().iter().zip(right.values()).zip(bound.values()) {
            let allowed = 2.0 * terms * f64::EPSILON * most;
            assert!((l - r).abs() <= allowed, "{algorithm:?}: {l} {r}");
        }
    }
}

/// The matrix with other values.
fn with(m: &Csr<f64>, value: impl Fn(f64) -> f64) -> Csr<f64> {
    let mut m = m.clone();
    m.values_mut().iter_mut().for_each(|v| *v = value(*v));
    m
}

/// Long rows and columns, an empty factor, and columns out of order and repeated.
#[test]
#[ignore = "needs a CUDA device"]
fn shapes_at_the_edge_by_every_algorithm() {
    let device = device();
    let n = 2500;
    let hub = random_rows::<f64, u32, u32>(n, n, 5, |row| if row % 800 == 7 { 2000 } else { 2 });
    let offsets = (0..=n as u32).collect::<Vec<_>>();
    let column = Csr::new(n, n, offsets, vec![7; n], vec![0.5f64; n]).expect("a matrix");
    let (none, loose) = (Csr::empty(n, n).expect("a matrix"), unsorted::<f64, u32, u32>(n, n, 6));
    let mut ran = 0;
    for algorithm in algorithms() {
        let pairs = [
            (&hub, &hub),
            (&column, &hub),
            (&hub, &column),
            (&none, &hub),
            (&hub, &none),
            (&none, &none),
            (&loose, &hub),
            (&hub, &loose),
        ];
        for (a, b) in pairs {
            ran += usize::from(product_by(&device, algorithm, a.view(), b.view()).is_some());
        }
    }
    assert!(ran >= 24, "{ran} products ran");
}

#[test]
#[ignore = "needs a CUDA device"]
fn hub_times_hub_and_one_column() {
    let device = device();
    let n = 60_000;
    let hub =
        random_rows::<f32, u32, u32>(n, n, 5, |row| if row % 20_000 == 7 { 40_000 } else { 2 });
    product(&device, hub.view(), hub.view());
    let offsets = (0..=n as u32).collect::<Vec<_>>();
    let column = Csr::new(n, n, offsets, vec![7; n], vec![0.5f32; n]).expect("a matrix");
    let c = product(&device, column.view(), hub.view());
    assert_eq!(c.nnz(), n * 40_000);
    product(&device, hub.view(), column.view());
}

#[test]
#[ignore = "needs a CUDA device"]
fn what_cancels_stays_as_zero() {
    let a = Csr::new(1, 2, vec![0u32, 2], vec![0, 1], vec![1.0f64, -1.0]).expect("a matrix");
    let b = Csr::new(2, 1, vec![0u32, 1, 2], vec![0, 0], vec![3.0, 3.0]).expect("a matrix");
    let device = device();
    for algorithm in algorithms() {
        let Some(c) = product_by(&device, algorithm, a.view(), b.view()) else { continue };
        assert_eq!((c.nnz(), c.values()[0]), (1, 0.0), "{algorithm:?}");
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn full_rows_of_every_type() {
    fn check<T: Scalar>(device: &Device) {
        let a = random_rows::<T, u32, u32>(300, 500, 6, |row| 100 + row);
        let b = random_rows::<T, u32, u32>(500, 9000, 7, |row| 4 * row + 300);
        product(device, a.view(), b.view());
    }
    let device = device();
    check::<f32>(&device);
    check::<f64>(&device);
    check::<bf16>(&device);
    check::<i64>(&device);
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_known_pattern_takes_new_values() {
    let device = device();
    let mut host = mixed(2000, 2000, 8);
    let mut a = DeviceCsr::upload(&device, &host.view()).expect("A");
    let options = Options::default();
    let mut plan = SpgemmPlan::new(
        a.pattern(),
        a.pattern(),
        &a.pattern().spgemm(a.pattern()).problem,
        &options,
    )
    .expect("a plan");
    let stream = device.new_stream().expect("a stream");
    let mut c = plan.execute(&a, &a, SpgemmCall::new().on(&stream)).expect("C");
    for _ in 0..3 {
        host.values_mut().iter_mut().for_each(|v| *v = 1.5 - *v);
        a.values_mut().write(&host.values()).expect("values");
        c.values_mut().fill(0xff, &stream).expect("poison");
        plan.execute_into(&a, &a, &mut c, SpgemmCall::new().alpha(2.0).on(&stream)).expect("C");
        stream.synchronize().expect("done");
        let found = c.download().expect("C");
        let reference = oracle::Spgemm::new(host.view(), host.view());
        let reference = oracle::Spgemm { alpha: Some(2.0), ..reference };
        assert!(reference.verify(found.view()).expect("shapes fit").ok);
    }
    let mut other = DeviceCsr::upload(&device, &host.view()).expect("another");
    assert!(
        plan.execute_into(&a, &a, &mut other, SpgemmCall::new().alpha(2.0).on(&stream)).is_err()
    );
}

#[test]
#[ignore = "needs a CUDA device with 20 GB"]
fn more_products_than_32_bits_count() {
    let device = device();
    // 70,000 x 70,000 ones in row 0 of A and column 0 of B, times one row of 70,000.
    let n = 70_000usize;
    let buffer = |values: &[u32]| DeviceBuffer::from_slice(&device, values, "a pattern");
    let ones = |count: usize| DeviceBuffer::from_slice(&device, &vec![1.0f32; count], "ones");
    let columns: Vec<u32> =
        (0..n as u32).flat_map(|row| (0..1000).map(move |c| (row + c) % 70_000)).collect();
    let offsets: Vec<u32> = (0..=n as u32).map(|row| row * 1000).collect();
    let parts = (buffer(&offsets).expect("B"), buffer(&columns).expect("B"));
    let b = DeviceCsr::from_parts(n, n, parts.0, parts.1, ones(columns.len()).expect("B"));
    let b = b.expect("B");
    let all: Vec<u32> = (0..n as u32).cycle().take(70 * n).collect();
    let offsets: Vec<u32> = (0..=70).map(|row| row * n as u32).collect();
    let parts = (buffer(&offsets).expect("A"), buffer(&all).expect("A"));
    let a = DeviceCsr::from_parts(70, n, parts.0, parts.1, ones(all.len()).expect("A"));
    let a = a.expect("A");
    let options = Options::default();
    let mut plan = SpgemmPlan::new(
        a.pattern(),
        b.pattern(),
        &a.pattern().spgemm(b.pattern()).problem,
        &options,
    )
    .expect("a plan");
    assert!(plan.products().is_none_or(|p| p == 4_900_000_000));
    let c = plan.execute(&a, &b, SpgemmCall::new()).expect("C").download().expect("C");
    assert_eq!(c.nnz(), 70 * n);
    assert!(c.values().iter().all(|v| *v == 1000.0));
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_bound_on_the_workspace_changes_nothing_but_the_time() {
    let device = device();
    let host = mixed(5000, 5000, 9);
    let a = DeviceCsr::upload(&device, &host.view()).expect("A");
    let (problem, stream) = (a.pattern().spgemm(a.pattern()).problem, device.stream());
    let product = |workspace| {
        let options = Options { workspace, ..Options::default() };
        let mut plan =
            SpgemmPlan::new(a.pattern(), a.pattern(), &problem, &options).expect("a plan");
        let mut c = plan.execute(&a, &a, SpgemmCall::new().on(stream)).expect("C");
        c.values_mut().fill(0xff, stream).expect("poison");
        plan.execute_into(&a, &a, &mut c, SpgemmCall::new().on(stream)).expect("C");
        (plan.workspace_bytes(), c.download().expect("C"))
    };
    let (all, whole) = product(None);
    for most in [all / 2, all / 30] {
        let (bytes, parts) = product(Some(most));
        assert!(bytes <= most, "{bytes} of {most}");
        assert_eq!((whole.offsets(), whole.indices()), (parts.offsets(), parts.indices()));
        assert!(
            oracle::Spgemm::new(host.view(), host.view()).verify(parts.view()).expect("shapes").ok
        );
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_stopped_product_in_parts_leaves_plan_and_device_usable() {
    let device = device();
    let host = mixed(5000, 5000, 12);
    let a = DeviceCsr::upload(&device, &host.view()).expect("A");
    let stream = device.stream();
    for deterministic in [false, true] {
        let problem = a.pattern().spgemm(a.pattern()).problem.deterministic(deterministic);
        let options = Options { workspace: Some(20_000), ..Options::default() };
        let mut plan =
            SpgemmPlan::new(a.pattern(), a.pattern(), &problem, &options).expect("a plan");
        let mut seen = Vec::new();
        let mut stop = |p: Progress| {
            seen.push(p);
            if p.done == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let stopped = plan.execute(&a, &a, SpgemmCall::new().watch(&mut stop).on(stream));
        assert!(matches!(stopped, Err(Error::Cancelled { done: 2, .. })), "{stopped:?}");
        assert_eq!(seen.iter().map(|p| p.done).collect::<Vec<_>>(), [1, 2]);
        assert!(seen[0].tiles > 3, "{seen:?}");
        let mut told = 0;
        let mut watch = |p: Progress| {
            told += 1;
            assert_eq!((p.done, p.tiles), (told, seen[0].tiles));
            ControlFlow::Continue(())
        };
        let c = plan.execute(&a, &a, SpgemmCall::new().watch(&mut watch).on(stream)).expect("C");
        assert_eq!(told, seen[0].tiles);
        let c = c.download().expect("C");
        assert!(oracle::Spgemm::new(host.view(), host.view()).verify(c.view()).expect("shapes").ok);
    }
    // One part: to stop after it is too late.
    let mut plan = SpgemmPlan::new(
        a.pattern(),
        a.pattern(),
        &a.pattern().spgemm(a.pattern()).problem,
        &Options::default(),
    )
    .expect("a plan");
    let mut stop = |_| ControlFlow::Break(());
    assert!(plan.execute(&a, &a, SpgemmCall::new().watch(&mut stop).on(stream)).is_ok());
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_product_that_does_not_fit_leaves_the_device_usable() {
    let device = device();
    let free = device.memory().expect("free memory").0;
    // Every row of C is full: 12 bytes for each of n x n entries.
    let n = ((free as f64 / 8.0).sqrt() * 1.2) as usize;
    let offsets = (0..=n as u64).collect::<Vec<_>>();
    let column = Csr::new(n, 1, offsets, vec![0u32; n], vec![1.0f32; n]).expect("A");
    let columns = (0..n as u32).collect::<Vec<_>>();
    let row = Csr::new(1, n, vec![0, n as u64], columns, vec![1.0f32; n]).expect("B");
    let a = DeviceCsr::upload(&device, &column.view()).expect("A");
    let b = DeviceCsr::upload(&device, &row.view()).expect("B");
    let options = Options::default();
    let mut plan = SpgemmPlan::new(
        a.pattern(),
        b.pattern(),
        &a.pattern().spgemm(b.pattern()).problem,
        &options,
    )
    .expect("a plan");
    let error = plan.execute(&a, &b, SpgemmCall::new()).expect_err("too large");
    assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
    let small = mixed(300, 300, 10);
    product(&device, small.view(), small.view());
}
