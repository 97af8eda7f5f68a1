//! Memory of a device, owned or borrowed.

use std::any::Any;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use cudarc::driver::{DriverError, result, sys};
use gustav_core::{Buffer, Error, Result};

use super::driver::{Checked, describe};
#[cfg(test)]
use super::ledger;
use super::order::{self, Users, Uses};
use super::stream::{Stream, relaxed};
use super::{Device, graph};

/// Device memory that no buffer owns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allocation {
    pub address: u64,
    /// Values of the buffer that owned it.
    pub len: usize,
}

/// `len` values on a device.
///
/// Owned memory is allocated on the device's own stream and freed there in stream order, after the
/// work of every stream that used it. Borrowed memory is never freed. Work that uses a buffer waits
/// for earlier work on other streams that it depends on, see [`Stream`].
#[derive(Debug)]
pub struct DeviceBuffer<T> {
    memory: Arc<Memory>,
    len: usize,
    value: PhantomData<T>,
}

/// A block of memory and the streams that use it.
#[derive(Debug)]
pub(crate) struct Memory {
    device: Device,
    address: u64,
    owned: bool,
    /// What keeps memory that is not owned, until the work on it is done.
    holder: Option<Box<dyn Any + Send + Sync>>,
    /// The block that it is part of, if it is: the streams that use the one use the other.
    whole: Option<Arc<Memory>>,
    users: Users,
}

impl Memory {
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    pub(super) fn users(&self) -> &Users {
        self.whole.as_ref().map_or(&self.users, |whole| whole.users())
    }

    /// Whether the memory is freed with the last use of the block.
    fn is_owned(&self) -> bool {
        self.whole.as_ref().map_or(self.owned, |whole| whole.is_owned())
    }
}

impl Memory {
    /// Waits until the work on the memory is done, and drops what keeps it.
    fn let_go(&mut self, holder: Box<dyn Any + Send + Sync>) {
        let stream = self.device.stream();
        let done = self.device.bind().and_then(|()| {
            self.users.end_on(stream)?;
            // This thread may be capturing a stream.
            relaxed(|| stream.synchronize())
        });
        if done.is_err() {
            // Work that cannot be waited for may still read the memory.
            std::mem::forget(holder);
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Some(holder) = self.holder.take() {
            return self.let_go(holder);
        }
        if !self.owned || self.address == 0 {
            return;
        }
        #[cfg(test)]
        ledger::free(self.address);
        let stream = self.device.stream();
        // If its users cannot be waited for, memory is leaked until the process ends.
        if self.device.bind().is_ok() && self.users.end_on(stream).is_ok() {
            // SAFETY: allocated here on this stream, freed once, after all work on it.
            let _ = unsafe { result::free_async(self.address, stream.raw().cu_stream()) };
        }
    }
}

/// The error of an allocation.
pub(super) fn not_allocated(
    e: DriverError,
    device: &Device,
    what: &'static str,
    needed: u128,
) -> Error {
    match e.0 {
        sys::cudaError_enum::CUDA_ERROR_OUT_OF_MEMORY
        | sys::cudaError_enum::CUDA_ERROR_INVALID_VALUE => Error::OutOfMemory {
            what,
            needed,
            available: device.memory().ok().map(|(free, _)| free as u64),
        },
        _ => Error::Device { action: "allocating memory", reason: describe(e) },
    }
}

/// The number of the device that memory is on, of any library's.
///
/// # Errors
/// [`Error::NoDevice`] without a driver, [`Error::Argument`] for an address of no device's memory.
pub fn ordinal_of(address: u64) -> Result<usize> {
    Device::count()?;
    let mut ordinal = 0i32;
    let attribute = sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL;
    // SAFETY: any address may be asked about; the attribute is one integer.
    let status = unsafe {
        sys::cuPointerGetAttribute(std::ptr::from_mut(&mut ordinal).cast(), attribute, address)
    };
    match (status.result(), usize::try_from(ordinal)) {
        (Ok(()), Ok(ordinal)) => Ok(ordinal),
        _ => Err(Error::Argument {
            name: "address",
            found: format!("{address:#x}, which is in no device's memory"),
            expected: "memory of a device".into(),
        }),
    }
}

impl<T: bytemuck::Pod> DeviceBuffer<T> {
    /// `len` values whose bytes are all zero.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] naming `what`, with the free memory; the device stays usable.
    pub fn zeros(device: &Device, len: usize, what: &'static str) -> Result<Self> {
        let mut buffer = Self::queued(device, len, what)?;
        buffer.fill(0, device.stream())?;
        Ok(buffer)
    }

