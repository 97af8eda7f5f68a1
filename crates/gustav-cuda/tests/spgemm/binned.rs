//! `binned` on the battery: types, index types and semirings.

use gustav_core::{
    Csr, CsrView, DType, Error, Index, MaxTimes, MinPlus, OrAnd, PlusFirst, PlusSecond, PlusTimes,
    Result, Scalar, StaticSemiring, bf16, f16,
};
use gustav_cuda::DeviceCsr;
use gustav_cuda::spgemm::{Options, SpgemmPlan, multiply};
use gustav_cuda::{Call, SpgemmCall};
use gustav_plan::{Algorithm, Chooser};
use gustav_testkit::battery::matrices::{random_rows, unsorted};
use gustav_testkit::battery::{Settings, check_spgemm};
use gustav_testkit::oracle;

use crate::{battery, device, same};

fn passes<T: Scalar, I: Index, O: Index, S: StaticSemiring<T::Accum>>() {
    let chooser = Chooser::Named(Algorithm::Binned);
    battery::<T, I, O, S>(&Settings::default(), &Options { chooser, ..Options::default() });
}

macro_rules! battery {
    ($($name:ident: $t:ty, $semiring:ident, $index:ty, $offset:ty;)*) => {$(
        #[test]
        #[ignore = "needs a CUDA device"]
        fn $name() {
            passes::<$t, $index, $offset, $semiring>();
        }
    )*};
}

battery! {
    f32_plus_times: f32, PlusTimes, u32, u32;
    f64_plus_times: f64, PlusTimes, u32, u64;
    f16_plus_times: f16, PlusTimes, u64, u32;
    bf16_plus_times: bf16, PlusTimes, u64, u64;
    i32_plus_times: i32, PlusTimes, u32, u32;
    i64_plus_times: i64, PlusTimes, u32, u32;
    f32_min_plus: f32, MinPlus, u32, u32;
    f64_max_times: f64, MaxTimes, u32, u32;
    i32_or_and: i32, OrAnd, u64, u64;
    f64_plus_first: f64, PlusFirst, u32, u32;
    f16_plus_second: f16, PlusSecond, u32, u32;
    i64_min_plus: i64, MinPlus, u64, u32;
}

/// A product and its values anew, both against the oracle.
fn twice<T: Scalar>(a: Csr<T>, b: Csr<T>) {
    let device = device();
    let [on_a, on_b] = [&a, &b].map(|m| DeviceCsr::upload(&device, &m.view()).expect("an upload"));
    let (problem, stream) = (on_a.pattern().spgemm(on_b.pattern()).problem, device.stream());
    let mut plan = SpgemmPlan::new(on_a.pattern(), on_b.pattern(), &problem, &Options::default())
        .expect("a plan");
    let one = T::one().to_accum();
    let mut c = plan.execute(&on_a, &on_b, SpgemmCall::new().alpha(one).on(stream)).expect("C");
    let reference = oracle::Spgemm::new(a.view(), b.view());
    let check = |c: &DeviceCsr<T>| {
        let verdict = reference.verify(c.download().expect("C").view()).expect("shapes fit");
        assert!(verdict.ok, "{verdict}");
    };
    check(&c);
    c.values_mut().fill(0xff, stream).expect("poison");
    plan.execute_into(&on_a, &on_b, &mut c, SpgemmCall::new().alpha(one).on(stream)).expect("C");
    check(&c);
}

#[test]
#[ignore = "needs a CUDA device"]
fn few_very_long_rows() {
    fn check<T: Scalar>() {
        for columns in [20, 300, 8000] {
            let a = random_rows::<T, u32, u32>(9, 20_000, 1, |row| 9000 + 1000 * row);
            let b = random_rows::<T, u32, u32>(20_000, columns, 2, |row| row % 9);
            twice(a, b);
        }
    }
    check::<f32>();
    check::<f64>();
    check::<bf16>();
    check::<i64>();
}

