//! Distance to the limits of memory: the roofline (Williams, Waterman, Patterson, 2009) with floor
//! and gather limit, and the fraction of the floor that is reached.

use crate::Record;
use crate::analysis::{Groups, Platform, Product, grouped};
use crate::draw::{Axis, Figure, Mark, Points, Series, fullest, series};

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

/// Records of one operation and type, by product.
type Products<'a> = Groups<Product, &'a Record>;

/// Results of auto that have a floor, by operation and type.
fn measured(platform: &Platform) -> Groups<String, (Product, Vec<&Record>)> {
    grouped(platform.with_floor().into_iter().map(|(p, own)| (p.kind(), (p, own))))
}

/// GFLOP/s against operations per byte, with the limits of memory bandwidth and of gathering.
pub(super) fn roofline(platforms: &[Platform]) -> Vec<Figure> {
    let of = |platform| {
        measured(platform)
            .into_iter()
            .filter_map(move |(kind, products)| roof(platform, &kind, &products))
    };
    platforms.iter().flat_map(of).collect()
}

fn roof(platform: &Platform, kind: &str, products: &Products<'_>) -> Option<Figure> {
    // Without matrices that have no nonzeros, and so no operations.
    let point = |r: &&Record| Some((r.flops() / bytes(r)?, r.gflops().filter(|f| *f > 0.0)?));
    let copy = |r: &Record| Some((bytes(r)?, bytes(r)? / r.floor_ms? / 1e6));
    let all: Vec<_> = products.iter().flat_map(|p| &p.1).copied().collect();
    let xs: Vec<f64> = all.iter().filter_map(point).map(|p| p.0).collect();
    let (low, high) = (xs.iter().copied().reduce(f64::min)?, xs.into_iter().reduce(f64::max)?);
    let copies: Points = all.iter().filter_map(|r| copy(r)).collect();
    let gather = all.iter().filter_map(|r| Some(r.flops() / r.gather_ms? / 1e6));

    let own = products.iter().map(|(p, own)| {
        let name = if p.detail().is_empty() { "auto".into() } else { p.detail() };
        (name, own.iter().filter_map(point).collect::<Points>())
    });
    let (own, left_out) = fullest(own);
    let mut drawn = series(own, Mark::Points);
    let mut limit = |name: String, at: [f64; 2]| {
        drawn.push(Series { name, mark: Mark::Limit(vec![(low, at[0]), (high, at[1])]) });
    };
    let slope = |bandwidth: f64| [low * bandwidth, high * bandwidth];
    let largest = copies.iter().max_by(|a, b| a.0.total_cmp(&b.0)).map_or(0.0, |r| r.1);
    let fastest = copies.iter().map(|r| r.1).fold(0.0, f64::max);
    if fastest > 1.05 * largest {
        limit(format!("fastest copy, {fastest:.0} GB/s"), slope(fastest));
    }
    limit(format!("copy of the largest, {largest:.0} GB/s"), slope(largest));
    if let Some(rate) = gather.reduce(f64::max) {
        limit("gathering B from L2".into(), [rate, rate]);
    }
    let caption = "One point per matrix. Operations per byte count A, B and C moved once, at \
                   the copy bandwidth measured in the same run (that of the largest \
                   operands, and the highest of any size where that differs). Reading \
                   alone is faster than copying, and caches faster than memory: points \
                   can lie above the lines. The gather limit reads a row of B from L2 for \
                   every nonzero; products that reuse B above L2 can pass it.";
    Some(Figure::new(
        format!("roofline {} {kind}", platform.name),
        format!("{kind}, {}: roofline", platform.name),
        format!("{caption}{left_out}"),
        [Axis::log("operations per byte"), Axis::log("GFLOP/s")],
        drawn,
    ))
}

/// Fraction of the memory floor that is reached, against mean row length.
pub(super) fn fractions(platforms: &[Platform]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for platform in platforms {
        for (kind, products) in measured(platform) {
            let share =
                |r: &&Record| Some((r.mean_row_length, 100.0 * r.floor_ms? / r.execute_ms?));
            let own = products
                .iter()
                .map(|(p, own)| (p.detail(), own.iter().filter_map(share).collect::<Points>()));
            let (own, left_out) = fullest(own);
            let caption = "Time of moving A, B and C once at the measured copy bandwidth over the \
                           time of auto. Above 100 % where caches hold a part, and where little \
                           is written: reading alone is faster than copying.";
            let figure = Figure::new(
                format!("floor {} {kind}", platform.name),
                format!("{kind}, {}: fraction of the memory floor", platform.name),
                format!("{caption}{left_out}"),
                [Axis::log("mean row length (nonzeros)"), Axis::log("floor / time (%)")],
                series(own, Mark::Points),
            );
            figures.push(figure.rule(100.0, "the floor"));
        }
    }
    figures
}