    /// Uninitialised memory for `len` values.
    ///
    /// # Errors
    /// As [`DeviceBuffer::zeros`].
    pub(crate) fn uninit(device: &Device, len: usize, what: &'static str) -> Result<Self> {
        let mut buffer = Self::queued(device, len, what)?;
        // Afterwards the memory may be used on any stream.
        if buffer.address() != 0 {
            device.stream().synchronize()?;
            buffer.forget_users();
        }
        Ok(buffer)
    }

    /// As [`DeviceBuffer::uninit`], without waiting for the allocation on the host.
    pub(crate) fn queued(device: &Device, len: usize, what: &'static str) -> Result<Self> {
        let needed = len as u128 * size_of::<T>() as u128;
        let bytes = usize::try_from(needed).unwrap_or(usize::MAX);
        let mut address = 0;
        if bytes > 0 {
            graph::refuse("taking memory")?;
            #[cfg(test)]
            ledger::allow(what, needed)?;
            device.bind()?;
            // SAFETY: the stream is alive and belongs to the bound device.
            let allocated =
                unsafe { result::malloc_async(device.stream().raw().cu_stream(), bytes) };
            address = allocated.map_err(|e| not_allocated(e, device, what, needed))?;
            #[cfg(test)]
            ledger::take(address, bytes);
        }
        let users = Users::allocated_on(device.stream());
        Ok(Self::at(device, address, len, true, users))
    }

    /// A copy of `values`.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] naming `what`, [`Error::Device`].
    pub fn from_slice(device: &Device, values: &[T], what: &'static str) -> Result<Self> {
        let mut buffer = Self::queued(device, values.len(), what)?;
        buffer.write(values)?;
        Ok(buffer)
    }

    /// A buffer over memory on `device` that somebody else owns.
    ///
    /// # Safety
    /// `address` is `len` values of `T`, aligned for `T`, on this device, and is not freed before
    /// the last work that uses the buffer is done. The caller orders work of other libraries on it.
    /// Once it is part of a [`DevicePattern`](crate::DevicePattern), nobody writes it.
    pub unsafe fn borrowed(device: &Device, address: u64, len: usize) -> Self {
        Self::at(device, address, len, false, Users::default())
    }

    /// As [`DeviceBuffer::borrowed`], of memory that `holder` keeps: that is dropped with the last use of the
    /// buffer, after waiting for the work on it.
    ///
    /// # Safety
    /// As there, and the memory lives as long as `holder` is there.
    pub unsafe fn held(
        device: &Device,
        address: u64,
        len: usize,
        holder: impl Any + Send + Sync,
    ) -> Self {
        let mut buffer = Self::at(device, address, len, false, Users::default());
        if let Some(memory) = Arc::get_mut(&mut buffer.memory) {
            memory.holder = Some(Box::new(holder));
        }
        buffer
    }

    /// `len` values from value `first` on as a buffer of their own, in the same memory, which lives as long as one of
    /// the two: work on one waits for earlier work on the other.
    ///
    /// # Safety
    /// Whoever has one of the buffers expects its values to change when the other is written, and nobody writes those
    /// that others rely on, such as column indices of a pattern.
    ///
    /// # Panics
    /// If the buffer has fewer values.
    pub unsafe fn part(&self, first: usize, len: usize) -> Self {
        assert!(first.checked_add(len).is_some_and(|end| end <= self.len), "values of the buffer");
        let address = self.address() + (first * size_of::<T>()) as u64;
        let mut part = Self::at(self.device(), address, len, false, Users::default());
        if let Some(memory) = Arc::get_mut(&mut part.memory) {
            memory.whole = Some(self.memory.clone());
        }
        part
    }

    /// A buffer that owns memory released by [`DeviceBuffer::give_away`].
    ///
    /// # Safety
    /// `address` is what it returned, with at least `len` values, and nobody else owns it.
    pub(crate) unsafe fn owned(device: &Device, address: u64, len: usize) -> Self {
        Self::at(device, address, len, true, Users::allocated_on(device.stream()))
    }

    fn at(device: &Device, address: u64, len: usize, owned: bool, users: Users) -> Self {
        let (device, holder, whole) = (device.clone(), None, None);
        let memory = Memory { device, address, owned, holder, whole, users };
        DeviceBuffer { memory: Arc::new(memory), len, value: PhantomData }
    }

