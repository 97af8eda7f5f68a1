//! Loops over rows on one thread: what a program does that calls no library, and what the engines
//! are checked against.

use gustav::{Arith, Dense, Pattern, PatternView, Result, Semiring};

use super::super::algebra::{Host, Shape};
use super::{Engine, Sddmm, Softmax, Spmm, Spmv};

/// Plain loops.
pub struct Loops;

impl Engine<'static, Host> for Loops {
    fn spmm(&mut self, pattern: &Pattern, shape: Shape) -> Result<Spmm<'static, Host>> {
        match shape.semiring {
            Semiring::PlusTimes => Ok(spmm(pattern, shape, |a: f32, b, sum| a.times_plus(b, sum))),
            Semiring::MinPlus => {
                Ok(spmm(pattern, shape, |a: f32, b, sum| Arith::minimum(sum, a.plus_saturating(b))))
            }
            _ => Err(Engine::<Host>::lacks(self, "products over another semiring")),
        }
    }

    fn spmv(&mut self, pattern: &Pattern) -> Result<Spmv<'static, Host>> {
        let pattern = pattern.clone();
        Ok(Box::new(move |values: &Vec<f32>, x: &Vec<f32>, y: &mut Vec<f32>| {
            let view = pattern.view();
            for (i, y) in y.iter_mut().enumerate() {
                // In f64: rows of thousands lose too much in f32, one after another.
                let terms = view.row_range(i).zip(view.row(i));
                let sum = terms.map(|(p, k)| f64::from(values[p]) * f64::from(x[*k as usize]));
                *y = sum.sum::<f64>() as f32;
            }
            Ok(())
        }))
    }

    fn sddmm(&mut self, pattern: &Pattern, depth: usize) -> Result<Sddmm<'static, Host>> {
        let pattern = pattern.clone();
        Ok(Box::new(move |x: &Dense<f32>, y: &Dense<f32>, values: &mut Vec<f32>| {
            each(pattern.view(), |i, k, p| {
                let (x, y) = (&x.data()[i * depth..][..depth], &y.data()[k * depth..][..depth]);
                values[p] = x.iter().zip(y).map(|(x, y)| x * y).sum();
            });
            Ok(())
        }))
    }

    fn softmax(&mut self, pattern: &Pattern) -> Result<Box<dyn Softmax<Host>>> {
        Ok(Box::new(Rows(pattern.clone())))
    }

    fn name(&self) -> &str {
        "loop"
    }
}

/// SpMM with a loop of its own for each semiring, as somebody would write it.
fn spmm(
    pattern: &Pattern,
    shape: Shape,
    add: impl Fn(f32, f32, f32) -> f32 + 'static,
) -> Spmm<'static, Host> {
    let pattern = pattern.clone();
    let Shape { columns: n, transpose, semiring } = shape;
    let zero: f32 = semiring.zero();
    Box::new(move |values: &Vec<f32>, b: &Dense<f32>, c: &mut Dense<f32>| {
        let (b, c) = (b.data(), c.data_mut());
        c.fill(zero);
        each(pattern.view(), |i, k, p| {
            let (from, to) = if transpose { (i, k) } else { (k, i) };
            let (a, source) = (values[p], &b[from * n..][..n]);
            for (sum, other) in c[to * n..][..n].iter_mut().zip(source) {
                *sum = add(a, *other, *sum);
            }
        });
        Ok(())
    })
}

/// Calls `work` with the row, the column and the position of every nonzero.
fn each(pattern: PatternView<'_>, mut work: impl FnMut(usize, usize, usize)) {
    for i in 0..pattern.nrows() {
        for p in pattern.row_range(i) {
            work(i, pattern.indices()[p] as usize, p);
        }
    }
}

struct Rows(Pattern);

impl Softmax<Host> for Rows {
    fn weights(&mut self, scores: &Vec<f32>, to: &mut Vec<f32>) -> Result<()> {
        let pattern = self.0.view();
        for i in 0..pattern.nrows() {
            let row = pattern.row_range(i);
            let most = scores[row.clone()].iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let sum: f32 = scores[row.clone()].iter().map(|s| (s - most).exp()).sum();
            row.for_each(|p| to[p] = (scores[p] - most).exp() / sum);
        }
        Ok(())
    }

    fn gradient(
        &mut self,
        weights: &Vec<f32>,
        of_weights: &Vec<f32>,
        to: &mut Vec<f32>,
    ) -> Result<()> {
        let pattern = self.0.view();
        for i in 0..pattern.nrows() {
            let row = pattern.row_range(i);
            let sum: f32 = row.clone().map(|p| weights[p] * of_weights[p]).sum();
            row.for_each(|p| to[p] = weights[p] * (of_weights[p] - sum));
        }
        Ok(())
    }
}
