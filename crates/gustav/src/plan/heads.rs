//! What plans with heads have in common: biases, and copies of operands in host memory on a GPU.

use std::marker::PhantomData;

use gustav_core::{
    Batch, DenseView, DenseViewMut, HeadValues, Index, Layout, PatternId, Problem, Result, Scalar,
    Values, validate,
};
use gustav_cpu::CpuScalar;

use super::written;
use crate::cuda::{Call, DeviceBuffer, DeviceDense, DevicePattern, DeviceValues, Stream};
use crate::operands::{SparseValues, mixed};

/// Values of nonzeros and heads, wherever they are.
pub(super) struct Bias<'v, T> {
    pub values: SparseValues<'v, T>,
    pub order: HeadValues,
}

impl<'v, T> Bias<'v, T> {
    pub(super) fn on_host(self, device: &str) -> Result<(Values<'v, T>, HeadValues)> {
        match self.values {
            SparseValues::Host(values) => Ok((values, self.order)),
            SparseValues::Device(_) => mixed(device),
        }
    }

    pub(super) fn on_device(self, device: &str) -> Result<(DeviceValues<'v, T>, HeadValues)> {
        match self.values {
            SparseValues::Device(values) => Ok((values, self.order)),
            SparseValues::Host(_) => mixed(device),
        }
    }
}

/// Refuses a stream, which the CPU has not.
pub(super) fn host_only(stream: Option<&Stream>, problem: &Problem) -> Result<()> {
    match stream {
        Some(stream) => Call::<f32>::new().on(stream).check_host(problem),
        None => Ok(()),
    }
}

/// Brings operands in host memory to a GPU and results back.
pub(super) struct Staging<T> {
    device: gustav_cuda::Device,
    pattern: PatternId,
    values: PhantomData<fn(T)>,
}

/// A matrix of all heads that an operand has to be.
pub(super) struct Operand(Batch);

impl Operand {
    /// Refuses a matrix that does not fit, before it is moved.
    pub(super) fn check<T: Scalar>(&self, m: &DenseView<'_, T>) -> Result<()> {
        let shape = (m.nrows(), m.ncols());
        self.0.strides(shape, m.layout(), m.leading_dimension()).map(drop)
    }
}

impl<T: CpuScalar> Staging<T> {
    pub(super) fn new<I: Index, O: Index>(pattern: &DevicePattern<I, O>) -> Self {
        let (device, pattern) = (pattern.device().clone(), pattern.id());
        Staging { device, pattern, values: PhantomData }
    }

    /// An operand of `problem`, `rows` × `columns` for every head.
    pub(super) fn operand(
        &self,
        problem: &Problem,
        name: &'static str,
        rows: usize,
        columns: usize,
    ) -> Operand {
        let (op, count) = (problem.operation.name(), problem.batch);
        Operand(Batch { op, name, count, rows, columns, layout: Layout::RowMajor })
    }

    /// Refuses another number than one for every head and row.
    pub(super) fn check_rows(&self, problem: &Problem, found: usize) -> Result<()> {
        validate::length("lse", problem.batch.saturating_mul(problem.rows), found)
    }

    /// A copy of `values`, which belong to nonzeros and heads.
    pub(super) fn bias(
        &self,
        problem: &Problem,
        (values, order): (Values<'_, T>, HeadValues),
    ) -> Result<(DeviceBuffer<T>, HeadValues)> {
        let values = values.fit("bias", self.pattern, order.len(problem.batch, problem.nnz))?;
        Ok((DeviceBuffer::from_slice(&self.device, values, "bias on the device")?, order))
    }

    /// A copy of `values` in `held`.
    pub(super) fn vector<'k, A: Scalar>(
        &self,
        held: &'k mut Option<DeviceBuffer<A>>,
        values: &[A],
    ) -> Result<&'k mut DeviceBuffer<A>> {
        let on = self.of_rows(held, values.len())?;
        on.write(values)?;
        Ok(on)
    }

    /// The matrix in `held` with the elements of `m`.
    pub(super) fn written<'k>(
        &self,
        held: &'k mut Option<DeviceDense<T>>,
        m: &DenseView<'_, T>,
    ) -> Result<&'k mut DeviceDense<T>> {
        written(&self.device, held, m)
    }

    /// A packed matrix of the shape of `m`, to be written.
    pub(super) fn output<'k>(
        &self,
        held: &'k mut Option<DeviceDense<T>>,
        m: &DenseViewMut<'_, T>,
    ) -> Result<&'k mut DeviceDense<T>> {
        let shape = (m.nrows(), m.ncols());
        let found = held.take().filter(|d| (d.nrows(), d.ncols()) == shape);
        let made = match found {
            Some(matrix) => matrix,
            None => DeviceDense::zeros(&self.device, shape.0, shape.1, m.layout())?,
        };
        Ok(held.insert(made))
    }

    /// `len` values, to be written.
    pub(super) fn of_rows<'k, A: Scalar>(
        &self,
        held: &'k mut Option<DeviceBuffer<A>>,
        len: usize,
    ) -> Result<&'k mut DeviceBuffer<A>> {
        let made = match held.take().filter(|buffer| buffer.len() == len) {
            Some(buffer) => buffer,
            None => DeviceBuffer::zeros(&self.device, len, "values on the device")?,
        };
        Ok(held.insert(made))
    }

    /// Copies a result back.
    pub(super) fn returned(
        &self,
        from: &DeviceDense<T>,
        mut to: DenseViewMut<'_, T>,
    ) -> Result<()> {
        let found = from.download()?;
        let length = found.leading_dimension();
        if length > 0 {
            let lines = found.data().chunks_exact(length).enumerate();
            lines.for_each(|(line, values)| to.line_mut(line).copy_from_slice(values));
        }
        Ok(())
    }
}
