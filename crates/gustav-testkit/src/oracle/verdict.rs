//! The outcome of a comparison.

use std::fmt::Display;

use gustav_core::DType;

use super::expected::Expected;
use super::operand::Value;

/// Whether a result is right, and how close to the bound it came.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Whether the pattern is right and every element within its bound.
    pub ok: bool,
    /// Elements compared.
    pub checked: usize,
    /// Largest ratio of an element's error to its bound (infinite when an exact element or a
    /// non-finite one is wrong); at most 1 when right.
    pub max_ratio: f64,
    /// The element with that ratio; `None` when there are no elements.
    pub worst: Option<Worst>,
    /// The first fault in the pattern of a sparse result.
    pub fault: Option<String>,
}

/// The element of a result that comes closest to its bound, or passes it by most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Worst {
    /// Row of C.
    pub row: usize,
    /// Column of C.
    pub col: usize,
    /// What stands there (rounded to f64 for `i64`).
    pub found: f64,
    /// What the reference has there.
    pub expected: f64,
    /// |found − expected|; infinite when one is not finite and should be, or the other way.
    pub error: f64,
    /// The largest error a correct kernel can make there.
    pub bound: f64,
}

impl Verdict {
    /// The verdict on nothing: right.
    pub(crate) fn empty() -> Self {
        Verdict { ok: true, checked: 0, max_ratio: 0.0, worst: None, fault: None }
    }

    /// A fault in the pattern.
    pub(crate) fn fault(fault: String) -> Self {
        Verdict { ok: false, fault: Some(fault), ..Self::empty() }
    }

    /// Takes in one element of a result of type `dtype`.
    pub(crate) fn element(
        &mut self,
        dtype: DType,
        row: usize,
        col: usize,
        expected: &Expected,
        found: impl Value,
    ) {
        let judgement = expected.judge(dtype, found);
        let ratio = judgement.ratio();
        self.checked += 1;
        // A ratio that cannot be compared is wrong.
        let right = ratio <= 1.0;
        self.ok &= right;
        if self.worst.is_none() || ratio > self.max_ratio {
            self.max_ratio = ratio;
            self.worst = Some(Worst {
                row,
                col,
                found: found.to_f64(),
                expected: expected.value(),
                error: judgement.error,
                bound: judgement.bound,
            });
        }
    }

    /// Both verdicts in one; of equals, `self` is kept (rows come in order).
    #[must_use]
    pub(crate) fn and(self, next: Self) -> Self {
        let (ok, checked) = (self.ok && next.ok, self.checked + next.checked);
        let fault = self.fault.or(next.fault);
        let next_worse =
            self.worst.is_none() || (next.worst.is_some() && next.max_ratio > self.max_ratio);
        let (max_ratio, worst) =
            if next_worse { (next.max_ratio, next.worst) } else { (self.max_ratio, self.worst) };
        Verdict { ok, checked, max_ratio, worst, fault }
    }

    /// Error of the worst element: 0 when there are no elements.
    pub fn max_error(&self) -> f64 {
        self.worst.map_or(0.0, |w| w.error)
    }

    /// Bound of the worst element: 0 when there are no elements.
    pub fn error_bound(&self) -> f64 {
        self.worst.map_or(0.0, |w| w.bound)
    }
}

impl Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let word = if self.ok { "right" } else { "wrong" };
        write!(f, "{word}: {} elements", self.checked)?;
        if let Some(fault) = &self.fault {
            write!(f, ", {fault}")?;
        }
        if let Some(w) = &self.worst {
            write!(
                f,
                ", worst at row {}, column {}: found {:e}, expected {:e}, error {:.3e}, bound {:.3e}",
                w.row, w.col, w.found, w.expected, w.error, w.bound
            )?;
        }
        Ok(())
    }
}
