//! The implementations of Chen, Chen, Shih, Lee, "Accelerating Sparse Matrix Multiplication", 2025,
//! beside each other: time against N (figures 5 to 9), the GPU's kernel over the CPU's (figure 10),
//! and the kernel beside the pipeline at every density (figure 11).

use std::collections::{BTreeMap, BTreeSet};

use super::super::axis::Axis;
use super::super::figure::{Figure, Mark, slug};
use super::super::site::{Site, density};
use super::series;
use crate::{Record, Status};

type Points = Vec<(f64, f64)>;

/// What only the study measures, and every one of its rounds holds.
const MARK: &str = "shared-row+csr";
/// Its implementations, as records name them.
const SHOWN: [&str; 6] =
    ["gustavson", "hash-rows", "dense-naive", "shared-row", "shared-row+transfers", "pipeline"];
/// The paper's kernel on the GPU, its baseline on the CPU, and its pipeline of both.
const KERNEL: &str = "shared-row";
const BASELINE: &str = "hash-rows";
const PIPELINE: &str = "pipeline";

/// Times in milliseconds by sparsity in thousandths, algorithm and N.
type Times<'a> = BTreeMap<i64, BTreeMap<&'a str, BTreeMap<usize, f64>>>;

/// The figures of every GPU that the study ran on, on the most threads that were measured.
pub(crate) fn all(sites: &[Site]) -> Vec<Figure> {
    let records: Vec<&Record> = sites.iter().flat_map(|s| &s.records).collect();
    // Rounds of the study with their GPUs: the records of the CPU name none.
    let marked = records.iter().filter(|r| r.algorithm == MARK);
    let gpus: BTreeMap<(u64, &str), &str> = marked
        .filter_map(|r| Some(((r.group, r.case.matrix.as_str()), r.gpu.as_ref()?.name.as_str())))
        .collect();
    let gpu = |r: &Record| gpus.get(&(r.group, r.case.matrix.as_str())).copied();
    let places: BTreeSet<&str> = gpus.values().copied().collect();
    let mut figures = Vec::new();
    for place in places {
        let own: Vec<_> = records.iter().copied().filter(|r| gpu(r) == Some(place)).collect();
        let threads = own.iter().map(|r| r.threads).max().unwrap_or(0);
        let mut latest = BTreeMap::<_, &Record>::new();
        for r in own {
            let counts = r.status == Status::Ok && (r.threads == 0 || r.threads == threads);
            if let Some(name) = SHOWN.iter().find(|name| counts && **name == r.algorithm) {
                let sparsity = (1000.0 * (1.0 - density(r))).round() as i64;
                let kept = latest.entry((sparsity, *name, r.rows)).or_insert(r);
                if r.group >= kept.group {
                    *kept = r;
                }
            }
        }
        let mut times = Times::new();
        for ((sparsity, name, n), r) in latest {
            let own = times.entry(sparsity).or_default().entry(name).or_default();
            own.extend(r.execute_ms.map(|ms| (n, ms)));
        }
        figures.extend(times.iter().map(|(sparsity, own)| by_size(place, threads, *sparsity, own)));
        figures.push(over_the_cpu(place, threads, &times));
        figures.push(beside_the_pipeline(place, threads, &times));
    }
    figures.retain(|figure| figure.size() > 0);
    figures
}

fn points(times: &BTreeMap<usize, f64>) -> Points {
    times.iter().map(|(n, ms)| (*n as f64, *ms)).collect()
}

fn percent(sparsity: i64) -> String {
    format!("{} % zeros", sparsity as f64 / 10.0)
}

