//! `masked` on the battery: the entries of the whole product at the entries of the mask, to the bit.

use gustav_core::{
    Csr, Error, Index, MaxTimes, MinPlus, OrAnd, PlusFirst, PlusSecond, PlusTimes, Problem, Scalar,
    StaticSemiring, bf16, f16,
};
use gustav_cuda::DeviceCsr;
use gustav_cuda::spgemm::masked::{self, MaskedPlan};
use gustav_cuda::spgemm::{Options, SpgemmPlan};
use gustav_cuda::{Call, SpgemmCall};
use gustav_plan::{Algorithm, Chooser};
use gustav_testkit::battery::matrices::{random_rows, unsorted};
use gustav_testkit::battery::{Settings, check_spgemm};
use gustav_testkit::oracle;

use crate::{device, same};

/// The entries of `c` at the entries of `mask`.
fn restricted<T: Scalar, I: Index, O: Index>(
    c: &Csr<T, I, O>,
    mask: &Csr<T, I, O>,
) -> Csr<T, I, O> {
    let (mut offsets, mut indices, mut values) = (vec![O::truncate(0)], Vec::new(), Vec::new());
    for row in 0..c.nrows() {
        let wanted: std::collections::BTreeSet<usize> =
            mask.view().row(row).0.iter().map(|j| j.to_usize()).collect();
        let (columns, entries) = c.view().row(row);
        for (j, value) in columns.iter().zip(entries) {
            if wanted.contains(&j.to_usize()) {
                indices.push(*j);
                values.push(*value);
            }
        }
        offsets.push(O::truncate(indices.len()));
    }
    Csr::new(c.nrows(), c.ncols(), offsets, indices, values).expect("entries of C")
}

/// At the entries of the mask alone, and all of C with a search for them; for one call and for later ones.
fn variants() -> [(Options, u64); 3] {
    let named = |a| Options { chooser: Chooser::Named(a), ..Options::default() };
    let whole = named(Algorithm::Binned);
    [(named(Algorithm::Masked), 1), (whole, 1), (whole, 3)]
}

/// The whole product in A's order, and its entries under several masks.
fn passes<T: Scalar, I: Index, O: Index, S: StaticSemiring<T::Accum>>() {
    let device = device();
    let settings = Settings { sorted: vec![true], ..Settings::default() };
    check_spgemm::<T, I, O, S>(&settings, |case| {
        let (a, b) = (DeviceCsr::upload(&device, &case.a)?, DeviceCsr::upload(&device, &case.b)?);
        // Where columns of B repeat, sums are added in any order: integers alone compare.
        let ordered = case.b.is_canonical();
        let problem =
            a.pattern().spgemm(b.pattern()).problem.semiring(S::KIND).deterministic(ordered);
        let mut plan = SpgemmPlan::new(a.pattern(), b.pattern(), &problem, &Options::default())?;
        let stream = device.new_stream()?;
        let whole = plan.execute(&a, &b, SpgemmCall::new().on(&stream))?.download()?;
        let (m, n) = (whole.nrows(), whole.ncols());
        let masks = [
            whole.clone(),
            random_rows(m, n, 21, |row| [n, 0, n / 2, 1][row % 4].min(n)),
            unsorted(m, n, 22),
            Csr::empty(m, n)?,
        ];
        for mask in masks {
            let expected = restricted(&whole, &mask);
            let exact = ordered || T::DTYPE.is_integer();
            let check = |found: Csr<T, I, O>| {
                assert_eq!(found.offsets(), expected.offsets());
                assert_eq!(found.indices(), expected.indices());
                assert!(!exact || same(&found, &expected), "{}", case.name);
            };
            let on_device = DeviceCsr::upload(&device, &mask.view())?;
            for (options, calls) in variants() {
                let problem = problem.clone().calls(calls);
                let c = masked::multiply(
                    &a,
                    &b,
                    on_device.pattern(),
                    &problem,
                    &options,
                    Call::new().on(&stream),
                );
                check(c?.download()?);
                let mut plan = MaskedPlan::new(
                    a.pattern(),
                    b.pattern(),
                    on_device.pattern(),
                    &problem,
                    &options,
                )?;
                let mut c = plan.execute(&a, &b, Call::new().on(&stream))?;
                for _ in 0..2 {
                    check(c.download()?);
                    c.values_mut().fill(0xff, &stream)?;
                    plan.execute_into(&a, &b, &mut c, Call::new().on(&stream))?;
                }
                check(c.download()?);
            }
        }
        Ok(whole)
    });
}

#[test]
#[ignore = "needs a CUDA device"]
fn the_battery_under_masks() {
    passes::<f32, u32, u32, PlusTimes>();
    passes::<f64, u32, u64, PlusTimes>();
    passes::<f16, u64, u32, PlusTimes>();
    passes::<bf16, u64, u64, PlusFirst>();
    passes::<i32, u32, u32, OrAnd>();
    passes::<i64, u32, u32, MinPlus>();
    passes::<f64, u32, u32, MaxTimes>();
    passes::<f32, u32, u32, PlusSecond>();
}

