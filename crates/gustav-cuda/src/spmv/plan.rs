//! A plan: one algorithm prepared for one pattern.

use gustav_core::{Error, Index, Problem, Result, Scalar};
use gustav_plan::{Algorithm, Choice, Chooser};

use super::auto;
use super::catalog::Config;
use crate::device::graph::{self, SharedCore};
use crate::device::order::{PlanOrder, Uses};
use crate::device::{Device, DeviceBuffer};
use crate::jit::source::bits;
use crate::matrix::{DevicePattern, DeviceValues};
use crate::product::method::Method;
use crate::product::op_a::{OpA, Planned, typed};
use crate::product::operands::{Batch, Operands};
use crate::product::{Call, catalog, checks};

/// The caller's options for a plan.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Who chooses the algorithm.
    pub chooser: Chooser,
    /// The configuration; `None` to let the rules choose.
    pub config: Option<Config>,
}

/// A plan for y = α·op(A)·x ⊕ β·y, for one pattern of A, which it holds, and any values.
///
/// A plan may be sent to another thread. Several plans, also of one pattern, may be executed
/// concurrently, on one stream or on several.
pub struct SpmvPlan<T: Scalar> {
    device: Device,
    problem: Problem,
    choice: Choice<Config>,
    work: SharedCore<Work<T>>,
}

/// The state that an execution uses besides its operands.
struct Work<T> {
    op_a: OpA<T>,
    method: Box<dyn Method>,
    /// Whether the method holds converted values of an A.
    converted: bool,
}

impl<T: Scalar> SpmvPlan<T> {
    /// Analyses `pattern` and chooses the algorithm. The plan sets the types of `problem`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] when the algorithm named in `options` cannot compute `problem`,
    /// [`Error::Pattern`] when `problem` was made for another shape or number of nonzeros,
    /// [`Error::OutOfMemory`], [`Error::NoDevice`] when the run-time compiler is missing,
    /// [`Error::Device`].
    pub fn new<I: Index, O: Index>(
        pattern: &DevicePattern<I, O>,
        problem: &Problem,
        options: &Options,
    ) -> Result<Self> {
        let (device, problem) = (pattern.device().clone(), typed::<T, I, O>(problem));
        problem.check_a(pattern.nrows(), pattern.ncols(), pattern.nnz())?;
        let named = named(&problem, options)?;
        let planned = Planned::new(&device, pattern, problem.transpose_a)?;
        let op_a = OpA::new(&device, pattern, &planned, 1)?;
        let facts = planned.pattern()?;
        let (config, reason) = match (options.config, named) {
            (Some(config), _) => (config, "configured by the caller".into()),
            (None, Some(algorithm)) => Config::choose(algorithm, &facts, &problem)?,
            (None, None) => auto::choose(&facts, &problem)?,
        };
        let algorithm = config.algorithm();
        let method = config.prepare(&facts, &problem)?;
        drop(facts);
        let order = PlanOrder::new(&device, problem.calls)?;
        let choice = Choice { algorithm, config, reason };
        let work = graph::core(order, Work { op_a, method, converted: false });
        Ok(SpmvPlan { device, problem, choice, work })
    }

    /// The chosen algorithm and configuration, and the reason.
    pub fn choice(&self) -> &Choice<Config> {
        &self.choice
    }

    /// Bytes that the plan holds on the device beside the caller's arrays and the pattern.
    pub fn workspace_bytes(&self) -> usize {
        let work = &graph::lock(&self.work).method;
        work.method.bytes() + work.op_a.bytes()
    }

    /// Queues y = α·op(A)·x ⊕ β·y with the options of `call`; neither allocates nor waits, except
    /// that the first execution of `vendor` initialises it. `values` are those of A: a matrix of
    /// the plan's pattern, or a buffer in the order of its nonzeros. β equal to the semiring's zero
    /// leaves y unread.
    ///
    /// The work is ordered after earlier work of other streams on the operands, and after earlier
    /// executions of this plan.
    ///
    /// # Errors
    /// [`Error::Pattern`] when `values` belong to another pattern, [`Error::Length`] for another
    /// number of values, [`Error::Shape`] when `x` or `y` does not fit, [`Error::Argument`] when y
    /// overlaps another operand, an operand is on another device or there is a bias,
    /// [`Error::Device`].
    pub fn execute<'v>(
        &mut self,
        values: impl Into<DeviceValues<'v, T>>,
        x: &DeviceBuffer<T>,
        y: &mut DeviceBuffer<T>,
        call: Call<'_, T>,
    ) -> Result<()> {
        let (p, device) = (&self.problem, &self.device);
        let stream = call.common.stream(device);
        let mut core = graph::lock(&self.work);
        let values = core.method.op_a.fit(values.into())?;
        for (name, vector, length) in [("x", x, p.inner()), ("y", &*y, p.output_rows())] {
            if vector.len() != length {
                return Err(Error::Shape {
                    op: "spmv",
                    expected: format!("{name} of {length} elements"),
                    found: format!("{} elements", vector.len()),
                });
            }
        }
        checks::memory(device, &core.method.op_a.pattern, values, ("x", x), ("y", &*y))?;
        checks::bias(p, device, call.bias, y)?;
        p.check_reduction(false, call.empty.is_some(), None)?;
        if p.output_rows() == 0 {
            return Ok(());
        }
        core.order.next(stream)?;
        let Work { op_a, method, converted } = &mut core.method;
        let mut uses = Uses::on(stream).ordered(call.common.ordered);
        op_a.read(&mut uses, values)?;
        uses.read(x)?;
        uses.write(y)?;
        let a = op_a.addresses(values.address());
        let operands = Operands {
            offsets: a.offsets,
            indices: a.indices,
            values: a.values,
            rows: p.output_rows(),
            inner: p.inner(),
            nnz: p.nnz,
            b: x.address(),
            ldb: 1,
            c: y.address(),
            ldc: 1,
            layouts: (p.layout_b, p.layout_c),
            columns: 1,
            batch: Batch::ONE,
            alpha: bits(call.common.alpha(p.semiring)),
            beta: bits(call.common.beta(p.semiring)),
            dtype: T::DTYPE,
            dtype_c: T::DTYPE,
            index_type: p.index_type,
            offset_type: p.offset_type,
            semiring: p.semiring,
            steps: 0,
            bias: 0,
            extremum: None,
            winner: None,
            winners: 0,
            permutation: 0,
            filtered: false,
        };
        op_a.refresh(&mut uses, stream, values)?;
        // SAFETY: the lengths were checked against the buffers, which wait for the stream when
        // they are freed; the pattern is the plan's own.
        unsafe {
            if !call.reuse_conversion || !*converted {
                method.convert(stream, &operands)?;
                *converted = true;
            }
            method.launch(device, stream, &operands)
        }
    }
}

/// The algorithm that the caller names, checked against the problem; `None` if the rules choose.
fn named(problem: &Problem, options: &Options) -> Result<Option<Algorithm>> {
    let configured = options.config.map(|c| c.algorithm());
    let named = crate::product::catalog::named(problem, options.chooser, configured)?;
    catalog::check(super::catalog(), problem, named.unwrap_or(Algorithm::Segmented))?;
    Ok(named)
}
