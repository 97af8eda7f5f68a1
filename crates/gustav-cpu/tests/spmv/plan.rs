use std::sync::Arc;

use gustav_core::{Csr, Error, Pattern, PatternRef, PatternView, Problem, Scale, Semiring, Values};
use gustav_cpu::{Options, SpmvPlan, spmv};
use gustav_plan::{Algorithm, Chooser};
use gustav_testkit::battery::matrices::random_rows;
use gustav_testkit::battery::values::values;
use gustav_testkit::oracle;

use crate::battery::options;

/// Options for every algorithm, instruction set of this machine and 1, 2 and 5 threads.
fn all_options() -> impl Iterator<Item = Options> {
    spmv::catalog().iter().flat_map(|entry| options(entry.algorithm))
}

/// [`all_options`] and transposition, where the algorithm has it.
fn options_and_sides() -> impl Iterator<Item = (Options, bool)> {
    let one_sided = |o: &Options| o.chooser == Chooser::Named(Algorithm::CompressedIndex);
    all_options()
        .flat_map(|o| [(o.clone(), false), (o, true)])
        .filter(move |(o, transposed)| !(*transposed && one_sided(o)))
}

fn plan<'a>(
    pattern: impl Into<PatternRef<'a, u32, u32>>,
    problem: &Problem,
    options: &Options,
) -> SpmvPlan<'a, f32> {
    SpmvPlan::new(pattern, problem, options).unwrap()
}

fn execute<'v>(
    plan: &mut SpmvPlan<'_, f32>,
    values: impl Into<Values<'v, f32>>,
    x: &[f32],
    rows: usize,
) -> gustav_core::Result<Vec<f32>> {
    let mut y = vec![f32::NAN; rows];
    plan.execute(values, x, &mut y, ()).map(|()| y)
}

#[test]
fn takes_new_values() {
    let a: Csr<f32> = random_rows(500, 400, 9, |r| r % 40);
    let x = values::<f32>(400, 1);
    for options in all_options() {
        let mut plan = plan(&a, &Problem::spmv(&a.view()), &options);
        for seed in 10..13 {
            let new = values::<f32>(a.nnz(), seed);
            let b = a.pattern().view().with_values(&new).unwrap();
            let y = execute(&mut plan, b, &x, 500).unwrap();
            let kind = Semiring::PlusTimes;
            let verdict = oracle::spmv(kind, b, false, &x, 1.0, 0.0, None, &y).unwrap();
            assert!(verdict.ok, "{options:?}: {verdict}");
            assert_eq!(execute(&mut plan, &new, &x, 500).unwrap(), y, "{options:?}");
        }
    }
}

#[test]
fn refuses_other_patterns_and_lengths() {
    let a: Csr<f32> = random_rows(520, 400, 9, |r| r % 40);
    let of_the_same_size: Csr<f32> = random_rows(520, 400, 9, |r| (r + 1) % 40);
    assert_eq!(of_the_same_size.nnz(), a.nnz());
    let x = values::<f32>(400, 1);
    for options in all_options() {
        let problem = Problem::spmv(&a.view());
        let mut plan = plan(&a, &problem, &options);
        for (rows, cols, length) in [(519, 400, 20), (520, 401, 20), (520, 400, 7)] {
            let b: Csr<f32> = random_rows(rows, cols, 9, |_| length);
            let refusal = execute(&mut plan, &b, &x, 520).unwrap_err();
            assert!(matches!(refusal, Error::Pattern { .. }), "{refusal}");
            let refusal = SpmvPlan::<f32>::new(&b, &problem, &options).map(|_| ()).unwrap_err();
            assert!(matches!(refusal, Error::Pattern { .. }), "{refusal}");
        }
        let refusal = execute(&mut plan, &of_the_same_size, &x, 520).unwrap_err();
        assert!(matches!(refusal, Error::Pattern { .. }), "{refusal}");
        for length in [0, a.nnz() - 1, a.nnz() + 1] {
            let refusal = execute(&mut plan, &vec![1.0; length], &x, 520).unwrap_err();
            assert!(matches!(refusal, Error::Length { .. }), "{refusal}");
        }
        execute(&mut plan, &vec![1.0; a.nnz()], &x, 520).unwrap();
        for (inner, rows) in [(399, 520), (401, 520), (400, 519), (400, 521)] {
            let refusal = execute(&mut plan, &a, &vec![1.0; inner], rows).unwrap_err();
            assert!(matches!(refusal, Error::Shape { op: "spmv", .. }), "{refusal}");
        }
    }
}

