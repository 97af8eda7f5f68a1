//! An algorithm on a GPU, of Gustav or the vendor, timed by the GPU's clock.

use gustav_core::{Error, Layout, Operation, Problem, Result, Scalar, SpmmRequest};
use gustav_cuda::{Call, DeviceBuffer, DeviceDense, DevicePattern, SpmmPlan, SpmvPlan, spmm, spmv};
use gustav_plan::orders::Search;
use gustav_plan::predictor::Candidate;
use gustav_plan::{Algorithm, Chooser};
use gustav_report::{CUBLAS, CUSPARSE, Layouts, quantile};

use super::planning::{needs_more, planning_ms};
use super::resident::{Output, Set};
use super::rotating::{Rotating, Series};
use super::succession::{Chained, Overlap, READINGS, overlaps, reads_old_values, some_of};
use super::{FIRST_SPMV_OP, Resident, Started, configuration};
use crate::engine::{Engine, Outcome, Prepared, Task, Versions, our_version};
use crate::timing::Runner;
use crate::value::Value;

// Executions of which the time of converting values is the median.
const CONVERSIONS: usize = 15;
// The number of calls for which plans are made; 1 for `once`, and for `predictor` so many that any order pays.
const CALLS: u64 = 1000;
const MANY: u64 = 1_000_000_000;
// Elements of a column-major C that are copied to the host at a time.
const PANEL: usize = 1 << 21;

/// Plans on a GPU with their operands.
pub(crate) struct CudaEngine<'a, T: Value> {
    gpu: &'a Started,
    on: &'a Resident<T>,
    task: Task<'a, T>,
    /// One for each set of operands.
    plans: Vec<Plan<T>>,
    series: Series,
    /// Whether executions use values of A that were converted beforehand.
    converted: bool,
    prepared: Prepared,
}

enum Plan<T: Value> {
    Spmm(SpmmPlan<T>),
    Predicted(Box<gustav::SpmmPlan<'static, T>>),
    Spmv(SpmvPlan<T>),
}

/// What to plan.
#[derive(Clone, Copy)]
enum Wish {
    Ours(Chooser),
    /// An algorithm, possibly in a configuration or with a row order, which this search finds.
    Candidate(Candidate, Search),
    /// The vendor's algorithm of this index among the peers.
    Vendor(usize),
}

impl<'a, T: Value> CudaEngine<'a, T> {
    /// Gustav: a chooser by name, a candidate of predictors (`NAME#K@ORDER`, with `:exact` or `:K`
    /// after the order to select its search), or `once`, which is `auto` for a single call. The
    /// predictor plans for so many calls that any row order pays.
    ///
    /// # Errors
    /// The library's own.
    pub fn ours(
        gpu: &'a Started,
        on: &'a Resident<T>,
        task: Task<'a, T>,
        name: &str,
    ) -> Result<Self> {
        let (name, calls) = match name {
            "once" => ("auto", 1),
            "predictor" => (name, MANY),
            _ => (name, CALLS),
        };
        let wish = match name.contains(['#', '@']) {
            true => {
                let (name, search) = searched(name)?;
                Wish::Candidate(name.parse()?, search)
            }
            false => Wish::Ours(name.parse()?),
        };
        Self::prepare(gpu, on, task, wish, calls, our_version())
    }

    /// The vendor's algorithm, preprocessed.
    ///
    /// # Errors
    /// When cuSPARSE is missing or refuses.
    pub fn vendor(
        gpu: &'a Started,
        on: &'a Resident<T>,
        task: Task<'a, T>,
        name: &str,
    ) -> Result<Self> {
        let place = CUSPARSE.iter().position(|p| *p == name).unwrap_or(0);
        let versions = Versions::from([("cusparse".into(), gustav_cuda::cusparse::version()?)]);
        let mut engine = Self::prepare(gpu, on, task, Wish::Vendor(place), CALLS, versions)?;
        // SpMVOp plans for values of A, which stay; others convert none.
        engine.converted = true;
        // It preprocesses in its first execution.
        let mut firsts = Vec::new();
        while needs_more(&firsts) {
            let pattern = on.sets[0].a.pattern();
            engine.plans[0] = plan(gpu, on, pattern, &engine.task, Wish::Vendor(place), CALLS)?;
            engine.wait()?;
            let (first, done) =
                crate::engine::timed(|| engine.execute(0).and_then(|()| engine.wait()));
            done?;
            firsts.push(first);
        }
        let first = quantile(&firsts, 0.5).unwrap_or(0.0);
        let rest = engine.repeated_ms()?.unwrap_or(0.0);
        let plan_ms = engine.prepared.plan_ms.unwrap_or(0.0) + first - rest;
        engine.prepared.plan_ms = Some(plan_ms.max(0.0));
        Ok(engine)
    }

