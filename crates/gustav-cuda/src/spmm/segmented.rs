//! `segmented`: rows cut into segments, one group of lanes per segment, all columns in registers.
//! See `kernels/spmm/segmented.cu`.

mod config;

use std::collections::HashMap;

use gustav_core::{Problem, Result};
use gustav_plan::Order;
use gustav_plan::heuristics::cuda_spmm::{self, Tuning};

use super::group::{self, CarryOutWorkspace, Types};
use super::{auto, catalog};
use crate::device::{Device, DeviceBuffer, Stream};
use crate::jit::Request;
use crate::launch::Kernel;
use crate::product::method::Method;
use crate::product::operands::Operands;
use crate::product::slices::Slices;
use crate::product::tile::widest_for;
use crate::schedule::pattern::Pattern;
use crate::schedule::{Listing, Segments, Target, row_order};

pub use config::{Config, Reduction};

/// Resident threads of a multiprocessor with kernels that also hold winners in registers.
pub(crate) const WITH_WINNERS: u32 = 384;

// Most panels of a grid.
const MOST_PANELS: u64 = 65_535;

/// Supports any SpMM.
pub(super) fn supports(problem: &Problem) -> Result<()> {
    crate::product::only_spmm(problem, "segmented")
}

pub(super) const ANY_LAYOUT: bool = false;

/// The fastest configuration by the cost model. Rows in a row order take windows and loads that keep it.
pub(super) fn choose(pattern: &Pattern<'_>, problem: &Problem) -> Result<(Config, String)> {
    let mut tunings = cuda_spmm::segmented(problem);
    if let Some(order) = pattern.order() {
        let in_order = |tuning| match order.order() {
            Order::Stored => Some(Tuning { window: 1, ..tuning }),
            order => cuda_spmm::in_order(tuning, order.has_blocks()),
        };
        tunings = tunings.into_iter().filter_map(in_order).collect();
    }
    auto::fastest_of(pattern, problem, tunings, |config| match config {
        catalog::Config::Segmented(config) => Some(config),
        _ => None,
    })
}

pub(super) fn configs(problem: &Problem) -> Vec<Config> {
    Config::candidates(problem)
}

/// The schedule on the device and the kernels compiled so far.
pub(crate) struct Prepared {
    config: Config,
    /// `None` if whole rows are taken in their order.
    segments: Option<Segments>,
    /// The rows, if whole rows are taken in a row order.
    order: Option<DeviceBuffer<u32>>,
    rows: usize,
    carry_outs: CarryOutWorkspace,
    kernels: HashMap<Variant, Kernels>,
}

/// The parameters that a kernel is compiled for, besides the plan's problem.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Variant {
    pub(crate) config: Config,
    pub(crate) types: Types,
    pub(crate) ordered: bool,
}

struct Kernels {
    segmented: Kernel<Arguments>,
    prepare: Kernel<Arguments>,
}

parameter_block! {
    struct Arguments {
        /// Null if there is no list.
        segments: *const u64,
        /// Number of segments, or of rows if there is no list.
        count: u64,
        /// Segments that a subgroup processes by itself.
        segments_per_group: u32,
        /// Number of first CTAs whose groups take one segment.
        single: u32,
        /// First panel of this launch, numbered over all products of a batch.
        panel: u64,
        slices: Slices,
        operands: group::Operands,
        /// Rows, when ORDERED.
        order: *const u32,
        cut_rows: *const u64,
        /// The cut row of each slot, two words.
        slot_rows: *const u64,
        /// Panels of one product.
        panels: u64,
        /// Products of the batch.
        batch: u64,
    }
}

impl Variant {
    /// The source with its parameters.
    pub(crate) fn request(&self) -> Request {
        let c = &self.config;
        let request = self.types.describe(request!("spmm/segmented.cu").with_block::<Arguments>());
        request
            .with("BLOCK", c.block)
            .with("RESIDENT", c.resident)
            .with("VECTOR", c.vector)
            .with("LANES", c.lanes)
            .with("TILES", c.tiles)
            .with("SUBGROUPS", c.subgroups)
            .with("WARPS", c.warps)
            .with("CHUNK", c.chunk_of_group())
            .with("SEVERAL", c.segments_per_group > 1)
            .with("AT_ONCE", if c.at_once { c.segments_per_group } else { 1 })
            .with("IN_FLIGHT", c.chunk)
            .with("PREFETCH_B", c.prefetch_b)
            .with("STAGES", c.stages)
            .with("PREFETCH_A", c.prefetch_a)
            .with("LIST", c.longest.is_some())
            .with("ORDERED", self.ordered)
            .with("REDUCE", u8::from(c.longest.is_some() && c.reduction == Reduction::Atomic))
    }
}

