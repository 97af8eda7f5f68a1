//! Ranks as threads whose communicator takes pointers to device memory.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use gustav_core::Result;
use gustav_cuda::{Device, DeviceBuffer, Stream};
use gustav_mpi::{Communicator, Ranks, Request, Tag};

use crate::cases::of_inner;

/// How many messages were sent from and received into device memory, those of them that were forwarded, and messages
/// from and into memory of the host.
#[derive(Default)]
pub struct Moved {
    pub on_device: AtomicU64,
    pub forwarded_on_device: AtomicU64,
    pub on_host: AtomicU64,
}

/// Ranks of which messages in device memory are copied through the host. It knows nothing of streams, as an MPI does
/// not: what is sent has to be there when the send starts, and is read beside all work.
struct TakesDeviceMemory {
    ranks: Ranks,
    device: Device,
    copies: Stream,
    /// The host's memory of messages in flight that are in device memory.
    staged: Mutex<HashMap<usize, Staged>>,
    moved: Arc<Moved>,
}

/// Bytes of a message, and where they are to be on the device if they are received.
struct Staged {
    bytes: Vec<u8>,
    to: Option<u64>,
}

/// `ranks`, which take memory of `device`.
pub fn taking_device_memory(
    ranks: Vec<Ranks>,
    device: &Device,
    moved: &Arc<Moved>,
) -> Result<Vec<Ranks>> {
    let wrap = |ranks| {
        let (copies, staged) = (device.new_stream()?, Mutex::default());
        let (device, moved) = (device.clone(), moved.clone());
        Ok(Ranks::new(TakesDeviceMemory { ranks, device, copies, staged, moved }))
    };
    ranks.into_iter().map(wrap).collect()
}

type GetAttribute = unsafe extern "C" fn(*mut c_void, i32, u64) -> i32;

/// Whether memory is a device's, which page-locked memory of the host is not.
fn is_on_device(address: u64) -> bool {
    static FUNCTION: OnceLock<GetAttribute> = OnceLock::new();
    // CU_POINTER_ATTRIBUTE_MEMORY_TYPE and CU_MEMORYTYPE_DEVICE.
    const MEMORY_TYPE: i32 = 2;
    const DEVICE: u32 = 2;
    let get_attribute = FUNCTION.get_or_init(|| {
        // SAFETY: the driver, which the process has loaded, and the type of its function.
        unsafe {
            let driver = libloading::Library::new("libcuda.so.1").expect("the driver");
            let function = *driver.get("cuPointerGetAttribute").expect("a function of the driver");
            std::mem::forget(driver);
            function
        }
    });
    let mut found = 0_u32;
    // SAFETY: any address may be asked about; the attribute is one integer.
    let status = unsafe { get_attribute((&raw mut found).cast(), MEMORY_TYPE, address) };
    status == 0 && found == DEVICE
}

impl TakesDeviceMemory {
    fn inner(&self) -> &dyn Communicator {
        self.ranks.communicator()
    }

    /// Counts a message, and says whether it is in device memory.
    fn counts_on_device(&self, address: u64, tag: Tag) -> bool {
        let on_device = is_on_device(address);
        let count = if on_device { &self.moved.on_device } else { &self.moved.on_host };
        count.fetch_add(1, Ordering::Relaxed);
        let forwarded = u64::from(on_device && tag == Tag::Forwarded);
        self.moved.forwarded_on_device.fetch_add(forwarded, Ordering::Relaxed);
        on_device
    }

    fn stage(&self, request: Request, staged: Staged) {
        let before = self.staged.lock().unwrap().insert(request.0, staged);
        assert!(before.is_none(), "a request is returned once");
    }

    /// Copies the message of a request that is done to the device, if it was received there.
    fn complete(&self, request: Request) -> Result<()> {
        let staged = self.staged.lock().unwrap().remove(&request.0);
        if let Some(Staged { bytes, to: Some(address) }) = staged {
            let mut memory = self.memory(address, bytes.len());
            // SAFETY: the copy is waited for.
            unsafe { memory.start_write(0, &raw const bytes[..], &self.copies)? };
            self.copies.synchronize()?;
        }
        Ok(())
    }

    /// Memory of a message on the device.
    fn memory(&self, address: u64, len: usize) -> DeviceBuffer<u8> {
        // SAFETY: the bytes of a message stay where they are while it is in flight, as callers promise.
        unsafe { DeviceBuffer::borrowed(&self.device, address, len) }
    }
}

// SAFETY: the calls are those of another; bytes in device memory are read before a send starts, and written before the
// request of a receive is returned.
unsafe impl Communicator for TakesDeviceMemory {
    of_inner!(rank size description host message_limit all_reduce_max all_gather all_to_all barrier abort);

    fn takes_device_memory(&self) -> bool {
        true
    }
    unsafe fn start_send(&self, bytes: *const [u8], peer: usize, tag: Tag) -> Result<Request> {
        let address = bytes.cast::<u8>().expose_provenance() as u64;
        if !self.counts_on_device(address, tag) {
            // SAFETY: promised by the caller.
            return unsafe { self.inner().start_send(bytes, peer, tag) };
        }
        let mut on_host = vec![0; bytes.len()];
        // SAFETY: the copy is waited for.
        unsafe {
            self.memory(address, bytes.len()).start_read(0, &raw mut on_host[..], &self.copies)?
        };
        self.copies.synchronize()?;
        // SAFETY: the bytes are kept until the request is returned; a vector does not move them.
        let request = unsafe { self.inner().start_send(&raw const on_host[..], peer, tag)? };
        self.stage(request, Staged { bytes: on_host, to: None });
        Ok(request)
    }
    unsafe fn start_receive(&self, bytes: *mut [u8], peer: usize, tag: Tag) -> Result<Request> {
        let address = bytes.cast::<u8>().expose_provenance() as u64;
        if !self.counts_on_device(address, tag) {
            // SAFETY: promised by the caller.
            return unsafe { self.inner().start_receive(bytes, peer, tag) };
        }
        let mut on_host = vec![0; bytes.len()];
        // SAFETY: the bytes are kept until the request is returned; a vector does not move them.
        let request = unsafe { self.inner().start_receive(&raw mut on_host[..], peer, tag)? };
        self.stage(request, Staged { bytes: on_host, to: Some(address) });
        Ok(request)
    }
    unsafe fn wait_any(&self, requests: &[Request]) -> Result<usize> {
        // SAFETY: promised by the caller.
        let at = unsafe { self.inner().wait_any(requests)? };
        self.complete(requests[at]).map(|()| at)
    }
    unsafe fn test_any(&self, requests: &[Request]) -> Result<Option<usize>> {
        // SAFETY: promised by the caller.
        let at = unsafe { self.inner().test_any(requests)? };
        at.map(|at| self.complete(requests[at]).map(|()| at)).transpose()
    }
}

impl Drop for TakesDeviceMemory {
    fn drop(&mut self) {
        // After an error messages may be in flight for ever.
        std::mem::forget(std::mem::take(&mut *self.staged.lock().unwrap()));
    }
}
