//! `gustavson` on the battery: every type, every semiring, threads, instruction sets, index types;
//! and each product again into the known pattern, equal to the bit.

use gustav_core::Semiring::{self, MinPlus, PlusFirst, PlusTimes};
use gustav_core::{Csr, CsrView, DType, Error, Index, Problem, Result, Scalar, Values, bf16, f16};
use gustav_cpu::arch::Isa;
use gustav_cpu::spgemm::{SpgemmCall, SpgemmKernels, multiply};
use gustav_cpu::{Options, SpgemmPlan};
use gustav_plan::Algorithm;
use gustav_testkit::battery::{Settings, check_spgemm_over};
use gustav_testkit::oracle;

use crate::support::{for_every_type, options, product};

/// The battery with every product computed three times: as the first of a plan, as one that finds
/// the pattern of C known, and into the first.
fn passes<T: SpgemmKernels, I: Index, O: Index>(semiring: Semiring, options: &Options) {
    check_spgemm_over::<T, I, O>(semiring, &Settings::default(), |case| {
        let (mut plan, mut c) = product(semiring, case.a, case.b, case.sorted, options)?;
        let again = plan.execute(case.a, case.b, SpgemmCall::new())?;
        assert_eq!(c.pattern().id(), again.pattern().id());
        assert_eq!(bytes(c.values()), bytes(again.values()), "{}", case.name);
        c.values_mut().fill(T::from_f64(77.0));
        let call = SpgemmCall { reuse: Some(c), ..SpgemmCall::new() };
        let c = plan.execute(case.a, case.b, call)?;
        assert_eq!(bytes(again.values()), bytes(c.values()), "{}", case.name);
        Ok(c)
    });
}

fn bytes<T: Scalar>(values: Values<'_, T>) -> &[u8] {
    bytemuck::cast_slice(values.as_slice())
}

#[test]
fn battery_of_types_and_semirings() {
    fn check<T: SpgemmKernels>() {
        for isa in Isa::ALL.into_iter().filter(|isa| isa.available()) {
            for threads in [1, 2, 5] {
                let options = options(Algorithm::Gustavson, threads, Some(isa));
                for semiring in Semiring::ALL {
                    passes::<T, u32, u32>(semiring, &options);
                }
            }
        }
    }
    for_every_type!(check);
}

#[test]
fn battery_of_index_types() {
    let options = options(Algorithm::Gustavson, 3, None);
    for semiring in [PlusTimes, MinPlus] {
        passes::<f32, u32, u64>(semiring, &options);
        passes::<f32, u64, u32>(semiring, &options);
        passes::<f32, u64, u64>(semiring, &options);
    }
}

#[test]
fn one_call_without_a_plan() {
    let options = options(Algorithm::Gustavson, 2, None);
    check_spgemm_over::<f64, u32, u32>(PlusTimes, &Settings::default(), |case| {
        let problem = Problem::spgemm(&case.a, &case.b).sorted(case.sorted);
        multiply(case.a, case.b, &problem, &options, SpgemmCall::new())
    });
}

/// Values of 16 bits, sums in f32: as the product of the same matrices in f32.
#[test]
fn sums_as_they_are() {
    fn widened<T: Scalar<Accum = f32>>(m: CsrView<'_, T>) -> Result<Csr<f32>> {
        let values: Vec<f32> = m.values().into_iter().map(|v| v.to_accum()).collect();
        Csr::new(m.nrows(), m.ncols(), m.offsets().to_vec(), m.indices().to_vec(), values)
    }
    fn check<T: SpgemmKernels + Scalar<Accum = f32>>() {
        let options = options(Algorithm::Gustavson, 2, None);
        for semiring in [PlusTimes, MinPlus, PlusFirst] {
            check_spgemm_over::<T, u32, u32>(semiring, &Settings::default(), |case| {
                let problem = Problem::spgemm(&case.a, &case.b).semiring(semiring);
                let problem = problem.sorted(case.sorted).output(DType::F32);
                let mut plan = SpgemmPlan::new(case.a, case.b, &problem, &options)?;
                let (a, b) = (widened(case.a)?, widened(case.b)?);
                let reference = oracle::Spgemm::new(a.view(), b.view());
                let reference = oracle::Spgemm { semiring, sorted: case.sorted, ..reference };
                for _ in 0..2 {
                    let c: Csr<f32> = plan.execute(case.a, case.b, SpgemmCall::default())?;
                    let verdict = reference.verify(c.view())?;
                    assert!(verdict.ok, "{}: {verdict}", case.name);
                }
                let refused = plan.execute(case.a, case.b, SpgemmCall::new()).err();
                assert!(matches!(refused, Some(Error::Pattern { .. })), "{refused:?}");
                Ok(product(semiring, case.a, case.b, case.sorted, &options)?.1)
            });
        }
    }
    check::<f16>();
    check::<bf16>();
}

#[test]
fn other_types_of_c_are_refused() {
    let options = options(Algorithm::Gustavson, 1, None);
    let a = Csr::<f32>::empty(3, 3).unwrap();
    for output in [DType::F64, DType::F16, DType::I32] {
        let problem = Problem::spgemm(&a.view(), &a.view()).output(output);
        let refused = SpgemmPlan::<f32>::new(&a, &a, &problem, &options).err();
        assert!(matches!(refused, Some(Error::Unsupported { .. })), "{refused:?}");
    }
}
