//! Arrays of Python, in place: what NumPy, DLPack, `__array_interface__` and `__cuda_array_interface__` describe.

use gustav::cuda::{DeviceBuffer, DeviceDense};
use gustav::{DenseView, DenseViewMut, Layout, Scalar};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::element::Element;
use crate::error::Fault;
use crate::place::{Gpu, Place, elsewhere};
use crate::shape::{Dimensions, Shapes};
use crate::{dlpack, interface, numpy};

/// An array that an object of Python owns. It can be read for as long as this lives, because the object is held; on a
/// GPU, for as long as that is said of its memory in the order of the call's stream, see [`Array::buffer`].
pub struct Array {
    /// Named in errors.
    pub name: &'static str,
    pub element: Element,
    /// The GPU in whose memory it is.
    pub gpu: Option<u32>,
    pub(crate) data: *mut u8,
    pub(crate) dimensions: Dimensions,
    pub(crate) readonly: bool,
    pub(crate) owner: Owner,
}

/// What keeps the memory of an array.
pub type Owner = Py<PyAny>;

// SAFETY: the memory stays where it is while the owner is held, whichever thread reads it; the owner
// may be sent and shared.
unsafe impl Send for Array {}
// SAFETY: as above.
unsafe impl Sync for Array {}

impl Array {
    /// The array at `place` that `object` is or describes; `name` stands in errors.
    ///
    /// # Errors
    /// `TypeError` for what is no array, `ValueError` for one that is elsewhere, naming both places, and for more than
    /// two dimensions.
    pub fn of(name: &'static str, object: &Bound<'_, PyAny>, place: &Place) -> PyResult<Self> {
        Self::of_shapes(name, object, place, Shapes::Matrix)
    }

    fn of_shapes(
        name: &'static str,
        object: &Bound<'_, PyAny>,
        place: &Place,
        shapes: Shapes,
    ) -> PyResult<Self> {
        let found = Self::found(name, object, place, shapes)?.ok_or_else(|| {
            let kind = object.get_type().qualname().map_or_else(|_| "this".into(), |n| n.to_string());
            PyTypeError::new_err(format!(
                "{name}: {kind} is not taken; a NumPy array is, and what has __dlpack__, __array_interface__ or \
                 __cuda_array_interface__"
            ))
        })?;
        found.expect_memory()?;
        place.of(name, found.gpu).map(|()| found)
    }

    /// Refuses what says that it has elements and has no memory for them.
    pub fn expect_memory(&self) -> PyResult<()> {
        if self.len() == 0 {
            return Ok(());
        }
        let wrong = |why: &str| PyValueError::new_err(format!("{}: {why}", self.name));
        if self.data.is_null() {
            let shape = self.shape();
            return Err(wrong(&format!(
                "the shape {shape:?} at the address 0, which is no memory; it may have been freed or never allocated"
            )));
        }
        let (before, behind) = self.reach();
        let start = self.data as usize;
        match start.checked_sub(before).and(start.checked_add(behind)) {
            Some(_) => Ok(()),
            None => Err(wrong("shape and strides reach out of the address space")),
        }
    }

    fn found(
        name: &'static str,
        object: &Bound<'_, PyAny>,
        place: &Place,
        shapes: Shapes,
    ) -> PyResult<Option<Self>> {
        if let Some(found) = numpy::array(name, object, shapes)? {
            return Ok(Some(found));
        }
        if let Some(found) = dlpack::array(name, object, place, shapes)? {
            return Ok(Some(found));
        }
        if let Some(found) = interface::of_device(name, object, place, shapes)? {
            return Ok(Some(found));
        }
        interface::array(name, object, shapes)
    }

    /// As [`Array::of`], of a packed copy where the array has strides that no layout expresses.
    ///
    /// # Errors
    /// As [`Array::of`].
    pub fn to_read(name: &'static str, object: &Bound<'_, PyAny>, place: &Place) -> PyResult<Self> {
        Self::of(name, object, place)?.or_packed(object, place, Shapes::Matrix)
    }

