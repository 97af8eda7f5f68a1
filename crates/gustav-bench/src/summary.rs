//! What records say: geomean, worst, best and share lost, never an average alone.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::{Case, Record, Status, programs, study};

/// The peers that the bars are set against.
pub const VENDORS: [&str; 2] = ["mkl", "graphblas"];

/// Ratios of times, peer over ours: above 1 we are faster.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Ratios {
    /// Cases with a ratio.
    pub count: usize,
    /// Geometric mean.
    pub geomean: f64,
    /// Smallest.
    pub worst: f64,
    /// Largest.
    pub best: f64,
    /// Share of the cases below 1.
    pub lost: f64,
}

impl Ratios {
    /// The ratios of one table line; `None` when there are none.
    pub fn of(ratios: &[f64]) -> Option<Self> {
        let count = ratios.len();
        if count == 0 {
            return None;
        }
        let logs: f64 = ratios.iter().map(|r| r.ln()).sum();
        let lost = ratios.iter().filter(|r| **r < 1.0).count();
        Some(Ratios {
            count,
            geomean: (logs / count as f64).exp(),
            worst: ratios.iter().copied().fold(f64::INFINITY, f64::min),
            best: ratios.iter().copied().fold(0.0, f64::max),
            lost: lost as f64 / count as f64,
        })
    }

    /// The same with cases that ours failed on and a peer did not: they are lost, and the worst
    /// is 0. The geometric mean is that of the others.
    #[must_use]
    pub fn with_failed(self, failed: usize) -> Self {
        let count = self.count + failed;
        let lost = (self.lost * self.count as f64 + failed as f64) / count as f64;
        let worst = if failed > 0 { 0.0 } else { self.worst };
        Ratios { count, lost, worst, ..self }
    }
}

/// One of our engines beside the peers that took turns with it.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison<'a> {
    /// Ours.
    pub ours: &'a Record,
    /// The peers' times by name, right ones only.
    pub peers: BTreeMap<&'a str, f64>,
    /// Their times with warm caches.
    pub warm_peers: BTreeMap<&'a str, f64>,
    /// Their times of single executions, where their others are of executions that follow one another.
    pub single_peers: BTreeMap<&'a str, f64>,
}

impl Comparison<'_> {
    /// Whether ours has no time where one of `names` is right.
    pub fn failed_beside(&self, names: &[&str]) -> bool {
        self.ours.execute_ms.is_none() && names.iter().any(|n| self.peers.contains_key(n))
    }

    /// Time of the fastest of `names` over ours.
    pub fn against(&self, names: &[&str]) -> Option<f64> {
        let best = names.iter().filter_map(|n| self.peers.get(n)).copied().reduce(f64::min)?;
        Some(best / self.ours.execute_ms?)
    }

    /// The same with warm caches.
    pub fn against_warm(&self, names: &[&str]) -> Option<f64> {
        let times = names.iter().filter_map(|n| self.warm_peers.get(n));
        Some(times.copied().reduce(f64::min)? / self.ours.warm_ms()?)
    }

    /// The same of single executions.
    pub fn against_single(&self, names: &[&str]) -> Option<f64> {
        let times = names.iter().filter_map(|n| self.single_peers.get(n));
        Some(times.copied().reduce(f64::min)? / self.ours.single_ms?)
    }
}

/// Of which caches the ratios to the best of `names` are: `cold, hot 1.50` with the geomean of the
/// others, `hot` where nothing else was measured; `single 1.40` with that of single executions.
pub fn caches(comparisons: &[&Comparison<'_>], names: &[&str]) -> String {
    let told = || comparisons.iter().filter(|c| c.against(names).is_some());
    let cold = told().filter(|c| c.ours.is_cold()).count();
    let warm: Vec<_> = told().filter_map(|c| c.against_warm(names)).collect();
    let warm = Ratios::of(&warm).map_or(String::new(), |r| format!(", hot {:.2}", r.geomean));
    let single: Vec<_> = told().filter_map(|c| c.against_single(names)).collect();
    let single =
        Ratios::of(&single).map_or(String::new(), |r| format!(", single {:.2}", r.geomean));
    match (cold, told().count()) {
        (0, _) => "hot".into(),
        (cold, all) if cold == all => format!("cold{single}{warm}"),
        (cold, all) => format!("{cold} of {all} cold{single}{warm}"),
    }
}

/// The latest measurement of every case by `algorithm` of ours, with its peers.
pub fn compare<'a>(records: &'a [Record], algorithm: &str) -> Vec<Comparison<'a>> {
    compare_beside(records, algorithm, |_| true)
}

