//! `column-panel`: panels of B's columns and tiles of B's rows that stay in L2, with the kernel of
//! `segmented`; after the tiling that Yang, Buluç and Owens (2018, §6) name as future work. See
//! `kernels/schedule/tile_list.cu`.

use gustav_core::{Error, Problem, Result};
use gustav_plan::Algorithm;
use gustav_plan::heuristics::cuda_spmm::Tuning;

use super::segmented;
use crate::device::{Device, Stream};
use crate::product::method::Method;
use crate::product::operands::Operands;
use crate::product::tile::accumulator;
use crate::schedule::Cutting;
use crate::schedule::pattern::Pattern;

// Bytes of a row of B in one panel: a cache line.
const LINE_BYTES: usize = 128;

/// The tile of B that stays in L2, and the configuration of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Config {
    /// Columns of B and C in a panel.
    pub columns: usize,
    /// Rows of B in a tile.
    pub rows: u64,
    /// How a segment is summed.
    pub segment: segmented::Config,
}

impl Config {
    /// Tiles of half of L2.
    fn new(problem: &Problem, l2_bytes: usize, subgroups: u32) -> Self {
        let bytes = problem.dtype.bytes();
        let budget = (l2_bytes / 2).max(1 << 20);
        let whole = problem.inner().saturating_mul(problem.columns).saturating_mul(bytes) <= budget;
        let columns = match whole {
            true => problem.columns,
            false => problem.columns.min(LINE_BYTES / bytes),
        };
        let columns = columns.max(1);
        let rows = match whole {
            true => problem.inner().max(1) as u64,
            false => (budget / (columns * bytes)).max(1) as u64,
        };
        let tuning = Tuning {
            subgroups,
            chunk: 2,
            longest: Some(1024),
            threads: if problem.dtype.bytes() == 8 { 768 } else { 1024 },
            ..Tuning::of(Algorithm::Segmented)
        };
        let segment = segmented::Config::new(&problem.clone().columns(columns), &tuning);
        Config { columns, rows, segment }
    }

    /// The problem of one panel of `problem`.
    ///
    /// # Errors
    /// [`Error::Argument`] for a configuration without a kernel.
    fn panel(&self, problem: &Problem) -> Result<Problem> {
        let Config { columns, segment, .. } = self;
        let by_fix_up = segment.reduction == segmented::Reduction::FixUp;
        if *columns == 0 || segment.longest.is_none() || !by_fix_up {
            return Err(Error::Argument {
                name: "config of column-panel",
                found: format!("{self:?}"),
                expected: "at least one column, and segments of a list, combined by fix-up".into(),
            });
        }
        let panel = problem.clone().columns((*columns).min(problem.columns.max(1)));
        segment.check(&panel)?;
        Ok(panel)
    }
}

/// Supports any SpMM.
pub(super) fn supports(problem: &Problem) -> Result<()> {
    crate::product::only_spmm(problem, "column-panel")
}

pub(super) const ANY_LAYOUT: bool = false;

/// Tiles of half of L2.
pub(super) fn choose(pattern: &Pattern<'_>, problem: &Problem) -> Result<(Config, String)> {
    let config = Config::new(problem, pattern.device().planner_profile().l2_bytes, 1);
    let Config { columns, rows, .. } = config;
    Ok((config, format!("panels of {columns} columns, tiles of {rows} rows of B")))
}

pub(super) fn configs(problem: &Problem) -> Vec<Config> {
    // For small and large L2 caches.
    [8 << 20, 32 << 20, 64 << 20].map(|l2| Config::new(problem, l2, 1)).into()
}

/// `segmented` with segments by tile, for one panel of columns at a time.
pub(super) struct Prepared {
    columns: usize,
    panel: segmented::Prepared,
}

impl Prepared {
    /// Cuts the rows at the tiles, on the device.
    pub(super) fn new(p: &Pattern<'_>, problem: &Problem, config: Config) -> Result<Self> {
        let Config { rows, segment, .. } = config;
        let panel = config.panel(problem)?;
        let columns = panel.columns;
        let segments = Cutting::IN_L2.list(p, problem, rows)?.segments;
        let panel = segmented::Prepared::over(p.device(), &panel, segment, Some(segments))?;
        Ok(Prepared { columns, panel })
    }

    /// The operands of each panel.
    fn panels<'a>(&self, o: &'a Operands) -> impl Iterator<Item = Operands> + 'a {
        let width = self.columns;
        let sums = accumulator(o.dtype).bytes();
        (0..o.columns).step_by(width).map(move |first| Operands {
            b: if o.b == 0 { 0 } else { o.b + (first * o.dtype.bytes()) as u64 },
            c: if o.c == 0 { 0 } else { o.c + (first * o.dtype_c.bytes()) as u64 },
            bias: if o.bias == 0 { 0 } else { o.bias + (first * sums) as u64 },
            columns: width.min(o.columns - first),
            ..*o
        })
    }
}

impl Method for Prepared {
    fn bytes(&self) -> usize {
        self.panel.bytes()
    }

    fn compile(&mut self, device: &Device, o: &Operands) -> Result<()> {
        self.panels(o).try_for_each(|panel| self.panel.compile(device, &panel))
    }

    unsafe fn launch(&mut self, device: &Device, stream: &Stream, o: &Operands) -> Result<()> {
        for panel in self.panels(o) {
            // SAFETY: the caller's promise, of some of the columns.
            unsafe { self.panel.launch(device, stream, &panel)? };
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use gustav_core::CsrView;

    use super::*;

    #[test]
    fn segments_in_tiles_are_a_list_and_use_fix_up() {
        let a = CsrView::<f32, u32, u32>::new(1, 1, &[0, 1], &[0], &[1.0]).expect("a matrix");
        let problem = Problem::spmm(&a).columns(128);
        let own = configs(&problem)[0];
        assert_eq!(own.panel(&problem).expect("a panel").columns, own.columns);
        let atomic = segmented::Reduction::Atomic;
        for refused in [
            Config { columns: 0, ..own },
            Config { segment: segmented::Config { longest: None, ..own.segment }, ..own },
            Config { segment: segmented::Config { reduction: atomic, ..own.segment }, ..own },
        ] {
            let error = refused.panel(&problem).expect_err("rows would be read as segments");
            assert!(error.to_string().contains("column-panel"), "{error}");
        }
    }
}
