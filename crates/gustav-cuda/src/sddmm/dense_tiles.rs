//! `dense-tiles`: whole tiles of X·Yᵀ, of which the nonzeros are stored. See
//! `kernels/sddmm/dense_tiles.cu`.

use gustav_core::{DType, Error, IndexType, Problem, Result};

use super::lanes::vector;
use crate::device::{Device, Stream};
use crate::jit::Request;
use crate::launch::Kernel;
use crate::matrix::HeldPattern;
use crate::product::check_config;
use crate::product::sampled::{Method, Operands, only_sddmm};
use crate::product::tile::accumulator;
use crate::schedule::TileNonzeros;
use crate::schedule::pattern::Pattern;

/// The tile of a CTA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Config {
    /// Rows of X of a tile.
    pub rows: u32,
    /// Rows of Y of a tile, which are its columns.
    pub columns: u32,
    /// Threads of a CTA.
    pub block: u32,
    /// Parts of a tile's rows, of 128 bytes each, that are in shared memory or on their way.
    pub stages: u32,
    /// Threads of a multiprocessor that the registers of a kernel must allow.
    pub resident: u32,
}

// The shapes that there are kernels for.
const SMALL: Config = Config { rows: 64, columns: 64, block: 128, stages: 3, resident: 512 };
const LARGE: Config = Config { rows: 128, columns: 64, block: 256, stages: 3, resident: 512 };

/// Any SDDMM.
pub(super) fn supports(problem: &Problem) -> Result<()> {
    only_sddmm(problem, "dense-tiles")
}

/// Every configuration that is worth timing.
pub(super) fn configs(_: &Problem) -> Vec<Config> {
    vec![SMALL, LARGE, Config { stages: 2, ..SMALL }, Config { stages: 2, ..LARGE }]
}

impl Config {
    /// Tiles of 64 x 64, which leave few multiprocessors idle.
    pub(super) fn new() -> Self {
        SMALL
    }

    /// Bytes of shared memory.
    fn shared(&self, dtype: DType) -> usize {
        let (rows, columns) = (self.rows as usize, self.columns as usize);
        let parts = self.stages as usize * (rows + columns) * (STEP_BYTES + APART);
        parts.max(rows * (columns + 8) * accumulator(dtype).bytes())
    }

    fn check(&self, device: &Device, dtype: DType) -> Result<()> {
        let shape = [SMALL, LARGE]
            .iter()
            .any(|c| (c.rows, c.columns, c.block) == (self.rows, self.columns, self.block));
        let most = device.profile().shared_bytes_per_cta;
        let fits = shape
            && (2..=4).contains(&self.stages)
            && (self.block..=2048).contains(&self.resident)
            && self.shared(dtype) <= most;
        let expected = format!(
            "64 x 64 positions for 128 threads or 128 x 64 for 256, 2 to 4 stages, at most {most} bytes of shared \
             memory, and as many resident threads as a CTA has at least, 2048 at most"
        );
        check_config("config of dense-tiles", self, fits, expected)
    }
}

// As the kernel has them.
const STEP_BYTES: usize = 128;
const APART: usize = 16;

/// What a kernel is compiled for.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Variant {
    pub(crate) config: Config,
    pub(crate) dtype: DType,
    pub(crate) position: IndexType,
    /// Elements of a load of X and Y.
    pub(crate) vector: u32,
    /// Whether tensor cores multiply.
    pub(crate) tensor: bool,
}

impl Variant {
    /// The source with its parameters.
    pub(crate) fn request(&self) -> Request {
        let Config { rows, columns, block, stages, resident } = self.config;
        request!("sddmm/dense_tiles.cu")
            .with_block::<Arguments>()
            .with("VALUE", self.dtype)
            .with("POSITION", self.position)
            .with("ROWS", rows)
            .with("COLUMNS", columns)
            .with("BLOCK", block)
            .with("STAGES", stages)
            .with("VECTOR", self.vector)
            .with("TENSOR", self.tensor)
            .with("RESIDENT", resident)
    }
}