    /// Overwrites all values, and waits for the copy.
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::Device`].
    pub fn write(&mut self, values: &[T]) -> Result<()> {
        self.check_length(values.len())?;
        if values.is_empty() {
            return Ok(());
        }
        let stream = self.device().stream();
        stream.bind()?;
        Uses::on(stream).write(self)?;
        // SAFETY: the buffer holds as many values as the slice, and the copy is waited for.
        unsafe { result::memcpy_htod_async(self.address(), values, stream.raw().cu_stream()) }
            .during("copying to the device")?;
        stream.synchronize()?;
        self.forget_users();
        Ok(())
    }

    /// Queues a fill of all bytes with `byte` on `stream`.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub fn fill(&mut self, byte: u8, stream: &Stream) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        self.device().bind()?;
        Uses::on(stream).write(self)?;
        let (address, bytes) = (self.address(), self.bytes());
        // SAFETY: the buffer holds as many bytes, and waits for the stream when freed.
        unsafe { result::memset_d8_async(address, byte, bytes, stream.raw().cu_stream()) }
            .during("filling memory")
    }

    /// Queues a copy of all values of `from`, which is on the same device, on `stream`.
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::Argument`] for a buffer on another device, [`Error::Device`].
    pub fn copy_from(&mut self, from: &Self, stream: &Stream) -> Result<()> {
        self.check_length(from.len())?;
        if self.is_empty() {
            return Ok(());
        }
        if from.device() != self.device() {
            return Err(Error::Argument {
                name: "from",
                found: "a buffer on another device".into(),
                expected: "one on the same device".into(),
            });
        }
        self.device().bind()?;
        let mut uses = Uses::on(stream);
        uses.read(from)?;
        uses.write(self)?;
        let (to, bytes) = (self.address(), self.bytes());
        // SAFETY: both hold as many bytes, and wait for the stream when freed.
        unsafe { result::memcpy_dtod_async(to, from.address(), bytes, stream.raw().cu_stream()) }
            .during("copying on the device")
    }

