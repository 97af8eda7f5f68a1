//! Attention and softmax over the rows of a pattern, described.

use crate::{
    Error, Index, Operation, Pattern, PatternRef, PatternView, Plans, Problem, Result, Scalar,
    Semiring, request::request,
};

/// The widest rows of Q, K and V.
pub const WIDEST_HEAD: usize = 256;

/// O = softmax(leaky(scale·Q·Kᵀ + bias))·V, of every row over the nonzeros of a pattern, for every head.
///
/// leaky(x) is x for x > 0 and x times the negative slope of [`ScoreOptions`] elsewhere; the slope is
/// 1 where none is given.
///
/// Q has as many rows as the pattern, K and V as the pattern has columns. Heads lie side by side in
/// the columns of a matrix, or one above the other in its rows, see [`Batch`](crate::Batch); all
/// matrices are row-major. A row without nonzeros, or with scores of −∞ alone, is zero, and so are
/// its gradients for finite operands; NaN or +∞ among the scores makes a row NaN.
#[derive(Clone, Debug)]
pub struct AttentionRequest<P> {
    /// The pattern.
    pub pattern: P,
    /// What is computed; see [`SpmmRequest::problem`](crate::SpmmRequest::problem).
    pub problem: Problem,
}

request!(AttentionRequest);

impl<P> AttentionRequest<P> {
    /// Sets the number of heads, else one.
    #[must_use]
    pub fn heads(mut self, heads: usize) -> Self {
        self.problem.batch = heads;
        self
    }

    /// Sets the columns of V and O of one head, else those of Q and K.
    #[must_use]
    pub fn value_columns(mut self, columns: usize) -> Self {
        self.problem.value_columns = columns;
        self
    }

    /// Describes the gradients of the product in place of the product.
    pub fn gradients(self) -> AttentionGradientsRequest<P> {
        AttentionGradientsRequest { pattern: self.pattern, problem: self.problem }
    }
}

/// The gradients of an [`AttentionRequest`] with respect to Q, K, V and the bias.
#[derive(Clone, Debug)]
pub struct AttentionGradientsRequest<P> {
    /// The pattern.
    pub pattern: P,
    /// What is computed; see [`SpmmRequest::problem`](crate::SpmmRequest::problem).
    pub problem: Problem,
}

request!(AttentionGradientsRequest);

/// The softmax of values over every row of a pattern, and its gradient, for every head.
#[derive(Clone, Debug)]
pub struct SoftmaxRequest<P> {
    /// The pattern.
    pub pattern: P,
    /// What is computed; see [`SpmmRequest::problem`](crate::SpmmRequest::problem).
    pub problem: Problem,
}

request!(SoftmaxRequest);

impl<P> SoftmaxRequest<P> {
    /// Sets the number of heads, else one.
    #[must_use]
    pub fn heads(mut self, heads: usize) -> Self {
        self.problem.batch = heads;
        self
    }
}

/// How a score, leaky(scale·⟨q, k⟩ + bias), is made of an inner product; see [`AttentionRequest`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoreOptions<A> {
    /// The factor of inner products, else 1/√d for Q and K of d columns.
    pub scale: Option<A>,
    /// The negative slope of a leaky ReLU, as graph attention networks have it (Veličković et al.,
    /// 2018), else 1. It is the derivative at zero as well. A slope of zero makes −∞ NaN, a negative
    /// one +∞.
    pub negative_slope: Option<A>,
}

impl<A> Default for ScoreOptions<A> {
    fn default() -> Self {
        ScoreOptions { scale: None, negative_slope: None }
    }
}

impl<A: Scalar> ScoreOptions<A> {
    /// The factor of inner products of so many columns.
    pub fn scale(&self, columns: usize) -> A {
        self.scale.unwrap_or_else(|| A::from_f64(1.0 / (columns as f64).sqrt()))
    }

    /// The factor of what is not above zero.
    pub fn negative_slope(&self) -> A {
        self.negative_slope.unwrap_or_else(A::one)
    }
}

/// Where values that belong to nonzeros and heads are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HeadValues {
    /// One for every nonzero, of all heads.
    Shared,
    /// Those of a head are neighbours: `[head · nnz + nonzero]`.
    #[default]
    HeadMajor,
    /// Those of a nonzero are neighbours: `[nonzero · heads + head]`.
    NonzeroMajor,
}

impl HeadValues {
    /// Values of a product with so many heads and nonzeros.
    pub fn len(self, heads: usize, nnz: usize) -> usize {
        if self == HeadValues::Shared { nnz } else { nnz.saturating_mul(heads) }
    }

    /// Values from one head to the next, and from one nonzero to the next.
    pub fn strides(self, heads: usize, nnz: usize) -> (usize, usize) {
        match self {
            HeadValues::Shared => (0, 1),
            HeadValues::HeadMajor => (nnz, 1),
            HeadValues::NonzeroMajor => (1, heads),
        }
    }
}

