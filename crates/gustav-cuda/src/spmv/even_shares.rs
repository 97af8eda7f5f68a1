//! `even-shares`: equal shares of row starts and nonzeros, a warp each, found by a search in the launch
//! itself. See `kernels/spmv/even_shares.cu`.

use gustav_core::{DType, Error, IndexType, Operation, Problem, Result, SemiringKind};

use crate::jit::Request;
use crate::kernel::Kernel;
use crate::spmm::catalog::Method;
use crate::spmm::operands::Operands;
use crate::spmm::pattern::Pattern;
use crate::spmm::unsupported;
use crate::stream::Stream;
use crate::{Device, DeviceBuffer, source};

/// The shares, and the shape of a CTA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Config {
    /// Row starts and nonzeros of a share, a power of two from 64 to 4096.
    pub work: u32,
    /// Runs of 32 nonzeros that are read before the first is used.
    pub batches: u32,
    /// Threads of a CTA.
    pub threads: u32,
}

/// Everything that SpMV asks for.
pub(super) fn supports(problem: &Problem) -> Result<()> {
    if problem.operation == Operation::Spmv {
        return Ok(());
    }
    Err(unsupported(problem, "even-shares on CUDA", "it multiplies by a vector", "Problem::spmv"))
}

pub(super) const ANY_LAYOUT: bool = true;

/// Shares that give every warp of the chip one, within what fits a warp.
pub(super) fn choose(pattern: &Pattern<'_>, problem: &Problem) -> Result<(Config, String)> {
    let profile = pattern.device().profile();
    let warps = profile.multiprocessors * profile.threads_per_multiprocessor / profile.warp.max(1);
    let items = problem.output_rows() + problem.nnz;
    let work = (items / warps.max(1)).max(1).next_power_of_two().clamp(128, 512) as u32;
    let reason = format!("shares of {work} row starts and nonzeros");
    Ok((Config { work, batches: 4, threads: 128 }, reason))
}

pub(super) fn configs(_: &Problem) -> Vec<Config> {
    let of = |work| [2, 4, 8].map(|batches| Config { work, batches, threads: 128 });
    [128, 256, 512, 1024].map(of).concat()
}

/// The compiled kernel, and room for the rows that several shares have.
pub(super) struct Prepared {
    config: Config,
    kernel: Kernel,
    shares: u64,
    partials: DeviceBuffer<u64>,
    arrivals: DeviceBuffer<u32>,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Arguments {
    offsets: u64,
    indices: u64,
    values: u64,
    x: u64,
    y: u64,
    partials: u64,
    arrivals: u64,
    rows: u64,
    nonzeros: u64,
    shares: u64,
    alpha: u64,
    beta: u64,
}

/// The source with its parameters; `position` holds rows and nonzeros together.
pub(crate) fn request(
    dtype: DType,
    (index, offset, position): (IndexType, IndexType, IndexType),
    semiring: SemiringKind,
    config: Config,
) -> Request {
    Request::new("spmv/even_shares.cu", include_str!("../../kernels/spmv/even_shares.cu"))
        .with("VALUE", dtype)
        .with("INDEX", index)
        .with("OFFSET", offset)
        .with("POSITION", position)
        .with("SEMIRING", source::semiring(semiring))
        .with("BATCHES", config.batches)
        .with("THREADS", config.threads)
        .with("WORK_BITS", config.work.ilog2())
}

impl Prepared {
    pub(super) fn new(pattern: &Pattern<'_>, p: &Problem, config: Config) -> Result<Self> {
        let fits = config.work.is_power_of_two()
            && (64..=4096).contains(&config.work)
            && (1..=8).contains(&config.batches)
            && (32..=1024).contains(&config.threads)
            && config.threads.is_multiple_of(32);
        if !fits {
            return Err(Error::Argument {
                name: "config of even-shares",
                found: format!("{config:?}"),
                expected: "shares of a power of two from 64 to 4096, 1 to 8 batches, whole warps \
                           of at most 1024 threads"
                    .into(),
            });
        }
        let device = pattern.device();
        let items = p.output_rows() as u64 + p.nnz as u64;
        let position = if items < 1 << 31 { IndexType::U32 } else { IndexType::U64 };
        let request = request(p.dtype, (p.index_type, p.offset_type, position), p.semiring, config);
        let module = device.module(&request)?;
        let shares = items.div_ceil(u64::from(config.work));
        let count = shares as usize;
        let mut arrivals = DeviceBuffer::queued(device, count, "arrivals of parts")?;
        arrivals.fill(0, device.stream())?;
        Ok(Prepared {
            config,
            kernel: module.kernel(c"even_shares")?,
            shares,
            partials: DeviceBuffer::queued(device, 2 * count, "sums of cut rows")?,
            arrivals,
        })
    }
}

impl Method for Prepared {
    fn bytes(&self) -> usize {
        self.partials.bytes() + self.arrivals.bytes()
    }

    unsafe fn launch(&mut self, _device: &Device, stream: &Stream, o: &Operands) -> Result<()> {
        self.partials.used_on(stream);
        self.arrivals.used_on(stream);
        let arguments = Arguments {
            offsets: o.offsets,
            indices: o.indices,
            values: o.values,
            x: o.b,
            y: o.c,
            partials: self.partials.address(),
            arrivals: self.arrivals.address(),
            rows: o.rows as u64,
            nonzeros: o.nnz as u64,
            shares: self.shares,
            alpha: o.alpha,
            beta: o.beta,
        };
        let threads = self.config.threads;
        let ctas = self.shares.div_ceil(u64::from(threads / 32));
        // SAFETY: `Arguments` is the kernel's parameter; parts have two slots a share, and the
        // operands are the caller's promise.
        unsafe { self.kernel.launch(stream, (ctas, 1), threads, &arguments) }
    }
}
