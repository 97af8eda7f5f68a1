//! `row-split`: a group of lanes per row, as Yang, Buluç and Owens (2018, §4.1) describe it for
//! vectors. See `kernels/papers/spmv/row_split.cu`.

use gustav_core::{DType, IndexType, Problem, Result, Semiring};

use crate::device::{Device, Stream};
use crate::jit::{Request, source};
use crate::launch::Kernel;
use crate::product::method::Method;
use crate::product::operands::Operands;
use crate::product::{check_config, only_spmv};
use crate::schedule::pattern::Pattern;

/// The shape of a group and of a CTA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Config {
    /// Lanes that share a row: a power of two up to 32.
    pub lanes: u32,
    /// Threads of a CTA.
    pub threads: u32,
}

/// Supports any SpMV.
pub(crate) fn supports(problem: &Problem) -> Result<()> {
    only_spmv(problem, "row-split")
}

pub(crate) const ANY_LAYOUT: bool = true;

/// As many lanes as cover the mean row length with two nonzeros each.
pub(crate) fn choose(_: &Pattern<'_>, problem: &Problem) -> Result<(Config, String)> {
    let mean = problem.nnz as f64 / problem.output_rows().max(1) as f64;
    let lanes = ((mean / 2.0).round() as u32).clamp(1, 32).next_power_of_two();
    Ok((Config { lanes, threads: 128 }, format!("rows of {mean:.1} nonzeros on average")))
}

pub(crate) fn configs(_: &Problem) -> Vec<Config> {
    [1, 2, 4, 8, 16, 32].map(|lanes| Config { lanes, threads: 128 }).into()
}

/// The compiled kernel.
pub(crate) struct Prepared {
    config: Config,
    kernel: Kernel<Arguments>,
}

parameter_block! {
    struct Arguments {
        offsets: *const Offset,
        indices: *const Index,
        values: *const Value,
        x: *const Value,
        y: *mut Value,
        rows: u64,
        alpha: u64,
        beta: u64,
    }
}

/// The source with its parameters.
pub(crate) fn request(
    dtype: DType,
    (index, offset): (IndexType, IndexType),
    semiring: Semiring,
    config: Config,
) -> Request {
    request!("papers/spmv/row_split.cu")
        .with_block::<Arguments>()
        .with("VALUE", dtype)
        .with("INDEX", index)
        .with("OFFSET", offset)
        .with("SEMIRING", source::semiring(semiring))
        .with("LANES", config.lanes)
        .with("THREADS", config.threads)
}

impl Prepared {
    pub(crate) fn new(pattern: &Pattern<'_>, p: &Problem, config: Config) -> Result<Self> {
        let fits = config.lanes.is_power_of_two()
            && config.lanes <= 32
            && (32..=1024).contains(&config.threads)
            && config.threads.is_multiple_of(32);
        check_config(
            "config of row-split",
            &config,
            fits,
            "a power of two of at most 32 lanes, whole warps of at most 1024 threads",
        )?;
        let request = request(p.dtype, (p.index_type, p.offset_type), p.semiring, config);
        let module = pattern.device().module(&request)?;
        Ok(Prepared { config, kernel: module.kernel(c"row_split")? })
    }
}

impl Method for Prepared {
    fn bytes(&self) -> usize {
        0
    }

    unsafe fn launch(&mut self, _device: &Device, stream: &Stream, o: &Operands) -> Result<()> {
        let arguments = Arguments {
            offsets: o.offsets,
            indices: o.indices,
            values: o.values,
            x: o.b,
            y: o.c,
            rows: o.rows as u64,
            alpha: o.alpha,
            beta: o.beta,
        };
        let Config { lanes, threads } = self.config;
        let grid = (arguments.rows.div_ceil(u64::from(threads / lanes)), 1);
        // SAFETY: the operands are the caller's promise.
        unsafe { self.kernel.launch(stream, grid, threads, &arguments) }
    }
}
