//! Host side of `kernels/papers/spmv/flattened.cuh`: what `nonzero-split` and `merge-path` have in common.

use std::marker::PhantomData;

use gustav_core::{DType, Error, Problem, Result};

use crate::device::{Device, DeviceBuffer, Stream};
use crate::jit::Request;
use crate::launch::Kernel;
use crate::papers::spmm::flattened::Partitions;
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
        let fits = (32..=1024).contains(&self.threads)
            && self.threads.is_multiple_of(32)
            && (1..=16).contains(&self.items)
            && self.threads * self.items <= 2048;
        if fits {
            return Ok(());
        }
        Err(Error::Argument {
            name: "config of equal partitions",
            found: format!("{self:?}"),
            expected: "whole warps of at most 1024 threads, 1 to 16 items a thread, at most 2048 \
                       a CTA"
                .into(),
        })
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
pub(crate) fn request<S: Partitions>(dtype: DType, config: Config) -> Request {
    Request::new(S::SOURCE.0, S::SOURCE.1)
        .with_block::<Arguments>()
        .with("VALUE", dtype)
        .with("THREADS", config.threads)
        .with("ITEMS", config.items)
}

/// The compiled kernels, the boundaries of the partitions, and memory for what is carried out.
pub(crate) struct Prepared<S> {
    config: Config,
    partitions: u64,
    sums: Kernel<Arguments>,
    fix_up: Kernel<Arguments>,
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
        x: *const Value,
        y: *mut Value,
        /// Partitions + 1.
        boundaries: *mut schedule::Boundary,
        /// Partitions.
        carry_rows: *mut u32,
        /// Partitions.
        carries: *mut Value,
        partitions: u64,
        rows: u64,
        nonzeros: u64,
        alpha: u64,
        beta: u64,
    }
}

impl<S: Partitions> Prepared<S> {
    pub(crate) fn new(pattern: &Pattern<'_>, problem: &Problem, config: Config) -> Result<Self> {
        config.check()?;
        let device = pattern.device();
        let module = device.module(&request::<S>(problem.dtype, config))?;
        let [search, sums, fix_up] = S::KERNELS;
        let (rows, nonzeros) = (problem.output_rows() as u64, problem.nnz as u64);
        let partition = u64::from(config.threads * config.items);
        let partitions = S::work(rows, nonzeros).div_ceil(partition).max(1);
        let count = partitions as usize;
        let boundaries = DeviceBuffer::uninit(device, count + 1, "boundaries of partitions")?;
        let arguments = Arguments {
            offsets: pattern.offsets,
            boundaries: boundaries.address(),
            partitions,
            rows,
            nonzeros,
            ..Arguments::default()
        };
        let grid = (partitions + 1).div_ceil(u64::from(config.threads));
        // SAFETY: it reads the row offsets, which live, and
        // writes the boundaries, which are large enough for all.
        unsafe {
            let search = module.kernel(search)?;
            search.launch(device.stream(), (grid, 1), config.threads, &arguments)?;
        }
        device.stream().synchronize()?;
        Ok(Prepared {
            config,
            partitions,
            sums: module.kernel(sums)?,
            fix_up: module.kernel(fix_up)?,
            boundaries,
            carry_rows: DeviceBuffer::uninit(device, count, "rows that are carried out")?,
            carries: DeviceBuffer::uninit(device, count, "sums carried out")?,
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
            x: o.b,
            y: o.c,
            boundaries: self.boundaries.address(),
            carry_rows: self.carry_rows.address(),
            carries: self.carries.address(),
            partitions: self.partitions,
            rows: o.rows as u64,
            nonzeros: o.nnz as u64,
            alpha: o.alpha,
            beta: o.beta,
        };
        let threads = self.config.threads;
        let ctas = self.partitions.div_ceil(u64::from(threads / 32));
        // SAFETY: boundaries, rows and sums have
        // memory for every partition, and the operands are the caller's promise.
        unsafe {
            self.sums.launch(stream, (self.partitions, 1), threads, &arguments)?;
            self.fix_up.launch(stream, (ctas, 1), threads, &arguments)
        }
    }
}
