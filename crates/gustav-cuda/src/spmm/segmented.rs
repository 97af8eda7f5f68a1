//! `segmented`: rows cut into segments, one group of lanes a segment, all columns in registers.
//! See `kernels/spmm/segmented.cu`.

mod config;

use std::collections::HashMap;

use gustav_core::{DType, IndexType, Operation, Problem, Result, SemiringKind};

use super::catalog::Method;
use super::operands::Operands;
use super::pattern::Pattern;
use crate::jit::Request;
use crate::kernel::Kernel;
use crate::schedule::{RowLengths, Segments, Target};
use crate::stream::Stream;
use crate::{Device, DeviceBuffer, source};
use config::widest;

pub use config::{Config, Reduction};

// Columns of a CTA of the fix-up, and the most strips that add the slots of a row there.
const FIX_UP_WIDTH: u32 = 32;
const MOST_STRIPS: u32 = 32;

/// What `segmented` supports: everything that SpMM asks for.
pub(super) fn supports(problem: &Problem) -> Result<()> {
    if problem.operation == Operation::Spmm {
        return Ok(());
    }
    Err(super::unsupported(
        problem,
        "segmented",
        "it multiplies by a dense matrix",
        "Problem::spmm",
    ))
}

pub(super) const ANY_LAYOUT: bool = false;

/// From the lengths of the rows.
pub(super) fn choose(pattern: &Pattern<'_>, problem: &Problem) -> Result<(Config, String)> {
    let rows = RowLengths::new(pattern.host_offsets()?);
    let config = Config::choose(problem, &rows, pattern.device().profile());
    let how = match config.longest {
        Some(longest) => format!("cut at {longest} and sorted by length"),
        None => "taken whole and in order".into(),
    };
    let (mean, max) = (rows.mean, rows.max);
    Ok((config, format!("rows of {mean:.1} nonzeros on average, {max} at most: {how}")))
}

pub(super) fn configs(problem: &Problem) -> Vec<Config> {
    Config::candidates(problem)
}

/// The schedule on the device and the kernels compiled so far.
pub(super) struct Prepared {
    config: Config,
    count: usize,
    strips: u32,
    segments: DeviceBuffer<u64>,
    cut_rows: DeviceBuffer<u64>,
    partials: DeviceBuffer<u64>,
    kernels: HashMap<Variant, Kernels>,
}

/// What a kernel is compiled for beyond the plan's problem.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Variant {
    pub(crate) config: Config,
    pub(crate) dtype: DType,
    pub(crate) out: DType,
    pub(crate) index: IndexType,
    pub(crate) offset: IndexType,
    pub(crate) semiring: SemiringKind,
    pub(crate) stride: IndexType,
    pub(crate) position: IndexType,
    pub(crate) exact: bool,
    pub(crate) wide_a: bool,
    /// Strips of the fix-up's CTA.
    pub(crate) strips: u32,
}

struct Kernels {
    segmented: Kernel,
    fix_up: Kernel,
    prepare: Kernel,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Arguments {
    offsets: u64,
    indices: u64,
    values: u64,
    segments: u64,
    cut_rows: u64,
    b: u64,
    c: u64,
    partials: u64,
    count: u64,
    nonzeros: u64,
    columns: u64,
    ldb: u64,
    ldc: u64,
    alpha: u64,
    beta: u64,
}

impl Variant {
    /// The source with its parameters.
    pub(crate) fn request(&self) -> Request {
        let c = &self.config;
        Request::new("spmm/segmented.cu", include_str!("../../kernels/spmm/segmented.cu"))
            .with("VALUE", self.dtype)
            .with("OUT", self.out)
            .with("INDEX", self.index)
            .with("OFFSET", self.offset)
            .with("SEMIRING", source::semiring(self.semiring))
            .with("STRIDE", self.stride)
            .with("POSITION", self.position)
            .with("BLOCK", c.block)
            .with("VECTOR", c.vector)
            .with("LANES", c.lanes)
            .with("TILES", c.tiles)
            .with("SHARE", c.share)
            .with("CHUNK", c.chunk)
            .with("LIST", c.longest.is_some())
            .with("EXACT", self.exact)
            .with("WIDE_A", self.wide_a)
            .with("PREFETCH", c.prefetch)
            .with("REDUCE", u8::from(c.longest.is_some() && c.reduction == Reduction::Atomic))
            .with("FIX_UP_WIDTH", FIX_UP_WIDTH)
            .with("STRIPS", self.strips)
    }
}

impl Prepared {
    /// Cuts the rows as `config` says and puts the schedule on the device.
    pub(super) fn new(pattern: &Pattern<'_>, problem: &Problem, config: Config) -> Result<Self> {
        config.check(problem)?;
        let (device, offsets) = (pattern.device(), pattern.host_offsets()?);
        if config.reduction == Reduction::Atomic {
            let plain = matches!(problem.dtype, DType::F32 | DType::F64)
                && problem.semiring == SemiringKind::PlusTimes;
            if !plain || problem.deterministic {
                let reason = "atomic reductions add f32 and f64 in plus-times, in any order";
                return Err(super::unsupported(problem, "segmented", reason, "Reduction::FixUp"));
            }
        }
        let target = match config.reduction {
            Reduction::FixUp => Target::Slot,
            Reduction::Atomic => Target::Row,
        };
        let schedule = match config.longest {
            Some(longest) => Segments::new(offsets, longest as usize, target, config.sorted)?,
            None => Segments::default(),
        };
        let slots = if target == Target::Slot { schedule.slots } else { 0 };
        // Sums are at most eight bytes wide.
        let partials = slots
            .saturating_mul(problem.columns)
            .saturating_mul(accumulator(problem.dtype).bytes());
        Ok(Prepared {
            config,
            strips: strips(&schedule.cut_rows),
            count: if config.longest.is_some() { schedule.count() } else { offsets.len() - 1 },
            segments: DeviceBuffer::from_slice(device, &schedule.words, "segments")?,
            cut_rows: DeviceBuffer::from_slice(device, &schedule.cut_rows, "cut rows")?,
            partials: DeviceBuffer::uninit(device, partials.div_ceil(8), "sums of cut rows")?,
            kernels: HashMap::new(),
        })
    }

