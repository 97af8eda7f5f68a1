//! The device's memory pool: how much freed memory it retains, and the peak of its use.

use cudarc::driver::{DriverError, sys};
use gustav_core::Result;

use super::Device;
use super::driver::Checked;

type Attribute = sys::CUmemPool_attribute;

// The pool retains freed memory up to the device's memory ÷ this.
const RETAINED_PART: u64 = 16;

/// Makes the device's pool retain some freed memory over synchronisations, so that new plans need
/// not map memory again.
pub(crate) fn keep_freed_memory(device: sys::CUdevice) -> std::result::Result<(), DriverError> {
    let mut total = 0usize;
    // SAFETY: the device exists.
    unsafe { sys::cuDeviceTotalMem_v2(&mut total, device).result()? };
    set(device, Attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, total as u64 / RETAINED_PART)
}

fn pool(device: sys::CUdevice) -> std::result::Result<sys::CUmemoryPool, DriverError> {
    let mut pool = std::ptr::null_mut();
    // SAFETY: the device exists.
    unsafe { sys::cuDeviceGetDefaultMemPool(&mut pool, device).result()? };
    Ok(pool)
}

fn set(
    device: sys::CUdevice,
    attribute: Attribute,
    mut value: u64,
) -> std::result::Result<(), DriverError> {
    // SAFETY: the attribute is a 64-bit number.
    unsafe {
        sys::cuMemPoolSetAttribute(pool(device)?, attribute, std::ptr::from_mut(&mut value).cast())
            .result()
    }
}

fn get(device: sys::CUdevice, attribute: Attribute) -> std::result::Result<u64, DriverError> {
    let mut value = 0u64;
    // SAFETY: the attribute is a 64-bit number.
    unsafe {
        sys::cuMemPoolGetAttribute(pool(device)?, attribute, std::ptr::from_mut(&mut value).cast())
            .result()?;
    }
    Ok(value)
}

impl Device {
    /// Restarts [`Device::peak_memory`] from the present use, and returns it: bytes of owned
    /// [`DeviceBuffer`](crate::DeviceBuffer)s on the device. Waits for the device's own stream, on
    /// which they are freed.
    ///
    /// # Errors
    /// [`Error::Device`](gustav_core::Error::Device).
    pub fn reset_peak_memory(&self) -> Result<u64> {
        self.bind()?;
        self.stream().synchronize()?;
        let device = self.context().cu_device();
        set(device, Attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0).during("resetting peak memory")?;
        get(device, Attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT).during("asking for used memory")
    }

    /// Peak of the bytes of owned buffers on the device since [`Device::reset_peak_memory`].
    ///
    /// # Errors
    /// [`Error::Device`](gustav_core::Error::Device).
    pub fn peak_memory(&self) -> Result<u64> {
        self.bind()?;
        let device = self.context().cu_device();
        get(device, Attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH).during("asking for peak memory")
    }
}
