//! Patterns: of arrays of Python in place, and owned ones.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use gustav::{Error, Index, Pattern as Owned, PatternRef, PatternView};
use pyo3::exceptions::{PyNotImplementedError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::arguments;
use crate::array::Array;
use crate::block::Block;
use crate::device_pattern::AnyDevice;
use crate::element::Element;
use crate::error::{Fault, interruptible};
use crate::overlap::share_bytes;
use crate::place::{Given, Gpu, Place, elsewhere};
use crate::threads;

/// Runs `$body` with `$p` as the pattern behind one of the enums of this module.
macro_rules! with_indices {
    ($kind:ident, $any:expr, |$p:ident| $body:expr) => {
        match $any {
            $kind::Small($p) => $body,
            $kind::Long($p) => $body,
            $kind::Large($p) => $body,
        }
    };
}
pub(crate) use with_indices;

/// A pattern of the library, by the widths of its indices.
#[derive(Clone)]
pub enum AnyOwned {
    /// 32 bits each.
    Small(Owned<u32, u32>),
    /// Column indices of 32 bits, row offsets of 64.
    Long(Owned<u32, u64>),
    /// 64 bits each.
    Large(Owned<u64, u64>),
}

/// A pattern that is owned, or borrowed from arrays for the time of a call.
pub enum AnyRef<'a> {
    Small(PatternRef<'a, u32, u32>),
    Long(PatternRef<'a, u32, u64>),
    Large(PatternRef<'a, u64, u64>),
}

/// Arrays of a sparse matrix in CSR as a call was given them; not validated.
pub struct Arrays {
    pub(crate) offsets: Array,
    pub(crate) indices: Array,
    pub(crate) shape: (usize, usize),
    /// Row offsets of 32 bits beside column indices of 64, widened.
    widened: Option<Vec<u64>>,
}

/// Which widths arrays have.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Width {
    Narrow,
    Wide,
}

impl Width {
    pub(crate) fn of(array: &Array) -> PyResult<(Self, bool)> {
        match &array.element {
            Element::Value(gustav::DType::I32) => Ok((Width::Narrow, true)),
            Element::Value(gustav::DType::I64) => Ok((Width::Wide, true)),
            Element::U32 => Ok((Width::Narrow, false)),
            Element::U64 => Ok((Width::Wide, false)),
            other => Err(PyTypeError::new_err(format!(
                "{}: indices of type {other} are not taken; int32, int64, uint32 and uint64 are",
                array.name
            ))),
        }
    }
}

impl Arrays {
    /// The arrays of `indptr`, `indices` and `shape`.
    ///
    /// # Errors
    /// `TypeError` for other types than integers of 32 and 64 bits, `ValueError` for shapes that are none.
    pub fn new(
        indptr: &Bound<'_, PyAny>,
        indices: &Bound<'_, PyAny>,
        shape: &Bound<'_, PyAny>,
        place: &Place,
    ) -> PyResult<Self> {
        let offsets = Array::packed_vector("indptr", indptr, place)?;
        let indices = Array::packed_vector("indices", indices, place)?;
        let shape: (i64, i64) = shape.extract()?;
        let length = |n: i64| {
            usize::try_from(n).map_err(|_| {
                PyValueError::new_err(format!("shape: {n} is negative, expected two sizes"))
            })
        };
        let shape = (length(shape.0)?, length(shape.1)?);
        let (of_offsets, of_indices) = (Width::of(&offsets)?, Width::of(&indices)?);
        if of_indices == (Width::Narrow, true) && shape.1 > i32::MAX as usize {
            return Err(PyValueError::new_err(format!(
                "indices: int32 does not count {} columns, int64 does",
                shape.1
            )));
        }
        let widened = match (of_offsets.0, of_indices.0) {
            (Width::Narrow, Width::Wide) if offsets.gpu.is_none() => {
                let narrow = offsets.raw_slice::<u32>()?;
                Some(narrow.iter().map(|offset| u64::from(*offset)).collect())
            }
            _ => None,
        };
        Ok(Arrays { offsets, indices, shape, widened })
    }

    /// The arrays as a pattern, validated.
    ///
    /// # Errors
    /// What is wrong in them, with its place.
    pub fn view(&self) -> Result<AnyRef<'_>, Fault> {
        let ((rows, columns), indices) = (self.shape, &self.indices);
        let ((of_offsets, signed), (of_indices, also)) =
            (Width::of(&self.offsets)?, Width::of(indices)?);
        let signed = signed || also;
        Ok(match (of_offsets, of_indices) {
            (Width::Narrow, Width::Narrow) => {
                AnyRef::Small(self.checked(signed, rows, columns, self.offsets.raw_slice()?)?)
            }
            (Width::Wide, Width::Narrow) => {
                AnyRef::Long(self.checked(signed, rows, columns, self.offsets.raw_slice()?)?)
            }
            (_, Width::Wide) => match &self.widened {
                Some(offsets) => AnyRef::Large(self.checked(signed, rows, columns, offsets)?),
                None => {
                    AnyRef::Large(self.checked(signed, rows, columns, self.offsets.raw_slice()?)?)
                }
            },
        })
    }

    fn checked<'a, I: Index, O: Index>(
        &'a self,
        signed: bool,
        rows: usize,
        columns: usize,
        offsets: &'a [O],
    ) -> Result<PatternRef<'a, I, O>, Fault> {
        let view = PatternView::new(rows, columns, offsets, self.indices.raw_slice()?);
        let view = view.map_err(|e| match signed {
            true => negative(e, offsets, size_of::<I>()),
            false => e.into(),
        })?;
        Ok(view.into())
    }
}

