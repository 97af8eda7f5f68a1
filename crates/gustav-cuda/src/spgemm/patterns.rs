//! What plans keep of the patterns of their operands, and what is checked of matrices.

use gustav_core::{Error, Index, Problem, Result, Scalar};

use super::operands::{Operands, Sparse};
use crate::spmm::{bits, checks};
use crate::stream::Stream;
use crate::transposed::Transposed;
use crate::{Device, DeviceCsr};

/// The patterns of op(A) and B, for executions with any values.
pub(super) struct Patterns<T: Scalar, I: Index, O: Index> {
    pub device: Device,
    pub problem: Problem,
    transposed: Option<Transposed<T, I, O>>,
}

impl<T: Scalar, I: Index, O: Index> Patterns<T, I, O> {
    /// Those of `a` and `b`; work that was queued on them on other streams is waited for.
    ///
    /// # Errors
    /// As [`check`], [`Error::OutOfMemory`], [`Error::Device`].
    pub(super) fn new(
        a: &DeviceCsr<T, I, O>,
        b: &DeviceCsr<T, I, O>,
        problem: &Problem,
    ) -> Result<Self> {
        let device = a.device().clone();
        check(&device, problem, a, b)?;
        a.join_pattern(&device)?;
        b.join_pattern(&device)?;
        let transposed = problem.transpose_a.then(|| Transposed::new(&device, a)).transpose()?;
        Ok(Patterns { device, problem: problem.clone(), transposed })
    }

    /// Bytes of a transposed A.
    pub(super) fn bytes(&self) -> usize {
        self.transposed.as_ref().map_or(0, Transposed::bytes)
    }

    /// The operands of which only the patterns are read.
    pub(super) fn operands(&self, a: &DeviceCsr<T, I, O>, b: &DeviceCsr<T, I, O>) -> Operands {
        Operands::new(&self.problem, self.left(a), Sparse::of(b), 0)
    }

    /// The checked operands of an execution, on the device's stream after the work queued on `stream`.
    ///
    /// # Errors
    /// As [`check`], [`Error::Device`].
    pub(super) fn begin(
        &self,
        a: &DeviceCsr<T, I, O>,
        alpha: T::Accum,
        b: &DeviceCsr<T, I, O>,
        stream: &Stream,
    ) -> Result<Operands> {
        begin(&self.device, &self.problem, a, b, stream)?;
        if let Some(transposed) = &self.transposed {
            transposed.refresh(self.device.stream(), a)?;
        }
        Ok(Operands::new(&self.problem, self.left(a), Sparse::of(b), bits(alpha)))
    }

    /// Lets `stream` wait for the work on the device's stream.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub(super) fn end(&self, stream: &Stream) -> Result<()> {
        end(&self.device, stream)
    }

    /// `c` has C's shape and `nnz` entries, those of an earlier result.
    ///
    /// # Errors
    /// [`Error::Pattern`] when it has not.
    pub(super) fn check_result<U: Scalar>(
        &self,
        c: &DeviceCsr<U, I, O>,
        nnz: Option<usize>,
    ) -> Result<()> {
        let shape = (self.problem.output_rows(), self.problem.columns);
        if (c.nrows(), c.ncols()) == shape && nnz == Some(c.nnz()) {
            return Ok(());
        }
        let name = |(rows, cols), nnz: Option<usize>| match nnz {
            Some(nnz) => format!("C {rows} x {cols} with {nnz} nonzeros"),
            None => format!("C {rows} x {cols} that this plan has computed"),
        };
        Err(Error::Pattern {
            expected: name(shape, nnz),
            found: name((c.nrows(), c.ncols()), Some(c.nnz())),
        })
    }

    /// `what` has C's shape and is on the device.
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::Argument`].
    pub(super) fn check_like_c<U: Scalar>(
        &self,
        what: &'static str,
        m: &DeviceCsr<U, I, O>,
    ) -> Result<()> {
        self.problem.check_like_c(what, (m.nrows(), m.ncols()))?;
        on(&self.device, what, m)
    }

    /// op(A).
    fn left(&self, a: &DeviceCsr<T, I, O>) -> Sparse {
        match &self.transposed {
            None => Sparse::of(a),
            Some(t) => Sparse::over(a.ncols(), a.nrows(), &t.offsets, &t.indices, &t.values),
        }
    }
}

/// Checks the operands, and lets the device's own stream wait for the work queued on `stream` and on
/// them.
///
/// # Errors
/// As [`check`], [`Error::Device`].
pub(super) fn begin<T: Scalar, I: Index, O: Index>(
    device: &Device,
    problem: &Problem,
    a: &DeviceCsr<T, I, O>,
    b: &DeviceCsr<T, I, O>,
    stream: &Stream,
) -> Result<()> {
    let own = device.stream();
    check(device, problem, a, b)?;
    device.bind()?;
    if stream.handle() != own.handle() {
        own.wait(&stream.record()?)?;
    }
    a.join(device)?;
    b.join(device)
}

/// Lets `stream` wait for the work on the device's stream.
///
/// # Errors
/// [`Error::Device`].
pub(super) fn end(device: &Device, stream: &Stream) -> Result<()> {
    if stream.handle() != device.stream().handle() {
        stream.wait(&device.stream().record()?)?;
    }
    Ok(())
}

/// The operands are those of `problem`, on `device`.
///
/// # Errors
/// [`Error::Shape`], [`Error::Pattern`], [`Error::Argument`], and for types that `problem` does not name.
pub(super) fn check<T: Scalar, I: Index, O: Index>(
    device: &Device,
    problem: &Problem,
    a: &DeviceCsr<T, I, O>,
    b: &DeviceCsr<T, I, O>,
) -> Result<()> {
    checks::types::<T, I, O>(problem)?;
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
    on(device, "operand", a)?;
    on(device, "operand", b)
}

/// `m` is on `device`.
fn on<T: Scalar, I: Index, O: Index>(
    device: &Device,
    name: &'static str,
    m: &DeviceCsr<T, I, O>,
) -> Result<()> {
    if m.device() == device {
        return Ok(());
    }
    Err(Error::Argument {
        name,
        found: "one on another device".into(),
        expected: format!("all operands on {}", device.profile().name),
    })
}
