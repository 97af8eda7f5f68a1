//! Runs one algorithm through the battery of the testkit.

use gustav_core::{
    DType, Index, IndexType, MaxTimes, MinPlus, OrAnd, PlusFirst, PlusSecond, PlusTimes, Problem,
    Scalar, Semiring, SemiringKind, bf16, f16,
};
use gustav_cpu::arch::Isa;
use gustav_cpu::{Options, SpmvPlan, Threads};
use gustav_plan::{Algorithm, Chooser};
use gustav_testkit::battery::{Settings, check_spmv};

/// Numbers of threads.
const TEAMS: [usize; 3] = [1, 2, 5];

/// Options for every instruction set of this machine and number of threads.
pub fn options(algorithm: Algorithm) -> Vec<Options> {
    let sets: Vec<Isa> = Isa::ALL.into_iter().filter(|isa| isa.available()).collect();
    let mut list = Vec::new();
    for count in TEAMS {
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

/// The battery for one combination of types and semiring, with the teams of `options` in turn
/// from `turn` on.
pub fn battery<T: Scalar, I: Index, O: Index, S: Semiring<T::Accum>>(
    options: &[Options],
    settings: &Settings,
    turn: usize,
) {
    let float = matches!(T::DTYPE, DType::F32 | DType::F64);
    let vectors = float && S::KIND == SemiringKind::PlusTimes && I::TYPE == IndexType::U32;
    // Without vector kernels, every instruction set runs the same code.
    let runs = |isa: Isa| isa.available() && (vectors || isa == Isa::Portable);
    for (k, isa) in Isa::ALL.into_iter().filter(|isa| runs(*isa)).enumerate() {
        let mut of_isa = options.iter().filter(|o| o.isa == Some(isa)).cycle();
        let options = of_isa.nth((turn + k) % TEAMS.len()).expect("options for every set");
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
    let mut turn = 0;
    macro_rules! each {
        ($($t:ty, $i:ty, $o:ty: $($s:ty)*;)*) => {$($(
            turn += 1;
            battery::<$t, $i, $o, $s>(all, settings, turn);
        )*)*};
    }
    each! {
        f32, u32, u32: PlusTimes MinPlus MaxTimes OrAnd PlusFirst PlusSecond;
        i32, u32, u32: PlusTimes MinPlus MaxTimes OrAnd PlusFirst PlusSecond;
        f16, u32, u32: PlusTimes MinPlus MaxTimes OrAnd PlusFirst PlusSecond;
        f64, u32, u32: PlusTimes;
        f64, u64, u32: PlusTimes;
        f64, u32, u64: PlusTimes;
        f32, u64, u64: PlusTimes;
        bf16, u32, u32: PlusTimes;
        i64, u64, u64: MinPlus;
    }
}
