//! Runs of empty rows, which a C of several panels of columns has written in one go.

use gustav_core::{
    Buffer, Csr, DenseView, DenseViewMut, Index, Layout, Problem, Scalar, Scale, Semiring, f16,
};
use gustav_cpu::arch::Isa;
use gustav_cpu::{CpuScalar, Options, SpmmPlan};
use gustav_plan::{Algorithm, Chooser};

use crate::battery::available;

// Columns of A, and of C: several panels in every type and instruction set, the last one narrower.
const INNER: usize = 40;
const COLUMNS: usize = 272;
// Empty rows at the beginning, between rows that are not, and at the end: shorter and longer than
// what is written in one go, and over the ends of the blocks that kernels take.
const RUNS: [usize; 8] = [70, 3, 4, 1, 17, 5, 2, 33];

/// Two equal rows between one run and the next, for `row-block`.
fn matrix<T: CpuScalar, I: Index>() -> Csr<T, I> {
    let (mut offsets, mut indices) = (vec![0u32], Vec::new());
    for (k, run) in RUNS.into_iter().enumerate() {
        offsets.extend(std::iter::repeat_n(indices.len() as u32, run));
        for _ in 0..if k + 1 < RUNS.len() { 2 } else { 0 } {
            indices.extend(
                (0..5).map(|j| I::try_from_usize((7 * k + 8 * j) % INNER, "column").unwrap()),
            );
            indices[offsets[offsets.len() - 1] as usize..].sort();
            offsets.push(indices.len() as u32);
        }
    }
    let values: Vec<_> = (0..indices.len()).map(|k| T::from_f64((k % 5) as f64 - 2.0)).collect();
    Csr::new(offsets.len() - 1, INNER, offsets, indices, values).unwrap()
}

/// What C has in `row` and `column`: operands are small integers, so that every type has it exactly.
fn element<T: CpuScalar, I: Index>(
    a: &Csr<T, I>,
    b: &[T],
    semiring: Semiring,
    alpha: f64,
    [row, column]: [usize; 2],
) -> f64 {
    let range = a.offsets()[row] as usize..a.offsets()[row + 1] as usize;
    let (indices, values) = (&a.indices()[range.clone()], &a.values()[range]);
    let row_of_b = |j: &I| b[j.to_usize() * COLUMNS + column].to_f64();
    let products = indices.iter().zip(values).map(|(j, value)| (value.to_f64(), row_of_b(j)));
    match semiring {
        Semiring::MinPlus => products.map(|(x, y)| x + y).fold(f64::INFINITY, f64::min) + alpha,
        _ => products.map(|(x, y)| x * y).sum::<f64>() * alpha,
    }
}

fn check<T: CpuScalar, I: Index>(algorithm: Algorithm, isa: Isa) {
    let a = matrix::<T, I>();
    let b: Vec<_> = (0..INNER * COLUMNS).map(|k| T::from_f64((k % 7) as f64 - 3.0)).collect();
    let rows = a.nrows();
    for (semiring, alpha) in
        [(Semiring::PlusTimes, 1.0), (Semiring::PlusTimes, 2.0), (Semiring::MinPlus, 0.0)]
    {
        let expected = |at| element(&a, &b, semiring, alpha, at);
        // Packed, and with rows of whole cache lines; at every place of C in a vector.
        for (ldc, shift) in [COLUMNS, COLUMNS + 64 / size_of::<T>()]
            .into_iter()
            .flat_map(|ldc| [0, 1, 2, 4, 8, 16].map(|shift| (ldc, shift)))
        {
            for streaming in [false, true] {
                let options = Options {
                    chooser: Chooser::Named(algorithm),
                    isa: Some(isa),
                    streaming: Some(streaming),
                    ..Options::default()
                };
                let problem = Problem::spmm(&a.view()).columns(COLUMNS).semiring(semiring);
                let mut plan = SpmmPlan::<T>::new(&a, &problem, &options).unwrap();
                let mut memory = Buffer::zeroed(shift + rows * ldc, "C").unwrap();
                memory.fill(T::from_f64(f64::NAN));
                let b = DenseView::row_major(INNER, COLUMNS, &b).unwrap();
                let c = &mut memory[shift..];
                let c = DenseViewMut::new(rows, COLUMNS, Layout::RowMajor, ldc, c).unwrap();
                let scale = Scale::new().alpha(T::Accum::from_f64(alpha));
                plan.execute(&a, b, c, scale).unwrap();
                let how = format!("{algorithm}, {isa}, ld {ldc}, {streaming}, shift {shift}");
                assert!(memory[..shift].iter().all(|v| v.to_f64().is_nan()), "{how}");
                for (row, found) in memory[shift..].chunks(ldc).enumerate() {
                    for (column, value) in found.iter().enumerate() {
                        let found = value.to_f64();
                        let right = match column < COLUMNS {
                            true => found == expected([row, column]),
                            false => found.is_nan(),
                        };
                        assert!(right, "{how}: {found} in row {row}, column {column}");
                    }
                }
            }
        }
    }
}

#[test]
fn have_empty_sums_wherever_c_lies() {
    for isa in available() {
        for algorithm in [
            Algorithm::RowSplit,
            Algorithm::RowBlock,
            Algorithm::NonzeroSplit,
            Algorithm::MergePath,
        ] {
            check::<f32, u32>(algorithm, isa);
            check::<f64, u64>(algorithm, isa);
            check::<f16, u32>(algorithm, isa);
        }
    }
}
