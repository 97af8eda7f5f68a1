use gustav_core::{Csr, Error, Index, Problem, Semiring, f16};
use gustav_cpu::{CpuScalar, SpmvPlan};
use gustav_plan::Algorithm;
use gustav_testkit::battery::Settings;

use crate::battery::{battery, options};
use crate::structures::right;

#[test]
fn passes_the_battery() {
    let (all, settings) =
        (&options(Algorithm::CompressedIndex), &Settings::default().untransposed());
    battery::<f32, u32, u32>(Semiring::PlusTimes, all, settings, 0);
    battery::<f32, u32, u64>(Semiring::PlusTimes, all, settings, 1);
    battery::<f64, u32, u32>(Semiring::PlusTimes, all, settings, 2);
    battery::<f64, u32, u64>(Semiring::PlusTimes, all, settings, 3);
}

#[test]
fn right_on_structures() {
    right::<f32>(Algorithm::CompressedIndex, &[false]);
    right::<f64>(Algorithm::CompressedIndex, &[false]);
}

#[test]
fn refuses_what_has_no_vectors_and_names_what_works() {
    fn refusal<T: CpuScalar, I: Index>(refine: fn(Problem) -> Problem) -> String {
        let a = Csr::<T, I, u32>::empty(3, 3).unwrap();
        let problem = refine(Problem::spmv(&a.view()));
        let options = &options(Algorithm::CompressedIndex)[0];
        let refusal = SpmvPlan::<T>::new(&a, &problem, options).map(|_| ()).unwrap_err();
        assert!(matches!(refusal, Error::Unsupported { .. }), "{refusal}");
        refusal.to_string()
    }
    assert!(refusal::<i32, u32>(|p| p).contains("merge-path"));
    assert!(refusal::<f16, u32>(|p| p).contains("merge-path"));
    assert!(refusal::<f32, u64>(|p| p).contains("merge-path"));
    assert!(refusal::<f32, u32>(|p| p.semiring(Semiring::MinPlus)).contains("merge-path"));
    assert!(refusal::<f32, u32>(|p| p.transpose_a(true)).contains("csb"));
}
