//! `pipeline`: dense operands on the host; the CPU converts block t + 1 of A to CSR while the GPU
//! multiplies block t, as Chen et al. (2025, §4.3) describe it. The product of a block is
//! `shared-row`'s; B is converted and copied first, block by block.
//!
//! ```text
//! CPU     convert B0 B1 .. | A0 | A1 | A2 | ..      pinned slot t mod 2
//! copy             B0 B1 .. | A0 | A1 | ..          device slot t mod 2
//! multiply                       | A0 | A1 | ..
//! download                            | C0 | C1 ..  when C goes to the host
//! ```

use std::ops::Range;
use std::time::Instant;

use gustav_core::{DType, Error, IndexType, Layout, Result, Scalar};

use super::shared_row::{self, SharedRow};
use crate::device::order::Uses;
use crate::device::{Device, DeviceBuffer, Event, PinnedBuffer, Stream, graph};
use crate::jit::source::bits;
use crate::matrix::DeviceDense;
use crate::product::checks::on as on_device;
use crate::product::sparse_operands::{Operands, Sparse};

/// The blocks of the operands, and whether stages overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Config {
    /// Rows of a block; `None` for blocks of some millions of elements, up to nine of A and five of
    /// B. The first and the last of several blocks are half as long: the GPU is idle during the
    /// conversion of the first, the CPU after that of the last.
    pub block_rows: Option<usize>,
    /// Whether conversion, copies and multiplication overlap. If not, A and B are one block each,
    /// and every stage waits for the one before.
    pub overlapped: bool,
    /// The kernel that multiplies; `None` for [`shared_row::Config::tuned`].
    pub kernel: Option<shared_row::Config>,
}

impl Default for Config {
    fn default() -> Self {
        Config { block_rows: None, overlapped: true, kernel: None }
    }
}

// Elements of a block that repay queueing it, and the most blocks of A and of B, the two halves
// counted as one.
const ELEMENTS: usize = 4 << 20;
const BLOCKS_A: usize = 8;
const BLOCKS_B: usize = 4;

impl Config {
    /// The blocks of an operand of `rows` × `cols`, of which there are about `most`.
    fn blocks(self, rows: usize, cols: usize, most: usize) -> Vec<Range<usize>> {
        let ends: Vec<usize> = match self.block_rows {
            _ if !self.overlapped => vec![rows],
            Some(block) => (block.max(1)..rows).step_by(block.max(1)).chain([rows]).collect(),
            None => match rows.saturating_mul(cols) / ELEMENTS {
                0 | 1 => vec![rows],
                blocks => {
                    let halves = 2 * blocks.min(most);
                    let end = |half| (rows as u128 * half as u128 / halves as u128) as usize;
                    (1..halves).step_by(2).map(end).chain([rows]).collect()
                }
            },
        };
        let starts = std::iter::once(0).chain(ends.iter().copied());
        starts.zip(&ends).map(|(start, end)| start..*end).filter(|rows| !rows.is_empty()).collect()
    }
}

/// Rows of an operand to convert, and page-locked memory for the result.
#[derive(Debug)]
pub struct Block<'a, T> {
    /// The rows.
    pub rows: Range<usize>,
    /// The first of the row offsets.
    pub first: u32,
    /// Memory for one offset more than rows.
    pub offsets: &'a mut [u32],
    /// Memory for the column indices.
    pub indices: &'a mut [u32],
    /// Memory for the values.
    pub values: &'a mut [T],
}

/// A function that converts rows of a dense matrix to CSR and returns the number of their nonzeros.
pub type Convert<'a, T> = &'a mut dyn FnMut(Block<'_, T>) -> Result<usize>;

/// One pipeline stage of a product. Times are milliseconds since the product began.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Stage {
    /// The row of the timeline: `CPU`, `copy`, `multiply`, `download`.
    pub lane: &'static str,
    /// Name of the stage.
    pub name: &'static str,
    /// Start time.
    pub start_ms: f64,
    /// End time.
    pub end_ms: f64,
}

