//! Sparse × sparse on a GPU.

use std::sync::Arc;

use gustav::cuda::{self, DeviceBuffer, DeviceCsr, DevicePattern, SpgemmCall};
use gustav::{CpuScalar, Device, Index, Scalar, with_scalar};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::array::Array;
use crate::device_pattern::{AnyDevice, Kind};
use crate::element;
use crate::error::Fault;
use crate::pattern::{AnyPattern, Pattern, Source};
use crate::place::{Given, Gpu, OnGpu, Place};
use crate::scale::Factors;
use crate::shared::Shared;
use crate::spgemm::{Options, other_indices};
use crate::spmm::UNPLANNED;

/// Values on a GPU, whatever their type.
trait AnyValues: Send + Sync {
    fn copy_into(&self, out: &mut Array, gpu: &Gpu) -> Result<(), Fault>;
}

impl<T: Scalar> AnyValues for DeviceBuffer<T> {
    fn copy_into(&self, out: &mut Array, gpu: &Gpu) -> Result<(), Fault> {
        Ok(out.buffer_mut::<T>(gpu)?.copy_from(self, &gpu.stream)?)
    }
}

/// Values of a product in memory of the library on a GPU, to be copied to an array of another library: that has to
/// know who uses its memory, and when.
#[pyclass(frozen, module = "gustav._gustav")]
pub struct DeviceBlock {
    values: OnGpu<Box<dyn AnyValues>>,
    /// The name of the elements' type.
    #[pyo3(get)]
    dtype: &'static str,
    len: usize,
}

impl DeviceBlock {
    /// Values on `device`.
    pub fn new<T: Scalar>(values: DeviceBuffer<T>, device: &Device) -> Self {
        let (len, dtype) = (values.len(), element::name(T::DTYPE));
        DeviceBlock { values: OnGpu::new(device, Box::new(values)), dtype, len }
    }
}

#[pymethods]
impl DeviceBlock {
    /// Queues copying all of them to a vector.
    fn copy_into(&self, py: Python<'_>, out: &Bound<'_, PyAny>, place: Given) -> PyResult<()> {
        let place = Place::new(py, place)?;
        let mut out = Array::to_write("out", out, &place)?;
        match &place {
            Place::Gpu(gpu) => Ok(place.within(|| self.values.copy_into(&mut out, gpu))?),
            Place::Host => Err(PyTypeError::new_err("place: expected that of a GPU")),
        }
    }

    fn __len__(&self) -> usize {
        self.len
    }
}

/// Pattern and values of a product.
pub type Product = (Pattern, DeviceBlock);

fn product<T: Scalar, I: Index, O: Index>(
    c: DeviceCsr<T, I, O>,
    gpu: &Gpu,
    wrap: fn(DevicePattern<I, O>) -> Kind,
) -> Product {
    let (pattern, values) = c.into_parts();
    let inner = AnyPattern::Gpu(AnyDevice::new(gpu, wrap(pattern)));
    (Pattern { inner }, DeviceBlock::new(values, &gpu.device))
}

/// A plan, whatever its types.
pub trait AnyPlan: Send {
    /// The product with these values.
    ///
    /// # Errors
    /// Those of [`cuda::SpgemmPlan::execute`].
    fn execute(
        &mut self,
        a: &Array,
        b: &Array,
        factors: Factors,
        gpu: &Gpu,
    ) -> Result<Product, Fault>;
}

struct Typed<T: CpuScalar, I: Index, O: Index> {
    plan: cuda::SpgemmPlan<T, I, O>,
    wrap: fn(DevicePattern<I, O>) -> Kind,
}

impl<T: CpuScalar, I: Index, O: Index> AnyPlan for Typed<T, I, O> {
    fn execute(
        &mut self,
        a: &Array,
        b: &Array,
        factors: Factors,
        gpu: &Gpu,
    ) -> Result<Product, Fault> {
        let mut call = SpgemmCall::new().on(&gpu.stream);
        if let Some(alpha) = factors.scale::<T::Accum>().alpha {
            call = call.alpha(alpha);
        }
        let (a, b) = (a.buffer::<T>(gpu)?, b.buffer::<T>(gpu)?);
        Ok(product(self.plan.execute(&a, &b, call)?, gpu, self.wrap))
    }
}

