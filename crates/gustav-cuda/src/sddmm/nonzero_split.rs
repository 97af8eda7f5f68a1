//! `nonzero-split`: equal numbers of nonzeros, whatever the lengths of rows. See
//! `kernels/sddmm/nonzero_split.cu`.

use gustav_core::{DType, IndexType, Problem, Result};

use crate::device::{Device, DeviceBuffer, Stream};
use crate::jit::Request;
use crate::launch::Kernel;
use crate::matrix::HeldPattern;
use crate::product::check_config;
use crate::product::sampled::{Method, Operands, only_sddmm};
use crate::product::tile::widest;

/// How nonzeros are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Config {
    /// Nonzeros of a group whose rows of Y are loaded at once: a power of two up to 8.
    pub chunk: u32,
    /// Nonzeros of a group, a multiple of `chunk`.
    pub nonzeros: u32,
    /// Threads of a CTA: a power of two from 32 to 1024.
    pub block: u32,
    /// Threads of a multiprocessor that the registers of a kernel must allow.
    pub resident: u32,
}

/// Any SDDMM.
pub(super) fn supports(problem: &Problem) -> Result<()> {
    only_sddmm(problem, "nonzero-split")
}

/// Every configuration that is worth timing.
pub(super) fn configs(_: &Problem) -> Vec<Config> {
    let shapes = [(4, 16, 128, 1024), (4, 32, 128, 1024), (4, 32, 256, 512), (8, 32, 256, 512)];
    let config = |(chunk, nonzeros, block, resident)| Config { chunk, nonzeros, block, resident };
    shapes.map(config).into()
}

impl Config {
    /// For rows of Y of so many columns: longer rows leave registers for fewer groups, and work for each
    /// of them that is worth more nonzeros.
    pub(super) fn new(problem: &Problem) -> Self {
        let bytes = problem.columns * problem.dtype.bytes();
        match bytes {
            0..=256 => Config { chunk: 4, nonzeros: 16, block: 128, resident: 1024 },
            257..=512 => Config { chunk: 4, nonzeros: 32, block: 128, resident: 1024 },
            _ => Config { chunk: 4, nonzeros: 32, block: 256, resident: 512 },
        }
    }

    fn check(&self) -> Result<()> {
        let fits = self.chunk.is_power_of_two()
            && self.chunk <= 8
            && self.nonzeros > 0
            && self.nonzeros.is_multiple_of(self.chunk)
            && self.nonzeros <= 1 << 16
            && self.block.is_power_of_two()
            && (32..=1024).contains(&self.block)
            && (self.block..=2048).contains(&self.resident);
        check_config(
            "config of nonzero-split",
            self,
            fits,
            "chunks of 1, 2, 4 or 8 nonzeros, a multiple of them up to 65536 for a group, CTAs of 32 \
             to 1024 threads, a power of two, and as many resident threads at least, 2048 at most",
        )
    }
}

/// What a kernel is compiled for.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Variant {
    pub(crate) config: Config,
    pub(crate) dtype: DType,
    pub(crate) index: IndexType,
    pub(crate) offset: IndexType,
    /// Of the rows of nonzeros.
    pub(crate) row: IndexType,
    /// Elements of a load of X and Y.
    pub(crate) vector: u32,
    /// Lanes of a group, and vectors of each lane in a panel of the depth.
    pub(crate) lanes: u32,
    pub(crate) tiles: u32,
    /// Whether a panel holds the whole depth.
    pub(crate) one_panel: bool,
    /// Whether the arrays of row and column indices are 16-byte aligned.
    pub(crate) wide: bool,
}

// Vectors of a lane at most: as many as registers hold of a chunk's rows of Y.
const MOST_TILES: u32 = 2;

impl Variant {
    fn new(config: Config, o: &Operands, row: IndexType, rows: u64) -> Self {
        let aligned = |address: u64, ld: usize| {
            let values = widest(o.dtype, ld as u64);
            let addressed = (address & address.wrapping_neg()) / o.dtype.bytes() as u64;
            if address == 0 { values } else { values.min(addressed.min(16) as u32) }
        };
        let vector =
            widest(o.dtype, o.depth as u64).min(aligned(o.x, o.ldx)).min(aligned(o.y, o.ldy));
        let vectors = o.depth.div_ceil(vector as usize).max(1) as u64;
        let lanes = vectors.next_power_of_two().min(32) as u32;
        let tiles = vectors.div_ceil(lanes.into()).min(MOST_TILES.into()) as u32;
        Variant {
            config,
            dtype: o.dtype,
            index: o.index_type,
            offset: o.offset_type,
            row,
            vector,
            lanes,
            tiles,
            one_panel: vectors <= u64::from(lanes * tiles),
            wide: (o.indices | rows).is_multiple_of(16),
        }
    }