/// Two slots of page-locked and device memory, streams and events for products of one shape: a run
/// allocates nothing.
pub struct Pipeline<T> {
    device: Device,
    shape: [usize; 3],
    overlapped: bool,
    blocks_a: Vec<Range<usize>>,
    blocks_b: Vec<Range<usize>>,
    slots: Vec<Slot<T>>,
    b: Resident<T>,
    copy: Stream,
    download: Stream,
    origin: Event,
    spans: Vec<Span>,
    stages: Vec<Stage>,
}

/// Memory for a block, on the host and for a block of A on the device, and a stream to multiply it:
/// the product of a block can begin while the previous one leaves multiprocessors idle.
struct Slot<T> {
    offsets: PinnedBuffer<u32>,
    indices: PinnedBuffer<u32>,
    values: PinnedBuffer<T>,
    a: Resident<T>,
    kernel: SharedRow,
    multiply: Stream,
    copied: Event,
    multiplied: Event,
}

/// A CSR matrix on the device that may be larger than its contents.
struct Resident<T> {
    offsets: DeviceBuffer<u32>,
    indices: DeviceBuffer<u32>,
    values: DeviceBuffer<T>,
}

/// Events at both ends of a stage on the device.
struct Span {
    lane: &'static str,
    name: &'static str,
    start: Event,
    end: Event,
    used: bool,
}

impl<T: Scalar> Resident<T> {
    fn new(device: &Device, rows: usize, entries: usize) -> Result<Self> {
        let what = "a converted operand on the device";
        Ok(Resident {
            offsets: DeviceBuffer::uninit(device, rows + 1, what)?,
            indices: DeviceBuffer::uninit(device, entries, what)?,
            values: DeviceBuffer::uninit(device, entries, what)?,
        })
    }

    fn used_on(&self, stream: &Stream) {
        self.offsets.used_on(stream);
        self.indices.used_on(stream);
        self.values.used_on(stream);
    }

    fn sparse(&self, rows: usize, cols: usize, nnz: usize) -> Sparse {
        let (offsets, indices) = (self.offsets.address(), self.indices.address());
        Sparse { rows, cols, nnz, offsets, indices, values: self.values.address() }
    }
}

impl<T: Scalar> Slot<T> {
    fn new(
        device: &Device,
        (rows, entries): (usize, usize),
        a: (usize, usize),
        kernel: SharedRow,
    ) -> Result<Self> {
        let what = "page-locked memory for a block";
        Ok(Slot {
            offsets: PinnedBuffer::zeroed(device, rows + 1, what)?,
            indices: PinnedBuffer::zeroed(device, entries, what)?,
            values: PinnedBuffer::zeroed(device, entries, what)?,
            a: Resident::new(device, a.0, a.1)?,
            kernel,
            multiply: device.new_stream()?,
            copied: Event::new(device)?,
            multiplied: Event::new(device)?,
        })
    }

    /// Converts `rows`, and returns the number of nonzeros.
    fn convert(
        &mut self,
        rows: Range<usize>,
        first: u32,
        convert: Convert<'_, T>,
    ) -> Result<usize> {
        let offsets = &mut self.offsets[..rows.len() + 1];
        let (indices, values) = (&mut self.indices[..], &mut self.values[..]);
        convert(Block { rows, first, offsets, indices, values })
    }

    /// Queues a copy of `rows` rows with `nnz` nonzeros to row `row`, entry `first` of `to`.
    ///
    /// # Safety
    /// `to` is large enough, and the slot is not changed before the copy is done.
    unsafe fn upload(
        &self,
        (rows, nnz): (usize, usize),
        (row, first): (usize, usize),
        to: &Resident<T>,
        stream: &Stream,
    ) -> Result<()> {
        let at = |base: u64, k: usize, size: usize| base + (k * size) as u64;
        // SAFETY: the caller's promise.
        unsafe {
            self.offsets.upload(0..rows + 1, at(to.offsets.address(), row, 4), stream)?;
            self.indices.upload(0..nnz, at(to.indices.address(), first, 4), stream)?;
            self.values.upload(0..nnz, at(to.values.address(), first, size_of::<T>()), stream)
        }
    }
}