parameter_block! {
    struct Arguments {
        begins: *const u64,
        positions: *const Position,
        places: *const u16,
        x: *const Value,
        y: *const Value,
        /// A factor of every nonzero, or null.
        factors: *const Value,
        values: *mut Value,
        rows: u64,
        columns: u64,
        depth: u64,
        ldx: u64,
        ldy: u64,
        alpha: u64,
        beta: u64,
        /// Tiles side by side.
        across: u32,
    }
}

/// The nonzeros of the tiles on the device, and the compiled kernel.
pub(super) struct Prepared {
    config: Config,
    nonzeros: TileNonzeros,
    across: u32,
    kernel: Option<(Variant, Kernel<Arguments>)>,
}

impl Prepared {
    /// Lists the nonzeros of every tile on the device.
    pub(super) fn new(
        pattern: &Pattern<'_>,
        held: &HeldPattern,
        problem: &Problem,
        config: Config,
    ) -> Result<Self> {
        config.check(pattern.device(), problem.dtype)?;
        let nonzeros = TileNonzeros::new(pattern, problem, config.rows, config.columns)?;
        let across = u32::try_from(nonzeros.across).map_err(|_| Error::Overflow {
            what: "tiles side by side",
            need: nonzeros.across as u128,
            index_type: IndexType::U32,
        })?;
        let mut prepared = Prepared { config, nonzeros, across, kernel: None };
        if held.nnz > 0 {
            prepared.compile(pattern.device(), &Operands::packed(held, problem))?;
        }
        Ok(prepared)
    }
}

/// Whether `device` has tensor cores that multiply `dtype` as exactly as other kernels do.
pub(super) fn has_tensor_cores(device: &Device, dtype: DType) -> bool {
    let capability = device.profile().compute_capability;
    match dtype {
        DType::F16 => capability >= (7, 5),
        DType::Bf16 => capability >= (8, 0),
        _ => false,
    }
}

impl Method for Prepared {
    fn bytes(&self) -> usize {
        self.nonzeros.bytes()
    }

    fn compile(&mut self, device: &Device, o: &Operands) -> Result<()> {
        let variant = Variant {
            config: self.config,
            dtype: o.dtype,
            position: self.nonzeros.position,
            vector: vector(o),
            tensor: has_tensor_cores(device, o.dtype),
        };
        if self.kernel.as_ref().is_none_or(|(compiled, _)| *compiled != variant) {
            let kernel: Kernel<Arguments> =
                device.kernel(&variant, c"dense_tiles", || variant.request())?;
            kernel.allow_shared(self.config.shared(o.dtype))?;
            self.kernel = Some((variant, kernel));
        }
        Ok(())
    }

    unsafe fn launch(&mut self, device: &Device, stream: &Stream, o: &Operands) -> Result<()> {
        self.compile(device, o)?;
        let Some((_, kernel)) = &self.kernel else { return Ok(()) };
        self.nonzeros.used_on(stream);
        let arguments = Arguments {
            begins: self.nonzeros.begins.address(),
            positions: self.nonzeros.positions.address(),
            places: self.nonzeros.places.address(),
            x: o.x,
            y: o.y,
            factors: o.factors,
            values: o.values,
            rows: o.rows as u64,
            columns: o.cols as u64,
            depth: o.depth as u64,
            ldx: o.ldx as u64,
            ldy: o.ldy as u64,
            alpha: o.alpha,
            beta: o.beta,
            across: self.across,
        };
        let (grid, shared) = ((self.nonzeros.tiles as u64, 1), self.config.shared(o.dtype));
        // SAFETY: the operands are the caller's promise; the lists cover the pattern, and the
        // device's stream made them before this plan's first execution.
        unsafe { kernel.launch_dependent(stream, grid, self.config.block, shared, &arguments) }
    }
}
