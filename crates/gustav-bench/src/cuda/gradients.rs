//! The gradients of an SpMM on a GPU, both in one execution after the caches were emptied.

use std::cell::RefCell;

use gustav::SpmmGradients;
use gustav_core::{DenseView, Error, Layout, Result, Scalar, SpmmRequest};
use gustav_cuda::{DeviceBuffer, DeviceCsr, DeviceDense, DevicePattern};
use gustav_report::quantile;

use super::Started;
use super::planning::planning_ms;
use crate::engine::{Engine, Outcome, Prepared, Task, our_version};
use crate::timing::Runner;
use crate::value::Value;

// Calls that plans are made for.
const CALLS: u64 = 1000;
// Executions of which the hot figure is the median.
const HOT_RUNS: usize = 15;

/// A, B and the gradient of C in a GPU's memory, and the gradients to be computed.
pub(crate) struct Stepped<T: Scalar> {
    a: DeviceCsr<T>,
    b: DeviceDense<T>,
    g: DeviceDense<T>,
    of_values: RefCell<DeviceBuffer<T>>,
    of_b: RefCell<DeviceDense<T>>,
    /// Milliseconds that they took to get there.
    pub transfer_ms: f64,
}

impl<T: Value> Stepped<T> {
    /// Copies the operands of `task` to the GPU.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::Device`].
    pub fn new(gpu: &Started, task: &Task<'_, T>) -> Result<Self> {
        let (m, k, n) = (task.a.nrows(), task.a.ncols(), task.columns);
        let (transfer_ms, made) = crate::engine::timed(|| {
            let b = DenseView::row_major(k, n, task.dense_b())?;
            let g = DenseView::row_major(m, n, task.dense_x())?;
            let of_values = DeviceBuffer::zeros(&gpu.device, task.a.nnz(), "gradient of values")?;
            let of_b = DeviceDense::zeros(&gpu.device, k, n, Layout::RowMajor)?;
            Ok::<_, Error>(Stepped {
                a: DeviceCsr::upload(&gpu.device, &task.a)?,
                b: DeviceDense::upload(&gpu.device, &b)?,
                g: DeviceDense::upload(&gpu.device, &g)?,
                of_values: RefCell::new(of_values),
                of_b: RefCell::new(of_b),
                transfer_ms: 0.0,
            })
        });
        Ok(Stepped { transfer_ms, ..made? })
    }
}

/// Ours.
pub(crate) struct SpmmGradientsEngine<'a, T: Value> {
    gpu: &'a Started,
    on: &'a Stepped<T>,
    plan: SpmmGradients<'static, T>,
    prepared: Prepared,
}

impl<'a, T: Value> SpmmGradientsEngine<'a, T> {
    /// The library's plan of both, by its rules.
    ///
    /// # Errors
    /// The library's own.
    pub fn ours(gpu: &'a Started, on: &'a Stepped<T>, task: Task<'a, T>) -> Result<Self> {
        let plan_of = |pattern: &DevicePattern| {
            let request: SpmmRequest<DevicePattern> = pattern.spmm(task.columns).calls(CALLS);
            SpmmGradients::plan(&request, &gpu.whole)
        };
        let plan_ms = planning_ms(gpu, on.a.pattern(), plan_of)?;
        let plan = plan_of(on.a.pattern())?;
        let words = plan.plans().map(|(of_b, of_values)| {
            let (of_b, of_values) = (&of_b.explain().choice, &of_values.explain().choice);
            let chosen = format!("{}, {}", of_b.algorithm.name(), of_values.algorithm.name());
            let reason =
                |of: &gustav::Choice<gustav::Config>| format!("{}: {}", of.reason, of.config);
            (chosen, format!("B: {}; values: {}", reason(of_b), reason(of_values)))
        });
        let (chosen, reason) = words.unzip();
        let prepared =
            Prepared { plan_ms, chosen, reason, versions: our_version(), ..Prepared::default() };
        Ok(SpmmGradientsEngine { gpu, on, plan, prepared })
    }

    fn execute(&mut self) -> Result<()> {
        let Stepped { a, b, g, of_values, of_b, .. } = self.on;
        self.plan.of_b(a, g, &mut *of_b.borrow_mut(), ())?;
        self.plan.of_values(g, b, &mut *of_values.borrow_mut(), ())
    }

    fn cold_ms(&mut self) -> Result<f64> {
        let (probe, stream) = (&self.gpu.probe, self.gpu.device.stream());
        // Several launches take longer to queue than one reading.
        probe.flush(stream)?;
        probe.cold_ms(stream, || self.execute())
    }

    /// Milliseconds of an execution right after another.
    fn again_ms(&mut self) -> Result<f64> {
        self.execute()?;
        gustav_cuda::probe::timed(self.gpu.device.stream(), || self.execute())
    }
}

impl<T: Value> Runner for SpmmGradientsEngine<'_, T> {
    fn run(&mut self, wake: usize, repeats: usize) -> Result<Vec<f64>> {
        for _ in 0..wake {
            self.execute()?;
        }
        (0..repeats).map(|_| self.cold_ms()).collect()
    }
}

impl<T: Value> Engine<T> for SpmmGradientsEngine<'_, T> {
    fn prepared(&self) -> &Prepared {
        &self.prepared
    }

    fn hot_ms(&mut self) -> Result<Option<f64>> {
        let times = (0..HOT_RUNS).map(|_| self.again_ms()).collect::<Result<Vec<_>>>()?;
        Ok(quantile(&times, 0.5))
    }

    fn result(&mut self, _: Option<&[usize]>) -> Result<Outcome<T>> {
        let stream = self.gpu.device.stream();
        // NaN in every floating-point type.
        self.on.of_values.borrow_mut().fill(0xff, stream)?;
        self.on.of_b.borrow_mut().data_mut().fill(0xff, stream)?;
        self.execute()?;
        let values = self.on.of_values.borrow().to_host()?.to_vec();
        let b = self.on.of_b.borrow().data().to_host()?.to_vec();
        Ok(Outcome::OfSpmm { values, b })
    }
}