#[test]
#[ignore = "needs a CUDA device"]
fn rows_of_many_places_are_taken_in_parts() {
    let device = device();
    let a = random_rows::<f32, u32, u32>(40, 5000, 1, |row| [3, 4000, 700, 60][row % 4]);
    let b = random_rows::<f32, u32, u32>(5000, 20_000, 2, |row| row % 70);
    let lengths = |row: usize| [20_000, 9000, 1024, 257, 1025, 256][row % 6];
    let mask = random_rows::<f32, u32, u32>(40, 20_000, 3, lengths);
    let [on_a, on_b, on_m] =
        [&a, &b, &mask].map(|m| DeviceCsr::upload(&device, &m.view()).expect("an upload"));
    let problem = on_a.pattern().spgemm(on_b.pattern()).problem.deterministic(true);
    let options = Options::default();
    let mut plan =
        SpgemmPlan::new(on_a.pattern(), on_b.pattern(), &problem, &options).expect("a plan");
    let stream = device.stream();
    let whole = plan
        .execute(&on_a, &on_b, SpgemmCall::new().alpha(2.0).on(stream))
        .expect("C")
        .download()
        .expect("C");
    let c = masked::multiply(
        &on_a,
        &on_b,
        on_m.pattern(),
        &problem,
        &options,
        Call::new().alpha(2.0).on(stream),
    )
    .expect("C");
    assert!(same(&c.download().expect("C"), &restricted(&whole, &mask)));
    // Aᵀ under a mask.
    let at =
        DeviceCsr::upload(&device, &a.view().transpose().expect("Aᵀ").view()).expect("an upload");
    let problem = at.pattern().spgemm(on_b.pattern()).problem.transpose_a(true).deterministic(true);
    for (options, _) in variants() {
        let c = masked::multiply(
            &at,
            &on_b,
            on_m.pattern(),
            &problem,
            &options,
            Call::new().alpha(2.0).on(stream),
        )
        .expect("C");
        assert!(same(&c.download().expect("C"), &restricted(&whole, &mask)));
    }
}

/// Rows that are searched by 8 lanes and by 32, that a warp takes and that are cut, also by searching
/// Searches in rows of B for short rows of the mask; small enough for a sanitizer.
#[test]
#[ignore = "needs a CUDA device"]
fn rows_of_every_kind() {
    let device = device();
    let nonzeros = |row: usize| [2, 20, 60, 300, 0, 7][row % 6];
    let a = random_rows::<f32, u32, u32>(120, 300, 1, nonzeros);
    let lengths = |row: usize| [3, 40, 0, 1500, 9][row % 5];
    let sorted = random_rows::<f32, u32, u32>(300, 2000, 2, lengths);
    let mask = |lengths: [usize; 7]| {
        random_rows::<f32, u32, u32>(120, 2000, 3, move |row| lengths[row % 7])
    };
    let masks = [mask([3, 20, 200, 1500, 0, 1, 300]), mask([1, 2, 3, 4, 5, 0, 40])];
    for b in [sorted, unsorted::<f32, u32, u32>(300, 2000, 4)] {
        for mask in &masks {
            let [on_a, on_b, on_m] =
                [&a, &b, mask].map(|m| DeviceCsr::upload(&device, &m.view()).expect("an upload"));
            for (deterministic, (options, calls)) in
                [false, true].into_iter().flat_map(|d| variants().map(|variant| (d, variant)))
            {
                if deterministic && !b.view().is_canonical() {
                    continue;
                }
                let problem = on_a
                    .pattern()
                    .spgemm(on_b.pattern())
                    .problem
                    .deterministic(deterministic)
                    .calls(calls);
                let plan = MaskedPlan::new(
                    on_a.pattern(),
                    on_b.pattern(),
                    on_m.pattern(),
                    &problem,
                    &options,
                );
                let (mut plan, stream) = (plan.expect("a plan"), device.stream());
                let mut c = plan.execute(&on_a, &on_b, Call::new().on(stream)).expect("C");
                for _ in 0..2 {
                    let found = c.download().expect("C");
                    let reference = oracle::Spgemm::new(a.view(), b.view());
                    let reference = oracle::Spgemm { mask: Some(mask.view()), ..reference };
                    let verdict = reference.verify(found.view()).expect("shapes fit");
                    assert!(verdict.ok, "{verdict}");
                    c.values_mut().fill(0xff, stream).expect("poison");
                    plan.execute_into(&on_a, &on_b, &mut c, Call::new().on(stream)).expect("C");
                }
            }
        }
    }
}

