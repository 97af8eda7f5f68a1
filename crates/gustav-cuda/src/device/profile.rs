//! Properties of a CUDA device.

use cudarc::driver::{DriverError, result, sys};
use gustav_core::{Error, Result};

use super::{Device, no_device};

// Compute capability of the oldest devices that kernels are written for.
const OLDEST: (i32, i32) = (7, 5);

/// Properties of a device, as read from the driver.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Profile {
    /// The device's name.
    pub name: String,
    /// Compute capability, for example (9, 0).
    pub compute_capability: (i32, i32),
    /// Streaming multiprocessors.
    pub multiprocessors: usize,
    /// Lanes of a warp.
    pub warp: usize,
    /// Threads that one multiprocessor holds at once.
    pub threads_per_multiprocessor: usize,
    /// Level-2 cache in bytes.
    pub l2_bytes: usize,
    /// Shared memory in bytes that one CTA can request.
    pub shared_bytes_per_cta: usize,
    /// Memory in bytes.
    pub memory_bytes: usize,
    /// Highest clock of the multiprocessors in MHz.
    pub clock_mhz: usize,
    /// Highest clock of the memory in MHz.
    pub memory_clock_mhz: usize,
    /// The driver's CUDA version, for example 13000.
    pub driver: i32,
}

impl Profile {
    /// The properties of device number `ordinal`, without creating a context on it.
    ///
    /// # Errors
    /// [`Error::NoDevice`] that says what is missing.
    pub fn read(ordinal: usize) -> Result<Self> {
        Device::check(ordinal)?;
        let device = result::device::get(i32::try_from(ordinal).unwrap_or(i32::MAX));
        device.and_then(Profile::of).map_err(|e| no_device(ordinal, e))
    }

    /// The target that kernels are compiled for, for example `sm_90`.
    pub fn target(&self) -> String {
        let (major, minor) = self.compute_capability;
        format!("sm_{major}{minor}")
    }

    /// Reads the properties of `device` from the driver.
    pub(crate) fn of(device: sys::CUdevice) -> std::result::Result<Self, DriverError> {
        use sys::CUdevice_attribute_enum as Attribute;
        // SAFETY: the handle came from the driver.
        let number = |attribute| unsafe { result::device::get_attribute(device, attribute) };
        let read = |attribute| number(attribute).map(|v| usize::try_from(v).unwrap_or(0));
        let mut driver = 0;
        // SAFETY: writes one integer.
        unsafe { sys::cuDriverGetVersion(&mut driver) }.result()?;
        Ok(Profile {
            name: result::device::get_name(device)?,
            compute_capability: (
                number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
                number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
            ),
            multiprocessors: read(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            warp: read(Attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE)?,
            threads_per_multiprocessor: read(
                Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
            )?,
            l2_bytes: read(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?,
            shared_bytes_per_cta: read(
                Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
            )?,
            // SAFETY: the handle came from the driver.
            memory_bytes: unsafe { result::device::total_mem(device) }?,
            clock_mhz: read(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)? / 1000,
            memory_clock_mhz: read(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)? / 1000,
            driver,
        })
    }

    /// Checks that the device supports the kernels.
    pub(crate) fn is_new_enough(&self, ordinal: usize) -> Result<()> {
        if self.compute_capability >= OLDEST {
            return Ok(());
        }
        let ((major, minor), name) = (self.compute_capability, &self.name);
        Err(Error::NoDevice {
            reason: format!(
                "cuda:{ordinal} is a {name} of compute capability {major}.{minor}, and kernels \
                 need {}.{}: use the CPU",
                OLDEST.0, OLDEST.1
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_before_all_kernels_are_refused_by_name() {
        let of = |capability| Profile {
            name: "Old GPU".into(),
            compute_capability: capability,
            multiprocessors: 1,
            warp: 32,
            threads_per_multiprocessor: 1024,
            l2_bytes: 0,
            shared_bytes_per_cta: 0,
            memory_bytes: 0,
            clock_mhz: 0,
            memory_clock_mhz: 0,
            driver: 13000,
        };
        for new in [(7, 5), (8, 0), (9, 0), (12, 0)] {
            assert!(of(new).is_new_enough(0).is_ok(), "{new:?}");
        }
        for old in [(7, 2), (6, 1)] {
            let error = of(old).is_new_enough(3).unwrap_err();
            assert!(matches!(error, Error::NoDevice { .. }));
            let text = error.to_string();
            assert!(text.contains("cuda:3") && text.contains("Old GPU"), "{text}");
            assert!(text.contains("7.5") && text.contains("CPU"), "{text}");
        }
    }
}