impl<T: Scalar> Pipeline<T> {
    /// Allocates for products of an m × k by a k × n matrix: page-locked memory for two blocks,
    /// device memory for two blocks of A and all of B, as if every element were a nonzero.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for other types than f32 and f64, [`Error::Overflow`] when the
    /// elements of B pass u32, [`Error::Argument`] for blocks without rows,
    /// [`Error::OutOfMemory`], [`Error::Device`].
    pub fn new(device: &Device, [m, k, n]: [usize; 3], config: Config) -> Result<Self> {
        if !matches!(T::DTYPE, DType::F32 | DType::F64) {
            return Err(Error::Unsupported {
                problem: format!("spgemm of dense {} operands", T::DTYPE),
                backend: "pipeline on CUDA".into(),
                reason: "the paper's kernel takes f32 and f64".into(),
                nearest: "f32".into(),
            });
        }
        if config.block_rows == Some(0) {
            return Err(Error::Argument {
                name: "block_rows",
                found: "0".into(),
                expected: "at least 1".into(),
            });
        }
        let elements = k as u128 * n as u128;
        if elements > u128::from(u32::MAX) {
            let (what, index_type) = ("elements of B", IndexType::U32);
            return Err(Error::Overflow { what, need: elements, index_type });
        }
        let (blocks_a, blocks_b) = (config.blocks(m, k, BLOCKS_A), config.blocks(k, n, BLOCKS_B));
        let longest = |blocks: &[Range<usize>]| blocks.iter().map(Range::len).max().unwrap_or(0);
        let (block_a, block_b) = (longest(&blocks_a), longest(&blocks_b));
        let sizes = (block_a.max(block_b), (block_a * k).max(block_b * n));
        let count = if config.overlapped { 2 } else { 1 };
        let slot = || {
            let own = || shared_row::Config::tuned(n, size_of::<T>());
            let kernel = config.kernel.unwrap_or_else(own);
            let kernel = SharedRow::compile(device, T::DTYPE, (k, n), kernel, false)?;
            Slot::new(device, sizes, (block_a, block_a * k), kernel)
        };
        let span = |lane, name| {
            let (start, end) = (Event::new(device)?, Event::new(device)?);
            Ok::<_, Error>(Span { lane, name, start, end, used: false })
        };
        let mut spans = Vec::new();
        for _ in &blocks_b {
            spans.push(span("copy", "copy B")?);
        }
        for _ in &blocks_a {
            spans.push(span("copy", "copy A")?);
            spans.push(span("multiply", "multiply")?);
            spans.push(span("download", "copy C")?);
        }
        Ok(Pipeline {
            device: device.clone(),
            shape: [m, k, n],
            overlapped: config.overlapped,
            slots: (0..count).map(|_| slot()).collect::<Result<_>>()?,
            b: Resident::new(device, k, elements as usize)?,
            copy: device.new_stream()?,
            download: device.new_stream()?,
            origin: Event::new(device)?,
            stages: Vec::with_capacity(spans.len() + blocks_a.len() + blocks_b.len()),
            spans,
            blocks_a,
            blocks_b,
        })
    }

    /// Bytes of page-locked and of device memory that it holds.
    pub fn bytes(&self) -> (usize, usize) {
        let resident = |r: &Resident<T>| r.offsets.bytes() + r.indices.bytes() + r.values.bytes();
        let pinned =
            |s: &Slot<T>| 4 * (s.offsets.len() + s.indices.len()) + s.values.len() * size_of::<T>();
        let device = self.slots.iter().map(|s| resident(&s.a)).sum::<usize>() + resident(&self.b);
        (self.slots.iter().map(pinned).sum(), device)
    }

