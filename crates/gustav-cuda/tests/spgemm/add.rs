//! C = α·A·B ⊕ β·D on the battery: the union of the product with D, to the bit.

use std::collections::BTreeMap;

use gustav_core::{
    Csr, Error, Index, MaxTimes, MinPlus, OrAnd, PlusFirst, PlusSecond, PlusTimes, Scalar,
    StaticSemiring, bf16, f16,
};
use gustav_cuda::spgemm::{Options, SpgemmPlan};
use gustav_cuda::{Device, DeviceCsr, SpgemmCall};
use gustav_testkit::battery::matrices::{random_rows, unsorted};
use gustav_testkit::battery::{Settings, check_spgemm};

use crate::{device, same};

/// P ⊕ β·D on the host.
fn united<T: Scalar, I: Index, O: Index, S: StaticSemiring<T::Accum>>(
    p: &Csr<T, I, O>,
    beta: T::Accum,
    d: &Csr<T, I, O>,
) -> Csr<T, I, O> {
    let (mut offsets, mut indices, mut values) = (vec![O::truncate(0)], Vec::new(), Vec::new());
    for row in 0..p.nrows() {
        let (columns, entries) = p.view().row(row);
        let own = columns.iter().zip(entries).map(|(j, v)| (j.to_usize(), v.to_accum()));
        let mut sums: BTreeMap<usize, T::Accum> = own.collect();
        let (columns, entries) = d.view().row(row);
        for (j, value) in columns.iter().zip(entries) {
            let scaled = S::scale(beta, value.to_accum());
            let sum = sums.get(&j.to_usize()).map_or(scaled, |sum| S::add(*sum, scaled));
            sums.insert(j.to_usize(), sum);
        }
        indices.extend(sums.keys().map(|j| I::truncate(*j)));
        values.extend(sums.values().map(|sum| T::from_accum(*sum)));
        offsets.push(O::truncate(indices.len()));
    }
    Csr::new(p.nrows(), p.ncols(), offsets, indices, values).expect("a union")
}

fn passes<T: Scalar, I: Index, O: Index, S: StaticSemiring<T::Accum>>() {
    let device = device();
    let beta = T::from_f64(2.0).to_accum();
    // Two roundings of NaN may differ in its bits.
    let settings = Settings { unsorted: false, nonfinite: false, ..Settings::default() };
    check_spgemm::<T, I, O, S>(&settings, |case| {
        let (a, b) = (DeviceCsr::upload(&device, &case.a)?, DeviceCsr::upload(&device, &case.b)?);
        let problem =
            a.pattern().spgemm(b.pattern()).problem.semiring(S::KIND).deterministic(true).calls(2);
        let mut plan = SpgemmPlan::new(a.pattern(), b.pattern(), &problem, &Options::default())?;
        let stream = device.new_stream()?;
        let product = plan.execute(&a, &b, SpgemmCall::new().on(&stream))?.download()?;
        let (m, n) = (product.nrows(), product.ncols());
        let others = [
            product.clone(),
            random_rows(m, n, 31, |row| [n, 0, n / 2, 1][row % 4].min(n)),
            Csr::empty(m, n)?,
        ];
        for host in others {
            let d = DeviceCsr::upload(&device, &host.view())?;
            let expected = united::<T, I, O, S>(&product, beta, &host);
            let mut c = plan.execute(&a, &b, SpgemmCall::new().add(beta, &d).on(&stream))?;
            assert!(same(&c.download()?, &expected), "{}", case.name);
            c.values_mut().fill(0xff, &stream)?;
            plan.execute_into(&a, &b, &mut c, SpgemmCall::new().add(beta, &d).on(&stream))?;
            assert!(same(&c.download()?, &expected), "{} anew", case.name);
        }
        let d = DeviceCsr::upload(&device, &product.view())?;
        let unread =
            plan.execute(&a, &b, SpgemmCall::new().add(S::zero(), &d).on(&stream))?.download()?;
        assert!(same(&unread, &product), "{}: D counts", case.name);
        Ok(product)
    });
}

