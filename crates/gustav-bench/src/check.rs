//! Checks results against the oracle.

use gustav_core::{
    Csr, CsrView, DenseView, Index, Operation, Result, Scalar, ScoreOptions, buffer::try_vec,
};
use gustav_report::{Record, Status};
use gustav_testkit::oracle::{self, Verdict};

use crate::composed;
use crate::engine::{AttentionOutcome, Outcome, Task, dense_rows};

// Number of checked rows of larger results.
const SAMPLE: usize = 400;

/// The rows of C to check: all of them (`None`) up to `full` units of work (products of an SpGEMM,
/// else nonzeros times columns), otherwise a sample spread over the matrix, with the longest row,
/// the first and the last.
pub(crate) fn rows_to_check<T: Scalar>(
    a: CsrView<'_, T>,
    work: u64,
    full: u64,
) -> Option<Vec<usize>> {
    let m = a.nrows();
    // Fewer rows if the sample would exceed `full` as well.
    let share = u128::from(full) * m as u128 / u128::from(work.max(1));
    let sample = (share as usize).clamp(1, SAMPLE);
    if work <= full || m <= sample {
        return None;
    }
    // The stride avoids small common factors with the periods of a grid.
    let mut rows: Vec<usize> = (0..sample).map(|k| (k * (m / sample) + k * 7) % m).collect();
    let longest = (0..m).max_by_key(|&r| a.row_len(r)).unwrap_or(0);
    rows.extend([0, longest, m - 1]);
    rows.sort_unstable();
    rows.dedup();
    Some(rows)
}

/// The matrix made of `rows` of `a`.
pub(crate) fn take_rows<T: Scalar>(a: CsrView<'_, T>, rows: &[usize]) -> Result<Csr<T>> {
    let count = rows.iter().map(|&r| a.row_len(r)).sum();
    let mut offsets = try_vec::<u32>(rows.len() + 1, "row offsets")?;
    let mut indices = try_vec::<u32>(count, "column indices")?;
    let mut values = try_vec::<T>(count, "values")?;
    offsets.push(0);
    for &r in rows {
        let (cols, vals) = a.row(r);
        indices.extend_from_slice(cols);
        values.extend_from_slice(vals);
        offsets.push(u32::try_from_usize(indices.len(), "row offset")?);
    }
    Csr::new(rows.len(), a.ncols(), offsets, indices, values)
}

/// Compares a result, of `rows` or of all, with the oracle; one of an attention that is `composed` of products which
/// keep scores and weights in the type of the values, with a reference for those.
///
/// # Errors
/// [`gustav_core::Error::Length`] or [`gustav_core::Error::Shape`] when it has the wrong size.
pub(crate) fn check<T: Scalar>(
    task: &Task<'_, T>,
    rows: Option<&[usize]>,
    outcome: &Outcome<T>,
    composed: bool,
) -> Result<Verdict> {
    let part = rows.map(|rows| take_rows(task.a, rows)).transpose()?;
    let a = part.as_ref().map_or(task.a, |p| p.view());
    match outcome {
        Outcome::Dense(o) if task.operation == Operation::Attention => {
            let q = match rows {
                Some(rows) => dense_rows(task.dense_x(), task.width(), Some(rows)),
                None => task.dense_x().to_vec(),
            };
            if composed {
                return composed::check(task, &a, &q, o);
            }
            attention(task, &a, &q)?.verify(DenseView::row_major(a.nrows(), task.width(), o)?, None)
        }
        Outcome::OfAttention(found) => gradients_of_attention(task, found),
        Outcome::OfSpmm { values, b } => gradients_of_spmm(task, values, b),
        Outcome::Dense(c) => {
            let b = DenseView::row_major(task.a.ncols(), task.columns, task.dense_b())?;
            let c = DenseView::row_major(a.nrows(), task.columns, c)?;
            oracle::Spmm::new(a, b).verify(c)
        }
        Outcome::Values(values) => {
            let y = DenseView::row_major(task.a.ncols(), task.columns, task.dense_b())?;
            let x = DenseView::row_major(task.a.nrows(), task.columns, task.dense_x())?;
            let Some(rows) = rows else {
                return oracle::Sddmm::new(a.pattern(), x, y).verify(values);
            };
            let own = crate::engine::dense_rows(task.dense_x(), task.columns, Some(rows));
            let x = DenseView::row_major(rows.len(), task.columns, &own)?;
            oracle::Sddmm::new(a.pattern(), x, y).verify(values)
        }
        Outcome::Sparse(c) => {
            debug_assert_eq!(task.operation, Operation::Spgemm);
            let reference = oracle::Spgemm::new(a, task.b.unwrap_or(task.a));
            let mask = match (task.mask, rows) {
                (Some(mask), Some(rows)) => Some(take_rows(mask, rows)?),
                _ => None,
            };
            let mask = mask.as_ref().map(|part| part.view()).or(task.mask);
            oracle::Spgemm { sorted: task.sorted, mask, ..reference }.verify(c.view())
        }
    }
}

