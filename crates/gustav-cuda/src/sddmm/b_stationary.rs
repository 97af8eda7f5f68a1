//! `b-stationary`: tiles of Y's rows stay in the L1 cache of each multiprocessor, and rows of X
//! stream past. See `kernels/sddmm/b_stationary.cu`.

use gustav_core::{Problem, Result};

use super::lanes::Lanes;
use super::nonzeros::{List, MOST_TILES, Types};
use crate::device::{Device, Stream};
use crate::jit::Request;
use crate::launch::Kernel;
use crate::matrix::HeldPattern;
use crate::product::check_config;
use crate::product::sampled::{Method, Operands, only_sddmm};
use crate::product::tile::accumulator;
use crate::schedule::pattern::Pattern;
use crate::schedule::{Cutting, SegmentNonzeros, Target};

/// The tiles, and how their nonzeros are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Config {
    /// KiB of Y in a tile; one row at least.
    pub tile_kib: u32,
    /// Nonzeros of a group whose rows of Y are loaded at once: a power of two up to 8.
    pub chunk: u32,
    /// Threads of a multiprocessor, which are one CTA: whole warps. Fewer where shared memory lacks
    /// room for their batches.
    pub block: u32,
}

/// Any SDDMM.
pub(super) fn supports(problem: &Problem) -> Result<()> {
    only_sddmm(problem, "b-stationary")
}

/// Every configuration that is worth timing.
pub(super) fn configs(problem: &Problem) -> Vec<Config> {
    [64, 96, 128, 160].map(|tile_kib| Config { tile_kib, ..Config::new(problem) }).into()
}

// Nonzeros of a segment at most.
const LONGEST: u32 = 1024;
// Shared memory that a kernel may declare.
const DECLARED: usize = 48 << 10;

impl Config {
    /// For rows of Y of so many columns, as `nonzero-split`.
    pub(super) fn new(problem: &Problem) -> Self {
        let long = problem.columns * problem.dtype.bytes() > 512;
        let (chunk, block) = if long { (4, 640) } else { (8, 768) };
        Config { tile_kib: 128, chunk, block }
    }

    /// Rows of Y in a tile.
    pub(super) fn rows(&self, problem: &Problem) -> u64 {
        let row = (problem.columns * problem.dtype.bytes()).max(1) as u64;
        (u64::from(self.tile_kib) * 1024 / row).max(1)
    }

    fn check(&self) -> Result<()> {
        let fits = self.chunk.is_power_of_two()
            && self.chunk <= 8
            && (1..=1024).contains(&self.tile_kib)
            && (32..=1024).contains(&self.block)
            && self.block.is_multiple_of(32);
        check_config(
            "config of b-stationary",
            self,
            fits,
            "tiles of 1 to 1024 KiB, chunks of 1, 2, 4 or 8 nonzeros, and whole warps of at most 1024 threads",
        )
    }
}

/// What a kernel is compiled for.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Variant {
    pub(crate) config: Config,
    pub(crate) types: Types,
    pub(crate) lanes: Lanes,
}

impl Variant {
    /// Nonzeros of a batch.
    fn batch(&self) -> u32 {
        (2 * self.lanes.lanes).clamp(self.config.chunk, 32)
    }

    /// Threads of a CTA: as many as there is shared memory for.
    fn block(&self) -> u32 {
        let Types { dtype, index, row, position } = self.types;
        let entry = 2 * (index.bytes() + row.bytes() + position.bytes());
        let group = self.batch() as usize * (entry + accumulator(dtype).bytes()) + 32;
        let threads = DECLARED / group * self.lanes.lanes as usize;
        self.config.block.min(threads as u32 / 32 * 32)
    }

    /// The source with its parameters.
    pub(crate) fn request(&self) -> Request {
        let request = request!("sddmm/b_stationary.cu").with_block::<List>();
        self.lanes
            .describe(self.types.describe(request))
            .with("CHUNK", self.config.chunk)
            .with("BATCH", self.batch())
            .with("BLOCK", self.block())
            .with("RESIDENT", self.block())
    }
}

/// The nonzeros tile after tile on the device, and the compiled kernel.
pub(super) struct Prepared {
    config: Config,
    nonzeros: SegmentNonzeros,
    multiprocessors: u64,
    kernel: Option<(Variant, Kernel<List>)>,
}

impl Prepared {
    /// Cuts the rows at the tiles and lists their nonzeros on the device.
    pub(super) fn new(
        pattern: &Pattern<'_>,
        held: &HeldPattern,
        problem: &Problem,
        config: Config,
    ) -> Result<Self> {
        config.check()?;
        let cutting = Cutting { most: LONGEST, by_class: false, target: Target::Row };
        let tiles = cutting.list(pattern, problem, config.rows(problem))?;
        let nonzeros = SegmentNonzeros::new(pattern, problem, &tiles.segments)?;
        let multiprocessors = pattern.device().profile().multiprocessors as u64;
        let mut prepared = Prepared { config, nonzeros, multiprocessors, kernel: None };
        if held.nnz > 0 {
            prepared.compile(pattern.device(), &Operands::packed(held, problem))?;
        }
        Ok(prepared)
    }
}

impl Method for Prepared {
    fn bytes(&self) -> usize {
        self.nonzeros.bytes()
    }

    fn compile(&mut self, device: &Device, o: &Operands) -> Result<()> {
        let SegmentNonzeros { row, position, .. } = self.nonzeros;
        let types = Types { dtype: o.dtype, index: o.index_type, row, position };
        let variant = Variant { config: self.config, types, lanes: Lanes::new(o, MOST_TILES) };
        if self.kernel.as_ref().is_none_or(|(compiled, _)| *compiled != variant) {
            let kernel = device.kernel(&variant, c"b_stationary", || variant.request())?;
            self.kernel = Some((variant, kernel));
        }
        Ok(())
    }

    unsafe fn launch(&mut self, device: &Device, stream: &Stream, o: &Operands) -> Result<()> {
        self.compile(device, o)?;
        let Some((variant, kernel)) = &self.kernel else { return Ok(()) };
        self.nonzeros.used_on(stream);
        let SegmentNonzeros { rows, columns, positions, .. } = &self.nonzeros;
        let arguments = List::new(o, columns.address(), rows.address(), positions.address());
        // SAFETY: the operands are the caller's promise; the list holds every nonzero of the
        // pattern, and the device's stream made it before this plan's first execution.
        unsafe {
            kernel.launch_dependent(
                stream,
                (self.multiprocessors, 1),
                variant.block(),
                0,
                &arguments,
            )
        }
    }
}