#[test]
#[ignore = "needs a CUDA device"]
fn the_battery_united_with_a_sparse_matrix() {
    passes::<f32, u32, u32, PlusTimes>();
    passes::<f64, u32, u64, PlusTimes>();
    passes::<f16, u64, u32, PlusTimes>();
    passes::<bf16, u64, u64, PlusSecond>();
    passes::<i32, u32, u32, OrAnd>();
    passes::<i64, u32, u32, MinPlus>();
    passes::<f64, u32, u32, MaxTimes>();
    passes::<f32, u32, u32, PlusFirst>();
}

/// Products and D in any order, with repeated columns: integers add up in any order.
#[test]
#[ignore = "needs a CUDA device"]
fn rows_in_any_order() {
    fn check<S: StaticSemiring<i64>>() {
        let device = device();
        let a = unsorted::<i64, u32, u32>(300, 200, 1);
        let b = unsorted::<i64, u32, u32>(200, 250, 2);
        let host = unsorted::<i64, u32, u32>(300, 250, 3);
        let [a, b, d] =
            [&a, &b, &host].map(|m| DeviceCsr::upload(&device, &m.view()).expect("an upload"));
        let stream = device.stream();
        for sorted in [true, false] {
            let problem =
                a.pattern().spgemm(b.pattern()).problem.semiring(S::KIND).sorted(sorted).calls(2);
            let options = Options::default();
            let mut plan =
                SpgemmPlan::new(a.pattern(), b.pattern(), &problem, &options).expect("a plan");
            let product = plan
                .execute(&a, &b, SpgemmCall::new().on(stream))
                .expect("P")
                .download()
                .expect("P");
            let expected = united::<i64, u32, u32, S>(&product, 3, &host);
            let mut c = plan.execute(&a, &b, SpgemmCall::new().add(3, &d).on(stream)).expect("C");
            assert!(same(&c.download().expect("C"), &expected), "{}", S::KIND);
            c.values_mut().fill(0xff, stream).expect("poison");
            plan.execute_into(&a, &b, &mut c, SpgemmCall::new().add(3, &d).on(stream)).expect("C");
            assert!(same(&c.download().expect("C"), &expected), "{} anew", S::KIND);
        }
    }
    check::<PlusTimes>();
    check::<MinPlus>();
    check::<PlusFirst>();
    check::<PlusSecond>();
}

#[test]
#[ignore = "needs a CUDA device"]
fn long_rows_and_many() {
    let device = device();
    let a =
        random_rows::<f64, u32, u32>(3000, 3000, 4, |row| if row == 7 { 3000 } else { row % 5 });
    let host =
        random_rows::<f64, u32, u32>(3000, 3000, 5, |row| if row < 9 { 2900 } else { row % 3 });
    let [on_a, d] = [&a, &host].map(|m| DeviceCsr::upload(&device, &m.view()).expect("an upload"));
    let (problem, stream) =
        (on_a.pattern().spgemm(on_a.pattern()).problem.deterministic(true), device.stream());
    let options = Options::default();
    let mut plan =
        SpgemmPlan::new(on_a.pattern(), on_a.pattern(), &problem, &options).expect("a plan");
    let product =
        plan.execute(&on_a, &on_a, SpgemmCall::new().on(stream)).expect("P").download().expect("P");
    let expected = united::<f64, u32, u32, PlusTimes>(&product, -0.5, &host);
    let mut c = plan.execute(&on_a, &on_a, SpgemmCall::new().add(-0.5, &d).on(stream)).expect("C");
    assert!(same(&c.download().expect("C"), &expected));
    // The product was not kept for one call.
    plan.execute_into(&on_a, &on_a, &mut c, SpgemmCall::new().add(-0.5, &d).on(stream)).expect("C");
    assert!(same(&c.download().expect("C"), &expected));
}

#[test]
#[ignore = "needs a CUDA device"]
fn what_does_not_fit_is_refused() {
    let device = device();
    let a = random_rows::<f32, u32, u32>(20, 20, 1, |_| 3);
    let narrow = random_rows::<f32, u32, u32>(20, 7, 1, |_| 1);
    let [a, narrow] =
        [a, narrow].map(|m| DeviceCsr::upload(&device, &m.view()).expect("an upload"));
    let (options, stream) = (Options::default(), device.stream());
    let mut plan = SpgemmPlan::new(
        a.pattern(),
        a.pattern(),
        &a.pattern().spgemm(a.pattern()).problem,
        &options,
    )
    .expect("a plan");
    let refused = plan.execute(&a, &a, SpgemmCall::new().add(1.0, &narrow).on(stream));
    assert!(matches!(refused, Err(Error::Shape { .. })), "{refused:?}");
    let mut other =
        DeviceCsr::upload(&device, &a.download().expect("A").view()).expect("an upload");
    let early = plan.execute_into(&a, &a, &mut other, SpgemmCall::new().add(1.0, &a).on(stream));
    assert!(matches!(early, Err(Error::Pattern { .. })), "{early:?}");
    let mut c = plan.execute(&a, &a, SpgemmCall::new().add(1.0, &a).on(stream)).expect("C");
    let zero = plan.execute_into(&a, &a, &mut c, SpgemmCall::new().add(0.0, &a).on(stream));
    assert!(matches!(zero, Err(Error::Argument { .. })), "{zero:?}");
}

