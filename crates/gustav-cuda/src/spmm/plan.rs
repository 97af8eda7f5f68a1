//! A plan: one algorithm prepared for one pattern, and the workspaces around it.

use gustav_core::{Arith, Epilogue, Error, Index, Layout, Problem, Result, Scalar};
use gustav_plan::heuristics::mean_row_length;
use gustav_plan::{Algorithm, Choice, Chooser, RowOrder};

use super::catalog::{self, Config, Method};
use super::operands::Operands;
use super::pattern::Pattern;
use super::{auto, bits, checks, ordered};
use crate::layout::{Move, Transpose};
use crate::stream::{Stream, Turns};
use crate::transposed::Transposed;
use crate::{Device, DeviceBuffer, DeviceCsr, DeviceDense};

/// What the caller of a plan decides.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// Who chooses the algorithm.
    pub chooser: Chooser,
    /// The configuration, in place of the algorithm's own choice.
    pub config: Option<Config>,
    /// The order in which the rows of op(A) are taken, of `output-stationary` and `segmented`; C
    /// comes out in the caller's order. Where the rules choose, they choose `segmented`.
    pub order: Option<&'a RowOrder>,
}

/// A plan for C = α·op(A)·B ⊕ β·C, for one pattern of A and any values.
pub struct SpmmPlan<T: Scalar, I: Index, O: Index> {
    device: Device,
    problem: Problem,
    choice: Choice<Config>,
    method: Box<dyn Method>,
    transposed: Option<Transposed<T, I, O>>,
    layouts: Layouts<T>,
    turns: Turns,
    /// Whether the values of some A are in the order of the method.
    converted: bool,
}

/// Row-major workspaces of column-major operands.
struct Layouts<T: Scalar> {
    b: Option<(DeviceBuffer<T>, Transpose)>,
    c: Option<(DeviceBuffer<T::Accum>, Transpose)>,
}

impl<T: Scalar, I: Index, O: Index> SpmmPlan<T, I, O> {
    /// Looks at the pattern of `a` once, on the device, and chooses how to multiply by it. A problem
    /// of one call is not looked at, and its plan returns before the device is ready; no execution
    /// of it can be the first in a captured graph.
    ///
    /// # Errors
    /// [`Error::Unsupported`] when the algorithm named in `options` cannot compute `problem`,
    /// [`Error::Pattern`] when `problem` was made for another matrix, [`Error::OutOfMemory`],
    /// [`Error::NoDevice`] when the run-time compiler is missing, [`Error::Device`].
    pub fn new(a: &DeviceCsr<T, I, O>, problem: &Problem, options: &Options<'_>) -> Result<Self> {
        let device = a.device().clone();
        checks::pattern(problem, a)?;
        problem.check_dense()?;
        let named = named(problem, options)?;
        let transposed = problem.transpose_a.then(|| Transposed::new(&device, a)).transpose()?;
        let pattern = match &transposed {
            Some(t) => Pattern::new(&t.offsets, &t.indices)?,
            None => Pattern::new(a.offsets(), a.indices())?,
        }
        .ordered(options.order);
        let (config, mut reason) = match (options.config, named) {
            (Some(config), _) => (config, "configured by the caller".into()),
            (None, Some(algorithm)) => Config::choose(algorithm, &pattern, problem)?,
            (None, None) => auto::choose(&pattern, problem)?,
        };
        if let Some(order) = options.order {
            reason += &format!("; rows in the order {}", order.order());
        }
        let algorithm = config.algorithm();
        let method = config.prepare(&pattern, problem)?;
        drop(pattern);
        let turns = Turns::of(&device, problem.calls)?;
        let layouts = Layouts::new(&device, problem, !config.any_layout())?;
        let choice = Choice { algorithm, config, reason };
        let problem = problem.clone();
        let mut plan = SpmmPlan {
            device,
            problem,
            choice,
            method,
            transposed,
            layouts,
            turns,
            converted: false,
        };
        plan.compile(a)?;
        Ok(plan)
    }

