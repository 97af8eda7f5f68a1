//! `thread-row`: one thread per row and a few columns, the granularity that Yang, Buluç and Owens
//! (2018, §4.1) name for very short rows. See `kernels/papers/spmm/thread_row.cu`.

use gustav_core::{DType, Problem, Result};
use gustav_plan::Algorithm;

use crate::device::{Device, Stream};
use crate::jit::Request;
use crate::launch::Kernel;
use crate::papers::{self, PaperOperands};
use crate::product::check_config;
use crate::product::method::Method;
use crate::product::operands::Operands;
use crate::schedule::pattern::Pattern;

/// The work of a thread, and the size of a CTA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Config {
    /// Threads of a CTA.
    pub threads: u32,
    /// Columns of C that a thread computes.
    pub width: u32,
}

impl Default for Config {
    fn default() -> Self {
        Config { threads: 128, width: 4 }
    }
}

/// Supports what the paper defines.
pub(crate) fn supports(problem: &Problem) -> Result<()> {
    papers::spmm(problem, Algorithm::ThreadRow, papers::ROW_MAJOR)
}

pub(crate) const ANY_LAYOUT: bool = false;

/// A few columns per thread.
pub(crate) fn choose(_pattern: &Pattern<'_>, _problem: &Problem) -> Result<(Config, String)> {
    Ok((Config::default(), "named by the caller".into()))
}

pub(crate) fn configs(_problem: &Problem) -> Vec<Config> {
    [1, 4, 8].map(|width| Config { width, ..Config::default() }).into()
}

/// The compiled kernel.
pub(crate) struct Prepared {
    config: Config,
    kernel: Kernel<PaperOperands>,
}

/// The source with its parameters.
pub(crate) fn request(dtype: DType, config: Config) -> Request {
    request!("papers/spmm/thread_row.cu")
        .with_block::<PaperOperands>()
        .with("VALUE", dtype)
        .with("THREADS", config.threads)
        .with("WIDTH", config.width)
}

impl Prepared {
    pub(crate) fn new(pattern: &Pattern<'_>, problem: &Problem, config: Config) -> Result<Self> {
        let fits = (32..=1024).contains(&config.threads) && (1..=32).contains(&config.width);
        check_config(
            "config of thread-row",
            &config,
            fits,
            "32 to 1024 threads and 1 to 32 columns",
        )?;
        let module = pattern.device().module(&request(problem.dtype, config))?;
        Ok(Prepared { config, kernel: module.kernel(c"thread_row")? })
    }
}

impl Method for Prepared {
    fn bytes(&self) -> usize {
        0
    }

    unsafe fn launch(&mut self, _device: &Device, stream: &Stream, o: &Operands) -> Result<()> {
        let arguments = PaperOperands::new(o);
        let Config { threads, width } = self.config;
        let grid = (
            arguments.rows.div_ceil(u64::from(threads)),
            arguments.columns.div_ceil(u64::from(width)),
        );
        // SAFETY: the operands are the caller's promise.
        unsafe { self.kernel.launch(stream, grid, threads, &arguments) }
    }
}
