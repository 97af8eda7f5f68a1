//! Options of one execution of a plan.

use std::ops::ControlFlow;

use gustav_core::{Arith, Error, Index, Problem, Result, Scalar, Scale, Semiring};

use super::sparse_method::Progress;
use crate::device::{Device, DeviceBuffer, Stream};
use crate::matrix::{DeviceCsr, DeviceValues};

/// Options of one execution of a plan for SpMM or SpMV.
///
/// `Call::default()` computes op(A)·B on the device's own stream.
#[derive(Debug)]
pub struct Call<'a, T: Scalar> {
    pub(crate) common: Common<'a, T::Accum>,
    pub(crate) bias: Option<&'a DeviceBuffer<T::Accum>>,
    pub(crate) empty: Option<T::Accum>,
    pub(crate) reuse_conversion: bool,
}

/// The options common to all products.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Common<'a, A> {
    stream: Option<&'a Stream>,
    alpha: Option<A>,
    beta: Option<A>,
    pub ordered: bool,
}

impl<A> Default for Common<'_, A> {
    fn default() -> Self {
        Common { stream: None, alpha: None, beta: None, ordered: true }
    }
}

impl<'a, A: Arith> Common<'a, A> {
    /// Options with these factors, on the device's own stream.
    pub(crate) fn scaled(Scale { alpha, beta }: Scale<A>) -> Self {
        Common { alpha, beta, ..Self::default() }
    }

    /// α and β.
    pub(crate) fn scale(&self) -> Scale<A> {
        Scale { alpha: self.alpha, beta: self.beta }
    }

    /// The stream of the call on `device`.
    pub(crate) fn stream<'s>(&self, device: &'s Device) -> &'s Stream
    where
        'a: 's,
    {
        self.stream.unwrap_or_else(|| device.stream())
    }

    pub(crate) fn alpha(&self, semiring: Semiring) -> A {
        self.alpha.unwrap_or_else(|| semiring.one())
    }

    pub(crate) fn beta(&self, semiring: Semiring) -> A {
        self.beta.unwrap_or_else(|| semiring.zero())
    }
}

/// The builder methods that all calls have.
macro_rules! common {
    ($accum:ty) => {
        /// Queues the work on `stream`.
        #[must_use]
        pub fn on(mut self, stream: &'a $crate::device::Stream) -> Self {
            self.common.stream = Some(stream);
            self
        }

        /// Sets α; the semiring's one by default.
        #[must_use]
        pub fn alpha(mut self, alpha: $accum) -> Self {
            self.common.alpha = Some(alpha);
            self
        }

        /// Sets β; by default the semiring's zero, with which the matrix that it scales is not
        /// read.
        #[must_use]
        pub fn beta(mut self, beta: $accum) -> Self {
            self.common.beta = Some(beta);
            self
        }

        /// Leaves the ordering with work of other streams on the operands to the caller. Memory is
        /// still freed only after this work, and executions of one plan still run one after
        /// another.
        ///
        /// # Safety
        /// No work on another stream writes an operand, or uses the result, while this work runs.
        #[must_use]
        pub unsafe fn unordered(mut self) -> Self {
            self.common.ordered = false;
            self
        }
    };
}
impl<T: Scalar> Clone for Call<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Scalar> Copy for Call<'_, T> {}

impl<T: Scalar> Default for Call<'_, T> {
    fn default() -> Self {
        Call { common: Common::default(), bias: None, empty: None, reuse_conversion: false }
    }
}

impl<'a, T: Scalar> Call<'a, T> {
    /// As [`Call::default`].
    pub fn new() -> Self {
        Self::default()
    }

    common!(T::Accum);

    /// Sets the bias of [`Problem::epilogue`](gustav_core::Problem::epilogue) (SpMM): a value for
    /// every column of C, in the type of sums.
    #[must_use]
    pub fn bias(mut self, bias: impl Into<Option<&'a DeviceBuffer<T::Accum>>>) -> Self {
        self.bias = bias.into();
        self
    }

    /// Sets the value of C in empty rows with max and min (SpMM); 0 by default.
    #[must_use]
    pub fn empty(mut self, empty: T::Accum) -> Self {
        self.empty = Some(empty);
        self
    }

    /// Reuses the values of A that the last execution, or
    /// [`SpmmPlan::convert`](crate::SpmmPlan::convert), converted to the algorithm's own format.
    /// The values of this call are read only by algorithms without such a format, and if nothing
    /// was converted yet.
    #[must_use]
    pub fn reuse_conversion(mut self, reuse: bool) -> Self {
        self.reuse_conversion = reuse;
        self
    }
}

impl<'a, T: Scalar> Call<'a, T> {
    /// α and β.
    pub fn scale(&self) -> Scale<T::Accum> {
        self.common.scale()
    }

    /// The value that [`Call::empty`] set.
    pub fn value_of_empty_rows(&self) -> Option<T::Accum> {
        self.empty
    }

    /// Whether the product is added to the previous C.
    pub fn reads(&self, semiring: Semiring) -> bool {
        self.common.beta(semiring) != semiring.zero()
    }

