//! Choosing by trial on a GPU.

use gustav_core::{Index, Problem, Result, Scalar, SemiringKind};
use gustav_cuda::catalog::Entry;
use gustav_cuda::probe::timed;
use gustav_cuda::{DeviceBuffer, Stream, spgemm, spmm, spmv};
use gustav_plan::{Algorithm, Chooser, autotune};

use super::{DeviceCsr, DeviceDense};

// Timed runs of a candidate, after one to warm up.
const RUNS: usize = 5;

/// Times every algorithm of the backend on operands of the problem's shape, over plus-times;
/// returns the fastest, and the reason.
pub(super) fn spmm<T: Scalar, I: Index, O: Index>(
    a: &DeviceCsr<T, I, O>,
    problem: &Problem,
) -> Result<(Algorithm, String)> {
    let (device, stream) = (a.device(), a.device().stream());
    let problem = problem.clone().semiring(SemiringKind::PlusTimes);
    let n = problem.columns;
    let mut b = DeviceDense::<T>::uninit(device, problem.inner(), n, problem.layout_b)?;
    b.data_mut().fill(0, stream)?;
    let mut c = DeviceDense::<T>::uninit(device, problem.output_rows(), n, problem.layout_c)?;
    let (one, zero) = (T::one().to_accum(), T::zero().to_accum());
    fastest(spmm::catalog(), |chooser| {
        let options = spmm::Options { chooser, ..spmm::Options::default() };
        let mut plan = spmm::SpmmPlan::new(a, &problem, &options)?;
        median_seconds(stream, || plan.execute(a, one, &b, zero, &mut c, stream))
    })
}

/// The same for a vector.
pub(super) fn spmv<T: Scalar, I: Index, O: Index>(
    a: &DeviceCsr<T, I, O>,
    problem: &Problem,
) -> Result<(Algorithm, String)> {
    let (device, stream) = (a.device(), a.device().stream());
    let problem = problem.clone().semiring(SemiringKind::PlusTimes);
    let mut x = DeviceBuffer::<T>::uninit(device, problem.inner(), "x on the device")?;
    x.fill(0, stream)?;
    let mut y = DeviceBuffer::<T>::uninit(device, problem.output_rows(), "y on the device")?;
    let (one, zero) = (T::one().to_accum(), T::zero().to_accum());
    fastest(spmv::catalog(), |chooser| {
        let options = spmv::Options { chooser, ..spmv::Options::default() };
        let mut plan = spmv::SpmvPlan::new(a, &problem, &options)?;
        median_seconds(stream, || plan.execute(a, one, &x, zero, &mut y, stream))
    })
}

/// The same for two sparse matrices: the whole product, symbolic work included.
pub(super) fn spgemm<T: Scalar, I: Index, O: Index>(
    a: &DeviceCsr<T, I, O>,
    b: &DeviceCsr<T, I, O>,
    problem: &Problem,
) -> Result<(Algorithm, String)> {
    let stream = a.device().stream();
    let problem = problem.clone().semiring(SemiringKind::PlusTimes);
    let one = T::one().to_accum();
    fastest(spgemm::catalog(), |chooser| {
        let options = spgemm::Options { chooser, ..spgemm::Options::default() };
        median_seconds(stream, || spgemm::multiply(a, one, b, &problem, &options, stream).map(drop))
    })
}

fn fastest(
    catalog: &[Entry],
    mut time: impl FnMut(Chooser) -> Result<f64>,
) -> Result<(Algorithm, String)> {
    autotune::fastest(catalog.iter().map(|e| e.algorithm), |a| time(Chooser::Named(a)))
}

fn median_seconds(stream: &Stream, mut run: impl FnMut() -> Result<()>) -> Result<f64> {
    run()?;
    let mut ms = [0.0; RUNS];
    for time in &mut ms {
        *time = timed(stream, &mut run)?;
    }
    ms.sort_by(f64::total_cmp);
    Ok(ms[RUNS / 2] * 1e-3)
}
