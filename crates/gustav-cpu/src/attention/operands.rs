//! What executions of an attention are given, and whether it fits.

use gustav_core::{
    Batch, DenseView, DenseViewMut, HeadValues, Layout, PatternId, Problem, Result, Scalar,
    ScoreOptions, Strides, Values, validate,
};

use super::segmented::{OfNonzeros, Rows};

/// Options of one execution of an [`AttentionPlan`](super::AttentionPlan); `()` is taken in its
/// place.
#[derive(Debug)]
pub struct AttentionCall<'v, T: Scalar> {
    /// How scores are made of inner products.
    pub scores: ScoreOptions<T::Accum>,
    /// What is added to scores, for every nonzero.
    pub bias: Option<(Values<'v, T>, HeadValues)>,
    /// Where that goes which gradients need: for every head and row, `[head · rows + row]`, the
    /// logarithm of the sum of exponentials of the scores; −∞ for a row without any.
    pub lse: Option<&'v mut [T::Accum]>,
}

/// What an execution of an [`AttentionGradientsPlan`](super::AttentionGradientsPlan) reads.
#[derive(Clone, Copy, Debug)]
pub struct AttentionInputs<'v, T: Scalar> {
    /// Q.
    pub q: DenseView<'v, T>,
    /// K.
    pub k: DenseView<'v, T>,
    /// V.
    pub v: DenseView<'v, T>,
    /// O, as the product left it.
    pub o: DenseView<'v, T>,
    /// What [`AttentionCall::lse`] stored.
    pub lse: &'v [T::Accum],
    /// The gradient with respect to O.
    pub of_o: DenseView<'v, T>,
}

/// What it writes.
#[derive(Debug)]
pub struct AttentionGradients<'v, T: Scalar> {
    /// The gradient with respect to Q.
    pub of_q: DenseViewMut<'v, T>,
    /// With respect to K.
    pub of_k: DenseViewMut<'v, T>,
    /// With respect to V.
    pub of_v: DenseViewMut<'v, T>,
}

/// Options of one execution of an [`AttentionGradientsPlan`](super::AttentionGradientsPlan):
/// scores and bias are those of the product; `()` is taken in its place.
#[derive(Debug)]
pub struct AttentionGradientsCall<'v, T: Scalar> {
    /// As [`AttentionCall::scores`].
    pub scores: ScoreOptions<T::Accum>,
    /// As [`AttentionCall::bias`].
    pub bias: Option<(Values<'v, T>, HeadValues)>,
    /// Where the gradient with respect to the bias goes, for every nonzero and head; the sum over
    /// heads where they share one.
    pub of_bias: Option<(&'v mut [T], HeadValues)>,
}

impl<T: Scalar> Default for AttentionCall<'_, T> {
    fn default() -> Self {
        AttentionCall { scores: ScoreOptions::default(), bias: None, lse: None }
    }
}

impl<T: Scalar> From<()> for AttentionCall<'_, T> {
    fn from((): ()) -> Self {
        Self::default()
    }
}

impl<T: Scalar> Default for AttentionGradientsCall<'_, T> {
    fn default() -> Self {
        AttentionGradientsCall { scores: ScoreOptions::default(), bias: None, of_bias: None }
    }
}

impl<T: Scalar> From<()> for AttentionGradientsCall<'_, T> {
    fn from((): ()) -> Self {
        Self::default()
    }
}

/// The checks of an execution.
pub(crate) struct Checked<'p> {
    pub problem: &'p Problem,
    pub pattern: PatternId,
}

impl Checked<'_> {
    /// Where heads and rows are in a matrix of `found` rows and columns: `rows` × `columns` each,
    /// row-major.
    fn strides(
        &self,
        name: &'static str,
        (rows, columns): (usize, usize),
        found: (usize, usize),
        layout: Layout,
        ld: usize,
    ) -> Result<Strides> {
        let (op, count) = (self.problem.operation.name(), self.problem.batch);
        let batch = Batch { op, name, count, rows, columns, layout: Layout::RowMajor };
        // Rows without elements are not read, whatever their distance.
        let ld = if columns == 0 { 0 } else { ld };
        batch.strides(found, layout, ld)
    }

    /// The heads of `m`.
    pub(crate) fn matrix<T: Scalar>(
        &self,
        name: &'static str,
        shape: (usize, usize),
        m: &DenseView<'_, T>,
    ) -> Result<Rows<*const T>> {
        let (found, ld) = ((m.nrows(), m.ncols()), m.leading_dimension());
        let Strides { matrix: head, line: ld } =
            self.strides(name, shape, found, m.layout(), ld)?;
        Ok(Rows { start: m.as_ptr(), head, ld })
    }

    /// The heads of `m`, to be written.
    pub(crate) fn result<T: Scalar>(
        &self,
        name: &'static str,
        shape: (usize, usize),
        m: &mut DenseViewMut<'_, T>,
    ) -> Result<Rows<*mut T>> {
        let (found, ld) = ((m.nrows(), m.ncols()), m.leading_dimension());
        let Strides { matrix: head, line: ld } =
            self.strides(name, shape, found, m.layout(), ld)?;
        Ok(Rows { start: m.as_mut_ptr(), head, ld })
    }

    /// There is a number for every head and row.
    pub(crate) fn of_rows(&self, name: &'static str, found: usize) -> Result<()> {
        let Problem { batch, rows, .. } = *self.problem;
        validate::length(name, rows.saturating_mul(batch), found)
    }

    /// Values of nonzeros in `order`.
    pub(crate) fn of_nonzeros<'v, T>(
        &self,
        name: &'static str,
        (values, order): (Values<'v, T>, HeadValues),
    ) -> Result<OfNonzeros<&'v [T]>> {
        self.pattern.check(name, values.pattern_id())?;
        let values = values.as_slice();
        self.strided(name, values.len(), order, values)
    }

    /// `values`, `found` of them, as values of nonzeros in `order`.
    pub(crate) fn strided<V>(
        &self,
        name: &'static str,
        found: usize,
        order: HeadValues,
        values: V,
    ) -> Result<OfNonzeros<V>> {
        let Problem { batch, nnz, .. } = *self.problem;
        validate::length(name, order.len(batch, nnz), found)?;
        let (head, nonzero) = order.strides(batch, nnz);
        Ok(OfNonzeros { values, head, nonzero })
    }
}
