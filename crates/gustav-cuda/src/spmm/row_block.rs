//! `row-block`: neighbouring rows with the same or nearly the same columns share every load of B.
//! See `kernels/spmm/row_block.cu`.

mod config;

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use gustav_core::{DType, IndexType, Problem, Result, Semiring};
use gustav_plan::heuristics::cuda_spmm;

use super::{auto, catalog};
use crate::device::{Device, Stream};
use crate::jit::{Request, source};
use crate::launch::Kernel;
use crate::product::method::Method;
use crate::product::operands::Operands;
use crate::product::tile::widest_for;
use crate::schedule::RowBlocks;
use crate::schedule::pattern::Pattern;

pub use config::Config;

/// Supports any SpMM.
pub(super) fn supports(problem: &Problem) -> Result<()> {
    crate::product::only_spmm(problem, "row-block")
}

pub(super) const ANY_LAYOUT: bool = false;

/// The fastest configuration by the cost model.
pub(super) fn choose(pattern: &Pattern<'_>, problem: &Problem) -> Result<(Config, String)> {
    let tunings = cuda_spmm::row_blocks(problem);
    auto::fastest_of(pattern, problem, tunings, |config| match config {
        catalog::Config::RowBlock(config) => Some(config),
        _ => None,
    })
}

/// The configurations to time for `problem`.
pub(super) fn configs(problem: &Problem) -> Vec<Config> {
    cuda_spmm::row_blocks(problem).iter().map(|tuning| Config::new(problem, tuning)).collect()
}

/// The blocks on the device and the kernels compiled so far.
pub(super) struct Prepared {
    config: Config,
    blocks: RowBlocks,
    kernels: HashMap<Variant, Kernel<BlockOperands>>,
}

/// The types of kernels that read blocks of rows.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct BlockTypes {
    pub(crate) dtype: DType,
    pub(crate) out: DType,
    pub(crate) index: IndexType,
    pub(crate) offset: IndexType,
    pub(crate) word: IndexType,
    pub(crate) position: IndexType,
    /// A type for the offset of a row of B together with the rows of an entry.
    pub(crate) stride: IndexType,
    pub(crate) steps: u8,
}

impl BlockTypes {
    /// For offsets of rows of B in multiples of `unit`, such as bytes.
    pub(super) fn new(blocks: &RowBlocks, o: &Operands, unit: usize) -> Self {
        BlockTypes {
            dtype: o.dtype,
            out: o.dtype_c,
            index: o.index_type,
            offset: o.offset_type,
            word: blocks.word,
            position: blocks.position,
            stride: source::stride(o.ldb, unit, o.inner),
            steps: o.steps,
        }
    }

    /// `request` with the types of arrays.
    pub(super) fn describe(&self, request: Request) -> Request {
        request
            .with("VALUE", self.dtype)
            .with("OUT", self.out)
            .with("INDEX", self.index)
            .with("OFFSET", self.offset)
            .with("WORD", self.word)
            .with("POSITION", self.position)
    }
}

/// The parameters that a kernel is compiled for, besides the plan's problem.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Variant {
    pub(crate) config: Config,
    pub(crate) types: BlockTypes,
    pub(crate) semiring: Semiring,
    pub(crate) whole: u32,
}

parameter_block! {
    /// The parameter of the kernels that read blocks of rows.
    pub(super) struct BlockOperands {
        offsets: *const Offset,
        values: *const Value,
        entries: *const Word,
        positions: *const Position,
        counts: *const u32,
        b: *const Value,
        c: *mut Out,
        pub rows: u64,
        pub columns: u64,
        ldb: u64,
        ldc: u64,
        alpha: u64,
        beta: u64,
        bias: *const Accum,
    }
}

impl BlockOperands {
    pub fn new(blocks: &RowBlocks, o: &Operands) -> Self {
        BlockOperands {
            offsets: o.offsets,
            values: o.values,
            entries: blocks.entries.address(),
            positions: blocks.positions.address(),
            counts: blocks.counts.address(),
            b: o.b,
            c: o.c,
            rows: o.rows as u64,
            columns: o.columns as u64,
            ldb: o.ldb as u64,
            ldc: o.ldc as u64,
            alpha: o.alpha,
            beta: o.beta,
            bias: o.bias,
        }
    }
}

impl Variant {
    /// The source with its parameters.
    pub(crate) fn request(&self) -> Request {
        let c = &self.config;
        let request = request!("spmm/row_block.cu").with_block::<BlockOperands>();
        self.types
            .describe(request)
            .with("SEMIRING", source::semiring(self.semiring))
            .with("STRIDE", self.types.stride)
            .with("BLOCK", c.block)
            .with("RESIDENT", c.resident)
            .with("ROWS", c.rows)
            .with("VECTOR", c.vector)
            .with("LANES", c.lanes)
            .with("TILES", c.tiles)
            .with("SUBGROUPS", c.subgroups)
            .with("UNROLL", c.unroll)
            .with("WHOLE", self.whole)
            .with("STEPS", self.types.steps)
    }
}

impl Prepared {
    /// Merges the rows of every block on the device.
    pub(super) fn new(pattern: &Pattern<'_>, problem: &Problem, config: Config) -> Result<Self> {
        config.check(problem)?;
        let blocks = RowBlocks::new(pattern, problem, config.rows, config.lanes)?;
        Ok(Prepared { config, blocks, kernels: HashMap::new() })
    }

    fn variant(&self, o: &Operands) -> Variant {
        let config = self.config.narrowed(widest_for(o));
        Variant {
            config,
            types: BlockTypes::new(&self.blocks, o, 1),
            semiring: o.semiring,
            whole: config.tile().whole(config.vector, o.columns),
        }
    }
}

impl Method for Prepared {
    fn bytes(&self) -> usize {
        self.blocks.bytes()
    }

    fn compile(&mut self, device: &Device, operands: &Operands) -> Result<()> {
        let variant = self.variant(operands);
        if let Entry::Vacant(vacant) = self.kernels.entry(variant) {
            vacant.insert(device.module(&variant.request())?.kernel(c"row_block")?);
        }
        Ok(())
    }

    unsafe fn launch(&mut self, device: &Device, stream: &Stream, o: &Operands) -> Result<()> {
        self.compile(device, o)?;
        let variant = self.variant(o);
        let config = variant.config;
        self.blocks.used_on(stream);
        let arguments = BlockOperands::new(&self.blocks, o);
        let blocks = arguments.rows.div_ceil(u64::from(config.rows));
        let groups = u64::from(config.block / config.group());
        let grid = (blocks.div_ceil(groups), arguments.columns.div_ceil(config.panel()));
        // SAFETY: the blocks cover the matrix, and the
        // operands are the caller's promise.
        unsafe {
            self.kernels[&variant].launch_dependent(stream, grid, config.block, 0, &arguments)
        }
    }
}