/// The same, where rounds in which a peer of `counts` was right go before others, however late:
/// rounds without it say nothing of it.
pub(crate) fn compare_beside<'a>(
    records: &'a [Record],
    algorithm: &str,
    counts: impl Fn(&str) -> bool,
) -> Vec<Comparison<'a>> {
    let mut groups = BTreeMap::<(&Case, u64), BTreeMap<&str, &Record>>::new();
    for r in records.iter().filter(|r| r.engine != "gustav" && r.status == Status::Ok) {
        if r.execute_ms.is_some() {
            groups.entry((&r.case, r.group)).or_default().insert(&r.engine, r);
        }
    }
    let rank = |r: &Record| {
        let peers = groups.get(&(&r.case, r.group));
        (peers.is_some_and(|peers| peers.keys().any(|name| counts(name))), r.group)
    };
    let mut latest = BTreeMap::<&Case, &Record>::new();
    for r in records.iter().filter(|r| r.engine == "gustav" && r.algorithm == algorithm) {
        let kept = latest.entry(&r.case).or_insert(r);
        if rank(r) >= rank(kept) {
            *kept = r;
        }
    }
    let beside = |ours: &'a Record| {
        let peers = || groups.get(&(&ours.case, ours.group)).into_iter().flatten();
        let of = |time: fn(&Record) -> Option<f64>| {
            peers().filter_map(|(name, r)| Some((*name, time(r)?))).collect()
        };
        let (peers, warm_peers) = (of(|r| r.execute_ms), of(Record::warm_ms));
        Comparison { ours, peers, warm_peers, single_peers: of(|r| r.single_ms) }
    };
    latest.into_values().map(beside).collect()
}

// Cases with fewer nonzeros than this are no bar's business, but are shown.
const LARGE: usize = 100_000;
const NEVER_BELOW: f64 = 0.8;

/// A bar of the project: geomean against the best vendor, over one operation.
struct Bar {
    title: &'static str,
    operation: &'static str,
    sorted: bool,
    at_least: f64,
    aim: Option<f64>,
}

const BARS: [Bar; 4] = [
    Bar { title: "SpMM", operation: "spmm", sorted: false, at_least: 1.3, aim: Some(1.5) },
    Bar { title: "SpMV, planned", operation: "spmv", sorted: false, at_least: 1.0, aim: None },
    Bar {
        title: "SpGEMM, unsorted",
        operation: "spgemm",
        sorted: false,
        at_least: 1.3,
        aim: Some(1.7),
    },
    Bar {
        title: "SpGEMM, sorted",
        operation: "spgemm",
        sorted: true,
        at_least: 2.0,
        aim: Some(3.0),
    },
];

const CRATE_BARS: [(&str, f64); 2] = [("sprs", 2.0), ("faer", 3.0)];

/// The whole summary as text: tables, the losses, the bars and what failed, first of the CPU, then
/// of GPUs, then programs.
pub fn summary(records: &[Record]) -> String {
    let mut out = String::new();
    let (around, products): (Vec<Record>, Vec<Record>) =
        records.iter().cloned().partition(programs::is_program);
    let (there, here): (Vec<Record>, Vec<Record>) =
        products.into_iter().partition(|r| r.gpu.is_some());
    if !here.is_empty() {
        let comparisons = compare(&here, "auto");
        tables(&mut out, &comparisons);
        losses(&mut out, &comparisons);
        bars(&mut out, &comparisons);
    }
    if !there.is_empty() {
        out += &crate::cuda::summary(&there);
    }
    if !around.is_empty() {
        out += &programs::summary(&around);
    }
    if records.iter().any(|r| r.algorithm == "shared-row+csr") {
        out += &format!("\n{}", study::tables(records));
    }
    faults(&mut out, records);
    out
}

const HEADER: &str = "cases  geomean   worst    best   lost  caches";

fn line(out: &mut String, title: &str, ratios: &[f64], failed: usize, note: &str) {
    if let Some(r) = Ratios::of(ratios) {
        let r = r.with_failed(failed);
        let Ratios { count, geomean, worst, best, lost } = r;
        let _ = writeln!(
            out,
            "{title:<28} {count:>5} {geomean:>8.2} {worst:>7.2} {best:>7.2} {:>5.0}%{note}",
            lost * 100.0
        );
    }
}

