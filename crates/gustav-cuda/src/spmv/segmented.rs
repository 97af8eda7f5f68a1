//! `segmented`: a group of lanes per segment; rows in their order, or a list of segments.

pub(crate) mod in_order;

use gustav_core::{Problem, Result};
use gustav_plan::heuristics::cuda_spmv::{self, Tuning};

use crate::device::{Device, Stream};
use crate::product::method::Method;
use crate::product::only_spmv;
use crate::product::operands::Operands;
use crate::schedule::pattern::Pattern;
use crate::spmm::segmented as matrix;

pub use in_order::InOrder;

/// The order of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Config {
    /// Rows in their order; parts of long rows begin first.
    InOrder(InOrder),
    /// The list of segments of SpMM, sorted by length in windows: the vector is a matrix of one
    /// column.
    Listed(matrix::Config),
}

/// Supports any SpMV.
pub(super) fn supports(problem: &Problem) -> Result<()> {
    only_spmv(problem, "segmented")
}

pub(super) const ANY_LAYOUT: bool = true;

/// The configuration, from the lengths of the rows, which are counted if there are enough calls.
pub(super) fn choose(pattern: &Pattern<'_>, problem: &Problem) -> Result<(Config, String)> {
    let device = pattern.device();
    let threads = device.profile().threads_per_multiprocessor;
    let rows = || pattern.lengths();
    let tuning = cuda_spmv::segmented(problem, &device.planner_profile(), threads, rows)?;
    Ok((of(problem, &tuning), tuning.reason))
}

fn of(problem: &Problem, tuning: &Tuning) -> Config {
    match tuning.listed {
        false => Config::InOrder(InOrder::new(tuning)),
        true => Config::Listed(matrix::Config::of_vector(problem, tuning.lanes, tuning.longest)),
    }
}

pub(super) fn configs(problem: &Problem) -> Vec<Config> {
    let lanes = [1, 2, 4, 8, 16, 32];
    let in_order = |long| lanes.map(|lanes| of(problem, &Tuning::in_order(lanes, long)));
    let listed = |longest| {
        let tuning = |lanes| Tuning { longest, listed: true, ..Tuning::in_order(lanes, true) };
        [4, 8, 16, 32].map(|lanes| of(problem, &tuning(lanes)))
    };
    let in_order = [false, true].map(in_order).concat();
    let listed = [64, 256, 1024].map(listed).concat();
    [in_order, listed].concat()
}

/// Either of them, prepared.
pub(super) struct Prepared(Box<dyn Method>);

impl Prepared {
    pub(super) fn new(pattern: &Pattern<'_>, problem: &Problem, config: Config) -> Result<Self> {
        Ok(Prepared(match config {
            Config::InOrder(c) => Box::new(in_order::Prepared::new(pattern, problem, c)?),
            Config::Listed(c) => {
                let one_column = problem.clone().columns(1);
                Box::new(matrix::Prepared::new(pattern, &one_column, c)?)
            }
        }))
    }
}

impl Method for Prepared {
    fn bytes(&self) -> usize {
        self.0.bytes()
    }

    fn compile(&mut self, device: &Device, operands: &Operands) -> Result<()> {
        self.0.compile(device, operands)
    }

    unsafe fn launch(&mut self, device: &Device, stream: &Stream, o: &Operands) -> Result<()> {
        // SAFETY: passed on to the caller.
        unsafe { self.0.launch(device, stream, o) }
    }
}
