//! Choosing by trial on a GPU: every algorithm as its own rules configure it, then the other
//! configurations of those that came near the fastest, and the row orders that the calls may repay.

use std::fmt::Display;

use gustav_core::{Error, Index, Problem, Result, Scalar, Semiring};
use gustav_cuda::catalog::Entry;
use gustav_cuda::probe::timed;
use gustav_cuda::{DeviceBuffer, Stream, sddmm, spgemm, spmm, spmv};
use gustav_plan::autotune::Timed;
use gustav_plan::predictor::Candidate;
use gustav_plan::{Algorithm, Chooser, Order, RowOrder, autotune};

use super::{Call, DeviceDense, DevicePattern, order};
use crate::Device;
use crate::explain::OrderFacts;

// Timed runs of a candidate, after one to warm up.
const RUNS: usize = 5;
// Algorithms that take at most so many times the fastest's time have their configurations timed.
const NEAR: f64 = 2.0;
// Largest part of a call that an order is expected to save; an order is tried if the calls would
// then repay it.
const MOST_SAVED: f64 = 0.25;

/// One candidate.
#[derive(Clone, Copy)]
pub(super) struct Trial<C> {
    algorithm: Algorithm,
    /// A configuration with its index among the candidates; `None` leaves it to the algorithm's own
    /// rules.
    config: Option<(usize, C)>,
    /// The order of the rows; none leaves them as stored.
    order: Option<Order>,
}

impl<C> Trial<C> {
    fn by_rules(algorithm: Algorithm, order: Option<Order>) -> Self {
        Trial { algorithm, config: None, order }
    }

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
        let config = self.config.as_ref().map(|(index, _)| *index);
        Candidate { algorithm: Some(self.algorithm), config, order: self.order }.fmt(f)
    }
}

/// Operands of a problem's shape, over plus-times, to time plans on.
pub(super) struct Trials<'a, T: Scalar, I: Index, O: Index> {
    a: &'a DevicePattern<I, O>,
    values: DeviceBuffer<T>,
    problem: Problem,
    b: DeviceDense<T>,
    c: DeviceDense<T>,
    bias: Option<DeviceBuffer<T::Accum>>,
}

impl<'a, T: Scalar, I: Index, O: Index> Trials<'a, T, I, O> {
    /// With B full of zeros.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; what the driver refuses.
    pub(super) fn new(a: &'a DevicePattern<I, O>, problem: &Problem) -> Result<Self> {
        let (device, problem) = (a.device(), problem.clone().semiring(Semiring::PlusTimes));
        let n = problem.columns;
        let values = DeviceBuffer::zeros(device, a.nnz(), "values of a trial")?;
        let b = DeviceDense::<T>::zeros(device, problem.inner(), n, problem.layout_b)?;
        let c = DeviceDense::<T>::zeros(device, problem.output_rows(), n, problem.layout_c)?;
        let bias = problem.epilogue.bias.then(|| vec![T::zero().to_accum(); n]);
        let bias =
            bias.map(|zeros| DeviceBuffer::from_slice(device, &zeros, "bias")).transpose()?;
        Ok(Trials { a, values, problem, b, c, bias })
    }

    /// Median seconds of a product by the plan that `options` request.
    ///
    /// # Errors
    /// Those of the plan and of its products.
    pub(super) fn seconds(&mut self, options: &spmm::Options<'_>) -> Result<f64> {
        let Trials { a, values, problem, b, c, bias } = self;
        let mut plan = spmm::SpmmPlan::new(a, problem, options)?;
        let call = Call::new().bias(bias.as_ref());
        median_seconds(a.device().stream(), &mut || plan.execute(&*values, b, c, call))
    }
}

