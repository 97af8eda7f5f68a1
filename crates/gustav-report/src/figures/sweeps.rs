//! Families of generated matrices in which one property varies: density at one shape, shape at one
//! number of nonzeros (figures 1, 4 and 7 of Yang, Buluç, Owens, 2018), size at one density
//! (figures 5 to 11 of Chen, Chen, Shih, Lee, "Accelerating Sparse Matrix Multiplication", 2025).

use std::collections::{BTreeMap, BTreeSet};

use crate::CUBLAS;
use crate::Record;
use crate::analysis::{Groups, Platform, Product, grouped, grouped_twice, threads_are_idle};
use crate::draw::{Axis, Figure, Mark, Points, series};

/// Points of engines, by name.
type Engines = BTreeMap<String, Points>;

/// Densities whose logarithms differ by less are drawn as one point.
const NEAR: f64 = 0.05;

/// Generators whose matrices differ only in shape and density.
const RANDOM: [&str; 2] = ["uniform", "sparse"];

/// Points of every engine by the key that is fixed in a sweep; sweeps of fewer than three values
/// are left out. Values of x that differ by less than a twentieth count as one.
fn sweep<K: Ord>(
    platform: &Platform,
    key: impl Fn(&Record) -> Option<K>,
    point: impl Fn(&Record) -> Option<(f64, f64)>,
) -> Vec<((K, Product), Engines)> {
    // Only the largest number of threads; scaling with threads has a figure of its own.
    let threads = platform.records.iter().map(|r| r.threads).max();
    let counts = |r: &&Record| threads_are_idle(r) || Some(r.threads) == threads;
    let records = platform.latest().filter(counts);
    let points = records
        .filter_map(|r| Some(((key(r)?, Product::of(&r.case)), platform.engine(r), point(r)?)));
    let values = |points: &Points| {
        let step = |x: f64| (x.ln() * 20.0).round() as i64;
        points.iter().map(|p| step(p.0)).collect::<BTreeSet<_>>().len()
    };
    let swept = |(key, engines): (_, Groups<String, (f64, f64)>)| {
        let engines = engines.into_iter().filter(|(_, points)| values(points) >= 3);
        let mut engines: Engines = engines.collect();
        engines.values_mut().for_each(sort);
        (!engines.is_empty()).then_some((key, engines))
    };
    grouped_twice(points).into_iter().filter_map(swept).collect()
}

fn sort(points: &mut Points) {
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
}

/// Of the platforms of one processor, the one with the most threads.
fn widest(platforms: &[Platform]) -> impl Iterator<Item = &Platform> {
    let host = |platform: &Platform| {
        let first = platform.records.iter().find(|r| RANDOM.contains(&r.kind.as_str()))?;
        first.gpu.is_none().then(|| (first.machine.cpu.clone(), first.threads))
    };
    let most = move |platform: &&Platform| {
        host(platform).is_none_or(|(cpu, threads)| {
            let mut others = platforms.iter().filter_map(host).filter(|other| other.0 == cpu);
            others.all(|other| other.1 <= threads)
        })
    };
    platforms.iter().filter(most)
}

/// The curve of GEMM in the figure.
const GEMM: &str = "GEMM alone (cuBLAS)";

/// The time of GEMM with a dense A: cuBLAS as a peer, or `dense` less its conversion of A.
fn gemm(r: &Record) -> Option<(f64, f64)> {
    let ms = match (r.engine.as_str(), r.algorithm.as_str()) {
        (CUBLAS, _) => r.execute_ms?,
        (_, "dense") => r.execute_ms? - r.convert_ms?,
        _ => return None,
    };
    Some((100.0 * r.density(), ms))
}

/// One curve from cuBLAS as a peer and, at points without it, from `dense`.
fn merged(mut of: Engines) -> Points {
    let mut points = of.remove(CUBLAS).unwrap_or_default();
    for (x, y) in of.into_values().flatten() {
        if !points.iter().any(|p| p.0 == x) {
            points.push((x, y));
        }
    }
    sort(&mut points);
    points
}

