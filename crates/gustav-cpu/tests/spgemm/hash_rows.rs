//! `hash-rows` on the battery, as published: f32 and f64, u32, plus-times.

use gustav_core::Semiring::{MinPlus, PlusTimes};
use gustav_core::{Csr, Error};
use gustav_cpu::spgemm::SpgemmKernels;
use gustav_plan::Algorithm;
use gustav_testkit::battery::{Settings, check_spgemm_over};

use crate::support::{options, product};

fn passes<T: SpgemmKernels>() {
    for threads in [1, 2, 5] {
        let options = options(Algorithm::HashRows, threads, None);
        check_spgemm_over::<T, u32, u32>(PlusTimes, &Settings::default(), |case| {
            Ok(product(PlusTimes, case.a, case.b, case.sorted, &options)?.1)
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
    let a = Csr::<i32>::empty(3, 3).unwrap();
    let refused = product(PlusTimes, a.view(), a.view(), true, &options).err();
    assert!(matches!(refused, Some(Error::Unsupported { .. })), "{refused:?}");
    let a = Csr::<f32>::empty(3, 3).unwrap();
    let refused = product(MinPlus, a.view(), a.view(), true, &options).err();
    assert!(matches!(refused, Some(Error::Unsupported { .. })), "{refused:?}");
    let a = Csr::<f32, u64, u32>::empty(3, 3).unwrap();
    let refused = product(PlusTimes, a.view(), a.view(), true, &options).err();
    assert!(matches!(refused, Some(Error::Unsupported { .. })), "{refused:?}");
}