/// Times every algorithm of the backend on operands of the problem's shape, over plus-times: with
/// rows in the order that was set on `on`, by those that take one; else as stored, and `segmented`
/// in other orders as well. The fastest first, with its order where it has one.
pub(super) fn spmm<T: Scalar, I: Index, O: Index>(
    on: &Device,
    a: &DevicePattern<I, O>,
    problem: &Problem,
) -> Result<(Timed<Trial<spmm::Config>>, Option<(RowOrder, OrderFacts)>)> {
    let mut trials = Trials::<T, I, O>::new(a, problem)?;
    let problem = trials.problem.clone();
    let configs = |algorithm| spmm::Config::candidates(algorithm, &problem);
    let mut time = |trial: &Trial<spmm::Config>, order: Option<&RowOrder>| {
        let (chooser, config) = (trial.chooser(), trial.config());
        trials.seconds(&spmm::Options { chooser, config, order })
    };
    if let Some(order) = on.order() {
        let made = order::of(on, order, a, &problem)?;
        let time: Time<'_, Trial<_>> = &mut |trial| time(trial, Some(&made.0));
        let timed = fastest(spmm::catalog(), Some(order), &configs, time)?;
        return Ok((timed, Some(made)));
    }
    let stored = fastest(spmm::catalog(), None, &configs, &mut |trial| time(trial, None))?;
    let least_ms = stored.iter().next().map_or(0.0, |(_, seconds)| seconds * 1e3);
    let calls = problem.calls as f64;
    let may_pay = |o: &Order| calls * MOST_SAVED * least_ms >= o.cost_ms(&problem);
    let orders: Vec<_> = Order::NEAR_LINEAR.iter().copied().filter(may_pay).collect();
    if orders.is_empty() || problem.transpose_a {
        return Ok((stored, None));
    }
    let host = a.download()?;
    let mut best: Option<(f64, (RowOrder, OrderFacts))> = None;
    let trials = orders.into_iter().map(|o| Trial::by_rules(Algorithm::Segmented, Some(o)));
    let time: Time<'_, Trial<_>> = &mut |trial| {
        let Some(order) = trial.order else { return time(trial, None) };
        let made = order::made(on, order, &host.view(), problem.dtype)?;
        let seconds = time(trial, Some(&made.0))?;
        let saved = least_ms - seconds * 1e3;
        if saved > 0.0 && calls * saved < made.1.ms {
            return Err(unrepaid(&problem, order));
        }
        if best.as_ref().is_none_or(|(least, _)| seconds < *least) {
            best = Some((seconds, made));
        }
        Ok(seconds)
    };
    let ordered = autotune::timed(trials.collect::<Vec<_>>(), time);
    let all = match ordered {
        Ok(ordered) => stored.and(ordered),
        Err(Error::Unsupported { .. } | Error::OutOfMemory { .. }) => stored,
        Err(e) => return Err(e),
    };
    let order = all.best().order.and(best).map(|(_, made)| made);
    Ok((all, order))
}

/// An order that is faster but not by as much as making it took.
fn unrepaid(problem: &Problem, order: Order) -> Error {
    Error::Unsupported {
        problem: problem.to_string(),
        backend: format!("the row order {order}"),
        reason: format!("{} calls do not repay making it", problem.calls),
        nearest: "rows as stored".into(),
    }
}

/// The same for a vector.
pub(super) fn spmv<T: Scalar, I: Index, O: Index>(
    a: &DevicePattern<I, O>,
    problem: &Problem,
) -> Result<Timed<Trial<spmv::Config>>> {
    let (device, stream) = (a.device(), a.device().stream());
    let problem = problem.clone().semiring(Semiring::PlusTimes);
    let values = DeviceBuffer::<T>::zeros(device, a.nnz(), "values of a trial")?;
    let x = DeviceBuffer::<T>::zeros(device, problem.inner(), "x on the device")?;
    let mut y = DeviceBuffer::<T>::zeros(device, problem.output_rows(), "y on the device")?;
    let configs = |algorithm| spmv::Config::candidates(algorithm, &problem);
    fastest(spmv::catalog(), None, &configs, &mut |trial| {
        let options = spmv::Options { chooser: trial.chooser(), config: trial.config() };
        let mut plan = spmv::SpmvPlan::new(a, &problem, &options)?;
        median_seconds(stream, &mut || plan.execute(&values, &x, &mut y, Call::new()))
    })
}