    /// As [`Array::to_read`] for rows × columns, or rows × heads × columns as a matrix of all heads.
    ///
    /// # Errors
    /// As [`Array::of`], and for heads that are neither side by side nor one above the other.
    pub fn heads_to_read(
        name: &'static str,
        object: &Bound<'_, PyAny>,
        place: &Place,
    ) -> PyResult<Self> {
        let shapes = Shapes::Heads;
        Self::of_shapes(name, object, place, shapes)?.or_packed(object, place, shapes)
    }

    /// The array that `object` is, or a packed copy where no layout expresses its strides.
    fn or_packed(self, object: &Bound<'_, PyAny>, place: &Place, shapes: Shapes) -> PyResult<Self> {
        self.element.value(self.name)?;
        if self.is_aligned() && self.layout().is_some() {
            return Ok(self);
        }
        self.on_host()?;
        Self::of_shapes(self.name, &packed(self.name, object)?, place, shapes)
    }

    /// As [`Array::to_read`] for a vector of values whose elements are neighbours.
    ///
    /// # Errors
    /// As [`Array::to_read`], and `ValueError` for another number of dimensions than one.
    pub fn vector(name: &'static str, object: &Bound<'_, PyAny>, place: &Place) -> PyResult<Self> {
        let found = Self::packed_vector(name, object, place)?;
        found.element.value(name)?;
        Ok(found)
    }

    /// As [`Array::vector`] for elements of any type.
    ///
    /// # Errors
    /// As [`Array::of`], and `ValueError` for another number of dimensions than one.
    pub fn packed_vector(
        name: &'static str,
        object: &Bound<'_, PyAny>,
        place: &Place,
    ) -> PyResult<Self> {
        let found = Self::of(name, object, place)?;
        if found.dimensions.count != 1 {
            return Err(found.wrong_dimensions("one dimension"));
        }
        if found.is_aligned() && found.is_packed_vector() {
            return Ok(found);
        }
        found.on_host()?;
        Self::of(name, &packed(name, object)?, place)
    }

    /// As [`Array::of`] for an array that is written.
    ///
    /// # Errors
    /// As [`Array::of`], and `ValueError` for one that may not be written or has strides that no layout
    /// expresses.
    pub fn to_write(
        name: &'static str,
        object: &Bound<'_, PyAny>,
        place: &Place,
    ) -> PyResult<Self> {
        Self::of(name, object, place)?.written_in_place()
    }

    /// As [`Array::to_write`] for rows × columns, or rows × heads × columns as a matrix of all heads.
    ///
    /// # Errors
    /// As [`Array::to_write`], and for heads that are neither side by side nor one above the other.
    pub fn heads_to_write(
        name: &'static str,
        object: &Bound<'_, PyAny>,
        place: &Place,
    ) -> PyResult<Self> {
        Self::of_shapes(name, object, place, Shapes::Heads)?.written_in_place()
    }

    fn written_in_place(self) -> PyResult<Self> {
        self.element.value(self.name)?;
        let reason = if self.readonly {
            "it is read-only"
        } else if !self.is_aligned() {
            "its elements are not aligned"
        } else if self.layout().is_none() {
            "its strides are not those of rows or columns with a leading dimension"
        } else {
            return Ok(self);
        };
        Err(PyValueError::new_err(format!(
            "{} cannot be written in place: {reason}; give a writable array in C or Fortran order",
            self.name
        )))
    }

    /// Packed rows as the vector of their elements. What has other strides stays a matrix, which is refused where a
    /// vector is needed.
    #[must_use]
    pub fn flat(mut self) -> Self {
        if self.layout() == Some((Layout::RowMajor, self.matrix()[1])) {
            self.dimensions = Dimensions::of_vector(self.len(), self.element.bytes());
        }
        self
    }

    /// Refuses to be read by the CPU where it is on a GPU.
    fn on_host(&self) -> PyResult<()> {
        match self.gpu {
            None => Ok(()),
            Some(ordinal) => Err(PyValueError::new_err(format!(
                "{}: on cuda:{ordinal} an array is taken in rows or columns with a leading dimension, its elements \
                 aligned; give a contiguous copy",
                self.name
            ))),
        }
    }

    /// The shape.
    pub fn shape(&self) -> &[usize] {
        &self.dimensions.shape[..self.dimensions.count]
    }