/// Merges points of nearly one density at their geometric mean.
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

/// Time against the density of A.
pub(super) fn density(platforms: &[Platform]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for platform in widest(platforms) {
        let random = |r: &Record| {
            let kind = RANDOM.into_iter().find(|kind| *kind == r.kind)?;
            Some((r.rows, r.cols, kind))
        };
        let point = |r: &Record| Some((100.0 * r.density(), r.execute_ms?));
        let mut alone: BTreeMap<_, _> = sweep(platform, random, gemm).into_iter().collect();
        for (key, mut engines) in sweep(platform, random, point) {
            let gemm = merged(alone.remove(&key).unwrap_or_default());
            let ((rows, cols, kind), product) = key;
            let what = match kind == RANDOM[0] {
                true => "equally many nonzeros in every row",
                false => "nonzeros at random positions",
            };
            let mut caption = format!(
                "Random matrices of one shape with {what}, the geometric mean of those of one \
                 density; on the most threads that were measured."
            );
            engines.remove(CUBLAS);
            if !gemm.is_empty() {
                caption += &crossings(&engines, &gemm);
                engines.insert(GEMM.into(), gemm);
            }
            engines.values_mut().for_each(|points| *points = levelled(points));
            let (name, product) = (&platform.name, product.title());
            figures.push(Figure::new(
                format!("density {name} {product} {kind} {rows}x{cols}"),
                format!("{product}, {name}: {kind} {rows} x {cols} by density"),
                caption,
                [Axis::log("density (%)"), Axis::log("time (ms)")],
                series(engines, Mark::Line),
            ));
        }
    }
    figures
}

/// The densities at which engines take as long as GEMM, and the engines that are faster at all, as text.
fn crossings(engines: &Engines, gemm: &Points) -> String {
    let of = |(name, points): (&String, &Points)| {
        Some(format!("{name} {:.1} %", crossing(points, gemm)?))
    };
    let found: Vec<_> = engines.iter().filter_map(of).collect();
    let is_faster = |(_, points): &(&String, &Points)| {
        let beside = |p: &(f64, f64)| gemm.iter().find(|g| g.0 == p.0).map(|g| p.1 < g.1);
        let mut compared = points.iter().filter_map(beside).peekable();
        compared.peek().is_some() && compared.all(|faster| faster)
    };
    let faster: Vec<_> = engines.iter().filter(is_faster).map(|(name, _)| name.as_str()).collect();
    let mut text = String::new();
    if !found.is_empty() {
        text += &format!(
            " As fast as GEMM alone at {} (the paper's merge-based kernel, on a Tesla K40c: 9 %).",
            found.join(", ")
        );
    }
    if !faster.is_empty() {
        text += &format!(" Faster at every density of both: {}.", faster.join(", "));
    }
    text
}

/// The x at which `points` and `gemm`, measured at the same x, first cross, interpolated linearly
/// in logarithms between neighbours.
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

