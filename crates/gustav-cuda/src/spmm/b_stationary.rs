//! `b-stationary`: a tile of B stays in the shared memory of each multiprocessor, and the segments
//! of A's rows in that tile are streamed. See `kernels/spmm/b_stationary.cu`.

mod config;
mod partition;

use std::collections::HashMap;

use gustav_core::{Problem, Result};
use gustav_plan::heuristics::cuda_spmm;

use super::group::{self, CarryOutWorkspace, Types};
use super::{auto, catalog};
use crate::device::{Device, DeviceBuffer, Stream};
use crate::jit::Request;
use crate::launch::{GRID_Y, Kernel};
use crate::product::method::Method;
use crate::product::operands::Operands;
use crate::product::tile::{accumulator, widest_for};
use crate::product::unsupported;
use crate::schedule::pattern::Pattern;
use crate::schedule::{Cutting, Segments, Target, TileSegments};

pub use config::Config;

// The first compute capability with bulk copies to shared memory.
const HAS_COPY_ENGINE: (i32, i32) = (9, 0);

/// Supports any SpMM.
pub(super) fn supports(problem: &Problem) -> Result<()> {
    crate::product::only_spmm(problem, "b-stationary")
}

pub(super) const ANY_LAYOUT: bool = false;

/// The fastest configuration by the cost model.
pub(super) fn choose(pattern: &Pattern<'_>, problem: &Problem) -> Result<(Config, String)> {
    auto::fastest_of(pattern, problem, cuda_spmm::b_stationary(), |config| match config {
        catalog::Config::BStationary(config) => Some(config),
        _ => None,
    })
}

/// Whether the device copies tiles to shared memory in bulk.
pub(super) fn copies_tiles(device: &Device) -> bool {
    device.profile().compute_capability >= HAS_COPY_ENGINE
}

pub(super) fn configs(problem: &Problem) -> Vec<Config> {
    cuda_spmm::b_stationary().iter().map(|tuning| Config::new(problem, tuning)).collect()
}

/// The segments on the device, their static partition, and the kernels compiled so far.
pub(super) struct Prepared {
    config: Config,
    /// Rows of B in a tile.
    rows: u64,
    segments: Segments,
    /// Four words per partition.
    partitions: DeviceBuffer<u64>,
    first_partitions: DeviceBuffer<u32>,
    carry_outs: CarryOutWorkspace,
    /// A sum for each cut row, zero between executions.
    sums: DeviceBuffer<u64>,
    /// Whether an execution failed before they were zero again.
    unfinished: bool,
    target: Target,
    kernels: HashMap<Variant, Kernels>,
}

/// What a kernel is compiled for beyond the plan's problem.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Variant {
    pub(crate) config: Config,
    pub(crate) types: Types,
    pub(crate) target: Target,
}

struct Kernels {
    multiply: Kernel<Arguments>,
    prepare: Kernel<Arguments>,
    finish: Kernel<Arguments>,
}

parameter_block! {
    struct Arguments {
        operands: group::Operands,
        segments: *const u64,
        partitions: *const TilePartition,
        /// The first partition of each CTA, and one past the last.
        first_partitions: *const u32,
        cut_rows: *const u64,
        /// The cut row of each slot, two words.
        slot_rows: *const u64,
        /// For each cut row, if that is the target.
        sums: *mut Accum,
        /// Rows of B.
        inner: u64,
        /// Number of cut rows.
        cut: u64,
        /// First panel of this launch.
        panel: u64,
        /// Rows of B in a tile.
        rows: u32,
    }
}

impl Variant {
    /// The source with its parameters.
    pub(crate) fn request(&self) -> Request {
        let c = &self.config;
        let request =
            self.types.describe(request!("spmm/b_stationary.cu").with_block::<Arguments>());
        request
            .with("BLOCK", c.block)
            .with("RESIDENT", c.block)
            .with("VECTOR", c.vector)
            .with("LANES", c.lanes)
            .with("TILES", c.tiles)
            .with("SUBGROUPS", 1)
            .with("CHUNK", 4)
            .with("BATCH", c.batch())
            .with("STAGES", c.stages)
            .with("TARGET", self.target as u32)
    }
}

