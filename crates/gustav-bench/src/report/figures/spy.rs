//! Where the nonzeros of the matrices lie.

use std::collections::{BTreeMap, BTreeSet};

use super::super::axis::Axis;
use super::super::figure::{Figure, Mark, Series, slug};
use super::super::site::Site;
use crate::Record;

/// Pictures that are drawn at most.
const MOST: usize = 24;

/// Pictures of matrices whose records hold one: of those that the summary counts first, the largest
/// of every kind, then the second largest, and so on.
pub(crate) fn all(sites: &[Site]) -> Vec<Figure> {
    let mut matrices = BTreeMap::<&str, &Record>::new();
    for r in sites.iter().flat_map(|s| &s.records).filter(|r| !r.spy.is_empty()) {
        matrices.insert(&r.case.matrix, r);
    }
    let counted: BTreeSet<String> = sites.iter().flat_map(counted).collect();
    let mut kinds = BTreeMap::<(bool, &str), Vec<&Record>>::new();
    for (name, r) in &matrices {
        kinds.entry((!counted.contains(*name), r.kind.as_str())).or_default().push(r);
    }
    let mut turns = Vec::new();
    for ((late, _), mut own) in kinds {
        own.sort_by_key(|r| std::cmp::Reverse(r.nnz));
        turns.extend(own.into_iter().enumerate().map(|(turn, r)| ((late, turn), r)));
    }
    turns.sort_by_key(|(turn, _)| *turn);
    let said = match matrices.len() {
        all if all > MOST => format!(
            " One of {MOST} drawn of the {all} pictures that the records hold: the largest of \
             every kind."
        ),
        _ => String::new(),
    };
    turns.into_iter().take(MOST).map(|(_, r)| picture(r, &said)).collect()
}

/// Matrices on which auto stands beside a peer that counts.
fn counted(site: &Site) -> Vec<String> {
    let ours = site.ours("auto");
    let beside = ours.iter().filter(|c| site.against(c).is_some());
    beside.map(|c| c.ours.case.matrix.clone()).collect()
}

fn picture(r: &Record, said: &str) -> Figure {
    let name = &r.case.matrix;
    let digit = |c: char| f64::from(c.to_digit(10).unwrap_or(0)) / 9.0;
    let bins = r.spy.iter().map(|line| line.chars().map(digit).collect()).collect();
    Figure {
        id: slug(&format!("spy {name}")),
        title: if r.kind.is_empty() { name.clone() } else { format!("{name} ({})", r.kind) },
        caption: format!(
            "{} x {}, {} nonzeros. The stronger its colour, the fuller a bin, on a logarithmic \
             scale.{said}",
            r.rows, r.cols, r.nnz
        ),
        x: Axis::extent("column", r.cols),
        y: Axis::downwards("row", r.rows),
        series: vec![Series { name: String::new(), mark: Mark::Bins(bins) }],
        rules: Vec::new(),
    }
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
        let figures = all(&Site::all(&records));
        assert_eq!(figures.len(), MOST);
        let ids: Vec<_> = figures.iter().take(3).map(|f| f.id.as_str()).collect();
        assert_eq!(ids, ["spy-net0", "spy-graph0", "spy-grid39"]);
        assert!(figures[0].caption.contains("24 drawn of the 42"), "{}", figures[0].caption);
    }
}
