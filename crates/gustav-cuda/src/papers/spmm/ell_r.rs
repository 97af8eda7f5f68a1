//! `ell-r`: ELLPACK with row lengths, several threads a row, as Ortega, Vázquez, García and Garzón
//! (2014) use it. See `kernels/papers/spmm/ell_r.cu`.

use super::padded::{self, BLOCK, Format, SlotLayout};
use crate::jit::Request;
use crate::papers;
use crate::product::check_config;
use crate::schedule::pattern::Pattern;
use std::ffi::CStr;

use gustav_core::{DType, Problem, Result};
use gustav_plan::Algorithm;

pub(crate) use super::padded::ANY_LAYOUT;

/// How many threads share a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Config {
    /// Threads of a row; its slots are a multiple of them.
    pub lanes: u32,
}

impl Default for Config {
    fn default() -> Self {
        Config { lanes: 4 }
    }
}

/// Supports what the paper defines, with row-major operands.
pub(crate) fn supports(problem: &Problem) -> Result<()> {
    papers::spmm(problem, Algorithm::EllR, papers::ROW_MAJOR)
}

/// Four threads per row.
pub(crate) fn choose(_: &Pattern<'_>, _: &Problem) -> Result<(Config, String)> {
    Ok((Config::default(), "named by the caller".into()))
}

pub(crate) fn configs(_: &Problem) -> Vec<Config> {
    [1, 4, 16].map(|lanes| Config { lanes }).into()
}

/// ELLPACK with row lengths.
pub(crate) struct EllR;

pub(crate) type Prepared = padded::Prepared<EllR>;

impl Format for EllR {
    type Config = Config;
    const KERNELS: [&'static CStr; 2] = [c"ell_r_convert", c"ell_r"];

    fn check(config: Config) -> Result<()> {
        check_config(
            "config of ell-r",
            &config,
            config.lanes.is_power_of_two() && config.lanes <= 32,
            "1, 2, 4, 8, 16 or 32 lanes",
        )
    }

    fn request(dtype: DType, vector: u32, config: Config) -> Request {
        request!("papers/spmm/ell_r.cu")
            .with_block::<padded::Arguments>()
            .with("VALUE", dtype)
            .with("LANES", config.lanes)
            .with("VECTOR", vector)
            .with("BLOCK", BLOCK)
    }

    fn layout(offsets: &[u64], config: Config) -> SlotLayout {
        let lines = offsets.len() as u64 - 1;
        let longest = offsets.windows(2).map(|w| w[1] - w[0]).max().unwrap_or(0);
        let width = longest.next_multiple_of(u64::from(config.lanes));
        let slots = usize::try_from(width.saturating_mul(lines)).unwrap_or(usize::MAX);
        SlotLayout { slices: Vec::new(), slots, lines, width }
    }

    fn launch(rows: u64, strips: u64, config: Config) -> ((u64, u64), u32) {
        ((rows.div_ceil(u64::from(BLOCK / config.lanes)), strips), BLOCK)
    }
}