/// Entries of one place whose sum would not be what is promised.
#[test]
#[ignore = "needs a CUDA device"]
fn repeated_entries_of_d_are_refused_where_their_sum_is_not_exact() {
    fn refused<T: Scalar>(device: &Device, deterministic: bool, one: T::Accum) -> Option<Error> {
        let a = random_rows::<T, u32, u32>(300, 300, 1, |_| 3);
        let repeated = unsorted::<T, u32, u32>(300, 300, 2);
        let [a, d] =
            [&a, &repeated].map(|m| DeviceCsr::upload(device, &m.view()).expect("an upload"));
        let problem = a.pattern().spgemm(a.pattern()).problem.deterministic(deterministic);
        let mut plan = SpgemmPlan::new(a.pattern(), a.pattern(), &problem, &Options::default())
            .expect("a plan");
        plan.execute(&a, &a, SpgemmCall::new().alpha(one).add(one, &d)).err()
    }
    let device = device();
    for error in [refused::<f16>(&device, false, 1.0), refused::<f32>(&device, true, 1.0)] {
        let error = error.expect("a refusal");
        assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains("canonicalize"), "{error}");
    }
    assert!(refused::<f32>(&device, false, 1.0).is_none());
}

/// Two handles of one GPU have a stream each.
#[test]
#[ignore = "needs a CUDA device"]
fn operands_of_another_handle_are_waited_for() {
    let devices = [device(), Device::cuda(0).expect("the same device")];
    let host = random_rows::<f64, u32, u32>(3000, 3000, 5, |row| 20 + row % 30);
    let [a, b] = [&devices[0], &devices[1]]
        .map(|device| DeviceCsr::upload(device, &host.view()).expect("an upload"));
    let problem = a.pattern().spgemm(a.pattern()).problem.deterministic(true);
    let mut plan =
        SpgemmPlan::new(a.pattern(), a.pattern(), &problem, &Options::default()).expect("a plan");
    let expected =
        plan.execute(&a, &a, SpgemmCall::new().on(devices[0].stream())).expect("C").download();
    let expected = expected.expect("C");
    for _ in 0..10 {
        let product = b.pattern().spgemm(b.pattern()).problem.deterministic(true);
        let mut there = SpgemmPlan::new(b.pattern(), b.pattern(), &product, &Options::default())
            .expect("a plan");
        // Queued on the other handle's stream, and freed while it may still be read.
        let square = there.execute(&b, &b, SpgemmCall::new().on(devices[1].stream())).expect("C");
        let problem = a.pattern().spgemm(square.pattern()).problem.deterministic(true);
        let mut plan =
            SpgemmPlan::new(a.pattern(), square.pattern(), &problem, &Options::default())
                .expect("a plan");
        let cube = plan.execute(&a, &square, SpgemmCall::new().on(devices[0].stream())).expect("C");
        drop(square);
        let poison = DeviceCsr::upload(&devices[1], &expected.view()).expect("an upload");
        let on_host = DeviceCsr::upload(&devices[0], &expected.view()).expect("an upload");
        let problem = a.pattern().spgemm(on_host.pattern()).problem.deterministic(true);
        let mut plan =
            SpgemmPlan::new(a.pattern(), on_host.pattern(), &problem, &Options::default())
                .expect("a plan");
        let again =
            plan.execute(&a, &on_host, SpgemmCall::new().on(devices[0].stream())).expect("C");
        let [cube, again] = [cube, again].map(|c| c.download().expect("C"));
        assert!(same(&cube, &again));
        drop(poison);
    }
}