/// Says of an index or offset that it is negative, where it is as a signed integer.
fn negative<O: Index>(error: Error, offsets: &[O], bytes_of_index: usize) -> Fault {
    let as_signed = |value: u64, bytes: usize| match bytes {
        4 => i64::from(value as u32 as i32),
        _ => value as i64,
    };
    let text = match &error {
        Error::Index { row, position, value, .. } => {
            let value = as_signed(*value, bytes_of_index);
            (value < 0).then(|| format!("row {row}, entry {position}: index {value} is negative"))
        }
        Error::Offsets { .. } => {
            let mut signed = offsets.iter().map(|o| as_signed(o.to_usize() as u64, size_of::<O>()));
            let row = signed.clone().position(|offset| offset < 0);
            row.and_then(|row| Some((row, signed.nth(row)?)))
                .map(|(row, value)| format!("row offsets at row {row}: {value} is negative"))
        }
        _ => None,
    };
    text.map_or_else(|| error.into(), |text| PyValueError::new_err(text).into())
}

impl AnyRef<'_> {
    /// A pattern of the library with a copy of the arrays.
    fn to_owned(&self) -> Result<AnyOwned, Fault> {
        Ok(match self {
            AnyRef::Small(p) => AnyOwned::Small(p.view().to_owned()?),
            AnyRef::Long(p) => AnyOwned::Long(p.view().to_owned()?),
            AnyRef::Large(p) => AnyOwned::Large(p.view().to_owned()?),
        })
    }
}