/// The plan of a product of patterns on one GPU.
///
/// # Errors
/// `TypeError` for indices of several types, and those of the library.
pub fn planned<T: CpuScalar>(
    a: &AnyDevice,
    b: &AnyDevice,
    mask: Option<&AnyDevice>,
    calls: u64,
    options: &Options,
    device: &Device,
) -> Result<Box<dyn AnyPlan>, Fault> {
    fn typed<T: CpuScalar, I: Index, O: Index>(
        (a, b, mask): (&DevicePattern<I, O>, &DevicePattern<I, O>, Option<&DevicePattern<I, O>>),
        calls: u64,
        options: &Options,
        device: &Device,
        wrap: fn(DevicePattern<I, O>) -> Kind,
    ) -> Result<Box<dyn AnyPlan>, Fault> {
        let mut request = a.spgemm(b).calls(calls);
        if let Some(mask) = mask {
            request = request.mask(mask);
        }
        let Options { transpose, semiring, sorted, deterministic } = options.clone();
        request.problem.transpose_a = transpose;
        request.problem.semiring = semiring;
        request.problem.sorted = sorted;
        request.problem.deterministic = deterministic;
        if transpose {
            request.problem.check_a(a.nrows(), a.ncols(), a.nnz())?;
        }
        Ok(Box::new(Typed::<T, I, O> { plan: request.plan(device)?, wrap }))
    }
    macro_rules! each {
        ($($kind:ident)*) => {
            match (a.kind(), b.kind(), mask.map(AnyDevice::kind)) {
                $(
                    (Kind::$kind(a), Kind::$kind(b), None) => {
                        typed::<T, _, _>((a, b, None), calls, options, device, Kind::$kind)
                    }
                    (Kind::$kind(a), Kind::$kind(b), Some(Kind::$kind(m))) => {
                        typed::<T, _, _>((a, b, Some(m)), calls, options, device, Kind::$kind)
                    }
                )*
                _ => Err(other_indices()),
            }
        };
    }
    each!(Small Long Large)
}

/// `alpha * op(A) @ B` of operands on a GPU, all of it or at the places of a mask.
#[pyfunction]
pub fn spgemm_on_gpu(
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
    place: Given,
) -> PyResult<Product> {
    let place = Place::new(py, place)?;
    let Place::Gpu(gpu) = &place else {
        return Err(PyTypeError::new_err("place: expected that of a GPU"));
    };
    gpu.refuse_capture("a product of sparse matrices", "spmm by a plan")?;
    let (a, b) = (Source::of(pattern_of_a, &place)?, Source::of(pattern_of_b, &place)?);
    let mask = mask.map(|mask| Source::of(mask, &place)).transpose()?;
    let values_of_a = Array::vector("values of a", values_of_a, &place)?;
    let values_of_b = Array::vector("values of b", values_of_b, &place)?;
    let dtype = values_of_a.element.value("values of a")?;
    let factors = Factors::new(alpha, None, dtype)?;
    let semiring = crate::scale::semiring(semiring_name)?;
    let options = Options { transpose, semiring, sorted, deterministic };
    with_scalar!(dtype, |T| place.run(py, &gpu.device, || gpu.between(|| {
        let (a, b) = (a.on_gpu(gpu)?, b.on_gpu(gpu)?);
        let mask = mask.as_ref().map(|mask| mask.on_gpu(gpu)).transpose()?;
        let mut plan = planned::<T>(&a, &b, mask.as_ref(), 1, &options, &gpu.device)?;
        plan.execute(&values_of_a, &values_of_b, factors, gpu)
    })))
}

/// A product of two patterns on a GPU, whose result has one pattern in every execution.
#[pyclass(frozen, module = "gustav._gustav")]
pub struct DeviceSpgemmPlan {
    plan: Arc<Shared<OnGpu<Box<dyn AnyPlan>>>>,
    gpu: Option<u32>,
}

#[pymethods]
impl DeviceSpgemmPlan {
    #[new]
    fn new(
        py: Python<'_>,
        a: &Bound<'_, Pattern>,
        b: &Bound<'_, Pattern>,
        mask: Option<&Bound<'_, Pattern>>,
        dtype: &str,
        calls: u64,
        place: Given,
    ) -> PyResult<Self> {
        let place = Place::new(py, place)?;
        let Place::Gpu(gpu) = &place else {
            return Err(PyTypeError::new_err("place: expected that of a GPU"));
        };
        gpu.refuse_capture("making a plan", UNPLANNED)?;
        let dtype = element::Element::named(dtype).value("dtype")?;
        let source = |pattern: &Bound<'_, Pattern>| Source::of(pattern.as_any(), &place);
        let (a, b, mask) = (source(a)?, source(b)?, mask.map(source).transpose()?);
        let options = Options::default();
        let plan = with_scalar!(dtype, |T| place.run(py, &gpu.device, || {
            let (a, b) = (a.on_gpu(gpu)?, b.on_gpu(gpu)?);
            let mask = mask.as_ref().map(|mask| mask.on_gpu(gpu)).transpose()?;
            planned::<T>(&a, &b, mask.as_ref(), calls, &options, &gpu.device)
        }))?;
        let plan = Arc::new(Shared::new(OnGpu::new(&gpu.device, plan)));
        Ok(DeviceSpgemmPlan { plan, gpu: Some(gpu.ordinal) })
    }

    /// The pattern of the result, and its values for these values of the operands.
    fn execute(
        &self,
        py: Python<'_>,
        values_of_a: &Bound<'_, PyAny>,
        values_of_b: &Bound<'_, PyAny>,
        place: Given,
    ) -> PyResult<Product> {
        let place = Place::new(py, place)?;
        place.of("the plan", self.gpu)?;
        let Place::Gpu(gpu) = &place else {
            return Err(PyTypeError::new_err("place: expected that of a GPU"));
        };
        gpu.refuse_capture("a product of sparse matrices", "spmm by a plan")?;
        let a = Array::vector("values of a", values_of_a, &place)?;
        let b = Array::vector("values of b", values_of_b, &place)?;
        place.execute(py, &self.plan, |plan| plan.execute(&a, &b, Factors::default(), gpu))
    }
}
