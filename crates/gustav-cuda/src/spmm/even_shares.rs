//! `even-shares`: equal partitions of row starts and nonzeros, found by a search in the kernel
//! itself. See `kernels/spmm/even_shares.cu`.

mod config;

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use gustav_core::{Problem, Result};
use gustav_plan::heuristics::cuda_spmm;

use super::group::{self, CarryOutWorkspace, Types};
use crate::device::{Device, Stream};
use crate::jit::Request;
use crate::launch::Kernel;
use crate::product::method::Method;
use crate::product::operands::Operands;
use crate::product::slices::Slices;
use crate::product::tile::widest_for;
use crate::schedule::pattern::Pattern;

pub use config::Config;

/// Supports any SpMM.
pub(super) fn supports(problem: &Problem) -> Result<()> {
    crate::product::only_spmm(problem, "even-shares")
}

pub(super) const ANY_LAYOUT: bool = false;

/// The configuration, from the numbers of rows and nonzeros alone.
pub(super) fn choose(pattern: &Pattern<'_>, problem: &Problem) -> Result<(Config, String)> {
    let (tuning, reason) = cuda_spmm::even_shares(problem, &pattern.device().planner_profile());
    Ok((Config::new(problem, &tuning), reason))
}

/// The configurations to time for `problem`.
pub(super) fn configs(problem: &Problem) -> Vec<Config> {
    Config::candidates(problem)
}

/// The carry-out workspace, and the kernels compiled so far.
pub(super) struct Prepared {
    config: Config,
    partitions: u64,
    carry_outs: CarryOutWorkspace,
    kernels: HashMap<Variant, Kernel<Arguments>>,
}

/// What a kernel is compiled for beyond the plan's problem.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Variant {
    pub(crate) config: Config,
    pub(crate) types: Types,
}

parameter_block! {
    struct Arguments {
        operands: group::Operands,
        rows: u64,
        partitions: u64,
        slices: Slices,
    }
}

impl Variant {
    /// The source with its parameters.
    pub(crate) fn request(&self) -> Request {
        let c = &self.config;
        let request =
            self.types.describe(request!("spmm/even_shares.cu").with_block::<Arguments>());
        request
            .with("BLOCK", c.block)
            .with("RESIDENT", c.resident)
            .with("VECTOR", c.vector)
            .with("LANES", c.lanes)
            .with("TILES", c.tiles)
            .with("SUBGROUPS", 1)
            .with("CHUNK", c.chunk)
            .with("WORK_BITS", c.work.ilog2())
    }
}

impl Prepared {
    /// Queues the allocation of the carry-out workspace; the pattern is not inspected.
    pub(super) fn new(pattern: &Pattern<'_>, problem: &Problem, config: Config) -> Result<Self> {
        config.check(problem)?;
        let items = problem.output_rows() as u64 + problem.nnz as u64;
        let partitions = items.div_ceil(u64::from(config.work));
        let panel = |vector| config.narrowed(problem.dtype, vector, problem.columns).panel();
        let slots = (partitions as usize).saturating_mul(2);
        let carry_outs = CarryOutWorkspace::new(pattern.device(), problem, slots, panel)?;
        Ok(Prepared { config, partitions, carry_outs, kernels: HashMap::new() })
    }

    fn variant(&self, o: &Operands) -> Variant {
        let config = self.config.narrowed(o.dtype, widest_for(o), o.columns);
        Variant { config, types: Types::new(o, config.tile(), config.vector) }
    }
}

impl Method for Prepared {
    fn bytes(&self) -> usize {
        self.carry_outs.bytes()
    }

    fn compile(&mut self, device: &Device, operands: &Operands) -> Result<()> {
        let variant = self.variant(operands);
        if let Entry::Vacant(vacant) = self.kernels.entry(variant) {
            vacant.insert(device.kernel(&variant, c"even_shares", || variant.request())?);
        }
        Ok(())
    }

    unsafe fn launch(&mut self, device: &Device, stream: &Stream, o: &Operands) -> Result<()> {
        self.compile(device, o)?;
        let variant = self.variant(o);
        let config = variant.config;
        self.carry_outs.used_on(stream);
        let (rows, partitions) = (o.rows as u64, self.partitions);
        let groups = u64::from(config.block / config.lanes);
        let panels = (o.columns as u64).div_ceil(config.panel());
        let ctas = partitions.div_ceil(groups);
        let arguments = Arguments {
            operands: self.carry_outs.arguments(o),
            rows,
            partitions,
            slices: Slices::new(o, device, ctas),
        };
        let grid = (ctas, panels);
        // SAFETY: there are two slots for each partition, and the operands are the caller's
        // promise.
        unsafe {
            self.kernels[&variant].launch_dependent(stream, grid, config.block, 0, &arguments)
        }
    }
}