/// Addresses of the arrays of a pattern, which may be the caller's and are read unchecked: no result may
/// overlap them.
#[derive(Clone)]
pub struct Extents([(&'static str, Range<usize>); 2]);

impl Extents {
    /// Refuses to write `out` over the arrays.
    ///
    /// # Errors
    /// `ValueError`.
    pub fn refuse_overlap(&self, out: &Array) -> PyResult<()> {
        let written = out.extent();
        for (name, array) in &self.0 {
            if share_bytes(&written, array) {
                return Err(PyValueError::new_err(format!(
                    "{} overlaps {name} of the pattern in memory; give another array",
                    out.name
                )));
            }
        }
        Ok(())
    }
}

impl Extents {
    /// Of arrays with these names and addresses.
    pub fn new(offsets: Range<usize>, indices: Range<usize>) -> Self {
        Extents([("indptr", offsets), ("indices", indices)])
    }
}

impl AnyOwned {
    /// Where the arrays are.
    pub fn extents(&self) -> Extents {
        let of = |array: &[u8]| {
            let start = array.as_ptr() as usize;
            start..start + array.len()
        };
        with_indices!(AnyOwned, self, |p| Extents::new(
            of(bytes(p.offsets())),
            of(bytes(p.indices()))
        ))
    }

    /// Number of nonzeros.
    pub fn nnz(&self) -> usize {
        with_indices!(AnyOwned, self, |p| p.nnz())
    }

    /// What products take.
    pub fn to_ref(&self) -> AnyRef<'static> {
        match self {
            AnyOwned::Small(p) => AnyRef::Small(p.into()),
            AnyOwned::Long(p) => AnyRef::Long(p.into()),
            AnyOwned::Large(p) => AnyRef::Large(p.into()),
        }
    }
}

/// A pattern in host memory or on a GPU.
#[derive(Clone)]
pub enum AnyPattern {
    Host(AnyOwned),
    Gpu(AnyDevice),
}

impl AnyPattern {
    /// The GPU that it is on.
    pub fn gpu(&self) -> Option<u32> {
        match self {
            AnyPattern::Host(_) => None,
            AnyPattern::Gpu(p) => Some(p.ordinal()),
        }
    }

    /// Rows and columns.
    pub fn shape(&self) -> (usize, usize) {
        match self {
            AnyPattern::Host(p) => with_indices!(AnyOwned, p, |p| (p.nrows(), p.ncols())),
            AnyPattern::Gpu(p) => p.shape(),
        }
    }

    /// Number of nonzeros.
    pub fn nnz(&self) -> usize {
        match self {
            AnyPattern::Host(p) => p.nnz(),
            AnyPattern::Gpu(p) => p.nnz(),
        }
    }

    /// Where the arrays are.
    pub fn extents(&self) -> Extents {
        match self {
            AnyPattern::Host(p) => p.extents(),
            AnyPattern::Gpu(p) => p.extents(),
        }
    }

    /// The pattern, which the CPU reads.
    ///
    /// # Errors
    /// `NotImplementedError` for one on a GPU.
    pub fn on_host(&self) -> PyResult<&AnyOwned> {
        match self {
            AnyPattern::Host(p) => Ok(p),
            AnyPattern::Gpu(p) => Err(PyNotImplementedError::new_err(format!(
                "the arrays of a pattern on cuda:{} are not read by the CPU; copy_into copies them",
                p.ordinal()
            ))),
        }
    }
}

/// What a product takes as a pattern: a [`Pattern`], or a tuple of arrays and a shape.
pub enum Source {
    Owned(AnyPattern),
    Arrays(Box<Arrays>),
}

impl Source {
    /// The pattern of `object` at `place`.
    ///
    /// # Errors
    /// As [`Arrays::new`], and `ValueError` for one that is elsewhere.
    pub fn of(object: &Bound<'_, PyAny>, place: &Place) -> PyResult<Self> {
        if let Ok(pattern) = object.cast::<Pattern>() {
            let pattern = pattern.get().inner.clone();
            place.of("the pattern", pattern.gpu())?;
            return Ok(Source::Owned(pattern));
        }
        let arrays = object.cast::<PyTuple>()?;
        let (indptr, indices, shape) =
            (arrays.get_item(0)?, arrays.get_item(1)?, arrays.get_item(2)?);
        let arrays = Arrays::new(&indptr, &indices, &shape, place)?;
        Ok(Source::Arrays(Box::new(arrays)))
    }

    /// The pattern in host memory, validated where it was not.
    ///
    /// # Errors
    /// As [`Arrays::view`].
    pub fn pattern(&self) -> Result<AnyRef<'_>, Fault> {
        match self {
            Source::Owned(pattern) => Ok(pattern.on_host()?.to_ref()),
            Source::Arrays(arrays) => arrays.view(),
        }
    }

    /// The pattern on a GPU, validated where it was not, for work within [`Gpu::between`].
    ///
    /// # Errors
    /// As [`Arrays::on_gpu`].
    pub fn on_gpu(&self, gpu: &Gpu) -> Result<AnyDevice, Fault> {
        match self {
            Source::Owned(AnyPattern::Gpu(pattern)) => Ok(pattern.clone()),
            Source::Owned(AnyPattern::Host(_)) => {
                Err(elsewhere("the pattern", "host memory", "that of a GPU").into())
            }
            Source::Arrays(arrays) => arrays.on_gpu(gpu),
        }
    }

    /// Refuses to write `out` over the arrays.
    ///
    /// # Errors
    /// `ValueError`.
    pub fn refuse_overlap(&self, out: &Array) -> PyResult<()> {
        match self {
            Source::Owned(pattern) => pattern.extents().refuse_overlap(out),
            Source::Arrays(arrays) => {
                out.refuse_overlap(&arrays.offsets)?;
                out.refuse_overlap(&arrays.indices)
            }
        }
    }
}

/// Where the nonzeros of a sparse matrix are: validated once, and never written.
#[pyclass(frozen, module = "gustav._gustav")]
pub struct Pattern {
    pub inner: AnyPattern,
}

/// Arrays that another owner keeps, by the caller's promise not to write to them.
struct SharedIndices(Array);

impl AsRef<[u32]> for SharedIndices {
    fn as_ref(&self) -> &[u32] {
        self.0.raw_slice().unwrap_or_default()
    }
}

impl AsRef<[u64]> for SharedIndices {
    fn as_ref(&self) -> &[u64] {
        self.0.raw_slice().unwrap_or_default()
    }
}

#[pymethods]
impl Pattern {
    #[new]
    #[pyo3(signature = (indptr, indices, shape, copy=true, place=None))]
    fn new(
        py: Python<'_>,
        indptr: &Bound<'_, PyAny>,
        indices: &Bound<'_, PyAny>,
        shape: &Bound<'_, PyAny>,
        copy: bool,
        place: Given,
    ) -> PyResult<Self> {
        let place = Place::new(py, place)?;
        let arrays = Arrays::new(indptr, indices, shape, &place)?;
        let device = place.device(None)?;
        let inner = match &place {
            Place::Host => {
                let size = arrays.indices.len();
                AnyPattern::Host(place.run_long(py, size, &device, move || match copy {
                    true => arrays.view()?.to_owned(),
                    false => arrays.keep(),
                })?)
            }
            Place::Gpu(gpu) => {
                gpu.refuse_capture("making a pattern", "a pattern made before the capture")?;
                AnyPattern::Gpu(place.run(py, &device, || match copy {
                    true => arrays.copied_to_gpu(gpu),
                    false => arrays.keep_on_gpu(gpu),
                })?)
            }
        };
        Ok(Pattern { inner })
    }

    /// The number of the GPU that it is on.
    #[getter]
    fn gpu(&self) -> Option<u32> {
        self.inner.gpu()
    }

    /// Rows and columns.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        self.inner.shape()
    }

    /// Number of nonzeros.
    #[getter]
    fn nnz(&self) -> usize {
        self.inner.nnz()
    }

    /// Types of row offsets and column indices, as signed integers of their width.
    #[getter]
    fn index_types(&self) -> (&'static str, &'static str) {
        let narrow = |bytes| if bytes == 4 { "int32" } else { "int64" };
        let (offset, index) = match &self.inner {
            AnyPattern::Host(p) => {
                with_indices!(AnyOwned, p, |p| (unit(p.offsets()), unit(p.indices())))
            }
            AnyPattern::Gpu(p) => p.index_bytes(),
        };
        (narrow(offset), narrow(index))
    }

    /// Row offsets in host memory, read-only.
    #[getter]
    fn indptr(&self) -> PyResult<Block> {
        // SAFETY: the clone keeps the arrays, which are never written.
        Ok(with_indices!(AnyOwned, self.inner.on_host()?, |p| unsafe {
            Block::indices(p.offsets(), true, p.clone())
        }))
    }

    /// Column indices in host memory, read-only.
    #[getter]
    fn indices(&self) -> PyResult<Block> {
        // SAFETY: as above.
        Ok(with_indices!(AnyOwned, self.inner.on_host()?, |p| unsafe {
            Block::indices(p.indices(), true, p.clone())
        }))
    }

    /// Queues copying the arrays of a pattern on a GPU to vectors there.
    fn copy_into(
        &self,
        py: Python<'_>,
        indptr: &Bound<'_, PyAny>,
        indices: &Bound<'_, PyAny>,
        place: Given,
    ) -> PyResult<()> {
        let place = Place::new(py, place)?;
        place.of("the pattern", self.inner.gpu())?;
        let offsets = Array::to_write("indptr", indptr, &place)?;
        let indices = Array::to_write("indices", indices, &place)?;
        match (&place, &self.inner) {
            (Place::Gpu(gpu), AnyPattern::Gpu(pattern)) => {
                Ok(place.within(|| pattern.copy_into(&offsets, &indices, gpu))?)
            }
            _ => Err(PyNotImplementedError::new_err("a pattern in host memory is read in place")),
        }
    }

    /// The pattern of the transpose, and for each of its nonzeros the position of the same nonzero in
    /// this pattern, in host memory. Made once.
    fn transposed(&self, py: Python<'_>) -> PyResult<(Pattern, Block)> {
        let device = threads::device(None)?;
        macro_rules! transposed {
            ($pattern:expr, $kind:ident) => {{
                let pattern = $pattern.clone();
                let made = Place::Host.run_long(py, pattern.nnz(), &device, move || {
                    pattern.transposed().map_err(Into::into)
                })?;
                let inner = AnyPattern::Host(AnyOwned::$kind(made.pattern().clone()));
                // SAFETY: the clone keeps the permutation, which is never written.
                let permutation = unsafe { Block::indices(made.permutation(), true, made.clone()) };
                Ok((Pattern { inner }, permutation))
            }};
        }
        match self.inner.on_host()? {
            AnyOwned::Small(p) => transposed!(p, Small),
            AnyOwned::Long(p) => transposed!(p, Long),
            AnyOwned::Large(p) => transposed!(p, Large),
        }
    }

    /// Whether the columns of every row increase, none twice; in host memory.
    fn is_canonical(&self, py: Python<'_>) -> PyResult<bool> {
        let inner = self.inner.on_host()?.clone();
        interruptible(py, inner.nnz(), move || {
            Ok(with_indices!(AnyOwned, inner, |p| p.view().is_canonical()))
        })
    }

    /// Whether the arrays hold the same numbers as the pattern; in host memory.
    #[pyo3(signature = (indptr, indices, threads=None))]
    fn matches(
        &self,
        py: Python<'_>,
        indptr: &Bound<'_, PyAny>,
        indices: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::threads)] threads: Option<usize>,
    ) -> PyResult<bool> {
        let inner = self.inner.on_host()?.clone();
        let offsets = Array::packed_vector("indptr", indptr, &Place::Host)?;
        let indices = Array::packed_vector("indices", indices, &Place::Host)?;
        let device = threads::device(threads)?;
        interruptible(py, inner.nnz(), move || {
            Ok(with_indices!(AnyOwned, inner, |p| {
                same(p.offsets(), &offsets, &device)? && same(p.indices(), &indices, &device)?
            }))
        })
    }
}

