//! A CUDA device: its context, its memory and its streams.

mod counters;
pub(crate) mod driver;
mod exported;
pub mod foreign;
pub(crate) mod graph;
#[cfg(test)]
pub(crate) mod ledger;
pub mod memory;
pub(crate) mod order;
pub mod pinned;
mod pool;
pub mod profile;
pub mod stream;

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cudarc::driver::{CudaContext, DriverError, result, sys};
use gustav_core::{Error, Result};
use gustav_plan::DeviceProfile;

pub(crate) use counters::Counters;
use driver::{Checked, describe};
pub use graph::Graph;
use memory::Allocation;
pub use memory::{DeviceBuffer, DeviceSliceMut};
pub use pinned::PinnedBuffer;
use pool::keep_freed_memory;
pub use profile::Profile;
pub use stream::{Event, Stream};

// The oldest driver that has every function this crate calls; the newest of them is
// `cuEventElapsedTime_v2`.
const OLDEST_DRIVER: i32 = 12_080;

/// A CUDA device. Clones are the same device.
#[derive(Clone)]
pub struct Device {
    inner: Arc<Inner>,
}

struct Inner {
    context: Arc<CudaContext>,
    stream: Stream,
    profile: Profile,
    // The kernels that are loaded on the device, see `launch`.
    kernels: OnceLock<Box<dyn Any + Send + Sync>>,
    // Zeroed counters that no plan uses.
    counters: Mutex<Option<Allocation>>,
    // Objects that algorithms create once for all plans, by type and key.
    cache: Mutex<HashMap<(TypeId, String), Arc<dyn Any + Send + Sync>>>,
}

impl Device {
    /// Device number `ordinal`, with kernels cached in the user's cache folder.
    ///
    /// # Errors
    /// [`Error::NoDevice`] that says what is missing.
    pub fn cuda(ordinal: usize) -> Result<Self> {
        Self::check(ordinal)?;
        let context = CudaContext::new(ordinal).map_err(|e| no_device(ordinal, e))?;
        // Buffers order their streams themselves, see order.rs. SAFETY: no `CudaSlice` is used in
        // this crate, so nothing relies on tracked events.
        unsafe { context.disable_event_tracking() };
        let profile = Profile::of(context.cu_device()).map_err(|e| no_device(ordinal, e))?;
        profile.is_new_enough(ordinal)?;
        let stream = Stream::new(context.new_stream().map_err(|e| no_device(ordinal, e))?, true);
        keep_freed_memory(context.cu_device()).map_err(|e| no_device(ordinal, e))?;
        Ok(Device {
            inner: Arc::new(Inner {
                context,
                stream,
                profile,
                kernels: OnceLock::new(),
                counters: Mutex::default(),
                cache: Mutex::default(),
            }),
        })
    }

    /// Number of CUDA devices.
    ///
    /// # Errors
    /// [`Error::NoDevice`] when the driver is missing, too old, or fails.
    pub fn count() -> Result<usize> {
        let missing = |reason: String| Error::NoDevice { reason };
        // SAFETY: only tries to open the library.
        if !unsafe { sys::is_culib_present() } {
            let library = if cfg!(windows) { "nvcuda.dll" } else { "libcuda.so.1" };
            return Err(missing(format!(
                "the NVIDIA driver's library {library} was not found; install the driver"
            )));
        }
        let mut version = 0;
        // SAFETY: writes one integer, and may be called before initialisation.
        let status = unsafe { sys::cuDriverGetVersion(&mut version) };
        if status.result().is_err() || version < OLDEST_DRIVER {
            return Err(missing(format!(
                "the NVIDIA driver supports CUDA {}.{}, {}.{} is needed; update the driver",
                version / 1000,
                version % 1000 / 10,
                OLDEST_DRIVER / 1000,
                OLDEST_DRIVER % 1000 / 10
            )));
        }
        let count = CudaContext::device_count()
            .map_err(|e| missing(format!("the NVIDIA driver reports {}", describe(e))))?;
        Ok(usize::try_from(count).unwrap_or(0))
    }

    /// Checks that there is a device of this number.
    pub(crate) fn check(ordinal: usize) -> Result<()> {
        let count = Self::count().map_err(|e| match e {
            Error::NoDevice { reason } => {
                Error::NoDevice { reason: format!("cuda:{ordinal} was requested, but {reason}") }
            }
            other => other,
        })?;
        if ordinal < count {
            return Ok(());
        }
        let reason = format!("cuda:{ordinal} was requested, but there are {count} CUDA devices");
        Err(Error::NoDevice { reason })
    }