    /// cuBLAS, with A converted to dense beforehand: the time for an A that is dense.
    ///
    /// # Errors
    /// When cuBLAS is missing, or memory for a dense A; [`Error::Unsupported`] for column-major
    /// operands, which would be transposed within the timing.
    pub fn cublas(gpu: &'a Started, on: &'a Resident<T>, task: Task<'a, T>) -> Result<Self> {
        if task.layouts != Layouts::RowMajor {
            return Err(Error::Unsupported {
                problem: task.layouts.name().into(),
                backend: format!("peer {CUBLAS}"),
                reason: "only row-major products are measured".into(),
                nearest: Layouts::RowMajor.name().into(),
            });
        }
        let versions = Versions::from([("cublas".into(), gustav_cuda::cublas::version()?)]);
        let wish = Wish::Ours(Chooser::Named(Algorithm::Dense));
        let mut engine = Self::prepare(gpu, on, task, wish, CALLS, versions)?;
        // The conversion of A counts as planning.
        for set in 0..on.sets.len() {
            engine.execute(set)?;
        }
        let convert_ms = engine.convert_ms()?.unwrap_or(0.0);
        engine.converted = true;
        let prepared = &mut engine.prepared;
        prepared.plan_ms = prepared.plan_ms.map(|ms| ms + convert_ms);
        (prepared.chosen, prepared.reason) = (None, None);
        Ok(engine)
    }

    fn prepare(
        gpu: &'a Started,
        on: &'a Resident<T>,
        task: Task<'a, T>,
        wish: Wish,
        calls: u64,
        versions: Versions,
    ) -> Result<Self> {
        let of = |pattern: &DevicePattern| plan(gpu, on, pattern, &task, wish, calls);
        let plan_ms = match gpu.time_plans {
            true => planning_ms(gpu, on.sets[0].a.pattern(), of)?,
            false => None,
        };
        let plans: Vec<_> = on.sets.iter().map(|set| of(set.a.pattern())).collect::<Result<_>>()?;
        let (order_ms, features_ms) = match wish {
            Wish::Candidate(Candidate { order: Some(order), .. }, search) => {
                let order_ms = on.order(order, search, &task.a)?.1;
                (order_ms, Some(on.features_ms(&task.a)?))
            }
            _ => (0.0, None),
        };
        let (algorithm, reason) = match &plans[0] {
            Plan::Spmm(p) => {
                let c = p.choice();
                (c.algorithm, format!("{}: {:?}", c.reason, c.config))
            }
            Plan::Predicted(p) => {
                let c = &p.explain().choice;
                (c.algorithm, format!("{}: {}", c.reason, c.config))
            }
            Plan::Spmv(p) => {
                let c = p.choice();
                (c.algorithm, format!("{}: {:?}", c.reason, c.config))
            }
        };
        let prepared = Prepared {
            plan_ms: plan_ms.map(|ms| ms + order_ms),
            chosen: Some(algorithm.name().into()),
            reason: Some(reason),
            products: None,
            versions,
            features_ms,
        };
        let series = Series::default();
        let mut engine = CudaEngine { gpu, on, task, plans, series, converted: false, prepared };
        // First executions may preprocess.
        for set in 1..on.sets.len() {
            engine.execute(set)?;
        }
        Ok(engine)
    }

    fn wait(&self) -> Result<()> {
        self.gpu.device.stream().synchronize()
    }

    /// Queues the product of A of a set with `b`, by its plan.
    fn multiply(&mut self, set: usize, b: &DeviceDense<T>, c: &mut Output<T>) -> Result<()> {
        let a = &self.on.sets[set].a;
        let call = Call::new().reuse_conversion(self.converted);
        match (&mut self.plans[set], c) {
            (Plan::Spmm(plan), Output::Matrix(c)) => plan.execute(a, b, c, call),
            (Plan::Predicted(plan), Output::Matrix(c)) => plan.execute(a, b, c, call),
            (Plan::Spmv(plan), Output::Vector(y)) => plan.execute(a, b.data(), y, call),
            _ => Err(Error::Argument {
                name: "operands",
                found: format!("those of {}", self.task.operation.name()),
                expected: "those that the plan was made for".into(),
            }),
        }
    }

