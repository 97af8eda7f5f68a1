//! How near to what memory gives: the roofline (Williams, Waterman, Patterson, 2009) with floor
//! and gather limit, and the share of the floor that is reached.

use std::collections::BTreeMap;

use super::super::axis::Axis;
use super::super::figure::{Figure, Mark, Series, slug};
use super::super::site::{Product, Site, flops, gflops};
use super::super::table::Table;
use super::{fullest, series};
use crate::{Ratios, Record, Status};

type Points = Vec<(f64, f64)>;

/// Bytes of A, B and C, each moved once; `None` for SpGEMM.
fn bytes(r: &Record) -> Option<f64> {
    let value = match r.case.dtype.as_str() {
        "f64" | "i64" => 8.0,
        "f16" | "bf16" => 2.0,
        _ => 4.0,
    };
    let a = r.nnz as f64 * (value + 4.0) + r.rows as f64 * 4.0;
    let dense = (r.rows + r.cols) as f64 * r.case.columns as f64 * value;
    (r.case.operation != "spgemm").then_some(a + dense)
}

/// Results of auto that have a floor, by operation and type.
fn measured(site: &Site) -> BTreeMap<(String, String), BTreeMap<Product, Vec<&Record>>> {
    let mut groups = BTreeMap::<_, BTreeMap<_, Vec<&Record>>>::new();
    for (case, round) in site.rounds() {
        let product = Product::of(case);
        let own = round.into_iter().filter(|r| {
            let timed = r.status == Status::Ok && r.floor_ms.is_some();
            r.engine == "gustav" && r.algorithm == "auto" && timed
        });
        for r in own {
            let key = (product.name().to_owned(), product.dtype.clone());
            groups.entry(key).or_default().entry(product.clone()).or_default().push(r);
        }
    }
    groups
}

/// GFLOP/s against operations per byte, under the roof of memory and that of gathering.
pub(crate) fn roofline(sites: &[Site]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for site in sites {
        for ((name, dtype), products) in measured(site) {
            // A matrix without nonzeros has no operations.
            let point = |r: &&Record| Some((flops(r) / bytes(r)?, gflops(r).filter(|f| *f > 0.0)?));
            let roof = |r: &Record| Some((bytes(r)?, bytes(r)? / r.floor_ms? / 1e6));
            let all: Vec<_> = products.values().flatten().copied().collect();
            let xs: Vec<f64> = all.iter().filter_map(point).map(|p| p.0).collect();
            let ends = [f64::min, f64::max].map(|end| xs.iter().copied().reduce(end));
            let [Some(low), Some(high)] = ends else { continue };
            let roofs: Vec<(f64, f64)> = all.iter().filter_map(|r| roof(r)).collect();
            let gather = all.iter().filter_map(|r| Some(flops(r) / r.gather_ms? / 1e6));
            let gather = gather.reduce(f64::max);

            let own = products.iter().map(|(p, own)| {
                let name = if p.detail().is_empty() { "auto".into() } else { p.detail() };
                (name, own.iter().filter_map(point).collect::<Points>())
            });
            let (own, left_out) = fullest(own.collect());
            let mut drawn = series(own, Mark::Points);
            let mut limit = |name: &str, at: [f64; 2]| {
                let line = vec![(low, at[0]), (high, at[1])];
                drawn.push(Series { name: name.into(), mark: Mark::Limit(line) });
            };
            let slope = |bandwidth: f64| [low * bandwidth, high * bandwidth];
            let largest = roofs.iter().max_by(|a, b| a.0.total_cmp(&b.0)).map_or(0.0, |r| r.1);
            let fastest = roofs.iter().map(|r| r.1).fold(0.0, f64::max);
            if fastest > 1.05 * largest {
                limit(&format!("fastest copy, {fastest:.0} GB/s"), slope(fastest));
            }
            limit(&format!("copy of the largest, {largest:.0} GB/s"), slope(largest));
            if let Some(rate) = gather {
                limit("gathering B from L2", [rate, rate]);
            }
            figures.push(Figure {
                id: slug(&format!("roofline {} {name} {dtype}", site.name)),
                title: format!("{name} {dtype}, {}: roofline", site.name),
                caption: String::from(
                    "A point a matrix. Operations per byte count A, B and C moved once, at \
                          the copy bandwidth measured in the same run (that of the largest \
                          operands, and the highest of any size where that differs). Reading \
                          alone is faster than copying, and caches faster than memory: points \
                          can lie above the lines. The gather limit reads a row of B from L2 for \
                          every nonzero; products that reuse B above L2 can pass it.",
                ) + &left_out,
                x: Axis::log("operations per byte"),
                y: Axis::log("GFLOP/s"),
                series: drawn,
                rules: Vec::new(),
            });
        }
    }
    figures
}

