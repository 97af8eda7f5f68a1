//! Measures the bandwidth of a device's memory, and times with cold caches. See
//! `kernels/memory/read.cu`.

use gustav_core::Result;

use super::Kernel;
use crate::device::{Device, DeviceBuffer, Stream};
use crate::jit::Request;

const BLOCK: u32 = 256;
// Resident CTAs of 256 threads per multiprocessor.
const CTAS: usize = 8;
// Size of copies; an eighth of the free memory if that is less.
const COPY_BYTES: usize = 1 << 30;
const RUNS: usize = 7;
const PASSES: u64 = 64;

/// Measures a device's memory and empties its caches.
pub struct Probe {
    device: Device,
    kernel: Kernel<Arguments>,
    grid: u64,
    scratch: DeviceBuffer<u64>,
    sink: DeviceBuffer<u64>,
}

parameter_block! {
    struct Arguments {
        from: *const u64,
        sink: *mut u64,
        /// Number of vectors of 16 bytes.
        vectors: u64,
        passes: u64,
    }
}

/// The source with its parameters.
pub(crate) fn request() -> Request {
    request!("memory/read.cu").with_block::<Arguments>().with("BLOCK", BLOCK)
}

impl Probe {
    /// Allocates twice the size of L2.
    ///
    /// # Errors
    /// [`OutOfMemory`](gustav_core::Error::OutOfMemory),
    /// [`NoDevice`](gustav_core::Error::NoDevice) when the run-time compiler is missing,
    /// [`Device`](gustav_core::Error::Device).
    pub fn new(device: &Device) -> Result<Self> {
        let profile = device.profile();
        let words = (2 * profile.l2_bytes / 16).max(1) * 2;
        let mut scratch = DeviceBuffer::uninit(device, words, "memory to empty the caches with")?;
        scratch.fill(0, device.stream())?;
        Ok(Probe {
            device: device.clone(),
            kernel: device.module(&request())?.kernel(c"read")?,
            grid: (profile.multiprocessors * CTAS) as u64,
            scratch,
            sink: DeviceBuffer::uninit(device, 1, "memory to empty the caches with")?,
        })
    }

    /// Queues reads on `stream` that replace the contents of L2.
    ///
    /// # Errors
    /// [`Device`](gustav_core::Error::Device).
    pub fn flush(&self, stream: &Stream) -> Result<()> {
        self.read(stream, self.scratch.len() as u64 / 2, 1)
    }

    /// Queues a launch on `stream` that does nothing: it begins when the work before it has ended, and ends before
    /// the work behind it begins.
    ///
    /// # Errors
    /// [`Device`](gustav_core::Error::Device).
    pub fn separate(&self, stream: &Stream) -> Result<()> {
        self.launch(stream, 1, 0, 0)
    }

    /// Bytes that [`Probe::flush`] reads.
    pub fn flush_bytes(&self) -> usize {
        self.scratch.bytes()
    }

    /// Milliseconds of the work that `run` queues on `stream`, with cold caches. The stream is busy
    /// while `run` queues its work, so that queueing is not measured.
    ///
    /// # Errors
    /// Those of `run`, [`Device`](gustav_core::Error::Device).
    pub fn cold_ms(&self, stream: &Stream, run: impl FnOnce() -> Result<()>) -> Result<f64> {
        self.flush(stream)?;
        timed(stream, run)
    }

    /// Bandwidth of a copy in bytes per second, reads plus writes.
    ///
    /// # Errors
    /// [`OutOfMemory`](gustav_core::Error::OutOfMemory),
    /// [`Device`](gustav_core::Error::Device).
    pub fn copy_bandwidth(&self) -> Result<f64> {
        let words = COPY_BYTES.min(self.device.memory()?.0 / 8) / 8;
        let stream = self.device.stream();
        let what = "memory to measure copies with";
        let mut from = DeviceBuffer::<u64>::uninit(&self.device, words, what)?;
        from.fill(0, stream)?;
        let mut to = DeviceBuffer::uninit(&self.device, words, what)?;
        to.copy_from(&from, stream)?;
        let ms = median(|| timed(stream, || to.copy_from(&from, stream)))?;
        Ok(2.0 * from.bytes() as f64 / ms * 1e3)
    }

    /// Bandwidth of reads that hit L2, in bytes per second.
    ///
    /// # Errors
    /// [`Device`](gustav_core::Error::Device).
    pub fn l2_bandwidth(&self) -> Result<f64> {
        // An eighth of the scratch memory: a quarter of L2.
        let vectors = self.scratch.len() as u64 / 16;
        let stream = self.device.stream();
        self.read(stream, vectors, 2)?;
        let ms = median(|| timed(stream, || self.read(stream, vectors, PASSES)))?;
        Ok((vectors * 16 * PASSES) as f64 / ms * 1e3)
    }

    fn read(&self, stream: &Stream, vectors: u64, passes: u64) -> Result<()> {
        self.launch(stream, self.grid, vectors, passes)
    }

    fn launch(&self, stream: &Stream, grid: u64, vectors: u64, passes: u64) -> Result<()> {
        self.scratch.used_on(stream);
        self.sink.used_on(stream);
        let from = self.scratch.address();
        let arguments = Arguments { from, sink: self.sink.address(), vectors, passes };
        // SAFETY: the scratch memory has that size,
        // and waits for the stream when freed.
        unsafe { self.kernel.launch(stream, (grid, 1), BLOCK, &arguments) }
    }
}

/// Milliseconds of the work that `run` queues on `stream`.
///
/// # Errors
/// Those of `run`, [`Device`](gustav_core::Error::Device).
pub fn timed(stream: &Stream, run: impl FnOnce() -> Result<()>) -> Result<f64> {
    let start = stream.record()?;
    run()?;
    Ok(f64::from(start.milliseconds_to(&stream.record()?)?))
}

fn median(mut ms: impl FnMut() -> Result<f64>) -> Result<f64> {
    let mut times = [0.0; RUNS];
    for time in &mut times {
        *time = ms()?;
    }
    times.sort_by(f64::total_cmp);
    Ok(times[RUNS / 2])
}
