//! Spy plots: the positions of the nonzeros of matrices.

use std::collections::{BTreeMap, BTreeSet};

use crate::Record;
use crate::analysis::{Platform, grouped};
use crate::draw::{Axis, Figure, Mark, one};

/// Most spy plots of a report.
const MOST: usize = 24;

/// Spy plots of matrices whose records have one: first the largest matrix of every kind, then the
/// second largest, and so on; matrices of the summary before others.
pub(super) fn all(platforms: &[Platform]) -> Vec<Figure> {
    let records = platforms.iter().flat_map(|p| &p.records).filter(|r| !r.spy.is_empty());
    let matrices: BTreeMap<_, _> = records.map(|r| (r.case.matrix.as_str(), r)).collect();
    let counted: BTreeSet<String> = platforms.iter().flat_map(counted).collect();
    let kinds = matrices.iter().map(|(name, r)| ((!counted.contains(*name), &r.kind), *r));
    let mut ranked = Vec::new();
    for ((late, _), mut own) in grouped(kinds) {
        own.sort_by_key(|r| std::cmp::Reverse(r.nnz));
        ranked.extend(own.into_iter().enumerate().map(|(rank, r)| ((late, rank), r)));
    }
    ranked.sort_by_key(|(rank, _)| *rank);
    let said = match matrices.len() {
        all if all > MOST => format!(
            " One of {MOST} drawn of the {all} pictures that the records hold: the largest of \
             every kind."
        ),
        _ => String::new(),
    };
    ranked.into_iter().take(MOST).map(|(_, r)| picture(r, &said)).collect()
}

/// Matrices on which auto is compared with a reference peer.
fn counted(platform: &Platform) -> Vec<String> {
    let ours = platform.ours("auto");
    let beside = ours.iter().filter(|c| platform.against(c).is_some());
    beside.map(|c| c.ours.case.matrix.clone()).collect()
}

fn picture(r: &Record, said: &str) -> Figure {
    let name = &r.case.matrix;
    let digit = |c: char| f64::from(c.to_digit(10).unwrap_or(0)) / 9.0;
    let bins = r.spy.iter().map(|line| line.chars().map(digit).collect()).collect();
    Figure::new(
        format!("spy {name}"),
        if r.kind.is_empty() { name.clone() } else { format!("{name} ({})", r.kind) },
        format!(
            "{} x {}, {} nonzeros. The stronger the colour, the more nonzeros in the bin (logarithmic \
             scale).{said}",
            r.rows, r.cols, r.nnz
        ),
        [Axis::extent("column", r.cols), Axis::downwards("row", r.rows)],
        one(Mark::Bins(bins)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    #[test]
    fn every_kind_has_its_largest_and_the_rest_is_counted() {
        let one = |kind: &str, k: usize, engine: &str| Record {
            kind: kind.into(),
            nnz: 100 + k,
            spy: vec!["90".into(), "01".into()],
            ..record(&format!("{kind}{k}"), engine, "auto")
        };
        let mut records: Vec<_> = (0..40).map(|k| one("grid", k, "gustav")).collect();
        records.extend([one("graph", 0, "gustav"), one("net", 0, "gustav"), one("net", 0, "mkl")]);
        let figures = all(&Platform::all(&records));
        assert_eq!(figures.len(), MOST);
        let ids: Vec<_> = figures.iter().take(3).map(|f| f.id.as_str()).collect();
        assert_eq!(ids, ["spy-net0", "spy-graph0", "spy-grid39"]);
        assert!(figures[0].caption.contains("24 drawn of the 42"), "{}", figures[0].caption);
    }
}
