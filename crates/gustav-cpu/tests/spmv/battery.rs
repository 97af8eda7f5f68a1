//! Runs one algorithm through the battery of the testkit.

use gustav_core::{
    DType, Index, IndexType, MaxTimes, MinPlus, OrAnd, PlusFirst, PlusSecond, PlusTimes, Problem,
    Scalar, Semiring, SemiringKind, bf16, f16,
};
use gustav_cpu::arch::Isa;
use gustav_cpu::{Options, SpmvPlan, Threads};
use gustav_plan::{Algorithm, Chooser};
use gustav_testkit::battery::{Settings, check_spmv};

/// Options for every instruction set of this machine, with 1, 2 and 5 threads.
pub fn options(algorithm: Algorithm) -> Vec<Options> {
    let sets: Vec<Isa> = Isa::ALL.into_iter().filter(|isa| isa.available()).collect();
    let mut list = Vec::new();
    for count in [1, 2, 5] {
        let threads = Threads::new(count, false).unwrap();
        list.extend(sets.iter().map(|&isa| Options {
            chooser: Chooser::Named(algorithm),
            threads: threads.clone(),
            isa: Some(isa),
            ..Options::default()
        }));
    }
    list
}

/// The battery for one combination of types and semiring.
pub fn battery<T: Scalar, I: Index, O: Index, S: Semiring<T::Accum>>(
    options: &[Options],
    settings: &Settings,
) {
    let float = matches!(T::DTYPE, DType::F32 | DType::F64);
    let vectors = float && S::KIND == SemiringKind::PlusTimes && I::TYPE == IndexType::U32;
    // Without vector kernels, every instruction set runs the same code.
    for options in options.iter().filter(|o| vectors || o.isa == Some(Isa::Portable)) {
        check_spmv::<T, I, O, S>(settings, |case| {
            let problem = Problem::spmv(&case.a).transpose_a(case.transpose_a).semiring(S::KIND);
            let mut plan = SpmvPlan::new(case.a, &problem, options)?;
            plan.execute(S::default(), case.a, case.alpha, case.x, case.beta, case.y)
        });
    }
}

/// The battery: every semiring for a vectorised, an integer and a 16-bit type; every type and
/// every pair of index types for plus-times.
pub fn passes_the_battery(algorithm: Algorithm, settings: &Settings) {
    let all = &options(algorithm);
    macro_rules! semirings {
        ($($t:ty),*) => {$(
            battery::<$t, u32, u32, PlusTimes>(all, settings);
            battery::<$t, u32, u32, MinPlus>(all, settings);
            battery::<$t, u32, u32, MaxTimes>(all, settings);
            battery::<$t, u32, u32, OrAnd>(all, settings);
            battery::<$t, u32, u32, PlusFirst>(all, settings);
            battery::<$t, u32, u32, PlusSecond>(all, settings);
        )*};
    }
    semirings!(f32, i32, f16);
    battery::<f64, u32, u32, PlusTimes>(all, settings);
    battery::<f64, u64, u32, PlusTimes>(all, settings);
    battery::<f64, u32, u64, PlusTimes>(all, settings);
    battery::<f32, u64, u64, PlusTimes>(all, settings);
    battery::<bf16, u32, u32, PlusTimes>(all, settings);
    battery::<i64, u64, u64, MinPlus>(all, settings);
}