    /// What was chosen, and why.
    pub fn choice(&self) -> &Choice<Config> {
        &self.choice
    }

    /// Bytes that the plan holds on the device beside the caller's arrays.
    pub fn workspace_bytes(&self) -> usize {
        let transposed = self.transposed.as_ref().map_or(0, Transposed::bytes);
        let b = self.layouts.b.as_ref().map_or(0, |(w, _)| w.bytes());
        let c = self.layouts.c.as_ref().map_or(0, |(w, _)| w.bytes());
        self.method.bytes() + transposed + b + c
    }

    /// Queues C = α·op(A)·B ⊕ β·C on `stream`, with the steps of [`Problem::epilogue`] that need no
    /// bias; neither allocates nor waits, except that operands
    /// less aligned than packed ones compile their kernel at first sight and that `vendor` sets
    /// itself up at its first execution. `a` has the pattern that the plan was made for, and any
    /// values. β equal to the semiring's zero leaves C unread. Executions of one
    /// plan follow one another, on whatever streams; other work on the operands that was queued on
    /// other streams is ordered by the caller, see [`Stream::wait`].
    ///
    /// # Errors
    /// [`Error::Pattern`] when `a` has another shape or number of entries, [`Error::Shape`] when
    /// `b` or `c` does not fit, [`Error::Argument`] when C overlaps another operand, an operand is on
    /// another device, or the epilogue has a bias ([`SpmmPlan::execute_with_bias`]),
    /// [`Error::Device`].
    pub fn execute(
        &mut self,
        a: &DeviceCsr<T, I, O>,
        alpha: T::Accum,
        b: &DeviceDense<T>,
        beta: T::Accum,
        c: &mut DeviceDense<T>,
        stream: &Stream,
    ) -> Result<()> {
        self.execute_with_bias(a, alpha, b, beta, None, c, stream)
    }

    /// The same with the bias of [`Problem::epilogue`]: a value for every column of C, in the type of
    /// sums.
    ///
    /// # Errors
    /// As there; [`Error::Argument`] when there is a bias and the problem has none, or the other way
    /// round.
    pub fn execute_with_bias(
        &mut self,
        a: &DeviceCsr<T, I, O>,
        alpha: T::Accum,
        b: &DeviceDense<T>,
        beta: T::Accum,
        bias: Option<&DeviceBuffer<T::Accum>>,
        c: &mut DeviceDense<T>,
        stream: &Stream,
    ) -> Result<()> {
        self.run(true, a, alpha, b, beta, bias, c, stream)
    }

    /// [`SpmmPlan::execute`] with the values of A that the last execution, or
    /// [`SpmmPlan::convert`], brought into the algorithm's own order: those of `a` are read only by
    /// algorithms that have no such order, and by a plan that nothing was converted for yet. Of `dense`
    /// this is cuBLAS's product alone.
    ///
    /// # Errors
    /// As there.
    pub fn execute_converted(
        &mut self,
        a: &DeviceCsr<T, I, O>,
        alpha: T::Accum,
        b: &DeviceDense<T>,
        beta: T::Accum,
        c: &mut DeviceDense<T>,
        stream: &Stream,
    ) -> Result<()> {
        self.run(false, a, alpha, b, beta, None, c, stream)
    }

