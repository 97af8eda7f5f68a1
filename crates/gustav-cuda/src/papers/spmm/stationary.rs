//! Host side of `kernels/papers/spmm/stationary.cuh`: the common part of `output-stationary` and `dcsr`.

use gustav_core::{DType, Problem, Result};

use crate::device::{Device, Stream};
use crate::jit::Request;
use crate::launch::Kernel;
use crate::papers;
use crate::product::check_config;
use crate::product::operands::Operands;
use crate::schedule::pattern::Pattern;

// Threads that fill a multiprocessor.
const THREADS: u32 = 2048;

/// The shape of a CTA, and the number of CTAs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Config {
    /// Warps of a CTA; the study's number is 32.
    pub warps: u32,
    /// Columns of C that a CTA owns.
    pub width: u32,
    /// Whether a strip of columns has as many CTAs as fill the chip, which take its rows in turn. The
    /// study has one, and as many columns as rows.
    pub fill: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config { warps: 32, width: 1, fill: false }
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

// Column-major B and C are read and written directly.
pub(crate) const ANY_LAYOUT: bool = true;

/// The study's configuration, with the number of warps of the plan's row order if there is one.
pub(crate) fn choose(pattern: &Pattern<'_>, _: &Problem) -> Result<(Config, String)> {
    // A row order is made for a number of warps.
    let own = Config::default();
    let warps = pattern.order().map_or(own.warps, |order| order.shape().warps as u32);
    Ok((Config { warps, ..own }, "named by the caller".into()))
}

/// Strips of several widths, of one CTA, then of as many as fill the chip.
pub(crate) fn configs(_: &Problem) -> Vec<Config> {
    let of = |fill| [1, 2, 4, 8].map(|width| Config { width, fill, ..Config::default() });
    [of(false), of(true)].concat()
}

/// `source` with its parameters; `ordered` if `output-stationary` has a row order.
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
        /// Nonempty rows of A (dcsr), slots of a row order (output-stationary).
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

/// Queues one CTA per strip of columns, or as many as fill `device`.
///
/// # Safety
/// As [`Method::launch`](crate::product::method::Method::launch); `arguments` describe the operands.
pub(crate) unsafe fn launch(
    kernel: &Kernel<Arguments>,
    config: Config,
    device: &Device,
    stream: &Stream,
    arguments: &Arguments,
) -> Result<()> {
    let strips = arguments.operands.columns.div_ceil(u64::from(config.width));
    let threads = config.warps * 32;
    let parts = match config.fill {
        true => {
            let resident = u64::from(THREADS / threads) * device.profile().multiprocessors as u64;
            let most = arguments.operands.rows.div_ceil(u64::from(config.warps));
            resident.div_ceil(strips.max(1)).clamp(1, most.max(1))
        }
        false => 1,
    };
    // SAFETY: the caller's promise.
    unsafe { kernel.launch(stream, (strips, parts), threads, arguments) }
}
