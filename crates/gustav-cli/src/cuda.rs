//! Products on a GPU: operands move there once, executions are timed by the GPU's clock.

use std::ops::ControlFlow;

use gustav::cuda::spgemm::tiled::{Progress, Tiling};
use gustav::cuda::{
    Call, DeviceBuffer, DeviceCsr, DeviceDense, Probe, SpgemmCall, SpgemmPlan, Stream,
};
use gustav::{
    Algorithm, Chooser, CpuScalar, Csr, CsrView, Dense, DenseView, Device, Explanation, Index,
    Operation, PatternRef, Problem, Scalar, SpgemmRequest, SpmmPlan, SpmmRequest, SpmvPlan,
    SpmvRequest,
};
use indicatif::ProgressBar;

use crate::args::Printing;
use crate::failure::{Failure, Result};
use crate::interrupt::Interrupt;
use crate::measure::{self, Timing};
use crate::output;

/// Operands in a GPU's memory.
pub struct Resident<T: Scalar, I: Index, O: Index> {
    a: DeviceCsr<T, I, O>,
    b: DeviceDense<T>,
    before: Option<DeviceDense<T>>,
    c: Product<T>,
    stream: Stream,
    probe: Probe,
    upload_ms: f64,
}

/// C on the GPU: a matrix, or a vector.
enum Product<T: Scalar> {
    Matrix(DeviceDense<T>),
    Vector(DeviceBuffer<T>),
}

impl<T: Scalar> Product<T> {
    fn new(device: &Device, problem: &Problem) -> Result<Self> {
        let rows = problem.output_rows();
        Ok(match problem.operation {
            Operation::Spmv => {
                Product::Vector(DeviceBuffer::zeros(device.cuda_device()?, rows, "y on the GPU")?)
            }
            _ => Product::Matrix(device.zeros(rows, problem.columns, problem.layout_c)?),
        })
    }

    fn fill(&mut self, byte: u8, stream: &Stream) -> Result<()> {
        match self {
            Product::Matrix(c) => c.data_mut().fill(byte, stream)?,
            Product::Vector(y) => y.fill(byte, stream)?,
        }
        Ok(())
    }

    fn copy_from(&mut self, from: &DeviceBuffer<T>, stream: &Stream) -> Result<()> {
        match self {
            Product::Matrix(c) => c.data_mut().copy_from(from, stream)?,
            Product::Vector(y) => y.copy_from(from, stream)?,
        }
        Ok(())
    }

    fn read(&self, values: &mut [T]) -> gustav::Result<()> {
        match self {
            Product::Matrix(c) => c.data().read(values),
            Product::Vector(y) => y.read(values),
        }
    }
}

/// The result of running one algorithm.
pub struct Run {
    /// The plan's explanation.
    pub explanation: Explanation,
    /// Milliseconds of planning, with kernels compiled beforehand.
    pub plan_ms: f64,
    /// Milliseconds of copying the operands to the GPU and C back, not part of execution.
    pub transfer_ms: f64,
    /// Milliseconds of executing, each time with cold caches.
    pub timing: Timing,
}

