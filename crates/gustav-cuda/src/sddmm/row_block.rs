//! `row-block`: neighbouring rows with the same or nearly the same columns share every load of Y.
//! See `kernels/sddmm/row_block.cu`.

use gustav_core::{DType, IndexType, Problem, Result};

use super::lanes::Lanes;
use crate::device::{Device, Stream};
use crate::jit::Request;
use crate::launch::Kernel;
use crate::matrix::HeldPattern;
use crate::product::check_config;
use crate::product::sampled::{Method, Operands, only_sddmm};
use crate::schedule::RowBlocks;
use crate::schedule::pattern::Pattern;

/// How blocks of rows are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Config {
    /// Rows of a block: 2 to 4.
    pub rows: u32,
    /// Parts of a block, each of them a group's.
    pub parts: u32,
    /// Entries of a block whose rows of Y are loaded at once: 1, 2 or 4. Groups of fewer lanes have
    /// as many.
    pub unroll: u32,
    /// Threads of a CTA: whole warps.
    pub block: u32,
    /// Threads of a multiprocessor that the registers of a kernel must allow.
    pub resident: u32,
}

/// Any SDDMM.
pub(super) fn supports(problem: &Problem) -> Result<()> {
    only_sddmm(problem, "row-block")
}

/// Every configuration that is worth timing.
pub(super) fn configs(problem: &Problem) -> Vec<Config> {
    let of = |rows| [1, 2, 4].map(|parts| Config::new(problem, rows, parts));
    [2, 3, 4].into_iter().flat_map(of).collect()
}

// Vectors of a lane at most.
const MOST_TILES: u32 = 2;

impl Config {
    /// Blocks of `rows` rows, each in `parts` parts.
    pub(super) fn new(problem: &Problem, rows: u32, parts: u32) -> Self {
        let long = problem.columns * problem.dtype.bytes() > 512;
        Config { rows, parts, unroll: 4, block: 128, resident: if long { 512 } else { 768 } }
    }

    fn check(&self) -> Result<()> {
        let fits = (2..=4).contains(&self.rows)
            && (1..=64).contains(&self.parts)
            && [1, 2, 4].contains(&self.unroll)
            && (32..=1024).contains(&self.block)
            && self.block.is_multiple_of(32)
            && (self.block..=2048).contains(&self.resident);
        check_config(
            "config of row-block",
            self,
            fits,
            "blocks of 2 to 4 rows in 1 to 64 parts, 1, 2 or 4 entries at once, whole warps of at most 1024 threads, \
             and as many resident threads at least, 2048 at most",
        )
    }
}

/// What a kernel is compiled for.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Variant {
    pub(crate) config: Config,
    pub(crate) dtype: DType,
    pub(crate) offset: IndexType,
    pub(crate) word: IndexType,
    pub(crate) position: IndexType,
    pub(crate) lanes: Lanes,
}

impl Variant {
    /// The source with its parameters.
    pub(crate) fn request(&self) -> Request {
        let Config { rows, parts, unroll, block, resident } = self.config;
        let request = request!("sddmm/row_block.cu")
            .with_block::<Arguments>()
            .with("VALUE", self.dtype)
            .with("OFFSET", self.offset)
            .with("WORD", self.word)
            .with("POSITION", self.position);
        self.lanes
            .describe(request)
            .with("ROWS", rows)
            .with("PARTS", parts)
            .with("UNROLL", unroll.min(self.lanes.lanes))
            .with("BLOCK", block)
            .with("RESIDENT", resident)
    }
}

parameter_block! {
    struct Arguments {
        offsets: *const Offset,
        entries: *const Word,
        positions: *const Position,
        counts: *const u32,
        x: *const Value,
        y: *const Value,
        /// A factor of every nonzero, or null.
        factors: *const Value,
        values: *mut Value,
        rows: u64,
        depth: u64,
        ldx: u64,
        ldy: u64,
        alpha: u64,
        beta: u64,
    }
}

/// The blocks on the device, and the compiled kernel.
pub(super) struct Prepared {
    config: Config,
    /// Of a group: entries of a chunk.
    lanes: u32,
    blocks: RowBlocks,
    kernel: Option<(Variant, Kernel<Arguments>)>,
}

impl Prepared {
    /// Merges the rows of every block on the device.
    pub(super) fn new(
        pattern: &Pattern<'_>,
        held: &HeldPattern,
        problem: &Problem,
        config: Config,
    ) -> Result<Self> {
        config.check()?;
        let packed = Operands::packed(held, problem);
        let Lanes { lanes, .. } = Lanes::new(&packed, MOST_TILES);
        let blocks = RowBlocks::new(pattern, problem, config.rows, lanes)?;
        let mut prepared = Prepared { config, lanes, blocks, kernel: None };
        if held.nnz > 0 {
            prepared.compile(pattern.device(), &packed)?;
        }
        Ok(prepared)
    }
}

impl Method for Prepared {
    fn bytes(&self) -> usize {
        self.blocks.bytes()
    }

    fn compile(&mut self, device: &Device, o: &Operands) -> Result<()> {
        let variant = Variant {
            config: self.config,
            dtype: o.dtype,
            offset: o.offset_type,
            word: self.blocks.word,
            position: self.blocks.position,
            lanes: Lanes::of(o, self.lanes, MOST_TILES),
        };
        if self.kernel.as_ref().is_none_or(|(compiled, _)| *compiled != variant) {
            let kernel = device.kernel(&variant, c"row_block", || variant.request())?;
            self.kernel = Some((variant, kernel));
        }
        Ok(())
    }

    unsafe fn launch(&mut self, device: &Device, stream: &Stream, o: &Operands) -> Result<()> {
        self.compile(device, o)?;
        let Some((variant, kernel)) = &self.kernel else { return Ok(()) };
        self.blocks.used_on(stream);
        let arguments = Arguments {
            offsets: o.offsets,
            entries: self.blocks.entries.address(),
            positions: self.blocks.positions.address(),
            counts: self.blocks.counts.address(),
            x: o.x,
            y: o.y,
            factors: o.factors,
            values: o.values,
            rows: o.rows as u64,
            depth: o.depth as u64,
            ldx: o.ldx as u64,
            ldy: o.ldy as u64,
            alpha: o.alpha,
            beta: o.beta,
        };
        let Config { rows, parts, block, .. } = self.config;
        let units = arguments.rows.div_ceil(rows.into()) * u64::from(parts);
        let ctas = units.div_ceil((block / variant.lanes.lanes).into());
        // SAFETY: the operands are the caller's promise; the blocks cover the pattern, and the
        // device's stream made them before this plan's first execution.
        unsafe { kernel.launch_dependent(stream, (ctas, 1), block, 0, &arguments) }
    }
}
