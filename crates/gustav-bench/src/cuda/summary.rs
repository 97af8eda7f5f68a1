//! What records of a GPU say: ours beside the best of cuSPARSE's algorithms, with the limits.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{PEERS, PROCESSES, WHOLE};
use crate::summary::{Ratios, compare};
use crate::threshold::thresholds;
use crate::{Comparison, Record};

const AUTO: &str = "auto";

/// Geomean that the project asks of `auto`, with a plan where B is dense, for so many columns (1 is
/// a vector, 0 a sparse matrix), and the least ratio on any matrix.
fn bar(dtype: &str, columns: usize) -> (f64, f64) {
    let geomean = match (dtype, columns) {
        (_, 0) => return (4.5, 1.4),
        (_, 1) => 1.15,
        ("f64", _) => 1.4,
        (_, ..=64) => 1.6,
        _ => 1.5,
    };
    (geomean, 0.95)
}

/// Tables, losses and bars as text.
pub(crate) fn summary(records: &[Record]) -> String {
    let mut out = String::new();
    let auto = compare(records, AUTO);
    if let Some(gpu) = records.iter().find_map(|r| r.gpu.as_ref()) {
        let _ = writeln!(
            out,
            "{}, {} multiprocessors, copies at {:.2} TB/s, L2 gives {:.2} TB/s",
            gpu.name,
            gpu.multiprocessors,
            gpu.copy_bandwidth / 1e12,
            gpu.l2_bandwidth / 1e12,
        );
    }
    against_vendor(&mut out, &auto);
    against_processes(&mut out, &auto);
    algorithms(&mut out, records);
    super::orders::orders(&mut out, records);
    masks(&mut out, records);
    limits(&mut out, &auto);
    memory(&mut out, records, &auto);
    plans(&mut out, records, &auto);
    reuse(&mut out, &auto);
    chosen(&mut out, records, &auto);
    threshold(&mut out, records);
    losses(&mut out, &auto);
    out
}

/// Comparisons by operation, type and columns.
fn groups<'c, 'r>(
    all: &'c [Comparison<'r>],
) -> BTreeMap<(&'c str, &'c str, usize), Vec<&'c Comparison<'r>>> {
    let mut groups = BTreeMap::<_, Vec<_>>::new();
    for c in all {
        let case = &c.ours.case;
        let key = (case.operation.as_str(), case.dtype.as_str(), case.columns);
        groups.entry(key).or_default().push(c);
    }
    groups
}

pub(super) fn line(out: &mut String, title: &str, ratios: &[f64], note: &str) {
    if let Some(Ratios { count, geomean, worst, best, lost }) = Ratios::of(ratios) {
        let lost = lost * 100.0;
        let _ = writeln!(
            out,
            "{title:<30} {count:>5} {geomean:>8.2} {worst:>7.2} {best:>7.2} {lost:>5.0}%{note}"
        );
    }
}

pub(super) fn header(out: &mut String, title: &str) {
    let _ = writeln!(out, "\n{title}\n{:<30} cases  geomean   worst    best   lost", "");
}

