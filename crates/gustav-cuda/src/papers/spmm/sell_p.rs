//! `sell-p`: slices of rows padded to their longest, as Anzt, Tomov and Dongarra (2015) describe
//! it. See `kernels/papers/spmm/sell_p.cu`.

use super::padded::{self, BLOCK, Format, SlotLayout};
use crate::jit::Request;
use crate::papers;
use crate::product::check_config;
use crate::schedule::pattern::Pattern;
use std::ffi::CStr;

use gustav_core::{DType, Problem, Result};
use gustav_plan::Algorithm;

pub(crate) use super::padded::ANY_LAYOUT;

/// The shape of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Config {
    /// Rows of a slice.
    pub rows: u32,
    /// Threads of a row; its slots are a multiple of them.
    pub lanes: u32,
}

impl Default for Config {
    fn default() -> Self {
        Config { rows: 8, lanes: 4 }
    }
}

/// Supports what the paper defines, with row-major operands.
pub(crate) fn supports(problem: &Problem) -> Result<()> {
    papers::spmm(problem, Algorithm::SellP, papers::ROW_MAJOR)
}

/// Slices of eight rows.
pub(crate) fn choose(_: &Pattern<'_>, _: &Problem) -> Result<(Config, String)> {
    Ok((Config::default(), "named by the caller".into()))
}

pub(crate) fn configs(_: &Problem) -> Vec<Config> {
    [(8, 4), (32, 1), (4, 8)].map(|(rows, lanes)| Config { rows, lanes }).into()
}

/// Sliced ELL with padding.
pub(crate) struct SellP;

pub(crate) type Prepared = padded::Prepared<SellP>;

impl Format for SellP {
    type Config = Config;
    const KERNELS: [&'static CStr; 2] = [c"sell_p_convert", c"sell_p"];

    fn check(config: Config) -> Result<()> {
        let powers = config.rows.is_power_of_two() && config.lanes.is_power_of_two();
        check_config(
            "config of sell-p",
            &config,
            powers && config.rows.saturating_mul(config.lanes) <= 32,
            "powers of two whose product is at most 32",
        )
    }

    fn request(dtype: DType, vector: u32, config: Config) -> Request {
        request!("papers/spmm/sell_p.cu")
            .with_block::<padded::Arguments>()
            .with("VALUE", dtype)
            .with("ROWS", config.rows)
            .with("LANES", config.lanes)
            .with("VECTOR", vector)
            .with("BLOCK", BLOCK)
    }

    fn layout(offsets: &[u64], config: Config) -> SlotLayout {
        let height = config.rows as usize;
        let rows = offsets.len() - 1;
        let mut slices = vec![0];
        let mut slots = 0;
        for first in (0..rows).step_by(height) {
            let last = (first + height).min(rows);
            let lengths = offsets[first..=last].windows(2).map(|w| w[1] - w[0]);
            let width = lengths.max().unwrap_or(0).next_multiple_of(u64::from(config.lanes));
            slots += width * height as u64;
            slices.push(slots);
        }
        let lines = rows.next_multiple_of(height) as u64;
        SlotLayout { slices, slots: usize::try_from(slots).unwrap_or(usize::MAX), lines, width: 0 }
    }

    fn launch(rows: u64, strips: u64, config: Config) -> ((u64, u64), u32) {
        let group = config.rows * config.lanes;
        // Whole warps, and at most as many groups as strips.
        let groups = strips.next_power_of_two().min(u64::from(BLOCK / group)) as u32;
        let block = (groups * group).max(32);
        let grid =
            (rows.div_ceil(u64::from(config.rows)), strips.div_ceil(u64::from(block / group)));
        (grid, block)
    }
}
