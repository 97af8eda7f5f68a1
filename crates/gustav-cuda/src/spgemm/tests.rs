//! The device memory that products allocate, and their behaviour if it does not suffice.

use std::sync::Arc;

use gustav_core::{Csr, Error, Problem, Result};
use gustav_plan::{Algorithm, Chooser};
use gustav_testkit::battery::matrices::random_rows;
use gustav_testkit::oracle;

use super::masked::{Config, MaskedPlan};
use super::{Options, SpgemmPlan};
use crate::device::Device;
use crate::device::ledger::{held, watched, with_free_memory, without_locked};
use crate::matrix::DeviceCsr;
use crate::product::{Call, SpgemmCall};

fn device() -> Device {
    Device::cuda(0).expect("a CUDA device")
}

/// Rows for all bins; the longest are cut into chunks.
fn operands() -> (Csr<f32>, Csr<f32>) {
    let nonzeros = |row: usize| if row % 997 == 7 { 9000 } else { [0, 1, 3, 20, 90][row % 5] };
    let a = random_rows(6000, 12_000, 1, nonzeros);
    let b = random_rows(12_000, 300, 2, |row| [1, 5, 0, 9][row % 4]);
    (a, b)
}

fn bytes_of(c: &DeviceCsr<f32>) -> usize {
    c.offsets().bytes() + c.indices().bytes() + c.values().bytes()
}

fn is_product(c: &DeviceCsr<f32>, a: &Csr<f32>, b: &Csr<f32>) -> bool {
    let c = c.download().expect("C");
    oracle::Spgemm::new(a.view(), b.view()).verify(c.view()).expect("shapes fit").ok
}

