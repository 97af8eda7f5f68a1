//! Products of which each takes the result of the one before, and overwrites what that one read: launches
//! that begin before the one ahead has ended must not see anything too early, nor must the copies of
//! column-major operands.

use gustav_core::{Csr, Dense, Layout, Problem, Scalar, f16};
use gustav_cuda::{Call, DeviceCsr, DeviceDense, Options, SpmmPlan};
use gustav_plan::{Algorithm, Chooser};

use crate::common::device;

const ROWS: usize = 6000;
const COLUMNS: usize = 64;
const STEPS: usize = 40;

/// Rows of one to hundreds of nonzeros of both signs, of about the length one, so that products neither
/// grow nor come to rest.
fn matrix<T: Scalar>() -> Csr<T> {
    let (mut offsets, mut indices, mut values) = (vec![0u32], Vec::new(), Vec::new());
    for row in 0..ROWS as u64 {
        let length = if row % 97 == 0 { 700 } else { 1 + row % 23 };
        for k in 0..length {
            let column = (row * 7919 + k * (ROWS as u64 / length)) % ROWS as u64;
            let sign = if (row * 31 + k * 17) % 5 < 2 { -1.0 } else { 1.0 };
            indices.push(column as u32);
            values.push(T::from_f64(sign / (length as f64).sqrt()));
        }
        offsets.push(indices.len() as u32);
    }
    Csr::new(ROWS, ROWS, offsets, indices, values).expect("a matrix")
}

/// A chain of products.
#[derive(Clone, Copy, Debug)]
struct Chain {
    algorithm: Algorithm,
    layout: Layout,
    deterministic: bool,
    /// Whether the host waits for every product.
    wait: bool,
}

/// What `STEPS` products make of one B.
fn iterate<T: Scalar>(chain: Chain) -> Vec<f64>
where
    gustav_core::PlusTimes: gustav_core::StaticSemiring<T::Accum>,
{
    let Chain { algorithm, layout, deterministic, wait } = chain;
    let device = device();
    let a = DeviceCsr::upload(&device, &matrix::<T>().view()).expect("A");
    let start = Dense::from_fn(ROWS, COLUMNS, layout, |i, j| {
        T::from_f64(((i * 13 + j * 7) % 11) as f64 / 5.0 - 1.0)
    });
    let mut x = DeviceDense::upload(&device, &start.expect("B").view()).expect("B");
    let mut y = DeviceDense::zeros(&device, ROWS, COLUMNS, layout).expect("C");
    let problem: Problem = a.pattern().spmm(COLUMNS).problem.deterministic(deterministic);
    let problem = problem.layouts(layout, layout);
    let options = Options { chooser: Chooser::Named(algorithm), ..Options::default() };
    let mut plan = SpmmPlan::new(a.pattern(), &problem, &options).expect("a plan");
    let stream = device.new_stream().expect("a stream");
    let (one, zero) = (T::one().to_accum(), T::zero().to_accum());
    for _ in 0..STEPS {
        plan.execute(&a, &x, &mut y, Call::new().alpha(one).beta(zero).on(&stream))
            .expect("a product");
        if wait {
            stream.synchronize().expect("the end of it");
        }
        std::mem::swap(&mut x, &mut y);
    }
    stream.synchronize().expect("the end of all");
    let values = x.download().expect("a result");
    values.data().iter().map(|v| v.to_f64()).collect()
}

fn check<T: Scalar>(algorithm: Algorithm)
where
    gustav_core::PlusTimes: gustav_core::StaticSemiring<T::Accum>,
{
    for layout in [Layout::RowMajor, Layout::ColumnMajor] {
        check_in::<T>(algorithm, layout);
    }
}

fn check_in<T: Scalar>(algorithm: Algorithm, layout: Layout)
where
    gustav_core::PlusTimes: gustav_core::StaticSemiring<T::Accum>,
{
    let chain = Chain { algorithm, layout, deterministic: true, wait: false };
    let expected = iterate::<T>(Chain { wait: true, ..chain });
    let norm = expected.iter().map(|v| v * v).sum::<f64>().sqrt();
    assert!(norm > 0.1 && norm.is_finite(), "{chain:?}: {norm} says nothing");
    for _ in 0..3 {
        let found = iterate::<T>(chain);
        assert!(found == expected, "{chain:?} in {:?}", T::DTYPE);
        // In no promised order it is the same but for rounding, which tells early reads well apart.
        let found = iterate::<T>(Chain { deterministic: false, ..chain });
        let error = found.iter().zip(&expected).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt();
        let bound = if T::DTYPE.bytes() == 2 { 0.1 } else { 1e-4 };
        assert!(error <= bound * norm, "{chain:?} in {:?}: {error} of {norm}", T::DTYPE);
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn each_product_waits_for_the_one_before() {
    for algorithm in [
        Algorithm::Segmented,
        Algorithm::RowBlock,
        Algorithm::EvenShares,
        Algorithm::BStationary,
        Algorithm::ColumnPanel,
    ] {
        check::<f32>(algorithm);
        check::<f64>(algorithm);
        check::<f16>(algorithm);
    }
    check::<f16>(Algorithm::Tensor);
}
