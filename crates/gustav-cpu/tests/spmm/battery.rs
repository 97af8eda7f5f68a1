//! Runs one algorithm through the battery of the testkit.

use std::sync::OnceLock;

use gustav_core::Semiring::{MinPlus, OrAnd, PlusTimes};
use gustav_core::{Csr, Dense, Index, Layout, Problem, Scale, Semiring, bf16, f16};
use gustav_cpu::arch::Isa;
use gustav_cpu::{CpuScalar, Options, SpmmPlan, Threads};
use gustav_plan::{Algorithm, Chooser};
use gustav_testkit::battery::{Settings, check_spmm_over};

/// Pools of 1, 2 and 5 threads, shared by all tests.
pub fn pools() -> &'static [Threads; 3] {
    static POOLS: OnceLock<[Threads; 3]> = OnceLock::new();
    POOLS.get_or_init(|| [1, 2, 5].map(|n| Threads::new(n, false).unwrap()))
}

pub fn available() -> impl Iterator<Item = Isa> {
    Isa::ALL.into_iter().filter(|isa| isa.available())
}

/// Numbers in [-1, 1), the same in every run.
pub fn numbers(count: usize) -> Vec<f32> {
    (0..count as u32)
        .map(|k| (k.wrapping_mul(2_654_435_761) >> 8) as f32 / 8_388_608.0 - 1.0)
        .collect()
}

fn check<T: CpuScalar, I: Index, O: Index>(semiring: Semiring, options: &Options) {
    check_spmm_over::<T, I, O>(semiring, &Settings::default(), |case| {
        let problem = Problem::spmm(&case.a)
            .columns(case.c.ncols())
            .layouts(case.b.layout(), case.c.layout())
            .transpose_a(case.transpose_a)
            .semiring(semiring);
        let mut plan = SpmmPlan::new(case.a, &problem, options)?;
        let scale = Scale::new().alpha(case.alpha).beta(case.beta);
        plan.execute(case.a, case.b, case.c, scale)
    });
}

/// The types, and semirings of each kind of ⊕, on every instruction set, with 1, 2 and 5 threads.
pub fn run(algorithm: Algorithm, tile: Option<usize>) {
    for (k, isa) in available().enumerate() {
        let mut next = k;
        let mut options = || {
            next += 1;
            let threads = pools()[next % 3].clone();
            let chooser = Chooser::Named(algorithm);
            // What only large matrices would turn on by themselves.
            let (streaming, prefetch_distance) = (Some(next % 2 == 0), Some(next % 4));
            Options {
                chooser,
                threads,
                isa: Some(isa),
                tile,
                streaming,
                prefetch_distance,
                ..Options::default()
            }
        };
        check::<f32, u32, u32>(PlusTimes, &options());
        check::<f64, u32, u32>(PlusTimes, &options());
        check::<f16, u32, u32>(PlusTimes, &options());
        check::<bf16, u32, u32>(PlusTimes, &options());
        check::<i64, u64, u32>(PlusTimes, &options());
        check::<f64, u64, u64>(PlusTimes, &options());
        check::<f32, u32, u32>(MinPlus, &options());
        check::<i32, u32, u64>(OrAnd, &options());
    }
}

/// The same bits from 1, 2 and 5 threads, for every instruction set.
pub fn deterministic(algorithm: Algorithm, tile: Option<usize>) {
    // Row r has r mod 23 entries, row 7 all columns.
    let cols = 700u32;
    let (mut offsets, mut indices) = (vec![0u32], Vec::new());
    for r in 0..500u32 {
        let length = if r == 7 { cols } else { r % 23 };
        let step = if r == 7 { 1 } else { 29 };
        let mut row: Vec<u32> = (0..length).map(|k| (r * 13 + k * step) % cols).collect();
        row.sort_unstable();
        indices.extend(row);
        offsets.push(indices.len() as u32);
    }
    let values = numbers(indices.len());
    let a = Csr::<f32>::new(500, cols as usize, offsets, indices, values).unwrap();
    for (isa, n) in available().flat_map(|isa| [1, 8, 40].map(|n| (isa, n))) {
        for transposed in [false, true] {
            let problem =
                Problem::spmm(&a.view()).columns(n).transpose_a(transposed).deterministic(true);
            let b =
                Dense::from_row_major(problem.inner(), n, numbers(problem.inner() * n)).unwrap();
            let results = pools().each_ref().map(|threads| {
                let chooser = Chooser::Named(algorithm);
                let threads = threads.clone();
                let options =
                    Options { chooser, threads, isa: Some(isa), tile, ..Options::default() };
                let mut c = Dense::zeros(problem.output_rows(), n, Layout::RowMajor).unwrap();
                let mut plan = SpmmPlan::new(a.view(), &problem, &options).unwrap();
                plan.execute(&a, &b, &mut c, Scale::new().alpha(1.5)).unwrap();
                c.data().iter().map(|x| x.to_bits()).collect::<Vec<_>>()
            });
            assert!(results[0].iter().any(|bits| *bits != 0), "an empty product proves nothing");
            assert!(
                results[0] == results[1] && results[0] == results[2],
                "{algorithm} {isa}, n = {n}, transposed {transposed}: bits depend on the threads"
            );
        }
    }
}
