//! Choosing by trial on a GPU: every algorithm as its own rules configure it, then the other
//! configurations of those that came near the fastest.

use std::fmt::Display;

use gustav_core::{Index, Problem, Result, Scalar, SemiringKind};
use gustav_cuda::catalog::Entry;
use gustav_cuda::probe::timed;
use gustav_cuda::{DeviceBuffer, Stream, spgemm, spmm, spmv};
use gustav_plan::autotune::Timed;
use gustav_plan::predictor::Candidate;
use gustav_plan::{Algorithm, Chooser, autotune};

use super::{DeviceCsr, DeviceDense};

// Timed runs of a candidate, after one to warm up.
const RUNS: usize = 5;
// Algorithms that take at most so many times the fastest's time have their configurations timed.
const NEAR: f64 = 2.0;

/// One candidate.
#[derive(Clone, Copy)]
pub(super) struct Trial<C> {
    algorithm: Algorithm,
    /// None leaves it to the algorithm's own rules; else one with its place among those tried.
    config: Option<(usize, C)>,
}

impl<C> Trial<C> {
    /// What names the algorithm in a plan's options.
    pub(super) fn chooser(&self) -> Chooser {
        Chooser::Named(self.algorithm)
    }
}

impl<C: Copy> Trial<C> {
    /// What configures the algorithm in a plan's options.
    pub(super) fn config(&self) -> Option<C> {
        self.config.map(|(_, config)| config)
    }
}

/// As candidates of the predictor are named.
impl<C> Display for Trial<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let config = self.config.as_ref().map(|(place, _)| *place);
        Candidate { algorithm: self.algorithm, config, order: None }.fmt(f)
    }
}

/// Times every algorithm of the backend on operands of the problem's shape, over plus-times;
/// the fastest first.
pub(super) fn spmm<T: Scalar, I: Index, O: Index>(
    a: &DeviceCsr<T, I, O>,
    problem: &Problem,
) -> Result<Timed<Trial<spmm::Config>>> {
    let (device, stream) = (a.device(), a.device().stream());
    let problem = problem.clone().semiring(SemiringKind::PlusTimes);
    let n = problem.columns;
    let mut b = DeviceDense::<T>::uninit(device, problem.inner(), n, problem.layout_b)?;
    b.data_mut().fill(0, stream)?;
    let mut c = DeviceDense::<T>::uninit(device, problem.output_rows(), n, problem.layout_c)?;
    let (one, zero) = (T::one().to_accum(), T::zero().to_accum());
    let bias = problem.epilogue.bias.then(|| vec![zero; problem.columns]);
    let bias = bias.map(|zeros| DeviceBuffer::from_slice(device, &zeros, "bias")).transpose()?;
    let configs = |algorithm| spmm::Config::candidates(algorithm, &problem);
    fastest(spmm::catalog(), configs, |trial| {
        let (chooser, config) = (trial.chooser(), trial.config());
        let options = spmm::Options { chooser, config, order: None };
        let mut plan = spmm::SpmmPlan::new(a, &problem, &options)?;
        let product = || plan.execute_with_bias(a, one, &b, zero, bias.as_ref(), &mut c, stream);
        median_seconds(stream, product)
    })
}

/// The same for a vector.
pub(super) fn spmv<T: Scalar, I: Index, O: Index>(
    a: &DeviceCsr<T, I, O>,
    problem: &Problem,
) -> Result<Timed<Trial<spmv::Config>>> {
    let (device, stream) = (a.device(), a.device().stream());
    let problem = problem.clone().semiring(SemiringKind::PlusTimes);
    let mut x = DeviceBuffer::<T>::uninit(device, problem.inner(), "x on the device")?;
    x.fill(0, stream)?;
    let mut y = DeviceBuffer::<T>::uninit(device, problem.output_rows(), "y on the device")?;
    let (one, zero) = (T::one().to_accum(), T::zero().to_accum());
    let configs = |algorithm| spmv::Config::candidates(algorithm, &problem);
    fastest(spmv::catalog(), configs, |trial| {
        let options = spmv::Options { chooser: trial.chooser(), config: trial.config() };
        let mut plan = spmv::SpmvPlan::new(a, &problem, &options)?;
        median_seconds(stream, || plan.execute(a, one, &x, zero, &mut y, stream))
    })
}

/// The same for two sparse matrices: the whole product, symbolic work included.
pub(super) fn spgemm<T: Scalar, I: Index, O: Index>(
    a: &DeviceCsr<T, I, O>,
    b: &DeviceCsr<T, I, O>,
    problem: &Problem,
) -> Result<Timed<Algorithm>> {
    let stream = a.device().stream();
    let problem = problem.clone().semiring(SemiringKind::PlusTimes);
    let one = T::one().to_accum();
    let algorithms = spgemm::catalog().iter().map(|e| e.algorithm);
    autotune::timed(algorithms, |algorithm| {
        let chooser = Chooser::Named(*algorithm);
        let options = spgemm::Options { chooser, ..spgemm::Options::default() };
        median_seconds(stream, || spgemm::multiply(a, one, b, &problem, &options, stream).map(drop))
    })
}

fn fastest<C: Copy>(
    catalog: &[Entry],
    configs: impl Fn(Algorithm) -> Vec<C>,
    mut time: impl FnMut(&Trial<C>) -> Result<f64>,
) -> Result<Timed<Trial<C>>> {
    let own = catalog.iter().map(|e| Trial { algorithm: e.algorithm, config: None });
    let by_rules = autotune::timed(own, &mut time)?;
    let least = by_rules.iter().map(|(_, seconds)| *seconds).fold(f64::INFINITY, f64::min);
    let near = by_rules.iter().filter(|(_, seconds)| *seconds <= NEAR * least);
    let others: Vec<_> = near
        .flat_map(|(trial, _)| {
            let algorithm = trial.algorithm;
            let configs = configs(algorithm).into_iter().enumerate();
            configs.map(move |config| Trial { algorithm, config: Some(config) })
        })
        .collect();
    if others.is_empty() {
        return Ok(by_rules);
    }
    Ok(by_rules.and(autotune::timed(others, time)?))
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
