//! Choosing by trial on a GPU.

use gustav_core::{Index, Problem, Result, Scalar, SemiringKind};
use gustav_cuda::probe::timed;
use gustav_cuda::{Options, SpmmPlan};
use gustav_plan::{Chooser, autotune};

use super::{DeviceCsr, DeviceDense};

// Timed runs of a candidate, after one to warm up.
const RUNS: usize = 5;

/// Times every algorithm of the backend on operands of the problem's shape, over plus-times;
/// returns the options that name the fastest, and the reason.
pub(super) fn spmm<T: Scalar, I: Index, O: Index>(
    a: &DeviceCsr<T, I, O>,
    problem: &Problem,
) -> Result<(Options, String)> {
    let device = a.device();
    let problem = problem.clone().semiring(SemiringKind::PlusTimes);
    let n = problem.columns;
    let mut b = DeviceDense::<T>::uninit(device, problem.inner(), n, problem.layout_b)?;
    b.data_mut().fill(0, device.stream())?;
    let mut c = DeviceDense::<T>::uninit(device, problem.output_rows(), n, problem.layout_c)?;
    let named = |a| Options { chooser: Chooser::Named(a), ..Options::default() };
    let candidates = gustav_cuda::spmm::catalog().iter().map(|e| e.algorithm);
    let (best, reason) = autotune::fastest(candidates, |algorithm| {
        let mut plan = SpmmPlan::new(a, &problem, &named(algorithm))?;
        let (one, zero) = (T::one().to_accum(), T::zero().to_accum());
        let stream = device.stream();
        let mut run = || timed(stream, || plan.execute(a, one, &b, zero, &mut c, stream));
        run()?;
        let mut times = [0.0; RUNS];
        for time in &mut times {
            *time = run()?;
        }
        times.sort_by(f64::total_cmp);
        Ok(times[RUNS / 2] * 1e-3)
    })?;
    Ok((named(best), reason))
}
