//! Computes all of C, in which the positions of a mask are searched.

use gustav_core::{Error, Index, Problem, Result, Scalar};

use super::kernels::Arguments;
use crate::device::DeviceBuffer;
use crate::matrix::{DeviceCsr, DevicePattern};
use crate::product::call::Common;
use crate::product::sparse_operands::{Matrix, Sparse};
use crate::spgemm::catalog::Config;
use crate::spgemm::plan::{Factors, Options, SpgemmPlan, choose, multiply_values};

/// Computes all of C with sorted rows.
pub(super) struct Whole<T: Scalar, I: Index, O: Index> {
    options: Options,
    /// `None` for a single call.
    plan: Option<SpgemmPlan<T, I, O>>,
    a: DevicePattern<I, O>,
    b: DevicePattern<I, O>,
    /// All of C, for later values.
    cached: Option<DeviceCsr<T, I, O>>,
    named: bool,
}

impl<T: Scalar, I: Index, O: Index> Whole<T, I, O> {
    /// Uses the algorithm that `options` request; `named` if the caller named it.
    ///
    /// # Errors
    /// As [`SpgemmPlan::new`], and [`Error::OutOfMemory`] if all of C exceeds the limit of the
    /// workspace.
    pub(super) fn new(
        a: &DevicePattern<I, O>,
        b: &DevicePattern<I, O>,
        problem: &Problem,
        options: &Options,
        named: bool,
        once: bool,
    ) -> Result<(Self, Config)> {
        let sorted = sorted(problem);
        let (config, _) = choose(&sorted, options, &a.device().planner_profile())?;
        let mut whole = Whole {
            options: *options,
            plan: None,
            a: a.clone(),
            b: b.clone(),
            cached: None,
            named,
        };
        if once && options.workspace.is_none() {
            return Ok((whole, config));
        }
        let plan = SpgemmPlan::new(a, b, &sorted, options)?;
        if let Some(most) = options.workspace {
            let entry = (T::DTYPE.bytes() + I::TYPE.bytes()) as u128;
            let full = problem.output_rows() as u128 * problem.columns as u128;
            let entries = plan.entries().map_or(full, u128::from);
            let offsets = (problem.output_rows() as u128 + 1) * O::TYPE.bytes() as u128;
            let needed = plan.workspace_bytes() as u128 + entries * entry + offsets;
            if needed > most as u128 {
                let what = "all of C within the limit of the workspace";
                return Err(Error::OutOfMemory { what, needed, available: Some(most as u64) });
            }
        }
        whole.plan = Some(plan);
        Ok((whole, config))
    }

    /// Whether the caller named the algorithm.
    pub(super) fn is_named(&self) -> bool {
        self.named
    }

    /// Bytes on the device.
    pub(super) fn bytes(&self) -> usize {
        let plan = self.plan.as_ref().map_or(0, SpgemmPlan::workspace_bytes);
        plan + self.cached.as_ref().map_or(0, DeviceCsr::bytes)
    }

    /// Caches `all` of C for [`Whole::refill`].
    pub(super) fn cache(&mut self, all: DeviceCsr<T, I, O>) {
        self.cached = Some(all);
    }

    /// All of C.
    ///
    /// # Errors
    /// As [`SpgemmPlan::execute`].
    pub(super) fn multiply(
        &mut self,
        problem: &Problem,
        values: Factors<'_, T>,
        call: &Common<'_, T::Accum>,
    ) -> Result<DeviceCsr<T, I, O>> {
        // Frees its memory for the next product.
        self.cached = None;
        let patterns = (&self.a, &self.b);
        match &mut self.plan {
            Some(plan) => plan.product(values, call, None),
            None => multiply_values(patterns, values, &sorted(problem), &self.options, *call),
        }
    }

    /// All of C with other values, in the cached product if there is one.
    ///
    /// # Errors
    /// As [`SpgemmPlan::execute_into`].
    pub(super) fn refill(
        &mut self,
        problem: &Problem,
        values: Factors<'_, T>,
        call: &Common<'_, T::Accum>,
    ) -> Result<DeviceCsr<T, I, O>> {
        if let (Some(mut all), Some(plan)) = (self.cached.take(), &mut self.plan) {
            match plan.product_into(values, &mut all, call) {
                // The algorithm has no refill.
                Err(Error::Unsupported { .. }) => {}
                other => return other.map(|()| all),
            }
        }
        self.multiply(problem, values, call)
    }
}

/// The problem of all of C, with sorted rows for the search.
fn sorted(problem: &Problem) -> Problem {
    problem.clone().sorted(true)
}

/// Arguments of the search in `all`, which takes B's place.
pub(super) fn among<T: Scalar, I: Index, O: Index>(
    all: &DeviceCsr<T, I, O>,
    offsets: &DeviceBuffer<O>,
    positions: &DeviceBuffer<I>,
) -> Arguments {
    let b = Sparse::of(all).into();
    Arguments::at(Matrix::default(), b, all.nrows(), offsets, positions)
}
