//! Means, max and min in place of sums.

use gustav_core::{
    Csr, Dense, Error, Extremum, Index, Layout, Problem, Reduce, Scale, Semiring, WinnersMut, bf16,
    f16,
};
use gustav_cpu::{CpuScalar, Options, SpmmCall, SpmmPlan, Threads};
use gustav_plan::{Algorithm, Chooser};
use gustav_testkit::battery::{Settings, check_spmm_extremum};
use proptest::prelude::*;

use crate::battery::{available, numbers, pools};

fn check<T: CpuScalar, I: Index, O: Index>(extremum: Extremum, options: &Options) {
    check_spmm_extremum::<T, I, O>(extremum, &Settings::default(), |case| {
        let problem = Problem::spmm(&case.a)
            .columns(case.c.ncols())
            .layouts(case.b.layout(), case.c.layout())
            .transpose_a(case.transpose_a)
            .reduce(extremum.reduce());
        let mut plan = SpmmPlan::new(case.a, &problem, options)?;
        let scale = Scale { alpha: case.alpha, ..Scale::new() };
        let call = SpmmCall { scale, empty: case.empty, winners: case.winners };
        plan.execute(case.a, case.b, case.c, call)
    });
}

#[test]
fn extrema_pass_the_battery() {
    for (k, isa) in available().enumerate() {
        let options = |next: usize| {
            let threads = pools()[(k + next) % 3].clone();
            // What only large matrices would turn on by themselves.
            let (streaming, prefetch_distance) = (Some(next.is_multiple_of(2)), Some(next % 4));
            Options { isa: Some(isa), threads, streaming, prefetch_distance, ..Options::default() }
        };
        let extremum = |next: usize| Extremum::ALL[(k + next) % 2];
        check::<f32, u32, u32>(extremum(0), &options(0));
        check::<f32, u64, u64>(extremum(1), &options(1));
        check::<f64, u32, u32>(extremum(2), &options(2));
        check::<f64, u32, u64>(extremum(3), &options(3));
        check::<f16, u32, u32>(extremum(4), &options(4));
        check::<bf16, u32, u32>(extremum(5), &options(5));
        check::<i32, u32, u32>(extremum(6), &options(6));
        check::<i64, u64, u32>(extremum(7), &options(7));
    }
}

/// A matrix whose first row has most of the nonzeros, in many chunks, and whose products tie.
fn long_row(rows: usize, cols: usize) -> Csr<f32> {
    let mut offsets = vec![0u32, cols as u32];
    let mut indices: Vec<u32> = (0..cols as u32).collect();
    for r in 1..rows as u32 {
        indices.extend((0..r % 4).map(|k| (r * 7 + k) % cols as u32));
        offsets.push(indices.len() as u32);
    }
    let values = (0..indices.len()).map(|k| (k % 13) as f32 - 6.0).collect::<Vec<_>>();
    Csr::new(rows, cols, offsets, indices, values).unwrap()
}

#[test]
fn long_rows_are_cut_by_columns_and_their_pieces_merge_in_order() {
    let a = long_row(9, 30_000);
    for (isa, n) in available().flat_map(|isa| [1, 3, 33, 200].map(|n| (isa, n))) {
        let ties = (0..a.ncols() * n).map(|k| (k % 3) as f32).collect();
        let b = Dense::from_row_major(a.ncols(), n, ties).unwrap();
        for extremum in Extremum::ALL {
            let problem = Problem::spmm(&a.view()).columns(n).reduce(extremum.reduce());
            for threads in pools() {
                let options =
                    Options { isa: Some(isa), threads: threads.clone(), ..Options::default() };
                let mut plan = SpmmPlan::new(&a, &problem, &options).unwrap();
                let mut c = Dense::zeros(a.nrows(), n, Layout::RowMajor).unwrap();
                let mut winners = vec![0u32; a.nrows() * n];
                let call = SpmmCall { winners: Some(WinnersMut::U32(&mut winners)), ..().into() };
                plan.execute(&a, &b, &mut c, call).unwrap();
                let reference = gustav_testkit::oracle::SpmmExtremum {
                    extremum,
                    a: a.view(),
                    transpose_a: false,
                    b: b.view(),
                    alpha: 1.0,
                    empty: 0.0,
                };
                let winners = gustav_core::IndexSlice::new(&winners);
                let verdict = reference.verify(c.view(), Some(winners)).unwrap();
                assert!(verdict.ok, "{isa}, n = {n}, {extremum}: {verdict}");
            }
        }
    }
}

