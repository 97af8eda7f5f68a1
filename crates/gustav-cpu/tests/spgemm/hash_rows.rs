//! `hash-rows` on the battery, as published: f32 and f64, u32, plus-times.

use gustav_core::{Csr, Error, MinPlus, PlusTimes, Problem, Scalar};
use gustav_cpu::SpgemmPlan;
use gustav_plan::Algorithm;
use gustav_testkit::battery::{Settings, check_spgemm};

use crate::support::{options, product};

fn passes<T: Scalar>() {
    for threads in [1, 2, 5] {
        let options = options(Algorithm::HashRows, threads, None);
        check_spgemm::<T, u32, u32, PlusTimes>(&Settings::default(), |case| {
            Ok(product::<T, u32, u32, PlusTimes>(case.a, case.b, case.sorted, &options)?.1)
        });
    }
}

#[test]
fn battery() {
    passes::<f32>();
    passes::<f64>();
}

#[test]
fn what_the_paper_does_not_have_is_refused() {
    let options = options(Algorithm::HashRows, 1, None);
    let a = Csr::<i32, u32, u32>::empty(3, 3).unwrap();
    let refused = product::<_, _, _, PlusTimes>(a.view(), a.view(), true, &options).err();
    assert!(matches!(refused, Some(Error::Unsupported { .. })), "{refused:?}");
    // A plan for plus-times does not pass its product off as that of another semiring.
    let a = Csr::<f32>::empty(3, 3).unwrap();
    let a = a.view();
    let mut plan = SpgemmPlan::new(a, a, &Problem::spgemm(&a, &a), &options).unwrap();
    let refused = plan.execute(MinPlus, a, 0.0, a).err();
    assert!(matches!(refused, Some(Error::Unsupported { .. })), "{refused:?}");
}
