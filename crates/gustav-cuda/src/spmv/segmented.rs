//! `segmented`: a group of lanes a row, long rows cut into parts, one launch. See
//! `kernels/spmv/segmented.cu`.

use gustav_core::{DType, Error, IndexType, Operation, Problem, Result, SemiringKind};

use crate::jit::Request;
use crate::kernel::Kernel;
use crate::spmm::catalog::Method;
use crate::spmm::operands::Operands;
use crate::spmm::pattern::Pattern;
use crate::spmm::unsupported;
use crate::stream::Stream;
use crate::{Device, DeviceBuffer, source};

// Nonzeros that a lane should have at least, as sweeps over lanes have it.
const PER_LANE: f64 = 2.9;
// Rows up to this length are not cut.
const UNCUT: u32 = 32;
// Bytes of an entry in the list of parts.
const ENTRY: usize = 32;

/// The shape of a group and of a CTA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Config {
    /// Lanes that share a row: a power of two up to 32.
    pub lanes: u32,
    /// Nonzeros of a lane that are read before the first is used.
    pub ahead: u32,
    /// Threads of a CTA.
    pub threads: u32,
    /// Rows with more nonzeros are cut.
    pub longest: u32,
    /// Most nonzeros of a part of a cut row.
    pub part: u32,
}

impl Config {
    /// Groups of `lanes` for a matrix that keeps the chip busy for `long`, or not. Short products
    /// end with their longest row, so that rows are cut sooner and parts are read at once; in long
    /// ones larger parts cost less.
    fn of(lanes: u32, long: bool) -> Self {
        let (longest, part) = if long { (32 * lanes, 1024) } else { (16 * lanes, 256) };
        Config { lanes, ahead: 4, threads: 128, longest: longest.max(UNCUT), part }
    }
}

/// Whether there are so many nonzeros that every lane of the chip sums several.
fn is_long(problem: &Problem, resident: usize) -> bool {
    problem.nnz >= 8 * resident
}

/// Everything that SpMV asks for.
pub(super) fn supports(problem: &Problem) -> Result<()> {
    if problem.operation == Operation::Spmv {
        return Ok(());
    }
    Err(unsupported(problem, "segmented on CUDA", "it multiplies by a vector", "Problem::spmv"))
}

pub(super) const ANY_LAYOUT: bool = true;

/// Lanes by the mean row length; more where there are too few rows to fill the chip.
pub(super) fn choose(pattern: &Pattern<'_>, problem: &Problem) -> Result<(Config, String)> {
    let profile = pattern.device().profile();
    let resident = profile.multiprocessors * profile.threads_per_multiprocessor;
    let mean = problem.nnz as f64 / problem.output_rows().max(1) as f64;
    let few = |lanes: u32| problem.output_rows() * (lanes as usize) < resident / 2;
    let mut lanes = 1;
    while lanes < 32 && (2.0 * PER_LANE * f64::from(lanes) <= mean || few(lanes)) {
        lanes *= 2;
    }
    let config = Config::of(lanes, is_long(problem, resident));
    let cut = config.longest;
    Ok((config, format!("rows of {mean:.1} nonzeros on average, cut beyond {cut}")))
}

pub(super) fn configs(_: &Problem) -> Vec<Config> {
    let of = |long| [1, 2, 4, 8, 16, 32].map(|lanes| Config::of(lanes, long));
    [false, true].map(of).concat()
}