/// The attention of `task` over the rows of `a` with these rows of Q.
fn attention<'a, T: Scalar>(
    task: &'a Task<'a, T>,
    a: &'a CsrView<'a, T>,
    q: &'a [T],
) -> Result<oracle::Attention<'a, T, u32, u32>> {
    let (width, n) = (task.width(), task.a.ncols());
    Ok(oracle::Attention {
        pattern: a.pattern(),
        heads: task.heads,
        columns: task.columns,
        value_columns: task.columns,
        q: DenseView::row_major(a.nrows(), width, q)?,
        k: DenseView::row_major(n, width, task.dense_b())?,
        v: DenseView::row_major(n, width, task.dense_v())?,
        scores: ScoreOptions::default(),
        bias: None,
    })
}

fn gradients_of_attention<T: Scalar>(
    task: &Task<'_, T>,
    found: &AttentionOutcome<T>,
) -> Result<Verdict> {
    let (width, m, n) = (task.width(), task.a.nrows(), task.a.ncols());
    let product = attention(task, &task.a, task.dense_x())?;
    let reference = oracle::AttentionGradients {
        product,
        o: DenseView::row_major(m, width, &found.o)?,
        lse: &found.lse,
        of_o: DenseView::row_major(m, width, task.dense_g())?,
    };
    reference.verify(&oracle::FoundGradients {
        of_q: DenseView::row_major(m, width, &found.of_q)?,
        of_k: DenseView::row_major(n, width, &found.of_k)?,
        of_v: DenseView::row_major(n, width, &found.of_v)?,
        of_bias: None,
    })
}

/// The gradients of C = A·B for that of C, which is in the place of X.
fn gradients_of_spmm<T: Scalar>(task: &Task<'_, T>, values: &[T], b: &[T]) -> Result<Verdict> {
    let (columns, m, n) = (task.columns, task.a.nrows(), task.a.ncols());
    let g = DenseView::row_major(m, columns, task.dense_x())?;
    let of_b = DenseView::row_major(n, columns, b)?;
    let b = DenseView::row_major(n, columns, task.dense_b())?;
    let of_values = oracle::Sddmm::new(task.a.pattern(), g, b).verify(values)?;
    if !of_values.ok {
        return Ok(of_values);
    }
    oracle::Spmm { transpose_a: true, ..oracle::Spmm::new(task.a, g) }.verify(of_b)
}

/// Sets what `verdict` says of so many `rows` of a result.
pub(crate) fn note(record: &mut Record, verdict: &Verdict, rows: usize) {
    record.rows_checked = rows;
    record.max_error = Some(verdict.max_error()).filter(|e| e.is_finite());
    record.error_bound = Some(verdict.error_bound());
    if !verdict.ok {
        record.set_fault(Status::Wrong, verdict);
        record.execute_ms = None;
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An SpMM of two columns.
    pub(crate) fn task<'a, T: Scalar>(a: &'a Csr<T>, pool: &'a [T]) -> Task<'a, T> {
        Task {
            operation: Operation::Spmm,
            a: a.view(),
            b: None,
            columns: 2,
            heads: 1,
            gradients: false,
            sorted: false,
            mask: None,
            layouts: gustav_report::Layouts::RowMajor,
            pool,
        }
    }

    #[test]
    fn a_wrong_row_of_the_sample_is_found() {
        let a = Csr::new(3, 2, vec![0, 1, 2, 3], vec![0, 1, 0], vec![1.0, 2.0, 3.0]).unwrap();
        let pool = [1.0, 2.0, 3.0, 4.0];
        let task = task(&a, &pool);
        let right = Outcome::Dense(vec![6.0, 8.0, 3.0, 6.0]);
        assert!(check(&task, Some(&[1, 2]), &right, false).unwrap().ok);
        assert!(!check(&task, Some(&[0, 2]), &right, false).unwrap().ok);
        let nan = Outcome::Dense(vec![6.0, f64::NAN, 3.0, 6.0]);
        assert!(!check(&task, Some(&[1, 2]), &nan, false).unwrap().ok);
    }

    #[test]
    fn a_sample_holds_the_longest_row_and_both_ends() {
        let m = 5000;
        let mut offsets: Vec<u32> = (0..=m as u32).collect();
        for o in &mut offsets[4243..] {
            *o += 3;
        }
        let nnz = m + 3;
        let a = Csr::new(m, 9, offsets, vec![0; nnz], vec![1.0f32; nnz]).unwrap();
        assert_eq!(rows_to_check(a.view(), 100, 100), None);
        let rows = rows_to_check(a.view(), 101, 100).unwrap();
        assert!(rows.len() > 350 && rows.is_sorted());
        for row in [0, 4242, m - 1] {
            assert!(rows.contains(&row), "{row}");
        }
    }
}