impl Prepared {
    /// Cuts the rows at the tiles and partitions the segments.
    pub(super) fn new(pattern: &Pattern<'_>, problem: &Problem, config: Config) -> Result<Self> {
        let device = pattern.device();
        config.check(problem)?;
        let rows = config.rows(problem, device.profile().shared_bytes_per_cta)?;
        let target = config.target(problem);
        let cutting = Cutting { most: config.longest, by_class: true, target };
        let TileSegments { segments, counts } = cutting.list(pattern, problem, rows)?;
        let ctas = device.profile().multiprocessors;
        let (parts, firsts) = partition::partition(&counts, config.longest, ctas)?;
        let words: Vec<u64> = parts.iter().flat_map(|partition| partition.words()).collect();
        let mut partitions = DeviceBuffer::queued(device, words.len(), "partitions of tiles")?;
        partitions.write(&words)?;
        let mut first_partitions =
            DeviceBuffer::queued(device, firsts.len(), "partitions of tiles")?;
        first_partitions.write(&firsts)?;
        let panel = |vector| config.narrowed(problem.dtype, vector, problem.columns).panel();
        let carry_outs = CarryOutWorkspace::new(device, problem, segments.slots(), panel)?;
        let cut = if target == Target::CutRow { segments.cut_rows.len() } else { 0 };
        let bytes = accumulator(problem.dtype).bytes();
        let words = cut.saturating_mul(problem.columns).saturating_mul(bytes).div_ceil(8);
        let mut sums = DeviceBuffer::queued(device, words, "sums of cut rows")?;
        sums.fill(0, device.stream())?;
        let kernels = HashMap::new();
        let unfinished = false;
        Ok(Prepared {
            config,
            rows,
            segments,
            partitions,
            first_partitions,
            carry_outs,
            sums,
            unfinished,
            target,
            kernels,
        })
    }

    fn variant(&self, o: &Operands) -> Variant {
        let config = self.config.narrowed(o.dtype, widest_for(o), o.columns);
        Variant { config, types: Types::new(o, config.tile(), config.vector), target: self.target }
    }
}

impl Method for Prepared {
    fn bytes(&self) -> usize {
        let partitions = self.partitions.bytes() + self.first_partitions.bytes();
        self.segments.bytes() + partitions + self.carry_outs.bytes() + self.sums.bytes()
    }

    fn compile(&mut self, device: &Device, operands: &Operands) -> Result<()> {
        let variant = self.variant(operands);
        if self.kernels.contains_key(&variant) {
            return Ok(());
        }
        let module = device.module(&variant.request())?;
        let multiply = module.kernel(c"b_stationary")?;
        device.bind()?;
        // The most that any plan needs, because other plans may launch the same kernel.
        multiply.allow_shared(Config::shared_limit(device.profile().shared_bytes_per_cta))?;
        let kernels = Kernels {
            multiply,
            prepare: module.kernel(c"b_stationary_prepare")?,
            finish: module.kernel(c"b_stationary_finish")?,
        };
        self.kernels.insert(variant, kernels);
        Ok(())
    }

    unsafe fn launch(&mut self, device: &Device, stream: &Stream, o: &Operands) -> Result<()> {
        self.compile(device, o)?;
        let variant = self.variant(o);
        let (kernels, config) = (&self.kernels[&variant], variant.config);
        self.carry_outs.used_on(stream);
        self.segments.used_on(stream);
        self.partitions.used_on(stream);
        self.first_partitions.used_on(stream);
        self.sums.used_on(stream);
        let cut = self.segments.cut_rows.len() as u64;
        let ctas = self.first_partitions.len() as u64 - 1;
        let panels = (o.columns as u64).div_ceil(config.panel());
        let shared = config.shared_bytes(o.dtype, self.rows);
        let mut arguments = Arguments {
            operands: self.carry_outs.arguments(o),
            segments: self.segments.list.address(),
            partitions: self.partitions.address(),
            first_partitions: self.first_partitions.address(),
            cut_rows: self.segments.cut_rows.address(),
            slot_rows: self.segments.slot_rows.address(),
            sums: self.sums.address(),
            inner: o.inner as u64,
            cut,
            panel: 0,
            rows: self.rows as u32,
        };
        let vectors = cut * (o.columns as u64 / u64::from(config.vector));
        let of_cut_rows = (vectors.div_ceil(config.block.into()), 1);
        let Kernels { multiply, prepare, finish } = kernels;
        if self.unfinished {
            self.sums.fill(0, stream)?;
        }
        self.unfinished = self.target == Target::CutRow;
        // SAFETY: the segments cover the matrix, and the operands are the caller's promise.
        // `prepare`, `finish` and a `multiply` without `prepare` wait before they touch them; after
        // `prepare`, which writes C alone, `multiply` waits before it adds to C.
        unsafe {
            let prepares = self.target == Target::Row && cut > 0;
            if prepares {
                prepare.launch_dependent(stream, of_cut_rows, config.block, 0, &arguments)?;
            }
            while arguments.panel < panels {
                let grid = (ctas, GRID_Y.min(panels - arguments.panel));
                // Among launches that add to C, only one after `prepare` may read B without
                // waiting.
                let waits = self.target != Target::Row || prepares && arguments.panel == 0;
                let block = config.block;
                multiply.launch_when(waits, stream, grid, block, shared, &arguments)?;
                arguments.panel += GRID_Y;
            }
            if self.target == Target::CutRow {
                finish.launch_dependent(stream, of_cut_rows, config.block, 0, &arguments)?;
            }
        }
        self.unfinished = false;
        Ok(())
    }
}
