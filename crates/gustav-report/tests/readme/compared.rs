//! Every product beside its peers.

use std::cmp::Reverse;
use std::fmt::Write;

use gustav_core::{DType, Operation};
use gustav_report::{
    Case, Comparison, Ratios, Record, VENDORS, caches, compare, cusparse_of_groups,
};

use super::{Place, kinds, machines, records, shown};

/// The peers of `place` that took part in a product, as readers know them: all, by `name`, or MKL alone.
fn taking_part(own: &[&Comparison<'_>], place: &Place, name: &str) -> String {
    let takes_part = |peer: &str| own.iter().any(|c| c.peers.contains_key(peer));
    match place.peers == VENDORS && takes_part("mkl") && !takes_part("graphblas") {
        true => "MKL".into(),
        false => name.into(),
    }
}

/// What the ratios of a product are to: the peers of `place`, and where some of them were wrong, how
/// often one alone was right.
fn beside(own: &[&Comparison<'_>], place: &Place, name: &str) -> String {
    let right =
        |c: &&&Comparison<'_>| place.peers.iter().filter(|p| c.peers.contains_key(*p)).count();
    let most = own.iter().map(|c| right(&c)).max().unwrap_or(0);
    let alone: Vec<_> = own.iter().filter(|c| right(c) == 1 && most > 1).collect();
    let Some(first) = alone.first() else { return taking_part(own, place, name) };
    let only = place.peers.iter().find(|p| first.peers.contains_key(*p)).expect("one is right");
    if !alone.iter().all(|c| c.peers.contains_key(only)) || alone.len() * 2 < own.len() {
        return taking_part(own, place, name);
    }
    format!("{name}; right on {} of {} by {only} alone", alone.len(), own.len())
}

/// The matrix of the least ratio.
pub fn worst_of<'a>(
    own: &[&Comparison<'a>],
    ratio: impl Fn(&Comparison<'_>) -> Option<f64>,
) -> &'a str {
    let found = own.iter().filter_map(|c| Some((ratio(c)?, c.ours.case.matrix.as_str())));
    found.min_by(|a, b| a.0.total_cmp(&b.0)).map_or("", |found| found.1)
}

/// A line of a table; `worst_of` is the matrix of the worst ratio.
fn line([product, dtype, beside, worst_of, caches]: [&str; 5], r: &Ratios) -> String {
    let Ratios { count, geomean, worst, best, lost } = r;
    let lost = 100.0 * lost;
    format!(
        "| {product} | {dtype} | {beside} | {count} | {geomean:.2} | {worst:.2}{worst_of} | {best:.2} | {lost:.0}% | {caches} |\n"
    )
}

/// The faster of a vendor's f32 product and its right product in `own`, over ours, where the f32
/// product was measured: in another run.
fn beside_f32(own: &[&Comparison<'_>], records: &[Record], place: &Place) -> Option<Ratios> {
    let f32_ms = |case: &Case| {
        let same = |r: &&Record| {
            place.peers.contains(&r.engine.as_str())
                && r.case == Case { dtype: "f32".into(), ..case.clone() }
        };
        // Of another run, so at its best: without launches between products.
        records.iter().filter(same).filter_map(Record::independent_ms).reduce(f64::min)
    };
    let ratio = |c: &Comparison<'_>| {
        let wide = f32_ms(&c.ours.case)? / c.ours.execute_ms?;
        Some(c.against(place.peers).map_or(wide, |narrow| narrow.min(wide)))
    };
    Ratios::of_patterns(own.iter().filter_map(|c| Some((c.ours.case.pattern(), ratio(c)?))))
}

/// Each product and type in a line; beside several versions of cuSPARSE in a line for each, the newest first.
pub fn table(place: &Place) -> String {
    let all = records(place);
    let mut out = machines(&shown(&compare(&all, "auto")));
    writeln!(
        out,
        "| product | type | beside | patterns | geomean | worst | best | lost | caches |"
    )
    .unwrap();
    writeln!(out, "|---|---|---|---|---|---|---|---|---|").unwrap();
    let versions = by_version(&all);
    if versions.len() < 2 {
        return out + &lines(&all, place, place.beside);
    }
    for (version, own) in &versions {
        out += &lines(own, place, &format!("{} {version}", place.beside));
    }
    out
}

/// The records beside each version of cuSPARSE, the newest first.
fn by_version(records: &[Record]) -> Vec<(&str, Vec<Record>)> {
    let of_groups = cusparse_of_groups(records);
    let mut versions: Vec<_> = of_groups.values().copied().collect();
    let numbers = |v: &&str| v.split('.').map(|n| n.parse().unwrap_or(0)).collect::<Vec<u32>>();
    versions.sort_by_key(|v| Reverse(numbers(v)));
    versions.dedup();
    let own = |version| {
        let is_of = |r: &&Record| of_groups.get(&r.group) == Some(&version);
        (version, records.iter().filter(is_of).cloned().collect())
    };
    versions.into_iter().map(own).collect()
}

/// The lines of records of one version, which readers know as `name`.
fn lines(records: &[Record], place: &Place, name: &str) -> String {
    let compared = compare(records, "auto");
    let mut out = String::new();
    for (product, dtype, own) in kinds(&compared) {
        let all = |beside: &str, caches: &str, ratio: &dyn Fn(&Comparison<'_>) -> Option<f64>| {
            let ratios = own.iter().filter_map(|c| Some((c.ours.case.pattern(), ratio(c)?)));
            let failed = |c: &Comparison<'_>| c.failed_beside(place.peers);
            let count = own.iter().filter(|c| failed(c)).count();
            let r = Ratios::of_patterns(ratios)?.with_failed(count);
            let or_failed = |c: &Comparison<'_>| if failed(c) { Some(0.0) } else { ratio(c) };
            let worst = format!(" ({})", worst_of(&own, or_failed));
            Some(line([&product, &dtype, beside, &worst, caches], &r))
        };
        let beside = beside(&own, place, name);
        let caches = caches(&own, place.peers);
        let Some(usual) = all(&beside, &caches, &|c| c.against(place.peers)) else { continue };
        out += &usual;
        if own.iter().any(|c| c.is_separated(place.peers)) {
            let independent = format!("{name}, independent products");
            out.extend(all(&independent, "cold", &|c| c.against_independent(place.peers)));
        }
        if ["f16", "bf16"].contains(&dtype.as_str())
            && let Some(r) = beside_f32(&own, records, place)
        {
            let faster = format!("the faster of {name} in {dtype} and in f32");
            out += &line([&product, &dtype, &faster, "", "cold"], &r);
        }
    }
    out
}

#[test]
fn products_that_overlap_have_a_line_of_their_own() {
    let record = |engine: &str, ms| {
        let algorithm = if engine == "gustav" { "auto" } else { "default" };
        let blank = Record::blank(Case::new("m", Operation::Spmm, 32, DType::F32));
        Record { engine: engine.into(), algorithm: algorithm.into(), execute_ms: Some(ms), ..blank }
    };
    let overlapping_ms = Some(0.5);
    let mut records = [
        record("gustav", 1.0),
        record("cusparse-alg2", 3.0),
        Record { overlapping_ms, ..record("cusparse-alg3", 2.0) },
    ];
    let found = lines(&records, &super::GPU, "cuSPARSE");
    let expected = "| SpMM, 32 columns | f32 | cuSPARSE | 1 | 2.00 | 2.00 (m) | 2.00 | 0% | hot |\n\
        | SpMM, 32 columns | f32 | cuSPARSE, independent products | 1 | 0.50 | 0.50 (m) | 0.50 | 100% | cold |\n";
    assert_eq!(found, expected);
    records[2].overlapping_ms = None;
    assert_eq!(lines(&records, &super::GPU, "cuSPARSE").lines().count(), 1);
}

#[test]
fn versions_are_numbers_and_groups_are_of_one() {
    let record = |group, engine: &str, version: Option<&str>| {
        let case = Case::new("m", Operation::Spmv, 1, DType::F32);
        let versions = version.map(|v| ("cusparse".into(), v.into())).into_iter().collect();
        Record { group, engine: engine.into(), versions, ..Record::blank(case) }
    };
    let records = [
        record(1, "gustav", None),
        record(1, "cusparse-alg1", Some("12.9.4")),
        record(2, "gustav", None),
        record(2, "cusparse-alg1", Some("12.10.1")),
        record(2, "cusparse-alg2", Some("12.10.1")),
    ];
    let found = by_version(&records);
    let counts: Vec<_> = found.iter().map(|(version, own)| (*version, own.len())).collect();
    assert_eq!(counts, [("12.10.1", 3), ("12.9.4", 2)]);
}
