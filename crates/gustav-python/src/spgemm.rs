//! Sparse × sparse.

use std::sync::Arc;

use gustav::{
    CpuScalar, Csr, CsrView, Device, Index, Pattern as Owned, Scalar, Spgemm, SpgemmCall,
    with_scalar,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::arguments;
use crate::array::Array;
use crate::block::Block;
use crate::element::Element;
use crate::error::{Fault, interruptible};
use crate::pattern::{AnyOwned, AnyPattern, AnyRef, Pattern, Source};
use crate::place::Place;
use crate::scale::{Factors, semiring};
use crate::shared::Shared;
use crate::threads;

/// How a product is computed.
#[derive(Clone)]
pub struct Options {
    pub transpose: bool,
    pub semiring: gustav::Semiring,
    pub sorted: bool,
    pub deterministic: bool,
}

impl Default for Options {
    fn default() -> Self {
        let semiring = gustav::Semiring::PlusTimes;
        Options { transpose: false, semiring, sorted: true, deterministic: false }
    }
}

/// Nonzeros in rows of B that are many enough for a product to take long.
const LENGTH_OF_ROWS: usize = 256;

/// An estimate of the multiplications. How many there are is not known before; few nonzeros have few.
fn size_of_product(nonzeros_of_a: usize, nonzeros_of_b: usize) -> usize {
    LENGTH_OF_ROWS.saturating_mul(nonzeros_of_a.max(nonzeros_of_b))
}

type Arrays = (Block, Block, Block);

/// Row offsets, column indices and values of `alpha * op(A) @ B`, all of it or at the places of a mask.
#[pyfunction]
pub fn spgemm(
    py: Python<'_>,
    pattern_of_a: &Bound<'_, PyAny>,
    values_of_a: &Bound<'_, PyAny>,
    pattern_of_b: &Bound<'_, PyAny>,
    values_of_b: &Bound<'_, PyAny>,
    mask: Option<&Bound<'_, PyAny>>,
    alpha: Option<&Bound<'_, PyAny>>,
    transpose: bool,
    semiring_name: &str,
    sorted: bool,
    deterministic: bool,
    #[pyo3(from_py_with = arguments::threads)] threads: Option<usize>,
) -> PyResult<Arrays> {
    let (a, b) = (Source::of(pattern_of_a, &Place::Host)?, Source::of(pattern_of_b, &Place::Host)?);
    let mask = mask.map(|mask| Source::of(mask, &Place::Host)).transpose()?;
    let values_of_a = Array::vector("values of a", values_of_a, &Place::Host)?;
    let values_of_b = Array::vector("values of b", values_of_b, &Place::Host)?;
    let dtype = values_of_a.element.value("values of a")?;
    let factors = Factors::new(alpha, None, dtype)?;
    let semiring = semiring(semiring_name)?;
    let options = Options { transpose, semiring, sorted, deterministic };
    let device = threads::device(threads)?;
    let size = size_of_product(values_of_a.len(), values_of_b.len());
    with_scalar!(dtype, |T| interruptible(py, size, move || device.threads().run(|| {
        let (a, b) = (a.pattern()?, b.pattern()?);
        let mask = mask.as_ref().map(Source::pattern).transpose()?;
        let values = (values_of_a.slice::<T>()?, values_of_b.slice::<T>()?);
        match (a, b, mask) {
            (AnyRef::Small(a), AnyRef::Small(b), None) => {
                product((a.view(), b.view(), None), values, factors, &options, &device)
            }
            (AnyRef::Small(a), AnyRef::Small(b), Some(AnyRef::Small(m))) => {
                product((a.view(), b.view(), Some(m.view())), values, factors, &options, &device)
            }
            (AnyRef::Long(a), AnyRef::Long(b), None) => {
                product((a.view(), b.view(), None), values, factors, &options, &device)
            }
            (AnyRef::Long(a), AnyRef::Long(b), Some(AnyRef::Long(m))) => {
                product((a.view(), b.view(), Some(m.view())), values, factors, &options, &device)
            }
            (AnyRef::Large(a), AnyRef::Large(b), None) => {
                product((a.view(), b.view(), None), values, factors, &options, &device)
            }
            (AnyRef::Large(a), AnyRef::Large(b), Some(AnyRef::Large(m))) => {
                product((a.view(), b.view(), Some(m.view())), values, factors, &options, &device)
            }
            _ => Err(other_indices()),
        }
    })))
}

/// The refusal of operands whose indices differ in their types.
pub fn other_indices() -> Fault {
    PyTypeError::new_err("indices of the operands differ in their types; give all of them in one")
        .into()
}

type View<'a, I, O> = gustav::PatternView<'a, I, O>;

fn product<T: CpuScalar, I: Index, O: Index>(
    (a, b, mask): (View<'_, I, O>, View<'_, I, O>, Option<View<'_, I, O>>),
    (of_a, of_b): (&[T], &[T]),
    factors: Factors,
    options: &Options,
    device: &Device,
) -> Result<Arrays, Fault> {
    let (a, b) = (a.with_values(of_a)?, b.with_values(of_b)?);
    let Options { transpose, semiring, sorted, deterministic } = options.clone();
    let mut product = Spgemm::new(a, b)
        .device(device.clone())
        .transpose(transpose)
        .semiring(semiring)
        .sorted(sorted)
        .deterministic(deterministic);
    if let Some(alpha) = factors.scale::<T::Accum>().alpha {
        product = product.alpha(alpha);
    }
    // Values of a mask are not read, but a matrix has them.
    let ones = vec![T::one(); mask.map_or(0, |mask| mask.nnz())];
    if let Some(mask) = mask {
        let mask: CsrView<'_, T, I, O> = mask.with_values(&ones)?;
        product = product.mask(mask);
    }
    arrays(product.run()?)
}

/// The arrays of a matrix, which nobody else has.
fn arrays<T: Scalar, I: Index, O: Index>(c: Csr<T, I, O>) -> Result<Arrays, Fault> {
    let (offsets, indices, values) = c.into_parts()?;
    let (offsets, indices) = (Block::owned_indices(offsets), Block::owned_indices(indices));
    Ok((offsets, indices, Block::values(values)))
}

/// What a [`SpgemmPlan`] does, whatever its types.
trait AnyPlan: Send {
    fn execute(&mut self, a: &Array, b: &Array) -> Result<(AnyOwned, Block), Fault>;
}

struct Typed<T: CpuScalar, I: Index, O: Index> {
    plan: gustav::SpgemmPlan<'static, T, I, O>,
    wrap: fn(Owned<I, O>) -> AnyOwned,
}

impl<T: CpuScalar, I: Index, O: Index> AnyPlan for Typed<T, I, O> {
    fn execute(&mut self, a: &Array, b: &Array) -> Result<(AnyOwned, Block), Fault> {
        let call = SpgemmCall::new();
        let c = self.plan.execute(a.slice::<T>()?, b.slice::<T>()?, call)?;
        let pattern = (self.wrap)(c.pattern().clone());
        Ok((pattern, Block::values(c.into_values())))
    }
}

/// A product of two patterns, whose result has one pattern in every execution.
#[pyclass(frozen, module = "gustav._gustav")]
pub struct SpgemmPlan {
    plan: Arc<Shared<Box<dyn AnyPlan>>>,
    size: usize,
}

#[pymethods]
impl SpgemmPlan {
    #[new]
    fn new(
        py: Python<'_>,
        a: &Bound<'_, Pattern>,
        b: &Bound<'_, Pattern>,
        mask: Option<&Bound<'_, Pattern>>,
        dtype: &str,
        calls: u64,
    ) -> PyResult<Self> {
        let dtype = Element::named(dtype).value("dtype")?;
        let host = |p: &Bound<'_, Pattern>| p.get().inner.on_host().cloned();
        let (a, b, mask) = (host(a)?, host(b)?, mask.map(host).transpose()?);
        let device = threads::device(None)?;
        let size = size_of_product(a.nnz(), b.nnz());
        let plan =
            with_scalar!(dtype, |T| interruptible(py, size, move || device.threads().run(|| {
                let plan: Box<dyn AnyPlan> = match (a, b, mask) {
                    (AnyOwned::Small(a), AnyOwned::Small(b), None) => {
                        planned::<T, _, _>(a, b, None, calls, &device, AnyOwned::Small)?
                    }
                    (AnyOwned::Small(a), AnyOwned::Small(b), Some(AnyOwned::Small(m))) => {
                        planned::<T, _, _>(a, b, Some(m), calls, &device, AnyOwned::Small)?
                    }
                    (AnyOwned::Long(a), AnyOwned::Long(b), None) => {
                        planned::<T, _, _>(a, b, None, calls, &device, AnyOwned::Long)?
                    }
                    (AnyOwned::Long(a), AnyOwned::Long(b), Some(AnyOwned::Long(m))) => {
                        planned::<T, _, _>(a, b, Some(m), calls, &device, AnyOwned::Long)?
                    }
                    (AnyOwned::Large(a), AnyOwned::Large(b), None) => {
                        planned::<T, _, _>(a, b, None, calls, &device, AnyOwned::Large)?
                    }
                    (AnyOwned::Large(a), AnyOwned::Large(b), Some(AnyOwned::Large(m))) => {
                        planned::<T, _, _>(a, b, Some(m), calls, &device, AnyOwned::Large)?
                    }
                    _ => return Err(other_indices()),
                };
                Ok(plan)
            })))?;
        Ok(SpgemmPlan { plan: Arc::new(Shared::new(plan)), size })
    }

    /// The pattern of the result, and its values for these values of the operands.
    fn execute(
        &self,
        py: Python<'_>,
        values_of_a: &Bound<'_, PyAny>,
        values_of_b: &Bound<'_, PyAny>,
    ) -> PyResult<(Pattern, Block)> {
        let a = Array::vector("values of a", values_of_a, &Place::Host)?;
        let b = Array::vector("values of b", values_of_b, &Place::Host)?;
        let (inner, values) =
            Place::Host.execute_long(py, self.size, &self.plan, (a, b), |plan, (a, b)| {
                plan.execute(a, b)
            })?;
        Ok((Pattern { inner: AnyPattern::Host(inner) }, values))
    }
}

fn planned<T: CpuScalar, I: Index, O: Index>(
    a: Owned<I, O>,
    b: Owned<I, O>,
    mask: Option<Owned<I, O>>,
    calls: u64,
    device: &Device,
    wrap: fn(Owned<I, O>) -> AnyOwned,
) -> Result<Box<dyn AnyPlan>, Fault> {
    let mut request = a.spgemm(&b).calls(calls);
    if let Some(mask) = mask {
        request = request.mask(mask);
    }
    Ok(Box::new(Typed::<T, I, O> { plan: request.plan(device)?, wrap }))
}