/// The compiled kernel, and the parts of long rows.
pub(super) struct Prepared {
    config: Config,
    kernel: Kernel,
    part_ctas: u64,
    parts: DeviceBuffer<u64>,
    done: DeviceBuffer<u32>,
    partials: DeviceBuffer<u64>,
    number: DeviceBuffer<u64>,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Arguments {
    offsets: u64,
    indices: u64,
    values: u64,
    x: u64,
    y: u64,
    parts: u64,
    done: u64,
    partials: u64,
    number: u64,
    part_ctas: u64,
    rows: u64,
    alpha: u64,
    beta: u64,
}

/// The source with its parameters.
pub(crate) fn request(
    dtype: DType,
    (index, offset): (IndexType, IndexType),
    semiring: SemiringKind,
    config: Config,
) -> Request {
    Request::new("spmv/segmented.cu", include_str!("../../kernels/spmv/segmented.cu"))
        .with("VALUE", dtype)
        .with("INDEX", index)
        .with("OFFSET", offset)
        .with("SEMIRING", source::semiring(semiring))
        .with("LANES", config.lanes)
        .with("AHEAD", config.ahead)
        .with("THREADS", config.threads)
        .with("LIMIT", config.longest)
        .with("PART", config.part)
}

impl Prepared {
    pub(super) fn new(pattern: &Pattern<'_>, p: &Problem, config: Config) -> Result<Self> {
        let fits = config.lanes.is_power_of_two()
            && config.lanes <= 32
            && (1..=8).contains(&config.ahead)
            && (32..=1024).contains(&config.threads)
            && config.threads.is_multiple_of(32)
            && config.longest > 0
            && config.part > 0;
        if !fits {
            return Err(Error::Argument {
                name: "config of segmented",
                found: format!("{config:?}"),
                expected: "a power of two of at most 32 lanes, 1 to 8 nonzeros ahead, whole warps \
                           of at most 1024 threads, parts and longest rows that are not empty"
                    .into(),
            });
        }
        let device = pattern.device();
        let request = request(p.dtype, (p.index_type, p.offset_type), p.semiring, config);
        let module = device.module(&request)?;
        // The most that there can be: rows just over the limit, and full parts.
        let most = p.nnz / config.longest as usize + p.nnz / config.part as usize;
        let mut prepared = Prepared {
            config,
            kernel: module.kernel(c"segmented")?,
            part_ctas: 0,
            parts: DeviceBuffer::uninit(device, most * ENTRY / 8, "parts of long rows")?,
            done: DeviceBuffer::uninit(device, most, "parts that are summed")?,
            partials: DeviceBuffer::uninit(device, most, "sums of parts")?,
            number: DeviceBuffer::from_slice(device, &[0], "number of parts")?,
        };
        let rows = p.output_rows() as u64;
        if most > 0 {
            let arguments = Arguments { offsets: pattern.offsets, rows, ..prepared.arguments() };
            let grid = rows.div_ceil(u64::from(config.threads));
            // SAFETY: `Arguments` is the kernel's parameter; it reads the row offsets, which live,
            // and writes the list, which has room for all.
            unsafe {
                let parts = module.kernel(c"segmented_parts")?;
                parts.launch(device.stream(), (grid, 1), config.threads, &arguments)?;
            }
            let mut number = [0];
            prepared.number.read(&mut number)?;
            prepared.part_ctas = number[0].div_ceil(u64::from(config.threads / 32));
        }
        Ok(prepared)
    }

    fn arguments(&self) -> Arguments {
        Arguments {
            parts: self.parts.address(),
            done: self.done.address(),
            partials: self.partials.address(),
            number: self.number.address(),
            part_ctas: self.part_ctas,
            ..Arguments::default()
        }
    }
}

impl Method for Prepared {
    fn bytes(&self) -> usize {
        let words = [&self.parts, &self.partials, &self.number];
        words.iter().map(|b| b.bytes()).sum::<usize>() + self.done.bytes()
    }

    unsafe fn launch(&mut self, _device: &Device, stream: &Stream, o: &Operands) -> Result<()> {
        self.done.used_on(stream);
        for used in [&self.parts, &self.partials, &self.number] {
            used.used_on(stream);
        }
        let arguments = Arguments {
            offsets: o.offsets,
            indices: o.indices,
            values: o.values,
            x: o.b,
            y: o.c,
            rows: o.rows as u64,
            alpha: o.alpha,
            beta: o.beta,
            ..self.arguments()
        };
        let Config { lanes, threads, .. } = self.config;
        let row_ctas = arguments.rows.div_ceil(u64::from(threads / lanes));
        // SAFETY: `Arguments` is the kernel's parameter; the list of parts is that of the pattern,
        // and the operands are the caller's promise.
        unsafe { self.kernel.launch(stream, (self.part_ctas + row_ctas, 1), threads, &arguments) }
    }
}