    /// Properties of the device.
    pub fn profile(&self) -> &Profile {
        &self.inner.profile
    }

    /// The device profile for the planner.
    pub fn planner_profile(&self) -> DeviceProfile {
        let p = self.profile();
        DeviceProfile {
            name: p.name.clone(),
            units: p.multiprocessors,
            lanes: p.warp,
            l2_bytes: p.l2_bytes,
            llc_bytes: p.l2_bytes,
        }
    }

    /// The stream that memory is allocated, uploaded and downloaded on.
    pub fn stream(&self) -> &Stream {
        &self.inner.stream
    }

    /// A new stream.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub fn new_stream(&self) -> Result<Stream> {
        let raw = self.inner.context.new_stream().during("making a stream")?;
        Ok(Stream::new(raw, false))
    }

    /// Free and total memory in bytes.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub fn memory(&self) -> Result<(usize, usize)> {
        self.inner.context.mem_get_info().during("asking for free memory")
    }

    /// A number of the GPU, or of the part of one that the device is: the same in every process that uses it, and of no
    /// other.
    ///
    /// # Errors
    /// [`Error::Device`].
    pub fn uuid(&self) -> Result<u128> {
        let uuid = self.inner.context.uuid().during("asking for the number of the device")?;
        Ok(u128::from_ne_bytes(uuid.bytes.map(|byte| byte as u8)))
    }

    pub(crate) fn context(&self) -> &Arc<CudaContext> {
        &self.inner.context
    }

    /// Binds the device's context to the calling thread.
    pub(crate) fn bind(&self) -> Result<()> {
        self.inner.context.bind_to_thread().during("using the device from this thread")
    }

    /// The value that `make` returned in the first call with this key and type.
    pub(crate) fn cached<V: Any + Send + Sync>(
        &self,
        key: &str,
        make: impl FnOnce() -> Result<V>,
    ) -> Result<Arc<V>> {
        let cache = || self.inner.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (TypeId::of::<V>(), key.to_owned());
        let found = cache().get(&key).cloned();
        if let Some(Ok(value)) = found.map(Arc::downcast) {
            return Ok(value);
        }
        let value = Arc::new(make()?);
        cache().insert(key, value.clone());
        Ok(value)
    }

    /// The kernels of this device; `make` creates their collection in the first call.
    pub(crate) fn kernels<K: Any + Send + Sync>(&self, make: impl FnOnce() -> K) -> Result<&K> {
        let kernels = self.inner.kernels.get_or_init(|| Box::new(make()));
        kernels.downcast_ref().ok_or_else(|| Error::Device {
            action: "looking up the kernels of the device",
            reason: "there is a collection of another type".into(),
        })
    }

    /// Zeroed counters that no plan uses, if there are at least `len`.
    pub(crate) fn take_counters(&self, len: usize) -> Option<Allocation> {
        let mut free = self.inner.counters.lock().unwrap_or_else(PoisonError::into_inner);
        free.take_if(|held| held.len >= len)
    }

    /// Stores counters, which are zero when the device's stream is done, for the next plan; frees
    /// them if more are stored already.
    pub(crate) fn keep_counters(&self, mut given: Allocation) {
        let mut free = self.inner.counters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = free.as_mut().filter(|held| held.len < given.len) {
            std::mem::swap(held, &mut given);
        } else if free.is_none() {
            *free = Some(given);
            return;
        }
        drop(free);
        self.inner.free(given.address);
    }
}

impl Inner {
    /// Frees memory of this device in stream order.
    fn free(&self, address: u64) {
        if self.context.bind_to_thread().is_ok() {
            // SAFETY: allocated on this device, freed once, after the work queued so far.
            let _ = unsafe { result::free_async(address, self.stream.raw().cu_stream()) };
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let free = self.counters.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(free) = free {
            self.free(free.address);
        }
    }
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Device").field(&self.inner.profile).finish()
    }
}

impl PartialEq for Device {
    /// Whether both are the same device, so that one can read the other's memory.
    fn eq(&self, other: &Self) -> bool {
        self.inner.context == other.inner.context
    }
}

pub(crate) fn no_device(ordinal: usize, e: DriverError) -> Error {
    Error::NoDevice { reason: format!("cuda:{ordinal} does not start: {}", describe(e)) }
}