    fn run(
        &mut self,
        convert: bool,
        a: &DeviceCsr<T, I, O>,
        alpha: T::Accum,
        b: &DeviceDense<T>,
        beta: T::Accum,
        bias: Option<&DeviceBuffer<T::Accum>>,
        c: &mut DeviceDense<T>,
        stream: &Stream,
    ) -> Result<()> {
        checks::pattern(&self.problem, a)?;
        checks::dense(&self.problem, &self.device, a, b, c)?;
        checks::bias(&self.problem, &self.device, bias, c.data())?;
        if self.problem.output_rows() == 0 || self.problem.columns == 0 {
            return Ok(());
        }
        self.turns.next(&self.device, stream)?;
        self.mark(a, b, c, stream);
        let mut operands = self.operands(a);
        if let Some(bias) = bias {
            bias.used_on(stream);
            operands.bias = bias.address();
        }
        (operands.b, operands.ldb) = (b.data().address(), b.leading_dimension());
        (operands.c, operands.ldc) = (c.data().address(), c.leading_dimension());
        (operands.alpha, operands.beta) = (bits(alpha), bits(beta));
        if let Some(transposed) = &self.transposed {
            transposed.refresh(stream, a)?;
        }
        // SAFETY: shapes and leading dimensions were checked against the buffers, which wait for
        // the stream when they are freed; the pattern is the plan's by the caller's word and the
        // invariants of `DeviceCsr`.
        unsafe {
            if let Some((workspace, transpose)) = &self.layouts.b {
                let (lines, length) = (self.problem.columns, self.problem.inner());
                let m = Move {
                    from: operands.b,
                    to: workspace.address(),
                    lines,
                    length,
                    ld_from: operands.ldb,
                    ld_to: lines,
                };
                transpose.copy::<T>(stream, &m)?;
                (operands.b, operands.ldb) = (m.to, m.ld_to);
            }
            let c_final = (operands.c, operands.ldc);
            if let Some((workspace, _)) = &self.layouts.c {
                (operands.c, operands.ldc) = (workspace.address(), self.problem.columns);
                // The workspace takes bare sums: one and zero of the semiring.
                (operands.alpha, operands.beta) = neutral::<T::Accum>(&self.problem);
            }
            if convert || !self.converted {
                self.method.convert(stream, &operands)?;
                self.converted = true;
            }
            self.method.launch(&self.device, stream, &operands)?;
            if let Some((workspace, transpose)) = &self.layouts.c {
                let m = Move {
                    from: workspace.address(),
                    to: c_final.0,
                    lines: self.problem.output_rows(),
                    length: self.problem.columns,
                    ld_from: self.problem.columns,
                    ld_to: c_final.1,
                };
                transpose.launch(stream, &m, alpha, beta, operands.bias)?;
            }
        }
        Ok(())
    }

    /// Whether executions bring the values of A into an order of the algorithm's own first.
    pub fn converts(&self) -> bool {
        self.method.converts()
    }

    /// Queues that part of an execution alone, to be timed; nothing for algorithms that read A as it
    /// is.
    ///
    /// # Errors
    /// [`Error::Pattern`] when `a` has another shape or number of entries, [`Error::Device`].
    pub fn convert(&mut self, a: &DeviceCsr<T, I, O>, stream: &Stream) -> Result<()> {
        checks::pattern(&self.problem, a)?;
        self.turns.next(&self.device, stream)?;
        a.offsets().used_on(stream);
        a.indices().used_on(stream);
        a.values().used_on(stream);
        let operands = self.operands(a);
        if let Some(transposed) = self.transposed.as_ref().filter(|_| self.converts()) {
            transposed.refresh(stream, a)?;
        }
        // SAFETY: the pattern is the plan's by the caller's word; A waits for the stream when freed.
        unsafe { self.method.convert(stream, &operands)? };
        self.converted = true;
        Ok(())
    }

    /// Compiles the kernels that packed operands need.
    fn compile(&mut self, a: &DeviceCsr<T, I, O>) -> Result<()> {
        let operands = self.operands(a);
        self.method.compile(&self.device, &operands)
    }

    /// The operands with packed, fully aligned B and C at no address yet.
    fn operands(&self, a: &DeviceCsr<T, I, O>) -> Operands {
        let p = &self.problem;
        let (offsets, indices, values) = match &self.transposed {
            None => (a.offsets().address(), a.indices().address(), a.values().address()),
            Some(t) => (t.offsets.address(), t.indices.address(), t.values.address()),
        };
        Operands {
            offsets,
            indices,
            values,
            rows: p.output_rows(),
            inner: p.inner(),
            nnz: p.nnz,
            b: 0,
            ldb: p.columns,
            c: 0,
            ldc: p.columns,
            layouts: (p.layout_b, p.layout_c),
            columns: p.columns,
            alpha: 0,
            beta: 0,
            dtype: T::DTYPE,
            dtype_c: if self.layouts.c.is_some() { T::Accum::DTYPE } else { T::DTYPE },
            index_type: I::TYPE,
            offset_type: O::TYPE,
            semiring: p.semiring,
            steps: steps(p, self.layouts.c.is_some()).0,
            bias: 0,
        }
    }

