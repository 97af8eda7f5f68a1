//! Host side of `kernels/papers/spmm/stationary.cuh`: what `output-stationary` and `dcsr` have in common.

use gustav_core::{DType, Problem, Result};

use crate::device::Stream;
use crate::jit::Request;
use crate::launch::Kernel;
use crate::papers;
use crate::product::check_config;
use crate::product::operands::Operands;
use crate::schedule::pattern::Pattern;

/// The shape of a CTA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Config {
    /// Warps of a CTA; the source's number is 32.
    pub warps: u32,
    /// Columns of C that a CTA owns.
    pub width: u32,
}

impl Default for Config {
    fn default() -> Self {
        Config { warps: 32, width: 1 }
    }
}

impl Config {
    pub(crate) fn check(&self) -> Result<()> {
        check_config(
            "config of column strips",
            self,
            (1..=32).contains(&self.warps) && (1..=8).contains(&self.width),
            "1 to 32 warps and 1 to 8 columns",
        )
    }
}

// B and C are column-major as they are.
pub(crate) const ANY_LAYOUT: bool = true;

/// The source's configuration, or that of the plan's order.
pub(crate) fn choose(pattern: &Pattern<'_>, _: &Problem) -> Result<(Config, String)> {
    // An order has been made for a number of warps.
    let own = Config::default();
    let warps = pattern.order().map_or(own.warps, |order| order.shape().warps as u32);
    Ok((Config { warps, ..own }, "named by the caller".into()))
}

pub(crate) fn configs(_: &Problem) -> Vec<Config> {
    [1, 2, 4].map(|width| Config { width, ..Config::default() }).into()
}

/// `source` with its parameters; `ordered` if a plan lists the rows of `output-stationary`.
pub(crate) fn request(source: Request, dtype: DType, config: Config, ordered: bool) -> Request {
    source
        .with_block::<Arguments>()
        .with("VALUE", dtype)
        .with("WARPS", config.warps)
        .with("WIDTH", config.width)
        .with("ORDERED", u8::from(ordered))
}

parameter_block! {
    /// The kernels' parameter.
    pub(crate) struct Arguments {
        pub operands: papers::PaperOperands,
        /// Rows of A that hold nonzeros (dcsr), slots of an order (output-stationary).
        pub listed: *const u32,
        pub all_rows: u64,
    }
}

impl Arguments {
    pub fn new(o: &Operands) -> Self {
        let operands = papers::PaperOperands::new(o);
        Arguments { operands, listed: 0, all_rows: operands.rows }
    }
}

/// Queues one CTA per strip of columns.
///
/// # Safety
/// As [`Method::launch`](crate::product::method::Method::launch); `arguments` describe the operands.
pub(crate) unsafe fn launch(
    kernel: &Kernel<Arguments>,
    config: Config,
    stream: &Stream,
    arguments: &Arguments,
) -> Result<()> {
    let strips = arguments.operands.columns.div_ceil(u64::from(config.width));
    // SAFETY: the caller's promise.
    unsafe { kernel.launch(stream, (strips, 1), config.warps * 32, arguments) }
}
