//! Plans of the algorithms that compute a dense C, for those who want it dense.

use gustav_core::{Error, Layout, Problem, Result, Scalar};
use gustav_plan::Choice;

use super::catalog::Config;
use super::dense_naive::DenseNaive;
use super::dense_rows::DenseRows;
use super::operands::{Operands, Sparse};
use super::patterns::{begin, check, end};
use super::plan::{Options, choose};
use super::shared_row::SharedRow;
use crate::spmm::{bits, unsupported};
use crate::stream::Stream;
use crate::{Device, DeviceCsr, DeviceDense};

/// A plan for C = α·A·B with A m × k and B k × n in CSR and C dense, by `shared-row` or
/// `dense-naive`, for one pattern of A and of B and any values.
///
/// Elements that the patterns do not produce become minus zero, so that
/// [`DeviceDense::to_csr`] finds the pattern again.
pub struct DensePlan {
    device: Device,
    problem: Problem,
    choice: Choice<Config>,
    rows: Rows,
}

enum Rows {
    Shared(Box<SharedRow>),
    Naive(Box<DenseNaive>),
}

impl DensePlan {
    /// The plan for the patterns of `a` and `b`. `options` name the algorithm, or one of its
    /// configurations.
    ///
    /// # Errors
    /// As [`super::SpgemmPlan::new`]; [`Error::Unsupported`] for algorithms with another C.
    pub fn new<T: Scalar>(
        a: &DeviceCsr<T>,
        b: &DeviceCsr<T>,
        problem: &Problem,
        options: &Options,
    ) -> Result<Self> {
        let device = a.device().clone();
        check(&device, problem, a, b)?;
        let (config, reason) = choose(problem, options, &device.planner_profile())?;
        a.join_pattern(&device)?;
        b.join_pattern(&device)?;
        let o = Operands::new(problem, Sparse::of(a), Sparse::of(b), 0);
        let rows = match config {
            Config::SharedRow(c) => {
                Rows::Shared(Box::new(DenseRows::new(&device, &o, problem, c)?))
            }
            Config::DenseNaive(c) => {
                Rows::Naive(Box::new(DenseRows::new(&device, &o, problem, c)?))
            }
            other => {
                let backend = format!("{} with a dense C", other.algorithm());
                let reason = "its C is CSR";
                return Err(unsupported(problem, &backend, reason, "shared-row, or SpgemmPlan"));
            }
        };
        let choice = Choice { algorithm: config.algorithm(), config, reason: reason.into() };
        Ok(DensePlan { device, problem: problem.clone(), choice, rows })
    }

    /// What was chosen, and why.
    pub fn choice(&self) -> &Choice<Config> {
        &self.choice
    }

    /// Bytes that the plan holds on the device beside the caller's arrays.
    pub fn workspace_bytes(&self) -> usize {
        match &self.rows {
            Rows::Shared(rows) => rows.bytes(),
            Rows::Naive(rows) => rows.bytes(),
        }
    }

    /// Computes C = α·A·B into `c`, row-major m × n, after the work queued on `stream`, which then
    /// waits for it. Nothing is allocated.
    ///
    /// # Errors
    /// [`Error::Pattern`] when `a` or `b` has another shape or number of entries,
    /// [`Error::Shape`] when `c` has, or is column-major, [`Error::Device`].
    pub fn execute<T: Scalar>(
        &mut self,
        a: &DeviceCsr<T>,
        alpha: T::Accum,
        b: &DeviceCsr<T>,
        c: &mut DeviceDense<T>,
        stream: &Stream,
    ) -> Result<()> {
        let (m, n) = (self.problem.rows, self.problem.columns);
        if (c.nrows(), c.ncols(), c.layout()) != (m, n, Layout::RowMajor) {
            return Err(Error::Shape {
                op: "spgemm with a dense C",
                expected: format!("a row-major C of {m} x {n}"),
                found: format!("a {} one of {} x {}", c.layout(), c.nrows(), c.ncols()),
            });
        }
        begin(&self.device, &self.problem, a, b, stream)?;
        let own = c.data().join()?;
        let o = Operands::new(&self.problem, Sparse::of(a), Sparse::of(b), bits(alpha));
        let (to, ldc) = (c.data().address(), c.leading_dimension());
        // SAFETY: shapes and numbers of entries are the plan's, the patterns by the caller's word;
        // C has the room, and all buffers wait for the stream when they are freed.
        unsafe {
            match &mut self.rows {
                Rows::Shared(rows) => rows.rows(own, &o, 0..m, to, ldc)?,
                Rows::Naive(rows) => {
                    rows.begin(own, &o)?;
                    rows.rows(own, &o, 0..m, to, ldc)?;
                }
            }
        }
        end(&self.device, stream)
    }
}
