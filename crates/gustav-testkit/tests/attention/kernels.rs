//! Plain kernels of attention and softmax, and typical mistakes of kernels.

use gustav_core::{DenseView, DenseViewMut, HeadValues, Index, Result, Scalar, ScoreOptions};
use gustav_testkit::battery::{
    AttentionCase, AttentionGradientsCase, SoftmaxCase, SoftmaxGradientCase,
};

/// The mistakes that kernels make.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mistake {
    None,
    KeepsTheMaximum,
    IgnoresBias,
    IgnoresScale,
    ExchangesHeads,
    SkipsLastTerm,
    EmptyRowsAreNan,
    LeavesNan,
    IgnoresSlope,
    LogarithmOfTwo,
    NoDelta,
    ScaleTwice,
    SlopeOfScoresAlone,
    LeakBySignOfScore,
    BiasOfOneHead,
}

/// Where element (row, column) of a head is.
fn place(
    shape: (usize, usize),
    rows: usize,
    columns: usize,
) -> impl Fn(usize, usize, usize) -> (usize, usize) {
    let beside = shape.0 == rows;
    move |head, i, c| match beside {
        true => (i, head * columns + c),
        false => (head * rows + i, c),
    }
}

fn element<T: Scalar>(
    m: DenseView<'_, T>,
    rows: usize,
    columns: usize,
) -> impl Fn(usize, usize, usize) -> f64 {
    let place = place((m.nrows(), m.ncols()), rows, columns);
    move |head, i, c| {
        let (i, c) = place(head, i, c);
        m.get(i, c).to_f64()
    }
}

fn put<T: Scalar>(
    m: &mut DenseViewMut<'_, T>,
    rows: usize,
    columns: usize,
    at: (usize, usize, usize),
    value: f64,
) {
    let (i, c) = place((m.nrows(), m.ncols()), rows, columns)(at.0, at.1, at.2);
    m.set(i, c, T::from_f64(value));
}

/// The scale, and the leaky ReLU with its derivative.
fn scores_of<A: Scalar>(
    mut scores: ScoreOptions<A>,
    columns: usize,
    mistake: Mistake,
) -> (f64, impl Fn(f64) -> (f64, f64)) {
    if mistake == Mistake::IgnoresScale {
        scores.scale = None;
    }
    if mistake == Mistake::IgnoresSlope {
        scores.negative_slope = None;
    }
    let slope = scores.negative_slope().to_f64();
    let leaky = move |x: f64| {
        let leak_of = |x: f64| if x > 0.0 { 1.0 } else { slope };
        let score = leak_of(x) * x;
        let leak = match mistake {
            Mistake::SlopeOfScoresAlone => 1.0,
            Mistake::LeakBySignOfScore => leak_of(score),
            _ => leak_of(x),
        };
        (score, leak)
    };
    (scores.scale(columns).to_f64(), leaky)
}

fn bias_of<T: Scalar>(
    bias: Option<(&[T], HeadValues)>,
    heads: usize,
    nnz: usize,
    mistake: Mistake,
) -> impl Fn(usize, usize) -> f64 {
    move |head, at| match bias {
        Some((values, order)) if mistake != Mistake::IgnoresBias => {
            let (of_head, of_nonzero) = order.strides(heads, nnz);
            let head = if mistake == Mistake::BiasOfOneHead { 0 } else { head };
            values[head * of_head + at * of_nonzero].to_f64()
        }
        _ => 0.0,
    }
}

