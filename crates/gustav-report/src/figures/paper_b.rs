//! The implementations of Chen, Chen, Shih, Lee, "Accelerating Sparse Matrix Multiplication", 2025:
//! time against N (figures 5 to 9), the GPU's kernel over the CPU's (figure 10), and the kernel and
//! the pipeline at every density (figure 11).

use crate::analysis::{PaperB, Platform};
use crate::draw::{Axis, Figure, Mark, Points, series};

/// The study's implementations, as records name them.
const SHOWN: [&str; 7] = [
    "dense-naive",
    "dense-naive+cpu",
    "gustavson",
    "hash-rows",
    "pipeline",
    "shared-row",
    "shared-row+transfers",
];
/// The paper's kernel on the GPU, its baseline on the CPU, and its pipeline of both.
const KERNEL: &str = "shared-row";
const BASELINE: &str = "hash-rows";
const PIPELINE: &str = "pipeline";

/// The figures of every GPU of the study, with the most threads that were measured.
pub(super) fn all(platforms: &[Platform]) -> Vec<Figure> {
    let mut figures: Vec<_> = PaperB::all(platforms).iter().flat_map(of).collect();
    figures.retain(|figure| figure.size() > 0);
    figures
}

fn of(study: &PaperB<'_>) -> Vec<Figure> {
    let (gpu, threads) = (study.gpu, study.most_threads());
    let title = |what: String| format!("Random A times A, {gpu}: {what}");
    let percent = |sparsity: i64| format!("{} % zeros", sparsity as f64 / 10.0);
    let times = |sparsity: i64, name: &str| -> Points {
        let time = |n: usize| Some((n as f64, study.time(sparsity, name, n, threads)?));
        study.sizes().into_iter().filter_map(time).collect()
    };
    let axes = || [Axis::doubling("N"), Axis::log("time (ms)")];
    let by_size = |sparsity: i64| {
        let named = SHOWN.map(|name| (name, times(sparsity, name)));
        Figure::new(
            format!("study size {gpu} {sparsity}"),
            title(percent(sparsity)),
            format!(
                "gustavson (ours) and hash-rows (the paper's) run on {threads} threads of the CPU, \
                 dense-naive+cpu on one (above N = 4096 times of these three are of some rows, scaled up); \
                 the others on the GPU: dense-naive and shared-row with operands in its memory, \
                 shared-row+transfers from CSR in host memory and back, pipeline from dense matrices \
                 of the host, converted by its {threads} threads, to C on the GPU."
            ),
            axes(),
            series(named, Mark::Line),
        )
    };
    let gain = |sparsity| (percent(sparsity), study.gains([KERNEL, BASELINE], sparsity, threads));
    let gains = study.sparsities().into_iter().map(gain);
    let over_the_cpu = Figure::new(
        format!("study speedup {gpu}"),
        title(format!("{KERNEL} over {BASELINE}")),
        format!(
            "Time of the paper's CSR baseline on {threads} threads of the CPU over that of its \
             kernel on the GPU, operands already there."
        ),
        [Axis::doubling("N"), Axis::log("time on the CPU / on the GPU")],
        series(gains, Mark::Line),
    );
    let sparsities = study.sparsities().into_iter();
    let both = sparsities.flat_map(|s| [KERNEL, PIPELINE].map(|name| (name, s)));
    let line = |(name, s)| (format!("{name}, {}", percent(s)), times(s, name));
    let beside_the_pipeline = Figure::new(
        format!("study pipeline {gpu}"),
        title(format!("{KERNEL} and {PIPELINE}")),
        format!(
            "The kernel with operands on the GPU, and the pipeline with {threads} threads, which \
             starts from dense matrices of the host."
        ),
        axes(),
        series(both.map(line), Mark::Line),
    );
    let by_size = study.sparsities().into_iter().map(by_size);
    by_size.chain([over_the_cpu, beside_the_pipeline]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::paper_b_round as round;
    use crate::record::tests::record;

    #[test]
    fn the_cpu_of_the_same_rounds_is_the_baseline() {
        let first = [(KERNEL, 0, 2.0), (BASELINE, 4, 90.0), (BASELINE, 8, 50.0)];
        let mut records = round(100, 0.95, &first);
        records.extend(round(200, 0.95, &[(KERNEL, 0, 4.0), (BASELINE, 8, 400.0)]));
        // A round outside the study.
        records.push(record("sparse:400x400,0.95", "gustav", KERNEL));
        let figures = all(&Platform::all(&records));
        assert_eq!(figures.len(), 3, "{figures:?}");
        let gains = Mark::Line(vec![(100.0, 25.0), (200.0, 100.0)]);
        let series = &figures[1].series[0];
        assert_eq!((series.name.as_str(), &series.mark), ("95 % zeros", &gains));
        assert!(figures[0].title.ends_with("95 % zeros") && figures[0].series.len() == 2);
    }
}