    /// C = α·A·B into `c`, row-major m × n, and from there into `host` when given (m·n values, row
    /// after row); the product is done when this returns. `convert_b` and `convert_a` are called
    /// for blocks of rows from top to bottom, B first.
    ///
    /// # Errors
    /// Those of the conversions, [`Error::Shape`] for another `c`, [`Error::Length`] for another
    /// `host`, [`Error::Argument`] for a `c` on another device, [`Error::Device`]; the pipeline
    /// stays usable.
    pub fn run(
        &mut self,
        convert_b: Convert<'_, T>,
        convert_a: Convert<'_, T>,
        alpha: T::Accum,
        c: &mut DeviceDense<T>,
        host: Option<&mut PinnedBuffer<T>>,
    ) -> Result<()> {
        let [m, _, n] = self.shape;
        let packed = (c.nrows(), c.ncols(), c.layout()) == (m, n, Layout::RowMajor)
            && c.leading_dimension() == n;
        if !packed {
            return Err(Error::Shape {
                op: "pipeline",
                expected: format!("a packed row-major C of {m} x {n}"),
                found: format!("a {} one of {} x {}", c.layout(), c.nrows(), c.ncols()),
            });
        }
        c.check_length()?;
        on_device(&self.device, "C", c.data())?;
        graph::refuse("a pipeline")?;
        if let Some(host) = host.as_ref().filter(|host| host.len() != m * n) {
            let (what, expected, found) = ("C on the host", m * n, host.len());
            return Err(Error::Length { what, expected, found });
        }
        let done = self.queue(convert_b, convert_a, alpha, c, host);
        // Waits for all work, also after an error.
        let multiply = self.slots.iter().map(|s| &s.multiply);
        for stream in [&self.copy, &self.download].into_iter().chain(multiply) {
            stream.synchronize()?;
        }
        done?;
        for span in self.spans.iter().filter(|s| s.used) {
            let at = |event| self.origin.milliseconds_to(event).map(f64::from);
            let (start_ms, end_ms) = (at(&span.start)?, at(&span.end)?);
            self.stages.push(Stage { lane: span.lane, name: span.name, start_ms, end_ms });
        }
        Ok(())
    }

    /// The timeline of the last product: the CPU's stages, then the device's.
    pub fn timeline(&self) -> &[Stage] {
        &self.stages
    }