impl Prepared {
    /// Cuts the rows according to `config` and computes the schedule on the device.
    pub(crate) fn new(pattern: &Pattern<'_>, problem: &Problem, config: Config) -> Result<Self> {
        // The stored order, whatever the configuration.
        let as_stored = pattern.order().is_some_and(|order| order.order() == Order::Stored);
        let config = if as_stored { Config { window: 1, ..config } } else { config };
        config.check(problem)?;
        let target = match config.reduction {
            Reduction::FixUp => Target::Slot,
            Reduction::Atomic => Target::Row,
        };
        let Config { first, window, .. } = config;
        let list =
            |longest| Segments::new(pattern, problem, Listing { longest, first, window }, target);
        let segments = config.longest.map(list).transpose()?;
        let order = row_order::other_than_stored(pattern).filter(|_| segments.is_none());
        let order = order.map(|order| row_order::sequence(pattern.device(), order)).transpose()?;
        let prepared = Self::over(pattern.device(), problem, config, segments)?;
        Ok(Prepared { order, ..prepared })
    }

    /// Uses `segments`, or whole rows in their order without.
    pub(super) fn over(
        device: &Device,
        problem: &Problem,
        config: Config,
        segments: Option<Segments>,
    ) -> Result<Self> {
        let slots = match (&segments, config.reduction) {
            (Some(segments), Reduction::FixUp) => segments.slots(),
            _ => 0,
        };
        // Less aligned operands need narrower vectors, and so perhaps more panels.
        let panel = |vector| config.narrowed(problem.dtype, vector, problem.columns).panel();
        let carry_outs = CarryOutWorkspace::new(device, problem, slots, panel)?;
        Ok(Prepared {
            config,
            rows: problem.output_rows(),
            segments,
            order: None,
            carry_outs,
            kernels: HashMap::new(),
        })
    }

    fn variant(&self, o: &Operands) -> Variant {
        let config = self.config.narrowed(o.dtype, widest_for(o), o.columns);
        let config = match o.winner {
            Some(_) => config.with_winners(o.filtered),
            None => config,
        };
        let types = Types::new(o, config.tile(), config.vector);
        Variant { config, types, ordered: self.order.is_some() }
    }
}

impl Method for Prepared {
    fn bytes(&self) -> usize {
        let list = self.segments.as_ref().map_or(0, Segments::bytes);
        let order = self.order.as_ref().map_or(0, DeviceBuffer::bytes);
        list + order + self.carry_outs.bytes()
    }

    fn compile(&mut self, device: &Device, operands: &Operands) -> Result<()> {
        let variant = self.variant(operands);
        if self.kernels.contains_key(&variant) {
            return Ok(());
        }
        let module = device.module(&variant.request())?;
        let kernels = Kernels {
            segmented: module.kernel(c"segmented")?,
            prepare: module.kernel(c"segmented_prepare")?,
        };
        self.kernels.insert(variant, kernels);
        Ok(())
    }

    unsafe fn launch(&mut self, device: &Device, stream: &Stream, o: &Operands) -> Result<()> {
        self.compile(device, o)?;
        let variant = self.variant(o);
        let kernels = &self.kernels[&variant];
        let config = variant.config;
        self.carry_outs.used_on(stream);
        if let Some(order) = &self.order {
            order.used_on(stream);
        }
        // Without a list these are not read.
        let (list, cut_rows, slot_rows, cut, count, long) = match &self.segments {
            Some(s) => {
                s.used_on(stream);
                let cut = s.cut_rows.len() as u64;
                let (cuts, slots) = (s.cut_rows.address(), s.slot_rows.address());
                (s.list.address(), cuts, slots, cut, s.count, s.long)
            }
            None => (0, 0, 0, 0, self.rows, 0),
        };
        let operands = self.carry_outs.arguments(o);
        let (segments, count) = (list, count as u64);
        let order = self.order.as_ref().map_or(0, DeviceBuffer::address);
        let (groups, subgroups) = (
            u64::from(config.block / config.threads_of_segment()),
            u64::from(config.block / config.lanes),
        );
        let panels = (o.columns as u64).div_ceil(config.panel()) * o.batch.count as u64;
        let segments_per_group = config.segments_per_group;
        let (single, ctas) = match segments_per_group {
            1 => (0, count.div_ceil(groups)),
            _ => {
                let single = (long as u64).min(count).div_ceil(groups);
                let others = count.saturating_sub(single * groups);
                (single, single + others.div_ceil(subgroups * u64::from(segments_per_group)))
            }
        };
        let mut arguments = Arguments {
            operands,
            segments,
            order,
            cut_rows,
            slot_rows,
            count,
            segments_per_group,
            single: single as u32,
            panel: 0,
            panels: panels / o.batch.count as u64,
            batch: o.batch.count as u64,
            slices: Slices::new(o, device, ctas),
        };
        // SAFETY: the schedule covers the
        // matrix, and the operands are the caller's promise.
        unsafe {
            if config.reduction == Reduction::Atomic {
                kernels.prepare.launch_dependent(stream, (cut, 1), config.block, 0, &arguments)?;
            }
            // With one segment per group, a CTA continues with the panels beyond the limit of a
            // grid.
            let strip = if segments_per_group > 1 { MOST_PANELS } else { panels };
            while arguments.panel < panels {
                let grid = (ctas, strip.min(panels - arguments.panel));
                kernels.segmented.launch_dependent(stream, grid, config.block, 0, &arguments)?;
                arguments.panel += strip;
            }
        }
        Ok(())
    }
}