    /// Bytes from one element to the next in each dimension.
    pub(crate) fn strides(&self) -> &[isize] {
        &self.dimensions.strides[..self.dimensions.count]
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.shape().iter().product()
    }

    /// What keeps the memory.
    pub fn owner(&self) -> Owner {
        Python::attach(|py| self.owner.clone_ref(py))
    }

    /// Whether a product reads it where it is.
    pub fn is_read_in_place(&self) -> bool {
        let has_layout = match self.dimensions.count {
            1 => self.is_packed_vector(),
            _ => self.layout().is_some(),
        };
        has_layout && self.is_aligned()
    }

    fn is_aligned(&self) -> bool {
        let size = self.element.bytes().max(1);
        self.len() == 0
            || (self.data as usize).is_multiple_of(size)
                && self.strides().iter().all(|s| s.unsigned_abs() % size == 0)
    }

    fn is_packed_vector(&self) -> bool {
        self.dimensions.shape[0] <= 1 || self.dimensions.strides[0] == self.element.bytes() as isize
    }

    /// The layout and leading dimension of a matrix, if there are such.
    pub(crate) fn layout(&self) -> Option<(Layout, usize)> {
        let size = self.element.bytes().max(1) as isize;
        let [rows, columns] = self.matrix();
        // A vector is a column.
        let step = |k: usize| self.dimensions.strides[k] / size;
        if rows == 0 || columns == 0 {
            return Some((Layout::RowMajor, columns));
        }
        let fits = |lines: usize, length: usize, line: isize, element: isize| {
            let leading = if lines == 1 { length } else { usize::try_from(line).ok()? };
            ((element == 1 || length == 1) && leading >= length).then_some(leading)
        };
        fits(rows, columns, step(0), step(1)).map(|leading| (Layout::RowMajor, leading)).or_else(
            || fits(columns, rows, step(1), step(0)).map(|leading| (Layout::ColumnMajor, leading)),
        )
    }

    /// Rows and columns; a vector is one column.
    pub(crate) fn matrix(&self) -> [usize; 2] {
        self.dimensions.shape
    }

    /// The layout that a plan needs for this matrix.
    pub fn layout_of_matrix(&self) -> Layout {
        self.layout().map_or(Layout::RowMajor, |(layout, _)| layout)
    }

    fn wrong_dimensions(&self, expected: &str) -> PyErr {
        PyValueError::new_err(format!(
            "{}: expected {expected}, found {}",
            self.name, self.dimensions.count
        ))
    }

    fn wrong_type<T: Scalar>(&self) -> PyErr {
        PyTypeError::new_err(format!(
            "{}: expected {}, as the other operands, found {}",
            self.name,
            Element::of::<T>(),
            self.element
        ))
    }

    fn pointer<T>(&self) -> *mut T {
        // An empty array may have no address.
        if self.len() == 0 { std::ptr::dangling_mut() } else { self.data.cast() }
    }

    /// The elements of a vector that was made by [`Array::vector`].
    ///
    /// # Errors
    /// `TypeError` for elements of another type.
    pub fn slice<T: Scalar>(&self) -> PyResult<&[T]> {
        if self.element != Element::of::<T>() {
            return Err(self.wrong_type::<T>());
        }
        self.raw_slice()
    }

    /// The elements of a vector as integers of their width.
    pub(crate) fn raw_slice<T>(&self) -> PyResult<&[T]> {
        self.on_host()?;
        self.check_packed::<T>()?;
        // SAFETY: as many neighbours of this size are in memory that the owner keeps, aligned.
        Ok(unsafe { std::slice::from_raw_parts(self.pointer(), self.dimensions.shape[0]) })
    }

    /// A vector of neighbours of the size of `T`.
    fn check_packed<T>(&self) -> PyResult<()> {
        if self.dimensions.count != 1 {
            return Err(self.wrong_dimensions("one dimension"));
        }
        if !self.is_packed_vector() || !self.is_aligned() || self.element.bytes() != size_of::<T>()
        {
            return Err(PyValueError::new_err(format!("{}: expected a packed array", self.name)));
        }
        Ok(())
    }