    fn mark(
        &self,
        a: &DeviceCsr<T, I, O>,
        b: &DeviceDense<T>,
        c: &DeviceDense<T>,
        stream: &Stream,
    ) {
        a.offsets().used_on(stream);
        a.indices().used_on(stream);
        for values in [a.values(), b.data(), c.data()] {
            values.used_on(stream);
        }
        if let Some((workspace, _)) = &self.layouts.b {
            workspace.used_on(stream);
        }
        if let Some((workspace, _)) = &self.layouts.c {
            workspace.used_on(stream);
        }
    }
}

impl<T: Scalar> Layouts<T> {
    fn new(device: &Device, p: &Problem, row_major_only: bool) -> Result<Self> {
        let needs = |layout| row_major_only && layout == Layout::ColumnMajor;
        let room = |rows: usize| rows.saturating_mul(p.columns);
        let b = needs(p.layout_b)
            .then(|| {
                let workspace = DeviceBuffer::uninit(device, room(p.inner()), "row-major B")?;
                let plain = gustav_core::SemiringKind::PlusTimes;
                Ok::<_, Error>((workspace, Transpose::new(device, T::DTYPE, T::DTYPE, plain, 0)?))
            })
            .transpose()?;
        let c = needs(p.layout_c)
            .then(|| {
                let workspace = DeviceBuffer::uninit(device, room(p.output_rows()), "row-major C")?;
                let (sums, values) = (T::Accum::DTYPE, T::DTYPE);
                let transpose = Transpose::new(device, sums, values, p.semiring, steps(p, true).1)?;
                Ok::<_, Error>((workspace, transpose))
            })
            .transpose()?;
        Ok(Layouts { b, c })
    }
}

/// The algorithm that the caller names, checked against the problem; none when the rules choose.
fn named(problem: &Problem, options: &Options<'_>) -> Result<Option<Algorithm>> {
    let configured = options.config.map(|c| c.algorithm());
    let chooser = match options.chooser {
        Chooser::MeanRowLength => {
            let mean = problem.nnz as f64 / problem.output_rows().max(1) as f64;
            Chooser::Named(mean_row_length::of_mean(mean).0)
        }
        Chooser::Auto if options.order.is_some() && configured.is_none() => {
            Chooser::Named(Algorithm::Segmented)
        }
        chooser => chooser,
    };
    let named = crate::catalog::named(problem, chooser, configured)?;
    catalog::check(problem, named.unwrap_or(Algorithm::Segmented))?;
    if let (Some(algorithm), Some(order)) = (named, options.order) {
        ordered::check(problem, algorithm, order)?;
    }
    Ok(named)
}

/// Steps of the epilogue that kernels take, and those left for the way from a workspace to C.
fn steps(problem: &Problem, workspace: bool) -> (u8, u8) {
    let all = problem.epilogue;
    if !workspace {
        return (all.bits(), 0);
    }
    // Bias and ReLU follow α and β.
    let mean = Epilogue { bias: false, relu: false, ..all };
    (mean.bits(), Epilogue { mean: false, ..all }.bits())
}

/// Bits of the semiring's one and zero.
fn neutral<A: Arith>(problem: &Problem) -> (u64, u64) {
    use gustav_core::SemiringKind::{MaxTimes, MinPlus};
    let (zero, one) = (<A as Scalar>::zero(), <A as Scalar>::one());
    match problem.semiring {
        MinPlus => (bits(zero), bits(A::INFINITY)),
        MaxTimes => (bits(one), bits(A::NEG_INFINITY)),
        _ => (bits(one), bits(zero)),
    }
}