    /// The source with its parameters.
    pub(crate) fn request(&self) -> Request {
        let Config { chunk, nonzeros, block, resident } = self.config;
        request!("sddmm/nonzero_split.cu")
            .with_block::<Arguments>()
            .with_block::<RowArguments>()
            .with("VALUE", self.dtype)
            .with("INDEX", self.index)
            .with("OFFSET", self.offset)
            .with("ROW", self.row)
            .with("VECTOR", self.vector)
            .with("LANES", self.lanes)
            .with("TILES", self.tiles)
            .with("CHUNK", chunk)
            .with("NONZEROS", nonzeros)
            .with("BLOCK", block)
            .with("RESIDENT", resident)
            .with("ONE_PANEL", self.one_panel)
            .with("WIDE", self.wide)
    }
}

parameter_block! {
    struct Arguments {
        columns: *const Index,
        rows: *const Row,
        x: *const Value,
        y: *const Value,
        /// A factor of every nonzero, or null.
        factors: *const Value,
        values: *mut Value,
        nonzeros: u64,
        depth: u64,
        ldx: u64,
        ldy: u64,
        alpha: u64,
        beta: u64,
    }

    struct RowArguments {
        offsets: *const Offset,
        rows: *mut Row,
        row_count: u64,
        nonzeros: u64,
    }
}

// Threads of a CTA that looks for rows of nonzeros.
const SEARCH_BLOCK: u32 = 256;

/// The row of every nonzero, and the compiled kernel.
pub(super) struct Prepared {
    config: Config,
    row: IndexType,
    // Rows have eight bytes at most.
    rows: DeviceBuffer<u64>,
    kernel: Option<(Variant, Kernel<Arguments>)>,
}

impl Prepared {
    pub(super) fn new(
        device: &Device,
        pattern: &HeldPattern,
        problem: &Problem,
        config: Config,
    ) -> Result<Self> {
        config.check()?;
        let row = if pattern.nrows <= u32::MAX as usize { IndexType::U32 } else { IndexType::U64 };
        let words = (pattern.nnz * row.bytes()).div_ceil(8);
        let rows = DeviceBuffer::queued(device, words, "rows of nonzeros")?;
        let mut prepared = Prepared { config, row, rows, kernel: None };
        let packed = Operands {
            offsets: pattern.offsets.address(),
            indices: pattern.indices.address(),
            rows: pattern.nrows,
            cols: pattern.ncols,
            nnz: pattern.nnz,
            index_type: pattern.index_type,
            offset_type: pattern.offset_type,
            dtype: problem.dtype,
            x: 0,
            ldx: problem.columns,
            y: 0,
            ldy: problem.columns,
            depth: problem.columns,
            values: 0,
            factors: 0,
            alpha: 0,
            beta: 0,
        };
        if pattern.nnz == 0 {
            return Ok(prepared);
        }
        prepared.compile(device, &packed)?;
        if let Some((variant, _)) = &prepared.kernel {
            let arguments = RowArguments {
                offsets: packed.offsets,
                rows: prepared.rows.address(),
                row_count: pattern.nrows as u64,
                nonzeros: pattern.nnz as u64,
            };
            let search = device.module(&variant.request())?.kernel(c"rows_of_nonzeros")?;
            let ctas = arguments.nonzeros.div_ceil(SEARCH_BLOCK.into());
            // SAFETY: it reads the row offsets, which the plan holds, and writes a row for every
            // nonzero, for which there is memory.
            unsafe { search.launch(device.stream(), (ctas, 1), SEARCH_BLOCK, &arguments)? };
        }
        Ok(prepared)
    }
}

impl Method for Prepared {
    fn bytes(&self) -> usize {
        self.rows.bytes()
    }

    fn compile(&mut self, device: &Device, o: &Operands) -> Result<()> {
        let variant = Variant::new(self.config, o, self.row, self.rows.address());
        if self.kernel.as_ref().is_none_or(|(compiled, _)| *compiled != variant) {
            let kernel = device.kernel(&variant, c"nonzero_split", || variant.request())?;
            self.kernel = Some((variant, kernel));
        }
        Ok(())
    }

    unsafe fn launch(&mut self, device: &Device, stream: &Stream, o: &Operands) -> Result<()> {
        self.compile(device, o)?;
        let Some((variant, kernel)) = &self.kernel else { return Ok(()) };
        self.rows.used_on(stream);
        let arguments = Arguments {
            columns: o.indices,
            rows: self.rows.address(),
            x: o.x,
            y: o.y,
            factors: o.factors,
            values: o.values,
            nonzeros: o.nnz as u64,
            depth: o.depth as u64,
            ldx: o.ldx as u64,
            ldy: o.ldy as u64,
            alpha: o.alpha,
            beta: o.beta,
        };
        let Config { nonzeros, block, .. } = self.config;
        let of_cta = u64::from(nonzeros) * u64::from(block / variant.lanes);
        let ctas = arguments.nonzeros.div_ceil(of_cta);
        // SAFETY: the operands are the caller's promise; there is a row for every nonzero, which the
        // device's stream wrote before this plan's first execution.
        unsafe { kernel.launch_dependent(stream, (ctas, 1), block, 0, &arguments) }
    }
}
