//! `even-shares`: equal partitions of row starts and nonzeros, one per CTA, found by a search once
//! for a pattern or in the kernel itself. See `kernels/spmv/even_shares.cu`.

use gustav_core::{DType, IndexType, Problem, Result, Semiring};
use gustav_plan::heuristics::cuda_spmv;

use super::auto;
use crate::device::{Counters, Device, DeviceBuffer, Stream};
use crate::jit::{Request, source};
use crate::launch::Kernel;
use crate::product::catalog::no_kernel;
use crate::product::method::Method;
use crate::product::operands::Operands;
use crate::product::slices::Slices;
use crate::product::{check_config, only_spmv};
use crate::schedule::pattern::Pattern;

/// The shape of a CTA, which is that of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Config {
    /// Consecutive nonzeros of a thread: a power of two from 4 to 16.
    pub items: u32,
    /// Threads of a CTA.
    pub threads: u32,
    /// Resident threads of a multiprocessor that a kernel's registers must allow.
    pub resident: u32,
}

/// Supports any SpMV.
pub(super) fn supports(problem: &Problem) -> Result<()> {
    only_spmv(problem, "even-shares")
}

pub(super) const ANY_LAYOUT: bool = true;

/// The fastest configuration by the cost model, and the reason.
pub(super) fn choose(pattern: &Pattern<'_>, problem: &Problem) -> Result<(Config, String)> {
    let configs = configs(problem).into_iter().map(super::Config::EvenShares);
    let (config, reason) = auto::fastest(pattern, problem, configs)?;
    match config {
        super::Config::EvenShares(config) => Ok((config, reason)),
        other => Err(no_kernel(super::catalog(), problem, other.algorithm())),
    }
}

pub(super) fn configs(_: &Problem) -> Vec<Config> {
    let of = |tuning: cuda_spmv::EvenShares| {
        let cuda_spmv::EvenShares { items, threads, resident } = tuning;
        Config { items, threads, resident }
    };
    cuda_spmv::even_shares().map(of).into()
}

impl Config {
    /// Items of a partition: as many as a CTA holds sums, minus up to four that alignment to
    /// multiples of four may cost.
    fn work(&self) -> u32 {
        self.items * self.threads - 4
    }

    fn check(&self) -> Result<()> {
        let fits = self.items.is_power_of_two()
            && (4..=16).contains(&self.items)
            && (32..=1024).contains(&self.threads)
            && self.threads.is_power_of_two()
            && self.items * self.threads <= 4096
            && (self.threads..=2048).contains(&self.resident);
        check_config(
            "config of even-shares",
            self,
            fits,
            "4, 8 or 16 items for each of 32 to 1024 threads, powers of two, 4096 items \
                       at most, and as many resident threads at least, 2048 at most",
        )
    }
}

/// The parameters that a kernel is compiled for.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Variant {
    pub(crate) config: Config,
    pub(crate) dtype: DType,
    pub(crate) index: IndexType,
    pub(crate) offset: IndexType,
    /// A type for twice the number of rows plus nonzeros.
    pub(crate) position: IndexType,
    pub(crate) semiring: Semiring,
    /// Whether partitions search for their first row in every launch.
    pub(crate) search: bool,
    /// Whether the arrays of A begin at multiples of 16 bytes.
    pub(crate) wide_a: bool,
}

impl Variant {
    fn new(pattern: &Pattern<'_>, p: &Problem, config: Config) -> Self {
        let items = p.output_rows() as u64 + p.nnz as u64;
        Variant {
            config,
            dtype: p.dtype,
            index: p.index_type,
            offset: p.offset_type,
            position: if items < 1 << 31 { IndexType::U32 } else { IndexType::U64 },
            semiring: p.semiring,
            search: p.calls <= 1,
            wide_a: pattern.indices.is_multiple_of(16),
        }
    }

    /// The source with its parameters.
    pub(crate) fn request(&self) -> Request {
        let c = &self.config;
        request!("spmv/even_shares.cu")
            .with_block::<Arguments>()
            .with("VALUE", self.dtype)
            .with("INDEX", self.index)
            .with("OFFSET", self.offset)
            .with("POSITION", self.position)
            .with("SEMIRING", source::semiring(self.semiring))
            .with("THREADS", c.threads)
            .with("ITEMS", c.items)
            .with("RESIDENT", c.resident)
            .with("SEARCH", self.search)
            .with("WIDE_A", self.wide_a)
    }
}

/// The compiled kernel, the boundaries of partitions, and memory for rows that are in several of
/// them.
pub(super) struct Prepared {
    variant: Variant,
    kernel: Kernel<Arguments>,
    partitions: u64,
    // Positions have eight bytes at most.
    boundaries: DeviceBuffer<u64>,
    partials: DeviceBuffer<u64>,
    exchange: DeviceBuffer<u64>,
    arrivals: Counters,
}

parameter_block! {
    struct Arguments {
        offsets: *const Offset,
        indices: *const Index,
        values: *const Value,
        x: *const Value,
        y: *mut Value,
        /// One more than there are partitions.
        boundaries: *mut Position,
        /// Two per partition.
        partials: *mut Accum,
        /// For a row in two partitions the partial sum that was stored first, at the index of the
        /// first partition.
        exchange: *mut Accum,
        /// Number of stored parts of a row, at the index of its first partition.
        arrivals: *mut u32,
        rows: u64,
        nonzeros: u64,
        partitions: u64,
        slices: Slices,
        alpha: u64,
        beta: u64,
    }
}

