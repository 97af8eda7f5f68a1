//! `shared-row`: persistent CTAs that accumulate a row of a dense C in shared memory, as Chen et
//! al. (2025, §4.2.2) describe it. See `kernels/papers/spgemm/shared_row.cu`.

use std::ops::Range;

use gustav_core::{DType, IndexType, Problem, Result};
use gustav_plan::Algorithm;

use super::dense_rows::{DenseRows, ThroughDense};
use crate::device::{Device, DeviceBuffer, Stream};
use crate::jit::Request;
use crate::launch::Kernel;
use crate::matrix::columns::Columns;
use crate::papers::spgemm as papers;
use crate::product::check_config;
use crate::product::sparse_operands::{Operands, Sparse};

// The largest chunk takes the shared memory of a CTA ÷ this.
const CHUNK_PART: usize = 4;
// Static shared memory of a CTA: the row numbers of up to 32 groups.
const STATIC: usize = 32 * 8;

/// How a CTA computes rows of C.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Config {
    /// Threads of a CTA.
    pub threads: u32,
    /// Rows of C that a CTA accumulates concurrently, each by a group of its threads: 1 in the
    /// paper, more in its experiment of §7.1; groups of one warp are the warp-level aggregation of
    /// its outlook.
    pub rows: u32,
    /// Entries of the next row of B that a thread loads before the current one is added; 0 in the
    /// paper.
    pub prefetch: u32,
    /// Most columns of C that a group accumulates together (adaptive tiles, the paper's outlook);
    /// `None` for a width that allows four CTAs on a multiprocessor.
    pub width: Option<u32>,
}

// Shared memory ÷ threads of a multiprocessor.
const BYTES_A_THREAD: usize = (224 << 10) / 2048;
// The chunk that allows four CTAs on a multiprocessor.
const CHUNK_BYTES: usize = 56 << 10;

impl Default for Config {
    fn default() -> Self {
        Config { threads: 256, rows: 1, prefetch: 0, width: None }
    }
}

impl Config {
    /// The paper's kernel for a C of `columns` columns of `value_bytes` each: as many threads, 128
    /// to 512, as fill a multiprocessor with the CTAs whose accumulators fit there.
    pub fn paper(columns: usize, value_bytes: usize) -> Self {
        let row = columns.saturating_mul(value_bytes);
        let chunk = row / row.div_ceil(CHUNK_BYTES).max(1);
        let threads = (chunk / BYTES_A_THREAD).clamp(128, 512);
        Config { threads: 1 << threads.ilog2(), ..Config::default() }
    }

    /// The same with two entries of B prefetched, which hides the latency of B.
    pub fn tuned(columns: usize, value_bytes: usize) -> Self {
        Config { prefetch: 2, ..Self::paper(columns, value_bytes) }
    }

    /// Threads that compute a row.
    pub fn group(self) -> u32 {
        self.threads / self.rows.max(1)
    }

    fn check(&self) -> Result<()> {
        let Config { threads, rows, prefetch, width } = *self;
        let whole = rows > 0
            && threads.is_multiple_of(rows)
            && self.group().is_multiple_of(32)
            && self.group() > 0;
        let fits = whole && threads <= 1024 && prefetch <= 8 && width != Some(0);
        let expected = "up to 1024 threads in groups of whole warps, 15 of them when they have more \
                        than one warp, up to 8 prefetched entries, a width of at least 1";
        let counted = self.group() == 32 || rows < 16;
        check_config("config of shared-row", self, fits && counted, expected)
    }
}

/// Supports what the paper defines, for any shape.
pub(crate) fn supports(problem: &Problem) -> Result<()> {
    papers::supports(problem, Algorithm::SharedRow)
}

pub(crate) fn configs(problem: &Problem) -> Vec<Config> {
    let (columns, bytes) = (problem.columns, problem.dtype.bytes());
    let (paper, tuned) = (Config::paper(columns, bytes), Config::tuned(columns, bytes));
    vec![
        paper,
        tuned,
        Config { threads: 128, ..paper },
        Config { threads: 256, ..paper },
        Config { threads: 512, ..paper },
        Config { threads: 128, ..tuned },
        Config { threads: 256, ..tuned },
        Config { threads: 128, prefetch: 4, ..tuned },
        // Section 7.1 of the paper.
        Config { threads: 256, rows: 2, ..paper },
        Config { threads: 512, rows: 4, ..tuned },
        // Its outlook: one row per warp, and adaptive tiles.
        Config { threads: 256, rows: 8, width: Some(1024), ..tuned },
        Config { threads: 128, width: Some(2048), ..tuned },
        Config { threads: 128, width: Some(4096), ..tuned },
    ]
}