fn by_size(
    place: &str,
    threads: usize,
    sparsity: i64,
    times: &BTreeMap<&str, BTreeMap<usize, f64>>,
) -> Figure {
    let zeros = percent(sparsity);
    let named = times.iter().map(|(name, times)| ((*name).to_owned(), points(times)));
    Figure {
        id: slug(&format!("study size {place} {sparsity}")),
        title: format!("Random A times A, {place}: {zeros}"),
        caption: format!(
            "gustavson (ours) and hash-rows (the paper's) run on {threads} threads of the CPU; the \
             others on the GPU: dense-naive and shared-row from operands that lie there, \
             shared-row+transfers from CSR in host memory and back, pipeline from dense matrices \
             of the host, converted by its {threads} threads, to C on the GPU."
        ),
        x: Axis::doubling("N"),
        y: Axis::log("time (ms)"),
        series: series(named, Mark::Line),
        rules: Vec::new(),
    }
}

fn over_the_cpu(place: &str, threads: usize, times: &Times<'_>) -> Figure {
    let gains = times.iter().filter_map(|(sparsity, own)| {
        let (kernel, baseline) = (own.get(KERNEL)?, own.get(BASELINE)?);
        let gain = |(n, ms): (&usize, &f64)| Some((*n as f64, baseline.get(n)? / ms));
        Some((percent(*sparsity), kernel.iter().filter_map(gain).collect::<Points>()))
    });
    Figure {
        id: slug(&format!("study speedup {place}")),
        title: format!("Random A times A, {place}: {KERNEL} over {BASELINE}"),
        caption: format!(
            "Time of the paper's CSR baseline on {threads} threads of the CPU over that of its \
             kernel on the GPU, operands already there."
        ),
        x: Axis::doubling("N"),
        y: Axis::log("time on the CPU / on the GPU"),
        series: series(gains, Mark::Line),
        rules: Vec::new(),
    }
}

fn beside_the_pipeline(place: &str, threads: usize, times: &Times<'_>) -> Figure {
    let mut lines = Vec::new();
    for (sparsity, own) in times {
        for name in [KERNEL, PIPELINE] {
            if let Some(times) = own.get(name) {
                lines.push((format!("{name}, {}", percent(*sparsity)), points(times)));
            }
        }
    }
    Figure {
        id: slug(&format!("study pipeline {place}")),
        title: format!("Random A times A, {place}: {KERNEL} and {PIPELINE}"),
        caption: format!(
            "The kernel with operands on the GPU, and the pipeline with {threads} threads, which \
             starts from dense matrices of the host."
        ),
        x: Axis::doubling("N"),
        y: Axis::log("time (ms)"),
        series: series(lines, Mark::Line),
        rules: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Gpu;
    use crate::record::tests::record;

    #[test]
    fn the_cpu_of_the_same_rounds_is_the_baseline() {
        let one = |n: usize, group, algorithm: &str, threads, ms| {
            let gpu = Gpu { name: "a GPU".into(), ..Gpu::default() };
            let mut r = record(&format!("sparse:{n}x{n},0.95"), "gustav", algorithm);
            (r.rows, r.cols, r.nnz) = (n, n, n * n / 20);
            (r.group, r.threads, r.execute_ms) = (group, threads, Some(ms));
            r.gpu = (algorithm != BASELINE).then_some(gpu);
            r
        };
        let records = [
            one(100, 1, MARK, 0, 3.0),
            one(100, 1, KERNEL, 0, 2.0),
            one(100, 1, BASELINE, 4, 90.0),
            one(100, 1, BASELINE, 8, 50.0),
            one(200, 2, MARK, 0, 3.0),
            one(200, 2, KERNEL, 0, 4.0),
            one(200, 2, BASELINE, 8, 400.0),
            // Of rounds that are none of the study's.
            one(400, 3, KERNEL, 0, 4.0),
            one(400, 3, BASELINE, 8, 4.0),
        ];
        let figures = all(&Site::all(&records));
        let titles: Vec<_> = figures.iter().map(|f| f.title.as_str()).collect();
        assert_eq!(titles.len(), 3, "{titles:?}");
        let gains = Mark::Line(vec![(100.0, 25.0), (200.0, 100.0)]);
        assert_eq!(
            (&figures[1].series[0].name, &figures[1].series[0].mark),
            (&"95 % zeros".into(), &gains)
        );
        assert!(figures[0].title.ends_with("95 % zeros") && figures[0].series.len() == 2);
    }
}