/// GFLOP/s of full matrices of one number of nonzeros against their number of rows: of algorithms
/// in their default configuration, and a second figure of those measured in several.
pub(super) fn aspect_ratio(platforms: &[Platform]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for platform in platforms {
        // Sizes that differ only by rounding count as one.
        let size = |r: &Record| ((r.nnz as f64).log2() * 8.0).round() as i64;
        let full = |r: &Record| (r.nnz > 0 && r.density() >= 1.0).then(|| size(r));
        let point = |r: &Record| Some((r.rows as f64, r.gflops()?));
        for ((size, product), engines) in sweep(platform, full, point) {
            let usual = |name: &String| name.split('#').next().unwrap_or(name).to_owned();
            let varied: BTreeSet<_> =
                engines.keys().filter(|name| name.contains('#')).map(usual).collect();
            let mut configurations = engines.clone();
            configurations.retain(|name, _| varied.contains(&usual(name)));
            let mut plain = engines;
            plain.retain(|name, _| !name.contains('#'));
            for (what, engines) in [("", plain), (", configurations", configurations)] {
                if engines.is_empty() {
                    continue;
                }
                let (name, product) = (&platform.name, product.title());
                figures.push(Figure::new(
                    format!("aspect {name} {product} {size}{what}"),
                    format!("{product}, {name}: aspect ratio{what}"),
                    format!(
                        "Full matrices of about {:.1} million nonzeros, stored as CSR: few long \
                         rows at the left, many short ones at the right.",
                        2f64.powf(size as f64 / 8.0) / 1e6
                    ),
                    [Axis::log("rows"), Axis::linear("GFLOP/s")],
                    series(engines, Mark::Line),
                ));
            }
        }
    }
    figures
}

/// Time against N for every density, and speed-up over the best peer against N by density.
pub(super) fn sizes(platforms: &[Platform]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for platform in widest(platforms) {
        // Sparsity in thousandths: 950 for 95 %.
        let sparsity = |r: &Record| (1000.0 * (1.0 - r.density())).round() as i64;
        let square = |r: &Record| {
            let random = RANDOM.contains(&r.kind.as_str()) && r.rows == r.cols;
            (random && r.case.operation == "spgemm").then(|| sparsity(r))
        };
        let point = |r: &Record| Some((r.rows as f64, r.execute_ms?));
        let (name, mut speedups) = (&platform.name, Vec::new());
        for ((sparsity, product), engines) in sweep(platform, square, point) {
            let percent = sparsity as f64 / 10.0;
            let gains = gains(platform, &engines);
            if !gains.is_empty() {
                speedups.push((product.clone(), (format!("{percent} % zeros"), gains)));
            }
            let product = product.title();
            figures.push(Figure::new(
                format!("size {name} {product} {sparsity}"),
                format!("{product}, {name}: {percent} % zeros"),
                "Random N x N matrices times themselves, on the most threads that were measured.",
                [Axis::doubling("N"), Axis::log("time (ms)")],
                series(engines, Mark::Line),
            ));
        }
        for (product, groups) in grouped(speedups) {
            let product = product.title();
            let figure = Figure::new(
                format!("size speedup {name} {product}"),
                format!("{product}, {name}: speed-up by size"),
                format!("Reference peers: {}.", platform.reference_peer_names()),
                [Axis::doubling("N"), Axis::log("time of the best peer / ours")],
                series(groups, Mark::Line),
            );
            figures.push(figure.rule(1.0, "as fast as the best peer"));
        }
    }
    figures
}

/// Speed-ups of auto over the best reference peer.
fn gains(platform: &Platform, engines: &Engines) -> Points {
    let best = |n: f64| {
        let reference_peers =
            platform.reference_peers.iter().filter_map(|r| engines.get(r)).flatten();
        reference_peers.filter(|p| p.0 == n).map(|p| p.1).reduce(f64::min)
    };
    let ours = engines.get("gustav:auto").into_iter().flatten();
    ours.filter_map(|(n, ms)| Some((*n, best(*n)? / ms))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    #[test]
    fn cublas_is_the_gemm_where_it_was_a_peer_and_dense_elsewhere() {
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
        let found = levelled(&vec![(1.0, 1.0), (1.01, 4.0), (3.0, 5.0)]);
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
        let text = crossings(&engines, &gemm);
        assert!(text.contains("a 4.0 %") && !text.contains("every"), "{text}");
        let below = BTreeMap::from([
            ("b".to_owned(), vec![(0.5, 1.0), (1.0, 1.0), (8.0, 7.0)]),
            ("elsewhere".to_owned(), vec![(0.5, 1.0)]),
        ]);
        assert_eq!(crossings(&below, &gemm), " Faster at every density of both: b.");
    }
}
