//! Records of one platform: a GPU, or a CPU with a number of threads.

use std::collections::{BTreeMap, BTreeSet};

use super::compare::{Comparison, compare_beside};
use super::ratios::{Groups, grouped};
use crate::record::cusparse_of_groups;
use crate::{CHOOSERS, Case, Layouts, Record, Status, VENDORS};

/// The product computed, apart from the matrix.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Product {
    rank: usize,
    /// Name of the operation.
    pub operation: String,
    /// Name of the type of the values.
    pub dtype: String,
    /// Columns of B, of X and Y, or of a head; 0 for as many as A has.
    pub columns: usize,
    /// Heads.
    pub heads: usize,
    /// Whether rows come out sorted.
    pub sorted: bool,
    /// Name of the layouts of B and C.
    pub layout: String,
}

/// Operations in the order of tables, with their names in prose.
const OPERATIONS: [(&str, &str); 7] = [
    ("spmm", "SpMM"),
    ("spmv", "SpMV"),
    ("spgemm", "SpGEMM"),
    ("sddmm", "SDDMM"),
    ("attention", "attention"),
    ("spmm-gradients", "gradients of SpMM"),
    ("attention-gradients", "gradients of attention"),
];

impl Product {
    /// The product of `case`.
    pub fn of(case: &Case) -> Self {
        let rank = OPERATIONS.iter().position(|o| o.0 == case.operation);
        Product {
            rank: rank.unwrap_or(OPERATIONS.len()),
            operation: case.operation.clone(),
            dtype: case.dtype.clone(),
            columns: case.columns,
            heads: case.heads,
            sorted: case.sorted,
            layout: case.layout.clone(),
        }
    }

    /// The same, with 0 for as many columns as A has, so that such products of all matrices are
    /// one.
    pub fn of_any_width(r: &Record) -> Self {
        let columns = if r.case.columns == r.cols { 0 } else { r.case.columns };
        Product { columns, ..Product::of(&r.case) }
    }

    /// The same without its variant, so that all widths and orders of rows are one.
    pub fn of_any_variant(&self) -> Self {
        let layout = Layouts::default().name().to_owned();
        Product { columns: 0, heads: 1, sorted: false, layout, ..self.clone() }
    }

    /// The name of the operation in text.
    pub fn name(&self) -> &str {
        OPERATIONS.get(self.rank).map_or(&self.operation, |o| o.1)
    }

    /// What distinguishes it from others of the same operation and type.
    pub fn detail(&self) -> String {
        let columns = match self.columns {
            0 => "columns of A".into(),
            n => n.to_string(),
        };
        match self.operation.as_str() {
            "spmm" if self.layout == Layouts::default().name() => format!("n = {columns}"),
            "spmm" => format!("n = {columns}, {}", self.layout),
            "spmm-gradients" => format!("n = {columns}"),
            "sddmm" => format!("d = {columns}"),
            "attention" | "attention-gradients" if self.heads == 1 => format!("d = {columns}"),
            "attention" | "attention-gradients" => {
                format!("{} heads, d = {columns}", self.heads)
            }
            "spgemm" if self.sorted => "sorted".into(),
            "spgemm" => "unsorted".into(),
            _ => String::new(),
        }
    }

    /// What distinguishes it from others of the same operation.
    pub fn variant(&self) -> String {
        format!("{} {}", self.dtype, self.detail()).trim_end().into()
    }

    /// The operation with its type.
    pub fn kind(&self) -> String {
        format!("{} {}", self.name(), self.dtype)
    }

    /// The operation with its variant: `SpMM f32 n = 64`.
    pub fn title(&self) -> String {
        format!("{} {}", self.name(), self.variant())
    }
}

/// The records of one platform.
pub(crate) struct Platform {
    /// Its name.
    pub name: String,
    /// Its records of products.
    pub records: Vec<Record>,
    /// Its records of programs.
    pub programs: Vec<Record>,
    /// The reference peers: the vendors if there are any, else every peer.
    pub reference_peers: Vec<String>,
}

