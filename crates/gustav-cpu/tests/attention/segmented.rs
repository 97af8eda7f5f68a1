//! `segmented` against the batteries, for all types, instruction sets of this machine and several
//! numbers of threads.

use gustav_core::{Index, bf16, f16};
use gustav_cpu::arch::Isa;
use gustav_cpu::{
    AttentionCall, AttentionGradients, AttentionGradientsCall, AttentionGradientsPlan,
    AttentionInputs, AttentionPlan, CpuScalar,
};
use gustav_testkit::battery::{Settings, check_attention, check_attention_gradients};

use crate::support::options;

fn isas() -> impl Iterator<Item = (usize, Isa)> {
    Isa::ALL.into_iter().filter(|isa| isa.available()).enumerate()
}

fn battery<T: CpuScalar, I: Index, O: Index>() {
    for (k, isa) in isas() {
        let options = options(isa, [1, 2, 5][k % 3]);
        check_attention::<T, I, O>(&Settings::default(), |case| {
            let request = case.pattern.attention(case.columns).heads(case.heads);
            let request = request.value_columns(case.value_columns);
            let mut plan = AttentionPlan::new(request.pattern, &request.problem, &options)?;
            let bias = case.bias.map(|(values, order)| (values.into(), order));
            let call = AttentionCall { scores: case.scores, bias, lse: case.lse };
            plan.execute(case.q, case.k, case.v, case.o, call)
        });
    }
}

fn gradients<T: CpuScalar, I: Index, O: Index>() {
    for (k, isa) in isas() {
        let options = options(isa, [2, 5, 1][k % 3]);
        check_attention_gradients::<T, I, O>(&Settings::default(), |case| {
            let request = case.pattern.attention(case.columns).heads(case.heads);
            let request = request.value_columns(case.value_columns).gradients();
            let mut plan =
                AttentionGradientsPlan::new(request.pattern, &request.problem, &options)?;
            let bias = case.bias.map(|(values, order)| (values.into(), order));
            let call = AttentionGradientsCall { scores: case.scores, bias, of_bias: case.of_bias };
            let (q, k, v, o) = (case.q, case.k, case.v, case.o);
            let inputs = AttentionInputs { q, k, v, o, lse: case.lse, of_o: case.of_o };
            let (of_q, of_k, of_v) = (case.of_q, case.of_k, case.of_v);
            plan.execute(inputs, AttentionGradients { of_q, of_k, of_v }, call)
        });
    }
}

#[test]
fn passes_the_battery_in_f32() {
    battery::<f32, u32, u32>();
    gradients::<f32, u32, u32>();
}

#[test]
fn passes_the_battery_in_f64() {
    battery::<f64, u32, u64>();
    gradients::<f64, u64, u32>();
}

#[test]
fn passes_the_battery_in_f16() {
    battery::<f16, u64, u64>();
    gradients::<f16, u32, u64>();
}

#[test]
fn passes_the_battery_in_bf16() {
    battery::<bf16, u64, u32>();
    gradients::<bf16, u64, u64>();
}
