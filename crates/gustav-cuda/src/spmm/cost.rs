//! Configurations as the cost model sees them.

use gustav_core::{Problem, Result};
use gustav_plan::cost::spmm::{
    BStationary, Panel, RowBlock, Schedule, Segmented, Short, Tensor, Work,
};
use gustav_plan::cost::{Bounds, Class, Facts, Lengths, Parameters};
use gustav_plan::{DeviceProfile, RowSimilarity};

use super::catalog::Config;
use super::{b_stationary, segmented};
use crate::product::tile::widest;

/// What the model needs of a product.
pub(super) struct Model<'a> {
    pub problem: &'a Problem,
    pub facts: &'a dyn Facts,
    pub lengths: Lengths<'a>,
    /// What neighbouring rows have in common.
    pub similarity: RowSimilarity,
    pub profile: &'a DeviceProfile,
    /// Bytes of shared memory of a CTA.
    pub shared: usize,
}

/// The bounds of a configuration of a product whose pattern has these facts, on a device with `shared` bytes of
/// shared memory for a CTA; `None` for algorithms that the model does not know.
///
/// # Errors
/// Those of `facts`; [`gustav_core::Error::Unsupported`] if a row of B does not fit into shared memory.
pub fn bounds(
    problem: &Problem,
    facts: &dyn Facts,
    profile: &DeviceProfile,
    shared: usize,
    config: &Config,
) -> Result<Option<Bounds>> {
    Model::new(problem, facts, profile, shared)?.bounds(config)
}

impl<'a> Model<'a> {
    /// # Errors
    /// Those of `facts`.
    pub fn new(
        problem: &'a Problem,
        facts: &'a dyn Facts,
        profile: &'a DeviceProfile,
        shared: usize,
    ) -> Result<Self> {
        let (lengths, similarity) = (Lengths::new(facts.lengths()?), facts.similarity()?);
        Ok(Model { problem, facts, lengths, similarity, profile, shared })
    }

    /// The bounds of `config`; `None` for algorithms that the model does not know.
    pub fn bounds(&self, config: &Config) -> Result<Option<Bounds>> {
        let Some(schedule) = self.schedule(config)? else { return Ok(None) };
        let work = Work {
            problem: self.problem,
            lengths: &self.lengths,
            similarity: self.similarity,
            profile: self.profile,
            rates: Parameters::of_gpus().rates,
        };
        Ok(Some(work.bounds(&schedule)))
    }

    fn schedule(&self, config: &Config) -> Result<Option<Schedule>> {
        Ok(Some(match config {
            Config::Segmented(c) => Schedule::Segmented(Segmented {
                class: class(self.problem, c),
                panel: panel(c.vector, c.lanes, c.tiles),
                subgroups: c.subgroups * c.warps,
                warps: c.warps,
                chunk: c.chunk_of_group(),
                short: (c.segments_per_group > 1).then(|| Short {
                    below: c.longest.map_or(f64::INFINITY, |longest| match c.window {
                        // All whole rows follow the parts of cut ones.
                        1 => longest.into(),
                        _ => c.first.min(longest).into(),
                    }),
                    number: c.segments_per_group,
                    at_once: c.at_once,
                    chunk: c.chunk,
                }),
                longest: c.longest,
                resident: c.resident,
            }),
            Config::RowBlock(c) => Schedule::RowBlock(RowBlock {
                panel: panel(c.vector, c.lanes, c.tiles),
                rows: c.rows,
                subgroups: c.subgroups,
                unroll: c.unroll,
                resident: c.resident,
            }),
            Config::BStationary(c) => Schedule::BStationary(self.b_stationary(c)?),
            Config::Tensor(c) => Schedule::Tensor(Tensor {
                panel: c.panel,
                subgroups: c.subgroups,
                resident: c.resident,
            }),
            _ => return Ok(None),
        }))
    }

    fn b_stationary(&self, c: &b_stationary::Config) -> Result<BStationary> {
        let rows = c.rows(self.problem, self.shared)?;
        let reuse = self.facts.tile_reuse(self.problem.inner(), rows)?;
        Ok(BStationary {
            panel: panel(c.vector, c.lanes, c.tiles),
            rows,
            stages: c.stages,
            per_segment: reuse.per_segment,
            longest: c.longest,
            block: c.block,
            batch: c.batch(),
        })
    }
}

fn panel(vector: u32, lanes: u32, tiles: u32) -> Panel {
    Panel { vector, lanes, tiles }
}

fn class(problem: &Problem, c: &segmented::Config) -> Class {
    let load_bytes = c.vector as usize * problem.dtype.bytes();
    if load_bytes == 8 && c.vector < widest(problem.dtype, problem.columns as u64) {
        // Too few configurations for a class for each of the schedules below.
        return Class::HalfVectors;
    }
    match c.stages {
        _ if c.at_once => Class::SegmentsAtOnce,
        _ if c.warps > 1 => Class::CtaPerSegment,
        _ if c.segments_per_group > 1 && c.subgroups > 1 && c.longest.is_some() => {
            Class::SharedHead
        }
        _ if c.segments_per_group > 1 => Class::SeveralSegments,
        // The same loads with other numbers of columns have other tiles.
        1 if (c.lanes, c.tiles) == (8, 4) => Class::Copied,
        1.. => Class::Staged,
        0 if c.chunk >= 4 => Class::ManyLoads,
        0 => Class::FewLoads,
    }
}
