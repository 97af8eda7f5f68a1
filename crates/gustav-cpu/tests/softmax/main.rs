//! Softmax and its gradient on the CPU.

mod segmented;

use gustav_core::{Csr, Error, HeadValues, Operation, Problem, Result};
use gustav_cpu::arch::Isa;
use gustav_cpu::{Options, SoftmaxPlan, Threads};
use gustav_plan::{Algorithm, Chooser};
use gustav_testkit::battery::matrices::random_rows;
use gustav_testkit::battery::values::values;
use gustav_testkit::oracle;

fn options(isa: Isa, threads: usize) -> Options {
    let threads = Threads::new(threads, false).expect("threads");
    Options { isa: Some(isa), threads, ..Options::default() }
}

/// A pattern with cut, short and empty rows.
fn matrix() -> Csr<f32> {
    random_rows(300, 6000, 1, |row| match row {
        7 => 5500,
        100 => 1025,
        _ => row % 40,
    })
}

fn plan<'a>(a: &Csr<f32>, heads: usize, options: &Options) -> SoftmaxPlan<'a, f32> {
    let request = a.pattern().softmax().heads(heads);
    SoftmaxPlan::new(request.pattern, &request.problem, options).expect("a plan")
}

#[test]
fn threads_do_not_change_a_bit_and_long_rows_are_right() {
    let a = matrix();
    for order in [HeadValues::HeadMajor, HeadValues::NonzeroMajor] {
        let (x, g) = (values::<f32>(2 * a.nnz(), 2), values::<f32>(2 * a.nnz(), 3));
        let results = [1, 2, 3, 7].map(|threads| {
            let mut plan = plan(&a, 2, &options(Isa::detect(), threads));
            let (mut y, mut dx) = (vec![f32::NAN; x.len()], vec![f32::NAN; x.len()]);
            plan.execute(&x, &mut y, order).expect("a softmax");
            plan.gradient(&y, &g, &mut dx, order).expect("a gradient");
            (y, dx)
        });
        assert!(results.iter().all(|r| *r == results[0]));
        let reference = oracle::Softmax { pattern: a.pattern().view(), heads: 2, order };
        let (y, dx) = &results[0];
        let verdict = reference.verify(&x, y).expect("lengths that fit");
        assert!(verdict.ok, "{verdict}");
        let verdict = reference.verify_gradient(y, &g, dx).expect("lengths that fit");
        assert!(verdict.ok, "{verdict}");
    }
}

#[test]
fn what_does_not_fit_is_refused_and_nothing_is_written() {
    let (a, options) = (matrix(), options(Isa::detect(), 2));
    let nnz = a.nnz();
    let (x, mut out) = (vec![1.0; 2 * nnz], vec![5.0; 2 * nnz]);
    let mut two = plan(&a, 2, &options);
    let order = HeadValues::HeadMajor;
    let length = |r: Result<()>| assert!(matches!(r, Err(Error::Length { .. })), "{r:?}");
    length(two.execute(&x[1..], &mut out, order));
    length(two.execute(&x, &mut out[1..], order));
    length(two.gradient(&x[1..], &x, &mut out, order));
    length(two.gradient(&x, &x[1..], &mut out, order));
    length(two.gradient(&x, &x, &mut out[1..], order));
    let shared = two.execute(&x[..nnz], &mut out[..nnz], HeadValues::Shared);
    assert!(matches!(shared, Err(Error::Argument { .. })), "{shared:?}");
    let mut one = plan(&a, 1, &options);
    let other = matrix();
    let refused = one.execute(other.values(), &mut out[..nnz], HeadValues::Shared);
    assert!(matches!(refused, Err(Error::Pattern { .. })), "{refused:?}");
    assert!(out.iter().all(|v| *v == 5.0));
    one.execute(a.values(), &mut out[..nnz], HeadValues::Shared).expect("a softmax");
    assert_eq!(one.choice().algorithm.name(), "segmented");
    assert!(one.workspace_bytes() > 0 && one.pattern_id() == a.pattern().id());
}

#[test]
fn problems_that_are_none_are_refused() {
    let a = matrix();
    let right = a.pattern().softmax().problem;
    let refused = |problem: &Problem, options: &Options| {
        let error = SoftmaxPlan::<f32>::new(a.pattern(), problem, options).err();
        let error = error.expect("a refusal");
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
    };
    let plain = Options::default();
    refused(&Problem { batch: 0, ..right.clone() }, &plain);
    refused(&Problem { operation: Operation::Attention, ..right.clone() }, &plain);
    refused(&right.clone().transpose_a(true), &plain);
    let chooser = Chooser::Named(Algorithm::NonzeroSplit);
    refused(&right, &Options { chooser, ..Options::default() });
    let integers = SoftmaxPlan::<i32>::new(a.pattern(), &right, &plain).err();
    assert!(matches!(integers, Some(Error::Unsupported { .. })));
}
