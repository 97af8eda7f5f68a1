//! What products of `auto` take beside one another, and what is demanded of that: attention beside its limits and
//! three products, gradients beside what they are of, SDDMM beside SpMM, 16 bits beside 32.

use std::collections::BTreeMap;

use super::ratios::{PRODUCT, product_cells};
use crate::analysis::{Platform, Product, grouped};
use crate::table::{Row, Table, row};
use crate::{Case, Ratios, Record, UNFUSED};

/// Nonzeros from which attention is held to its limits.
const LARGE: usize = 500_000;
/// Nonzeros up to which a product takes what its launch takes.
const LAUNCH: usize = 1000;
/// Columns from which 16 bits are held to be faster.
const WIDE: usize = 128;

/// A quotient of times, and what is demanded of it.
struct Relation {
    name: &'static str,
    of: fn(&Records<'_>, &Record) -> Option<f64>,
    bar: fn(&Product, on_gpu: bool) -> Option<Bar>,
}

#[derive(Clone, Copy)]
enum Bar {
    /// Of the geomean.
    AtMost(f64),
    /// Of the geomean.
    AtLeast(f64),
    /// Of every case.
    NeverBelow(f64),
}

const RELATIONS: [Relation; 7] = [
    Relation {
        name: "time / longer limit, from 500,000 nonzeros",
        of: |_, r| {
            let limit = r.gather_ms?.max(r.miss_ms?);
            let held = r.case.operation == "attention" && r.nnz >= LARGE;
            held.then_some(r.execute_ms? / limit)
        },
        bar: |p, _| {
            (p.dtype == "f16" && p.columns == WIDE && p.heads == 1).then_some(Bar::AtMost(1.5))
        },
    },
    Relation {
        name: "three products / time",
        of: |all, r| Some(all.beside(r, UNFUSED)? / r.execute_ms?),
        bar: |p, _| (p.operation == "attention").then_some(Bar::NeverBelow(1.0)),
    },
    Relation {
        name: "with gradients / time",
        of: |all, r| {
            let (own, gradients) = alike(r, all.auto(r.case.clone().gradients())?)?;
            Some((own + gradients) / own)
        },
        bar: |_, _| Some(Bar::AtMost(3.5)),
    },
    Relation {
        name: "time / SpMM of the same width",
        of: |all, r| {
            let spmm = Case { operation: "spmm".into(), ..r.case.clone() };
            let spmm = all.auto(spmm).filter(|_| r.case.operation == "sddmm")?;
            let (own, spmm) = alike(r, spmm)?;
            Some(own / spmm)
        },
        bar: |p, on_gpu| (p.dtype == "f32").then_some(Bar::AtMost(if on_gpu { 1.1 } else { 1.2 })),
    },
    Relation {
        name: "time in f32 / time",
        of: |all, r| {
            let wide = Case { dtype: "f32".into(), ..r.case.clone() };
            let wide = all.auto(wide).filter(|_| r.case.operation == "sddmm")?;
            (r.case.dtype != "f32").then_some(wide.execute_ms? / r.execute_ms?)
        },
        bar: |p, on_gpu| {
            let wide = p.columns >= WIDE && p.dtype != "f64";
            (wide && on_gpu).then_some(Bar::AtLeast(1.4))
        },
    },
    Relation {
        name: "fastest peer / longer limit",
        of: |all, r| {
            let limit = r.floor_ms?.max(r.gather_ms?);
            Some(all.fastest_peer(r).filter(|_| r.case.operation == "sddmm")? / limit)
        },
        bar: |_, _| None,
    },
    Relation {
        name: "fastest peer / (launch + longer limit)",
        of: |all, r| {
            let limit = all.launch(r)? + r.floor_ms?.max(r.gather_ms?);
            let large = r.case.operation == "sddmm" && r.nnz > LAUNCH;
            Some(all.fastest_peer(r).filter(|_| large)? / limit)
        },
        bar: |_, _| None,
    },
];

/// Times of two records that were measured in the same way: of executions one after another on alternating sets of
/// operands, or, if one of them has no such time, of single ones.
fn alike(one: &Record, other: &Record) -> Option<(f64, f64)> {
    match (one.sets, other.sets) {
        (Some(_), Some(_)) => Some((one.execute_ms?, other.execute_ms?)),
        _ => Some((one.alone_ms()?, other.alone_ms()?)),
    }
}

/// The latest records of a platform, by case.
struct Records<'a> {
    auto: BTreeMap<&'a Case, &'a Record>,
    /// Those of the same rounds.
    others: BTreeMap<&'a Case, Vec<&'a Record>>,
}