/// As many short rows as a thread each merges the rows of B of.
#[test]
#[ignore = "needs a CUDA device"]
fn short_rows_that_fill_the_device() {
    let device = device();
    let a = random_rows::<f64, u32, u32>(150_000, 9000, 1, |row| row % 18);
    let b = random_rows::<f64, u32, u32>(9000, 300, 2, |row| row % 7);
    let mask = random_rows::<f64, u32, u32>(150_000, 300, 3, |row| [5, 0, 40, 1, 300][row % 5]);
    let [on_a, on_b, on_m] =
        [&a, &b, &mask].map(|m| DeviceCsr::upload(&device, &m.view()).expect("an upload"));
    let (problem, stream) =
        (on_a.pattern().spgemm(on_b.pattern()).problem.deterministic(true), device.stream());
    let plan = SpgemmPlan::new(on_a.pattern(), on_b.pattern(), &problem, &Options::default());
    let whole = plan
        .expect("a plan")
        .execute(&on_a, &on_b, SpgemmCall::new().alpha(2.0).on(stream))
        .expect("C");
    let expected = restricted(&whole.download().expect("C"), &mask);
    for (options, _) in variants() {
        let c = masked::multiply(
            &on_a,
            &on_b,
            on_m.pattern(),
            &problem,
            &options,
            Call::new().alpha(2.0).on(stream),
        );
        assert!(same(&c.expect("C").download().expect("C"), &expected));
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn the_choice_is_told_and_keeps_to_a_bound() {
    let device = device();
    // Few rows of many products, whose entries of the mask are one task each.
    let a = random_rows::<f32, u32, u32>(20, 40_000, 1, |_| 20_000);
    let b = random_rows::<f32, u32, u32>(40_000, 20, 2, |_| 10);
    let none = Csr::<f32>::empty(20, 20).expect("a mask");
    let [on_a, on_b, none] =
        [&a, &b, &none].map(|m| DeviceCsr::upload(&device, &m.view()).expect("an upload"));
    let (problem, options, stream) =
        (on_a.pattern().spgemm(on_b.pattern()).problem, Options::default(), device.stream());
    let mut whole =
        SpgemmPlan::new(on_a.pattern(), on_b.pattern(), &problem, &options).expect("a plan");
    let all = whole.execute(&on_a, &on_b, SpgemmCall::new().on(stream)).expect("C");
    let chosen = |mask: &DeviceCsr<f32>, problem: &Problem, options: &Options| {
        let plan = MaskedPlan::<f32>::new(
            on_a.pattern(),
            on_b.pattern(),
            mask.pattern(),
            problem,
            options,
        )
        .expect("a plan");
        (plan.choice().algorithm, plan.choice().reason.clone())
    };
    let (algorithm, why) = chosen(&none, &problem, &options);
    assert_eq!(algorithm, Algorithm::Masked, "{why}");
    assert!(why.starts_with("the 0 mask entries"), "{why}");
    let (algorithm, why) = chosen(&all, &problem, &options);
    assert_eq!(algorithm, Algorithm::Binned, "{why}");
    assert!(why.starts_with("all of C"), "{why}");
    let c =
        masked::multiply(&on_a, &on_b, all.pattern(), &problem, &options, Call::new().on(stream))
            .expect("C");
    let verdict = oracle::Spgemm::new(a.view(), b.view()).verify(c.download().expect("C").view());
    assert!(verdict.expect("shapes fit").ok);
    // All of C does not fit within the bound, and takes longer where its sums have an order.
    let bound = Options { workspace: Some(1000), ..options };
    assert_eq!(chosen(&all, &problem, &bound).0, Algorithm::Masked);
    let roomy = Options { workspace: Some(1 << 32), ..options };
    assert_eq!(chosen(&all, &problem, &roomy).0, Algorithm::Binned);
    let ordered = problem.clone().deterministic(true);
    assert_eq!(chosen(&all, &ordered, &options).0, Algorithm::Masked);
    let named = Options { chooser: Chooser::Named(Algorithm::Binned), ..bound };
    let refused =
        MaskedPlan::<f32>::new(on_a.pattern(), on_b.pattern(), all.pattern(), &problem, &named)
            .err();
    assert!(matches!(refused, Some(Error::OutOfMemory { .. })), "{refused:?}");
    let tuned = Options { chooser: Chooser::Autotune, ..options };
    let refused =
        MaskedPlan::<f32>::new(on_a.pattern(), on_b.pattern(), all.pattern(), &problem, &tuned)
            .err();
    assert!(matches!(refused, Some(Error::Unsupported { .. })), "{refused:?}");
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_mask_of_another_shape_is_refused() {
    let device = device();
    let a = random_rows::<f64, u32, u32>(9, 9, 1, |_| 3);
    let mask = random_rows::<f64, u32, u32>(9, 8, 1, |_| 3);
    let [a, mask] = [a, mask].map(|m| DeviceCsr::upload(&device, &m.view()).expect("an upload"));
    let refused = masked::multiply(
        &a,
        &a,
        mask.pattern(),
        &a.pattern().spgemm(a.pattern()).problem,
        &Options::default(),
        Call::new(),
    );
    assert!(matches!(refused, Err(Error::Shape { .. })), "{refused:?}");
}
