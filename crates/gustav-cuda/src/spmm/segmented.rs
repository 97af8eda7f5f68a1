//! `segmented`: rows cut into segments, one group of lanes a segment, all columns in registers.
//! See `kernels/spmm/segmented.cu`.

mod config;

use std::collections::HashMap;

use gustav_core::{DType, IndexType, Operation, Problem, Result, SemiringKind};
use gustav_plan::heuristics::cuda_spmm;

use super::catalog::Method;
use super::operands::Operands;
use super::ordered;
use super::pattern::Pattern;
use super::tile::{accumulator, widest_for};
use crate::jit::Request;
use crate::kernel::Kernel;
use crate::schedule::{Segments, Target};
use crate::stream::Stream;
use crate::{Device, DeviceBuffer, source};

pub use config::{Config, Reduction};

// Levels of the tree in which cut rows meet.
const LEVELS: usize = 6;

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
    let profile = pattern.device().planner_profile();
    let way = cuda_spmm::segmented(problem, pattern.lengths()?, &profile);
    Ok((Config::new(problem, &way), way.reason))
}

pub(super) fn configs(problem: &Problem) -> Vec<Config> {
    Config::candidates(problem)
}

/// The schedule on the device and the kernels compiled so far.
pub(super) struct Prepared {
    config: Config,
    /// None when whole rows are taken in their order.
    segments: Option<Segments>,
    /// The rows, when whole rows are taken in an order.
    order: Option<DeviceBuffer<u32>>,
    rows: usize,
    arrivals: DeviceBuffer<u32>,
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
    pub(crate) ordered: bool,
}

struct Kernels {
    segmented: Kernel,
    prepare: Kernel,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Arguments {
    offsets: u64,
    indices: u64,
    values: u64,
    segments: u64,
    order: u64,
    cut_rows: u64,
    slot_rows: u64,
    arrivals: u64,
    slots: u64,
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
            .with("RESIDENT", c.resident)
            .with("VECTOR", c.vector)
            .with("LANES", c.lanes)
            .with("TILES", c.tiles)
            .with("SHARE", c.share)
            .with("CHUNK", c.chunk)
            .with("AHEAD", c.ahead)
            .with("LIST", c.longest.is_some())
            .with("ORDERED", self.ordered)
            .with("EXACT", self.exact)
            .with("WIDE_A", self.wide_a)
            .with("REDUCE", u8::from(c.longest.is_some() && c.reduction == Reduction::Atomic))
    }
}

impl Prepared {
    /// Cuts the rows as `config` says and puts the schedule on the device.
    pub(super) fn new(pattern: &Pattern<'_>, problem: &Problem, config: Config) -> Result<Self> {
        config.check(problem)?;
        let target = match config.reduction {
            Reduction::FixUp => Target::Slot,
            Reduction::Atomic => Target::Row,
        };
        let list = |longest| Segments::new(pattern, problem, pattern.lengths()?, longest, target);
        let segments = config.longest.map(list).transpose()?;
        let order = pattern.order().filter(|_| segments.is_none());
        let order = order.map(|order| ordered::sequence(pattern.device(), order)).transpose()?;
        let prepared = Self::over(pattern.device(), problem, config, segments)?;
        Ok(Prepared { order, ..prepared })
    }

    /// Takes `segments`, or whole rows in their order when there are none.
    pub(super) fn over(
        device: &Device,
        problem: &Problem,
        config: Config,
        segments: Option<Segments>,
    ) -> Result<Self> {
        let slots = match (&segments, config.reduction) {
            (Some(segments), Reduction::FixUp) => segments.slot_rows.len(),
            _ => 0,
        };
        // Operands less aligned than packed ones narrow the vectors, which may take more panels.
        let panels = [1, 2, 4, 8].map(|vector| {
            let panel = config.narrowed(problem.dtype, vector, problem.columns).panel();
            (problem.columns as u64).div_ceil(panel) as usize
        });
        let arrivals = slots.saturating_mul(LEVELS * panels.into_iter().max().unwrap_or(1));
        let mut arrivals = DeviceBuffer::queued(device, arrivals, "arrivals of parts")?;
        arrivals.fill(0, device.stream())?;
        // Sums are at most eight bytes wide.
        let partials = slots
            .saturating_mul(problem.columns)
            .saturating_mul(accumulator(problem.dtype).bytes());
        let partials = DeviceBuffer::queued(device, partials.div_ceil(8), "sums of cut rows")?;
        if segments.is_some() {
            device.stream().synchronize()?;
        }
        Ok(Prepared {
            config,
            rows: problem.output_rows(),
            segments,
            order: None,
            arrivals,
            partials,
            kernels: HashMap::new(),
        })
    }

    fn variant(&self, o: &Operands) -> Variant {
        let config = self.config.narrowed(o.dtype, widest_for(o), o.columns);
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
            wide_a: (o.indices | o.values).is_multiple_of(16),
            ordered: self.order.is_some(),
        }
    }
}

impl Method for Prepared {
    fn bytes(&self) -> usize {
        let list = self.segments.as_ref().map_or(0, Segments::bytes);
        let order = self.order.as_ref().map_or(0, DeviceBuffer::bytes);
        list + order + self.arrivals.bytes() + self.partials.bytes()
    }

    fn compile(&mut self, device: &Device, operands: &Operands) -> Result<()> {
        let variant = self.variant(operands);
        if self.kernels.contains_key(&variant) {
            return Ok(());
        }
        let module = device.module(&variant.request())?;
        let kernels = Kernels {
            segmented: module.kernel(c"segmented")?,
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
        self.arrivals.used_on(stream);
        self.partials.used_on(stream);
        if let Some(order) = &self.order {
            order.used_on(stream);
        }
        // Without a list, nothing of it is read.
        let (list, cut_rows, slot_rows, cut, slots, count) = match &self.segments {
            Some(s) => {
                s.used_on(stream);
                let (slots, cut) = (s.slot_rows.len(), s.cut_rows.len() / 3);
                let addresses = (s.list.address(), s.cut_rows.address(), s.slot_rows.address());
                (addresses.0, addresses.1, addresses.2, cut as u64, slots as u64, s.count)
            }
            None => (0, 0, 0, 0, 0, self.rows),
        };
        let arguments = Arguments {
            offsets: o.offsets,
            indices: o.indices,
            values: o.values,
            segments: list,
            order: self.order.as_ref().map_or(0, DeviceBuffer::address),
            cut_rows,
            slot_rows,
            arrivals: self.arrivals.address(),
            slots,
            b: o.b,
            c: o.c,
            partials: self.partials.address(),
            count: count as u64,
            nonzeros: o.nnz as u64,
            columns: o.columns as u64,
            ldb: o.ldb as u64,
            ldc: o.ldc as u64,
            alpha: o.alpha,
            beta: o.beta,
        };
        let groups = u64::from(config.block / config.group());
        let grid = (arguments.count.div_ceil(groups), arguments.columns.div_ceil(config.panel()));
        // SAFETY: `Arguments` is the parameter of both kernels; the schedule covers the
        // matrix, and the operands are the caller's promise.
        unsafe {
            if config.reduction == Reduction::Atomic {
                kernels.prepare.launch(stream, (cut, 1), config.block, &arguments)?;
            }
            kernels.segmented.launch(stream, grid, config.block, &arguments)?;
        }
        Ok(())
    }
}