/// Share of the memory floor that is reached, against mean row length.
pub(crate) fn shares(sites: &[Site]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for site in sites {
        for ((name, dtype), products) in measured(site) {
            let own = products.iter().map(|(p, own)| {
                let share =
                    |r: &&Record| Some((r.mean_row_length, 100.0 * r.floor_ms? / r.execute_ms?));
                (p.detail(), own.iter().filter_map(share).collect::<Points>())
            });
            let (own, left_out) = fullest(own.collect());
            figures.push(Figure {
                id: slug(&format!("floor {} {name} {dtype}", site.name)),
                title: format!("{name} {dtype}, {}: share of the memory floor", site.name),
                caption: String::from(
                    "Time of moving A, B and C once at the measured copy bandwidth over the \
                          time of auto. Above 100 % where caches hold a part, and where little \
                          is written: reading alone is faster than copying.",
                ) + &left_out,
                x: Axis::log("mean row length (nonzeros)"),
                y: Axis::log("floor / time (%)"),
                series: series(own, Mark::Points),
                rules: vec![(100.0, "the floor".into())],
            });
        }
    }
    figures
}

/// How near auto comes to its limits, and how near to the floor the gather limit lets it come.
pub(crate) fn table(sites: &[Site]) -> Table {
    let geomean = |of: &dyn Fn(&Record) -> Option<f64>, own: &[&Record]| {
        let found: Vec<_> = own.iter().filter_map(|r| of(r)).filter(|x| *x > 0.0).collect();
        Ratios::of(&found).map_or_else(|| "-".into(), |r| format!("{:.1}", 100.0 * r.geomean))
    };
    let longer = |r: &Record| Some(r.floor_ms?.max(r.gather_ms?));
    let mut rows = Vec::new();
    for site in sites {
        for ((name, dtype), products) in measured(site) {
            rows.extend(products.iter().map(|(p, own)| {
                vec![
                    site.name.clone(),
                    name.clone(),
                    dtype.clone(),
                    p.detail(),
                    own.len().to_string(),
                    geomean(&|r| Some(r.floor_ms? / r.execute_ms?), own),
                    geomean(&|r| Some(r.floor_ms? / r.single_ms?), own),
                    geomean(&|r| Some(longer(r)? / r.execute_ms?), own),
                    geomean(&|r| Some(r.floor_ms? / longer(r)?), own),
                ]
            }));
        }
    }
    Table {
        id: "limits",
        title: "Limits",
        caption: "Geomeans over the matrices, in percent: the memory floor over the time of auto; the \
                  same over that of single executions, where executions followed one another; the \
                  longer of floor and gather limit over it; and the floor over that longer limit, which \
                  is the share of the floor of a product that reuses no row of B above L2 and is as fast \
                  as the caches."
            .into(),
        head: &[
            "place",
            "product",
            "type",
            "of",
            "matrices",
            "floor / time (%)",
            "floor / single (%)",
            "longer limit / time (%)",
            "floor / longer limit (%)",
        ],
        rows,
    }
}
