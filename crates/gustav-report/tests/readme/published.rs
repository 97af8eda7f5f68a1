//! The table of published kernels.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;

use gustav_report::{Case, Ratios, Record, Status};

use super::{GPU, OPERATIONS, UNSEEN, machines, product_of, records_of};

/// The suite that has them.
pub const SUITE: &str = "gpu-published";
/// The newest cuSPARSE.
pub const NEWEST: &str = "cusparse-newest";

/// Each published kernel of suite `gpu-published` in a line of its own, beside the products that it was measured on, and
/// what it got wrong, failed on, and does not offer.
pub fn table() -> String {
    let records = records_of(|name| name.starts_with(SUITE) && name.contains(UNSEEN));
    let is_published = |name: &str| name != NEWEST && !GPU.peers.contains(&name);
    let counts = |r: &Record| r.suite == SUITE && (r.is_ours() || is_published(&r.engine));
    let records: Vec<_> = records.into_iter().filter(counts).collect();
    let mut out = machines(&records);
    let head = "product | type | beside | patterns | geomean | worst | best | lost | wrong | failed | not offered";
    writeln!(out, "| {head} |").unwrap();
    writeln!(out, "|{}", "---|".repeat(head.split('|').count())).unwrap();
    let kind = |case: &Case| {
        let operation = OPERATIONS.iter().position(|o| *o == case.operation);
        (operation, case.columns, case.dtype.clone(), product_of(case))
    };
    let kinds: BTreeSet<_> = records.iter().map(|r| kind(&r.case)).collect();
    for (.., dtype, product) in kinds {
        let own: Vec<_> = records
            .iter()
            .filter(|r| product_of(&r.case) == product && r.case.dtype == dtype)
            .collect();
        let ours: HashMap<_, _> = own
            .iter()
            .filter(|r| r.is_ours())
            .map(|r| ((&r.case.matrix, r.group), r.execute_ms))
            .collect();
        let engines: BTreeSet<_> =
            own.iter().filter(|r| !r.is_ours()).map(|r| r.engine.as_str()).collect();
        for name in engines {
            let of_peer: Vec<_> = own.iter().filter(|r| r.engine == name).collect();
            // The latest measurement of a matrix, with ours of the same round.
            let mut latest = BTreeMap::new();
            for r in of_peer.iter().filter(|r| r.execute_ms.is_some()) {
                let found = latest.entry(&r.case.matrix).or_insert(r);
                if r.group >= found.group {
                    *found = r;
                }
            }
            let (mut ratios, mut failed) = (Vec::new(), Vec::new());
            let mut patterns = Vec::new();
            for (matrix, theirs) in latest {
                let ours = ours.get(&(matrix, theirs.group)).copied().flatten();
                match ours.zip(theirs.execute_ms) {
                    Some((ours, ms)) => {
                        ratios.push((ms / ours, matrix.as_str()));
                        patterns.push((theirs.case.pattern(), ms / ours));
                    }
                    None => failed.push((0.0, matrix.as_str())),
                }
            }
            write!(out, "| {product} | {dtype} | {name} |").unwrap();
            match Ratios::of_patterns(patterns).map(|r| r.with_failed(failed.len())) {
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
                let count = of_peer.iter().filter(|r| r.status == status).count();
                write!(out, " {count} |").unwrap();
            }
            writeln!(out).unwrap();
        }
    }
    out
}
