//! Matrices with the structures that algorithms look for.

use gustav_core::{Csr, Problem, Scalar, Scale, Semiring};
use gustav_cpu::arch::Isa;
use gustav_cpu::{CpuScalar, Options, SpmvPlan};
use gustav_plan::Algorithm;
use gustav_testkit::battery::matrices::random_rows;
use gustav_testkit::battery::values::{poison, value, values};
use gustav_testkit::oracle;

use crate::battery::options;

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
    let n = 13usize;
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
        ("blocks of 64", matrix(512, 512, |r| (r / 64 * 64..r / 64 * 64 + 64).collect())),
        ("triples of rows alike", {
            matrix(2001, 2001, |r| {
                let r = r / 3;
                (0..20).map(|k| (r * 3 + k * k * 13) % 2001).collect()
            })
        }),
        (
            "runs",
            matrix(1000, 5000, |r| {
                (0..4)
                    .flat_map(|k| {
                        let c = (r * 7 + k * 911) % 4980;
                        c..c + 1 + (r + k) % 20
                    })
                    .collect()
            }),
        ),
        ("half full", random_rows(100, 900, 3, |_| 450)),
        ("short rows", random_rows(10_000, 500, 4, |r| r % 5)),
        ("like length, near", random_rows(5003, 900, 9, |r| 4 - usize::from(r % 30 == 7))),
        ("like length, far", random_rows(5003, 200_000, 10, |r| 10 - r % 3)),
        ("mostly empty", random_rows(20_000, 300, 5, |r| usize::from(r % 7 == 3) * 12)),
        (
            "wide",
            matrix(1000, 3_000_000, |r| {
                (0..30).map(|k| (r * 977 + k * 99_991) % 3_000_000).collect()
            }),
        ),
        ("hubs", random_rows(3000, 20_000, 6, |r| if r % 1000 == 5 { 15_000 } else { 3 })),
        ("one row", random_rows(1, 40_000, 7, |_| 35_000)),
        ("one column", random_rows(30_000, 1, 8, |r| r % 2)),
    ]
}

/// The structures in one type: right against the oracle on every instruction set, and the same
/// to the bit for 1, 2 and 5 threads.
pub fn right<T: CpuScalar>(algorithm: Algorithm, transposed: &[bool]) {
    let mut all = options(algorithm);
    if T::DTYPE.is_integer() {
        // Without vector kernels, every instruction set runs the same code.
        all.retain(|options| options.isa == Some(Isa::Portable));
    }
    all.sort_by_key(|options| (options.isa, options.threads.count()));
    for (name, a) in structures::<T>() {
        for &transposed in transposed {
            for same_isa in all.chunk_by(|a, b| a.isa == b.isa) {
                agree(algorithm, name, &a, transposed, same_isa);
            }
        }
    }
}

fn agree<T: CpuScalar>(
    algorithm: Algorithm,
    name: &str,
    a: &Csr<T, u32, u32>,
    transpose_a: bool,
    options: &[Options],
) {
    let a = a.view();
    let problem = Problem::spmv(&a).transpose_a(transpose_a).deterministic(true);
    let x = values::<T>(problem.inner(), 1);
    let before = values::<T>(problem.output_rows(), 2);
    let [zero, one, alpha, beta] = [0.0, 1.0, -1.5, 0.5].map(T::Accum::from_f64);
    for (alpha, beta) in [(one, zero), (alpha, beta)] {
        let start = if beta == zero { vec![poison(); before.len()] } else { before.clone() };
        let products = options.iter().map(|options| {
            let mut plan = SpmvPlan::new(a, &problem, options).unwrap();
            assert_eq!(plan.choice().algorithm, algorithm);
            let mut y = start.clone();
            plan.execute(a, &x, &mut y, Scale::new().alpha(alpha).beta(beta)).unwrap();
            y
        });
        let products: Vec<_> = products.collect();
        let (kind, first) = (Semiring::PlusTimes, &products[0]);
        let verdict = oracle::spmv(kind, a, transpose_a, &x, alpha, beta, Some(&start), first);
        let verdict = verdict.unwrap();
        let case = format!("{name}, transposed {transpose_a}, {:?}", options[0].isa);
        assert!(verdict.ok, "{case}: {verdict}");
        let bits = |y: &[T]| bytemuck::cast_slice::<T, u8>(y).to_vec();
        assert!(products.iter().all(|y| bits(y) == bits(first)), "{case}: threads change bits");
    }
}

/// The structures, in a type of each kind.
pub fn right_on_structures(algorithm: Algorithm, transposed: &[bool]) {
    right::<f32>(algorithm, transposed);
    right::<f64>(algorithm, transposed);
    right::<i32>(algorithm, transposed);
}
