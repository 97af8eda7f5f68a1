//! Where the nonzeros of the matrices lie.

use std::collections::BTreeMap;

use super::super::axis::Axis;
use super::super::figure::{Figure, Mark, Series, slug};
use super::super::site::Site;
use crate::Record;

/// A picture of every matrix whose records hold one.
pub(crate) fn all(sites: &[Site]) -> Vec<Figure> {
    let mut matrices = BTreeMap::<&str, &Record>::new();
    for r in sites.iter().flat_map(|s| &s.records).filter(|r| !r.spy.is_empty()) {
        matrices.insert(&r.case.matrix, r);
    }
    matrices.into_iter().map(|(name, r)| picture(name, r)).collect()
}

fn picture(name: &str, r: &Record) -> Figure {
    let digit = |c: char| f64::from(c.to_digit(10).unwrap_or(0)) / 9.0;
    let bins = r.spy.iter().map(|line| line.chars().map(digit).collect()).collect();
    Figure {
        id: slug(&format!("spy {name}")),
        title: format!("{name} ({})", r.kind),
        caption: format!(
            "{} x {}, {} nonzeros. The darker a bin, the fuller it is, on a logarithmic scale.",
            r.rows, r.cols, r.nnz
        ),
        x: Axis::extent("column", r.cols),
        y: Axis::downwards("row", r.rows),
        series: vec![Series { name: String::new(), mark: Mark::Bins(bins) }],
        rules: Vec::new(),
    }
}
