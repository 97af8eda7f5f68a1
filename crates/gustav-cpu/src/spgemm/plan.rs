//! A plan for SpGEMM: the public interface.

use std::any::Any;
use std::marker::PhantomData;

use gustav_core::{
    AnyPattern, Csr, CsrView, DType, Error, Index, IndexSlice, Pattern, PatternRef, Problem,
    Result, Scalar, Values, validate, with_pattern,
};
use gustav_plan::Choice;

use super::compiled::{Plan, Request, SpgemmKernels};
use super::operands::{Matrix, Product, Rows};
use crate::{Config, Options};

/// A plan for C = α·op(A)·B ⊕ β·D, for one pattern of A and of B and any values.
///
/// op(A) is m × k and B k × n. C holds every entry that the patterns produce exactly once; sums of
/// exactly zero stay as explicit zeros unless [`Options::drop_zeros`] is set. Its rows are sorted
/// if [`Problem::sorted`] is set. A and B may be unsorted and hold duplicates. Results are the same
/// to the bit from run to run and for any number of threads.
///
/// A plan [under a mask](SpgemmPlan::masked) computes C⟨M⟩: of these entries those at positions
/// where the mask has one. Rows come out sorted.
///
/// The first product finds the pattern of C; later ones compute values alone and share it, unless
/// zeros are dropped.
pub struct SpgemmPlan<'a, T: SpgemmKernels, I: Index = u32, O: Index = u32> {
    inner: Plan<'a, T>,
    indices: PhantomData<fn() -> (I, O)>,
}

/// Options of one product op(A)·B.
///
/// `U` is the type of C's values: that of A and B, or of their sums where
/// [`Problem::output`] says so.
///
/// ```
/// use gustav_core::{Csr, Problem};
/// use gustav_cpu::spgemm::{SpgemmCall, multiply};
///
/// let a = Csr::<f32>::new(2, 2, vec![0, 1, 2], vec![1, 0], vec![2.0, 3.0])?;
/// let problem = Problem::spgemm(&a.view(), &a.view());
/// let call = SpgemmCall::new().alpha(10.0);
/// let c = multiply(&a, &a, &problem, &Default::default(), call)?;
/// assert_eq!(c.values(), [60.0, 60.0]);
/// # Ok::<(), gustav_core::Error>(())
/// ```
#[derive(Debug)]
pub struct SpgemmCall<'d, T: Scalar, U: Scalar = T, I: Index = u32, O: Index = u32> {
    /// The factor α of the product; `None` for the semiring's one.
    pub alpha: Option<T::Accum>,
    /// β and D: C then has the union of both patterns, rows sorted. β equal to the semiring's zero
    /// leaves D unread and C with the pattern of the product.
    pub add: Option<(T::Accum, CsrView<'d, U, I, O>)>,
    /// A matrix that an earlier product of the same plan returned: its values are overwritten, and
    /// it is returned.
    pub reuse: Option<Csr<U, I, O>>,
}

impl<T: Scalar, I: Index, O: Index> SpgemmCall<'_, T, T, I, O> {
    /// A product with α = 1 into a new matrix.
    pub fn new() -> Self {
        Self::default()
    }
}

impl<'d, T: Scalar, U: Scalar, I: Index, O: Index> SpgemmCall<'d, T, U, I, O> {
    /// Sets α, see [`SpgemmCall::alpha`](#structfield.alpha).
    #[must_use]
    pub fn alpha(self, alpha: T::Accum) -> Self {
        SpgemmCall { alpha: Some(alpha), ..self }
    }

    /// Adds β·D, see [`SpgemmCall::add`](#structfield.add).
    #[must_use]
    pub fn add(self, beta: T::Accum, d: impl Into<CsrView<'d, U, I, O>>) -> Self {
        SpgemmCall { add: Some((beta, d.into())), ..self }
    }

    /// Writes into `c`, see [`SpgemmCall::reuse`](#structfield.reuse).
    #[must_use]
    pub fn reuse(self, c: Csr<U, I, O>) -> Self {
        SpgemmCall { reuse: Some(c), ..self }
    }
}

