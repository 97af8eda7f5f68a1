//! Attention by engines that keep scores and weights in the type of the values: what the oracle, whose bounds are of
//! sums in f32 or wider, would refuse in 16 bits.

use gustav_core::{CsrView, DType, Result, Scalar};
use gustav_testkit::oracle::{Verdict, Worst};
use rayon::prelude::*;

use crate::engine::Task;

/// Unit roundoff and least subnormal number of a type.
fn rounding(dtype: DType) -> (f64, f64) {
    match dtype {
        DType::F16 => (2f64.powi(-11), 2f64.powi(-24)),
        DType::Bf16 => (2f64.powi(-8), 2f64.powi(-133)),
        DType::F32 => (2f64.powi(-24), 2f64.powi(-149)),
        _ => (2f64.powi(-53), 0.0),
    }
}

/// One row of one head in f64.
struct Row {
    weights: Vec<f64>,
    /// What each weight may be off by, as a part of it.
    relative: f64,
}

impl Row {
    /// Scores are off by (d + 4)u Σ|scale·q·k|, since every product of their sums may be rounded, weights by twice
    /// the largest of that and what n sums of exponentials, their quotients and themselves lose.
    fn new(q: &[f64], keys: &[Vec<f64>], unit: f64) -> Self {
        let scale = 1.0 / (q.len() as f64).sqrt();
        let terms = |k: &Vec<f64>| q.iter().zip(k).map(|(q, k)| scale * q * k).collect::<Vec<_>>();
        let all: Vec<_> = keys.iter().map(terms).collect();
        let scores: Vec<f64> = all.iter().map(|terms| terms.iter().sum()).collect();
        let magnitudes = all.iter().map(|terms| terms.iter().map(|t| t.abs()).sum::<f64>());
        let largest = magnitudes.fold(0.0, f64::max);
        let highest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let lowest = scores.iter().copied().fold(f64::INFINITY, f64::min);
        let exponentials: Vec<_> = scores.iter().map(|s| (s - highest).exp()).collect();
        let sum: f64 = exponentials.iter().sum();
        // Exponents are rounded too.
        let of_scores = unit * ((q.len() + 4) as f64 * largest + (highest - lowest));
        let relative = (2.0 * of_scores).exp_m1() + (keys.len() + 8) as f64 * unit;
        Row { weights: exponentials.iter().map(|e| e / sum).collect(), relative }
    }
}

/// Compares O, of the rows `a` of the pattern with these rows of Q, with the reference.
pub(crate) fn check<T: Scalar>(
    task: &Task<'_, T>,
    a: &CsrView<'_, T>,
    q: &[T],
    o: &[T],
) -> Result<Verdict> {
    let (width, d) = (task.width(), task.columns);
    let (unit, tiny) = rounding(T::DTYPE);
    let (k, v) = (task.dense_b(), task.dense_v());
    let head_of = |values: &[T], row: usize, head: usize| -> Vec<f64> {
        values[row * width + head * d..][..d].iter().map(|x| x.to_f64()).collect()
    };
    let row = |at: usize| -> Worst {
        let (i, head) = (at / task.heads, at % task.heads);
        let columns = a.row(i).0;
        let of = |values| -> Vec<_> {
            columns.iter().map(|j| head_of(values, *j as usize, head)).collect()
        };
        let (keys, values) = (of(k), of(v));
        let row = Row::new(&head_of(q, i, head), &keys, unit);
        let found = head_of(o, i, head);
        let element = |c: usize| {
            let terms = row.weights.iter().zip(&values);
            let (expected, magnitude) =
                terms.fold((0.0, 0.0), |(sum, all), (p, v)| (sum + p * v[c], all + p * v[c].abs()));
            let sums = (columns.len() + 2) as f64;
            let bound = magnitude * (row.relative + sums * unit) + sums * tiny;
            let (error, found) = ((found[c] - expected).abs(), found[c]);
            Worst { row: at, col: c, found, expected, error, bound }
        };
        (0..d).map(element).reduce(worse).unwrap_or(NONE)
    };
    let worst = (0..a.nrows() * task.heads).into_par_iter().map(row).reduce(|| NONE, worse);
    let ratio = if worst.error == 0.0 { 0.0 } else { worst.error / worst.bound };
    Ok(Verdict {
        // An error of NaN is none that is within its bound.
        ok: worst.error <= worst.bound,
        checked: a.nrows() * width,
        max_ratio: if ratio.is_nan() { f64::INFINITY } else { ratio },
        worst: Some(worst),
        fault: None,
    })
}

const NONE: Worst = Worst { row: 0, col: 0, found: 0.0, expected: 0.0, error: 0.0, bound: 0.0 };

/// The one nearer to its bound, or further past it.
fn worse(a: Worst, b: Worst) -> Worst {
    // NaN is within no bound.
    let within = |w: &Worst| w.error <= w.bound;
    match (within(&a), within(&b)) {
        (false, _) => a,
        (true, false) => b,
        _ if a.error * b.bound >= b.error * a.bound => a,
        _ => b,
    }
}

#[cfg(test)]
mod tests {
    use gustav_core::{Csr, Operation};

    use super::*;

    #[test]
    fn a_mean_of_values_is_right_and_a_wrong_element_is_not() {
        // Scores of zero: O is the mean of the rows of V.
        let a = Csr::new(2, 2, vec![0, 2, 2], vec![0, 1], vec![1.0f32; 2]).unwrap();
        // K, Q, V of two columns.
        let pool = [1.0f32, 2.0, 3.0, 4.0, 0.0, 0.0, 0.0, 0.0, 2.0, 4.0, 4.0, 8.0];
        let task = Task {
            operation: Operation::Attention,
            a: a.view(),
            b: None,
            columns: 2,
            heads: 1,
            gradients: false,
            sorted: false,
            mask: None,
            layouts: gustav_report::Layouts::RowMajor,
            pool: &pool,
        };
        let ok = |o: [f32; 4]| check(&task, &a.view(), task.dense_x(), &o).unwrap().ok;
        assert!(ok([3.0, 6.0, 0.0, 0.0]));
        for wrong in [[3.0, 6.0, 0.0, 1e-9], [3.1, 6.0, 0.0, 0.0], [3.0, f32::NAN, 0.0, 0.0]] {
            assert!(!ok(wrong), "{wrong:?}");
        }
    }
}