    fn queue(
        &mut self,
        convert_b: Convert<'_, T>,
        convert_a: Convert<'_, T>,
        alpha: T::Accum,
        c: &DeviceDense<T>,
        mut host: Option<&mut PinnedBuffer<T>>,
    ) -> Result<()> {
        let [_, k, n] = self.shape;
        let Self { device, slots, blocks_a, blocks_b, b, copy, download, spans, stages, .. } = self;
        let overlapped = self.overlapped;
        let wait = |stream: &Stream| if overlapped { Ok(()) } else { stream.synchronize() };
        device.bind()?;
        // After the work queued on C.
        Uses::on(device.stream()).write(c.data())?;
        device.stream().synchronize()?;
        for slot in slots.iter() {
            slot.a.used_on(copy);
            slot.a.used_on(&slot.multiply);
            b.used_on(&slot.multiply);
            c.data().used_on(&slot.multiply);
        }
        b.used_on(copy);
        c.data().used_on(download);
        stages.clear();
        spans.iter_mut().for_each(|s| s.used = false);
        copy.mark(&self.origin)?;
        self.origin.synchronize()?;
        let clock = Instant::now();
        let ms = || clock.elapsed().as_secs_f64() * 1e3;
        let mut spans = spans.iter_mut();
        let mut nnz_b = 0;
        let count = slots.len();
        for (t, block) in blocks_b.iter().enumerate() {
            let slot = &mut slots[t % count];
            slot.copied.synchronize()?;
            let (start_ms, first) = (ms(), nnz_b as u32);
            let nnz = slot.convert(block.clone(), first, convert_b)?;
            stages.push(Stage { lane: "CPU", name: "convert B", start_ms, end_ms: ms() });
            // SAFETY: B is large enough for every element; the slot waits for the copy.
            on(spans.next(), copy, || unsafe {
                slot.upload((block.len(), nnz), (block.start, nnz_b), b, copy)
            })?;
            copy.mark(&slot.copied)?;
            wait(copy)?;
            nnz_b += nnz;
        }
        let b = b.sparse(k, n, nnz_b);
        let there = copy.record()?;
        for slot in slots.iter() {
            slot.multiply.wait(&there)?;
            // SAFETY: B is there when the stream reaches it, with columns that increase.
            unsafe { slot.kernel.cut(&slot.multiply, &b)? };
        }
        // Slots alternate from B to A too: the last block of B is still being copied.
        for (t, block) in (blocks_b.len()..).zip(blocks_a.iter()) {
            let slot = &mut slots[t % count];
            slot.copied.synchronize()?;
            let start_ms = ms();
            let nnz = slot.convert(block.clone(), 0, convert_a)?;
            stages.push(Stage { lane: "CPU", name: "convert A", start_ms, end_ms: ms() });
            copy.wait(&slot.multiplied)?;
            // SAFETY: the slot is large enough for every element, and waits for the copy.
            on(spans.next(), copy, || unsafe {
                slot.upload((block.len(), nnz), (0, 0), &slot.a, copy)
            })?;
            copy.mark(&slot.copied)?;
            wait(copy)?;
            slot.multiply.wait(&slot.copied)?;
            let a = slot.a.sparse(block.len(), k, nnz);
            let o = operands::<T>(a, b, bits(alpha));
            let to = c.data().address() + (block.start * n * size_of::<T>()) as u64;
            let (kernel, multiply) = (&mut slot.kernel, &slot.multiply);
            // SAFETY: A and B are there when the stream reaches them, and C has the rows.
            on(spans.next(), multiply, || unsafe {
                kernel.launch(multiply, &o, 0..block.len(), to, n)
            })?;
            multiply.mark(&slot.multiplied)?;
            wait(multiply)?;
            let span = spans.next();
            if let Some(host) = host.as_deref_mut() {
                download.wait(&slot.multiplied)?;
                // SAFETY: C has the rows, and nobody reads the values before the product is
                // complete.
                on(span, download, || unsafe {
                    host.download(block.start * n..block.end * n, to, download)
                })?;
            }
        }
        Ok(())
    }
}

/// Queues `work` on `stream` between the events of `span`.
fn on(span: Option<&mut Span>, stream: &Stream, work: impl FnOnce() -> Result<()>) -> Result<()> {
    let Some(span) = span else { return work() };
    stream.mark(&span.start)?;
    work()?;
    stream.mark(&span.end)?;
    span.used = true;
    Ok(())
}

fn operands<T: Scalar>(a: Sparse, b: Sparse, alpha: u64) -> Operands {
    Operands {
        a,
        b,
        alpha,
        dtype: T::DTYPE,
        index_type: IndexType::U32,
        offset_type: IndexType::U32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_all_rows_and_the_outer_ones_are_half() {
        let own = Config::default();
        let blocks = own.blocks(8192, 8192, BLOCKS_A);
        let lengths: Vec<_> = blocks.iter().map(Range::len).collect();
        assert_eq!(lengths, [512, 1024, 1024, 1024, 1024, 1024, 1024, 1024, 512]);
        assert_eq!(own.blocks(2000, 2000, BLOCKS_A).len(), 1);
        assert_eq!(own.blocks(3, 4 << 20, BLOCKS_A), [0..1, 1..2, 2..3]);
        assert_eq!(own.blocks(0, 9, BLOCKS_A), []);
        let seven = Config { block_rows: Some(7), ..own };
        assert_eq!(seven.blocks(15, 2, BLOCKS_A), [0..7, 7..14, 14..15]);
        let sequential = Config { overlapped: false, ..seven };
        assert_eq!(sequential.blocks(15, 2, BLOCKS_A).len(), 1);
        for (rows, cols) in [(1, 1 << 40), (5000, 5000), (1 << 20, 100)] {
            let blocks = own.blocks(rows, cols, BLOCKS_B);
            assert!(blocks.windows(2).all(|pair| pair[0].end == pair[1].start));
            assert_eq!((blocks[0].start, blocks[blocks.len() - 1].end), (0, rows));
        }
    }
}
