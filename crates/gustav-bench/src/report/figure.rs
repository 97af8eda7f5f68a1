//! A figure as data: axes and what is drawn between them.

use super::axis::{Axis, Scale};

/// A figure, before anything is drawn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figure {
    /// Name of its files and anchor.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// How to read it, and what was left out.
    pub caption: String,
    /// To the right.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// What is drawn.
    pub series: Vec<Series>,
    /// Marked values of y with their names.
    pub rules: Vec<(f64, String)>,
}

/// Marks of one meaning and colour.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series {
    /// What they mean; empty leaves them out of the legend.
    pub name: String,
    /// What is drawn.
    pub mark: Mark,
}

/// What is drawn of a series.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Mark {
    /// A point for each (x, y).
    Points(Vec<(f64, f64)>),
    /// Points joined by a line.
    Line(Vec<(f64, f64)>),
    /// A line of steps, for distributions.
    Steps(Vec<(f64, f64)>),
    /// A limit: a dashed line without points.
    Limit(Vec<(f64, f64)>),
    /// A bar from zero at each named x.
    Bars(Vec<(f64, f64)>),
    /// At each named x the 5th, 25th, 50th, 75th and 95th percentile.
    Boxes(Vec<(f64, [f64; 5])>),
    /// At each named y a stretch from one x to another.
    Stretches(Vec<(f64, f64, f64)>),
    /// In the cell of each named (x, y) a shade from 0 to 1 with a text.
    Cells(Vec<(f64, f64, f64, String)>),
    /// Shades from 0 to 1 of equal bins that fill the figure, line by line from the top.
    Bins(Vec<Vec<f64>>),
}

impl Figure {
    /// Values along x that must be visible.
    pub fn xs(&self) -> Vec<f64> {
        let of = |s: &Series| match &s.mark {
            Mark::Points(p) | Mark::Line(p) | Mark::Steps(p) | Mark::Limit(p) | Mark::Bars(p) => {
                p.iter().map(|p| p.0).collect()
            }
            Mark::Boxes(b) => b.iter().map(|b| b.0).collect(),
            Mark::Stretches(s) => s.iter().flat_map(|s| [s.1, s.2]).collect(),
            Mark::Cells(c) => c.iter().map(|c| c.0).collect::<Vec<_>>(),
            Mark::Bins(_) => Vec::new(),
        };
        self.series.iter().flat_map(of).collect()
    }

    /// Values along y that must be visible.
    pub fn ys(&self) -> Vec<f64> {
        let of = |s: &Series| match &s.mark {
            Mark::Points(p) | Mark::Line(p) | Mark::Steps(p) | Mark::Limit(p) | Mark::Bars(p) => {
                p.iter().map(|p| p.1).collect()
            }
            Mark::Boxes(b) => b.iter().flat_map(|b| b.1).collect(),
            Mark::Stretches(s) => s.iter().map(|s| s.0).collect(),
            Mark::Cells(c) => c.iter().map(|c| c.1).collect::<Vec<_>>(),
            Mark::Bins(_) => Vec::new(),
        };
        let rules = self.rules.iter().map(|r| r.0);
        self.series.iter().flat_map(of).chain(rules).collect()
    }

    /// Number of its marks.
    pub fn size(&self) -> usize {
        let of = |s: &Series| match &s.mark {
            Mark::Points(p) | Mark::Line(p) | Mark::Steps(p) | Mark::Limit(p) | Mark::Bars(p) => {
                p.len()
            }
            Mark::Boxes(boxes) => boxes.len(),
            Mark::Stretches(stretches) => stretches.len(),
            Mark::Cells(cells) => cells.len(),
            Mark::Bins(bins) => bins.iter().flatten().filter(|b| **b > 0.0).count(),
        };
        self.series.iter().map(of).sum()
    }

    /// Lines to leave for marks: figures with named lines grow with them.
    pub fn lines(&self) -> usize {
        match &self.y.scale {
            Scale::Names(names) => names.len(),
            _ => 0,
        }
    }
}

/// A text as the part of a file name: lower case, words joined by hyphens.
pub(crate) fn slug(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let text: String = text.chars().map(plain).collect();
    text.split('-').filter(|w| !w.is_empty()).collect::<Vec<_>>().join("-")
}

/// The share of `values` up to each of them, as the corners of a distribution function.
pub(crate) fn distribution(mut values: Vec<f64>) -> Vec<(f64, f64)> {
    values.sort_by(f64::total_cmp);
    let count = values.len() as f64;
    values.into_iter().enumerate().map(|(k, v)| (v, 100.0 * (k + 1) as f64 / count)).collect()
}

/// The five percentiles of a box.
pub(crate) fn percentiles(values: &[f64]) -> Option<[f64; 5]> {
    let mut found = [0.0; 5];
    for (at, q) in found.iter_mut().zip([0.05, 0.25, 0.5, 0.75, 0.95]) {
        *at = crate::timing::quantile(values, q)?;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_file_names() {
        assert_eq!(slug("NVIDIA H200: SpMM, f32 (n = 64)"), "nvidia-h200-spmm-f32-n-64");
    }

    #[test]
    fn a_distribution_ends_at_all() {
        assert_eq!(distribution(vec![3.0, 1.0]), [(1.0, 50.0), (3.0, 100.0)]);
        assert_eq!(percentiles(&[1.0, 2.0, 3.0]).unwrap()[2], 2.0);
        assert_eq!(percentiles(&[]), None);
    }
}