fn tables(out: &mut String, comparisons: &[Comparison<'_>]) {
    let _ = writeln!(out, "Time of the best of {} over ours", VENDORS.join(" and "));
    let _ = writeln!(out, "{:<28} {HEADER}", "");
    let mut groups = BTreeMap::<_, Vec<&Comparison<'_>>>::new();
    for c in comparisons {
        let case = &c.ours.case;
        let key = (&case.operation, case.sorted, &case.dtype, case.columns);
        groups.entry(key).or_default().push(c);
    }
    for ((operation, sorted, dtype, columns), own) in &groups {
        let ratios: Vec<_> = own.iter().filter_map(|c| c.against(&VENDORS)).collect();
        let failed = own.iter().filter(|c| c.failed_beside(&VENDORS)).count();
        let note = format!("  {}", caches(own, &VENDORS));
        let detail = match operation.as_str() {
            "spmm" => format!(" n={columns}"),
            "spgemm" => (if *sorted { " sorted" } else { " unsorted" }).to_owned(),
            _ => String::new(),
        };
        line(out, &format!("{operation} {dtype}{detail}"), &ratios, failed, &note);
    }
    for (name, _) in
        CRATE_BARS.iter().chain(&[("nalgebra-sparse", 0.0), ("scipy", 0.0), ("torch", 0.0)])
    {
        let mut by_operation = BTreeMap::<_, Vec<f64>>::new();
        for c in comparisons {
            by_operation.entry(&c.ours.case.operation).or_default().extend(c.against(&[name]));
        }
        for (operation, ratios) in &by_operation {
            line(out, &format!("{operation} against {name}"), ratios, 0, "");
        }
    }
}

fn losses(out: &mut String, comparisons: &[Comparison<'_>]) {
    let mut lost: Vec<_> =
        comparisons.iter().filter_map(|c| Some((c.against(&VENDORS)?, c))).collect();
    lost.retain(|(ratio, _)| *ratio < 1.0);
    lost.sort_by(|a, b| a.0.total_cmp(&b.0));
    if comparisons.iter().all(|c| c.against(&VENDORS).is_none()) {
        let _ = writeln!(out, "\nNo ratios: neither {} took part", VENDORS.join(" nor "));
        return;
    }
    let _ = writeln!(out, "\nLosses: {} of {}", lost.len(), comparisons.len());
    for (ratio, c) in lost {
        let r = c.ours;
        let mark = match (ratio < NEVER_BELOW, r.nnz >= LARGE) {
            (true, true) => "!!",
            (true, false) => "! ",
            _ => "  ",
        };
        let times = c.peers.iter().filter(|(n, _)| VENDORS.contains(n));
        let times: Vec<_> = times.map(|(n, ms)| format!("{n} {ms:.4}")).collect();
        let _ = writeln!(
            out,
            "{mark} {ratio:>5.2}  {:<52} nnz {:>8}  ours {:.4} ms ({})  {}",
            r.case.to_string(),
            r.nnz,
            r.execute_ms.unwrap_or(f64::NAN),
            r.chosen.as_deref().unwrap_or("?"),
            times.join("  ")
        );
    }
    let _ = writeln!(
        out,
        "(! below {NEVER_BELOW}, !! below {NEVER_BELOW} with at least {LARGE} nonzeros)"
    );
}

fn bars(out: &mut String, comparisons: &[Comparison<'_>]) {
    let told: Vec<_> = VENDORS.into_iter().chain(CRATE_BARS.map(|c| c.0)).collect();
    if comparisons.iter().all(|c| c.against(&told).is_none()) {
        return;
    }
    let _ = writeln!(out, "\nBars");
    let mut verdict = |title: &str, found: f64, at_least: f64, aim: Option<f64>, note: &str| {
        let word = match aim {
            _ if found < at_least => "NOT MET",
            Some(aim) if found >= aim => "met, aim too",
            _ => "met",
        };
        let aim = aim.map(|a| format!(", aim {a}")).unwrap_or_default();
        let _ = writeln!(out, "{title:<28} {found:>6.2}  at least {at_least}{aim}: {word}{note}");
    };
    for Bar { title, operation, sorted, at_least, aim } in BARS {
        let of_bar = |c: &&Comparison<'_>| {
            c.ours.case.operation == operation && c.ours.case.sorted == sorted
        };
        let own: Vec<_> = comparisons.iter().filter(of_bar).collect();
        let ratios: Vec<_> = own.iter().filter_map(|c| c.against(&VENDORS)).collect();
        if let Some(r) = Ratios::of(&ratios) {
            let note = format!("  ({} cases, {})", r.count, caches(&own, &VENDORS));
            verdict(title, r.geomean, at_least, aim, &note);
            let large = own.iter().filter(|c| c.ours.nnz >= LARGE);
            let large: Vec<_> = large.filter_map(|c| c.against(&VENDORS)).collect();
            if let Some(large) = Ratios::of(&large) {
                let below = own
                    .iter()
                    .filter(|c| c.ours.nnz >= LARGE)
                    .filter(|c| c.against(&VENDORS).is_some_and(|r| r < NEVER_BELOW))
                    .count();
                let note = format!("  ({below} of {} cases below)", large.count);
                verdict("  worst of 100k nonzeros up", large.worst, NEVER_BELOW, None, &note);
            }
        }
    }
    for (name, at_least) in CRATE_BARS {
        let ratios: Vec<_> = comparisons.iter().filter_map(|c| c.against(&[name])).collect();
        if let Some(r) = Ratios::of(&ratios) {
            let note = format!("  ({} cases)", r.count);
            verdict(&format!("over {name}"), r.geomean, at_least, None, &note);
        }
    }
}

fn faults(out: &mut String, records: &[Record]) {
    let bad: Vec<_> = records.iter().filter(|r| r.status != Status::Ok).collect();
    let _ = writeln!(out, "\nWrong, failed or skipped: {} of {}", bad.len(), records.len());
    for r in bad {
        let word = match r.status {
            Status::Wrong => "WRONG",
            Status::Failed => "failed",
            _ => "skipped",
        };
        let why = r.message.as_deref().unwrap_or("");
        let _ = writeln!(out, "{word:<8} {:<20} {}: {why}", r.engine_name(), r.case);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    fn set(case: &str, group: u64, ours: f64, mkl: f64, grb: f64) -> Vec<Record> {
        let one = |engine: &str, algorithm: &str, ms| {
            let mut r = record(case, engine, algorithm);
            (r.group, r.execute_ms) = (group, Some(ms));
            r
        };
        vec![
            one("gustav", "auto", ours),
            one("mkl", "default", mkl),
            one("graphblas", "default", grb),
        ]
    }

    #[test]
    fn ratios_of_two_and_a_half_have_mean_one() {
        let r = Ratios::of(&[2.0, 0.5]).unwrap();
        assert!((r.geomean - 1.0).abs() < 1e-12);
        assert_eq!((r.count, r.worst, r.best, r.lost), (2, 0.5, 2.0, 0.5));
        let r = r.with_failed(2);
        assert_eq!((r.count, r.worst, r.lost, r.geomean), (4, 0.0, 0.75, 1.0));
        assert_eq!(Ratios::of(&[]), None);
    }

    #[test]
    fn the_best_vendor_counts_and_later_groups_replace_earlier_ones() {
        let mut records = set("a", 1, 1.0, 9.0, 8.0);
        records.extend(set("a", 2, 2.0, 3.0, 5.0));
        records.extend(set("b", 1, 4.0, 3.0, 2.0));
        let c = compare(&records, "auto");
        let ratios: Vec<_> = c.iter().map(|c| c.against(&VENDORS).unwrap()).collect();
        assert_eq!(ratios, [1.5, 0.5]);
        assert_eq!(c[0].against(&["graphblas"]), Some(2.5));
        assert_eq!(c[0].against(&["sprs"]), None);
    }

    #[test]
    fn ratios_say_of_which_caches_they_are() {
        let mut records = set("a", 1, 1.0, 9.0, 8.0);
        let told = |records: &[Record]| {
            let found = compare(records, "auto");
            caches(&found.iter().collect::<Vec<_>>(), &VENDORS)
        };
        assert_eq!(told(&records), "hot");
        for (r, ms) in records.iter_mut().zip([0.5, 2.0, 3.0]) {
            r.hot_ms = Some(ms);
        }
        assert_eq!(compare(&records, "auto")[0].against(&VENDORS), Some(8.0));
        assert_eq!(told(&records), "cold, hot 4.00");
        for (r, ms) in records.iter_mut().zip([2.0, 3.0, 4.0]) {
            r.single_ms = Some(ms);
        }
        assert_eq!(told(&records), "cold, single 1.50, hot 4.00");
        for r in &mut records {
            r.single_ms = None;
        }
        records.extend(set("b", 1, 1.0, 1.0, 1.0));
        assert_eq!(told(&records), "1 of 2 cold, hot 2.00");
        assert!(summary(&records).contains("1 of 2 cold, hot 2.00"));
    }

    #[test]
    fn a_wrong_peer_is_no_peer_and_is_named() {
        let mut records = set("a", 1, 1.0, 0.5, 2.0);
        records[1].status = Status::Wrong;
        records[1].execute_ms = None;
        let text = summary(&records);
        assert_eq!(compare(&records, "auto")[0].against(&VENDORS), Some(2.0));
        assert!(text.contains("WRONG    mkl"), "{text}");
        assert!(text.contains("Losses: 0 of 1"), "{text}");
    }

    #[test]
    fn a_loss_is_listed_with_its_times_and_the_bar_is_not_met() {
        let text = summary(&set("a", 1, 2.0, 1.0, 3.0));
        assert!(text.contains("!!  0.50  a spmm f32 n=8"), "{text}");
        assert!(text.contains("graphblas 3.0000  mkl 1.0000"), "{text}");
        assert!(
            text.contains("SpMM                           0.50  at least 1.3, aim 1.5: NOT MET"),
            "{text}"
        );
    }
}