    /// The elements of a vector, to be written.
    ///
    /// # Errors
    /// As [`Array::slice`], and `ValueError` for one that is read-only.
    pub fn slice_mut<T: Scalar>(&mut self) -> PyResult<&mut [T]> {
        self.slice::<T>()?;
        if self.readonly {
            return Err(PyValueError::new_err(format!("{} is read-only", self.name)));
        }
        // SAFETY: as above; it may be written, and operands that overlap were refused.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.pointer(), self.dimensions.shape[0]) })
    }

    /// The elements of packed rows as indices of 64 bits, to be written.
    ///
    /// # Errors
    /// `TypeError` for another type than int64, `ValueError` for an array that is not packed or is read-only.
    pub fn indices_mut(&mut self) -> PyResult<&mut [u64]> {
        self.on_host()?;
        self.check_indices_mut()?;
        // SAFETY: the rows follow one another in memory that the owner keeps; integers of 64 bits may hold
        // any number without a sign; operands that overlap were refused.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.pointer(), self.len()) })
    }

    fn check_indices_mut(&self) -> PyResult<()> {
        if self.element != Element::Value(gustav::DType::I64) {
            return Err(self.wrong_type::<i64>());
        }
        let packed = self.layout() == Some((Layout::RowMajor, self.matrix()[1])) || self.len() == 0;
        if self.readonly || !packed || !self.is_aligned() {
            return Err(PyValueError::new_err(format!(
                "{}: expected a packed array that may be written",
                self.name
            )));
        }
        Ok(())
    }

