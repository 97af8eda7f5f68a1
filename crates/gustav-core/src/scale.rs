//! The factors of one execution.

use crate::{Arith, Semiring};

/// α and β of C = scale(α, op(A)·B) ⊕ scale(β, C).
///
/// By default α is the semiring's one, and β its zero, with which C is not read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Scale<A> {
    /// Factor of the product.
    pub alpha: Option<A>,
    /// Factor of the previous C.
    pub beta: Option<A>,
}

impl<A: Arith> Scale<A> {
    /// The product alone: C = op(A)·B.
    pub fn new() -> Self {
        Scale { alpha: None, beta: None }
    }

    /// Sets α.
    #[must_use]
    pub fn alpha(self, alpha: A) -> Self {
        Scale { alpha: Some(alpha), ..self }
    }

    /// Sets β.
    #[must_use]
    pub fn beta(self, beta: A) -> Self {
        Scale { beta: Some(beta), ..self }
    }

    /// α and β over `semiring`.
    pub fn over(self, semiring: Semiring) -> (A, A) {
        (self.alpha.unwrap_or(semiring.one()), self.beta.unwrap_or(semiring.zero()))
    }
}

impl<A: Arith> From<()> for Scale<A> {
    fn from((): ()) -> Self {
        Scale::new()
    }
}
