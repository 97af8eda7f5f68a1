//! Families of generated matrices in which one thing varies: density at one shape, shape at one
//! number of nonzeros (figures 1, 4 and 7 of Yang, Buluç, Owens, 2018).

use std::collections::{BTreeMap, BTreeSet};

use super::super::axis::Axis;
use super::super::figure::{Figure, Mark, slug};
use super::super::site::{Product, Site, density as fill, gflops, threads_are_idle};
use super::series;
use crate::Record;
use crate::cuda::CUBLAS;

type Points = Vec<(f64, f64)>;

/// Logarithm of how far apart densities are that stand apart in the figure.
const NEAR: f64 = 0.05;

/// Generators whose matrices differ in nothing but shape and density.
pub(super) const RANDOM: [&str; 2] = ["uniform", "sparse"];

/// Points of every engine, by a key that the sweep keeps fixed; sweeps of fewer than three
/// values are left out. Places along x that differ by less than a twentieth are one value.
pub(super) fn sweep<K: Ord>(
    site: &Site,
    key: impl Fn(&Record) -> Option<K>,
    point: impl Fn(&Record) -> Option<(f64, f64)>,
) -> BTreeMap<(K, Product), BTreeMap<String, Points>> {
    let mut groups = BTreeMap::<_, BTreeMap<_, Points>>::new();
    // One number of threads: how times change with it is a figure of its own.
    let threads = site.records.iter().map(|r| r.threads).max();
    let counts = |r: &&Record| threads_are_idle(r) || Some(r.threads) == threads;
    for (case, round) in site.rounds() {
        for r in round.into_iter().filter(counts) {
            let Some((key, point)) = key(r).zip(point(r)) else { continue };
            let engines = groups.entry((key, Product::of(case))).or_default();
            engines.entry(site.engine(r)).or_default().push(point);
        }
    }
    let values = |points: &Points| {
        let step = |x: f64| (x.ln() * 20.0).round() as i64;
        points.iter().map(|p| step(p.0)).collect::<BTreeSet<_>>().len()
    };
    for engines in groups.values_mut() {
        engines.retain(|_, points| values(points) >= 3);
        for points in engines.values_mut() {
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
    }
    groups.retain(|_, engines| !engines.is_empty());
    groups
}

/// Places without those that have fewer threads than another of the same processor.
pub(super) fn widest(sites: &[Site]) -> impl Iterator<Item = &Site> {
    let place = |site: &Site| {
        let first = site.records.iter().find(|r| RANDOM.contains(&r.kind.as_str()))?;
        first.gpu.is_none().then(|| (first.machine.cpu.clone(), first.threads))
    };
    let most = move |site: &&Site| match place(site) {
        Some((cpu, threads)) => {
            let others = sites.iter().filter_map(place).filter(|other| other.0 == cpu);
            others.map(|other| other.1).max() == Some(threads)
        }
        None => true,
    };
    sites.iter().filter(most)
}

/// The curve of GEMM in the figure.
const GEMM: &str = "GEMM alone (cuBLAS)";

/// What GEMM takes when A is dense already: cuBLAS as a peer, or `dense` without writing A out.
fn gemm(r: &Record) -> Option<(f64, f64)> {
    let ms = match (r.engine.as_str(), r.algorithm.as_str()) {
        (CUBLAS, _) => r.execute_ms?,
        (_, "dense") => r.execute_ms? - r.convert_ms?,
        _ => return None,
    };
    Some((100.0 * fill(r), ms))
}

/// One curve of cuBLAS as a peer and, where it was none, of `dense`.
fn merged(mut of: BTreeMap<String, Points>) -> Points {
    let mut points = of.remove(CUBLAS).unwrap_or_default();
    for (x, y) in of.into_values().flatten() {
        if !points.iter().any(|p| p.0 == x) {
            points.push((x, y));
        }
    }
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

/// Points of one density to the eye as one, at the geometric mean of both.
fn levelled(points: &Points) -> Points {
    let mut out: Vec<(f64, f64, f64)> = Vec::new();
    for (x, y) in points.iter().map(|(x, y)| (x.ln(), y.ln())) {
        match out.last_mut() {
            Some(last) if x - last.0 / last.2 < NEAR => {
                *last = (last.0 + x, last.1 + y, last.2 + 1.0);
            }
            _ => out.push((x, y, 1.0)),
        }
    }
    out.into_iter().map(|(x, y, count)| ((x / count).exp(), (y / count).exp())).collect()
}

/// Time against the share of A that is filled.
pub(crate) fn density(sites: &[Site]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for site in widest(sites) {
        let random = |r: &Record| {
            let kind = RANDOM.into_iter().find(|kind| *kind == r.kind)?;
            Some((r.rows, r.cols, kind))
        };
        let point = |r: &Record| Some((100.0 * fill(r), r.execute_ms?));
        let mut alone = sweep(site, random, gemm);
        for (((rows, cols, kind), product), mut engines) in sweep(site, random, point) {
            let (name, variant) = (product.name(), product.variant());
            let what = if kind == RANDOM[0] {
                "as many nonzeros in every row"
            } else {
                "nonzeros anywhere"
            };
            let mut caption = format!(
                "Random matrices of one shape with {what}, the geometric mean of those of one \
                 density; on the most threads that were measured."
            );
            let of_gemm = alone.remove(&((rows, cols, kind), product.clone())).unwrap_or_default();
            engines.remove(CUBLAS);
            let gemm = merged(of_gemm);
            if !gemm.is_empty() {
                caption += &crossings(&engines, &gemm);
                engines.insert(GEMM.into(), gemm);
            }
            engines.values_mut().for_each(|points| *points = levelled(points));
            figures.push(Figure {
                id: slug(&format!("density {} {name} {variant} {kind} {rows}x{cols}", site.name)),
                title: format!(
                    "{name} {variant}, {}: {kind} {rows} x {cols} by density",
                    site.name
                ),
                caption,
                x: Axis::log("filled (%)"),
                y: Axis::log("time (ms)"),
                series: series(engines, Mark::Line),
                rules: Vec::new(),
            });
        }
    }
    figures
}

/// Where each engine takes as long as GEMM, in words.
fn crossings(engines: &BTreeMap<String, Points>, gemm: &Points) -> String {
    let of = |(name, points): (&String, &Points)| {
        let at = crossing(points, gemm)?;
        Some(format!("{name} {at:.1} %"))
    };
    let found: Vec<_> = engines.iter().filter_map(of).collect();
    if found.is_empty() {
        return String::new();
    }
    format!(
        " As fast as GEMM alone at {} (the paper's merge-based kernel, on a Tesla K40c: 9 %).",
        found.join(", ")
    )
}

/// The x at which `points` and `gemm`, measured at the same x, first take as long as each other,
/// between neighbours along the powers of both.
fn crossing(points: &Points, gemm: &Points) -> Option<f64> {
    let beside = |(x, y): &(f64, f64)| {
        let (_, other) = gemm.iter().find(|g| g.0 == *x)?;
        Some((x.ln(), (y / other).ln()))
    };
    let ratios: Vec<_> = points.iter().filter_map(beside).collect();
    let pair = ratios.windows(2).find(|pair| pair[0].1 < 0.0 && pair[1].1 >= 0.0)?;
    let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
    Some((x0 - y0 * (x1 - x0) / (y1 - y0)).exp())
}

/// GFLOP/s of full matrices of one number of nonzeros against their number of rows: of algorithms in
/// their usual configuration, and of those that were measured in others as well.
pub(crate) fn aspect_ratio(sites: &[Site]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for site in sites {
        // Sizes that differ by rounding alone are one.
        let size = |r: &Record| ((r.nnz as f64).log2() * 8.0).round() as i64;
        let full = |r: &Record| (r.nnz > 0 && fill(r) >= 1.0).then(|| size(r));
        let point = |r: &Record| Some((r.rows as f64, gflops(r)?));
        for ((size, product), engines) in sweep(site, full, point) {
            let other = |name: &String| name.contains('#');
            let usual = |name: &String| name.split('#').next().unwrap_or(name).to_owned();
            let varied: BTreeSet<_> = engines.keys().filter(|k| other(k)).map(usual).collect();
            let several = |(name, _): &(&String, &Points)| varied.contains(&usual(name));
            let copied = |(name, points): (&String, &Points)| (name.clone(), points.clone());
            let configurations: BTreeMap<_, _> =
                engines.iter().filter(several).map(copied).collect();
            let plain: BTreeMap<_, _> = engines.into_iter().filter(|(k, _)| !other(k)).collect();
            for (what, engines) in [("", plain), (", configurations", configurations)] {
                if engines.is_empty() {
                    continue;
                }
                let (name, variant) = (product.name(), product.variant());
                let nnz = 2f64.powf(size as f64 / 8.0);
                figures.push(Figure {
                    id: slug(&format!("aspect {} {name} {variant} {size}{what}", site.name)),
                    title: format!("{name} {variant}, {}: from wide to tall{what}", site.name),
                    caption: format!(
                        "Full matrices of about {:.1} million nonzeros, stored as CSR: few long \
                         rows at the left, many short ones at the right.",
                        nnz / 1e6
                    ),
                    x: Axis::log("rows"),
                    y: Axis::linear("GFLOP/s"),
                    series: series(engines, Mark::Line),
                    rules: Vec::new(),
                });
            }
        }
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cublas_is_the_gemm_where_it_was_a_peer_and_dense_elsewhere() {
        use crate::record::tests::record;
        let of = |engine: &str, algorithm: &str, nnz: usize, ms: f64| Record {
            execute_ms: Some(ms),
            convert_ms: (algorithm == "dense").then_some(1.0),
            nnz,
            ..record("m", engine, algorithm)
        };
        assert_eq!(gemm(&of("cublas", "default", 50, 2.0)), Some((50.0, 2.0)));
        assert_eq!(gemm(&of("gustav", "dense", 50, 5.0)), Some((50.0, 4.0)));
        assert_eq!(gemm(&of("gustav", "auto", 50, 5.0)), None);
        let curves = [
            ("gustav:dense".to_owned(), vec![(20.0, 9.0), (10.0, 9.0)]),
            ("cublas".to_owned(), vec![(20.0, 2.0)]),
        ];
        assert_eq!(merged(curves.into()), [(10.0, 9.0), (20.0, 2.0)]);
    }

    #[test]
    fn points_of_one_density_are_one() {
        let points = vec![(1.0, 1.0), (1.01, 4.0), (3.0, 5.0)];
        let found = levelled(&points);
        assert_eq!(found.len(), 2);
        assert!((found[0].1 - 2.0).abs() < 1e-9 && (found[1].0 - 3.0).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn a_crossing_lies_between_the_densities_around_it() {
        let gemm = vec![(1.0, 8.0), (2.0, 8.0), (8.0, 8.0)];
        let rising = vec![(1.0, 1.0), (2.0, 4.0), (8.0, 16.0)];
        let at = crossing(&rising, &gemm).unwrap();
        assert!((at - 4.0).abs() < 1e-9, "{at}");
        assert_eq!(crossing(&vec![(1.0, 9.0), (2.0, 9.0)], &gemm), None);
        let engines = BTreeMap::from([("a".to_owned(), rising)]);
        assert!(crossings(&engines, &gemm).contains("a 4.0 %"));
    }
}
