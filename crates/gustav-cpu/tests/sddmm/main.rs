//! SDDMM against the battery, for all types, instruction sets of this machine and several numbers
//! of threads; and what a plan promises.

use gustav_core::{
    Csr, Dense, DenseView, Error, Index, Layout, Operation, Problem, Result, Scale, Semiring, bf16,
    f16,
};
use gustav_cpu::arch::Isa;
use gustav_cpu::sddmm::RowsOfX;
use gustav_cpu::{CpuScalar, Options, SddmmCall, SddmmPlan, Threads};
use gustav_plan::{Algorithm, Chooser};
use gustav_testkit::battery::matrices::random_rows;
use gustav_testkit::battery::values::values;
use gustav_testkit::battery::{Settings, check_sddmm};
use gustav_testkit::oracle;

fn options(isa: Isa, threads: usize) -> Options {
    let threads = Threads::new(threads, false).expect("threads");
    Options { isa: Some(isa), threads, ..Options::default() }
}

fn battery<T: CpuScalar, I: Index, O: Index>() {
    for (k, isa) in Isa::ALL.into_iter().filter(|isa| isa.available()).enumerate() {
        let options = options(isa, [1, 2, 5][k % 3]);
        check_sddmm::<T, I, O>(&Settings::default(), |case| {
            let (x, y) = (case.x.layout(), case.y.layout());
            let request = case.pattern.sddmm(case.x.ncols()).layouts(x, y);
            let mut plan = SddmmPlan::new(request.pattern, &request.problem, &options)?;
            let scale = Scale::new().alpha(case.alpha).beta(case.beta);
            let factors = case.factors.map(Into::into);
            plan.execute(case.x, case.y, case.values, SddmmCall { scale, factors })
        });
    }
}

#[test]
fn passes_the_battery_in_f32() {
    battery::<f32, u32, u32>();
    battery::<f32, u64, u64>();
}

#[test]
fn passes_the_battery_in_f64() {
    battery::<f64, u32, u32>();
    battery::<f64, u32, u64>();
    battery::<f64, u64, u32>();
}

#[test]
fn passes_the_battery_in_16_bits() {
    battery::<f16, u32, u32>();
    battery::<bf16, u32, u32>();
}

#[test]
fn passes_the_battery_in_integers() {
    battery::<i32, u32, u32>();
    battery::<i64, u64, u64>();
}

/// A pattern with long, short and empty rows.
fn matrix() -> Csr<f32> {
    random_rows(300, 200, 1, |row| if row % 50 == 7 { 190 } else { row % 9 })
}

fn dense(rows: usize, seed: u64) -> Dense<f32> {
    Dense::from_row_major(rows, 70, values(70 * rows, seed)).expect("values")
}

fn plan<'a>(a: &Csr<f32>, options: &Options) -> SddmmPlan<'a, f32> {
    let request = a.pattern().sddmm(70);
    SddmmPlan::new(request.pattern, &request.problem, options).expect("a plan")
}

#[test]
fn threads_do_not_change_a_bit() {
    let (a, x, y) = (matrix(), dense(300, 2), dense(200, 3));
    let results = [1, 2, 3, 7].map(|threads| {
        let mut found = vec![f32::NAN; a.nnz()];
        let mut plan = plan(&a, &options(Isa::detect(), threads));
        plan.execute(&x, &y, &mut found, ()).expect("a product");
        found
    });
    assert!(results[0].iter().any(|v| *v != 0.0));
    assert!(results.iter().all(|r| *r == results[0]));
}

#[test]
fn what_does_not_fit_is_refused_and_nothing_is_written() {
    let (a, x, y) = (matrix(), dense(300, 2), dense(200, 3));
    let mut plan = plan(&a, &Options::default());
    let mut out = vec![5.0; a.nnz()];
    let shape = |r: Result<()>| assert!(matches!(r, Err(Error::Shape { .. })), "{r:?}");
    shape(plan.execute(&y, &y, &mut out, ()));
    shape(plan.execute(&x, &x, &mut out, ()));
    let narrow = Dense::<f32>::zeros(300, 69, Layout::RowMajor).expect("zeros");
    shape(plan.execute(&narrow, &y, &mut out, ()));
    let turned = x.to_layout(Layout::ColumnMajor).expect("a copy");
    shape(plan.execute(&turned, &y, &mut out, ()));
    for length in [0, a.nnz() - 1, a.nnz() + 1] {
        let refused = plan.execute(&x, &y, &mut vec![5.0; length], ());
        assert!(matches!(refused, Err(Error::Length { .. })), "{refused:?}");
        let factors = vec![1.0; length];
        let call = SddmmCall { scale: Scale::new(), factors: Some(factors[..].into()) };
        let refused = plan.execute(&x, &y, &mut out, call);
        assert!(matches!(refused, Err(Error::Length { .. })), "{refused:?}");
    }
    // Factors of an equal pattern that is another one.
    let other = matrix();
    let call = SddmmCall { scale: Scale::new(), factors: Some(other.values()) };
    let refused = plan.execute(&x, &y, &mut out, call);
    assert!(matches!(refused, Err(Error::Pattern { .. })), "{refused:?}");
    assert!(out.iter().all(|v| *v == 5.0));
    plan.execute(&x, &y, &mut out, ()).expect("a product");
}

