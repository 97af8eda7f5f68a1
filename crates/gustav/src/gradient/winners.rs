//! Gradients of max and min: every element of C passes its gradient to the nonzero that won it.

use gustav_core::{
    DenseView, DenseViewMut, Error, Index, IndexSlice, Layout, PatternId, PatternRef, Problem,
    Result,
};
use gustav_cpu::CpuScalar;

use crate::Device;
use crate::cuda::{Call, DeviceBuffer, DeviceDense, DevicePattern, DeviceWinners};
use crate::operands::{
    DenseOperand, DenseResult, SparseValues, VectorResult, WinnersOperand, mixed,
};
use crate::plan::{SddmmCall, queued};

/// The plans, and where.
pub struct Winners<'a, T: CpuScalar> {
    inner: Inner<'a, T>,
    problem: Problem,
    device: String,
}

enum Inner<'a, T: CpuScalar> {
    Cpu(gustav_cpu::WinnerGradients<'a, T>),
    Cuda(Box<OnGpu<T>>),
}

struct OnGpu<T: CpuScalar> {
    device: gustav_cuda::Device,
    plan: gustav_cuda::WinnerGradients<T>,
    pattern: PatternId,
    nnz: usize,
}

/// Winners on a GPU, copied from host memory.
enum Copied {
    U32(DeviceBuffer<u32>),
    U64(DeviceBuffer<u64>),
}

impl Copied {
    fn new(device: &gustav_cuda::Device, winners: IndexSlice<'_>) -> Result<Self> {
        Ok(match winners {
            IndexSlice::U32(w) => Copied::U32(DeviceBuffer::from_slice(device, w, "winners")?),
            IndexSlice::U64(w) => Copied::U64(DeviceBuffer::from_slice(device, w, "winners")?),
        })
    }

    fn get(&self) -> DeviceWinners<'_> {
        match self {
            Copied::U32(winners) => winners.into(),
            Copied::U64(winners) => winners.into(),
        }
    }
}

impl<'a, T: CpuScalar> Winners<'a, T> {
    /// For operands in host memory.
    pub(super) fn of_host<I: Index, O: Index>(
        device: &Device,
        pattern: PatternRef<'a, I, O>,
        problem: &Problem,
    ) -> Result<Self> {
        if let Some(gpu) = device.gpu() {
            let on_device = DevicePattern::upload(&gpu.device, pattern.view())?;
            return Self::on_gpu(device, &on_device, problem);
        }
        let plan = gustav_cpu::WinnerGradients::new(pattern, problem, device.options())?;
        let (inner, problem) = (Inner::Cpu(plan), problem.clone());
        Ok(Winners { inner, problem, device: device.name().into() })
    }

    /// For operands in either memory.
    pub(super) fn on_gpu<I: Index, O: Index>(
        device: &Device,
        pattern: &DevicePattern<I, O>,
        problem: &Problem,
    ) -> Result<Self> {
        let on_gpu = OnGpu {
            device: pattern.device().clone(),
            plan: gustav_cuda::WinnerGradients::new(pattern, problem)?,
            pattern: pattern.id(),
            nnz: pattern.nnz(),
        };
        let (inner, problem) = (Inner::Cuda(Box::new(on_gpu)), problem.clone());
        Ok(Winners { inner, problem, device: device.name().into() })
    }

    pub(super) fn of_b(
        &mut self,
        values: SparseValues<'_, T>,
        g: DenseOperand<'_, T>,
        winners: WinnersOperand<'_>,
        to: DenseResult<'_, T>,
        call: Call<'_, T>,
    ) -> Result<()> {
        use {DenseOperand as G, DenseResult as R, SparseValues as V, WinnersOperand as W};
        match (&mut self.inner, values, g, winners, to) {
            (Inner::Cpu(plan), V::Host(values), G::Host(g), W::Host(winners), R::Host(to)) => {
                call.check_host(&self.problem)?;
                plan.of_b(values, g, winners, to, call.scale())
            }
            (Inner::Cuda(on), V::Device(v), G::Device(g), W::Device(winners), R::Device(to)) => {
                on.plan.of_b(v, g, winners, to, call)
            }
            (Inner::Cuda(on), V::Host(values), G::Host(g), W::Host(winners), R::Host(mut to)) => {
                let values = values.fit("A", on.pattern, on.nnz)?;
                let device = &on.device;
                let values = DeviceBuffer::from_slice(device, values, "values on the device")?;
                let g = DeviceDense::upload(device, &g)?;
                let winners = Copied::new(device, winners)?;
                // Packed: what is between lines may belong to others.
                let before = to.as_view().to_layout(to.layout())?;
                let mut on_gpu = DeviceDense::upload(device, &before.view())?;
                on.plan.of_b(&values, &g, winners.get(), &mut on_gpu, call)?;
                copy_lines(on_gpu.download()?.view(), &mut to);
                Ok(())
            }
            _ => mixed(&self.device),
        }
    }

    pub(super) fn of_values(
        &mut self,
        g: DenseOperand<'_, T>,
        b: DenseOperand<'_, T>,
        winners: WinnersOperand<'_>,
        to: VectorResult<'_, T>,
        call: SddmmCall<'_, T>,
    ) -> Result<()> {
        use {DenseOperand as D, VectorResult as R, WinnersOperand as W};
        let SddmmCall { scale, factors, stream } = call;
        if factors.is_some() {
            return Err(Error::Argument {
                name: "factors",
                found: "factors of a gradient of max or min".into(),
                expected: "none, and the gradient multiplied by them".into(),
            });
        }
        match (&mut self.inner, g, b, winners, to) {
            (Inner::Cpu(plan), D::Host(g), D::Host(b), W::Host(winners), R::Host(to)) => {
                if let Some(stream) = stream {
                    Call::<T>::new().on(stream).check_host(&self.problem)?;
                }
                plan.of_values(g, b, winners, to, scale)
            }
            (Inner::Cuda(on), D::Device(g), D::Device(b), W::Device(winners), R::Device(to)) => {
                on.plan.of_values(g, b, winners, to, queued(scale, stream))
            }
            (Inner::Cuda(on), D::Host(g), D::Host(b), W::Host(winners), R::Host(to)) => {
                let device = &on.device;
                let (g, b) = (DeviceDense::upload(device, &g)?, DeviceDense::upload(device, &b)?);
                let winners = Copied::new(device, winners)?;
                let mut values = DeviceBuffer::from_slice(device, to, "values on the device")?;
                let call = queued(scale, stream);
                on.plan.of_values(&g, &b, winners.get(), &mut values, call)?;
                values.read(to)
            }
            _ => mixed(&self.device),
        }
    }
}

/// The lines of a packed matrix, to one of the same shape and layout.
fn copy_lines<T: CpuScalar>(from: DenseView<'_, T>, to: &mut DenseViewMut<'_, T>) {
    let lines = match from.layout() {
        Layout::RowMajor => from.nrows(),
        Layout::ColumnMajor => from.ncols(),
    };
    (0..lines).for_each(|line| to.line_mut(line).copy_from_slice(from.line(line)));
}