impl Problem {
    /// The problem is of `operation`, attention or softmax, as a request describes it: with heads,
    /// widths and a type that it takes.
    ///
    /// # Errors
    /// [`Error::Unsupported`] when they are not, and the nearest thing that works.
    pub fn check_heads(&self, backend: &str, operation: Operation) -> Result<()> {
        let refuse = |reason: String, nearest: &str| {
            Err(Error::Unsupported {
                problem: self.to_string(),
                backend: backend.into(),
                reason,
                nearest: nearest.into(),
            })
        };
        if self.operation != operation {
            return refuse("it is another product".into(), &format!("Pattern::{operation}"));
        }
        if self.transpose_a {
            let reason = "it takes no transposed pattern";
            return refuse(reason.into(), "a plan for the transposed pattern itself");
        }
        if self.semiring != Semiring::PlusTimes {
            return refuse("its sums are of products".into(), "plus-times");
        }
        self.without_epilogue(backend)?;
        self.without_output(backend)?;
        if self.batch == 0 {
            return refuse("there is no head".into(), "one head");
        }
        if self.dtype.is_integer() {
            return refuse("exponentials are not integers".into(), "f32, f64, f16 or bf16");
        }
        if self.operation == Operation::Softmax {
            return Ok(());
        }
        if self.columns == 0 {
            return refuse("Q and K have no columns".into(), "a column at least");
        }
        let widest = self.columns.max(self.value_columns);
        if widest > WIDEST_HEAD {
            let reason = format!("rows of {widest} columns do not fit registers");
            let nearest = "heads of at most 256 columns, or sddmm, softmax and spmm";
            return refuse(reason, nearest);
        }
        Ok(())
    }
}

impl<'a, I: Index, O: Index> PatternView<'a, I, O> {
    /// Describes attention over the nonzeros of every row, Q and K of `columns` columns for each
    /// head.
    pub fn attention(self, columns: usize) -> AttentionRequest<PatternRef<'a, I, O>> {
        let problem = self.problem(Operation::Attention).attention(columns);
        AttentionRequest { pattern: self.into(), problem }
    }

    /// Describes the softmax of values over every row.
    pub fn softmax(self) -> SoftmaxRequest<PatternRef<'a, I, O>> {
        SoftmaxRequest { problem: self.problem(Operation::Softmax), pattern: self.into() }
    }
}

impl<I: Index, O: Index> Pattern<I, O> {
    /// Describes attention over the nonzeros of every row, Q and K of `columns` columns for each
    /// head.
    pub fn attention<'a>(&self, columns: usize) -> AttentionRequest<PatternRef<'a, I, O>> {
        let problem = self.view().problem(Operation::Attention).attention(columns);
        AttentionRequest { pattern: self.into(), problem }
    }

    /// Describes the softmax of values over every row.
    pub fn softmax<'a>(&self) -> SoftmaxRequest<PatternRef<'a, I, O>> {
        SoftmaxRequest { pattern: self.into(), problem: self.view().problem(Operation::Softmax) }
    }
}

impl Problem {
    /// Sets the columns of Q, K, V and O of a head.
    #[must_use]
    pub fn attention(self, columns: usize) -> Self {
        Problem { columns, value_columns: columns, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DType, Layout};

    #[test]
    fn what_no_request_describes_is_refused() {
        let pattern = Pattern::<u32, u32>::new(2, 3, vec![0, 1, 2], vec![2, 0]).expect("a pattern");
        let attention = pattern.attention(4).heads(2).value_columns(3).problem;
        let softmax = pattern.softmax().heads(2).problem;
        let check = |problem: &Problem, operation| problem.check_heads("a backend", operation);
        assert!(check(&attention, Operation::Attention).is_ok());
        assert!(check(&softmax, Operation::Softmax).is_ok());
        let of =
            |change: fn(Problem) -> Problem| [change(attention.clone()), change(softmax.clone())];
        let changes: [fn(Problem) -> Problem; 4] = [
            |p| p.transpose_a(true),
            |p| p.semiring(Semiring::MinPlus),
            |p| Problem { batch: 0, ..p },
            |p| Problem { dtype: DType::I32, output: DType::I32, ..p },
        ];
        for [attention, softmax] in changes.map(of) {
            assert!(check(&attention, Operation::Attention).is_err(), "{attention}");
            assert!(check(&softmax, Operation::Softmax).is_err(), "{softmax}");
        }
        assert!(check(&attention, Operation::Softmax).is_err());
        assert!(check(&softmax, Operation::Attention).is_err());
        assert!(
            check(
                &attention.layouts(Layout::RowMajor, Layout::RowMajor).columns(0),
                Operation::Attention
            )
            .is_err()
        );
    }
}