impl<'a> Records<'a> {
    fn of(platform: &'a Platform) -> Self {
        let (mut auto, mut others) = (BTreeMap::new(), BTreeMap::<_, Vec<_>>::new());
        for r in platform.latest() {
            if r.is_ours() && r.algorithm == "auto" {
                auto.insert(&r.case, r);
            } else {
                others.entry(&r.case).or_default().push(r);
            }
        }
        Records { auto, others }
    }

    fn auto(&self, case: Case) -> Option<&'a Record> {
        self.auto.get(&case).copied()
    }

    fn rounds(&self, r: &Record) -> impl Iterator<Item = &'a Record> {
        let others = self.others.get(&r.case).into_iter().flatten().copied();
        let group = r.group;
        others.filter(move |other| other.group == group)
    }

    /// Time of another algorithm of ours in the same rounds.
    fn beside(&self, r: &Record, algorithm: &str) -> Option<f64> {
        self.rounds(r).find(|o| o.is_ours() && o.algorithm == algorithm)?.execute_ms
    }

    /// What the product of `r` takes of a pattern with next to no nonzeros, of any number of columns.
    fn launch(&self, r: &Record) -> Option<f64> {
        let product = |c: &Case| (c.operation.clone(), c.dtype.clone());
        let alike = self.auto.values().filter(|other| product(&other.case) == product(&r.case));
        alike.filter(|other| other.nnz <= LAUNCH).filter_map(|o| o.execute_ms).reduce(f64::min)
    }

    fn fastest_peer(&self, r: &Record) -> Option<f64> {
        self.rounds(r).filter(|o| !o.is_ours()).filter_map(|o| o.execute_ms).reduce(f64::min)
    }
}

pub(super) fn relations(platforms: &[Platform]) -> Table {
    let mut rows = Vec::new();
    for platform in platforms {
        let records = Records::of(platform);
        let on_gpu = platform.records.iter().any(|r| r.gpu.is_some());
        for relation in &RELATIONS {
            let of = |r: &&Record| Some((Product::of(&r.case), (relation.of)(&records, r)?));
            for (product, found) in grouped(records.auto.values().filter_map(of)) {
                rows.extend(line(platform, (relation, on_gpu), &product, &found));
            }
        }
    }
    let caption = "Times of auto beside others of the same matrix, and what the project requires of their \
                   geomean, or of every case. The longer limit of attention is that of its two gathers or of \
                   what L2 misses; of SDDMM that of its gathers or the memory floor, so that the last lines \
                   are the ratios that auto would have at its limit. A launch is what a product of at most \
                   1000 nonzeros takes.";
    let columns = format!("{PRODUCT}, quotient, cases, geomean, least, most, required, verdict");
    Table::new("relations", "Products beside one another", &columns, caption, rows)
}

fn line(
    platform: &Platform,
    (relation, on_gpu): (&Relation, bool),
    product: &Product,
    found: &[f64],
) -> Option<Row> {
    let all = Ratios::of(found)?;
    let (required, met) = match (relation.bar)(product, on_gpu) {
        None => (String::new(), ""),
        Some(Bar::AtMost(bar)) => (format!("at most {bar}"), verdict(all.geomean <= bar)),
        Some(Bar::AtLeast(bar)) => (format!("at least {bar}"), verdict(all.geomean >= bar)),
        Some(Bar::NeverBelow(bar)) => (format!("never below {bar}"), verdict(all.worst >= bar)),
    };
    let [geomean, least, most] = [all.geomean, all.worst, all.best].map(|x| format!("{x:.2}"));
    let cells = row![relation.name, all.count, geomean, least, most, required, met];
    Some([product_cells(platform, product), cells].concat())
}

fn verdict(met: bool) -> &'static str {
    if met { "met" } else { "NOT MET" }
}
