//! A plan: one algorithm prepared for one pattern.

use gustav_core::{Error, Index, Problem, Result, Scalar};
use gustav_plan::{Algorithm, Choice, Chooser};

use super::auto;
use super::catalog::{self, Config};
use crate::spmm::bits;
use crate::spmm::catalog::Method;
use crate::spmm::checks;
use crate::spmm::operands::Operands;
use crate::spmm::pattern::Pattern;
use crate::stream::{Stream, Turns};
use crate::transposed::Transposed;
use crate::{Device, DeviceBuffer, DeviceCsr};

/// What the caller of a plan decides.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Who chooses the algorithm.
    pub chooser: Chooser,
    /// The configuration, in place of the algorithm's own choice.
    pub config: Option<Config>,
}

/// A plan for y = α·op(A)·x ⊕ β·y, for one pattern of A and any values.
pub struct SpmvPlan<T: Scalar, I: Index = u32, O: Index = u32> {
    device: Device,
    problem: Problem,
    choice: Choice<Config>,
    method: Box<dyn Method>,
    transposed: Option<Transposed<T, I, O>>,
    turns: Turns,
}

impl<T: Scalar, I: Index, O: Index> SpmvPlan<T, I, O> {
    /// Looks at the pattern of `a` once and chooses how to multiply by it.
    ///
    /// # Errors
    /// [`Error::Unsupported`] when the algorithm named in `options` cannot compute `problem`,
    /// [`Error::Pattern`] when `problem` was made for another matrix, [`Error::OutOfMemory`],
    /// [`Error::NoDevice`] when the run-time compiler is missing, [`Error::Device`].
    pub fn new(a: &DeviceCsr<T, I, O>, problem: &Problem, options: &Options) -> Result<Self> {
        let device = a.device().clone();
        checks::pattern(problem, a)?;
        let named = named(problem, options)?;
        let transposed = problem.transpose_a.then(|| Transposed::new(&device, a)).transpose()?;
        let pattern = match &transposed {
            Some(t) => Pattern::new(&t.offsets, &t.indices)?,
            None => Pattern::new(a.offsets(), a.indices())?,
        };
        let (config, reason) = match (options.config, named) {
            (Some(config), _) => (config, "configured by the caller".into()),
            (None, Some(algorithm)) => Config::choose(algorithm, &pattern, problem)?,
            (None, None) => auto::choose(&pattern, problem)?,
        };
        let algorithm = config.algorithm();
        let method = config.prepare(&pattern, problem)?;
        drop(pattern);
        let turns = Turns::of(&device, problem.calls)?;
        let choice = Choice { algorithm, config, reason };
        let problem = problem.clone();
        Ok(SpmvPlan { device, problem, choice, method, transposed, turns })
    }

    /// What was chosen, and why.
    pub fn choice(&self) -> &Choice<Config> {
        &self.choice
    }

    /// Bytes that the plan holds on the device beside the caller's arrays.
    pub fn workspace_bytes(&self) -> usize {
        self.method.bytes() + self.transposed.as_ref().map_or(0, Transposed::bytes)
    }

    /// Queues y = α·op(A)·x ⊕ β·y on `stream`; neither allocates nor waits, except that `vendor`
    /// sets itself up at its first execution. `a` has the pattern that the plan was made for, and
    /// any values. β equal to the semiring's zero leaves y unread. Executions of a plan follow one
    /// another, on whatever streams; other work on the operands that was queued on other streams
    /// is ordered by the caller, see [`Stream::wait`].
    ///
    /// # Errors
    /// [`Error::Pattern`] when `a` has another shape or number of entries, [`Error::Shape`] when
    /// `x` or `y` does not fit, [`Error::Argument`] when y overlaps another operand or an operand
    /// is on another device, [`Error::Device`].
    pub fn execute(
        &mut self,
        a: &DeviceCsr<T, I, O>,
        alpha: T::Accum,
        x: &DeviceBuffer<T>,
        beta: T::Accum,
        y: &mut DeviceBuffer<T>,
        stream: &Stream,
    ) -> Result<()> {
        checks::pattern(&self.problem, a)?;
        for (name, vector, length) in
            [("x", x, self.problem.inner()), ("y", &*y, self.problem.output_rows())]
        {
            if vector.len() != length {
                return Err(Error::Shape {
                    op: "spmv",
                    expected: format!("{name} of {length} elements"),
                    found: format!("{} elements", vector.len()),
                });
            }
        }
        checks::memory(&self.device, a, ("x", x), ("y", &*y))?;
        let p = &self.problem;
        if p.output_rows() == 0 {
            return Ok(());
        }
        self.turns.next(&self.device, stream)?;
        for used in [a.values(), x, y] {
            used.used_on(stream);
        }
        a.offsets().used_on(stream);
        a.indices().used_on(stream);
        let (offsets, indices, values) = match &self.transposed {
            None => (a.offsets().address(), a.indices().address(), a.values().address()),
            Some(t) => (t.offsets.address(), t.indices.address(), t.values.address()),
        };
        let operands = Operands {
            offsets,
            indices,
            values,
            rows: p.output_rows(),
            inner: p.inner(),
            nnz: p.nnz,
            b: x.address(),
            ldb: 1,
            c: y.address(),
            ldc: 1,
            layouts: (p.layout_b, p.layout_c),
            columns: 1,
            alpha: bits(alpha),
            beta: bits(beta),
            dtype: T::DTYPE,
            dtype_c: T::DTYPE,
            index_type: I::TYPE,
            offset_type: O::TYPE,
            semiring: p.semiring,
            steps: 0,
            bias: 0,
        };
        if let Some(transposed) = &self.transposed {
            transposed.refresh(stream, a)?;
        }
        // SAFETY: the lengths were checked against the buffers, which wait for the stream when
        // they are freed; the pattern is the plan's by the caller's word and the invariants of
        // `DeviceCsr`.
        unsafe { self.method.launch(&self.device, stream, &operands) }
    }
}

/// The algorithm that the caller names, checked against the problem; none when the rules choose.
fn named(problem: &Problem, options: &Options) -> Result<Option<Algorithm>> {
    let configured = options.config.map(|c| c.algorithm());
    let named = crate::catalog::named(problem, options.chooser, configured)?;
    catalog::check(problem, named.unwrap_or(Algorithm::Segmented))?;
    Ok(named)
}
