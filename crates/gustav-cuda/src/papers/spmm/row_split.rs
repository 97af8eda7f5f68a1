//! `row-split`: one warp per row and 32 columns, as Yang, Buluç and Owens (2018, §4.1) describe
//! it. See `kernels/papers/spmm/row_split.cu`.

use gustav_core::{DType, Layout, Problem, Result};
use gustav_plan::Algorithm;

use crate::device::{Device, Stream};
use crate::jit::Request;
use crate::launch::Kernel;
use crate::papers::{self, PaperOperands};
use crate::product::method::Method;
use crate::product::operands::Operands;
use crate::schedule::pattern::Pattern;

const WARP: u32 = 32;

/// The rows of a CTA, and how a batch of nonzeros is broadcast to the lanes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// The paper's choice: a warp per row, broadcast by shuffles.
    #[default]
    Shuffle,
    /// A CTA per row.
    CtaPerRow,
    /// Broadcast through shared memory.
    SharedBroadcast,
    /// Each lane reads its own row of B; products are reduced by shuffles.
    TransposedLoad,
}

impl Variant {
    /// The paper's choice, then the variants that it measured and rejected.
    pub const ALL: [Variant; 4] =
        [Variant::Shuffle, Variant::CtaPerRow, Variant::SharedBroadcast, Variant::TransposedLoad];

    fn name(self) -> &'static str {
        match self {
            Variant::Shuffle => "SHUFFLE",
            Variant::CtaPerRow => "CTA_PER_ROW",
            Variant::SharedBroadcast => "SHARED",
            Variant::TransposedLoad => "TRANSPOSED",
        }
    }
}

/// Warps, loads in flight and variant of `row-split`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Config {
    /// Warps of a CTA; the paper's number is 4.
    pub warps: u32,
    /// Loads of B that a thread issues before it waits for them, a power of two: 32, a whole batch of
    /// nonzeros, is what the paper counts; fewer need fewer registers, so that more warps are resident.
    pub ahead: u32,
    /// The variant.
    pub variant: Variant,
}

impl Default for Config {
    fn default() -> Self {
        Config { warps: 4, ahead: 8, variant: Variant::Shuffle }
    }
}

/// Supports what the paper defines; C is row-major, or column-major, which the paper measured and
/// rejected.
pub(crate) fn supports(problem: &Problem) -> Result<()> {
    papers::spmm(problem, Algorithm::RowSplit, (Layout::RowMajor, problem.layout_c))
}

pub(crate) const ANY_LAYOUT: bool = true;

/// The paper's configuration.
pub(crate) fn choose(_pattern: &Pattern<'_>, _problem: &Problem) -> Result<(Config, String)> {
    Ok((Config::default(), "named by the caller".into()))
}

pub(crate) fn configs(_problem: &Problem) -> Vec<Config> {
    let variants = Variant::ALL.map(|variant| Config { variant, ..Config::default() });
    let more_ahead = [16, 32].map(|ahead| Config { ahead, ..Config::default() });
    variants.into_iter().chain(more_ahead).collect()
}

/// The compiled kernel.
pub(crate) struct Prepared {
    config: Config,
    kernel: Kernel<PaperOperands>,
}

/// The source with its parameters.
pub(crate) fn request(dtype: DType, layout_c: Layout, config: Config) -> Request {
    let lines = match layout_c {
        Layout::RowMajor => "ROWS",
        Layout::ColumnMajor => "COLUMNS",
    };
    request!("papers/spmm/row_split.cu")
        .with_block::<PaperOperands>()
        .with("VALUE", dtype)
        .with("WARPS", config.warps)
        .with("AHEAD", config.ahead)
        .with("VARIANT", config.variant.name())
        .with("LINES_OF_C", lines)
}

impl Prepared {
    pub(crate) fn new(pattern: &Pattern<'_>, problem: &Problem, config: Config) -> Result<Self> {
        if !(1..=32).contains(&config.warps) {
            return Err(gustav_core::Error::Argument {
                name: "warps",
                found: config.warps.to_string(),
                expected: "1 to 32".into(),
            });
        }
        papers::check_ahead(config.ahead)?;
        let module = pattern.device().module(&request(problem.dtype, problem.layout_c, config))?;
        Ok(Prepared { config, kernel: module.kernel(c"row_split")? })
    }
}

impl Method for Prepared {
    fn bytes(&self) -> usize {
        0
    }

    unsafe fn launch(&mut self, _device: &Device, stream: &Stream, o: &Operands) -> Result<()> {
        let arguments = PaperOperands::new(o);
        let rows = if self.config.variant == Variant::CtaPerRow { 1 } else { self.config.warps };
        let grid =
            (arguments.rows.div_ceil(u64::from(rows)), arguments.columns.div_ceil(u64::from(WARP)));
        // SAFETY: the operands are the caller's promise.
        unsafe { self.kernel.launch(stream, grid, self.config.warps * WARP, &arguments) }
    }
}