    /// Checks that the call uses no option of GPUs.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a stream or a bias; [`Error::Argument`] for a value of empty rows
    /// if the problem has neither max nor min.
    pub fn check_host(&self, problem: &Problem) -> Result<()> {
        problem.check_reduction(false, self.empty.is_some(), None)?;
        let found = match (self.bias, self.common.stream) {
            (Some(_), _) => "a bias",
            (None, Some(_)) => "a stream",
            (None, None) => return Ok(()),
        };
        Err(Error::Unsupported {
            problem: problem.to_string(),
            backend: format!("{found} on the CPU"),
            reason: "an execution there has ended when it returns, and adds no bias".into(),
            nearest: "the call without it, or a plan of a GPU".into(),
        })
    }
}

impl<T: Scalar> From<()> for Call<'_, T> {
    fn from((): ()) -> Self {
        Self::default()
    }
}

impl<T: Scalar> From<Scale<T::Accum>> for Call<'_, T> {
    fn from(scale: Scale<T::Accum>) -> Self {
        Call { common: Common::scaled(scale), ..Self::default() }
    }
}

impl<'a, T: Scalar> Call<'a, T> {
    /// The common options of a call whose result is a new matrix.
    ///
    /// # Errors
    /// [`Error::Argument`] for a bias, a value of empty rows, and a β other than zero.
    pub(crate) fn product(&self, semiring: Semiring) -> Result<Common<'a, T::Accum>> {
        let refuse = |name, found: &str| {
            let expected = "none: the product is a new matrix".into();
            Err(Error::Argument { name, found: found.into(), expected })
        };
        if self.bias.is_some() {
            return refuse("bias", "one");
        }
        if self.common.beta(semiring) != semiring.zero() {
            return refuse("beta", "one");
        }
        if self.empty.is_some() {
            return refuse("empty", "one");
        }
        Ok(self.common)
    }
}

/// Options of one execution of a [`SpgemmPlan`](crate::SpgemmPlan).
///
/// `SpgemmCall::default()` computes op(A)·B on the device's own stream.
pub struct SpgemmCall<'a, T: Scalar, I: Index = u32, O: Index = u32, U: Scalar = T> {
    pub(crate) common: Common<'a, T::Accum>,
    pub(crate) add: Option<&'a DeviceCsr<U, I, O>>,
    pub(crate) watch: Option<&'a mut dyn FnMut(Progress) -> ControlFlow<()>>,
}

impl<T: Scalar, I: Index, O: Index, U: Scalar> Default for SpgemmCall<'_, T, I, O, U> {
    fn default() -> Self {
        SpgemmCall { common: Common::default(), add: None, watch: None }
    }
}

impl<'a, T: Scalar, I: Index, O: Index, U: Scalar> SpgemmCall<'a, T, I, O, U> {
    /// As [`SpgemmCall::default`].
    pub fn new() -> Self {
        Self::default()
    }

    common!(T::Accum);

    /// Adds β·D for a sparse `d` of C's shape: C holds the union of both patterns, rows sorted.
    /// With β equal to the semiring's zero, `d` is not read and C has the pattern of the product.
    #[must_use]
    pub fn add(mut self, beta: T::Accum, d: &'a DeviceCsr<U, I, O>) -> Self {
        self.add = Some(d);
        self.beta(beta)
    }

    /// The same call as a [`Call`], without a watcher; `None` if it adds D.
    pub fn without_sum(self) -> Option<Call<'a, T>> {
        let common = self.common;
        self.add.is_none().then(|| Call { common, ..Call::default() })
    }

    /// Calls `watch` after every part of C: a number of rows if the workspace is limited or memory
    /// did not suffice, else all of C. [`ControlFlow::Break`] cancels the rest. The execution waits
    /// for each part.
    #[must_use]
    pub fn watch(mut self, watch: &'a mut dyn FnMut(Progress) -> ControlFlow<()>) -> Self {
        self.watch = Some(watch);
        self
    }
}

/// Options of one execution of an SDDMM.
///
/// `SddmmCall::default()` computes X·Yᵀ at the nonzeros on the device's own stream.
#[derive(Clone, Copy, Debug)]
pub struct SddmmCall<'a, T: Scalar> {
    pub(crate) common: Common<'a, T::Accum>,
    pub(crate) factors: Option<DeviceValues<'a, T>>,
}

impl<T: Scalar> Default for SddmmCall<'_, T> {
    fn default() -> Self {
        SddmmCall { common: Common::default(), factors: None }
    }
}

impl<'a, T: Scalar> SddmmCall<'a, T> {
    /// As [`SddmmCall::default`].
    pub fn new() -> Self {
        Self::default()
    }

    common!(T::Accum);

    /// Whether the values are read before they are written.
    pub fn reads(&self) -> bool {
        self.common.beta(Semiring::PlusTimes) != T::Accum::zero()
    }

    /// Multiplies every result by the value of `factors` at its nonzero, such as those of A in
    /// (X·Yᵀ)∘A.
    #[must_use]
    pub fn factors(mut self, factors: impl Into<DeviceValues<'a, T>>) -> Self {
        self.factors = Some(factors.into());
        self
    }
}

impl<T: Scalar> From<()> for SddmmCall<'_, T> {
    fn from((): ()) -> Self {
        Self::default()
    }
}

impl<T: Scalar> From<Scale<T::Accum>> for SddmmCall<'_, T> {
    fn from(scale: Scale<T::Accum>) -> Self {
        SddmmCall { common: Common::scaled(scale), factors: None }
    }
}