/// Numbers that tie, and what is not a number.
fn number() -> impl Strategy<Value = f64> {
    prop::sample::select(vec![
        0.0,
        -0.0,
        1.0,
        -1.0,
        2.0,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
    ])
}

/// A matrix with rows that may be empty, and full, and B.
fn operands() -> impl Strategy<Value = (Csr<f64>, Dense<f64>)> {
    let size = || prop::sample::select(vec![0usize, 1, 3, 33]);
    (size(), size(), size()).prop_flat_map(|(rows, cols, n)| {
        let density = prop::sample::select(vec![0.0, 0.2, 1.0]);
        let entries = prop::collection::vec((0.0..1.0, number()), rows * cols);
        let rows_of_a = prop::collection::vec(density, rows);
        let of_b = prop::collection::vec(number(), cols * n);
        (rows_of_a, entries, of_b).prop_map(move |(density, entries, of_b)| {
            let (mut offsets, mut indices, mut values) = (vec![0u32], Vec::new(), Vec::new());
            for r in 0..rows {
                for c in 0..cols {
                    let (chance, value) = entries[r * cols + c];
                    if chance < density[r] {
                        indices.push(c as u32);
                        values.push(value);
                    }
                }
                offsets.push(indices.len() as u32);
            }
            let a = Csr::new(rows, cols, offsets, indices, values).unwrap();
            (a, Dense::from_row_major(cols, n, of_b).unwrap())
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn maxima_are_minima_of_what_is_negated((a, b) in operands(), alpha in -2.0..2.0f64) {
        let n = b.ncols();
        let run = |extremum: Extremum, b: &Dense<f64>, alpha: f64, empty: f64| {
            let problem = Problem::spmm(&a.view()).columns(n).reduce(extremum.reduce());
            let mut plan = SpmmPlan::new(&a, &problem, &Options::default()).unwrap();
            let mut c = Dense::zeros(a.nrows(), n, Layout::RowMajor).unwrap();
            let mut winners = vec![0u64; a.nrows() * n];
            let call = SpmmCall {
                scale: Scale::new().alpha(alpha),
                empty: Some(empty),
                winners: Some(WinnersMut::U64(&mut winners)),
            };
            plan.execute(&a, b, &mut c, call).unwrap();
            (c, winners)
        };
        let negated = b.data().iter().map(|v| -v).collect();
        let negated = Dense::from_row_major(b.nrows(), n, negated).unwrap();
        let (max, winners) = run(Extremum::Max, &b, alpha, 5.0);
        let (min, of_min) = run(Extremum::Min, &negated, -alpha, 5.0);
        let same = max.data().iter().zip(min.data()).all(|(x, y)| x == y || x.is_nan() && y.is_nan());
        prop_assert!(same, "{:?} {:?}", max.data(), min.data());
        prop_assert_eq!(&winners, &of_min);
        let reference = gustav_testkit::oracle::SpmmExtremum {
            extremum: Extremum::Max,
            a: a.view(),
            transpose_a: false,
            b: b.view(),
            alpha,
            empty: 5.0,
        };
        let winners = gustav_core::IndexSlice::new(&winners);
        let verdict = reference.verify(max.view(), Some(winners)).unwrap();
        prop_assert!(verdict.ok, "{}", verdict);
    }
}

#[test]
fn means_are_sums_over_the_lengths_of_rows() {
    let a = long_row(50, 400);
    let algorithms = [
        Algorithm::RowSplit,
        Algorithm::NonzeroSplit,
        Algorithm::MergePath,
        Algorithm::ColumnPanel,
        Algorithm::RowBlock,
    ];
    for (n, transposed) in [1, 3, 40].into_iter().flat_map(|n| [(n, false), (n, true)]) {
        let sum = Problem::spmm(&a.view()).columns(n).transpose_a(transposed);
        let mean = sum.clone().reduce(Reduce::Mean);
        let op_a = if transposed { a.view().transpose().unwrap() } else { a.clone() };
        let b = Dense::from_row_major(op_a.ncols(), n, numbers(op_a.ncols() * n)).unwrap();
        for algorithm in algorithms {
            let options = Options { chooser: Chooser::Named(algorithm), ..Options::default() };
            let run = |problem: &Problem, alpha: f32| {
                let mut c = Dense::zeros(op_a.nrows(), n, Layout::RowMajor).unwrap();
                let mut plan = SpmmPlan::new(&a, problem, &options).unwrap();
                plan.execute(&a, &b, &mut c, Scale::new().alpha(alpha)).unwrap();
                c
            };
            let means = run(&mean, 3.0);
            for row in 0..op_a.nrows() {
                let length = op_a.pattern().view().row_range(row).len();
                // The same sum, and one rounding of the same factor.
                let sums = run(&sum, if length == 0 { 3.0 } else { 3.0 / length as f32 });
                for j in 0..n {
                    let (mean, sum) = (means.get(row, j), sums.get(row, j));
                    assert_eq!(mean, sum, "{algorithm}, n = {n}, row {row}, column {j}");
                }
            }
        }
    }
}

#[test]
fn other_algorithms_and_semirings_refuse_with_what_works() {
    let a = long_row(9, 40);
    let max = Problem::spmm(&a.view()).columns(4).reduce(Reduce::Max);
    for algorithm in [Algorithm::NonzeroSplit, Algorithm::Csb, Algorithm::ColumnPanel] {
        let options = Options { chooser: Chooser::Named(algorithm), ..Options::default() };
        let refused = SpmmPlan::<f32>::new(&a, &max, &options).err().expect("a refusal");
        assert!(refused.to_string().contains("row-split"), "{refused}");
    }
    let over = max.clone().semiring(Semiring::MinPlus);
    let refused = SpmmPlan::<f32>::new(&a, &over, &Options::default()).err().expect("a refusal");
    assert!(refused.to_string().contains("plus-times"), "{refused}");
    let csb = Options { chooser: Chooser::Named(Algorithm::Csb), ..Options::default() };
    let mean = max.reduce(Reduce::Mean);
    assert!(matches!(SpmmPlan::<f32>::new(&a, &mean, &csb).err(), Some(Error::Unsupported { .. })));
}

#[test]
fn executions_refuse_what_a_reduction_has_not() {
    let a = long_row(9, 40);
    let (n, threads) = (4, Threads::new(1, false).unwrap());
    let options = Options { threads, ..Options::default() };
    let b = Dense::from_row_major(40, n, vec![1.0; 40 * n]).unwrap();
    let mut c = Dense::zeros(9, n, Layout::RowMajor).unwrap();
    let mut run = |reduce, call: SpmmCall<'_, f32>| {
        let problem = Problem::spmm(&a.view()).columns(n).reduce(reduce);
        SpmmPlan::new(&a, &problem, &options).unwrap().execute(&a, &b, &mut c, call).err()
    };
    let beta = Scale::new().beta(1.0).into();
    assert!(matches!(run(Reduce::Max, beta), Some(Error::Argument { name: "beta", .. })));
    for reduce in [Reduce::Sum, Reduce::Mean] {
        let empty = SpmmCall { empty: Some(1.0), ..().into() };
        assert!(matches!(run(reduce, empty), Some(Error::Argument { name: "empty", .. })));
        let mut winners = vec![0u64; 9 * n];
        let call = SpmmCall { winners: Some(WinnersMut::U64(&mut winners)), ..().into() };
        assert!(matches!(run(reduce, call), Some(Error::Argument { name: "winners", .. })));
    }
    for len in [0, 9 * n - 1, 9 * n + 1] {
        let mut winners = vec![0u32; len];
        let call = SpmmCall { winners: Some(WinnersMut::U32(&mut winners)), ..().into() };
        assert!(matches!(run(Reduce::Min, call), Some(Error::Length { what: "winners", .. })));
    }
}
