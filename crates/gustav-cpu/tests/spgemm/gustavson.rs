//! `gustavson` on the battery: every type, every semiring, threads, instruction sets; and each
//! product again into the known pattern, equal to the bit.

use gustav_core::{
    Index, MaxTimes, MinPlus, OrAnd, PlusFirst, PlusSecond, PlusTimes, Problem, Scalar, Semiring,
    bf16, f16,
};
use gustav_cpu::arch::Isa;
use gustav_cpu::spgemm::multiply;
use gustav_plan::Algorithm;
use gustav_testkit::battery::{Settings, check_spgemm};

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
