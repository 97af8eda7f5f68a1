//! `segmented`: a group of lanes per segment; rows in their order, or a list of segments.

pub(crate) mod in_order;

use gustav_core::{Problem, Result};
use gustav_plan::heuristics::cuda_spmv;

use super::auto;
use crate::device::{Device, Stream};
use crate::product::catalog::no_kernel;
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

/// The fastest configuration by the cost model, and the reason.
pub(super) fn choose(pattern: &Pattern<'_>, problem: &Problem) -> Result<(Config, String)> {
    let configs = configs(problem).into_iter().map(super::Config::Segmented);
    let (config, reason) = auto::fastest(pattern, problem, configs)?;
    match config {
        super::Config::Segmented(config) => Ok((config, reason)),
        other => Err(no_kernel(super::catalog(), problem, other.algorithm())),
    }
}

pub(super) fn configs(problem: &Problem) -> Vec<Config> {
    let in_order = cuda_spmv::in_order().map(|tuning| Config::InOrder(InOrder::new(&tuning)));
    let listed = cuda_spmv::listed()
        .map(|t| Config::Listed(matrix::Config::of_vector(problem, t.lanes, t.longest)));
    in_order.into_iter().chain(listed).collect()
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
