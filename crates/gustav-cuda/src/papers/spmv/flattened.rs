//! Host side of `kernels/papers/spmv/flattened.cuh`, for `nonzero-split` and `merge-path`.

use std::marker::PhantomData;

use gustav_core::{DType, Problem, Result};

use crate::device::{Device, Stream};
use crate::jit::Request;
use crate::launch::Kernel;
use crate::papers::flattened::{Addresses, Partitioning, Partitions, check_cta};
use crate::product::method::Method;
use crate::product::operands::Operands;
use crate::schedule::pattern::Pattern;

/// The shape of a CTA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Config {
    /// Threads of a CTA; the paper's number is 128.
    pub threads: u32,
    /// Nonzeros (and row ends) per thread; the paper's number is 7.
    pub items: u32,
}

impl Default for Config {
    fn default() -> Self {
        Config { threads: 128, items: 7 }
    }
}

impl Config {
    fn check(&self) -> Result<()> {
        check_cta(self.threads, self.items, true)
    }
}

pub(crate) const ANY_LAYOUT: bool = true;

/// The paper's configuration.
pub(crate) fn choose(_: &Pattern<'_>, _: &Problem) -> Result<(Config, String)> {
    Ok((Config::default(), "the paper's partitions of 7 items for each of 128 threads".into()))
}

pub(crate) fn configs(_: &Problem) -> Vec<Config> {
    [5, 7, 11].map(|items| Config { items, ..Config::default() }).into()
}

/// The source with its parameters.
pub(crate) fn request<P: Partitioning>(dtype: DType, config: Config) -> Request {
    P::spmv()
        .with_block::<Arguments>()
        .with("VALUE", dtype)
        .with("THREADS", config.threads)
        .with("ITEMS", config.items)
}

/// The compiled kernels, and the partitions.
pub(crate) struct Prepared<P> {
    config: Config,
    partitions: Partitions,
    sums: Kernel<Arguments>,
    fix_up: Kernel<Arguments>,
    partitioning: PhantomData<P>,
}

parameter_block! {
    struct Arguments {
        offsets: *const u32,
        indices: *const u32,
        values: *const Value,
        x: *const Value,
        y: *mut Value,
        /// Of partitions + 1 elements.
        boundaries: *mut schedule::Boundary,
        /// Of partitions elements.
        carry_rows: *mut u32,
        /// Of partitions elements.
        carries: *mut Value,
        partitions: u64,
        rows: u64,
        nonzeros: u64,
        alpha: u64,
        beta: u64,
    }
}

impl<P: Partitioning> Prepared<P> {
    pub(crate) fn new(pattern: &Pattern<'_>, problem: &Problem, config: Config) -> Result<Self> {
        config.check()?;
        let device = pattern.device();
        let module = device.module(&request::<P>(problem.dtype, config))?;
        let [search, sums, fix_up] = P::KERNELS;
        let partitions = Partitions::new::<P>(device, problem, config.threads * config.items, 1)?;
        let arguments = Arguments {
            offsets: pattern.offsets,
            boundaries: partitions.addresses().boundaries,
            partitions: partitions.count,
            rows: problem.output_rows() as u64,
            nonzeros: problem.nnz as u64,
            ..Arguments::default()
        };
        let grid = (partitions.count + 1).div_ceil(u64::from(config.threads));
        // SAFETY: it reads the row offsets, which are valid, and writes the boundaries, of the
        // right number.
        unsafe {
            let search = module.kernel(search)?;
            search.launch(device.stream(), (grid, 1), config.threads, &arguments)?;
        }
        device.stream().synchronize()?;
        let (sums, fix_up) = (module.kernel(sums)?, module.kernel(fix_up)?);
        Ok(Prepared { config, partitions, sums, fix_up, partitioning: PhantomData })
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
            x: o.b,
            y: o.c,
            boundaries,
            carry_rows,
            carries,
            partitions,
            rows: o.rows as u64,
            nonzeros: o.nnz as u64,
            alpha: o.alpha,
            beta: o.beta,
        };
        let threads = self.config.threads;
        let ctas = partitions.div_ceil(u64::from(threads / 32));
        // SAFETY: boundaries and carry-outs have an element for every partition, and the operands
        // are the caller's promise.
        unsafe {
            self.sums.launch(stream, (partitions, 1), threads, &arguments)?;
            self.fix_up.launch(stream, (ctas, 1), threads, &arguments)
        }
    }
}
