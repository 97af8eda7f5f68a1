//! What every SpMV algorithm is put through.

use gustav_core::{
    Csr, CsrView, Error, Index, MaxTimes, MinPlus, OrAnd, PlusFirst, PlusSecond, PlusTimes,
    Problem, Scalar, Semiring, SemiringKind, bf16, f16,
};
use gustav_cpu::arch::Isa;
use gustav_cpu::{Options, SpmvPlan, Threads};
use gustav_plan::{Algorithm, Chooser};
use gustav_testkit::battery::matrices::random_rows;
use gustav_testkit::battery::values::{poison, value, values};
use gustav_testkit::battery::{Settings, check_spmv};
use gustav_testkit::oracle;

/// Options for every instruction set of this machine, with 1, 2 and 5 threads.
fn options(algorithm: Algorithm) -> Vec<Options> {
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

fn battery<T: Scalar, I: Index, O: Index, S: Semiring<T::Accum>>(
    options: &[Options],
    settings: &Settings,
) {
    for options in options {
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

fn matrix<T: Scalar>(
    nrows: usize,
    ncols: usize,
    row: impl Fn(usize) -> Vec<usize>,
) -> Csr<T, u32, u32> {
    let mut rng = gustav_testkit::battery::values::rng(7);
    let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for r in 0..nrows {
        for c in row(r) {
            indices.push(c as u32);
            values.push(value(&mut rng));
        }
        offsets.push(indices.len() as u32);
    }
    Csr::new(nrows, ncols, offsets, indices, values).unwrap()
}

/// Matrices with the structures that algorithms look for, large enough for several shares.
fn structures<T: Scalar>() -> Vec<(&'static str, Csr<T, u32, u32>)> {
    let n = 21usize;
    let cube = |r: usize| -> Vec<usize> {
        let (z, y, x) = (r / n / n, r / n % n, r % n);
        let near = |k: usize| k.saturating_sub(1)..(k + 2).min(n);
        near(z)
            .flat_map(|c| near(y).flat_map(move |b| near(x).map(move |a| (c * n + b) * n + a)))
            .collect()
    };
    let distances = |list: &'static [usize], m: usize| {
        move |r: usize| list.iter().map(|d| r + d).filter(|c| *c < m).collect::<Vec<_>>()
    };
    vec![
        ("27-point cube", matrix(n * n * n, n * n * n, cube)),
        ("diagonal", matrix(9000, 9000, |r| vec![r])),
        ("two diagonals", matrix(9003, 9003, distances(&[0, 1], 9003))),
        ("three diagonals", matrix(9001, 9050, distances(&[7, 0, 31], 9050))),
        ("six diagonals", matrix(9005, 9999, distances(&[0, 1, 2, 40, 300, 990], 9999))),
        ("blocks of 64", matrix(1024, 1024, |r| (r / 64 * 64..r / 64 * 64 + 64).collect())),
        ("triples of rows alike", {
            matrix(6000, 6000, |r| {
                let r = r / 3;
                (0..20).map(|k| (r * 3 + k * k * 13) % 6000).collect()
            })
        }),
        (
            "runs",
            matrix(5000, 5000, |r| {
                (0..4)
                    .flat_map(|k| {
                        let c = (r * 7 + k * 911) % 4980;
                        c..c + 1 + (r + k) % 20
                    })
                    .collect()
            }),
        ),
        ("half full", random_rows(300, 900, 3, |_| 450)),
        ("short rows", random_rows(40_000, 500, 4, |r| r % 5)),
        ("mostly empty", random_rows(60_000, 300, 5, |r| usize::from(r % 7 == 3) * 12)),
        (
            "wide",
            matrix(4000, 3_000_000, |r| {
                (0..30).map(|k| (r * 977 + k * 99_991) % 3_000_000).collect()
            }),
        ),
        ("hubs", random_rows(3000, 60_000, 6, |r| if r % 1000 == 5 { 50_000 } else { 3 })),
        ("one row", random_rows(1, 90_000, 7, |_| 80_000)),
        ("one column", random_rows(90_000, 1, 8, |r| r % 2)),
    ]
}

fn right<T: Scalar>(algorithm: Algorithm, transposed: &[bool]) {
    for (name, a) in structures::<T>() {
        let a = a.view();
        for &transpose_a in transposed {
            let problem = Problem::spmv(&a).transpose_a(transpose_a).deterministic(true);
            let x = values::<T>(problem.inner(), 1);
            let before = values::<T>(problem.output_rows(), 2);
            let [zero, one, alpha, beta] = [0.0, 1.0, -1.5, 0.5].map(T::Accum::from_f64);
            let mut earlier: Option<(Isa, Vec<T>)> = None;
            let mut all = options(algorithm);
            all.sort_by_key(|options| options.isa);
            for options in all {
                let mut plan = SpmvPlan::new(a, &problem, &options).unwrap();
                assert_eq!(plan.choice().algorithm, algorithm);
                for (alpha, beta) in [(one, zero), (alpha, beta)] {
                    let start =
                        if beta == zero { vec![poison(); before.len()] } else { before.clone() };
                    let mut y = start.clone();
                    plan.execute(PlusTimes, a, alpha, &x, beta, &mut y).unwrap();
                    let kind = SemiringKind::PlusTimes;
                    let verdict =
                        oracle::spmv(kind, a, transpose_a, &x, alpha, beta, Some(&start), &y);
                    let verdict = verdict.unwrap();
                    assert!(
                        verdict.ok,
                        "{name}, transposed {transpose_a}, {options:?}: {verdict:?}"
                    );
                    if beta != zero {
                        let isa = plan.choice().config.isa;
                        if let Some((with, same)) = &earlier
                            && *with == isa
                        {
                            assert!(*same == y, "{name}: {options:?} differs from fewer threads");
                        }
                        earlier = Some((isa, y));
                    }
                }
            }
        }
    }
}

/// The structures, against the oracle, and the same to the bit for 1, 2 and 5 threads.
pub fn right_on_structures(algorithm: Algorithm, transposed: &[bool]) {
    right::<f32>(algorithm, transposed);
    right::<f64>(algorithm, transposed);
    right::<i32>(algorithm, transposed);
}

/// A plan serves any values on its pattern, and refuses other patterns and lengths.
pub fn serves_new_values_and_refuses_other_patterns(algorithm: Algorithm) {
    let a: Csr<f32, u32, u32> = random_rows(500, 400, 9, |r| r % 40);
    let options = &options(algorithm)[0];
    let problem = Problem::spmv(&a.view());
    let mut plan = SpmvPlan::new(a.view(), &problem, options).unwrap();
    let x = values::<f32>(400, 1);
    let execute = |plan: &mut SpmvPlan<f32, u32, u32>, a: CsrView<'_, f32>, x: &[f32], rows| {
        let mut y = vec![f32::NAN; rows];
        plan.execute(PlusTimes, a, 1.0, x, 0.0, &mut y).map(|()| y)
    };
    for seed in 0..3 {
        let new = values::<f32>(a.nnz(), 10 + seed);
        let b = a.view().with_values(&new).unwrap();
        let y = execute(&mut plan, b, &x, 500).unwrap();
        let kind = SemiringKind::PlusTimes;
        assert!(oracle::spmv(kind, b, false, &x, 1.0, 0.0, None, &y).unwrap().ok);
    }
    for (rows, cols, length) in [(499, 400, 20), (500, 401, 20), (500, 400, 7)] {
        let b: Csr<f32, u32, u32> = random_rows(rows, cols, 9, |_| length);
        let x = values::<f32>(cols, 1);
        let refusal = execute(&mut plan, b.view(), &x, rows).unwrap_err();
        assert!(matches!(refusal, Error::Pattern { .. }), "{refusal}");
        let refusal = SpmvPlan::new(b.view(), &problem, options).map(|_| ()).unwrap_err();
        assert!(matches!(refusal, Error::Pattern { .. }), "{refusal}");
    }
    for (inner, rows) in [(399, 500), (401, 500), (400, 499), (400, 501)] {
        let refusal = execute(&mut plan, a.view(), &vec![1.0; inner], rows).unwrap_err();
        assert!(matches!(refusal, Error::Shape { op: "spmv", .. }), "{refusal}");
    }
}
