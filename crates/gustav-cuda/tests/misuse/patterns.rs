//! Another pattern of equal shape and number of nonzeros.

use gustav_core::{Error, Layout};
use gustav_cuda::spgemm::masked::MaskedPlan;
use gustav_cuda::spgemm::{self, DensePlan};
use gustav_cuda::{
    Call, DeviceCsr, DeviceDense, DevicePattern, SpgemmCall, SpgemmPlan, SpmmPlan, SpmvPlan, spmm,
    spmv,
};
use gustav_plan::{Algorithm, Chooser};

use crate::{device, numbers, product, upload, vector, whole};

const ROWS: usize = 200;

/// Refused in O(1) by name of the operand.
fn is_refused<T: std::fmt::Debug>(result: gustav_core::Result<T>, operand: &str) {
    let error = result.expect_err("another pattern");
    assert!(matches!(error, Error::Pattern { .. }), "{error}");
    assert!(error.to_string().contains(&format!("of {operand} ")), "{error}");
}

#[test]
#[ignore = "needs a CUDA device"]
fn spmm_refuses_another_pattern() {
    let device = device();
    let [a, other] = [0, 1].map(|shift| upload(&device, &whole(ROWS, shift)));
    assert_eq!(a.nnz(), other.nnz());
    let b = DeviceDense::zeros(&device, ROWS, 8, Layout::RowMajor).expect("B");
    let mut c = DeviceDense::zeros(&device, ROWS, 8, Layout::RowMajor).expect("C");
    let problem = a.pattern().spmm(8).problem;
    for transpose in [false, true] {
        let problem = problem.clone().transpose_a(transpose);
        let options = spmm::Options::default();
        let mut plan = SpmmPlan::<f32>::new(a.pattern(), &problem, &options).expect("a plan");
        is_refused(plan.execute(&other, &b, &mut c, Call::new()), "A");
        is_refused(plan.execute(other.values(), &b, &mut c, Call::new()), "A");
        is_refused(plan.execute_new(&other, &b, Call::new()).map(drop), "A");
        is_refused(plan.convert(&other, Call::new()), "A");
        plan.execute(&a, &b, &mut c, Call::new()).expect("its own pattern");
        // A plain buffer is in the plan's order by the caller's word.
        plan.execute(other.values().buffer(), &b, &mut c, Call::new()).expect("as many values");
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn spmv_refuses_another_pattern() {
    let device = device();
    let hosts = [0, 1].map(|shift| whole(ROWS, shift));
    let [a, other] = [&hosts[0], &hosts[1]].map(|host| upload(&device, host));
    let numbers = numbers(ROWS);
    let (x, mut y) = (vector(&device, &numbers), vector(&device, &numbers));
    let mut plan =
        SpmvPlan::<f32>::new(a.pattern(), &a.pattern().spmv().problem, &spmv::Options::default());
    let plan = plan.as_mut().expect("a plan");
    is_refused(plan.execute(&other, &x, &mut y, Call::new()), "A");
    assert!(y.to_host().expect("y")[..] == numbers, "nothing was written");
    // The same host pattern, wherever its copies are, and whatever matrix has it.
    let again = upload(&device, &hosts[0]);
    plan.execute(&again, &x, &mut y, Call::new()).expect("the same pattern");
    assert!(y.to_host().expect("y")[..] == product(&hosts[0], &numbers));
    let shared = DeviceCsr::from_pattern(a.pattern(), vector(&device, &vec![0.0; a.nnz()]));
    plan.execute(&shared.expect("zeros"), &x, &mut y, Call::new()).expect("the same pattern");
    assert!(y.to_host().expect("y").iter().all(|v| *v == 0.0));
}

#[test]
#[ignore = "needs a CUDA device"]
fn spgemm_refuses_another_pattern() {
    let device = device();
    let [a, other] = [0, 1].map(|shift| upload(&device, &whole(ROWS, shift)));
    let mut plan = SpgemmPlan::<f32>::new(
        a.pattern(),
        a.pattern(),
        &a.pattern().spgemm(a.pattern()).problem.calls(3),
        &spgemm::Options::default(),
    )
    .expect("a plan");
    is_refused(plan.execute(&other, &a, SpgemmCall::new()), "A");
    is_refused(plan.execute(&a, &other, SpgemmCall::new()), "B");
    let mut c = plan.execute(&a, &a, SpgemmCall::new()).expect("C");
    is_refused(plan.execute_into(&other, &a, &mut c, SpgemmCall::new()), "A");
    is_refused(plan.execute_into(&a, &other, &mut c, SpgemmCall::new()), "B");
    // A matrix with as many nonzeros as C in other places, and one in the same, of another plan.
    let twin = DeviceCsr::upload(&device, &c.download().expect("C").view());
    is_refused(plan.execute_into(&a, &a, &mut twin.expect("a twin"), SpgemmCall::new()), "C");
    plan.execute_into(&a, &a, &mut c, SpgemmCall::new()).expect("its own pattern");
    // D of another pattern than the one that C was united with.
    let mut sum = plan.execute(&a, &a, SpgemmCall::new().add(1.0, &a)).expect("C");
    let call = SpgemmCall::new().add(1.0, &other);
    is_refused(plan.execute_into(&a, &a, &mut sum, call), "D");
    plan.execute_into(&a, &a, &mut sum, SpgemmCall::new().add(1.0, &a)).expect("the same D");
}

#[test]
#[ignore = "needs a CUDA device"]
fn products_with_a_mask_and_with_a_dense_result_refuse_another_pattern() {
    let device = device();
    let [a, other] = [0, 1].map(|shift| upload(&device, &whole(ROWS, shift)));
    let (problem, options) = (a.pattern().spgemm(a.pattern()).problem, spgemm::Options::default());
    let mask: &DevicePattern = other.pattern();
    let plan = MaskedPlan::<f32>::new(a.pattern(), a.pattern(), mask, &problem, &options);
    let mut plan = plan.expect("a plan");
    is_refused(plan.execute(&other, &a, Call::new()), "A");
    is_refused(plan.execute(&a, &other, Call::new()), "B");
    let mut c = plan.execute(&a, &a, Call::new()).expect("C");
    let twin = DeviceCsr::upload(&device, &c.download().expect("C").view());
    is_refused(plan.execute_into(&a, &a, &mut twin.expect("a twin"), Call::new()), "C");
    plan.execute_into(&a, &a, &mut c, Call::new()).expect("its own pattern");

    let options = spgemm::Options { chooser: Chooser::Named(Algorithm::SharedRow), ..options };
    let plan = DensePlan::<f32>::new(a.pattern(), a.pattern(), &problem, &options);
    let mut plan = plan.expect("a plan");
    let mut c = DeviceDense::zeros(&device, ROWS, ROWS, Layout::RowMajor).expect("C");
    is_refused(plan.execute(&other, &a, &mut c, Call::new()), "A");
    is_refused(plan.execute(&a, &other, &mut c, Call::new()), "B");
}

/// C's pattern is computed once as long as somebody holds it, and values of all of them stay apart.
#[test]
#[ignore = "needs a CUDA device"]
fn results_of_one_plan_share_their_pattern() {
    let device = device();
    let mut host = whole(ROWS, 0);
    let mut a = upload(&device, &host);
    for sorted in [true, false] {
        let problem = a.pattern().spgemm(a.pattern()).problem.calls(3).sorted(sorted);
        let options = spgemm::Options::default();
        let mut plan =
            SpgemmPlan::<f32>::new(a.pattern(), a.pattern(), &problem, &options).expect("a plan");
        let first = plan.execute(&a, &a, SpgemmCall::new()).expect("C");
        let expected = first.download().expect("C");
        let doubled: Vec<f32> = host.values().iter().map(|v| 2.0 * v).collect();
        a.values_mut().write(&doubled).expect("values");
        let mut second = plan.execute(&a, &a, SpgemmCall::new()).expect("C");
        assert_eq!(first.pattern().id() == second.pattern().id(), sorted);
        assert!(first.download().expect("C") == expected, "the first is as it was");
        let kept = second.pattern().clone();
        let refilled = plan.execute_into(&a, &a, &mut second, SpgemmCall::new());
        // Unsorted rows may come out in another order, which nobody else must see.
        assert_eq!(refilled.is_ok(), sorted, "{refilled:?}");
        drop(kept);
        let quadrupled = second.download().expect("C");
        let sum = |c: &gustav_core::Csr<f32>| c.values().iter().map(|v| f64::from(*v)).sum::<f64>();
        assert_eq!(sum(&quadrupled), 4.0 * sum(&expected));
        host.values_mut().copy_from_slice(&doubled);
    }
}