/// The same for a dense product at the nonzeros.
pub(super) fn sddmm<T: Scalar, I: Index, O: Index>(
    pattern: &DevicePattern<I, O>,
    problem: &Problem,
) -> Result<Timed<Trial<sddmm::Config>>> {
    let (device, stream) = (pattern.device(), pattern.device().stream());
    let dense = |rows, layout| DeviceDense::<T>::zeros(device, rows, problem.columns, layout);
    let (x, y) = (dense(problem.rows, problem.layout_c)?, dense(problem.cols, problem.layout_b)?);
    let mut values = DeviceBuffer::<T>::zeros(device, pattern.nnz(), "values of a trial")?;
    let configs = |algorithm| sddmm::Config::candidates(algorithm, problem);
    fastest(sddmm::catalog(), None, &configs, &mut |trial| {
        let options = sddmm::Options { chooser: trial.chooser(), config: trial.config() };
        let mut plan = sddmm::SddmmPlan::new(pattern, problem, &options)?;
        median_seconds(stream, &mut || plan.execute(&x, &y, &mut values, ()))
    })
}

/// The same for two sparse matrices: the whole product, symbolic work included.
pub(super) fn spgemm<T: Scalar, I: Index, O: Index>(
    a: &DevicePattern<I, O>,
    b: &DevicePattern<I, O>,
    problem: &Problem,
) -> Result<Timed<Algorithm>> {
    let stream = a.device().stream();
    let problem = problem.clone().semiring(Semiring::PlusTimes);
    let device = a.device();
    let values = |nnz| DeviceBuffer::<T>::zeros(device, nnz, "values of a trial");
    let (of_a, of_b) = (values(a.nnz())?, values(b.nnz())?);
    let algorithms: Vec<_> = spgemm::catalog().iter().map(|e| e.algorithm).collect();
    let time: Time<'_, Algorithm> = &mut |algorithm| {
        let chooser = Chooser::Named(*algorithm);
        let options = spgemm::Options { chooser, ..spgemm::Options::default() };
        median_seconds(stream, &mut || {
            let mut plan = spgemm::SpgemmPlan::<T, I, O>::new(a, b, &problem, &options)?;
            plan.execute(&of_a, &of_b, Default::default()).map(drop)
        })
    };
    autotune::timed(algorithms, time)
}

/// Seconds of a candidate. Of one type, as `autotune::timed` sorts for each type that it is given.
type Time<'a, C> = &'a mut dyn FnMut(&C) -> Result<f64>;

/// Every algorithm of `catalog` with rows in `order`, and the other configurations of those that
/// come near the fastest.
fn fastest<C: Copy>(
    catalog: &[Entry],
    order: Option<Order>,
    configs: &dyn Fn(Algorithm) -> Vec<C>,
    time: Time<'_, Trial<C>>,
) -> Result<Timed<Trial<C>>> {
    let own: Vec<_> = catalog.iter().map(|e| Trial::by_rules(e.algorithm, order)).collect();
    let by_rules = autotune::timed(own, &mut *time)?;
    let least = by_rules.iter().map(|(_, seconds)| *seconds).fold(f64::INFINITY, f64::min);
    let near = by_rules.iter().filter(|(_, seconds)| *seconds <= NEAR * least);
    let others: Vec<_> = near
        .flat_map(|(trial, _)| {
            let algorithm = trial.algorithm;
            let configs = configs(algorithm).into_iter().enumerate();
            configs.map(move |config| Trial { algorithm, config: Some(config), order })
        })
        .collect();
    if others.is_empty() {
        return Ok(by_rules);
    }
    Ok(by_rules.and(autotune::timed(others, time)?))
}

fn median_seconds(stream: &Stream, run: &mut dyn FnMut() -> Result<()>) -> Result<f64> {
    run()?;
    let mut ms = [0.0; RUNS];
    for time in &mut ms {
        *time = timed(stream, &mut *run)?;
    }
    ms.sort_by(f64::total_cmp);
    Ok(ms[RUNS / 2] * 1e-3)
}
