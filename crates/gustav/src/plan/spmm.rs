//! The plan of C = scale(α, op(A)·B) ⊕ scale(β, C).

use gustav_core::{
    CsrView, Dense, DenseView, DenseViewMut, Index, PatternRef, Plans, Problem, Result,
    SpmmRequest, WinnersMut,
};
use gustav_cpu::{CpuScalar, SpmmCall};

use super::{accessors, autotuned, copy_of, explained, median_seconds, options};
use crate::cuda::{Call, DeviceBuffer, DeviceDense, DevicePattern, plan_spmm};
use crate::explain::{Report, facts};
use crate::operands::{DenseOperand, DenseResult, IntoOperand, SparseValues, WinnersResult, mixed};
use crate::{Device, Explanation};

/// A plan for sparse × dense products with one pattern of A, made by
/// `pattern.spmm(columns).plan(&device)`.
///
/// A plan on the CPU takes operands in host memory. A plan on a GPU takes them in the GPU's memory,
/// where executions are queued, or in host memory: then every execution moves them to the GPU and
/// the product back, and has ended when it returns.
pub struct SpmmPlan<'a, T: CpuScalar> {
    inner: Inner<'a, T>,
    explanation: Explanation,
}

enum Inner<'a, T: CpuScalar> {
    Cpu(gustav_cpu::SpmmPlan<'a, T>),
    Cuda(Box<Staged<T>>),
}

/// A plan on a GPU with copies of operands in host memory, made when there are such.
struct Staged<T: CpuScalar> {
    device: gustav_cuda::Device,
    plan: gustav_cuda::SpmmPlan<T>,
    pattern: gustav_core::PatternId,
    nnz: usize,
    values: Option<DeviceBuffer<T>>,
    b: Option<DeviceDense<T>>,
    c: Option<DeviceDense<T>>,
}