impl Platform {
    /// The platforms of `records`, in order of their names. Where series of products were measured
    /// beside several versions of cuSPARSE on a GPU, those of each version are a platform.
    pub fn all(records: &[Record]) -> Vec<Platform> {
        let in_series = grouped(
            records
                .iter()
                .filter(|r| r.sets.is_some())
                .filter_map(|r| Some((&r.gpu.as_ref()?.name, r))),
        );
        let versions: BTreeMap<_, _> = in_series
            .into_iter()
            .map(|(gpu, own)| (gpu, cusparse_of_groups(own)))
            .filter(|(_, of_group)| of_group.values().collect::<BTreeSet<_>>().len() > 1)
            .collect();
        let version = |r: &Record, gpu: &String| versions.get(gpu)?.get(&r.group).copied();
        let name = |r: &Record| match &r.gpu {
            Some(gpu) => match version(r, &gpu.name) {
                Some(version) => {
                    format!("{}, series of products, cuSPARSE {version}", gpu.name)
                }
                None => gpu.name.clone(),
            },
            None => {
                let unknown = r.machine.cpu.is_empty();
                let processor = if unknown { "CPU" } else { &r.machine.cpu };
                let plural = if r.threads == 1 { "" } else { "s" };
                format!("{processor}, {} thread{plural}", r.threads)
            }
        };
        let platform = |(name, records): (String, Vec<Record>)| {
            let (programs, records): (Vec<_>, Vec<_>) =
                records.into_iter().partition(Record::is_program);
            let reference_peers = reference_peers(&records);
            Platform { name, records, programs, reference_peers }
        };
        grouped(records.iter().map(|r| (name(r), r.clone()))).into_iter().map(platform).collect()
    }

    /// The cases of an algorithm of Gustav with the peers, from the latest rounds in which a
    /// reference peer was right, if there are any.
    pub fn ours(&self, algorithm: &str) -> Vec<Comparison<'_>> {
        compare_beside(&self.records, algorithm, |peer| {
            self.reference_peers.iter().any(|r| r == peer)
        })
    }

    /// The cases of an algorithm of Gustav from the latest rounds in which `peer` was right.
    pub fn beside(&self, algorithm: &str, peer: &str) -> Vec<Comparison<'_>> {
        compare_beside(&self.records, algorithm, |name| name == peer)
    }

    /// The peers of its records.
    pub fn peers(&self) -> BTreeSet<&str> {
        self.records.iter().map(|r| r.engine.as_str()).filter(|e| *e != "gustav").collect()
    }

    /// The reference peers as text: `cusparse (alg1, default), mkl`.
    pub fn reference_peer_names(&self) -> String {
        let reference_peers = self.reference_peers.iter();
        let families = reference_peers.map(|peer| peer.split_once('-').unwrap_or((peer, "")));
        let words =
            grouped(families).into_iter().map(|(family, members)| match members.as_slice() {
                [""] => family.to_owned(),
                [member] => format!("{family}-{member}"),
                members => format!("{family} ({})", members.join(", ")),
            });
        let words: Vec<_> = words.collect();
        if words.is_empty() { "none".into() } else { words.join(", ") }
    }

    /// Time of the fastest reference peer over that of Gustav.
    pub fn against(&self, comparison: &Comparison<'_>) -> Option<f64> {
        let names: Vec<_> = self.reference_peers.iter().map(String::as_str).collect();
        comparison.against(&names)
    }

    /// Ratios of `algorithm` to the reference peers, with their comparisons, by product.
    pub fn products(&self, algorithm: &str) -> Groups<Product, (f64, Comparison<'_>)> {
        let ratios = self.ours(algorithm).into_iter();
        grouped(ratios.filter_map(|c| Some((Product::of(&c.ours.case), (self.against(&c)?, c)))))
    }

    /// The engine of a record, with its threads if it was measured with several numbers of them.
    pub fn engine(&self, record: &Record) -> String {
        let own = |r: &&Record| (&r.engine, &r.algorithm) == (&record.engine, &record.algorithm);
        let name = record.engine_name();
        if threads_are_idle(record) {
            return name;
        }
        match self.records.iter().filter(own).all(|r| r.threads == record.threads) {
            true => name,
            false => format!("{name}, {} threads", record.threads),
        }
    }

    /// Gustav's algorithms that were selected by name.
    pub fn algorithms(&self) -> BTreeSet<&str> {
        let ours = self.records.iter().filter(|r| r.is_ours());
        ours.map(|r| r.algorithm.as_str()).filter(|a| !CHOOSERS.contains(a)).collect()
    }

    /// Results of auto that have a memory floor, by product.
    pub fn with_floor(&self) -> Groups<Product, &Record> {
        let auto = |r: &&Record| r.is_ours() && r.algorithm == "auto" && r.floor_ms.is_some();
        let own = self.latest().filter(auto);
        grouped(own.map(|r| (Product::of(&r.case), r)))
    }

    /// Correct and timed records of each case's latest rounds, preferring rounds with a reference
    /// peer.
    pub fn rounds(&self) -> Groups<&Case, &Record> {
        self.rounds_with(|round| round.iter().any(|r| self.reference_peers.contains(&r.engine)))
    }

    /// The same, preferring rounds with what is `wanted` to later ones without.
    pub fn rounds_with(&self, wanted: impl Fn(&[&Record]) -> bool) -> Groups<&Case, &Record> {
        latest_rounds(self.records.iter(), wanted)
    }

    /// The same of each suite by itself, with its name.
    pub fn rounds_by_suite(
        &self,
        wanted: impl Fn(&[&Record]) -> bool,
    ) -> Groups<&str, (&Case, Vec<&Record>)> {
        let suites = grouped(self.records.iter().map(|r| (r.suite.as_str(), r))).into_iter();
        suites.map(|(suite, records)| (suite, latest_rounds(records, &wanted))).collect()
    }

    /// The records of [`rounds`](Platform::rounds).
    pub fn latest(&self) -> impl Iterator<Item = &Record> {
        self.rounds().into_iter().flat_map(|(_, round)| round)
    }
}