/// The source with its parameters; `repeats` for a B whose columns do not increase.
pub(crate) fn request(dtype: DType, config: Config, repeats: bool) -> Request {
    request!("papers/spgemm/shared_row.cu")
        .with_block::<Arguments>()
        .with("VALUE", dtype)
        .with("THREADS", config.threads)
        .with("ROWS", config.rows)
        .with("PREFETCH", config.prefetch)
        .with("REPEATS", u32::from(repeats))
}

/// With CSR out.
pub(crate) type Prepared = ThroughDense<SharedRow>;

/// The compiled kernel for one shape and type of B.
pub(crate) struct SharedRow {
    config: Config,
    kernel: Kernel<Arguments>,
    columns: Columns,
    /// Bytes of shared memory of a CTA.
    shared: usize,
    /// Persistent CTAs.
    ctas: u64,
    width: usize,
    chunks: usize,
    repeats: bool,
    /// Boundaries of chunks in the rows of B, if there are several chunks.
    cuts: DeviceBuffer<u32>,
    next: DeviceBuffer<u64>,
}

parameter_block! {
    struct Arguments {
        offsets: *const u32,
        indices: *const u32,
        values: *const Value,
        /// The entries of row k of B in chunk c are first[c * stride + k] .. last[c * stride + k].
        first: *const u32,
        last: *const u32,
        b_indices: *const u32,
        b_values: *const Value,
        c: *mut Value,
        /// Counter of rows taken by CTAs, zero at launch.
        next: *mut u64,
        stride: u64,
        /// First row of A.
        row: u64,
        /// Rows of A, and of `c`.
        rows: u64,
        /// Columns of a chunk.
        width: u64,
        chunks: u64,
        columns: u64,
        ldc: u64,
        alpha: u64,
    }
}

impl SharedRow {
    /// Compiled for a B of `inner` × `columns`; `repeats` when its columns do not increase.
    pub(crate) fn compile(
        device: &Device,
        dtype: DType,
        (inner, columns): (usize, usize),
        config: Config,
        repeats: bool,
    ) -> Result<Self> {
        config.check()?;
        let batch =
            if config.prefetch > 0 { 8 + dtype.bytes() } else { 0 } * config.threads as usize;
        let most = device.profile().shared_bytes_per_cta.saturating_sub(STATIC + batch);
        let line = config.rows as usize * dtype.bytes();
        let own = most / CHUNK_PART / line;
        let width = config.width.map_or(own, |w| w as usize).clamp(1, (most / line).max(1));
        let chunks = columns.div_ceil(width).max(1);
        // Chunks of about equal width, multiples of 32 columns.
        let width = columns.div_ceil(chunks).next_multiple_of(32).min(width).max(1);
        let chunks = columns.div_ceil(width);
        let kernel = device.module(&request(dtype, config, repeats))?.kernel(c"shared_row")?;
        device.bind()?;
        // The most that any plan needs, because other plans may launch the same kernel.
        kernel.allow_shared(device.profile().shared_bytes_per_cta.saturating_sub(STATIC))?;
        let shared = width * line + batch;
        let resident = kernel.resident(config.threads, shared)?.max(1);
        let ctas = resident * device.profile().multiprocessors;
        let cuts = if chunks > 1 && !repeats { (chunks + 1).saturating_mul(inner) } else { 0 };
        Ok(SharedRow {
            config,
            kernel,
            columns: Columns::new(device, IndexType::U32, IndexType::U32)?,
            shared,
            ctas: ctas as u64,
            width,
            chunks,
            repeats,
            cuts: DeviceBuffer::uninit(device, cuts, "chunk boundaries of B on the device")?,
            next: DeviceBuffer::uninit(device, 1, "a row counter on the device")?,
        })
    }

