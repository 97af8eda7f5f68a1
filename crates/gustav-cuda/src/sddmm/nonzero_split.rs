//! `nonzero-split`: equal numbers of nonzeros, whatever the lengths of rows. See
//! `kernels/sddmm/nonzero_split.cu`.

use gustav_core::{IndexType, Problem, Result};

use super::lanes::Lanes;
use super::nonzeros::{List, MOST_TILES, Types};
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
    /// Nonzeros of a batch, whose indices and values move together: 8, 16 or 32. Groups of few lanes have 4 for each.
    pub batch: u32,
    /// Batches that a group takes one after another.
    pub batches: u32,
    /// Threads of a CTA: 32, 64 or 128.
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
    let shapes = [
        (4, 32, 1, 1024),
        (8, 32, 1, 768),
        (8, 16, 1, 768),
        (8, 32, 2, 768),
        (4, 32, 1, 640),
        (4, 16, 1, 640),
    ];
    let config =
        |(chunk, batch, batches, resident)| Config { chunk, batch, batches, block: 128, resident };
    shapes.map(config).into()
}

impl Config {
    /// For rows of Y of so many columns, on so many multiprocessors: rows of more than 512 bytes are two vectors of
    /// every lane, which leave registers for fewer rows at once. Smaller batches are more groups where there are
    /// few nonzeros.
    pub(super) fn new(problem: &Problem, multiprocessors: usize) -> Self {
        let long = problem.columns * problem.dtype.bytes() > 512;
        let (chunk, resident) = if long { (4, 640) } else { (8, 768) };
        let vectors = problem.columns / widest(problem.dtype, problem.columns as u64) as usize;
        let lanes = vectors.max(1).next_power_of_two().min(32);
        let groups = multiprocessors * resident as usize / lanes;
        let batch = [8, 16].into_iter().find(|batch| groups * batch >= problem.nnz).unwrap_or(32);
        Config { chunk, batch: batch as u32, batches: 1, block: 128, resident }
    }

    fn check(&self) -> Result<()> {
        let fits = self.chunk.is_power_of_two()
            && self.chunk <= 8
            && [8, 16, 32].contains(&self.batch)
            && (1..=1024).contains(&self.batches)
            && [32, 64, 128].contains(&self.block)
            && (self.block..=2048).contains(&self.resident);
        check_config(
            "config of nonzero-split",
            self,
            fits,
            "chunks of 1, 2, 4 or 8 nonzeros, 1 to 1024 batches of 8, 16 or 32, CTAs of 32, 64 or 128 threads, and as many \
             resident threads at least, 2048 at most",
        )
    }
}

/// What a kernel is compiled for.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Variant {
    pub(crate) config: Config,
    pub(crate) types: Types,
    pub(crate) offset: IndexType,
    pub(crate) lanes: Lanes,
    /// Whether there are several products.
    pub(crate) batched: bool,
}

impl Variant {
    fn new(config: Config, o: &Operands, row: IndexType) -> Self {
        let (dtype, index, offset) = (o.dtype, o.index_type, o.offset_type);
        let types = Types { dtype, index, row, position: IndexType::U64 };
        let (lanes, batched) = (Lanes::new(o, MOST_TILES), o.batch.count > 1);
        Variant { config, types, offset, lanes, batched }
    }

    /// Nonzeros of a batch.
    fn batch(&self) -> u32 {
        (4 * self.lanes.lanes).clamp(self.config.chunk, self.config.batch)
    }

    /// The source with its parameters.
    pub(crate) fn request(&self) -> Request {
        let Config { chunk, batches, block, resident, .. } = self.config;
        let request = request!("sddmm/nonzero_split.cu")
            .with_block::<List>()
            .with_block::<RowArguments>()
            .with("OFFSET", self.offset);
        self.lanes
            .describe(self.types.describe(request))
            .with("CHUNK", chunk)
            .with("BATCH", self.batch())
            .with("BATCHES", batches)
            .with("BLOCK", block)
            .with("RESIDENT", resident)
            .with("BATCHED", self.batched)
    }
}

parameter_block! {
    struct RowArguments {
        offsets: *const Offset,
        rows: *mut Row,
        row_count: u64,
        nonzeros: u64,
    }
}

// Products of a grid; CTAs go on to others.
const MOST_PRODUCTS: u64 = 65_535;
// Threads of a CTA that looks for rows of nonzeros.
const SEARCH_BLOCK: u32 = 256;

/// The row of every nonzero, and the compiled kernel.
pub(super) struct Prepared {
    config: Config,
    row: IndexType,
    // Rows have eight bytes at most.
    rows: DeviceBuffer<u64>,
    kernel: Option<(Variant, Kernel<List>)>,
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
        let packed = Operands::packed(pattern, problem);
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
        let variant = Variant::new(self.config, o, self.row);
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
        let arguments = List::new(o, o.indices, self.rows.address(), 0);
        let Config { batches, block, .. } = self.config;
        let groups = u64::from(block / variant.lanes.lanes);
        let of_cta = u64::from(batches) * u64::from(variant.batch()) * groups;
        let ctas = arguments.nonzeros.div_ceil(of_cta);
        let grid = (ctas, arguments.batch.min(MOST_PRODUCTS));
        // SAFETY: the operands are the caller's promise; there is a row for every nonzero, which the
        // device's stream wrote before this plan's first execution.
        unsafe { kernel.launch_dependent(stream, grid, block, 0, &arguments) }
    }
}