pub fn attention<T: Scalar, I: Index, O: Index>(
    mut case: AttentionCase<'_, T, I, O>,
    mistake: Mistake,
) -> Result<()> {
    let (m, n, heads) = (case.pattern.nrows(), case.pattern.ncols(), case.heads);
    let (d, e) = (case.columns, case.value_columns);
    let (q, k, v) = (element(case.q, m, d), element(case.k, n, d), element(case.v, n, e));
    let (scale, leaky) = scores_of(case.scores, d, mistake);
    let bias = bias_of(case.bias, heads, case.pattern.nnz(), mistake);
    for (head, i) in (0..heads).flat_map(|h| (0..m).map(move |i| (h, i))) {
        let from = if mistake == Mistake::ExchangesHeads { heads - 1 - head } else { head };
        let mut range = case.pattern.row_range(i);
        if mistake == Mistake::SkipsLastTerm && range.len() > 1 {
            range.end -= 1;
        }
        let score = |at: usize| {
            let j = case.pattern.indices()[at].to_usize();
            let inner: f64 = (0..d).map(|c| q(head, i, c) * k(from, j, c)).sum();
            leaky(scale * inner + bias(head, at)).0
        };
        let scores: Vec<f64> = range.clone().map(score).collect();
        let largest = match mistake {
            Mistake::KeepsTheMaximum => 0.0,
            _ => scores.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b)),
        };
        let base = if largest == f64::NEG_INFINITY { 0.0 } else { largest };
        let weights: Vec<f64> = scores.iter().map(|s| (s - base).exp()).collect();
        // In the range of f32, as where sums are f32.
        let overflows = T::Accum::DTYPE.bytes() == 4;
        let narrow = |x: f64| if overflows { f64::from(x as f32) } else { x };
        let total: f64 = weights.iter().map(|w| narrow(*w)).sum();
        let total = narrow(total);
        let nothing = total == 0.0 && mistake != Mistake::EmptyRowsAreNan;
        let mut lse = if nothing { f64::NEG_INFINITY } else { base + total.ln() };
        if mistake == Mistake::LogarithmOfTwo {
            lse /= std::f64::consts::LN_2;
        }
        for c in 0..e {
            let terms = range
                .clone()
                .zip(&weights)
                .map(|(at, w)| w * v(head, case.pattern.indices()[at].to_usize(), c));
            let sum: f64 = terms.sum();
            let mean = if nothing { 0.0 } else { sum / total };
            let mean = if mistake == Mistake::LeavesNan && mean.is_nan() { 0.0 } else { mean };
            put(&mut case.o, m, e, (head, i, c), mean);
        }
        if let Some(to) = case.lse.as_mut() {
            to[head * m + i] = T::Accum::from_f64(lse);
        }
    }
    Ok(())
}

pub fn gradients<T: Scalar, I: Index, O: Index>(
    mut case: AttentionGradientsCase<'_, T, I, O>,
    mistake: Mistake,
) -> Result<()> {
    let (m, n, heads, nnz) =
        (case.pattern.nrows(), case.pattern.ncols(), case.heads, case.pattern.nnz());
    let (d, e) = (case.columns, case.value_columns);
    let (q, k, v) = (element(case.q, m, d), element(case.k, n, d), element(case.v, n, e));
    let (o, of_o) = (element(case.o, m, e), element(case.of_o, m, e));
    let (scale, leaky) = scores_of(case.scores, d, mistake);
    let bias = bias_of(case.bias, heads, nnz, mistake);
    let mut of_q = vec![0.0; heads * m * d];
    let mut of_k = vec![0.0; heads * n * d];
    let mut of_v = vec![0.0; heads * n * e];
    let mut of_bias = vec![0.0; case.of_bias.as_ref().map_or(0, |b| b.0.len())];
    for (head, i) in (0..heads).flat_map(|h| (0..m).map(move |i| (h, i))) {
        let lse = case.lse[head * m + i].to_f64();
        let delta: f64 = (0..e).map(|c| of_o(head, i, c) * o(head, i, c)).sum();
        let delta = if mistake == Mistake::NoDelta { 0.0 } else { delta };
        for at in case.pattern.row_range(i) {
            let j = case.pattern.indices()[at].to_usize();
            let inner: f64 = (0..d).map(|c| q(head, i, c) * k(head, j, c)).sum();
            let (score, leak) = leaky(scale * inner + bias(head, at));
            let none = lse == f64::NEG_INFINITY && mistake != Mistake::EmptyRowsAreNan;
            let p = if none { 0.0 } else { (score - lse).exp() };
            let change: f64 = (0..e).map(|c| of_o(head, i, c) * v(head, j, c)).sum();
            let ds = p * (change - delta) * leak;
            let factor = if mistake == Mistake::ScaleTwice { scale * scale } else { scale };
            for c in 0..d {
                of_q[(head * m + i) * d + c] += factor * ds * k(head, j, c);
                of_k[(head * n + j) * d + c] += factor * ds * q(head, i, c);
            }
            for c in 0..e {
                of_v[(head * n + j) * e + c] += p * of_o(head, i, c);
            }
            if let Some((_, order)) = &case.of_bias {
                let (of_head, of_nonzero) = order.strides(heads, nnz);
                let to = &mut of_bias[head * of_head + at * of_nonzero];
                *to = if mistake == Mistake::BiasOfOneHead { ds } else { *to + ds };
            }
        }
    }
    for head in 0..heads {
        for (to, rows, columns, from) in [
            (&mut case.of_q, m, d, &of_q),
            (&mut case.of_k, n, d, &of_k),
            (&mut case.of_v, n, e, &of_v),
        ] {
            for (i, c) in (0..rows).flat_map(|i| (0..columns).map(move |c| (i, c))) {
                put(to, rows, columns, (head, i, c), from[(head * rows + i) * columns + c]);
            }
        }
    }
    if let Some((to, _)) = case.of_bias {
        to.iter_mut().zip(&of_bias).for_each(|(to, from)| *to = T::from_f64(*from));
    }
    Ok(())
}