    /// Queues the computation of the boundaries of chunks in the rows of `b`.
    ///
    /// # Safety
    /// `b` is valid until the work is done, has the shape that the kernel was compiled for, and
    /// increasing columns unless it was compiled with `repeats`.
    pub(crate) unsafe fn cut(&self, stream: &Stream, b: &Sparse) -> Result<()> {
        if self.cuts.is_empty() {
            return Ok(());
        }
        self.cuts.used_on(stream);
        // SAFETY: the caller's promise; the boundaries are large enough.
        unsafe { self.columns.cut(stream, b, self.width, self.chunks, self.cuts.address()) }
    }

    /// Queues the product of rows `rows` of A with B, as [`DenseRows::rows`].
    ///
    /// # Safety
    /// As there, after [`SharedRow::cut`] of the same B.
    pub(crate) unsafe fn launch(
        &mut self,
        stream: &Stream,
        o: &Operands,
        rows: Range<usize>,
        c: u64,
        ldc: usize,
    ) -> Result<()> {
        self.next.fill(0, stream)?;
        self.cuts.used_on(stream);
        // With one chunk, the boundaries are the row offsets of B.
        let (first, step, stride) = match self.cuts.is_empty() {
            true => (o.b.offsets, 1, 0),
            false => (self.cuts.address(), o.b.rows as u64, o.b.rows as u64),
        };
        let arguments = Arguments {
            offsets: o.a.offsets,
            indices: o.a.indices,
            values: o.a.values,
            first,
            last: first + 4 * step,
            b_indices: o.b.indices,
            b_values: o.b.values,
            c,
            next: self.next.address(),
            stride,
            row: rows.start as u64,
            rows: rows.len() as u64,
            width: self.width as u64,
            chunks: self.chunks as u64,
            columns: o.b.cols as u64,
            ldc: ldc as u64,
            alpha: o.alpha,
        };
        let items = arguments.rows * arguments.chunks;
        let grid = items.div_ceil(u64::from(self.config.rows)).min(self.ctas);
        let (kernel, threads) = (&self.kernel, self.config.threads);
        // SAFETY: the addresses are the caller's promise.
        unsafe { kernel.launch_with_shared(stream, (grid, 1), threads, self.shared, &arguments) }
    }

    /// Whether sums are the same in every run.
    pub(crate) fn is_deterministic(&self) -> bool {
        !self.repeats
    }
}

impl DenseRows for SharedRow {
    type Config = Config;

    fn new(device: &Device, o: &Operands, problem: &Problem, config: Config) -> Result<Self> {
        let columns = Columns::new(device, IndexType::U32, IndexType::U32)?;
        // SAFETY: the operands are alive; the stream is waited for.
        let repeats = !unsafe { columns.increase(&o.b)? };
        let made = Self::compile(device, problem.dtype, (o.b.rows, o.b.cols), config, repeats)?;
        if problem.deterministic && !made.is_deterministic() {
            let backend = "shared-row on CUDA";
            let reason = "columns of B repeat or are unsorted, and such sums are added atomically";
            let nearest = "Csr::canonicalize of B first";
            return Err(crate::product::unsupported(problem, backend, reason, nearest));
        }
        // SAFETY: as above, with the columns checked.
        unsafe { made.cut(device.stream(), &o.b)? };
        Ok(made)
    }

    fn bytes(&self) -> usize {
        self.cuts.bytes() + self.next.bytes()
    }

    unsafe fn rows(
        &mut self,
        stream: &Stream,
        o: &Operands,
        rows: Range<usize>,
        c: u64,
        ldc: usize,
    ) -> Result<()> {
        // SAFETY: the caller's promise; the pattern of B was cut when the plan was made.
        unsafe { self.launch(stream, o, rows, c, ldc) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_fill_a_multiprocessor() {
        let threads = |columns, bytes| Config::paper(columns, bytes).threads;
        assert_eq!([threads(0, 4), threads(1024, 4), threads(4096, 4)], [128; 3]);
        assert_eq!([threads(8192, 4), threads(4096, 8), threads(8192, 8)], [256; 3]);
        assert_eq!([threads(14_000, 4), threads(1 << 30, 8)], [256, 256]);
        for columns in [0, 1, 31, 500, 1 << 20] {
            assert!(Config::tuned(columns, 8).check().is_ok());
        }
    }
}