#[test]
fn rows_of_a_larger_x_are_taken() {
    // Rows 299, 298, ... of X for rows 0, 1, ... of the pattern.
    let (part, y) = (random_rows::<f32, u32, u32>(120, 200, 1, |row| row % 9), dense(200, 3));
    let rows: Vec<u32> = (0..120).map(|row| 299 - row).collect();
    for layout in [Layout::RowMajor, Layout::ColumnMajor] {
        let x = dense(300, 2).to_layout(layout).expect("a copy");
        let request = part.pattern().sddmm(70).layouts(layout, Layout::RowMajor);
        let of = |rows: &[u32], of| {
            let rows = Some(RowsOfX { rows: rows.to_vec(), of });
            SddmmPlan::<f32>::of_rows(part.pattern(), rows, &request.problem, &Options::default())
        };
        let mut plan = of(&rows, 300).expect("a plan");
        let mut found = vec![f32::NAN; part.nnz()];
        plan.execute(&x, &y, &mut found, ()).expect("a product");
        let picked = Dense::from_row_major(
            120,
            70,
            rows.iter().flat_map(|row| (0..70).map(|k| x.view().get(*row as usize, k))).collect(),
        );
        let picked = picked.expect("rows of X");
        let expected = oracle::Sddmm::new(part.pattern().view(), picked.view(), y.view());
        let verdict = expected.verify(&found).expect("a verdict");
        assert!(verdict.ok, "{verdict}");
        // X has as many rows as was said.
        let refused = plan.execute(&picked, &y, &mut found, ());
        assert!(matches!(refused, Err(Error::Shape { .. })), "{refused:?}");
        assert!(matches!(of(&rows[1..], 300), Err(Error::Length { .. })));
        assert!(matches!(of(&rows, 299), Err(Error::Index { .. })));
    }
}

#[test]
fn other_problems_and_algorithms_are_refused() {
    let a = matrix();
    let request = a.pattern().sddmm(70);
    let refused = |problem: &Problem, options: &Options| {
        let plan = SddmmPlan::<f32>::new(a.pattern(), problem, options);
        let error = plan.err().expect("a refusal");
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    };
    let plain = Options::default();
    refused(&Problem { operation: Operation::Spmm, ..request.problem.clone() }, &plain);
    refused(&request.problem.clone().semiring(Semiring::MinPlus), &plain);
    refused(&request.problem.clone().transpose_a(true), &plain);
    for chooser in [Chooser::Named(Algorithm::RowSplit), Chooser::MeanRowLength] {
        refused(&request.problem, &Options { chooser, ..Options::default() });
    }
}

#[test]
fn column_major_operands_are_taken_in_every_execution() {
    let (a, x, y) = (matrix(), dense(300, 2), dense(200, 3));
    let request = a.pattern().sddmm(70).layouts(Layout::ColumnMajor, Layout::ColumnMajor);
    let mut turned =
        SddmmPlan::new(request.pattern, &request.problem, &Options::default()).expect("a plan");
    let turn = |m: &Dense<f32>| m.to_layout(Layout::ColumnMajor).expect("a copy");
    for (x, y) in [(x.clone(), y.clone()), (dense(300, 8), dense(200, 9))] {
        let (mut expected, mut found) = (vec![0.0; a.nnz()], vec![0.0; a.nnz()]);
        plan(&a, &Options::default()).execute(&x, &y, &mut expected, ()).expect("a product");
        let (x, y) = (turn(&x), turn(&y));
        turned.execute(DenseView::from(&x), &y, &mut found, ()).expect("a product");
        assert_eq!(found, expected);
    }
}

#[test]
fn operands_without_columns_give_zeros_whatever_their_leading_dimension() {
    let a = matrix();
    let none = |rows| DenseView::<f32>::new(rows, 0, Layout::RowMajor, usize::MAX, &[]);
    let (x, y) = (none(300).expect("X"), none(200).expect("Y"));
    let request = a.pattern().sddmm(0);
    let mut plan =
        SddmmPlan::new(request.pattern, &request.problem, &Options::default()).expect("a plan");
    let mut found = vec![f32::NAN; a.nnz()];
    plan.execute(x, y, &mut found, ()).expect("a product");
    assert!(found.iter().all(|v| *v == 0.0));
    let verdict = gustav_testkit::oracle::Sddmm::new(a.pattern(), x, y).verify(&found);
    assert!(verdict.expect("shapes that fit").ok);
}
