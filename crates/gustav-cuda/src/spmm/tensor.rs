//! `tensor`: vectors of eight rows and one column on tensor cores. See `kernels/spmm/tensor.cu`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use gustav_core::{DType, Problem, Result, Semiring};
use gustav_plan::heuristics::cuda_spmm::{self, Tuning};

use super::row_block::{BlockOperands, BlockTypes};
use super::{auto, catalog};
use crate::device::{Device, Stream};
use crate::jit::Request;
use crate::launch::Kernel;
use crate::product::method::Method;
use crate::product::operands::Operands;
use crate::product::tile::widest_for;
use crate::product::{check_config, only_spmm, unsupported};
use crate::schedule::RowBlocks;
use crate::schedule::pattern::Pattern;

// Rows of a block, and entries of a chunk: the shape of the `mma` instruction.
const ROWS: u32 = 8;
const CHUNK: u32 = 16;
const BACKEND: &str = "tensor on CUDA";

/// The tile of a warp, and the warps of a block of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Config {
    /// Columns of C that a warp holds: 16, 32, in f32 64, and in 16 bits 128. Unaligned operands
    /// have narrower panels.
    pub panel: u32,
    /// Warps of a CTA.
    pub warps: u32,
    /// Warps that share a block of rows.
    pub subgroups: u32,
    /// Resident threads of a multiprocessor that a kernel's registers must allow.
    pub resident: u32,
}

impl Config {
    pub(super) fn new(problem: &Problem, tuning: &Tuning) -> Self {
        let &Tuning { subgroups, threads: resident, .. } = tuning;
        let panel = problem.columns.next_power_of_two().clamp(16, most(problem.dtype)) as u32;
        Config { panel, warps: subgroups.max(4), subgroups, resident }
    }

    pub(super) fn check(&self, problem: &Problem) -> Result<()> {
        let most = most(problem.dtype);
        let fits = [16, 32, 64, 128].contains(&self.panel)
            && self.panel as usize <= most
            && [1, 2, 4, 8].contains(&self.warps)
            && self.warps.is_multiple_of(self.subgroups.max(1))
            && self.subgroups > 0
            && (self.warps * 32..=2048).contains(&self.resident);
        check_config(
            "config of tensor",
            self,
            fits,
            format!(
                "16 to {most} columns, a power of two; 1, 2, 4 or 8 warps; subgroups that divide them; as many \
                 resident threads as a CTA has at least, 2048 at most"
            ),
        )
    }
}

/// Most columns for which a warp has registers.
fn most(dtype: DType) -> usize {
    256 / dtype.bytes()
}

/// Supports plus-times in 16 bits and f64, and in f32 if TF32 is allowed.
pub(super) fn supports(problem: &Problem) -> Result<()> {
    let refuse = |reason: &str, nearest| Err(unsupported(problem, BACKEND, reason, nearest));
    only_spmm(problem, "tensor")?;
    if ![DType::F16, DType::Bf16, DType::F32, DType::F64].contains(&problem.dtype) {
        return refuse(&format!("it has no kernel for {}", problem.dtype), "segmented");
    }
    if problem.semiring != Semiring::PlusTimes {
        return refuse("it computes plus-times", "segmented");
    }
    if problem.dtype == DType::F32 && !problem.tf32 {
        let nearest = "TF32 allowed (Problem::tf32, --tf32), or segmented";
        return refuse("in f32 its factors are rounded to TF32", nearest);
    }
    Ok(())
}

/// Whether `device` has tensor cores that compute `problem` as exactly as other kernels do.
pub(super) fn is_exact(device: &Device, problem: &Problem) -> bool {
    let exact = problem.dtype != DType::F32 && supports(problem).is_ok();
    exact && device.profile().compute_capability >= oldest(problem.dtype)
}

/// The first compute capability whose tensor cores support `dtype`.
fn oldest(dtype: DType) -> (i32, i32) {
    if dtype == DType::F16 { (7, 5) } else { (8, 0) }
}