#[test]
#[ignore = "needs a CUDA device"]
fn the_limit_holds_for_all_memory_and_new_values_allocate_nothing() {
    let device = device();
    let (a, b) = operands();
    let transposed = a.view().transpose().expect("a transposed A");
    let [on_a, on_b, on_t] =
        [&a, &b, &transposed].map(|m| DeviceCsr::upload(&device, &m.view()).expect("an upload"));
    let stream = device.stream();
    for (calls, deterministic, transpose_a, most) in [
        (1, false, false, 60_000),
        (2, false, false, 60_000),
        (2, false, false, 20_000),
        (1, true, false, 60_000),
        (2, true, false, 20_000),
        (2, false, true, 60_000 + 12 * a.nnz()),
    ] {
        let left = if transpose_a { &on_t } else { &on_a };
        let problem = left
            .pattern()
            .spgemm(on_b.pattern())
            .problem
            .transpose_a(transpose_a)
            .deterministic(deterministic);
        let problem = problem.calls(calls);
        let options = Options { workspace: Some(most), ..Options::default() };
        let before = held();
        let (made, _, peak) =
            watched(|| SpgemmPlan::new(left.pattern(), on_b.pattern(), &problem, &options));
        let mut plan = made.expect("a plan");
        let case = format!("{calls} {deterministic} {transpose_a} {most}");
        // Computing the transpose needs more memory temporarily.
        assert!(peak - before <= most || transpose_a, "{} to plan, {case}", peak - before);
        let stated = plan.workspace_bytes();
        assert!(stated <= most && held() - before <= stated, "{case}");
        for call in 0..3 {
            let (c, taken, peak) =
                watched(|| plan.execute(left, &on_b, SpgemmCall::new().on(stream)));
            let c = c.expect("C");
            let beside = peak - before - bytes_of(&c);
            assert!(beside <= stated, "{beside} of {stated} in call {call}, {case}");
            // Only the arrays of C are allocated after the symbolic phase is cached.
            assert!(call + calls < 3 || taken == 3, "{taken} buffers in call {call}, {case}");
            assert!(is_product(&c, &a, &b), "call {call}, {case}");
        }
        let mut c = plan.execute(left, &on_b, SpgemmCall::new().on(stream)).expect("C");
        c.values_mut().fill(0xff, stream).expect("poison");
        let (done, taken, _) =
            watched(|| plan.execute_into(left, &on_b, &mut c, SpgemmCall::new().on(stream)));
        done.expect("new values");
        assert_eq!(taken, 0, "{case}");
        assert!(is_product(&c, &a, &b), "new values, {case}");
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn without_memory_for_all_rows_they_are_computed_in_parts() {
    let device = device();
    let (a, b) = operands();
    let [on_a, on_b] = [&a, &b].map(|m| DeviceCsr::upload(&device, &m.view()).expect("an upload"));
    let stream = device.stream();
    for deterministic in [false, true] {
        let problem = on_a.pattern().spgemm(on_b.pattern()).problem.deterministic(deterministic);
        let plan =
            || SpgemmPlan::new(on_a.pattern(), on_b.pattern(), &problem, &Options::default());
        let whole = plan().expect("a plan").workspace_bytes();
        let mut plan = with_free_memory(whole / 2, plan).expect("a plan in parts");
        assert!(plan.workspace_bytes() < whole);
        for _ in 0..2 {
            let c = plan.execute(&on_a, &on_b, SpgemmCall::new().on(stream)).expect("C");
            assert!(is_product(&c, &a, &b), "{deterministic}");
        }
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn what_was_computed_from_the_order_of_entries_goes_with_the_order() {
    let device = device();
    let (a, b) = operands();
    let [on_a, on_b] = [&a, &b].map(|m| DeviceCsr::upload(&device, &m.view()).expect("an upload"));
    let is_right = |c: &DeviceCsr<f32>| {
        let reference = oracle::Spgemm { sorted: false, ..oracle::Spgemm::new(a.view(), b.view()) };
        reference.verify(c.download().expect("C").view()).expect("shapes fit").ok
    };
    for deterministic in [false, true] {
        let problem = on_a.pattern().spgemm(on_b.pattern()).problem.sorted(false).calls(2);
        let problem = problem.deterministic(deterministic);
        let mut plan =
            SpgemmPlan::new(on_a.pattern(), on_b.pattern(), &problem, &Options::default())
                .expect("a plan");
        let mut c = plan.execute(&on_a, &on_b, SpgemmCall::new()).expect("C");
        let transposed = c.pattern().transposed(&device).expect("a transpose");
        plan.execute_into(&on_a, &on_b, &mut c, SpgemmCall::new()).expect("new values");
        assert!(is_right(&c), "{deterministic}");
        let again = c.pattern().transposed(&device).expect("a transpose");
        assert_eq!(Arc::ptr_eq(&transposed, &again), deterministic);

        let held = c.pattern().clone();
        let refused = plan.execute_into(&on_a, &on_b, &mut c, SpgemmCall::new());
        assert_eq!(matches!(refused, Err(Error::Pattern { .. })), !deterministic, "{refused:?}");
        drop(held);
        plan.execute_into(&on_a, &on_b, &mut c, SpgemmCall::new()).expect("new values");
        assert!(is_right(&c), "{deterministic}");
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn host_memory_that_was_refused_is_not_requested_again() {
    let device = device();
    let (a, b) = operands();
    let [on_a, on_b] = [&a, &b].map(|m| DeviceCsr::upload(&device, &m.view()).expect("an upload"));
    let (problem, stream) =
        (on_a.pattern().spgemm(on_b.pattern()).problem.calls(3), device.stream());
    let options = Options { workspace: Some(60_000), ..Options::default() };
    let mut plan = SpgemmPlan::new(on_a.pattern(), on_b.pattern(), &problem, &options)
        .expect("a plan in parts");
    for most in [1, 0, 0] {
        let ((), refused) = without_locked(|| {
            let mut c = plan.execute(&on_a, &on_b, SpgemmCall::new().on(stream)).expect("C");
            assert!(is_product(&c, &a, &b));
            c.values_mut().fill(0xff, stream).expect("poison");
            plan.execute_into(&on_a, &on_b, &mut c, SpgemmCall::new().on(stream))
                .expect("new values");
            assert!(is_product(&c, &a, &b), "new values");
        });
        assert_eq!(refused, most);
    }
}

/// Few rows of very many products, under a mask of few entries.
fn crowded() -> [Csr<f32>; 3] {
    let a = random_rows(20, 40_000, 1, |_| 20_000);
    let b = random_rows(40_000, 20_000, 2, |_| 10);
    let mask = random_rows(20, 20_000, 3, |_| 50);
    [a, b, mask]
}

#[test]
#[ignore = "needs a CUDA device"]
fn without_memory_for_all_of_c_the_mask_entries_are_computed_alone() {
    let device = device();
    let [a, b, mask] = crowded();
    let [on_a, on_b, on_m] =
        [&a, &b, &mask].map(|m| DeviceCsr::upload(&device, &m.view()).expect("an upload"));
    let (problem, stream) = (on_a.pattern().spgemm(on_b.pattern()).problem, device.stream());
    let plan = |problem: &Problem, options: &Options| -> Result<MaskedPlan<f32>> {
        MaskedPlan::new(on_a.pattern(), on_b.pattern(), on_m.pattern(), problem, options)
    };
    let checked = |c: &DeviceCsr<f32>| {
        let reference = oracle::Spgemm::new(a.view(), b.view());
        let reference = oracle::Spgemm { mask: Some(mask.view()), ..reference };
        let verdict = reference.verify(c.download().expect("C").view()).expect("shapes fit");
        assert!(verdict.ok, "{verdict}");
    };
    // All of C has some hundred thousand entries.
    let (little, usual) = (1 << 20, Options::default());
    for calls in [1, 2] {
        let problem = problem.clone().calls(calls);
        let mut plan = plan(&problem, &usual).expect("a plan");
        assert!(matches!(plan.choice().config, Config::Whole(_)), "{:?}", plan.choice());
        let c = with_free_memory(little, || plan.execute(&on_a, &on_b, Call::new().on(stream)));
        let mut c = c.expect("C at the mask entries alone");
        checked(&c);
        let choice = plan.choice();
        assert_eq!((choice.algorithm, choice.config), (Algorithm::Masked, Config::Positions));
        assert!(choice.reason.contains("no memory"), "{choice:?}");
        c.values_mut().fill(0xff, stream).expect("poison");
        plan.execute_into(&on_a, &on_b, &mut c, Call::new().on(stream)).expect("new values");
        checked(&c);
    }
    let once = || {
        super::masked::multiply(
            &on_a,
            &on_b,
            on_m.pattern(),
            &problem,
            &usual,
            Call::new().on(stream),
        )
    };
    checked(&with_free_memory(little, once).expect("C at the mask entries alone"));
    // A named algorithm has no replacement, and the plan stays usable.
    let named = Options { chooser: Chooser::Named(Algorithm::Binned), ..Options::default() };
    let mut plan = plan(&problem, &named).expect("a plan");
    let refused = with_free_memory(little, || plan.execute(&on_a, &on_b, Call::new().on(stream)));
    assert!(matches!(refused, Err(Error::OutOfMemory { .. })), "{refused:?}");
    checked(&plan.execute(&on_a, &on_b, Call::new().on(stream)).expect("C"));
}