/// Correct and timed records of each case's latest rounds, preferring rounds with what is `wanted`.
fn latest_rounds<'a>(
    records: impl IntoIterator<Item = &'a Record>,
    wanted: impl Fn(&[&Record]) -> bool,
) -> Groups<&'a Case, &'a Record> {
    let timed = records.into_iter().filter(|r| r.status == Status::Ok && r.execute_ms.is_some());
    let mut latest = Vec::<(&Case, bool, Vec<&Record>)>::new();
    // Rounds of a case are in the order of their start.
    for ((case, _), round) in grouped(timed.map(|r| ((&r.case, r.group), r))) {
        let has = wanted(&round);
        match latest.last_mut() {
            Some((last, had, _)) if *last == case && *had && !has => {}
            Some((last, had, found)) if *last == case => (*had, *found) = (has, round),
            _ => latest.push((case, has, round)),
        }
    }
    latest.into_iter().map(|(case, _, round)| (case, round)).collect()
}

/// Whether only the GPU computes, so that the number of host threads has no meaning.
pub(crate) fn threads_are_idle(record: &Record) -> bool {
    record.gpu.is_some() && record.timeline.is_empty() && record.case.operation != "spgemm"
}

fn reference_peers(records: &[Record]) -> Vec<String> {
    let peers: BTreeSet<_> =
        records.iter().filter(|r| !r.is_ours()).map(|r| r.engine.clone()).collect();
    let vendor = |p: &&String| VENDORS.contains(&p.as_str()) || p.starts_with("cusparse");
    let vendors: Vec<_> = peers.iter().filter(vendor).cloned().collect();
    if vendors.is_empty() { peers.into_iter().collect() } else { vendors }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;
    use crate::{Gpu, Machine};

    #[test]
    fn platforms_are_distinguished_and_vendors_count() {
        let gpu = Some(Gpu { name: "a GPU".into(), ..Gpu::default() });
        let records = [
            record("m", "gustav", "auto"),
            record("m", "scipy", "default"),
            record("m", "mkl", "default"),
            Record { gpu: gpu.clone(), ..record("m", "gustav", "segmented") },
            Record { gpu, ..record("m", "cusparse-alg2", "default") },
        ];
        let platforms = Platform::all(&records);
        assert_eq!(platforms.len(), 2);
        assert_eq!(
            (platforms[0].name.as_str(), platforms[1].name.as_str()),
            ("CPU, 2 threads", "a GPU")
        );
        let machine = Machine { cpu: "a processor".into(), ..Machine::default() };
        let named = Platform::all(&[Record { machine, ..record("m", "gustav", "auto") }]);
        assert_eq!(named[0].name, "a processor, 2 threads");
        assert_eq!(
            (platforms[0].reference_peer_names().as_str(), platforms[0].peers().len()),
            ("mkl", 2)
        );
        assert_eq!(platforms[1].reference_peers, ["cusparse-alg2"]);
        assert_eq!(platforms[1].algorithms(), BTreeSet::from(["segmented"]));
    }

    #[test]
    fn series_beside_several_versions_of_a_library_are_platforms_of_their_own() {
        let gpu = Some(Gpu { name: "a GPU".into(), ..Gpu::default() });
        let run = |group, sets, version: &str| {
            let peer = record("m", "cusparse-alg2", "default");
            let versions = BTreeMap::from([("cusparse".into(), version.into())]);
            let peer = Record { versions, ..peer };
            [record("m", "gustav", "auto"), peer].map(|r| Record {
                gpu: gpu.clone(),
                group,
                sets,
                ..r
            })
        };
        let names = |runs: &[[Record; 2]]| -> Vec<_> {
            let platforms = Platform::all(&runs.concat()).into_iter();
            platforms.map(|p| (p.name, p.records.len())).collect()
        };
        let (single, old, new) = (run(1, None, "2"), run(2, Some(2), "1"), run(3, Some(2), "2"));
        assert_eq!(names(&[single.clone(), old.clone()]), [("a GPU".into(), 4)]);
        let series = |version| (format!("a GPU, series of products, cuSPARSE {version}"), 2);
        assert_eq!(names(&[single, old, new]), [("a GPU".into(), 2), series(1), series(2)]);
    }

    #[test]
    fn peers_of_one_family_are_named_together() {
        let peers = ["cusparse-alg1", "cusparse-default", "mkl", "sprs"];
        let records = peers.map(|name| record("m", name, "default"));
        let named = Platform::all(&records)[0].reference_peer_names();
        assert_eq!(named, "cusparse (alg1, default), mkl");
        let named = Platform::all(&records[3..])[0].reference_peer_names();
        assert_eq!(named, "sprs");
    }

    #[test]
    fn later_rounds_without_a_vendor_hide_none_with_one() {
        let at = |group, engine: &str, algorithm: &str, ms| Record {
            group,
            execute_ms: Some(ms),
            ..record("m", engine, algorithm)
        };
        let platform = Platform::all(&[
            at(1, "gustav", "auto", 1.0),
            at(1, "mkl", "default", 2.0),
            at(2, "gustav", "auto", 3.0),
            at(2, "sprs", "default", 12.0),
        ])
        .remove(0);
        assert_eq!(platform.against(&platform.ours("auto")[0]), Some(2.0));
        assert_eq!(platform.beside("auto", "sprs")[0].against(&["sprs"]), Some(4.0));
        assert!(platform.latest().all(|r| r.group == 1));
        let with_sprs = platform.rounds_with(|round| round.iter().any(|r| r.engine == "sprs"));
        assert!(with_sprs.iter().flat_map(|r| &r.1).all(|r| r.group == 2));
    }

    #[test]
    fn the_latest_rounds_of_a_case_count() {
        let old = record("m", "gustav", "auto");
        let new = Record { group: 9, ..old.clone() };
        let platform = Platform::all(&[new.clone(), old, new]).remove(0);
        assert_eq!(platform.rounds().len(), 1);
        assert!(platform.latest().all(|r| r.group == 9));
        assert_eq!(platform.records[0].flops(), 2.0 * 200_000.0 * 8.0);
    }
}