#[test]
#[ignore = "needs a CUDA device"]
fn many_short_rows() {
    // As many as fill the device with a thread each; rows of B that meet share their first columns.
    fn short(rows: usize, columns: usize, most: usize) -> Csr<f32> {
        let row = |row: usize| {
            let first = row / 8 * 48_271 % (columns - 64);
            (0..row % most).map(move |k| (first + k * (2 + row % 2)) as u32)
        };
        let ends = (0..rows).scan(0, |end, i| {
            *end += (i % most) as u32;
            Some(*end)
        });
        let offsets: Vec<u32> = std::iter::once(0).chain(ends).collect();
        let indices: Vec<u32> = (0..rows).flat_map(row).collect();
        let values: Vec<f32> = (0..indices.len()).map(|k| (k % 1001) as f32 - 500.25).collect();
        Csr::new(rows, columns, offsets, indices, values).expect("a matrix")
    }
    for most in [4, 9, 19] {
        let (a, b) = (short(150_000, 90_000, most), short(90_000, 100_000, most));
        twice(a, b);
    }
}

/// The battery with a promised order of summation: every product ten times, also into a known
/// pattern and under a bound on the workspace, the same to the bit.
fn promised<T: Scalar, I: Index, O: Index, S: StaticSemiring<T::Accum>>() {
    let device = device();
    let settings = Settings { unsorted: false, ..Settings::default() };
    check_spgemm::<T, I, O, S>(&settings, |case| {
        let (a, b) = (DeviceCsr::upload(&device, &case.a)?, DeviceCsr::upload(&device, &case.b)?);
        let problem = a
            .pattern()
            .spgemm(b.pattern())
            .problem
            .sorted(case.sorted)
            .semiring(S::KIND)
            .deterministic(true);
        let stream = device.new_stream()?;
        let mut first = None;
        for workspace in [None, Some(4096)] {
            let options = Options { workspace, ..Options::default() };
            let mut plan = SpgemmPlan::new(a.pattern(), b.pattern(), &problem, &options)?;
            for _ in 0..5 {
                let mut c = plan.execute(&a, &b, SpgemmCall::new().on(&stream))?;
                let made = c.download()?;
                c.values_mut().fill(0xff, &stream)?;
                plan.execute_into(&a, &b, &mut c, SpgemmCall::new().on(&stream))?;
                let again = c.download()?;
                let first = first.get_or_insert_with(|| made.clone());
                assert!(same(first, &made) && same(first, &again), "{}", case.name);
            }
        }
        Ok(first.expect("a product"))
    });
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_promised_order_is_kept() {
    promised::<f32, u32, u32, PlusTimes>();
    promised::<f64, u32, u64, PlusTimes>();
    promised::<f16, u64, u32, PlusSecond>();
    promised::<bf16, u64, u64, PlusTimes>();
    promised::<i32, u32, u32, OrAnd>();
    promised::<i64, u32, u32, MinPlus>();
    promised::<f64, u32, u32, MaxTimes>();
}

#[test]
#[ignore = "needs a CUDA device"]
fn twenty_runs_are_the_same_to_the_bit() {
    let device = device();
    // Hubs, whose sums many threads add to, and rows that a warp has.
    let hub = |row: usize| if row % 500 == 3 { 3000 } else { row % 40 };
    let host = random_rows::<f32, u32, u32>(4000, 4000, 5, hub);
    let a = DeviceCsr::upload(&device, &host.view()).expect("A");
    let problem = a.pattern().spgemm(a.pattern()).problem.deterministic(true);
    let mut first = None;
    for _ in 0..20 {
        let options = Options::default();
        let mut plan =
            SpgemmPlan::new(a.pattern(), a.pattern(), &problem, &options).expect("a plan");
        let c = plan.execute(&a, &a, SpgemmCall::new()).expect("C").download().expect("C");
        let first = first.get_or_insert_with(|| c.clone());
        assert!(same(first, &c), "another result");
    }
    let first = first.expect("a product");
    let verdict = oracle::Spgemm::new(host.view(), host.view()).verify(first.view());
    assert!(verdict.expect("shapes fit").ok);
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_promised_order_needs_rows_of_b_in_order() {
    let device = device();
    let b = unsorted::<f32, u32, u32>(60, 60, 1);
    let b = DeviceCsr::upload(&device, &b.view()).expect("B");
    let problem = b.pattern().spgemm(b.pattern()).problem.deterministic(true);
    let refused =
        SpgemmPlan::<f32>::new(b.pattern(), b.pattern(), &problem, &Options::default()).err();
    let refused = refused.expect("a refusal");
    assert!(matches!(refused, Error::Unsupported { .. }), "{refused}");
    assert!(refused.to_string().contains("canonicalize"), "{refused}");
}

/// Values of 16 bits, sums in f32: as the product of the same matrices in f32.
#[test]
#[ignore = "needs a CUDA device"]
fn sums_as_they_are() {
    fn check<T: Scalar<Accum = f32>, I: Index, O: Index, S: StaticSemiring<f32>>() {
        fn widened<T: Scalar<Accum = f32>, I: Index, O: Index>(
            m: CsrView<'_, T, I, O>,
        ) -> Result<Csr<f32, I, O>> {
            let values: Vec<f32> = m.values().iter().map(|v| v.to_accum()).collect();
            Csr::new(m.nrows(), m.ncols(), m.offsets().to_vec(), m.indices().to_vec(), values)
        }
        let (device, options) = (device(), Options::default());
        check_spgemm::<T, I, O, S>(&Settings::default(), |case| {
            let a = DeviceCsr::upload(&device, &case.a)?;
            let b = DeviceCsr::upload(&device, &case.b)?;
            let narrow =
                a.pattern().spgemm(b.pattern()).problem.semiring(S::KIND).sorted(case.sorted);
            let problem = narrow.clone().output(DType::F32);
            let mut plan = SpgemmPlan::<T, I, O, f32>::with_output(
                a.pattern(),
                b.pattern(),
                &problem,
                &options,
            )?;
            let stream = device.new_stream()?;
            let mut c = plan.execute(&a, &b, SpgemmCall::new().on(&stream))?;
            c.values_mut().fill(0xff, &stream)?;
            plan.execute_into(&a, &b, &mut c, SpgemmCall::new().on(&stream))?;
            let (left, right) = (widened(case.a)?, widened(case.b)?);
            let reference = oracle::Spgemm::new(left.view(), right.view());
            let reference = oracle::Spgemm { semiring: S::KIND, sorted: case.sorted, ..reference };
            let verdict = reference.verify(c.download()?.view())?;
            assert!(verdict.ok, "{}: {verdict}", case.name);
            SpgemmPlan::new(a.pattern(), b.pattern(), &narrow, &options)?
                .execute(&a, &b, SpgemmCall::new().on(&stream))?
                .download()
        });
    }
    check::<f16, u32, u32, PlusTimes>();
    check::<bf16, u64, u32, PlusTimes>();
    check::<f16, u32, u64, MinPlus>();
    check::<bf16, u32, u32, PlusFirst>();
}

#[test]
#[ignore = "needs a CUDA device"]
fn wide_sums_are_added_to_and_promised() {
    let (device, options) = (device(), Options::default());
    let a = random_rows::<f16, u32, u32>(500, 500, 1, |row| row % 40);
    let d = random_rows::<f32, u32, u32>(500, 500, 2, |row| row % 7);
    let on_a = DeviceCsr::upload(&device, &a.view()).expect("A");
    let on_d = DeviceCsr::upload(&device, &d.view()).expect("D");
    let problem = on_a
        .pattern()
        .spgemm(on_a.pattern())
        .problem
        .typed::<f16, u32, u32>()
        .output(DType::F32)
        .deterministic(true)
        .calls(2);
    let plan = SpgemmPlan::<f16, u32, u32, f32>::with_output(
        on_a.pattern(),
        on_a.pattern(),
        &problem,
        &options,
    );
    let (mut plan, stream) = (plan.expect("a plan"), device.stream());
    let product =
        plan.execute(&on_a, &on_a, SpgemmCall::new().on(stream)).expect("P").download().expect("P");
    let c = plan.execute(&on_a, &on_a, SpgemmCall::new().add(1.0, &on_d).on(stream)).expect("C");
    let c = c.download().expect("C");
    let again =
        plan.execute(&on_a, &on_a, SpgemmCall::new().add(1.0, &on_d).on(stream)).expect("C");
    assert!(same(&c, &again.download().expect("C")));
    for row in 0..c.nrows() {
        let mut sums = std::collections::BTreeMap::new();
        for m in [&product, &d] {
            let (columns, values) = m.view().row(row);
            columns.iter().zip(values).for_each(|(j, v)| *sums.entry(*j).or_insert(0.0) += *v);
        }
        let (columns, values) = c.view().row(row);
        assert!(columns.iter().zip(values).map(|(j, v)| (*j, *v)).eq(sums), "row {row}");
    }
    assert!(c.nnz() > product.nnz());
}

#[test]
#[ignore = "needs a CUDA device"]
fn other_types_of_c_are_refused() {
    let device = device();
    let a = random_rows::<f16, u32, u32>(6, 6, 1, |_| 2);
    let a = DeviceCsr::upload(&device, &a.view()).expect("A");
    let problem =
        a.pattern().spgemm(a.pattern()).problem.typed::<f16, u32, u32>().output(DType::F32);
    let refused =
        SpgemmPlan::<f16>::new(a.pattern(), a.pattern(), &problem, &Options::default()).err();
    assert!(matches!(refused, Some(Error::Pattern { .. })), "{refused:?}");
    for algorithm in [Algorithm::DenseOutput, Algorithm::Vendor] {
        let options = Options { chooser: Chooser::Named(algorithm), ..Options::default() };
        let plan = SpgemmPlan::<f16, u32, u32, f32>::with_output(
            a.pattern(),
            a.pattern(),
            &problem,
            &options,
        );
        let refused = plan.err().expect("a refusal");
        assert!(matches!(refused, Error::Unsupported { .. }), "{refused}");
        assert!(refused.to_string().contains("binned"), "{refused}");
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn one_call_gives_what_a_plan_gives() {
    let device = device();
    for (rows, columns) in [(1, 1), (0, 5), (900, 70_000), (5000, 300)] {
        let a = random_rows::<f32, u32, u64>(rows, columns, 1, |row| row % 9);
        let b = random_rows::<f32, u32, u64>(columns, 2000, 2, |row| row % 5);
        let [on_a, on_b] =
            [&a, &b].map(|m| DeviceCsr::upload(&device, &m.view()).expect("an upload"));
        let (problem, stream) = (on_a.pattern().spgemm(on_b.pattern()).problem, device.stream());
        for workspace in [None, Some(20_000)] {
            let chooser = Chooser::Named(Algorithm::Binned);
            let options = Options { chooser, workspace, ..Options::default() };
            let mut plan = SpgemmPlan::new(on_a.pattern(), on_b.pattern(), &problem, &options)
                .expect("a plan");
            let of_plan = plan.execute(&on_a, &on_b, SpgemmCall::new().on(stream)).expect("C");
            let c = multiply(&on_a, &on_b, &problem, &options, Call::new().on(stream)).expect("C");
            let [c, of_plan] = [c, of_plan].map(|c| c.download().expect("C"));
            assert_eq!((c.offsets(), c.indices()), (of_plan.offsets(), of_plan.indices()));
            let verdict = oracle::Spgemm::new(a.view(), b.view()).verify(c.view()).expect("shapes");
            assert!(verdict.ok, "{verdict}");
        }
    }
}