    fn variant(&self, o: &Operands) -> Variant {
        let aligned = |address: u64, ld: usize, dtype: DType| {
            let values = widest(dtype, ld as u64);
            let addressed = (address & address.wrapping_neg()).max(1) / dtype.bytes() as u64;
            if address == 0 { values } else { values.min(addressed.min(16) as u32) }
        };
        let vector = widest(o.dtype, o.columns as u64)
            .min(aligned(o.b, o.ldb, o.dtype))
            .min(aligned(o.c, o.ldc, o.dtype_c));
        let config = self.config.narrowed(o.dtype, vector, o.columns);
        Variant {
            config,
            dtype: o.dtype,
            out: o.dtype_c,
            index: o.index_type,
            offset: o.offset_type,
            semiring: o.semiring,
            stride: source::narrowest((o.ldb as u64).max(o.inner as u64)),
            position: if o.nnz < 1 << 31 { IndexType::U32 } else { IndexType::U64 },
            exact: (o.columns as u64).is_multiple_of(config.panel()),
            strips: self.strips,
            wide_a: (o.indices | o.values).is_multiple_of(16),
        }
    }
}

impl Method for Prepared {
    fn bytes(&self) -> usize {
        self.segments.bytes() + self.cut_rows.bytes() + self.partials.bytes()
    }

    fn compile(&mut self, device: &Device, operands: &Operands) -> Result<()> {
        let variant = self.variant(operands);
        if self.kernels.contains_key(&variant) {
            return Ok(());
        }
        let module = device.module(&variant.request())?;
        let kernels = Kernels {
            segmented: module.kernel(c"segmented")?,
            fix_up: module.kernel(c"segmented_fix_up")?,
            prepare: module.kernel(c"segmented_prepare")?,
        };
        self.kernels.insert(variant, kernels);
        Ok(())
    }

    unsafe fn launch(&mut self, device: &Device, stream: &Stream, o: &Operands) -> Result<()> {
        self.compile(device, o)?;
        let variant = self.variant(o);
        let kernels = &self.kernels[&variant];
        let config = variant.config;
        for used in [&self.segments, &self.cut_rows, &self.partials] {
            used.used_on(stream);
        }
        let arguments = Arguments {
            offsets: o.offsets,
            indices: o.indices,
            values: o.values,
            segments: self.segments.address(),
            cut_rows: self.cut_rows.address(),
            b: o.b,
            c: o.c,
            partials: self.partials.address(),
            count: self.count as u64,
            nonzeros: o.nnz as u64,
            columns: o.columns as u64,
            ldb: o.ldb as u64,
            ldc: o.ldc as u64,
            alpha: o.alpha,
            beta: o.beta,
        };
        let cut = (self.cut_rows.len() / 3) as u64;
        let groups = u64::from(config.block / config.group());
        let grid = (arguments.count.div_ceil(groups), arguments.columns.div_ceil(config.panel()));
        // SAFETY: `Arguments` is the parameter of all three kernels; the schedule covers the
        // matrix, and the operands are the caller's promise.
        unsafe {
            if config.reduction == Reduction::Atomic {
                kernels.prepare.launch(stream, (cut, 1), config.block, &arguments)?;
            }
            kernels.segmented.launch(stream, grid, config.block, &arguments)?;
            if config.reduction == Reduction::FixUp {
                let grid = (cut, arguments.columns.div_ceil(u64::from(FIX_UP_WIDTH)));
                let block = FIX_UP_WIDTH * variant.strips;
                kernels.fix_up.launch(stream, grid, block, &arguments)?;
            }
        }
        Ok(())
    }
}

/// Strips that the fix-up spreads the slots of a row over: about 16 slots each in the longest.
fn strips(cut_rows: &[u64]) -> u32 {
    let most = cut_rows.chunks_exact(3).map(|row| row[2]).max().unwrap_or(0);
    most.div_ceil(16).next_power_of_two().clamp(1, u64::from(MOST_STRIPS)) as u32
}

fn accumulator(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::Bf16 => DType::F32,
        other => other,
    }
}