/// Calls `row` with the places of every row's values.
fn rows<I: Index, O: Index>(
    pattern: gustav_core::PatternView<'_, I, O>,
    heads: usize,
    order: HeadValues,
    mut row: impl FnMut(&[usize]),
) {
    let (of_head, of_nonzero) = order.strides(heads, pattern.nnz());
    for (head, i) in (0..heads).flat_map(|h| (0..pattern.nrows()).map(move |i| (h, i))) {
        let places = pattern.row_range(i).map(|at| head * of_head + at * of_nonzero);
        row(&places.collect::<Vec<_>>());
    }
}

pub fn softmax<T: Scalar, I: Index, O: Index>(
    case: SoftmaxCase<'_, T, I, O>,
    mistake: Mistake,
) -> Result<()> {
    rows(case.pattern, case.heads, case.order, |places| {
        let scores: Vec<f64> = places.iter().map(|at| case.values[*at].to_f64()).collect();
        let largest = scores.iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
        let none = largest == f64::NEG_INFINITY && !scores.iter().any(|s| s.is_nan());
        let largest = if largest == f64::NEG_INFINITY { 0.0 } else { largest };
        let last =
            places.len() - usize::from(mistake == Mistake::SkipsLastTerm && places.len() > 1);
        let total: f64 = scores[..last.min(scores.len())].iter().map(|s| (s - largest).exp()).sum();
        for (at, score) in places.iter().zip(scores) {
            let zero = none && mistake != Mistake::EmptyRowsAreNan;
            let value = if zero { 0.0 } else { (score - largest).exp() / total };
            let value = if mistake == Mistake::LeavesNan && value.is_nan() { 0.0 } else { value };
            case.out[*at] = T::from_f64(value);
        }
    });
    Ok(())
}

pub fn softmax_gradient<T: Scalar, I: Index, O: Index>(
    case: SoftmaxGradientCase<'_, T, I, O>,
    mistake: Mistake,
) -> Result<()> {
    let (y, g) = (case.weights, case.of_weights);
    rows(case.pattern, case.heads, case.order, |places| {
        let mean: f64 = places.iter().map(|at| y[*at].to_f64() * g[*at].to_f64()).sum();
        let mean = if mistake == Mistake::NoDelta { 0.0 } else { mean };
        for at in places {
            case.out[*at] = T::from_f64(y[*at].to_f64() * (g[*at].to_f64() - mean));
        }
    });
    Ok(())
}