/// Whether an array has these numbers in elements of this size.
fn same<I: Index>(numbers: &[I], array: &Array, device: &gustav::Device) -> PyResult<bool> {
    // Enough that a thread is worth it.
    const PART: usize = 1 << 16;
    if array.element.bytes() != size_of::<I>() || array.len() != numbers.len() {
        return Ok(false);
    }
    let (array, differ) = (array.raw_slice::<I>()?, AtomicBool::new(false));
    device.threads().each(numbers.len().div_ceil(PART), |part| {
        let range = part * PART..numbers.len().min((part + 1) * PART);
        if !differ.load(Relaxed) && numbers[range.clone()] != array[range] {
            differ.store(true, Relaxed);
        }
    });
    Ok(!differ.into_inner())
}

/// Bytes of an element.
fn unit<I>(_: &[I]) -> usize {
    size_of::<I>()
}

/// The bytes of an array.
fn bytes<I: Index>(array: &[I]) -> &[u8] {
    // SAFETY: indices are plain integers, without padding.
    unsafe { std::slice::from_raw_parts(array.as_ptr().cast(), size_of_val(array)) }
}

impl Arrays {
    /// A pattern over the arrays where they are.
    fn keep(self) -> Result<AnyOwned, Fault> {
        // Says what is wrong in signed numbers.
        self.view()?;
        let Arrays { offsets, indices, shape: (rows, columns), widened } = self;
        let widths = (Width::of(&offsets)?.0, Width::of(&indices)?.0);
        let (offsets, indices) = (SharedIndices(offsets), SharedIndices(indices));
        Ok(match (widths, widened) {
            ((Width::Narrow, Width::Narrow), _) => {
                AnyOwned::Small(Owned::from_owners(rows, columns, offsets, indices)?)
            }
            ((Width::Wide, Width::Narrow), _) => {
                AnyOwned::Long(Owned::from_owners(rows, columns, offsets, indices)?)
            }
            ((_, Width::Wide), Some(offsets)) => {
                AnyOwned::Large(Owned::from_owners(rows, columns, offsets, indices)?)
            }
            ((_, Width::Wide), None) => {
                AnyOwned::Large(Owned::from_owners(rows, columns, offsets, indices)?)
            }
        })
    }
}
