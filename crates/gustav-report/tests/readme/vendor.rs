//! Every product beside the newest cuSPARSE and that of the machine.

use std::collections::BTreeSet;
use std::fmt::Write;

use gustav_core::{DType, Operation};
use gustav_report::{Case, Comparison, Ratios, Record, Status, compare};

use super::compared::worst_of;
use super::published::{NEWEST, SUITE};
use super::{GPU, UNSEEN, kinds, machines, records_of, shown};

/// Single products of suite `gpu-published`, of matrices that no rule was fitted to or of others: each in a line, beside
/// both versions. A matrix and its copies are one pattern.
pub fn table(unseen: bool) -> String {
    let of_place = |name: &str| name.starts_with(SUITE) && name.contains(UNSEEN) == unseen;
    let mut records = records_of(of_place);
    let is_version = |name: &str| name == NEWEST || GPU.peers.contains(&name);
    records.retain(|r| r.suite == SUITE && (r.is_ours() || is_version(&r.engine)));
    let compared = compare(&records, "auto");
    machines(&shown(&compared)) + &lines(&records, &compared)
}

/// The lines of the table.
fn lines(records: &[Record], compared: &[Comparison<'_>]) -> String {
    let mut out = String::new();
    let columns = "geomean | worst | best | lost |";
    writeln!(out, "| product | type | patterns | newest: {columns} 12.6: {columns}").unwrap();
    writeln!(out, "|{}", "---|".repeat(11)).unwrap();
    // Least times of a vendor's versions, for f16 beside f32.
    let vendor = |case: &Case, names: &[&str]| {
        let of_case =
            records.iter().filter(|r| r.case == *case && names.contains(&r.engine.as_str()));
        of_case.filter_map(|r| r.execute_ms).reduce(f64::min)
    };
    for (product, dtype, own) in kinds(compared) {
        let is_timed = |c: &&&Comparison<'_>| {
            VERSIONS.iter().any(|names| c.against(names).is_some() || c.failed_beside(names))
        };
        let timed = own.iter().filter(is_timed);
        let patterns: BTreeSet<_> = timed.map(|c| c.ours.case.pattern()).collect();
        write!(out, "| {product} | {dtype} | {} |", patterns.len()).unwrap();
        for names in VERSIONS {
            out += &beside(&own, names, |c| c.against(names));
        }
        out.push('\n');
        if dtype != "f16" || own[0].ours.case.operation != "spmm" {
            continue;
        }
        write!(out, "| {product} | f16 beside f16 and f32 | {} |", patterns.len()).unwrap();
        for names in VERSIONS {
            out += &beside(&own, names, |c| {
                let wide = Case { dtype: "f32".into(), ..c.ours.case.clone() };
                let wide = vendor(&wide, names)? / c.ours.execute_ms?;
                Some(c.against(names).map_or(wide, |narrow| narrow.min(wide)))
            });
        }
        out.push('\n');
    }
    out
}

/// The newest cuSPARSE, and all algorithms of that of the machine.
const VERSIONS: [&[&str]; 2] = [&[NEWEST], GPU.peers];

/// The cells of one version, with the time of it over ours.
fn beside(
    own: &[&Comparison<'_>],
    names: &[&str],
    ratio: impl Fn(&Comparison<'_>) -> Option<f64>,
) -> String {
    let ratios = own.iter().filter_map(|c| Some((c.ours.case.pattern(), ratio(c)?)));
    let failed = own.iter().filter(|c| c.failed_beside(names)).count();
    let Some(Ratios { geomean, worst, best, lost, .. }) =
        Ratios::of_patterns(ratios).map(|r| r.with_failed(failed))
    else {
        return " | | | |".into();
    };
    let of_worst = worst_of(own, |c| if c.failed_beside(names) { Some(0.0) } else { ratio(c) });
    let lost = 100.0 * lost;
    format!(" {geomean:.2} | {worst:.2} ({of_worst}) | {best:.2} | {lost:.0}% |")
}

#[test]
fn what_was_not_measured_does_not_count() {
    let record = |matrix: &str, engine: &str, ms: Option<f64>| Record {
        engine: engine.into(),
        algorithm: if engine == "gustav" { "auto".into() } else { String::new() },
        execute_ms: ms,
        status: if ms.is_some() { Status::Ok } else { Status::Skipped },
        ..Record::blank(Case::new(matrix, Operation::Spmv, 1, DType::F32))
    };
    let records = [
        record("measured", "gustav", Some(2.0)),
        record("measured", NEWEST, Some(3.0)),
        record("large", "gustav", None),
        record("large", NEWEST, None),
    ];
    let lines = lines(&records, &compare(&records, "auto"));
    assert!(lines.contains("| SpMV | f32 | 1 | 1.50 | 1.50 (measured) | 1.50 | 0% |"), "{lines}");
}
