use gustav_core::{Csr, Dense, Layout, Problem};
use gustav_cpu::{Options, SpmmPlan};
use gustav_plan::{Algorithm, Chooser};

use crate::battery;

#[test]
fn passes_the_battery() {
    battery::run(Algorithm::RowBlock, None);
}

#[test]
fn does_not_depend_on_the_number_of_threads() {
    battery::deterministic(Algorithm::RowBlock, None);
}

#[test]
fn runs_of_equal_rows_of_every_length() {
    // Runs of 1 to 9 rows with the same columns, each run with columns of its own.
    let (mut offsets, mut indices) = (vec![0u32], Vec::new());
    for run in 1..10u32 {
        for _ in 0..run {
            indices.extend((0..run + 2).map(|k| (5 * run + 3 * k) % 60));
            offsets.push(indices.len() as u32);
        }
    }
    let values = battery::numbers(indices.len());
    let a = Csr::<f32>::new(offsets.len() - 1, 60, offsets, indices, values).unwrap();
    let b = Dense::from_row_major(60, 33, battery::numbers(60 * 33)).unwrap();
    let product = |algorithm| {
        let options = Options { chooser: Chooser::Named(algorithm), ..Options::default() };
        let problem = Problem::spmm(&a.view()).columns(33);
        let mut c = Dense::zeros(a.nrows(), 33, Layout::RowMajor).unwrap();
        let mut plan = SpmmPlan::new(&a, &problem, &options).unwrap();
        plan.execute(&a, &b, &mut c, ()).unwrap();
        c
    };
    let (blocked, split) = (product(Algorithm::RowBlock), product(Algorithm::RowSplit));
    for (k, (x, y)) in blocked.data().iter().zip(split.data()).enumerate() {
        assert!((x - y).abs() <= 1e-5, "element {k}: {x} and {y}");
    }
}