impl<T: CpuScalar> SpmmPlan<'_, T> {
    accessors!();

    /// C = scale(α, op(A)·B) ⊕ scale(β, C) over the plan's semiring, with α its one and β its zero,
    /// which leaves C unread, unless `call` says otherwise: a [`Call`], a [`Scale`](crate::Scale)
    /// or `()`. `values` are those of A: a matrix of the plan's pattern, or a slice or buffer in
    /// the order of its nonzeros. `b` and `c` are [`Dense`](crate::Dense), views, or what else
    /// [`IntoOperand`] lists, in the layouts of the plan.
    ///
    /// # Errors
    /// [`Error::Pattern`](crate::Error::Pattern) for values of another pattern,
    /// [`Error::Length`](crate::Error::Length) for another number of them,
    /// [`Error::Shape`](crate::Error::Shape) when B or C does not fit,
    /// [`Error::Argument`](crate::Error::Argument) for operands in memory of different kinds, and
    /// on a GPU what its driver refuses. With max and min, also
    /// [`Error::Argument`](crate::Error::Argument) for a β that is not zero.
    pub fn execute<'v>(
        &mut self,
        values: impl Into<SparseValues<'v, T>>,
        b: impl IntoOperand<DenseOperand<'v, T>>,
        c: impl IntoOperand<DenseResult<'v, T>>,
        call: impl Into<Call<'v, T>>,
    ) -> Result<()> {
        self.run(values.into(), b.into_operand()?, c.into_operand()?, None, call.into())
    }

    /// The same for a plan of max or min ([`SpmmRequest::reduce`](crate::SpmmRequest::reduce)), and
    /// to `winners`, for every element of C, the position among the values of A of the nonzero that
    /// won it: row-major and packed whatever the layout of C, as slices, `Vec` or [`DeviceBuffer`]
    /// of `u32`, for fewer than 2³² − 1 nonzeros, or `u64`. NaN wins, of equal products the first,
    /// and an element of an empty row has the largest number of the type.
    /// [`SpmmGradients`](crate::SpmmGradients) takes them.
    ///
    /// ```
    /// use gustav::{Csr, Dense, Device, Layout, Reduce};
    ///
    /// let a = Csr::<f32>::new(3, 2, vec![0, 2, 2, 3], vec![0, 1, 1], vec![1.0, 2.0, -1.0])?;
    /// let b = Dense::from_row_major(2, 2, vec![3.0, 5.0, 2.0, 1.0])?;
    /// let mut c = Dense::zeros(3, 2, Layout::RowMajor)?;
    /// let mut winners = vec![0u32; 6];
    ///
    /// let mut plan = a.pattern().spmm(2).reduce(Reduce::Max).plan(&Device::cpu())?;
    /// plan.execute_with_winners(&a, &b, &mut c, &mut winners, ())?;
    /// assert_eq!(c.data(), [4.0, 5.0, 0.0, 0.0, -2.0, -1.0]);
    /// assert_eq!(winners, [1, 0, u32::MAX, u32::MAX, 2, 2]);
    /// # Ok::<(), gustav::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`SpmmPlan::execute`], and [`Error::Argument`](crate::Error::Argument) for a plan of
    /// another reduction and for 32 bits that do not suffice,
    /// [`Error::Length`](crate::Error::Length) for another number of winners than C has elements.
    pub fn execute_with_winners<'v>(
        &mut self,
        values: impl Into<SparseValues<'v, T>>,
        b: impl IntoOperand<DenseOperand<'v, T>>,
        c: impl IntoOperand<DenseResult<'v, T>>,
        winners: impl Into<WinnersResult<'v>>,
        call: impl Into<Call<'v, T>>,
    ) -> Result<()> {
        let (b, c) = (b.into_operand()?, c.into_operand()?);
        self.run(values.into(), b, c, Some(winners.into()), call.into())
    }

    fn run<'v>(
        &mut self,
        values: SparseValues<'v, T>,
        b: DenseOperand<'v, T>,
        c: DenseResult<'v, T>,
        winners: Option<WinnersResult<'v>>,
        call: Call<'v, T>,
    ) -> Result<()> {
        use {DenseOperand as B, DenseResult as C, SparseValues as V, WinnersResult as W};
        let problem = &self.explanation.problem;
        match (&mut self.inner, values, b, c, winners) {
            (
                Inner::Cpu(plan),
                V::Host(values),
                B::Host(b),
                C::Host(c),
                winners @ (None | Some(W::Host(_))),
            ) => {
                call.check_host(problem)?;
                let (scale, empty) = (call.scale(), call.value_of_empty_rows());
                plan.execute(values, b, c, SpmmCall { scale, empty, winners: on_host(winners) })
            }
            (Inner::Cuda(staged), V::Device(values), B::Device(b), C::Device(c), None) => {
                staged.plan.execute(values, b, c, call)
            }
            (
                Inner::Cuda(staged),
                V::Device(values),
                B::Device(b),
                C::Device(c),
                Some(W::Device(w)),
            ) => staged.plan.execute_with_winners(values, b, c, w, call),
            (
                Inner::Cuda(staged),
                V::Host(values),
                B::Host(b),
                C::Host(c),
                winners @ (None | Some(W::Host(_))),
            ) => {
                let batch = self.explanation.problem.batch;
                let values = values.fit_batch("A", staged.pattern, staged.nnz, batch)?;
                staged.execute(values, b, c, on_host(winners), call, problem)
            }
            _ => mixed(&self.explanation.device),
        }
    }
}