impl<T: Scalar, U: Scalar, I: Index, O: Index> Default for SpgemmCall<'_, T, U, I, O> {
    fn default() -> Self {
        SpgemmCall { alpha: None, add: None, reuse: None }
    }
}

impl<'a, T: SpgemmKernels, I: Index, O: Index> SpgemmPlan<'a, T, I, O> {
    /// Reads the patterns of `a` and `b` and chooses the algorithm.
    ///
    /// # Errors
    /// [`Error::Shape`] when the inner dimensions of `a` and `b` differ, [`Error::Pattern`] when
    /// `problem` was made for other patterns or for values of another type, [`Error::Unsupported`]
    /// when the algorithm named in `options` cannot compute `problem`, [`Error::Argument`] when the
    /// machine lacks the instruction set named there, [`Error::OutOfMemory`].
    pub fn new(
        a: impl Into<PatternRef<'a, I, O>>,
        b: impl Into<PatternRef<'a, I, O>>,
        problem: &Problem,
        options: &Options,
    ) -> Result<Self> {
        Self::for_patterns([a.into().into(), b.into().into()], None, problem, options)
    }

    /// Plans products under a mask of C's shape.
    ///
    /// # Errors
    /// As [`SpgemmPlan::new`], [`Error::Shape`] when the mask has another shape, and
    /// [`Error::Unsupported`] when `options` name an algorithm that computes all of C.
    pub fn masked(
        a: impl Into<PatternRef<'a, I, O>>,
        b: impl Into<PatternRef<'a, I, O>>,
        mask: impl Into<PatternRef<'a, I, O>>,
        problem: &Problem,
        options: &Options,
    ) -> Result<Self> {
        let operands = [a.into().into(), b.into().into()];
        Self::for_patterns(operands, Some(mask.into().into()), problem, options)
    }

    fn for_patterns(
        operands: [AnyPattern<'a>; 2],
        mask: Option<AnyPattern<'a>>,
        problem: &Problem,
        options: &Options,
    ) -> Result<Self> {
        if problem.dtype != T::DTYPE {
            let name = |dtype: DType| format!("operands with values of {dtype}");
            let (expected, found) = (name(problem.dtype), name(T::DTYPE));
            return Err(Error::Pattern { expected, found });
        }
        let inner = T::spgemm_plan(operands, mask, problem, options)?;
        Ok(SpgemmPlan { inner, indices: PhantomData })
    }

    /// The chosen algorithm and configuration, and the reason.
    pub fn choice(&self) -> &Choice<Config> {
        &self.inner.setup.choice
    }

    /// Intermediate products: the number of multiplications, which follows from the patterns of A
    /// and B. The usual count of floating-point operations is twice this.
    pub fn products(&self) -> u64 {
        self.inner.setup.products()
    }

    /// Bytes that the plan holds beside the patterns it was made for.
    pub fn workspace_bytes(&self) -> usize {
        self.inner.bytes()
    }

    /// Computes C from the values of A and B: matrices of the plan's patterns, or slices in the
    /// order of their nonzeros.
    ///
    /// # Errors
    /// [`Error::Pattern`] for values of other patterns, for a C of another type than the plan's and
    /// for a matrix to reuse that is not of the plan's pattern of C; [`Error::Length`] for too few
    /// or too many values; [`Error::Shape`] for a D of another shape; [`Error::Unsupported`] for D
    /// under a mask, and for a matrix to reuse where every product has a pattern of its own: with
    /// D, where zeros are dropped, and by the algorithms of Chen et al.; [`Error::Overflow`] when
    /// the entries of C outnumber the offset type; [`Error::OutOfMemory`].
    pub fn execute<'v, U: Scalar<Accum = T::Accum>>(
        &mut self,
        a: impl Into<Values<'v, T>>,
        b: impl Into<Values<'v, T>>,
        call: SpgemmCall<'_, T, U, I, O>,
    ) -> Result<Csr<U, I, O>> {
        self.inner.setup.check_output(U::DTYPE)?;
        let (a, b, plan) = (a.into(), b.into(), &mut self.inner);
        let SpgemmCall { alpha, add, mut reuse } = call;
        let add = add.as_ref().map(|(beta, d)| (*beta, Matrix::new(d)));
        let of_c = reuse.as_mut().map(|c| (c.pattern().id(), c.values_mut()));
        let request = Request { alpha, add, reuse: of_c };
        let product: Option<Product<U>> = if U::DTYPE == T::DTYPE {
            T::spgemm(plan, a, b, request.cast())?.and_then(same)
        } else {
            T::spgemm_of_sums(plan, a, b, request.cast())?.and_then(same)
        };
        match product {
            Some(product) => product.into_csr(),
            None => reuse.ok_or_else(unknown_pattern),
        }
    }

