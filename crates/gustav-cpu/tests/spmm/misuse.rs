//! What a plan refuses, and what it holds of its pattern.

use std::sync::Arc;

use gustav_core::{
    Csr, Dense, Error, Layout, Pattern, PatternRef, PatternView, Problem, Scale, Semiring,
};
use gustav_cpu::{Options, SpmmPlan};

use crate::battery::numbers;
use crate::plan::{choosers, matrix};

fn plan<'a>(
    pattern: impl Into<PatternRef<'a, u32, u32>>,
    problem: &Problem,
    options: &Options,
) -> SpmmPlan<'a, f32> {
    SpmmPlan::new(pattern, problem, options).unwrap()
}

/// A matrix of the shape and number of nonzeros of `matrix`, with one nonzero in another column.
fn moved() -> Csr<f32> {
    let a = matrix(1.0);
    let mut indices = a.indices().to_vec();
    indices[17] = (indices[17] + 1) % 30;
    Csr::new(40, 30, a.offsets().to_vec(), indices, a.values().as_slice().to_vec()).unwrap()
}

#[test]
fn values_of_another_pattern_are_refused_and_a_slice_is_taken() {
    // Equal arrays, but another pattern; and the same number of nonzeros elsewhere.
    let (a, equal, moved) = (matrix(1.0), matrix(1.0), moved());
    assert_eq!(moved.nnz(), a.nnz());
    for (chooser, n) in choosers().flat_map(|c| [(c, 1), (c, 4)]) {
        let options = Options { chooser, ..Options::default() };
        let mut plan = plan(&a, &Problem::spmm(&a.view()).columns(n), &options);
        let b = Dense::from_row_major(30, n, numbers(30 * n)).unwrap();
        let mut c = Dense::zeros(40, n, Layout::RowMajor).unwrap();
        for other in [&equal, &moved] {
            let refused = plan.execute(other, &b, &mut c, ());
            assert!(matches!(refused, Err(Error::Pattern { .. })), "{chooser}: {refused:?}");
        }
        assert!(c.data().iter().all(|x| *x == 0.0), "{chooser}: a refused call wrote C");
        plan.execute(&a, &b, &mut c, ()).unwrap();
        let expected = c.clone();
        c.data_mut().fill(f32::NAN);
        plan.execute(equal.values().as_slice(), &b, &mut c, ()).unwrap();
        assert_eq!(c.data(), expected.data(), "{chooser}");
        let copy = a.clone();
        plan.execute(&copy, &b, &mut c, ()).unwrap();
    }
}

#[test]
fn slices_of_the_wrong_length_are_refused() {
    let a = matrix(1.0);
    for (chooser, transposed) in choosers().flat_map(|c| [(c, false), (c, true)]) {
        let options = Options { chooser, ..Options::default() };
        let problem = Problem::spmm(&a.view()).columns(4).transpose_a(transposed);
        let mut plan = plan(&a, &problem, &options);
        let b = Dense::zeros(problem.inner(), 4, Layout::RowMajor).unwrap();
        let mut c = Dense::zeros(problem.output_rows(), 4, Layout::RowMajor).unwrap();
        for length in [0, a.nnz() - 1, a.nnz() + 1] {
            let refused = plan.execute(&vec![1.0; length], &b, &mut c, ());
            let found = matches!(refused, Err(Error::Length { found, .. }) if found == length);
            assert!(found, "{chooser}: {refused:?}");
        }
    }
}