    /// The matrix, or a vector as one column.
    ///
    /// # Errors
    /// `TypeError` for elements of another type, `ValueError` for strides that no layout expresses.
    pub fn dense<T: Scalar>(&self) -> PyResult<DenseView<'_, T>> {
        self.on_host()?;
        let (layout, leading) = self.checked_layout::<T>()?;
        let [rows, columns] = self.matrix();
        // SAFETY: the strides are those of this layout, every element is aligned in memory that the
        // owner keeps. That nobody writes it is said in the documentation of the package.
        unsafe { DenseView::from_raw_parts(rows, columns, layout, leading, self.pointer()) }
            .map_err(crate::error::to_python)
    }

    /// The same, to be written.
    ///
    /// # Errors
    /// As [`Array::dense`], and `ValueError` for one that is read-only.
    pub fn dense_mut<T: Scalar>(&mut self) -> PyResult<DenseViewMut<'_, T>> {
        self.on_host()?;
        let (layout, leading) = self.checked_layout::<T>()?;
        let [rows, columns] = self.matrix();
        if self.readonly {
            return Err(PyValueError::new_err(format!("{} is read-only", self.name)));
        }
        // SAFETY: as above; it may be written, and operands that overlap were refused.
        unsafe { DenseViewMut::from_raw_parts(rows, columns, layout, leading, self.pointer()) }
            .map_err(crate::error::to_python)
    }

    /// The elements of a vector on a GPU, to be used while this lives in work on the stream of the call.
    ///
    /// The memory is given back to its library when the work is queued. That is safe, as the library uses it again in
    /// the order of the stream: of its current stream, which that of the call is; of any other, the package tells the
    /// library that memory is in use there, or lets the library's stream wait.
    ///
    /// # Errors
    /// `TypeError` for elements of another type, `ValueError` for an array that is elsewhere or not packed.
    pub fn buffer<T: Scalar>(&self, gpu: &Gpu) -> Result<DeviceBuffer<T>, Fault> {
        if self.element != Element::of::<T>() {
            return Err(self.wrong_type::<T>().into());
        }
        self.check_packed::<T>()?;
        self.on_gpu(gpu, self.dimensions.shape[0])
    }

    /// The same, to be written.
    ///
    /// # Errors
    /// As [`Array::buffer`], and `ValueError` for one that is read-only.
    pub fn buffer_mut<T: Scalar>(&mut self, gpu: &Gpu) -> Result<DeviceBuffer<T>, Fault> {
        self.writable()?;
        self.buffer(gpu)
    }

    /// The indices of a vector on a GPU as integers of their width.
    ///
    /// # Errors
    /// As [`Array::buffer`].
    pub fn index_buffer<I: gustav::Index>(&self, gpu: &Gpu) -> Result<DeviceBuffer<I>, Fault> {
        self.check_packed::<I>()?;
        self.on_gpu(gpu, self.dimensions.shape[0])
    }

    /// As [`Array::indices_mut`], on a GPU.
    ///
    /// # Errors
    /// As there, and as [`Array::buffer`].
    pub fn indices_mut_buffer(&mut self, gpu: &Gpu) -> Result<DeviceBuffer<u64>, Fault> {
        self.check_indices_mut()?;
        self.on_gpu(gpu, self.len())
    }

    /// The matrix on a GPU, or a vector as one column; see [`Array::buffer`].
    ///
    /// # Errors
    /// As [`Array::dense`], and `ValueError` for an array that is elsewhere.
    pub fn device_dense<T: Scalar>(&self, gpu: &Gpu) -> Result<DeviceDense<T>, Fault> {
        let (layout, leading) = self.checked_layout::<T>()?;
        let [rows, columns] = self.matrix();
        let (lines, length) = match layout {
            Layout::RowMajor => (rows, columns),
            Layout::ColumnMajor => (columns, rows),
        };
        // What lies behind the last line is not the array's.
        let span = if self.len() == 0 { 0 } else { (lines - 1) * leading + length };
        let data = self.on_gpu(gpu, span)?;
        Ok(DeviceDense::new(rows, columns, layout, leading.max(length), data)?)
    }

    /// The same, to be written.
    ///
    /// # Errors
    /// As [`Array::device_dense`], and `ValueError` for one that is read-only.
    pub fn device_dense_mut<T: Scalar>(&mut self, gpu: &Gpu) -> Result<DeviceDense<T>, Fault> {
        self.writable()?;
        self.device_dense(gpu)
    }

    fn writable(&self) -> PyResult<()> {
        match self.readonly {
            false => Ok(()),
            true => Err(PyValueError::new_err(format!("{} is read-only", self.name))),
        }
    }

    /// `len` neighbours from the first on, which were found to be the array's.
    fn on_gpu<T: bytemuck::Pod>(&self, gpu: &Gpu, len: usize) -> Result<DeviceBuffer<T>, Fault> {
        if self.gpu != Some(gpu.ordinal) {
            let found = self.gpu.map_or_else(|| "host memory".into(), |k| format!("cuda:{k}"));
            return Err(elsewhere(self.name, &found, &format!("cuda:{}", gpu.ordinal)).into());
        }
        if !self.is_aligned() {
            self.on_host()?;
        }
        let address = if len == 0 { 0 } else { self.data as u64 };
        // SAFETY: the owner, which is held, has as many neighbours of this size at the address, aligned; what is queued
        // on them is in the order of the call's stream.
        Ok(unsafe { DeviceBuffer::borrowed(gpu.on()?, address, len) })
    }

    fn checked_layout<T: Scalar>(&self) -> PyResult<(Layout, usize)> {
        if self.element != Element::of::<T>() {
            return Err(self.wrong_type::<T>());
        }
        self.layout().filter(|_| self.is_aligned()).ok_or_else(|| {
            PyValueError::new_err(format!(
                "{}: strides that are not those of rows or columns with a leading dimension",
                self.name
            ))
        })
    }
}

/// A packed copy of an array, by the library that it belongs to.
fn packed<'py>(name: &str, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = object.py();
    if object.is_instance_of::<PyCapsule>() {
        // Who makes a capsule brings its tensor into a layout before.
        return Err(PyValueError::new_err(format!(
            "{name}: its elements are not aligned to their size; give a copy, as clone() makes"
        )));
    }
    if object.hasattr(intern!(py, "contiguous"))? {
        let made = object.call_method0(intern!(py, "contiguous"))?;
        // What is contiguous already is not aligned.
        if !made.is(object) {
            return Ok(made);
        }
        if object.hasattr(intern!(py, "clone"))? {
            return object.call_method0(intern!(py, "clone"));
        }
    }
    // A copy, which is aligned; `ascontiguousarray` returns what is contiguous as it is.
    let array = py.import(intern!(py, "numpy"))?.getattr(intern!(py, "array"))?;
    array.call1((object,))?.call_method1(intern!(py, "copy"), ("C",))
}