enum Plan<T: CpuScalar> {
    Spmm(SpmmPlan<'static, T>),
    Spmv(SpmvPlan<'static, T>),
}

impl<T: CpuScalar> Plan<T> {
    fn new<I: Index, O: Index>(
        device: &Device,
        a: &DeviceCsr<T, I, O>,
        problem: &Problem,
    ) -> Result<Self> {
        let (pattern, problem) = (a.pattern().clone(), problem.clone());
        Ok(match problem.operation {
            Operation::Spmv => Plan::Spmv(SpmvRequest { pattern, problem }.plan(device)?),
            _ => Plan::Spmm(SpmmRequest { pattern, problem }.plan(device)?),
        })
    }
}

impl<T: CpuScalar, I: Index, O: Index> Resident<T, I, O> {
    /// Copies the operands of `problem` to `device`, vectors as matrices of one column; `before` is
    /// C before the product, if it is read.
    ///
    /// # Errors
    /// When the GPU lacks the memory.
    pub fn new(
        device: &Device,
        problem: &Problem,
        a: CsrView<'_, T, I, O>,
        b: DenseView<'_, T>,
        before: Option<DenseView<'_, T>>,
    ) -> Result<Self> {
        let move_all =
            || Ok((device.upload(a)?, device.upload(b)?, before.map(|m| device.upload(m))));
        let ((a, b, before), upload_ms) = measure::once(move_all)?;
        Ok(Resident {
            a,
            b,
            before: before.transpose()?,
            c: Product::new(device, problem)?,
            stream: device.stream()?,
            probe: Probe::new(device.cuda_device()?)?,
            upload_ms,
        })
    }

    /// Plans with the chooser of `device`, multiplies into a poisoned C, and copies it to `c`.
    ///
    /// # Errors
    /// When the algorithm refuses `problem` or the GPU fails.
    pub fn run(
        &mut self,
        device: &Device,
        problem: &Problem,
        (alpha, beta): (T::Accum, T::Accum),
        repeat: Option<usize>,
        c: &mut Dense<T>,
    ) -> Result<Run> {
        let Resident { a, b, before, c: product, stream, probe, upload_ms } = self;
        // Kernels are compiled once per machine, so compilation is not part of planning.
        Plan::new(device, a, problem)?;
        let (mut plan, plan_ms) = measure::once(|| Plan::new(device, a, problem))?;
        // NaN in every floating-point type, which β = 0 must not read.
        product.fill(0xff, stream)?;
        let mut execute = || -> Result<f64> {
            if let Some(before) = before {
                product.copy_from(before.data(), stream)?;
            }
            let call = Call::new().alpha(alpha).beta(beta).on(stream);
            let run = || match (&mut plan, &mut *product) {
                (Plan::Spmm(plan), Product::Matrix(c)) => plan.execute(&*a, &*b, c, call),
                (Plan::Spmv(plan), Product::Vector(y)) => plan.execute(&*a, b.data(), y, call),
                // Not reached: the product has the kind of its plan.
                _ => Ok(()),
            };
            Ok(probe.cold_ms(stream, run)?)
        };
        // The first execution may allocate or convert what later ones reuse.
        execute()?;
        let timing = measure::repeat(repeat, &mut execute)?;
        let (read, download_ms) = measure::once(|| Ok(product.read(c.data_mut())))?;
        read?;
        let explanation = match plan {
            Plan::Spmm(plan) => plan.explain().clone(),
            Plan::Spmv(plan) => plan.explain().clone(),
        };
        Ok(Run { explanation, plan_ms, transfer_ms: *upload_ms + download_ms, timing })
    }
}

/// Multiplies matrices in host memory in tiles that fit in `memory` bytes of `device` (all free
/// memory unless given), with a progress bar. Ctrl-C stops it after a tile. Copying tiles is part
/// of an execution.
///
/// # Errors
/// When the algorithm refuses `problem`, not even one row times one column fits, or the GPU fails.
pub fn in_tiles<T: CpuScalar, I: Index, O: Index>(
    device: &Device,
    (a, alpha, b): (&Csr<T, I, O>, T::Accum, &Csr<T, I, O>),
    problem: &Problem,
    (memory, repeat): (Option<usize>, Option<usize>),
    printing: Printing,
) -> Result<(Run, Csr<T, I, O>)> {
    let device = device.clone().choose(Chooser::Named(Algorithm::Tiled));
    // Memory freed before counts as free only once the stream has reached the deallocation.
    device.cuda_device()?.stream().synchronize()?;
    let plan = || {
        let (a, b, mask) = (PatternRef::from(a), PatternRef::from(b), None);
        Ok(SpgemmRequest { a, b, mask, problem: problem.clone() }.plan::<T, _>(&device)?)
    };
    let (plan, plan_ms) = measure::once(plan)?;
    let mut product = None;
    let interrupt = Interrupt::new();
    let timing = measure::repeat(repeat, &mut || {
        // Free the previous product first.
        product = None;
        let bar = output::bar(printing, "multiplying tiles");
        let mut watch = |progress| draw(&bar, &interrupt, progress);
        let tiling = Tiling { memory, progress: Some(&mut watch) };
        let run = || Ok(device.spgemm_tiled(a, alpha, b, problem, tiling)?);
        let done = measure::once(run);
        bar.finish_and_clear();
        let (c, ms) = done?;
        if interrupt.is_asked() {
            return Err(Failure::Interrupted);
        }
        product = Some(c);
        Ok(ms)
    })?;
    let c = product.ok_or_else(|| Failure::Request("no product was computed".into()))?;
    Ok((Run { explanation: plan.explain().clone(), plan_ms, transfer_ms: 0.0, timing }, c))
}

/// Updates the progress bar of a product; stops it after Ctrl-C.
fn draw(bar: &ProgressBar, interrupt: &Interrupt, progress: Progress) -> ControlFlow<()> {
    bar.set_length(progress.tiles as u64);
    bar.set_position(progress.done as u64);
    if interrupt.is_asked() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// Two sparse operands in a GPU's memory.
pub struct Pair<T: Scalar, I: Index, O: Index> {
    a: DeviceCsr<T, I, O>,
    b: DeviceCsr<T, I, O>,
    mask: Option<DeviceCsr<T, I, O>>,
    stream: Stream,
    upload_ms: f64,
}

impl<T: Scalar, I: Index, O: Index> Pair<T, I, O> {
    /// Copies `a`, `b` and a mask to `device`.
    ///
    /// # Errors
    /// When the GPU lacks the memory.
    pub fn new(
        device: &Device,
        a: &Csr<T, I, O>,
        b: &Csr<T, I, O>,
        mask: Option<&Csr<T, I, O>>,
    ) -> Result<Self> {
        let stream = device.stream()?;
        let ((a, b, mask), upload_ms) = measure::once(|| {
            let mask = mask.map(|mask| device.upload(mask)).transpose()?;
            Ok((device.upload(a)?, device.upload(b)?, mask))
        })?;
        Ok(Pair { a, b, mask, stream, upload_ms })
    }

    /// Plans with the chooser of `device`, multiplies, and copies C back. If C is computed in
    /// parts, there is a progress bar, and Ctrl-C stops it after a part.
    ///
    /// # Errors
    /// When the algorithm refuses `problem` or the GPU fails.
    pub fn run(
        &self,
        device: &Device,
        problem: &Problem,
        alpha: T::Accum,
        repeat: Option<usize>,
        printing: Printing,
    ) -> Result<(Run, Csr<T, I, O>)> {
        let Pair { a, b, mask, stream, upload_ms } = self;
        let plan = || {
            let pattern = |m: &DeviceCsr<T, I, O>| m.pattern().clone();
            let (a, b, mask) = (pattern(a), pattern(b), mask.as_ref().map(pattern));
            Ok(SpgemmRequest { a, b, mask, problem: problem.clone() }.plan(device)?)
        };
        // Kernels are compiled once per machine, so compilation is not part of planning.
        let _: SpgemmPlan<T, I, O> = plan()?;
        let (mut plan, plan_ms): (SpgemmPlan<T, I, O>, _) = measure::once(plan)?;
        let mut product = None;
        let interrupt = Interrupt::new();
        let timing = measure::repeat(repeat, &mut || {
            // Free the previous product first.
            product = None;
            stream.synchronize()?;
            let bar = output::bar(printing, "multiplying in parts");
            let mut watch = |progress| draw(&bar, &interrupt, progress);
            let done = measure::once(|| {
                let call = SpgemmCall::new().alpha(alpha).on(stream).watch(&mut watch);
                let c = plan.execute(a, b, call)?;
                stream.synchronize()?;
                Ok(c)
            });
            bar.finish_and_clear();
            let (c, ms) = done?;
            if interrupt.is_asked() {
                return Err(Failure::Interrupted);
            }
            product = Some(c);
            Ok(ms)
        })?;
        let c = match product {
            Some(c) => c,
            None => plan.execute(a, b, SpgemmCall::new().alpha(alpha).on(stream))?,
        };
        let (c, download_ms) = measure::once(|| Ok(c.download()?))?;
        let explanation = plan.explain().clone();
        Ok((Run { explanation, plan_ms, transfer_ms: upload_ms + download_ms, timing }, c))
    }
}