    /// Whether a product of the second set waits for one of the first, which writes its B where `overlap` says.
    fn waits_for(&mut self, overlap: Overlap) -> Result<bool> {
        let (gpu, stream) = (self.gpu, self.gpu.device.stream());
        let (first, second) = (&self.on.sets[0], &self.on.sets[1]);
        let Chained { mut c, mut b } = Chained::new(gpu, &self.task, overlap)?;
        b.data_mut().copy_from(second.b.data(), stream)?;
        // NaN in every floating-point type.
        c.fill(0xff, stream)?;
        // The second product is queued before the first begins.
        for _ in 0..READINGS {
            gpu.probe.flush(stream)?;
        }
        self.multiply(0, &first.b, &mut c)?;
        self.queue_separator()?;
        let result = &mut *second.c.borrow_mut();
        self.multiply(1, &b, result)?;
        // This waits for both.
        let found = some_of(result.data())?;
        self.multiply(1, &b, result)?;
        Ok(!reads_old_values(&found, &some_of(result.data())?))
    }

    /// One more execution on `set` from a poisoned C, and its `rows` (all when `None`).
    fn result_of(&mut self, set: usize, rows: Option<&[usize]>) -> Result<Outcome<T>> {
        // NaN in every floating-point type.
        let c = &self.on.sets[set].c;
        c.borrow_mut().fill(0xff, self.gpu.device.stream())?;
        self.execute(set)?;
        let c = c.borrow();
        let values = match (&*c, rows) {
            (Output::Matrix(c), Some(rows)) => rows_of(c, rows)?,
            (Output::Matrix(c), None) => c.download()?.to_layout(Layout::RowMajor)?.data().to_vec(),
            (Output::Vector(y), Some(rows)) => elements_of(y, rows)?,
            (Output::Vector(y), None) => y.to_host()?.to_vec(),
        };
        Ok(Outcome::Dense(values))
    }
}

/// The name of a candidate without the search for its order, and that search.
fn searched(name: &str) -> Result<(&str, Search)> {
    let Some((candidate, search)) = name.split_once(':') else { return Ok((name, Search::Auto)) };
    let search = match (search, search.parse()) {
        ("exact", _) => Search::Exact,
        (_, Ok(bound)) => Search::Bounded(bound),
        _ => {
            return Err(Error::Argument {
                name: "search of a row order",
                found: name.into(),
                expected: "NAME@ORDER:exact, or NAME@ORDER:K with K candidates a neighbourhood"
                    .into(),
            });
        }
    };
    Ok((candidate, search))
}

fn plan<T: Value>(
    gpu: &Started,
    on: &Resident<T>,
    pattern: &DevicePattern,
    task: &Task<'_, T>,
    wish: Wish,
    calls: u64,
) -> Result<Plan<T>> {
    if task.operation == Operation::Spmv {
        let problem = Problem::spmv(&task.a).calls(calls);
        let options = match wish {
            Wish::Ours(chooser) => spmv::Options { chooser, ..spmv::Options::default() },
            Wish::Candidate(candidate, _) => {
                let known = candidate.algorithm.map(|a| spmv::Config::candidates(a, &problem));
                let find = |k| configuration(known.into_iter().flatten(), k, candidate);
                let config = candidate.config.map(find).transpose()?;
                spmv::Options { chooser: candidate.chooser(), config }
            }
            Wish::Vendor(place) => {
                let config = match place.checked_sub(FIRST_SPMV_OP) {
                    Some(place) => spmv::vendor::Config::OP[place],
                    None => spmv::vendor::Config::ALL[place],
                };
                let config = spmv::Config::Vendor(config);
                spmv::Options { config: Some(config), ..spmv::Options::default() }
            }
        };
        return Ok(Plan::Spmv(SpmvPlan::new(pattern, &problem, &options)?));
    }
    // The values of benchmarks are finite.
    let (b, c) = (task.layouts.b(), task.layouts.c());
    let problem = Problem::spmm(&task.a).columns(task.columns).calls(calls);
    let problem = problem.layouts(b, c).finite(true);
    if let Wish::Ours(Chooser::Predictor) = wish {
        let device = gpu.whole.clone().choose(Chooser::Predictor);
        let request = SpmmRequest { pattern: pattern.clone(), problem };
        return Ok(Plan::Predicted(Box::new(request.plan(&device)?)));
    }
    let order = match wish {
        Wish::Candidate(Candidate { order: Some(order), .. }, search) => {
            Some(on.order(order, search, &task.a)?)
        }
        _ => None,
    };
    let order = order.as_ref().map(|made| &made.0);
    let options = match wish {
        Wish::Ours(chooser) => spmm::Options { chooser, ..spmm::Options::default() },
        Wish::Candidate(candidate, _) => {
            let known = candidate.algorithm.map(|a| spmm::Config::candidates(a, &problem));
            let find = |k| configuration(known.into_iter().flatten(), k, candidate);
            let config = candidate.config.map(find).transpose()?;
            spmm::Options { chooser: candidate.chooser(), config, order }
        }
        Wish::Vendor(place) => {
            let config = spmm::Config::Vendor(spmm::vendor::Config::ALL[place]);
            spmm::Options { config: Some(config), ..spmm::Options::default() }
        }
    };
    Ok(Plan::Spmm(SpmmPlan::new(pattern, &problem, &options)?))
}

impl<'a, T: Value> Rotating<'a> for CudaEngine<'a, T> {
    fn gpu(&self) -> &'a Started {
        self.gpu
    }

    fn sets(&self) -> usize {
        self.plans.len()
    }

    fn series(&mut self) -> &mut Series {
        &mut self.series
    }

    fn execute(&mut self, set: usize) -> Result<()> {
        let Set { b, c, .. } = &self.on.sets[set];
        self.multiply(set, b, &mut c.borrow_mut())
    }
}

