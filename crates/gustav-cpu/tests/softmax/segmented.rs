//! `segmented` against the batteries, for all types, instruction sets of this machine and several
//! numbers of threads.

use gustav_core::{Index, bf16, f16};
use gustav_cpu::arch::Isa;
use gustav_cpu::{CpuScalar, SoftmaxPlan};
use gustav_testkit::battery::{Settings, check_softmax, check_softmax_gradient};

use super::options;

fn battery<T: CpuScalar, I: Index, O: Index>() {
    let isas = Isa::ALL.into_iter().filter(|isa| isa.available());
    for (k, isa) in isas.enumerate() {
        let options = options(isa, [1, 2, 5][k % 3]);
        check_softmax::<T, I, O>(&Settings::default(), |case| {
            let request = case.pattern.softmax().heads(case.heads);
            let mut plan = SoftmaxPlan::new(request.pattern, &request.problem, &options)?;
            plan.execute(case.values, case.out, case.order)
        });
        check_softmax_gradient::<T, I, O>(&Settings::default(), |case| {
            let request = case.pattern.softmax().heads(case.heads);
            let mut plan = SoftmaxPlan::new(request.pattern, &request.problem, &options)?;
            plan.gradient(case.weights, case.of_weights, case.out, case.order)
        });
    }
}

#[test]
fn passes_the_battery_in_f32() {
    battery::<f32, u32, u32>();
}

#[test]
fn passes_the_battery_in_f64() {
    battery::<f64, u32, u64>();
}

#[test]
fn passes_the_battery_in_16_bits() {
    battery::<f16, u64, u32>();
    battery::<bf16, u64, u64>();
}
