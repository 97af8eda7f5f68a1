//! Device memory that other processes can map.

use cudarc::driver::result;
use gustav_core::Result;

use super::driver::Checked;
#[cfg(test)]
use super::ledger;
use super::memory::not_allocated;
use super::stream::relaxed;
use super::{Device, DeviceBuffer, graph};

/// Memory that is not from a pool.
struct Exported {
    device: Device,
    address: u64,
}

impl Drop for Exported {
    fn drop(&mut self) {
        #[cfg(test)]
        ledger::free(self.address);
        if self.device.bind().is_ok() {
            // This thread may be capturing a stream.
            // SAFETY: allocated where this was made, freed once; the buffer has waited for all work on it.
            let _ = relaxed(|| unsafe { result::free_sync(self.address) }.during("freeing memory"));
        }
    }
}

impl<T: bytemuck::Pod> DeviceBuffer<T> {
    /// As [`DeviceBuffer::zeros`], in memory that other processes can map, such as those of an MPI that copies between
    /// GPUs: that of other buffers is from a pool, which they cannot. Taking and freeing it wait for the device.
    ///
    /// # Errors
    /// As there.
    pub fn exportable(device: &Device, len: usize, what: &'static str) -> Result<Self> {
        let needed = len as u128 * size_of::<T>() as u128;
        let bytes = usize::try_from(needed).unwrap_or(usize::MAX);
        if bytes == 0 {
            return Self::zeros(device, len, what);
        }
        graph::refuse("taking memory")?;
        #[cfg(test)]
        ledger::allow(what, needed)?;
        device.bind()?;
        // SAFETY: the device is bound.
        let allocated = unsafe { result::malloc_sync(bytes) };
        let address = allocated.map_err(|e| not_allocated(e, device, what, needed))?;
        #[cfg(test)]
        ledger::take(address, bytes);
        let exported = Exported { device: device.clone(), address };
        // SAFETY: the memory is there as long as the holder, and as aligned as memory of the device can be.
        let mut buffer = unsafe { Self::held(device, address, len, exported) };
        buffer.fill(0, device.stream())?;
        Ok(buffer)
    }
}

#[cfg(test)]
mod tests {
    use cudarc::driver::sys;

    use super::*;

    /// Whether another process could map the memory at `address`.
    fn can_be_mapped(address: u64) -> bool {
        let mut handle = std::mem::MaybeUninit::<sys::CUipcMemHandle>::uninit();
        // SAFETY: any address may be asked about.
        unsafe { sys::cuIpcGetMemHandle(handle.as_mut_ptr(), address) }.result().is_ok()
    }

    #[test]
    #[ignore = "needs a CUDA device"]
    fn exportable_memory_can_be_mapped() {
        let device = Device::cuda(0).expect("a device");
        let mut exported =
            DeviceBuffer::<f64>::exportable(&device, 1000, "values").expect("memory");
        assert!(can_be_mapped(exported.address()));
        let mut found = vec![1.0; 1000];
        exported.read(&mut found).expect("zeros");
        assert!(found.iter().all(|v| *v == 0.0));
        let values: Vec<f64> = (0..1000).map(f64::from).collect();
        exported.write(&values).expect("values");
        exported.read(&mut found).expect("values");
        assert_eq!(found, values);
        let none = DeviceBuffer::<f64>::exportable(&device, 0, "values").expect("no memory");
        assert!(none.is_empty());
    }
}