    /// Copies all values to `values`, after the work queued on them.
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::Device`].
    pub fn read(&self, values: &mut [T]) -> Result<()> {
        self.check_length(values.len())?;
        self.read_at(0, values)
    }

    /// Copies the values from `first` on to `values`, after the work queued on them.
    ///
    /// # Errors
    /// [`Error::Length`] when there are too few, [`Error::Device`].
    pub fn read_at(&self, first: usize, values: &mut [T]) -> Result<()> {
        self.check_range(first, values.len())?;
        if values.is_empty() {
            return Ok(());
        }
        let from = self.address() + (first * size_of::<T>()) as u64;
        let stream = self.join()?;
        // SAFETY: the values lie in the buffer, and the copy is waited for.
        unsafe { result::memcpy_dtoh_async(values, from, stream.raw().cu_stream()) }
            .during("copying from the device")?;
        stream.synchronize()
    }

    /// Queues a copy of the values from `first` on to `values` of the host on `stream`, after the work queued on them
    /// on other streams. Only a copy to page-locked memory runs beside other work.
    ///
    /// # Safety
    /// Nobody reads, writes or frees `values`, which are initialised, before the work queued on the stream is done.
    ///
    /// # Errors
    /// [`Error::Length`] when there are too few, [`Error::Device`].
    pub unsafe fn start_read(&self, first: usize, values: *mut [T], stream: &Stream) -> Result<()> {
        self.check_range(first, values.len())?;
        if values.is_empty() {
            return Ok(());
        }
        self.join_on(stream)?;
        let from = self.address() + (first * size_of::<T>()) as u64;
        // SAFETY: the values lie in the buffer; the rest is the caller's promise.
        unsafe { result::memcpy_dtoh_async(&mut *values, from, stream.raw().cu_stream()) }
            .during("copying from the device")
    }

    /// Queues a copy of `values` of the host to the values from `first` on, on `stream`, after the work queued on them
    /// on other streams. Only a copy from page-locked memory runs beside other work.
    ///
    /// # Safety
    /// Nobody writes or frees `values`, which are initialised, before the work queued on the stream is done.
    ///
    /// # Errors
    /// As [`DeviceBuffer::start_read`].
    pub unsafe fn start_write(
        &mut self,
        first: usize,
        values: *const [T],
        stream: &Stream,
    ) -> Result<()> {
        self.check_range(first, values.len())?;
        if values.is_empty() {
            return Ok(());
        }
        stream.bind()?;
        Uses::on(stream).write(self)?;
        let to = self.address() + (first * size_of::<T>()) as u64;
        // SAFETY: the values lie in the buffer; the rest is the caller's promise.
        unsafe { result::memcpy_htod_async(to, &*values, stream.raw().cu_stream()) }
            .during("copying to the device")
    }

    fn check_range(&self, first: usize, len: usize) -> Result<()> {
        match first.checked_add(len) {
            Some(end) if end <= self.len => Ok(()),
            _ => Err(Error::Length {
                what: "device buffer",
                expected: self.len,
                found: first.saturating_add(len),
            }),
        }
    }

    /// All values, after the work queued on them.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] on the host, [`Error::Device`].
    pub fn to_host(&self) -> Result<Buffer<T>> {
        let mut values = Buffer::zeroed(self.len, "values from the device")?;
        self.read(&mut values)?;
        Ok(values)
    }

    fn check_length(&self, found: usize) -> Result<()> {
        gustav_core::validate::length("device buffer", self.len, found)
    }
}

impl<T> DeviceBuffer<T> {
    /// Number of values.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes.
    pub fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }

    /// Address on the device.
    pub fn address(&self) -> u64 {
        self.memory.address
    }

    /// The device it is on.
    pub fn device(&self) -> &Device {
        &self.memory.device
    }

    pub(crate) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// Releases the ownership of memory that nobody else uses to the caller. The device's stream
    /// waits for all work on it.
    pub(crate) fn give_away(&mut self) -> Option<Allocation> {
        let memory = Arc::get_mut(&mut self.memory)?;
        if !memory.owned || memory.address == 0 || graph::refuse("giving memory away").is_err() {
            return None;
        }
        memory.device.bind().ok()?;
        memory.users.end_on(memory.device.stream()).ok()?;
        memory.owned = false;
        Some(Allocation { address: memory.address, len: self.len })
    }

    /// Records that `stream` has work on the buffer; its owner orders its uses.
    pub(crate) fn used_on(&self, stream: &Stream) {
        order::note(&self.memory, stream);
    }

    /// The device's stream, ordered after earlier writes of the buffer.
    pub(crate) fn join(&self) -> Result<&Stream> {
        let stream = self.device().stream();
        stream.bind()?;
        Uses::on(stream).read(self)?;
        Ok(stream)
    }

    /// Orders `stream`, on the same GPU, after earlier writes of the buffer.
    pub(crate) fn join_on(&self, stream: &Stream) -> Result<()> {
        stream.bind()?;
        Uses::on(stream).read(self)
    }

    /// Whether nothing else refers to the memory: no plan, no graph.
    pub(crate) fn is_alone(&self) -> bool {
        Arc::strong_count(&self.memory) == 1 && self.memory.whole.is_none()
    }

    /// Whether the memory is freed with the buffer.
    pub(crate) fn is_owned(&self) -> bool {
        self.memory.is_owned()
    }

    /// Forgets the streams that used the buffer, all of whose work is done.
    fn forget_users(&mut self) {
        // Otherwise a graph may refer to the memory and be launched at any time.
        if let Some(memory) = Arc::get_mut(&mut self.memory) {
            memory.users.clear();
        }
    }
}

/// The values of a matrix, mutable in place: their number and their memory do not change.
///
/// They cannot be swapped for another buffer:
/// ```compile_fail,E0596
/// fn swap(c: &mut gustav_cuda::DeviceDense<f32>, other: &mut gustav_cuda::DeviceBuffer<f32>) {
///     std::mem::swap(&mut *c.data_mut(), other);
/// }
/// ```
/// ```compile_fail,E0596
/// fn swap(a: &mut gustav_cuda::DeviceCsr<f32>, other: &mut gustav_cuda::DeviceBuffer<f32>) {
///     std::mem::swap(&mut *a.values_mut(), other);
/// }
/// ```
/// ```
/// fn fill(c: &mut gustav_cuda::DeviceDense<f32>) -> gustav_core::Result<()> {
///     let stream = c.data().device().stream().clone();
///     c.data_mut().fill(0, &stream)
/// }
/// ```
#[derive(Debug)]
pub struct DeviceSliceMut<'a, T>(&'a mut DeviceBuffer<T>);

impl<'a, T: bytemuck::Pod> DeviceSliceMut<'a, T> {
    pub(crate) fn new(buffer: &'a mut DeviceBuffer<T>) -> Self {
        DeviceSliceMut(buffer)
    }

    /// As [`DeviceBuffer::write`].
    ///
    /// # Errors
    /// As there.
    pub fn write(&mut self, values: &[T]) -> Result<()> {
        self.0.write(values)
    }

    /// As [`DeviceBuffer::fill`].
    ///
    /// # Errors
    /// As there.
    pub fn fill(&mut self, byte: u8, stream: &Stream) -> Result<()> {
        self.0.fill(byte, stream)
    }

    /// As [`DeviceBuffer::copy_from`].
    ///
    /// # Errors
    /// As there.
    pub fn copy_from(&mut self, from: &DeviceBuffer<T>, stream: &Stream) -> Result<()> {
        self.0.copy_from(from, stream)
    }
}

impl<T> Deref for DeviceSliceMut<'_, T> {
    type Target = DeviceBuffer<T>;
    fn deref(&self) -> &DeviceBuffer<T> {
        self.0
    }
}
