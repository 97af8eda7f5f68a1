//! The table of published kernels and the newest cuSPARSE.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;

use gustav_report::{Ratios, Status};

use super::{GPU, UNSEEN, machines, product_of, records_of};

/// The suite that has them.
pub const SUITE: &str = "gpu-published";
/// The newest cuSPARSE.
const NEWEST: &str = "cusparse-newest";

/// Each peer of suite `gpu-published` in a line of its own, and what it got wrong, failed on, and does not offer.
pub fn table() -> String {
    let records = records_of(|name| name.starts_with(GPU.name) && name.contains(UNSEEN));
    let records: Vec<_> = records.into_iter().filter(|r| r.suite == SUITE).collect();
    let mut out = machines(&records);
    let head = "product | type | beside | matrices | geomean | worst | best | lost | wrong | failed | not offered";
    writeln!(out, "| {head} |").unwrap();
    writeln!(out, "|{}", "---|".repeat(head.split('|').count())).unwrap();
    let mut kinds: Vec<_> = Vec::new();
    for case in records.iter().map(|r| &r.case) {
        let kind = (product_of(case), case.dtype.clone());
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    for (product, dtype) in kinds {
        let own: Vec<_> = records
            .iter()
            .filter(|r| product_of(&r.case) == product && r.case.dtype == dtype)
            .collect();
        let ours: HashMap<_, _> =
            own.iter().filter(|r| r.is_ours()).map(|r| (&r.case.matrix, r.execute_ms)).collect();
        let engines: BTreeSet<_> =
            own.iter().filter(|r| !r.is_ours()).map(|r| r.engine.as_str()).collect();
        let (of_machine, others): (Vec<_>, Vec<_>) =
            engines.into_iter().partition(|engine| GPU.peers.contains(engine));
        let peers =
            [(GPU.beside, of_machine)].into_iter().chain(others.iter().map(|e| (*e, vec![*e])));
        let mut peers: Vec<_> = peers.collect();
        peers.sort_by_key(|(name, _)| (*name != NEWEST, *name != GPU.beside));
        for (name, engines) in peers {
            let of_peer: Vec<_> =
                own.iter().filter(|r| engines.contains(&r.engine.as_str())).collect();
            let mut best: BTreeMap<_, f64> = BTreeMap::new();
            for (matrix, ms) in of_peer.iter().filter_map(|r| Some((&r.case.matrix, r.execute_ms?)))
            {
                let least = best.entry(matrix).or_insert(ms);
                *least = least.min(ms);
            }
            let with_ours =
                best.iter().map(|(m, theirs)| (*m, ours.get(m).copied().flatten(), theirs));
            let (mut ratios, mut failed) = (Vec::new(), Vec::new());
            for (matrix, ours, theirs) in with_ours {
                match ours {
                    Some(ours) => ratios.push((theirs / ours, matrix.as_str())),
                    None => failed.push((0.0, matrix.as_str())),
                }
            }
            let name = if name == NEWEST { "newest cuSPARSE" } else { name };
            write!(out, "| {product} | {dtype} | {name} |").unwrap();
            let plain: Vec<_> = ratios.iter().map(|(ratio, _)| *ratio).collect();
            match Ratios::of(&plain).map(|r| r.with_failed(failed.len())) {
                Some(Ratios { count, geomean, worst, best, lost }) => {
                    let all = ratios.iter().chain(&failed);
                    let of_worst = all.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap().1;
                    let lost = 100.0 * lost;
                    write!(
                        out,
                        " {count} | {geomean:.2} | {worst:.2} ({of_worst}) | {best:.2} | {lost:.0}% |"
                    )
                    .unwrap();
                }
                None => write!(out, " 0 | | | | |").unwrap(),
            }
            for status in [Status::Wrong, Status::Failed, Status::Skipped] {
                match engines.len() {
                    1 => {
                        write!(out, " {} |", of_peer.iter().filter(|r| r.status == status).count())
                    }
                    // Of several algorithms the fastest right one counts.
                    _ => write!(out, " |"),
                }
                .unwrap();
            }
            writeln!(out).unwrap();
        }
    }
    out
}
