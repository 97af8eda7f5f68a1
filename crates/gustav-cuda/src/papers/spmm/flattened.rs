//! Host side of `kernels/papers/spmm/flattened.cuh`, for `nonzero-split` and `merge-path`.

use std::marker::PhantomData;

use gustav_core::{DType, Problem, Result};

use crate::device::{Device, Stream};
use crate::jit::Request;
use crate::launch::Kernel;
use crate::papers::check_ahead;
use crate::papers::flattened::{Addresses, Partitioning, Partitions, check_cta};
use crate::product::method::Method;
use crate::product::operands::Operands;
use crate::schedule::pattern::Pattern;

// Threads of a CTA of the fix-up, and its columns.
const FIX_UP_BLOCK: u32 = 256;
const FIX_UP_WIDTH: u64 = 32;

/// The shape of a CTA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Config {
    /// Threads of a CTA; the paper's number is 128.
    pub threads: u32,
    /// Nonzeros per thread; the paper's number is 1.
    pub items: u32,
    /// Columns of C that a group of as many lanes computes: 32, or 4 with more nonzeros per thread,
    /// which the paper measured and rejected.
    pub columns: u32,
    /// Loads of B that a thread issues before it waits for them, as in
    /// [`row_split::Config`](super::row_split::Config); at most one for each column.
    pub ahead: u32,
}

impl Default for Config {
    fn default() -> Self {
        Config { threads: 128, items: 1, columns: 32, ahead: 8 }
    }
}

impl Config {
    fn check(&self) -> Result<()> {
        check_ahead(self.ahead)?;
        check_cta(self.threads, self.items, [4, 8, 16, 32].contains(&self.columns))
    }
}

pub(crate) const ANY_LAYOUT: bool = false;

/// The paper's configuration.
pub(crate) fn choose(_: &Pattern<'_>, _: &Problem) -> Result<(Config, String)> {
    Ok((Config::default(), "named by the caller".into()))
}

/// The paper's configuration, the one that it rejected, and the paper's with more loads in flight.
pub(crate) fn configs(_: &Problem) -> Vec<Config> {
    let paper = Config::default();
    let more_ahead = [16, 32].map(|ahead| Config { ahead, ..paper });
    [paper, Config { items: 8, columns: 4, ..paper }].into_iter().chain(more_ahead).collect()
}

/// The source with its parameters.
pub(crate) fn request<P: Partitioning>(dtype: DType, config: Config) -> Request {
    P::spmm()
        .with_block::<Arguments>()
        .with("VALUE", dtype)
        .with("THREADS", config.threads)
        .with("ITEMS", config.items)
        .with("COLUMNS", config.columns)
        .with("AHEAD", config.ahead)
}

/// The compiled kernels, and the partitions.
pub(crate) struct Prepared<P> {
    config: Config,
    partitions: Partitions,
    kernels: [Kernel<Arguments>; 3],
    partitioning: PhantomData<P>,
}

parameter_block! {
    struct Arguments {
        offsets: *const u32,
        indices: *const u32,
        values: *const Value,
        b: *const Value,
        c: *mut Value,
        /// Of partitions + 1 elements.
        boundaries: *mut schedule::Boundary,
        /// Of partitions elements.
        carry_rows: *mut u32,
        /// Of partitions x columns elements.
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

impl<P: Partitioning> Prepared<P> {
    pub(crate) fn new(pattern: &Pattern<'_>, problem: &Problem, config: Config) -> Result<Self> {
        config.check()?;
        let device = pattern.device();
        let module = device.module(&request::<P>(problem.dtype, config))?;
        let [boundaries, sums, fix_up] = P::KERNELS;
        let kernels = [module.kernel(boundaries)?, module.kernel(sums)?, module.kernel(fix_up)?];
        let size = config.threads * config.items;
        let partitions = Partitions::new::<P>(device, problem, size, problem.columns)?;
        Ok(Prepared { config, partitions, kernels, partitioning: PhantomData })
    }
}

impl<P: Partitioning> Method for Prepared<P> {
    fn bytes(&self) -> usize {
        self.partitions.bytes()
    }

    unsafe fn launch(&mut self, _device: &Device, stream: &Stream, o: &Operands) -> Result<()> {
        let Addresses { boundaries, carry_rows, carries } = self.partitions.used_on(stream);
        let partitions = self.partitions.count;
        let arguments = Arguments {
            offsets: o.offsets,
            indices: o.indices,
            values: o.values,
            b: o.b,
            c: o.c,
            boundaries,
            carry_rows,
            carries,
            partitions,
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
        // SAFETY: boundaries and carry-outs have an element for every partition, and the operands are the caller's
        // promise.
        unsafe {
            let grid = ((partitions + 1).div_ceil(u64::from(threads)), 1);
            boundaries.launch(stream, grid, threads, &arguments)?;
            let grid = (partitions, strips(u64::from(self.config.columns)));
            sums.launch(stream, grid, threads, &arguments)?;
            fix_up.launch(stream, (partitions, strips(FIX_UP_WIDTH)), FIX_UP_BLOCK, &arguments)
        }
    }
}