impl<T: Value> Runner for CudaEngine<'_, T> {
    fn run(&mut self, wake: usize, repeats: usize) -> Result<Vec<f64>> {
        self.round(wake, repeats)
    }

    fn least_repeats(&self, ms: f64) -> usize {
        self.executions_of_round(ms)
    }
}

impl<T: Value> Engine<T> for CudaEngine<'_, T> {
    fn prepared(&self) -> &Prepared {
        &self.prepared
    }

    fn hot_ms(&mut self) -> Result<Option<f64>> {
        self.repeated_ms()
    }

    fn single_ms(&mut self) -> Result<Option<f64>> {
        self.flushed_ms()
    }

    fn waits(&mut self) -> Result<bool> {
        if self.on.sets.len() == 1 {
            return Ok(true);
        }
        for overlap in overlaps(&self.task.a) {
            if !self.waits_for(overlap)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn separate(&mut self) {
        self.series.separated = true;
    }

    fn overlapping_ms(&mut self, repeats: usize) -> Result<Option<f64>> {
        self.unseparated_ms(repeats)
    }

    fn convert_ms(&mut self) -> Result<Option<f64>> {
        let (probe, stream) = (&self.gpu.probe, self.gpu.device.stream());
        let Plan::Spmm(plan) = &mut self.plans[0] else { return Ok(None) };
        if self.converted || !plan.converts() {
            return Ok(None);
        }
        let mut time = || probe.cold_ms(stream, || plan.convert(&self.on.sets[0].a, Call::new()));
        let times: Vec<f64> = (0..CONVERSIONS).map(|_| time()).collect::<Result<_>>()?;
        Ok(quantile(&times, 0.5))
    }

    fn result(&mut self, rows: Option<&[usize]>) -> Result<Outcome<T>> {
        self.result_of(0, rows)
    }

    fn last_result(&mut self, rows: Option<&[usize]>) -> Result<Option<Outcome<T>>> {
        match self.plans.len() - 1 {
            0 => Ok(None),
            last => self.result_of(last, rows).map(Some),
        }
    }
}

/// Rows of `c`, one after another, without copying the rest to the host.
fn rows_of<T: Scalar>(c: &DeviceDense<T>, rows: &[usize]) -> Result<Vec<T>> {
    let (m, n, ld) = (c.nrows(), c.ncols(), c.leading_dimension());
    let mut values = vec![<T as Scalar>::zero(); rows.len() * n];
    if values.is_empty() {
        return Ok(values);
    }
    if c.layout() == Layout::RowMajor {
        for (row, to) in rows.iter().zip(values.chunks_exact_mut(n)) {
            c.data().read_at(row * ld, to)?;
        }
        return Ok(values);
    }
    let panel = (PANEL / ld).clamp(1, n);
    let mut columns = vec![<T as Scalar>::zero(); (panel - 1) * ld + m];
    for first in (0..n).step_by(panel) {
        let count = panel.min(n - first);
        let columns = &mut columns[..(count - 1) * ld + m];
        c.data().read_at(first * ld, columns)?;
        for (row, to) in rows.iter().zip(values.chunks_exact_mut(n)) {
            for (j, v) in to[first..first + count].iter_mut().enumerate() {
                *v = columns[j * ld + row];
            }
        }
    }
    Ok(values)
}

/// Elements of `y`, without copying the rest to the host.
fn elements_of<T: Scalar>(y: &DeviceBuffer<T>, rows: &[usize]) -> Result<Vec<T>> {
    let mut values = vec![<T as Scalar>::zero(); rows.len()];
    for (row, to) in rows.iter().zip(values.chunks_exact_mut(1)) {
        y.read_at(*row, to)?;
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_stands_behind_its_order() {
        for (name, candidate, search) in [
            ("segmented@min-hash", "segmented@min-hash", Search::Auto),
            ("segmented#3@lpt:exact", "segmented#3@lpt", Search::Exact),
            ("segmented@lpt:8", "segmented@lpt", Search::Bounded(8)),
        ] {
            assert_eq!(searched(name).expect("a name"), (candidate, search));
        }
        assert!(searched("segmented@lpt:all").is_err());
    }
}
