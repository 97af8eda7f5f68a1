//! The operands' patterns in plans, and checks of matrices.

use gustav_core::{Error, Index, Problem, Result, Scalar};

use crate::device::order::{Access, Uses};
use crate::device::{Device, graph};
use crate::jit::source::bits;
use crate::matrix::{DevicePattern, DeviceValues, HeldPattern};
use crate::product::call::Common;
use crate::product::checks::on;
use crate::product::op_a::{OpA, Planned};
use crate::product::sparse_operands::{Operands, Sparse};

/// The patterns of op(A) and B, for executions with any values.
pub(super) struct Patterns<T: Scalar> {
    pub device: Device,
    pub problem: Problem,
    op_a: OpA<T>,
    right: HeldPattern,
}

/// `problem` with the types of a plan set; C's values have type `U`.
///
/// # Errors
/// [`Error::Pattern`] when `problem` names another type of C.
pub(super) fn typed<T: Scalar, I: Index, O: Index, U: Scalar>(
    problem: &Problem,
) -> Result<Problem> {
    if problem.output != problem.dtype && problem.output != U::DTYPE {
        let name = |dtype| format!("a product with values of {dtype}");
        let (expected, found) = (name(problem.output), name(U::DTYPE));
        return Err(Error::Pattern { expected, found });
    }
    Ok(Problem { output: U::DTYPE, ..crate::product::op_a::typed::<T, I, O>(problem) })
}

impl<T: Scalar> Patterns<T> {
    /// The patterns of `a` and `b`, for reads on the device's own stream.
    ///
    /// # Errors
    /// As [`check`], [`Error::OutOfMemory`], [`Error::Device`].
    pub(super) fn new<I: Index, O: Index>(
        a: &DevicePattern<I, O>,
        b: &DevicePattern<I, O>,
        problem: &Problem,
    ) -> Result<Self> {
        let device = a.device().clone();
        check(&device, problem, a, b)?;
        a.join(&device)?;
        b.join(&device)?;
        let planned = Planned::new(&device, a, problem.transpose_a)?;
        let op_a = OpA::new(&device, a, &planned, 1)?;
        Ok(Patterns { device, problem: problem.clone(), op_a, right: b.held() })
    }

    /// Bytes of a transposed A.
    pub(super) fn bytes(&self) -> usize {
        self.op_a.bytes()
    }

    /// The operands without values.
    pub(super) fn operands(&self) -> Operands {
        Operands::new(&self.problem, self.a(0), self.b(0), 0)
    }

    /// The checked operands of an execution, on the device's stream after the work queued on the
    /// stream of the call.
    ///
    /// # Errors
    /// [`Error::Pattern`] and [`Error::Length`] when values do not fit, [`Error::Argument`] when
    /// they are on another device, [`Error::Device`].
    pub(super) fn begin(
        &self,
        a: DeviceValues<'_, T>,
        b: DeviceValues<'_, T>,
        call: &Common<'_, T::Accum>,
    ) -> Result<Operands> {
        graph::refuse("a product of sparse matrices")?;
        let (a, b) = (self.op_a.fit(a)?, b.fit("B", self.right.id, self.right.nnz)?);
        on(&self.device, "values of A", a)?;
        on(&self.device, "values of B", b)?;
        let own = self.device.stream();
        self.device.bind()?;
        own.follow(call.stream(&self.device))?;
        let mut uses = Uses::on(own).ordered(call.ordered);
        self.op_a.read(&mut uses, a)?;
        uses.access(&self.right.offsets, Access::Read)?;
        uses.access(&self.right.indices, Access::Read)?;
        uses.read(b)?;
        self.op_a.refresh(&mut uses, own, a)?;
        let alpha = bits(call.alpha(self.problem.semiring));
        let (a, b) = (self.a(a.address()), self.b(b.address()));
        Ok(Operands::new(&self.problem, a, b, alpha))
    }

    /// Makes the stream of the call wait for the work on the device's stream.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub(super) fn end(&self, call: &Common<'_, T::Accum>) -> Result<()> {
        call.stream(&self.device).follow(self.device.stream())
    }

    /// Checks that `what` has C's shape and is on the device.
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::Argument`].
    pub(super) fn check_like_c<I: Index, O: Index>(
        &self,
        what: &'static str,
        m: &DevicePattern<I, O>,
    ) -> Result<()> {
        self.problem.check_like_c(what, (m.nrows(), m.ncols()))?;
        on(&self.device, what, m.offsets())
    }

    /// op(A) with values at an address.
    fn a(&self, values: u64) -> Sparse {
        let at = self.op_a.addresses(values);
        Sparse {
            rows: self.problem.output_rows(),
            cols: self.problem.inner(),
            nnz: self.problem.nnz,
            offsets: at.offsets,
            indices: at.indices,
            values: at.values,
        }
    }

    fn b(&self, values: u64) -> Sparse {
        let HeldPattern { nrows, ncols, nnz, offsets, indices, .. } = &self.right;
        let (offsets, indices) = (offsets.address(), indices.address());
        Sparse { rows: *nrows, cols: *ncols, nnz: *nnz, offsets, indices, values }
    }
}

/// Checks that the patterns match `problem` and are on `device`.
///
/// # Errors
/// [`Error::Shape`], [`Error::Pattern`], [`Error::Argument`].
pub(super) fn check<I: Index, O: Index>(
    device: &Device,
    problem: &Problem,
    a: &DevicePattern<I, O>,
    b: &DevicePattern<I, O>,
) -> Result<()> {
    if problem.inner() != b.nrows() && (problem.rows, problem.cols) == (a.nrows(), a.ncols()) {
        return Err(Error::Shape {
            op: "spgemm",
            expected: format!("B with {} rows", problem.inner()),
            found: format!("{} x {}", b.nrows(), b.ncols()),
        });
    }
    let name = |(rows, cols, nnz), (columns, nnz_b)| {
        format!("A {rows} x {cols} with {nnz} nonzeros, B {columns} columns with {nnz_b}")
    };
    let expected = (
        (problem.rows, problem.cols, problem.nnz),
        (problem.columns, problem.nnz_b.unwrap_or(b.nnz())),
    );
    let found = ((a.nrows(), a.ncols(), a.nnz()), (b.ncols(), b.nnz()));
    if expected != found {
        let (expected, found) = (name(expected.0, expected.1), name(found.0, found.1));
        return Err(Error::Pattern { expected, found });
    }
    on(device, "A", a.offsets())?;
    on(device, "B", b.offsets())
}