    /// Computes the values of C alone, in `values`, where C has pattern `of_c`, that of an earlier product of this
    /// plan; `alpha` is the semiring's one unless given.
    ///
    /// # Errors
    /// As [`SpgemmPlan::execute`] with a matrix to reuse; [`Error::Length`] when `values` are not as many as the
    /// entries of `of_c`.
    pub fn execute_into<'v, U: Scalar<Accum = T::Accum>>(
        &mut self,
        a: impl Into<Values<'v, T>>,
        b: impl Into<Values<'v, T>>,
        alpha: Option<T::Accum>,
        (of_c, values): (&Pattern<I, O>, &mut [U]),
    ) -> Result<()> {
        self.inner.setup.check_output(U::DTYPE)?;
        validate::length("values of C", of_c.nnz(), values.len())?;
        let (a, b, plan) = (a.into(), b.into(), &mut self.inner);
        let request = Request { alpha, add: None, reuse: Some((of_c.id(), values)) };
        if U::DTYPE == T::DTYPE {
            T::spgemm(plan, a, b, request.cast()).map(drop)
        } else {
            T::spgemm_of_sums(plan, a, b, request.cast()).map(drop)
        }
    }

    /// Whether all products of this plan have the pattern of the first, of which [`SpgemmPlan::execute_into`] computes
    /// the values.
    pub fn keeps_pattern(&self) -> bool {
        self.inner.setup.same_pattern()
    }
}

impl<'c, A, U: Scalar> Request<'c, A, U> {
    /// The request with `U` spelled `V`: both are the same type.
    fn cast<V: Scalar>(self) -> Request<'c, A, V> {
        let Request { alpha, add, reuse } = self;
        let matrix =
            |m: Matrix<'c, U>| Matrix { rows: m.rows, values: bytemuck::cast_slice(m.values) };
        Request {
            alpha,
            add: add.map(|(beta, d)| (beta, matrix(d))),
            reuse: reuse.map(|(id, values)| (id, bytemuck::cast_slice_mut(values))),
        }
    }
}

impl<'a, U: Scalar> Matrix<'a, U> {
    fn new<I: Index, O: Index>(m: &CsrView<'a, U, I, O>) -> Self {
        let (offsets, columns) = (IndexSlice::new(m.offsets()), IndexSlice::new(m.indices()));
        let rows = Rows { nrows: m.nrows(), ncols: m.ncols(), offsets, columns };
        Matrix { rows, values: m.values().as_slice() }
    }
}

impl<U: Scalar> Product<U> {
    fn into_csr<I: Index, O: Index>(self) -> Result<Csr<U, I, O>> {
        let pattern: Option<Pattern<I, O>> = with_pattern!(self.pattern, |p| match p {
            PatternRef::Shared(pattern) => same(pattern),
            PatternRef::Borrowed(view) => same(view.to_owned()?),
        });
        Csr::from_pattern(&pattern.ok_or_else(unknown_pattern)?, self.values)
    }
}

/// `from` as a `B`, if `A` and `B` are the same type.
pub(super) fn same<A: 'static, B: 'static>(from: A) -> Option<B> {
    let mut from = Some(from);
    (&mut from as &mut dyn Any).downcast_mut::<Option<B>>()?.take()
}

/// The error for a matrix that is not a product of the plan.
pub(super) fn unknown_pattern() -> Error {
    Error::Pattern {
        expected: "an earlier product of this plan".into(),
        found: "a matrix from elsewhere".into(),
    }
}