#[test]
fn a_plan_obeys_the_semiring_of_its_problem() {
    // Plus-times gives [50, 10; 60, 15].
    let a = Csr::<f32>::new(2, 2, vec![0, 2, 3], vec![0, 1, 1], vec![1.0, 2.0, 3.0]).unwrap();
    let [both, first] = [vec![10.0, 0.0, 20.0, 5.0], vec![10.0, 20.0]]
        .map(|data| Dense::from_row_major(2, data.len() / 2, data).unwrap());
    for chooser in choosers() {
        let options = Options { chooser, ..Options::default() };
        let product = |b: &Dense<f32>, transposed, scale: Scale<f32>| {
            let problem = Problem::spmm(&a.view())
                .columns(b.ncols())
                .transpose_a(transposed)
                .semiring(Semiring::MinPlus);
            let mut c = Dense::from_row_major(2, b.ncols(), vec![7.0; 2 * b.ncols()]).unwrap();
            plan(&a, &problem, &options).execute(&a, b, &mut c, scale).unwrap();
            c.data().to_vec()
        };
        let plain = Scale::new();
        assert_eq!(product(&both, false, plain), [11.0, 1.0, 23.0, 8.0], "{chooser}");
        assert_eq!(product(&first, false, plain), [11.0, 23.0], "{chooser}");
        assert_eq!(product(&first, true, plain), [11.0, 12.0], "{chooser}");
        // α and β are added, the smaller sum stays: min(1 + 11, 6 + 7), min(1 + 23, 6 + 7).
        let scale = Scale::new().alpha(1.0).beta(6.0);
        assert_eq!(product(&first, false, scale), [12.0, 13.0], "{chooser}");
    }
}

#[test]
fn plans_of_a_pattern_a_view_and_owners_agree() {
    let a = matrix(1.0);
    let (offsets, indices): (Arc<[u32]>, Arc<[u32]>) = (a.offsets().into(), a.indices().into());
    let owners = Pattern::from_owners(40, 30, offsets.clone(), indices.clone()).unwrap();
    let view = PatternView::new(40, 30, &offsets, &indices).unwrap();
    for (chooser, transposed) in choosers().flat_map(|c| [(c, false), (c, true)]) {
        for n in [1, 20] {
            let options = Options { chooser, ..Options::default() };
            let problem = Problem::spmm(&a.view()).columns(n).transpose_a(transposed);
            let b = Dense::from_row_major(problem.inner(), n, numbers(problem.inner() * n));
            let b = b.unwrap();
            let plans = [
                plan(a.pattern(), &problem, &options),
                plan(view, &problem, &options),
                plan(&owners, &problem, &options),
            ];
            let results = plans.map(|mut plan| {
                let mut c = Dense::zeros(problem.output_rows(), n, Layout::RowMajor).unwrap();
                plan.execute(a.values().as_slice(), &b, &mut c, ()).unwrap();
                c.data().to_vec()
            });
            assert!(results[0].iter().any(|x| *x != 0.0), "an empty product proves nothing");
            assert_eq!(results[0], results[1], "{chooser}, n = {n}, transposed {transposed}");
            assert_eq!(results[0], results[2], "{chooser}, n = {n}, transposed {transposed}");
        }
    }
}

#[test]
fn plans_share_the_transposed_pattern() {
    let a = matrix(1.0);
    let transposed = a.pattern().transposed().unwrap();
    let before = Arc::strong_count(&transposed);
    let problem = Problem::spmm(&a.view()).columns(4).transpose_a(true);
    let plans = [(); 2].map(|()| plan(&a, &problem, &Options::default()));
    assert_eq!(Arc::strong_count(&transposed), before + 2);
    drop(plans);
    assert_eq!(Arc::strong_count(&transposed), before);
}

#[test]
fn a_plan_outlives_its_pattern_and_goes_to_another_thread() {
    let values = matrix(1.0).values().as_slice().to_vec();
    for chooser in choosers() {
        let options = Options { chooser, ..Options::default() };
        for (n, transposed) in [(1, false), (6, false), (6, true)] {
            let problem = Problem::spmm(&matrix(1.0).view()).columns(n).transpose_a(transposed);
            let (b, c) = (problem.inner(), problem.output_rows());
            let b = Dense::from_row_major(b, n, numbers(b * n)).unwrap();
            let product = |mut plan: SpmmPlan<'static, f32>| {
                let mut c = Dense::zeros(c, n, Layout::RowMajor).unwrap();
                plan.execute(&values, &b, &mut c, ()).unwrap();
                c.data().to_vec()
            };
            let pattern = matrix(1.0).pattern().clone();
            let [here, there] = [(); 2].map(|()| plan(&pattern, &problem, &options));
            let expected = product(here);
            drop(pattern);
            let found = std::thread::scope(|scope| scope.spawn(|| product(there)).join().unwrap());
            assert_eq!(found, expected, "{chooser}");
        }
    }
}