#[test]
fn obeys_the_semiring_of_its_problem() {
    // Plus-times gives [50, 60].
    let a = Csr::<f32>::new(2, 2, vec![0, 2, 3], vec![0, 1, 1], vec![1.0, 2.0, 3.0]).unwrap();
    let problem = Problem::spmv(&a.view()).semiring(Semiring::MinPlus);
    let mut ran = 0;
    for (options, transposed) in options_and_sides() {
        let problem = problem.clone().transpose_a(transposed);
        let planned = SpmvPlan::<f32>::new(&a, &problem, &options);
        if options.chooser == Chooser::Named(Algorithm::CompressedIndex) {
            let refused = planned.map(|_| ());
            assert!(matches!(refused, Err(Error::Unsupported { .. })), "{refused:?}");
            continue;
        }
        let mut plan = planned.unwrap();
        let expected = if transposed { [11.0, 12.0] } else { [11.0, 23.0] };
        assert_eq!(execute(&mut plan, &a, &[10.0, 20.0], 2).unwrap(), expected, "{options:?}");
        // α and β are added, the smaller sum stays.
        let mut y = [7.0, 7.0];
        let scale = Scale::new().alpha(1.0).beta(6.0);
        plan.execute(&a, &[10.0, 20.0], &mut y, scale).unwrap();
        assert_eq!(y, [12.0, 13.0], "{options:?}");
        ran += 1;
    }
    assert!(ran >= 2 * (spmv::catalog().len() - 1));
}

#[test]
fn plans_of_a_pattern_a_view_and_owners_agree() {
    let a: Csr<f32> = random_rows(500, 400, 9, |r| r % 40);
    let (offsets, indices): (Arc<[u32]>, Arc<[u32]>) = (a.offsets().into(), a.indices().into());
    let owners = Pattern::from_owners(500, 400, offsets.clone(), indices.clone()).unwrap();
    let view = PatternView::new(500, 400, &offsets, &indices).unwrap();
    for (options, transposed) in options_and_sides() {
        let problem = Problem::spmv(&a.view()).transpose_a(transposed);
        let x = values::<f32>(problem.inner(), 1);
        let plans = [
            plan(a.pattern(), &problem, &options),
            plan(view, &problem, &options),
            plan(&owners, &problem, &options),
        ];
        let of_a = a.values().as_slice();
        let [one, two, three] =
            plans.map(|mut plan| execute(&mut plan, of_a, &x, problem.output_rows()).unwrap());
        assert!(one.iter().any(|y| *y != 0.0), "an empty product proves nothing");
        assert!(one == two && one == three, "{options:?}, transposed {transposed}");
    }
}

#[test]
fn plans_share_the_transposed_pattern() {
    let a: Csr<f32> = random_rows(50, 40, 9, |r| r % 7);
    let transposed = a.pattern().transposed().unwrap();
    let before = Arc::strong_count(&transposed);
    let problem = Problem::spmv(&a.view()).transpose_a(true);
    let chooser = Chooser::Named(Algorithm::RowSplit);
    let options = Options { chooser, ..Options::default() };
    let plans = [(); 2].map(|()| plan(&a, &problem, &options));
    assert_eq!(Arc::strong_count(&transposed), before + 2);
    drop(plans);
    assert_eq!(Arc::strong_count(&transposed), before);
}

#[test]
fn a_plan_outlives_its_pattern_and_goes_to_another_thread() {
    for (options, transposed) in options_and_sides() {
        let a: Csr<f32> = random_rows(500, 400, 9, |r| r % 40);
        let problem = Problem::spmv(&a.view()).transpose_a(transposed);
        let (x, of_a) = (values::<f32>(problem.inner(), 1), a.values().as_slice().to_vec());
        let product = |mut plan: SpmvPlan<'static, f32>| {
            execute(&mut plan, &of_a, &x, problem.output_rows()).unwrap()
        };
        let [here, there] = [(); 2].map(|()| plan(&a, &problem, &options));
        let expected = product(here);
        drop(a);
        let found = std::thread::scope(|scope| scope.spawn(|| product(there)).join().unwrap());
        assert_eq!(found, expected, "{options:?}");
    }
}

#[test]
fn autotuning_is_refused_with_the_way_to_do_it() {
    let a: Csr<f32> = random_rows(5, 4, 9, |_| 2);
    let options = Options { chooser: Chooser::Autotune, ..Options::default() };
    let refusal =
        SpmvPlan::<f32>::new(&a, &Problem::spmv(&a.view()), &options).map(|_| ()).unwrap_err();
    assert!(refusal.to_string().contains("gustav::Device"), "{refusal}");
}
