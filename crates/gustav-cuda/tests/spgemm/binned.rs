//! `binned` on the battery: types, index types and semirings.

use gustav_core::{
    Csr, Error, Index, MaxTimes, MinPlus, OrAnd, PlusFirst, PlusSecond, PlusTimes, Scalar,
    Semiring, bf16, f16,
};
use gustav_cuda::DeviceCsr;
use gustav_cuda::spgemm::{Options, SpgemmPlan};
use gustav_plan::{Algorithm, Chooser};
use gustav_testkit::battery::Settings;
use gustav_testkit::battery::matrices::random_rows;
use gustav_testkit::oracle;

use crate::{battery, device};

fn passes<T: Scalar, I: Index, O: Index, S: Semiring<T::Accum>>() {
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
    let [on_a, on_b] = [&a, &b].map(|m| DeviceCsr::upload(&device, &m.view()).expect("room"));
    let (problem, stream) = (on_a.spgemm(&on_b), device.stream());
    let mut plan = SpgemmPlan::new(&on_a, &on_b, &problem, &Options::default()).expect("a plan");
    let one = T::one().to_accum();
    let mut c = plan.execute(&on_a, one, &on_b, stream).expect("C");
    let reference = oracle::Spgemm::new(a.view(), b.view());
    let check = |c: &DeviceCsr<T>| {
        let verdict = reference.verify(c.download().expect("C").view()).expect("shapes fit");
        assert!(verdict.ok, "{verdict}");
    };
    check(&c);
    c.values_mut().fill(0xff, stream).expect("poison");
    plan.execute_into(&on_a, one, &on_b, &mut c, stream).expect("C");
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
    // As many as fill the device with a thread each.
    for most in [4, 9, 19] {
        let a = random_rows::<f32, u32, u32>(150_000, 90_000, 3, |row| row % most);
        let b = random_rows::<f32, u32, u32>(90_000, 100_000, 4, |row| row % most);
        twice(a, b);
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_promised_order_is_refused() {
    let device = device();
    let a = random_rows::<f32, u32, u32>(6, 6, 1, |_| 2);
    let a = DeviceCsr::upload(&device, &a.view()).expect("A");
    let problem = a.spgemm(&a).deterministic(true);
    let refused = SpgemmPlan::new(&a, &a, &problem, &Options::default()).err();
    let refused = refused.expect("a refusal");
    assert!(matches!(refused, Error::Unsupported { .. }), "{refused}");
    assert!(refused.to_string().contains("gustavson"), "{refused}");
}
