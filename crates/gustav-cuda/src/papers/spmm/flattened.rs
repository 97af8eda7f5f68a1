//! Host side of `kernels/papers/spmm/flattened.cuh`: what `nonzero-split` and `merge-path` have in common.

use std::ffi::CStr;
use std::marker::PhantomData;

use gustav_core::{DType, Error, Problem, Result};

use crate::device::{Device, DeviceBuffer, Stream};
use crate::jit::Request;
use crate::launch::Kernel;
use crate::product::method::Method;
use crate::product::operands::Operands;
use crate::schedule::pattern::Pattern;

// Threads and columns of a CTA of the fix-up.
const FIX_UP_BLOCK: u32 = 256;
const FIX_UP_WIDTH: u64 = 32;

/// The shape of a CTA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Config {
    /// Threads of a CTA; the paper's number is 128.
    pub threads: u32,
    /// Nonzeros per thread; the paper's number is 1.
    pub items: u32,
    /// Columns of C that a group of as many lanes computes: 32, or 4 with more nonzeros per
    /// thread, which the paper measured and dropped.
    pub columns: u32,
}

impl Default for Config {
    fn default() -> Self {
        Config { threads: 128, items: 1, columns: 32 }
    }
}

impl Config {
    fn check(&self) -> Result<()> {
        let fits = (32..=1024).contains(&self.threads)
            && self.threads.is_multiple_of(32)
            && (1..=16).contains(&self.items)
            && self.threads * self.items <= 2048
            && [4, 8, 16, 32].contains(&self.columns);
        if fits {
            return Ok(());
        }
        Err(Error::Argument {
            name: "config of equal partitions",
            found: format!("{self:?}"),
            expected:
                "whole warps of at most 1024 threads, 1 to 16 items a thread, at most 2048 a \
                       CTA, and 4, 8, 16 or 32 columns"
                    .into(),
        })
    }
}

pub(crate) const ANY_LAYOUT: bool = false;

/// The paper's configuration.
pub(crate) fn choose(_: &Pattern<'_>, _: &Problem) -> Result<(Config, String)> {
    Ok((Config::default(), "named by the caller".into()))
}

/// The paper's configuration and the one it left.
pub(crate) fn configs(_: &Problem) -> Vec<Config> {
    vec![Config::default(), Config { items: 8, columns: 4, ..Config::default() }]
}

/// How an algorithm cuts its partitions.
pub(crate) trait Partitions: Send {
    /// Its file below `kernels/`, and the text.
    const SOURCE: (&'static str, &'static str);
    /// Its three kernels: boundaries, sums, fix-up.
    const KERNELS: [&'static CStr; 3];

    /// Units of work in a matrix.
    fn work(rows: u64, nonzeros: u64) -> u64;
}

/// The source with its parameters.
pub(crate) fn request<S: Partitions>(dtype: DType, config: Config) -> Request {
    Request::new(S::SOURCE.0, S::SOURCE.1)
        .with_block::<Arguments>()
        .with("VALUE", dtype)
        .with("THREADS", config.threads)
        .with("ITEMS", config.items)
        .with("COLUMNS", config.columns)
}

/// The compiled kernels and the memory between them.
pub(crate) struct Prepared<S> {
    config: Config,
    partitions: u64,
    kernels: [Kernel<Arguments>; 3],
    boundaries: DeviceBuffer<u64>,
    carry_rows: DeviceBuffer<u32>,
    carries: DeviceBuffer<u64>,
    partition_of: PhantomData<S>,
}

parameter_block! {
    struct Arguments {
        offsets: *const u32,
        indices: *const u32,
        values: *const Value,
        b: *const Value,
        c: *mut Value,
        /// Partitions + 1.
        boundaries: *mut schedule::Boundary,
        /// Partitions.
        carry_rows: *mut u32,
        /// Partitions x columns.
        carries: *mut Value,
        partitions: u64,
        rows: u64,
        nonzeros: u64,
        columns: u64,
        ldb: u64,
        ldc: u64,
        alpha: u64,
        beta: u64,
    }
}

impl<S: Partitions> Prepared<S> {
    pub(crate) fn new(pattern: &Pattern<'_>, problem: &Problem, config: Config) -> Result<Self> {
        config.check()?;
        let device = pattern.device();
        let module = device.module(&request::<S>(problem.dtype, config))?;
        let [boundaries, sums, fix_up] = S::KERNELS;
        let kernels = [module.kernel(boundaries)?, module.kernel(sums)?, module.kernel(fix_up)?];
        let work = S::work(problem.output_rows() as u64, problem.nnz as u64);
        let count = work.div_ceil(u64::from(config.threads * config.items)).max(1) as usize;
        let bytes = count.saturating_mul(problem.columns).saturating_mul(problem.dtype.bytes());
        Ok(Prepared {
            config,
            partitions: count as u64,
            kernels,
            boundaries: DeviceBuffer::uninit(device, count + 1, "boundaries of partitions")?,
            carry_rows: DeviceBuffer::uninit(device, count, "rows that are carried out")?,
            carries: DeviceBuffer::uninit(device, bytes.div_ceil(8), "sums carried out")?,
            partition_of: PhantomData,
        })
    }
}

impl<S: Partitions> Method for Prepared<S> {
    fn bytes(&self) -> usize {
        self.boundaries.bytes() + self.carry_rows.bytes() + self.carries.bytes()
    }

    unsafe fn launch(&mut self, _device: &Device, stream: &Stream, o: &Operands) -> Result<()> {
        self.carry_rows.used_on(stream);
        for used in [&self.boundaries, &self.carries] {
            used.used_on(stream);
        }
        let arguments = Arguments {
            offsets: o.offsets,
            indices: o.indices,
            values: o.values,
            b: o.b,
            c: o.c,
            boundaries: self.boundaries.address(),
            carry_rows: self.carry_rows.address(),
            carries: self.carries.address(),
            partitions: self.partitions,
            rows: o.rows as u64,
            nonzeros: o.nnz as u64,
            columns: o.columns as u64,
            ldb: o.ldb as u64,
            ldc: o.ldc as u64,
            alpha: o.alpha,
            beta: o.beta,
        };
        let threads = self.config.threads;
        let strips = |width: u64| arguments.columns.div_ceil(width);
        let [boundaries, sums, fix_up] = &self.kernels;
        // SAFETY: boundaries, rows and sums
        // are large enough for every partition, and the operands are the caller's promise.
        unsafe {
            let grid = ((self.partitions + 1).div_ceil(u64::from(threads)), 1);
            boundaries.launch(stream, grid, threads, &arguments)?;
            let grid = (self.partitions, strips(u64::from(self.config.columns)));
            sums.launch(stream, grid, threads, &arguments)?;
            fix_up.launch(stream, (self.partitions, strips(FIX_UP_WIDTH)), FIX_UP_BLOCK, &arguments)
        }
    }
}
