//! Gradients of an SpGEMM: products under masks.

use std::sync::Arc;

use gustav_core::{
    Csr, Error, Index, Pattern, PatternView, Plans, Result, SpgemmRequest, TransposedPattern,
    Values, validate,
};
use gustav_cpu::CpuScalar;
use gustav_cpu::spgemm::SpgemmCall;

use crate::{Device, PatternRef, SpgemmPlan};

/// Plans for the gradients of C = A·B, all three sparse, given G, the gradient of a loss with
/// respect to the values of C, as values of C's pattern.
///
/// | of the values of | is | computed by |
/// |---|---|---|
/// | A | α·(G·Bᵀ) at A's nonzeros | an SpGEMM under A's pattern as a mask |
/// | B | α·(Aᵀ·G) at B's nonzeros | an SpGEMM under B's pattern as a mask |
///
/// Nothing outside of the patterns is stored. The transposed pattern of B is made once. C may have
/// fewer entries than the product, as under a mask, or more.
///
/// ```
/// use gustav::{Csr, Device, SpgemmGradients};
///
/// let a = Csr::<f64>::new(2, 2, vec![0, 1, 3], vec![0, 0, 1], vec![2.0, 3.0, 5.0])?;
/// let b = Csr::<f64>::new(2, 2, vec![0, 1, 2], vec![1, 1], vec![7.0, 11.0])?;
/// let c = gustav::spgemm(&a, &b)?;
/// assert_eq!(c.values().as_slice(), [14.0, 76.0]);
///
/// let mut gradients =
///     SpgemmGradients::<f64>::plan(a.pattern(), b.pattern(), c.pattern(), &Device::cpu())?;
/// let g = [1.0, 10.0];
/// let (mut of_a, mut of_b) = (vec![0.0; 3], vec![0.0; 2]);
/// gradients.of_a(&g, b.values(), &mut of_a, 1.0)?;
/// gradients.of_b(a.values(), &g, &mut of_b, 1.0)?;
/// assert_eq!(of_a, [7.0, 70.0, 110.0]);
/// assert_eq!(of_b, [32.0, 50.0]);
/// # Ok::<(), gustav::Error>(())
/// ```
pub struct SpgemmGradients<T: CpuScalar, I: Index = u32, O: Index = u32> {
    of_a: SpgemmPlan<'static, T, I, O>,
    of_b: SpgemmPlan<'static, T, I, O>,
    a: Pattern<I, O>,
    b: Pattern<I, O>,
    transposed_b: Arc<TransposedPattern<I, O>>,
    values_of_b: Vec<T>,
}

impl<T: CpuScalar, I: Index, O: Index> SpgemmGradients<T, I, O> {
    /// Plans both gradients on `device`, for patterns of A, B and C in host memory.
    ///
    /// # Errors
    /// [`Error::Shape`] when C has not the shape of A·B, [`Error::Unsupported`] for a pattern whose
    /// rows are not sorted, or that has an entry twice; what the plans of the two products return.
    pub fn plan(
        a: &Pattern<I, O>,
        b: &Pattern<I, O>,
        c: &Pattern<I, O>,
        device: &Device,
    ) -> Result<Self>
    where
        Device:
            Plans<SpgemmRequest<PatternRef<'static, I, O>>, T, Plan = SpgemmPlan<'static, T, I, O>>,
    {
        if (c.nrows(), c.ncols()) != (a.nrows(), b.ncols()) {
            return Err(Error::Shape {
                op: "gradients of an SpGEMM",
                expected: format!("C of {} x {}", a.nrows(), b.ncols()),
                found: format!("{} x {}", c.nrows(), c.ncols()),
            });
        }
        for (name, pattern) in [("A", a), ("B", b), ("C", c)] {
            canonical(name, pattern.view())?;
        }
        let transposed_b = b.transposed()?;
        let by_a = c.spgemm(transposed_b.pattern()).mask(a).calls(1000);
        let by_b = a.spgemm(c).transpose(true).mask(b).calls(1000);
        Ok(SpgemmGradients {
            of_a: device.plan(by_a)?,
            of_b: device.plan(by_b)?,
            a: a.clone(),
            b: b.clone(),
            values_of_b: vec![T::zero(); b.nnz()],
            transposed_b,
        })
    }

    /// The gradient with respect to the values of A, in the order of its nonzeros, times `alpha`;
    /// zero where no product is.
    ///
    /// # Errors
    /// [`Error::Length`] for another number of values, [`Error::Pattern`] for values of another
    /// pattern, and as [`SpgemmPlan::execute`].
    pub fn of_a<'v>(
        &mut self,
        g: impl Into<Values<'v, T>>,
        b: impl Into<Values<'v, T>>,
        to: &mut [T],
        alpha: T::Accum,
    ) -> Result<()> {
        validate::length("the gradient of A", self.a.nnz(), to.len())?;
        let values = b.into().fit("B", self.b.id(), self.b.nnz())?;
        self.transposed_b.gather(values, &mut self.values_of_b)?;
        let call = SpgemmCall::new().alpha(alpha);
        let g: Values<'_, T> = g.into();
        let found = self.of_a.execute(g, &self.values_of_b[..], call)?;
        spread(&found, self.a.view(), to);
        Ok(())
    }

    /// The gradient with respect to the values of B, in the order of its nonzeros, times `alpha`;
    /// zero where no product is.
    ///
    /// # Errors
    /// As [`SpgemmGradients::of_a`].
    pub fn of_b<'v>(
        &mut self,
        a: impl Into<Values<'v, T>>,
        g: impl Into<Values<'v, T>>,
        to: &mut [T],
        alpha: T::Accum,
    ) -> Result<()> {
        validate::length("the gradient of B", self.b.nnz(), to.len())?;
        let found = self.of_b.execute(a, g, SpgemmCall::new().alpha(alpha))?;
        spread(&found, self.b.view(), to);
        Ok(())
    }

    /// The plans: for A, and for B.
    pub fn plans(&self) -> (&SpgemmPlan<'static, T, I, O>, &SpgemmPlan<'static, T, I, O>) {
        (&self.of_a, &self.of_b)
    }
}

fn canonical<I: Index, O: Index>(name: &str, pattern: PatternView<'_, I, O>) -> Result<()> {
    if pattern.is_canonical() {
        return Ok(());
    }
    Err(Error::Unsupported {
        problem: format!("the pattern of {name}"),
        backend: "gradients of an SpGEMM".into(),
        reason: "it has unsorted rows, or an entry twice, and a gradient has one place".into(),
        nearest: "the matrix from Coo, whose rows are sorted and whose duplicates are added up"
            .into(),
    })
}

/// Brings the entries of `from`, whose sorted rows are parts of those of `pattern`, to their
/// positions there, and zeros to the others.
fn spread<T: CpuScalar, I: Index, O: Index>(
    from: &Csr<T, I, O>,
    pattern: PatternView<'_, I, O>,
    to: &mut [T],
) {
    for row in 0..pattern.nrows() {
        let (columns, values) = from.view().row(row);
        let mut found = columns.iter().zip(values).peekable();
        let first = pattern.offsets()[row].to_usize();
        for (place, column) in to[first..].iter_mut().zip(pattern.row(row)) {
            let here = found.next_if(|(j, _)| *j == column);
            *place = here.map_or(T::zero(), |(_, value)| *value);
        }
    }
}