/// Winners in host memory, if there are any.
fn on_host(winners: Option<WinnersResult<'_>>) -> Option<WinnersMut<'_>> {
    match winners {
        Some(WinnersResult::Host(winners)) => Some(winners),
        Some(WinnersResult::Device(_)) | None => None,
    }
}

impl<T: CpuScalar> Staged<T> {
    fn execute(
        &mut self,
        values: &[T],
        b: DenseView<'_, T>,
        mut c: DenseViewMut<'_, T>,
        winners: Option<WinnersMut<'_>>,
        call: Call<'_, T>,
        problem: &Problem,
    ) -> Result<()> {
        // What goes to the GPU and back is one array, and values between lines may belong to
        // others.
        let Some(of_b) = b.as_slice() else {
            let packed = b.to_layout(b.layout())?;
            return self.execute(values, packed.view(), c, winners, call, problem);
        };
        let (nrows, ncols, layout, ld) = (c.nrows(), c.ncols(), c.layout(), c.leading_dimension());
        let Some(of_c) = c.as_mut_slice() else {
            let mut packed = c.as_view().to_layout(c.layout())?;
            self.execute(values, b, packed.view_mut(), winners, call, problem)?;
            let lines = packed.data().chunks_exact(packed.leading_dimension()).enumerate();
            lines.for_each(|(line, from)| c.line_mut(line).copy_from_slice(from));
            return Ok(());
        };
        let device = &self.device;
        // Of one A, or of one after another.
        let held = self.values.take().filter(|on| on.len() == values.len());
        self.values = held;
        let on_values = match &mut self.values {
            Some(on) => {
                on.write(values)?;
                on
            }
            none => none.insert(DeviceBuffer::from_slice(device, values, "values on the device")?),
        };
        let on_b = copy_of(device, &mut self.b, &b)?;
        on_b.data_mut().write(of_b)?;
        let before = DenseView::new(nrows, ncols, layout, ld, of_c)?;
        let on_c = copy_of(device, &mut self.c, &before)?;
        // What is between the lines of C goes there and comes back unchanged.
        if of_c.len() != nrows * ncols || call.reads(problem.semiring) {
            on_c.data_mut().write(of_c)?;
        }
        match winners {
            None => self.plan.execute(&*on_values, on_b, on_c, call)?,
            Some(WinnersMut::U32(to)) => {
                let mut on = DeviceBuffer::<u32>::zeros(device, to.len(), "winners")?;
                self.plan.execute_with_winners(&*on_values, on_b, on_c, &mut on, call)?;
                on.read(to)?;
            }
            Some(WinnersMut::U64(to)) => {
                let mut on = DeviceBuffer::<u64>::zeros(device, to.len(), "winners")?;
                self.plan.execute_with_winners(&*on_values, on_b, on_c, &mut on, call)?;
                on.read(to)?;
            }
        }
        on_c.data().read(of_c)
    }
}

impl<'a, T: CpuScalar, I: Index, O: Index> Plans<SpmmRequest<PatternRef<'a, I, O>>, T> for Device {
    type Plan = SpmmPlan<'a, T>;

    fn plan(&self, request: SpmmRequest<PatternRef<'a, I, O>>) -> Result<SpmmPlan<'a, T>> {
        let SpmmRequest { pattern, problem } = request;
        if let Some(gpu) = self.gpu() {
            let on_device = DevicePattern::upload(&gpu.device, pattern.view())?;
            let plan: SpmmPlan<'_, T> = self.plan(SpmmRequest { pattern: on_device, problem })?;
            let explanation =
                Explanation { facts: facts(self, &pattern.view()), ..plan.explanation };
            return Ok(SpmmPlan { inner: plan.inner, explanation });
        }
        let problem = problem.bound::<T>(&pattern.clone().into())?;
        self.offers(&problem)?;
        let (options, tuned) = options(self, || tune::<T, I, O>(self, &pattern, &problem))?;
        let view = pattern.view();
        let facts = facts(self, &view);
        let inner = gustav_cpu::SpmmPlan::new(pattern, &problem, &options)?;
        let bytes = inner.workspace_bytes();
        let explanation = explained(self, facts, &problem, inner.choice(), tuned, bytes);
        Ok(SpmmPlan { inner: Inner::Cpu(inner), explanation })
    }
}

impl<T: CpuScalar, I: Index, O: Index> Plans<SpmmRequest<DevicePattern<I, O>>, T> for Device {
    type Plan = SpmmPlan<'static, T>;

    fn plan(&self, request: SpmmRequest<DevicePattern<I, O>>) -> Result<SpmmPlan<'static, T>> {
        let SpmmRequest { pattern, problem } = request;
        let (plan, explanation) = plan_spmm::<T, I, O>(self, &pattern, &problem)?;
        let staged = Staged {
            device: pattern.device().clone(),
            plan,
            pattern: pattern.id(),
            nnz: pattern.nnz(),
            values: None,
            b: None,
            c: None,
        };
        Ok(SpmmPlan { inner: Inner::Cuda(Box::new(staged)), explanation })
    }
}

/// Times every algorithm on operands of the problem's shape.
fn tune<T: CpuScalar, I: Index, O: Index>(
    device: &Device,
    pattern: &PatternRef<'_, I, O>,
    problem: &Problem,
) -> Result<(gustav_cpu::Options, Report)> {
    let n = problem.columns;
    let values = vec![T::one(); problem.nnz];
    let a: CsrView<'_, T, I, O> = pattern.view().with_values(&values)?;
    let b = Dense::<T>::zeros(problem.inner() * problem.batch, n, problem.layout_b)?;
    let mut c = Dense::<T>::zeros(problem.output_rows() * problem.batch, n, problem.layout_c)?;
    autotuned(problem.operation, device.options(), &mut |options| {
        let mut plan = gustav_cpu::SpmmPlan::new(a, problem, options)?;
        median_seconds(&mut || plan.execute(a, &b, &mut c, ()))
    })
}
