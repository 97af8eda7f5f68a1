//! `tensor`: vectors of eight rows and one column on tensor cores. See `kernels/spmm/tensor.cu`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use gustav_core::{DType, Error, IndexType, Problem, Result};

use super::catalog::Method;
use super::operands::Operands;
use super::pattern::Pattern;
use super::row_block::Arguments;
use super::tile::widest_for;
use super::{dense, unsupported};
use crate::Device;
use crate::jit::Request;
use crate::kernel::Kernel;
use crate::schedule::RowBlocks;
use crate::stream::Stream;

// Rows of a block and entries of a chunk: the shape of the instruction.
const ROWS: u32 = 8;
const CHUNK: u32 = 16;
const BACKEND: &str = "tensor on CUDA";
// Blocks of this many entries on average have work for several warps.
const LONG: usize = 256;

/// The tile of a warp, and how many warps take a block of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Config {
    /// Columns of C that a warp holds: 16, 32, 64 or, in 16 bits, 128.
    pub panel: u32,
    /// Warps of a CTA.
    pub warps: u32,
    /// Warps that share a block of rows.
    pub share: u32,
}

impl Config {
    fn new(problem: &Problem, share: u32) -> Self {
        let most = if problem.dtype == DType::F32 { 64 } else { 128 };
        let panel = problem.columns.next_power_of_two().clamp(16, most) as u32;
        Config { panel, warps: 4, share }
    }

    fn check(&self, problem: &Problem) -> Result<()> {
        let most = if problem.dtype == DType::F32 { 64 } else { 128 };
        let fits = [16, 32, 64, 128].contains(&self.panel)
            && self.panel <= most
            && [1, 2, 4].contains(&self.warps)
            && self.warps.is_multiple_of(self.share.max(1))
            && self.share > 0;
        if fits {
            return Ok(());
        }
        Err(Error::Argument {
            name: "config of tensor",
            found: format!("{self:?}"),
            expected: format!(
                "16 to {most} columns, a power of two; 1, 2 or 4 warps; a share of \
                               them"
            ),
        })
    }
}

/// Plus-times over finite operands, in 16 bits, or in f32 when TF32 is asked for.
pub(super) fn supports(problem: &Problem) -> Result<()> {
    dense::takes(problem, BACKEND, &[DType::F16, DType::Bf16, DType::F32])?;
    if problem.dtype == DType::F32 && !problem.tf32 {
        let reason = "in f32 its factors are rounded to TF32";
        let nearest = "TF32 asked for (Problem::tf32, --tf32), or segmented";
        return Err(unsupported(problem, BACKEND, reason, nearest));
    }
    Ok(())
}

pub(super) const ANY_LAYOUT: bool = false;

/// Several warps a block where blocks are long.
pub(super) fn choose(pattern: &Pattern<'_>, problem: &Problem) -> Result<(Config, String)> {
    let blocks = pattern.rows.div_ceil(ROWS as usize).max(1);
    let long = pattern.nnz / blocks >= LONG;
    let config = Config::new(problem, if long { 4 } else { 1 });
    Ok((config, format!("{} warps a block of {ROWS} rows", config.share)))
}

pub(super) fn configs(problem: &Problem) -> Vec<Config> {
    [1, 2, 4].map(|share| Config::new(problem, share)).into()
}

/// The blocks on the device and the kernels compiled so far.
pub(super) struct Prepared {
    config: Config,
    blocks: RowBlocks,
    kernels: HashMap<Variant, Kernel>,
}

/// What a kernel is compiled for.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Variant {
    pub(crate) config: Config,
    pub(crate) dtype: DType,
    pub(crate) out: DType,
    pub(crate) offset: IndexType,
    pub(crate) word: IndexType,
    pub(crate) position: IndexType,
    pub(crate) vector: u32,
}

impl Variant {
    /// The source with its parameters.
    pub(crate) fn request(&self) -> Request {
        Request::new("spmm/tensor.cu", include_str!("../../kernels/spmm/tensor.cu"))
            .with("VALUE", self.dtype)
            .with("OUT", self.out)
            .with("OFFSET", self.offset)
            .with("WORD", self.word)
            .with("POSITION", self.position)
            .with("PANEL", self.config.panel)
            .with("WARPS", self.config.warps)
            .with("SHARE", self.config.share)
            .with("VECTOR", self.vector)
    }

    /// The source of the blocks that it reads.
    #[cfg(test)]
    pub(crate) fn blocks(&self, index: IndexType) -> Request {
        RowBlocks::request(index, self.offset, self.word, self.position, ROWS, CHUNK)
    }
}

impl Prepared {
    /// Makes the blocks.
    pub(super) fn new(p: &Pattern<'_>, problem: &Problem, config: Config) -> Result<Self> {
        config.check(problem)?;
        let (major, minor) = p.device().profile().compute_capability;
        let oldest = if problem.dtype == DType::F16 { (7, 5) } else { (8, 0) };
        if (major, minor) < oldest {
            let reason = format!(
                "{} on tensor cores needs compute capability {}.{}, this is {major}.{minor}",
                problem.dtype, oldest.0, oldest.1
            );
            return Err(unsupported(problem, BACKEND, &reason, "segmented"));
        }
        let blocks = RowBlocks::new(p, problem, ROWS, CHUNK)?;
        Ok(Prepared { config, blocks, kernels: HashMap::new() })
    }

    fn variant(&self, o: &Operands) -> Variant {
        Variant {
            config: self.config,
            dtype: o.dtype,
            out: o.dtype_c,
            offset: o.offset_type,
            word: self.blocks.word,
            position: self.blocks.position,
            vector: widest_for(o),
        }
    }
}

impl Method for Prepared {
    fn bytes(&self) -> usize {
        self.blocks.bytes()
    }

    fn compile(&mut self, device: &Device, o: &Operands) -> Result<()> {
        let variant = self.variant(o);
        if let Entry::Vacant(place) = self.kernels.entry(variant) {
            place.insert(device.module(&variant.request())?.kernel(c"tensor")?);
        }
        Ok(())
    }

    unsafe fn launch(&mut self, device: &Device, stream: &Stream, o: &Operands) -> Result<()> {
        self.compile(device, o)?;
        self.blocks.used_on(stream);
        let arguments = Arguments::new(&self.blocks, o);
        let Config { panel, warps, share } = self.config;
        let blocks = arguments.rows.div_ceil(u64::from(ROWS));
        let grid = (
            blocks.div_ceil(u64::from(warps / share)),
            arguments.columns.div_ceil(u64::from(panel)),
        );
        // SAFETY: `Arguments` is the kernel's parameter; the blocks are those of the pattern, and the
        // operands are the caller's promise.
        unsafe { self.kernels[&self.variant(o)].launch(stream, grid, warps * 32, &arguments) }
    }
}