impl Prepared {
    pub(super) fn new(pattern: &Pattern<'_>, p: &Problem, config: Config) -> Result<Self> {
        config.check()?;
        let device = pattern.device();
        let variant = Variant::new(pattern, p, config);
        let (rows, nonzeros) = (p.output_rows() as u64, p.nnz as u64);
        let partitions = (rows + nonzeros).div_ceil(u64::from(config.work()));
        let count = partitions as usize;
        let searched = if variant.search { 0 } else { count + 1 };
        let boundaries = DeviceBuffer::queued(device, searched, "beginnings of partitions")?;
        if !variant.search {
            let arguments = Arguments {
                offsets: pattern.offsets,
                boundaries: boundaries.address(),
                rows,
                nonzeros,
                partitions,
                ..Arguments::default()
            };
            let grid = (partitions + 1).div_ceil(u64::from(config.threads / 32));
            let module = device.module(&variant.request())?;
            let search = module.kernel(c"even_shares_boundaries")?;
            // SAFETY: it reads the row offsets, which are valid, and writes the boundaries, for
            // which there is memory.
            unsafe { search.launch(device.stream(), (grid, 1), config.threads, &arguments)? };
        }
        let mut exchange = DeviceBuffer::queued(device, count, "sums of rows in two partitions")?;
        exchange.fill(0xff, device.stream())?;
        Ok(Prepared {
            kernel: device.kernel(&variant, c"even_shares", || variant.request())?,
            variant,
            partitions,
            boundaries,
            partials: DeviceBuffer::queued(device, 2 * count, "sums of cut rows")?,
            exchange,
            arrivals: Counters::new(device, count, "arrivals of parts")?,
        })
    }
}

impl Method for Prepared {
    fn bytes(&self) -> usize {
        let sums = self.partials.bytes() + self.exchange.bytes();
        self.boundaries.bytes() + sums + self.arrivals.bytes()
    }

    fn compile(&mut self, device: &Device, o: &Operands) -> Result<()> {
        let wide_a = (o.indices | o.values).is_multiple_of(16);
        if self.variant.wide_a && !wide_a {
            self.variant.wide_a = false;
            let request = || self.variant.request();
            self.kernel = device.kernel(&self.variant, c"even_shares", request)?;
        }
        Ok(())
    }

    unsafe fn launch(&mut self, device: &Device, stream: &Stream, o: &Operands) -> Result<()> {
        self.compile(device, o)?;
        for used in [&self.boundaries, &self.partials, &self.exchange] {
            used.used_on(stream);
        }
        self.arrivals.used_on(stream);
        let arguments = Arguments {
            offsets: o.offsets,
            indices: o.indices,
            values: o.values,
            x: o.b,
            y: o.c,
            boundaries: self.boundaries.address(),
            partials: self.partials.address(),
            exchange: self.exchange.address(),
            arrivals: self.arrivals.address(),
            rows: o.rows as u64,
            nonzeros: o.nnz as u64,
            partitions: self.partitions,
            slices: Slices::new(o, device, self.partitions),
            alpha: o.alpha,
            beta: o.beta,
        };
        let threads = self.variant.config.threads;
        // SAFETY: there are two slots for each partition, and the operands are the caller's
        // promise.
        unsafe {
            self.kernel.launch_dependent(stream, (self.partitions, 1), threads, 0, &arguments)
        }
    }
}

#[cfg(test)]
mod tests {
    use gustav_core::Csr;

    use super::*;
    use crate::device::Device;
    use crate::matrix::DeviceCsr;
    use crate::schedule::items::{matrices, model};

    /// Checks the boundaries of partitions: every row start and every nonzero is one item.
    #[test]
    #[ignore = "needs a CUDA device"]
    fn partitions_hold_every_item_once() {
        let device = Device::cuda(0).expect("a CUDA device");
        for offsets in matrices() {
            let (rows, items) = (offsets.len() - 1, model(&offsets));
            let nnz = items.len() - rows;
            let host = Csr::<f32>::new(rows, 1, offsets, vec![0u32; nnz], vec![1.0; nnz]);
            let a = DeviceCsr::upload(&device, &host.expect("A").view()).expect("A");
            let pattern = Pattern::new(a.pattern()).expect("a pattern");
            let problem = a.pattern().spmv().problem.calls(100);
            for (items_of, threads) in [(4, 32), (8, 64), (16, 256)] {
                let config = Config { items: items_of, threads, resident: 1024 };
                let made = Prepared::new(&pattern, &problem, config).expect("partitions");
                let work = config.work() as usize;
                let mut expected: Vec<u32> = (0..items.len())
                    .step_by(work)
                    .map(|at| 2 * items[at] + u32::from(at > 0 && items[at - 1] == items[at]))
                    .collect();
                assert_eq!(expected.len() as u64, made.partitions);
                expected.push(2 * rows as u32);
                let (address, count) = (made.boundaries.address(), expected.len());
                // SAFETY: positions of so few items have four bytes, and live as long as the plan.
                let found = unsafe { DeviceBuffer::<u32>::borrowed(&device, address, count) };
                assert_eq!(found.to_host().expect("boundaries")[..], expected, "{config:?}");
            }
        }
    }
}