pub(super) const ANY_LAYOUT: bool = false;

/// The fastest configuration by the cost model.
pub(super) fn choose(pattern: &Pattern<'_>, problem: &Problem) -> Result<(Config, String)> {
    auto::fastest_of(pattern, problem, cuda_spmm::tensor(problem), |config| match config {
        catalog::Config::Tensor(config) => Some(config),
        _ => None,
    })
}

pub(super) fn configs(problem: &Problem) -> Vec<Config> {
    cuda_spmm::tensor(problem).iter().map(|tuning| Config::new(problem, tuning)).collect()
}

/// The blocks on the device and the kernels compiled so far.
pub(super) struct Prepared {
    config: Config,
    blocks: RowBlocks,
    kernels: HashMap<Variant, Kernel<Arguments>>,
}

/// The parameters that a kernel is compiled for.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Variant {
    pub(crate) config: Config,
    /// With offsets of rows of B in bytes.
    pub(crate) types: BlockTypes,
    pub(crate) vector: u32,
}

parameter_block! {
    /// The kernel's parameter.
    struct Arguments {
        blocks: BlockOperands,
        indices: *const Index,
    }
}

impl Variant {
    /// The source with its parameters.
    pub(crate) fn request(&self) -> Request {
        let request = request!("spmm/tensor.cu").with_block::<Arguments>();
        self.types
            .describe(request)
            .with("PANEL", self.config.panel)
            .with("WARPS", self.config.warps)
            .with("SUBGROUPS", self.config.subgroups)
            .with("RESIDENT", self.config.resident)
            .with("STRIDE", self.types.stride)
            .with("VECTOR", self.vector)
            .with("STEPS", self.types.steps)
    }

    /// The source of the kernel that computes the blocks.
    #[cfg(test)]
    pub(crate) fn blocks(&self) -> Request {
        let BlockTypes { index, offset, word, position, .. } = self.types;
        RowBlocks::request(index, offset, word, position, ROWS, CHUNK)
    }
}

impl Prepared {
    /// Computes the blocks.
    pub(super) fn new(p: &Pattern<'_>, problem: &Problem, config: Config) -> Result<Self> {
        config.check(problem)?;
        let (major, minor) = p.device().profile().compute_capability;
        let oldest = oldest(problem.dtype);
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
        // A lane holds an eighth of the panel, in at most four vectors.
        let vector = widest_for(o).min(self.config.panel / 8);
        let panel = self.config.panel.min(32 * vector);
        let types = BlockTypes::new(&self.blocks, o, o.dtype.bytes());
        Variant { config: Config { panel, ..self.config }, types, vector }
    }
}

impl Method for Prepared {
    fn bytes(&self) -> usize {
        self.blocks.bytes()
    }

    fn compile(&mut self, device: &Device, o: &Operands) -> Result<()> {
        let variant = self.variant(o);
        if let Entry::Vacant(vacant) = self.kernels.entry(variant) {
            vacant.insert(device.module(&variant.request())?.kernel(c"tensor")?);
        }
        Ok(())
    }

    unsafe fn launch(&mut self, device: &Device, stream: &Stream, o: &Operands) -> Result<()> {
        self.compile(device, o)?;
        self.blocks.used_on(stream);
        let variant = self.variant(o);
        let blocks = BlockOperands::new(&self.blocks, o);
        let arguments = Arguments { blocks, indices: o.indices };
        let Config { panel, warps, subgroups, .. } = variant.config;
        let count = blocks.rows.div_ceil(u64::from(ROWS));
        let grid = (
            count.div_ceil(u64::from(warps / subgroups)),
            blocks.columns.div_ceil(u64::from(panel)),
        );
        // SAFETY: the blocks are those of the pattern, and the
        // operands are the caller's promise.
        unsafe { self.kernels[&variant].launch_dependent(stream, grid, warps * 32, 0, &arguments) }
    }
}
