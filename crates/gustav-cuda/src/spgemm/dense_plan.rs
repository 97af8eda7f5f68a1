//! Plans whose result is a dense C, for the algorithms that compute one.

use gustav_core::{Batch, Layout, Problem, Result, Scalar};
use gustav_plan::Choice;

use super::catalog::Config;
use super::patterns::{Patterns, typed};
use super::plan::{Options, choose};
use crate::device::order::Uses;
use crate::matrix::{DeviceDense, DevicePattern, DeviceValues};
use crate::papers::spgemm::dense_naive::DenseNaive;
use crate::papers::spgemm::dense_rows::DenseRows;
use crate::papers::spgemm::shared_row::SharedRow;
use crate::product::checks::{self, on};
use crate::product::{Call, unsupported};

/// A plan for C = α·A·B with A m × k and B k × n in CSR and C dense, by `shared-row` or
/// `dense-naive`, for one pattern of A and of B and any values.
///
/// Elements that are not in the pattern of C become minus zero, from which [`DeviceDense::to_csr`]
/// recovers the pattern.
pub struct DensePlan<T: Scalar> {
    patterns: Patterns<T>,
    choice: Choice<Config>,
    rows: Rows,
}

enum Rows {
    Shared(Box<SharedRow>),
    Naive(Box<DenseNaive>),
}

impl<T: Scalar> DensePlan<T> {
    /// A plan for the patterns `a` and `b`. `options` name the algorithm, or one of its
    /// configurations. The plan sets the value type of `problem`.
    ///
    /// # Errors
    /// As [`super::SpgemmPlan::new`]; [`gustav_core::Error::Unsupported`] for algorithms without a dense C.
    pub fn new(
        a: &DevicePattern,
        b: &DevicePattern,
        problem: &Problem,
        options: &Options,
    ) -> Result<Self> {
        let problem = &typed::<T, u32, u32, T>(problem)?;
        let (config, reason) = choose(problem, options, &a.device().planner_profile())?;
        let patterns = Patterns::new(a, b, problem)?;
        let (device, o) = (&patterns.device, patterns.operands());
        let rows = match config {
            Config::SharedRow(c) => Rows::Shared(Box::new(DenseRows::new(device, &o, problem, c)?)),
            Config::DenseNaive(c) => Rows::Naive(Box::new(DenseRows::new(device, &o, problem, c)?)),
            other => {
                let backend = format!("{} with a dense C", other.algorithm());
                let reason = "its C is CSR";
                return Err(unsupported(problem, &backend, reason, "shared-row, or SpgemmPlan"));
            }
        };
        let choice = Choice { algorithm: config.algorithm(), config, reason: reason.into() };
        Ok(DensePlan { patterns, choice, rows })
    }

    /// The chosen algorithm and configuration, and the reason.
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

    /// Computes C = α·A·B into `c`, row-major m × n, after the work queued on the stream of the
    /// call, whose later work waits for it. `a` and `b` are values: matrices of the plan's
    /// patterns, or buffers in the order of their nonzeros. Nothing is allocated.
    ///
    /// # Errors
    /// [`gustav_core::Error::Pattern`] when `a` or `b` belongs to another pattern, [`gustav_core::Error::Length`] for
    /// another number of values, or when `c` has too few, [`gustav_core::Error::Shape`] when `c` has another shape or
    /// is column-major, [`gustav_core::Error::Argument`] for a bias or a β in `call` and for operands on another
    /// device, [`gustav_core::Error::Device`].
    pub fn execute<'v>(
        &mut self,
        a: impl Into<DeviceValues<'v, T>>,
        b: impl Into<DeviceValues<'v, T>>,
        c: &mut DeviceDense<T>,
        call: Call<'_, T>,
    ) -> Result<()> {
        let problem = &self.patterns.problem;
        let call = call.product(problem.semiring)?;
        let (m, n) = (problem.rows, problem.columns);
        let expected = Batch {
            op: "spgemm with a dense C",
            name: "C",
            count: 1,
            rows: m,
            columns: n,
            layout: Layout::RowMajor,
        };
        let ldc = checks::strides(&expected, c)?.line;
        on(&self.patterns.device, "C", c.data())?;
        let o = self.patterns.begin(a.into(), b.into(), &call)?;
        let own = self.patterns.device.stream();
        Uses::on(own).ordered(call.ordered).write(c.data())?;
        let to = c.data().address();
        // SAFETY: the patterns are the plan's own, with as many values; C is large enough, and all
        // buffers wait for the stream when they are freed.
        unsafe {
            match &mut self.rows {
                Rows::Shared(rows) => rows.rows(own, &o, 0..m, to, ldc)?,
                Rows::Naive(rows) => {
                    rows.begin(own, &o)?;
                    rows.rows(own, &o, 0..m, to, ldc)?;
                }
            }
        }
        self.patterns.end(&call)
    }
}
