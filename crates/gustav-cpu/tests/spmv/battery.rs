//! Runs one algorithm through the battery of the testkit.

use gustav_core::{DType, Index, IndexType, Problem, Scale, Semiring, bf16, f16};
use gustav_cpu::arch::Isa;
use gustav_cpu::{CpuScalar, Options, SpmvPlan, Threads};
use gustav_plan::{Algorithm, Chooser};
use gustav_testkit::battery::{Settings, check_spmv_over};

/// Numbers of threads.
const THREADS: [usize; 3] = [1, 2, 5];

/// Options for every instruction set of this machine and number of threads.
pub fn options(algorithm: Algorithm) -> Vec<Options> {
    let sets: Vec<Isa> = Isa::ALL.into_iter().filter(|isa| isa.available()).collect();
    let mut list = Vec::new();
    for count in THREADS {
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

/// The battery for one combination of types and semiring, with the numbers of threads of `options`
/// in rotation from `first` on.
pub fn battery<T: CpuScalar, I: Index, O: Index>(
    semiring: Semiring,
    options: &[Options],
    settings: &Settings,
    first: usize,
) {
    let float = matches!(T::DTYPE, DType::F32 | DType::F64);
    let vectors = float && semiring == Semiring::PlusTimes && I::TYPE == IndexType::U32;
    // Without vector kernels, every instruction set runs the same code.
    let runs = |isa: Isa| isa.available() && (vectors || isa == Isa::Portable);
    for (k, isa) in Isa::ALL.into_iter().filter(|isa| runs(*isa)).enumerate() {
        let mut of_isa = options.iter().filter(|o| o.isa == Some(isa)).cycle();
        let options = of_isa.nth((first + k) % THREADS.len()).expect("options for every set");
        check_spmv_over::<T, I, O>(semiring, settings, |case| {
            let problem = Problem::spmv(&case.a).transpose_a(case.transpose_a).semiring(semiring);
            let mut plan = SpmvPlan::new(case.a, &problem, options)?;
            let scale = Scale::new().alpha(case.alpha).beta(case.beta);
            plan.execute(case.a, case.x, case.y, scale)
        });
    }
}

/// The battery: every semiring for a vectorised, an integer and a 16-bit type; every type and
/// every pair of index types for plus-times.
pub fn passes_the_battery(algorithm: Algorithm, settings: &Settings) {
    use Semiring::{MinPlus, PlusTimes};
    let all = &options(algorithm);
    for (k, semiring) in Semiring::ALL.into_iter().enumerate() {
        battery::<f32, u32, u32>(semiring, all, settings, k);
        battery::<i32, u32, u32>(semiring, all, settings, k + 1);
        battery::<f16, u32, u32>(semiring, all, settings, k + 2);
    }
    battery::<f64, u32, u32>(PlusTimes, all, settings, 0);
    battery::<f64, u64, u32>(PlusTimes, all, settings, 1);
    battery::<f64, u32, u64>(PlusTimes, all, settings, 2);
    battery::<f32, u64, u64>(PlusTimes, all, settings, 0);
    battery::<bf16, u32, u32>(PlusTimes, all, settings, 1);
    battery::<i64, u64, u64>(MinPlus, all, settings, 2);
}