fn against_vendor(out: &mut String, auto: &[Comparison<'_>]) {
    header(out, "Time of the best of cuSPARSE's algorithms over auto, cold caches");
    for ((operation, dtype, n), own) in groups(auto) {
        let ratios: Vec<_> = own.iter().filter_map(|c| c.against(&PEERS)).collect();
        let title = format!("{operation} {dtype} n={n}");
        let (at_least, never_below) = bar(dtype, n);
        let Some(found) = Ratios::of(&ratios) else { continue };
        let word = if found.geomean < at_least { "NOT MET" } else { "met" };
        let worst = if found.worst < never_below { "NOT MET" } else { "met" };
        let note = format!("  at least {at_least}: {word}; worst {never_below}: {worst}");
        line(out, &title, &ratios, &note);
        let single: Vec<_> = own.iter().filter_map(|c| c.against_single(&PEERS)).collect();
        line(out, &format!("{title}, single"), &single, "");
    }
}

/// Beside libraries that are called from Python.
fn against_processes(out: &mut String, auto: &[Comparison<'_>]) {
    if !auto.iter().any(|c| c.against(&PROCESSES).is_some()) {
        return;
    }
    header(out, "Time of libraries called from Python over auto, cold caches");
    for ((operation, dtype, n), own) in groups(auto) {
        for name in PROCESSES {
            let ratios: Vec<_> = own.iter().filter_map(|c| c.against(&[name])).collect();
            line(out, &format!("{operation} {dtype} n={n} {name}"), &ratios, "");
        }
    }
}

fn algorithms(out: &mut String, records: &[Record]) {
    header(out, "The same for every algorithm, all types and columns together");
    let ours = records.iter().filter(|r| r.engine == "gustav").map(|r| r.algorithm.as_str());
    for name in ours.collect::<std::collections::BTreeSet<_>>() {
        let all = compare(records, name);
        let ratios: Vec<_> = all.iter().filter_map(|c| c.against(&PEERS)).collect();
        line(out, name, &ratios, "");
    }
}

fn limits(out: &mut String, auto: &[Comparison<'_>]) {
    header(out, "Limit over the time of auto (above 1 is possible where caches help)");
    for ((operation, dtype, n), own) in groups(auto) {
        let of = |limit: fn(&Record) -> Option<f64>, time: fn(&Record) -> Option<f64>| {
            let ratio = |c: &&Comparison<'_>| Some(limit(c.ours)? / time(c.ours)?);
            own.iter().filter_map(ratio).collect::<Vec<_>>()
        };
        let title = format!("{operation} {dtype} n={n}");
        line(out, &format!("{title} floor"), &of(|r| r.floor_ms, |r| r.execute_ms), "");
        line(out, &format!("{title} floor, single"), &of(|r| r.floor_ms, |r| r.single_ms), "");
        line(out, &format!("{title} floor, hot"), &of(|r| r.floor_ms, |r| r.hot_ms), "");
        line(out, &format!("{title} gather"), &of(|r| r.gather_ms, |r| r.execute_ms), "");
    }
}

/// Products under a mask beside all of C.
fn masks(out: &mut String, records: &[Record]) {
    let whole: BTreeMap<_, _> = records
        .iter()
        .filter(|r| r.algorithm == WHOLE)
        .filter_map(|r| Some(((r.group, &r.case), r.execute_ms?)))
        .collect();
    let mut ratios = BTreeMap::<_, Vec<_>>::new();
    for r in records.iter().filter(|r| r.algorithm != WHOLE) {
        if let Some(ratio) = whole.get(&(r.group, &r.case)).zip(r.execute_ms) {
            let key = (&r.case.mask, &r.case.dtype, r.engine_name());
            ratios.entry(key).or_default().push(ratio.0 / ratio.1);
        }
    }
    if ratios.is_empty() {
        return;
    }
    header(out, "Time of all of C over a product under a mask");
    for ((mask, dtype, engine), own) in ratios {
        line(out, &format!("{mask} {dtype} {engine}"), &own, "");
    }
}

/// Peak memory over what an SpGEMM is allowed, of auto and of the peers; the worst is the largest.
fn memory(out: &mut String, records: &[Record], auto: &[Comparison<'_>]) {
    let part = |r: &Record| Some(r.peak_memory? as f64 / r.memory_bar? as f64);
    if !auto.iter().any(|c| part(c.ours).is_some()) {
        return;
    }
    let title = "Peak memory over the operands' and twice C's";
    let _ = writeln!(out, "\n{title}\n{:<30} cases  geomean   worst  above 1", "");
    let mut line = |title: &str, parts: &[f64], note: &str| {
        let Some(Ratios { count, geomean, best: worst, lost, .. }) = Ratios::of(parts) else {
            return;
        };
        let above = 100.0 * (1.0 - lost);
        let _ =
            writeln!(out, "{title:<30} {count:>5} {geomean:>8.2} {worst:>7.2} {above:>7.0}%{note}");
    };
    for ((operation, dtype, n), own) in groups(auto) {
        let worst = own.iter().filter_map(|c| Some((part(c.ours)?, c.ours)));
        let worst = worst.max_by(|a, b| a.0.total_cmp(&b.0));
        let note = worst.map_or_else(String::new, |(_, r)| format!("  {}", r.case.matrix));
        let parts: Vec<_> = own.iter().filter_map(|c| part(c.ours)).collect();
        line(&format!("{operation} {dtype} n={n}"), &parts, &note);
    }
    for peer in PEERS {
        let own = records.iter().filter(|r| r.engine == peer);
        line(peer, &own.filter_map(part).collect::<Vec<_>>(), "");
    }
}

fn plans(out: &mut String, records: &[Record], auto: &[Comparison<'_>]) {
    header(out, "Executions that planning costs, auto");
    for ((operation, dtype, n), own) in groups(auto) {
        let cost = |c: &&Comparison<'_>| Some(c.ours.plan_ms? / c.ours.execute_ms?);
        let costs: Vec<_> = own.iter().filter_map(cost).collect();
        line(out, &format!("{operation} {dtype} n={n}"), &costs, "");
    }
    let once = compare(records, "once");
    if !once.is_empty() {
        header(out, "Time of cuSPARSE's default over one call of ours, planning counted in");
        for ((operation, dtype, n), own) in groups(&once) {
            let ratio = |c: &&Comparison<'_>| {
                // One call follows no other.
                let peers = if c.ours.sets.is_some() { &c.single_peers } else { &c.peers };
                Some(peers.get("cusparse-default")? / (c.ours.plan_ms? + c.ours.alone_ms()?))
            };
            let ratios: Vec<_> = own.iter().filter_map(ratio).collect();
            line(out, &format!("{operation} {dtype} n={n}"), &ratios, "");
        }
    }
}

/// What keeping the symbolic work of an SpGEMM saves.
fn reuse(out: &mut String, auto: &[Comparison<'_>]) {
    let saved = |c: &&Comparison<'_>| Some(c.ours.execute_ms? / c.ours.reuse_ms?);
    if auto.iter().all(|c| saved(&c).is_none()) {
        return;
    }
    header(out, "Time of one call over that of new values under its pattern, auto");
    for ((operation, dtype, n), own) in groups(auto) {
        let ratios: Vec<_> = own.iter().filter_map(saved).collect();
        line(out, &format!("{operation} {dtype} n={n}"), &ratios, "");
    }
}

/// What the choice of auto costs against the best of our algorithms that were measured beside it.
fn chosen(out: &mut String, records: &[Record], auto: &[Comparison<'_>]) {
    header(out, "Time of our best algorithm over auto");
    for ((operation, dtype, n), own) in groups(auto) {
        let ratio = |c: &&Comparison<'_>| {
            let ours = records.iter().filter(|r| {
                r.engine == "gustav" && !["once", "predictor", WHOLE].contains(&&*r.algorithm)
            });
            let times = ours.filter(|r| r.group == c.ours.group).filter_map(|r| r.execute_ms);
            Some(times.fold(f64::INFINITY, f64::min) / c.ours.execute_ms?)
        };
        let ratios: Vec<_> = own.iter().filter_map(ratio).collect();
        line(out, &format!("{operation} {dtype} n={n}"), &ratios, "");
    }
}

fn threshold(out: &mut String, records: &[Record]) {
    for ((operation, dtype, n), found) in thresholds(records) {
        let _ = writeln!(
            out,
            "\nMean row length as the rule, {operation} {dtype} n={n}, {} matrices: {found}",
            found.matrices
        );
    }
}

fn losses(out: &mut String, auto: &[Comparison<'_>]) {
    let mut lost: Vec<_> = auto.iter().filter_map(|c| Some((c.against(&PEERS)?, c))).collect();
    lost.retain(|(ratio, _)| *ratio < 1.0);
    lost.sort_by(|a, b| a.0.total_cmp(&b.0));
    let _ = writeln!(out, "\nLosses of auto: {} of {}", lost.len(), auto.len());
    for (ratio, c) in lost {
        let r = c.ours;
        let never_below = bar(&r.case.dtype, r.case.columns).1;
        let mark = if ratio < never_below { '!' } else { ' ' };
        let _ = writeln!(
            out,
            "{mark} {ratio:>5.2}  {:<52} nnz {:>9}  ours {:.4} ms ({})",
            r.case.to_string(),
            r.nnz,
            r.execute_ms.unwrap_or(f64::NAN),
            r.chosen.as_deref().unwrap_or("?"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Gpu;
    use crate::record::tests::record;

    fn on_gpu(engine: &str, algorithm: &str, ms: f64) -> Record {
        let gpu = Gpu { name: "a GPU".into(), copy_bandwidth: 2e12, ..Gpu::default() };
        let times = (Some(ms), Some(ms / 2.0), Some(0.25));
        let (execute_ms, hot_ms, floor_ms) = times;
        Record { gpu: Some(gpu), execute_ms, hot_ms, floor_ms, ..record("m", engine, algorithm) }
    }

    #[test]
    fn the_best_of_the_vendors_algorithms_counts() {
        let records = [
            on_gpu("gustav", "auto", 1.0),
            on_gpu("gustav", "row-split", 4.0),
            on_gpu("cusparse-default", "default", 3.0),
            on_gpu("cusparse-alg3", "default", 2.0),
            on_gpu("cupy", "default", 5.0),
        ];
        let records = records.map(|r| Record { single_ms: r.execute_ms.map(|ms| ms + 0.5), ..r });
        let text = summary(&records);
        assert!(text.contains("a GPU") && text.contains("2.00 TB/s"), "{text}");
        let of = |title: &str| {
            let line = text.lines().find(|l| l.starts_with(title)).expect(title);
            line[title.len()..].split_whitespace().nth(1).map(str::to_owned).expect("a geomean")
        };
        assert_eq!(of("spmm f32 n=8  "), "2.00");
        assert_eq!(of("spmm f32 n=8 cupy"), "5.00");
        assert_eq!(of("row-split"), "0.50");
        assert_eq!(of("spmm f32 n=8 floor  "), "0.25");
        assert_eq!(of("spmm f32 n=8 floor, hot"), "0.50");
        assert_eq!(of("spmm f32 n=8, single"), "1.67");
        assert_eq!(of("spmm f32 n=8 floor, single"), "0.17");
        assert!(text.contains("at least 1.6: met; worst 0.95: met"), "{text}");
        assert!(text.contains("Losses of auto: 0 of 1"), "{text}");
    }

    #[test]
    fn what_reuse_saves_is_told_where_it_was_measured() {
        let once = on_gpu("gustav", "auto", 3.0);
        assert!(!summary(std::slice::from_ref(&once)).contains("new values"));
        let text = summary(&[Record { reuse_ms: Some(2.0), ..once }]);
        let rest = text.split("new values under its pattern").nth(1).expect("a table");
        assert_eq!(rest.split_whitespace().find(|word| *word == "1.50"), Some("1.50"), "{text}");
    }

    #[test]
    fn the_threshold_is_fitted_to_the_faster_of_two() {
        let of = |name: &str, algorithm: &str, mean: f64, ms: f64, group: u64| Record {
            mean_row_length: mean,
            group,
            ..Record {
                case: crate::Case { matrix: name.into(), ..on_gpu("", "", 1.0).case },
                ..on_gpu("gustav", algorithm, ms)
            }
        };
        let records = [
            of("short", "row-split", 4.0, 2.0, 1),
            of("short", "nonzero-split", 4.0, 1.0, 1),
            of("longer", "row-split", 12.0, 2.0, 2),
            of("longer", "nonzero-split", 12.0, 1.0, 2),
            of("long", "row-split", 40.0, 1.0, 3),
            of("long", "nonzero-split", 40.0, 2.0, 3),
        ];
        let text = summary(&records);
        let said = "right on 67% with the threshold 9.35, on 100% with 40.00";
        assert!(text.contains(said), "{text}");
    }

    #[test]
    fn the_worst_peak_of_memory_is_named() {
        let of = |engine: &str, matrix: &str, peak: u64| {
            let record = on_gpu(engine, if engine == "gustav" { "auto" } else { "default" }, 1.0);
            let case = crate::Case { matrix: matrix.into(), ..record.case };
            Record { peak_memory: Some(peak), memory_bar: Some(100), case, ..record }
        };
        let records = [
            of("gustav", "small", 50),
            of("gustav", "large", 120),
            of("cusparse-alg1", "small", 400),
        ];
        let text = summary(&records);
        let line = text.lines().find(|l| l.ends_with("large")).expect("a line");
        assert!(line.contains("1.20") && line.contains("50%"), "{text}");
        let peer = text.lines().find(|l| l.contains("4.00")).expect("the peer's line");
        assert!(peer.starts_with("cusparse-alg1") && peer.contains("100%"), "{text}");
        assert!(!summary(&[on_gpu("gustav", "auto", 1.0)]).contains("Peak memory"));
    }

    #[test]
    fn masks_are_set_beside_all_of_c() {
        let of = |algorithm: &str, mask: &str, ms: f64| {
            let record = on_gpu("gustav", algorithm, ms);
            let case = crate::Case { mask: mask.into(), ..record.case };
            Record { case, ..record }
        };
        let records = [of("auto", "own", 2.0), of("whole", "own", 3.0), of("auto", "most", 1.0)];
        let text = summary(&records);
        let line = text.lines().find(|l| l.starts_with("own f32 gustav:auto")).expect("a line");
        assert!(line.contains("1.50"), "{text}");
        assert!(!text.contains("most f32"), "{text}");
    }

    #[test]
    fn losses_are_listed_worst_first() {
        let records = [on_gpu("gustav", "auto", 2.0), on_gpu("cusparse-alg1", "default", 1.0)];
        let text = summary(&records);
        assert!(text.contains("! ") && text.contains("0.50  m spmm f32 n=8"), "{text}");
        assert!(text.contains("NOT MET"), "{text}");
    }
}
