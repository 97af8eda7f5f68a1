//! `gustavson` on the battery: every type, every semiring, threads, instruction sets; and each
//! product again into the known pattern, equal to the bit.

use gustav_core::{
    Csr, CsrView, DType, Error, Index, MaxTimes, MinPlus, OrAnd, PlusFirst, PlusSecond, PlusTimes,
    Problem, Scalar, Semiring, bf16, f16,
};
use gustav_cpu::SpgemmPlan;
use gustav_cpu::arch::Isa;
use gustav_cpu::spgemm::multiply;
use gustav_plan::Algorithm;
use gustav_testkit::battery::{Settings, check_spgemm};
use gustav_testkit::oracle;

use crate::support::{options, product};

fn passes<T: Scalar, I: Index, O: Index, S: Semiring<T::Accum>>() {
    for isa in Isa::ALL.into_iter().filter(|isa| isa.available()) {
        for threads in [1, 2, 5] {
            let options = options(Algorithm::Gustavson, threads, Some(isa));
            check_spgemm::<T, I, O, S>(&Settings::default(), |case| {
                let (mut plan, mut c) =
                    product::<T, I, O, S>(case.a, case.b, case.sorted, &options)?;
                let first = c.clone();
                c.values_mut().fill(T::from_f64(77.0));
                plan.execute_into(S::default(), case.a, S::one(), case.b, &mut c)?;
                assert_eq!(first.indices(), c.indices());
                assert_eq!(bytes(first.values()), bytes(c.values()), "{}", case.name);
                Ok(c)
            });
        }
    }
}

fn bytes<T: Scalar>(values: &[T]) -> &[u8] {
    bytemuck::cast_slice(values)
}

macro_rules! battery {
    ($($name:ident: $t:ty;)*) => {$(
        #[test]
        fn $name() {
            passes::<$t, u32, u32, PlusTimes>();
            passes::<$t, u32, u64, MinPlus>();
            passes::<$t, u64, u32, MaxTimes>();
            passes::<$t, u64, u64, OrAnd>();
            passes::<$t, u32, u32, PlusFirst>();
            passes::<$t, u32, u32, PlusSecond>();
        }
    )*};
}

battery! {
    battery_f16: f16;
    battery_bf16: bf16;
    battery_f32: f32;
    battery_f64: f64;
    battery_i32: i32;
    battery_i64: i64;
}

#[test]
fn one_call_without_a_plan() {
    let options = options(Algorithm::Gustavson, 2, None);
    check_spgemm::<f64, u32, u32, PlusTimes>(&Settings::default(), |case| {
        let problem = Problem::spgemm(&case.a, &case.b).sorted(case.sorted);
        multiply(PlusTimes, case.a, 1.0, case.b, &problem, &options)
    });
}

/// Values of 16 bits, sums in f32: as the product of the same matrices in f32.
#[test]
fn sums_as_they_are() {
    fn check<T: Scalar<Accum = f32>, S: Semiring<f32>>() {
        let widened = |m: CsrView<'_, T>| {
            let values: Vec<f32> = m.values().iter().map(|v| v.to_accum()).collect();
            Csr::new(m.nrows(), m.ncols(), m.offsets().to_vec(), m.indices().to_vec(), values)
        };
        let options = options(Algorithm::Gustavson, 2, None);
        check_spgemm::<T, u32, u32, S>(&Settings::default(), |case| {
            let problem = Problem::spgemm(&case.a, &case.b).semiring(S::KIND).sorted(case.sorted);
            let problem = problem.output(DType::F32);
            let mut plan = SpgemmPlan::new(case.a, case.b, &problem, &options)?;
            let c: Csr<f32> = plan.execute_as(S::default(), case.a, S::one(), case.b)?;
            let (a, b) = (widened(case.a)?, widened(case.b)?);
            let reference = oracle::Spgemm::new(a.view(), b.view());
            let reference = oracle::Spgemm { semiring: S::KIND, sorted: case.sorted, ..reference };
            let verdict = reference.verify(c.view())?;
            assert!(verdict.ok, "{}: {verdict}", case.name);
            let refused = plan.execute(S::default(), case.a, S::one(), case.b).err();
            assert!(matches!(refused, Some(Error::Pattern { .. })), "{refused:?}");
            Ok(product::<T, u32, u32, S>(case.a, case.b, case.sorted, &options)?.1)
        });
    }
    check::<f16, PlusTimes>();
    check::<bf16, PlusTimes>();
    check::<f16, MinPlus>();
    check::<bf16, PlusFirst>();
}

#[test]
fn other_types_of_c_are_refused() {
    let options = options(Algorithm::Gustavson, 1, None);
    let a = Csr::<f32>::empty(3, 3).unwrap();
    for output in [DType::F64, DType::F16, DType::I32] {
        let problem = Problem::spgemm(&a.view(), &a.view()).output(output);
        let refused = SpgemmPlan::new(a.view(), a.view(), &problem, &options).err();
        assert!(matches!(refused, Some(Error::Unsupported { .. })), "{refused:?}");
    }
}
