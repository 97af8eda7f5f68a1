//! `b-stationary`: a tile of B stays in the shared memory of each multiprocessor, and the pieces of A's
//! rows that lie in it stream past. Ours. See `kernels/spmm/b_stationary.cu`.

mod config;
mod dealing;

use std::collections::HashMap;

use gustav_core::{Problem, Result};
use gustav_plan::heuristics::cuda_spmm::{self, Way};
use gustav_plan::{Algorithm, TileReuse};

use super::catalog::Method;
use super::group::{self, Meeting, Types};
use super::operands::Operands;
use super::pattern::Pattern;
use super::tile::{accumulator, widest_for};
use super::unsupported;
use crate::jit::Request;
use crate::kernel::{GRID_Y, Kernel};
use crate::schedule::{Cutting, Segments, Target};
use crate::stream::Stream;
use crate::{Device, DeviceBuffer};

pub use config::Config;

// Devices that copy to shared memory by an engine.
const HAS_COPY_ENGINE: (i32, i32) = (9, 0);

/// Everything that SpMM asks for.
pub(super) fn supports(problem: &Problem) -> Result<()> {
    super::only_spmm(problem, "b-stationary")
}

pub(super) const ANY_LAYOUT: bool = false;

/// By the number of tiles.
pub(super) fn choose(pattern: &Pattern<'_>, problem: &Problem) -> Result<(Config, String)> {
    let one = Config::new(problem, &Way::of(Algorithm::BStationary));
    let rows = one.rows(problem, pattern.device().profile().shared_bytes_per_cta)?;
    let tiles = (problem.inner() as u64).div_ceil(rows);
    let way = cuda_spmm::b_stationary(problem, tiles, &pattern.device().planner_profile());
    let reason = format!("{tiles} tiles of B of {} columns in shared memory", one.panel());
    Ok((Config::new(problem, &way), reason))
}

/// How its tiles would cut the rows, of a sample of them; in no pieces worth a tile where no copy engine
/// brings it.
pub(super) fn reuse(pattern: &Pattern<'_>, problem: &Problem) -> Result<TileReuse> {
    let profile = pattern.device().profile();
    let config = Config::new(problem, &Way::of(Algorithm::BStationary));
    match config.rows(problem, profile.shared_bytes_per_cta) {
        Ok(rows) if profile.compute_capability >= HAS_COPY_ENGINE => {
            pattern.tile_reuse(problem.inner(), rows)
        }
        _ => Ok(TileReuse { per_piece: 0.0, tiles: 0 }),
    }
}

pub(super) fn configs(problem: &Problem) -> Vec<Config> {
    Config::candidates(problem)
}

/// The pieces on the device, how they are dealt, and the kernels compiled so far.
pub(super) struct Prepared {
    config: Config,
    /// Rows of B in a tile.
    rows: u64,
    pieces: Segments,
    /// Four words a share of a tile.
    items: DeviceBuffer<u64>,
    begins: DeviceBuffer<u32>,
    meeting: Meeting,
    /// Of each cut row, zero between executions.
    sums: DeviceBuffer<u64>,
    /// Whether an execution ended before they were zero again.
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
        pieces: *const u64,
        items: *const Item,
        /// The first item of each CTA, and one past the last.
        begins: *const u32,
        /// Row, first slot, number of slots.
        cut_rows: *const u64,
        /// Place in cut_rows of each slot.
        slot_rows: *const u32,
        /// Of each cut row, when it is the target.
        sums: *mut Accum,
        /// Rows of B.
        inner: u64,
        /// Rows that are cut.
        cut: u64,
        /// The first of this launch.
        panel: u64,
        /// Of a tile.
        rows: u32,
    }
}

impl Variant {
    /// The source with its parameters.
    pub(crate) fn request(&self) -> Request {
        let c = &self.config;
        let source = include_str!("../../kernels/spmm/b_stationary.cu");
        let request = self
            .types
            .describe(Request::new("spmm/b_stationary.cu", source).with_block::<Arguments>());
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
    /// Cuts the rows at the tiles and deals their pieces.
    pub(super) fn new(pattern: &Pattern<'_>, problem: &Problem, config: Config) -> Result<Self> {
        let device = pattern.device();
        config.check(problem)?;
        let rows = config.rows(problem, device.profile().shared_bytes_per_cta)?;
        let target = config.target(problem);
        let cutting = Cutting { most: config.longest, kept: true, target };
        let pieces = cutting.list(pattern, problem, rows)?;
        let ctas = device.profile().multiprocessors;
        let (dealt, firsts) = dealing::deal(&pieces.counts, config.longest, ctas)?;
        let dealt: Vec<u64> = dealt.iter().flat_map(|item| item.words()).collect();
        let mut items = DeviceBuffer::queued(device, dealt.len(), "shares of tiles")?;
        items.write(&dealt)?;
        let mut begins = DeviceBuffer::queued(device, firsts.len(), "shares of tiles")?;
        begins.write(&firsts)?;
        let panels = group::most_panels(problem, |vector| {
            config.narrowed(problem.dtype, vector, problem.columns).panel()
        });
        let meeting = Meeting::new(device, problem, pieces.segments.slot_rows.len(), panels)?;
        let pieces = pieces.segments;
        let cut = if target == Target::CutRow { pieces.cut_rows.len() / 3 } else { 0 };
        let bytes = accumulator(problem.dtype).bytes();
        let words = cut.saturating_mul(problem.columns).saturating_mul(bytes).div_ceil(8);
        let mut sums = DeviceBuffer::queued(device, words, "sums of cut rows")?;
        sums.fill(0, device.stream())?;
        let kernels = HashMap::new();
        let unfinished = false;
        Ok(Prepared {
            config,
            rows,
            pieces,
            items,
            begins,
            meeting,
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
        let dealt = self.items.bytes() + self.begins.bytes();
        self.pieces.bytes() + dealt + self.meeting.bytes() + self.sums.bytes()
    }

    fn compile(&mut self, device: &Device, operands: &Operands) -> Result<()> {
        let variant = self.variant(operands);
        if self.kernels.contains_key(&variant) {
            return Ok(());
        }
        let module = device.module(&variant.request())?;
        let multiply = module.kernel(c"b_stationary")?;
        device.bind()?;
        // The same for every tile, as other plans may launch the same kernel.
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
        self.meeting.used_on(stream);
        self.pieces.used_on(stream);
        self.items.used_on(stream);
        self.begins.used_on(stream);
        self.sums.used_on(stream);
        let cut = self.pieces.cut_rows.len() as u64 / 3;
        let ctas = self.begins.len() as u64 - 1;
        let panels = (o.columns as u64).div_ceil(config.panel());
        let shared = config.shared_bytes(o.dtype, self.rows);
        let mut arguments = Arguments {
            operands: self.meeting.arguments(o),
            pieces: self.pieces.list.address(),
            items: self.items.address(),
            begins: self.begins.address(),
            cut_rows: self.pieces.cut_rows.address(),
            slot_rows: self.pieces.slot_rows.address(),
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
        // SAFETY: the pieces cover the matrix, and the
        // operands are the caller's promise. `prepare`, `finish` and a `multiply` without `prepare` wait
        // before they touch them; after `prepare`, which writes C alone, `multiply` waits before it adds to C.
        unsafe {
            let prepares = self.target == Target::Row && cut > 0;
            if prepares {
                prepare.launch_dependent(stream, of_cut_rows, config.block, 0, &arguments)?;
            }
            while arguments.panel < panels {
                let grid = (ctas, GRID_Y.min(panels - arguments.panel));
                // Of those that add to C, only one after `prepare` knows that B is there.
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
