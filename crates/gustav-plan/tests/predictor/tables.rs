//! Measured times that follow from what a predictor sees. The tests of `gustav-train` include this file.

use gustav_plan::Features;
use gustav_plan::predictor::{Candidate, Case, Inputs, Table};

/// Features with three numbers that vary.
fn features(nrow: f64, longest: f64, apart: f64) -> Features {
    let mut f = Features { nrow, ncol: nrow, density: 1e-3, ..Features::default() };
    f.nnz_per_row.max = longest;
    f.adjacent_vector_distance.mean = apart;
    f
}

/// Matrices of which `k` says all; the fastest candidate follows from two features.
pub fn case(k: usize) -> Case {
    let longest = (1 + k * 37 % 200) as f64;
    let apart = (k * 53 % 90) as f64;
    let nrow = 1000.0 + (k * 11 % 70) as f64 * 300.0;
    let base = nrow * 1e-4;
    let lpt = if longest > 100.0 { 0.6 } else { 1.1 };
    let warp = if apart > 45.0 { 0.5 } else { 1.3 };
    let ms = vec![base, base * 1.2, base * lpt, base * warp];
    let source = format!("source {}", k % 30);
    let inputs = features(nrow, longest, apart).into();
    Case { matrix: format!("m{k}"), source, inputs, ms }
}

pub fn table(cases: usize) -> Table {
    Table::new(Candidate::OF_THE_SOURCE.to_vec(), (0..cases).map(case).collect()).expect("a table")
}

/// A table of which the costs say all and the features nothing.
pub fn costly() -> Table {
    let case = |k: usize| {
        let costs = [3, 5, 7].map(|p| ((k * p) % 11) as f64 / 5.0 - 1.0);
        let ms = std::iter::once(1.0).chain(costs.map(f64::exp)).collect();
        let inputs = Inputs { features: features(9.0, 3.0, 1.0), costs: costs.into() };
        Case { inputs, ms, ..case(k) }
    };
    let cases = (0..300).map(case).collect();
    Table::new(Candidate::OF_THE_SOURCE.to_vec(), cases).expect("a table")
}
