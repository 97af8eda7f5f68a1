//! The oracles and batteries of attention and softmax: what is right passes, and typical mistakes
//! and corrupted results are caught.

use std::panic::{AssertUnwindSafe, catch_unwind};

use gustav_core::{
    Csr, Dense, DenseView, DenseViewMut, HeadValues, Index, Layout, Result, Scalar, bf16, f16,
};
use gustav_testkit::battery::matrices::random_rows;
use gustav_testkit::battery::values::values;
use gustav_testkit::battery::{
    AttentionCase, AttentionGradientsCase, Settings, SoftmaxCase, SoftmaxGradientCase,
    check_attention, check_attention_gradients, check_softmax, check_softmax_gradient,
};
use gustav_testkit::oracle::{Attention, AttentionGradients, FoundGradients, Softmax, Verdict};

/// The mistakes that kernels make.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mistake {
    None,
    KeepsTheMaximum,
    IgnoresBias,
    IgnoresScale,
    ExchangesHeads,
    SkipsLastTerm,
    EmptyRowsAreNan,
    LeavesNan,
    LogarithmOfTwo,
    NoDelta,
    ScaleTwice,
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

fn scale_of<T: Scalar>(scale: Option<T::Accum>, columns: usize, mistake: Mistake) -> f64 {
    let default = T::Accum::from_f64(1.0 / (columns as f64).sqrt());
    let scale = if mistake == Mistake::IgnoresScale { None } else { scale };
    scale.unwrap_or(default).to_f64()
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

fn attention<T: Scalar, I: Index, O: Index>(
    mut case: AttentionCase<'_, T, I, O>,
    mistake: Mistake,
) -> Result<()> {
    let (m, n, heads) = (case.pattern.nrows(), case.pattern.ncols(), case.heads);
    let (d, e) = (case.columns, case.value_columns);
    let (q, k, v) = (element(case.q, m, d), element(case.k, n, d), element(case.v, n, e));
    let scale = scale_of::<T>(case.scale, d, mistake);
    let bias = bias_of(case.bias, heads, case.pattern.nnz(), mistake);
    for (head, i) in (0..heads).flat_map(|h| (0..m).map(move |i| (h, i))) {
        let from = if mistake == Mistake::ExchangesHeads { heads - 1 - head } else { head };
        let mut range = case.pattern.row_range(i);
        if mistake == Mistake::SkipsLastTerm && range.len() > 1 {
            range.end -= 1;
        }
        let score = |at: usize| {
            let j = case.pattern.indices()[at].to_usize();
            scale * (0..d).map(|c| q(head, i, c) * k(from, j, c)).sum::<f64>() + bias(head, at)
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

fn gradients<T: Scalar, I: Index, O: Index>(
    mut case: AttentionGradientsCase<'_, T, I, O>,
    mistake: Mistake,
) -> Result<()> {
    let (m, n, heads, nnz) =
        (case.pattern.nrows(), case.pattern.ncols(), case.heads, case.pattern.nnz());
    let (d, e) = (case.columns, case.value_columns);
    let (q, k, v) = (element(case.q, m, d), element(case.k, n, d), element(case.v, n, e));
    let (o, of_o) = (element(case.o, m, e), element(case.of_o, m, e));
    let scale = scale_of::<T>(case.scale, d, mistake);
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
            let score =
                scale * (0..d).map(|c| q(head, i, c) * k(head, j, c)).sum::<f64>() + bias(head, at);
            let none = lse == f64::NEG_INFINITY && mistake != Mistake::EmptyRowsAreNan;
            let p = if none { 0.0 } else { (score - lse).exp() };
            let ds = p * ((0..e).map(|c| of_o(head, i, c) * v(head, j, c)).sum::<f64>() - delta);
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

fn softmax<T: Scalar, I: Index, O: Index>(
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

fn softmax_gradient<T: Scalar, I: Index, O: Index>(
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

fn passes<T: Scalar, I: Index, O: Index>() {
    let settings = Settings::default();
    check_attention::<T, I, O>(&settings, |case| attention(case, Mistake::None));
    check_attention_gradients::<T, I, O>(&settings, |case| gradients(case, Mistake::None));
    check_softmax::<T, I, O>(&settings, |case| softmax(case, Mistake::None));
    check_softmax_gradient::<T, I, O>(&settings, |case| softmax_gradient(case, Mistake::None));
}

#[test]
fn a_plain_kernel_passes_f32() {
    passes::<f32, u32, u32>();
}

#[test]
fn a_plain_kernel_passes_f64() {
    passes::<f64, u64, u32>();
}

#[test]
fn a_plain_kernel_passes_f16() {
    passes::<f16, u32, u64>();
}

#[test]
fn a_plain_kernel_passes_bf16() {
    passes::<bf16, u64, u64>();
}

fn caught(mistake: Mistake, check: impl FnOnce()) {
    let payload = catch_unwind(AssertUnwindSafe(check));
    let payload = payload.expect_err(&format!("{mistake:?} goes unnoticed"));
    let message = payload.downcast_ref::<String>().expect("a message");
    assert!(message.contains("cases failed") && message.contains("heads"), "{message}");
}

#[test]
fn mistakes_of_attention_are_caught() {
    use Mistake::*;
    for mistake in [
        KeepsTheMaximum,
        IgnoresBias,
        IgnoresScale,
        ExchangesHeads,
        SkipsLastTerm,
        EmptyRowsAreNan,
        LeavesNan,
        LogarithmOfTwo,
        BiasOfOneHead,
    ] {
        caught(mistake, || {
            check_attention::<bf16, u32, u32>(&Settings::default(), |case| {
                attention(case, mistake)
            });
        });
    }
}

#[test]
fn mistakes_of_gradients_are_caught() {
    use Mistake::*;
    for mistake in [IgnoresBias, IgnoresScale, EmptyRowsAreNan, NoDelta, ScaleTwice, BiasOfOneHead]
    {
        caught(mistake, || {
            check_attention_gradients::<f16, u32, u32>(&Settings::default(), |case| {
                gradients(case, mistake)
            });
        });
    }
}

#[test]
fn mistakes_of_softmax_are_caught() {
    let settings = Settings::default();
    for mistake in [Mistake::SkipsLastTerm, Mistake::EmptyRowsAreNan, Mistake::LeavesNan] {
        caught(mistake, || {
            check_softmax::<f32, u32, u32>(&settings, |case| softmax(case, mistake));
        });
    }
    caught(Mistake::NoDelta, || {
        check_softmax_gradient::<f64, u32, u32>(&settings, |case| {
            softmax_gradient(case, Mistake::NoDelta)
        });
    });
}

#[test]
fn gradients_that_heads_share_can_be_left_out() {
    let settings = Settings { shared_gradients: false, ..Settings::default() };
    check_attention_gradients::<f32, u32, u32>(&settings, |case| {
        let shared = case.of_bias.as_ref().is_some_and(|(_, order)| *order == HeadValues::Shared);
        assert!(!shared || case.heads == 1);
        gradients(case, Mistake::None)
    });
}

const ROWS: usize = 30;
const COLUMNS: usize = 40;
const HEADS: usize = 2;
const D: usize = 8;

/// A product with its result, and its gradients with theirs.
struct Example<T: Scalar> {
    a: Csr<T>,
    q: Dense<T>,
    k: Dense<T>,
    v: Dense<T>,
    o: Dense<T>,
    lse: Vec<T::Accum>,
    of_o: Dense<T>,
    gradients: [Dense<T>; 3],
    of_bias: Vec<T>,
}

impl<T: Scalar> Example<T> {
    fn new() -> Self {
        let a: Csr<T> = random_rows(ROWS, COLUMNS, 1, |r| if r == 5 { 0 } else { 1 + r % 12 });
        let dense = |rows, seed| {
            Dense::from_row_major(rows, HEADS * D, values(rows * HEADS * D, seed))
                .expect("a matrix")
        };
        let zeros = |rows| Dense::zeros(rows, HEADS * D, Layout::RowMajor).expect("zeros");
        let (q, k, v, of_o) =
            (dense(ROWS, 1), dense(COLUMNS, 2), dense(COLUMNS, 3), dense(ROWS, 4));
        let (mut o, mut lse) = (zeros(ROWS), vec![T::Accum::zero(); ROWS * HEADS]);
        let mut gradients = [zeros(ROWS), zeros(COLUMNS), zeros(COLUMNS)];
        let mut of_bias = vec![T::zero(); a.nnz()];
        let case = AttentionCase {
            name: "",
            pattern: a.pattern().view(),
            heads: HEADS,
            columns: D,
            value_columns: D,
            q: q.view(),
            k: k.view(),
            v: v.view(),
            scale: None,
            bias: Some((a.values().as_slice(), HeadValues::Shared)),
            o: o.view_mut(),
            lse: Some(&mut lse),
        };
        attention(case, Mistake::None).expect("a product");
        let [of_q, of_k, of_v] = &mut gradients;
        let case = AttentionGradientsCase {
            name: "",
            pattern: a.pattern().view(),
            heads: HEADS,
            columns: D,
            value_columns: D,
            q: q.view(),
            k: k.view(),
            v: v.view(),
            o: o.view(),
            lse: &lse,
            of_o: of_o.view(),
            scale: None,
            bias: Some((a.values().as_slice(), HeadValues::Shared)),
            of_q: of_q.view_mut(),
            of_k: of_k.view_mut(),
            of_v: of_v.view_mut(),
            of_bias: Some((&mut of_bias, HeadValues::Shared)),
        };
        self::gradients(case, Mistake::None).expect("gradients");
        Example { a, q, k, v, o, lse, of_o, gradients, of_bias }
    }

    fn product(&self) -> Attention<'_, T, u32, u32> {
        Attention {
            pattern: self.a.pattern().view(),
            heads: HEADS,
            columns: D,
            value_columns: D,
            q: self.q.view(),
            k: self.k.view(),
            v: self.v.view(),
            scale: None,
            bias: Some((self.a.values().as_slice(), HeadValues::Shared)),
        }
    }

    fn verdict(&self, o: &Dense<T>, lse: &[T::Accum]) -> Verdict {
        self.product().verify(o.view(), Some(lse)).expect("shapes that fit")
    }

    fn of_gradients(&self, found: &[Dense<T>; 3], of_bias: &[T]) -> Verdict {
        let (product, o, of_o) = (self.product(), self.o.view(), self.of_o.view());
        let reference = AttentionGradients { product, o, lse: &self.lse, of_o };
        let [of_q, of_k, of_v] = found.each_ref().map(Dense::view);
        let of_bias = Some((of_bias, HeadValues::Shared));
        reference.verify(&FoundGradients { of_q, of_k, of_v, of_bias }).expect("shapes that fit")
    }
}

/// A value that is off by `times` the bound of the verdict that `verify` gives a value far off, and
/// by what two roundings of the stored type hide.
fn off<A: Scalar>(value: A, times: f64, verify: impl Fn(A) -> Verdict) -> A {
    let far = verify(A::from_f64(value.to_f64() + 1e4));
    let bound = far.worst.expect("a worst element").bound;
    let rounding = (times - 1.0).signum() * 2.0 * A::UNIT_ROUNDOFF * value.to_f64().abs();
    A::from_f64(value.to_f64() + (times * bound + rounding).max(0.0))
}

#[test]
fn corrupted_products_are_caught() {
    fn check<T: Scalar>() {
        let example = Example::<T>::new();
        let right = example.verdict(&example.o, &example.lse);
        assert!(right.ok && right.checked == HEADS * ROWS * (D + 1), "{right}");
        // Row 23 of head 1, column 3.
        let (i, c) = (23, D + 3);
        let with = |value: T| {
            let mut o = example.o.clone();
            o.view_mut().set(i, c, value);
            o
        };
        let verify = |value: T| example.verdict(&with(value), &example.lse);
        let own = example.o.get(i, c);
        for wrong in [f64::NAN, f64::INFINITY, 0.0, -own.to_f64()] {
            let verdict = verify(T::from_f64(wrong));
            assert!(!verdict.ok, "{wrong} is not caught: {verdict}");
            let worst = verdict.worst.expect("a worst element");
            assert_eq!((worst.row, worst.col), (ROWS + i, 3));
        }
        assert!(!verify(off(own, 1.1, verify)).ok && verify(off(own, 0.9, verify)).ok);
        // Scores of 8 terms near 1, 12 of them, and a mean of values below 1.5.
        let bound = verify(T::from_f64(1e4)).worst.expect("a worst element").bound;
        let unit = T::Accum::UNIT_ROUNDOFF + f64::EPSILON / 2.0;
        let store = if T::DTYPE == T::Accum::DTYPE { 0.0 } else { 1.1 * T::UNIT_ROUNDOFF * 1.5 };
        assert!(bound > 0.0 && bound < 700.0 * unit + store, "the bound {bound:e} is lax");
        // The empty row is zero and its logarithm −∞.
        let mut o = example.o.clone();
        o.view_mut().set(5, 0, T::one());
        assert!(!example.verdict(&o, &example.lse).ok);
        let log = |at: usize, value: T::Accum| {
            let mut lse = example.lse.clone();
            lse[at] = value;
            example.verdict(&example.o, &lse)
        };
        let of = |value: T::Accum| log(ROWS + i, value);
        let own = example.lse[ROWS + i];
        assert!(!of(off(own, 1.1, of)).ok && of(off(own, 0.9, of)).ok);
        for wrong in [0.0, -1e30, f64::NAN] {
            assert!(!log(5, T::Accum::from_f64(wrong)).ok, "{wrong}");
        }
        assert!(!log(3, T::Accum::from_f64(f64::NEG_INFINITY)).ok);
    }
    check::<f32>();
    check::<f64>();
    check::<f16>();
    check::<bf16>();
}

#[test]
fn corrupted_gradients_are_caught() {
    fn check<T: Scalar>() {
        let example = Example::<T>::new();
        let right = example.of_gradients(&example.gradients, &example.of_bias);
        let elements = HEADS * D * (ROWS + 2 * COLUMNS) + example.a.nnz();
        assert!(right.ok && right.checked == elements, "{right}");
        for which in 0..3 {
            let (i, c) = (23, D + 3);
            let own = example.gradients[which].get(i, c);
            let verify = |value: T| {
                let mut found = example.gradients.clone();
                found[which].view_mut().set(i, c, value);
                example.of_gradients(&found, &example.of_bias)
            };
            for wrong in [f64::NAN, f64::INFINITY, -own.to_f64()] {
                assert!(!verify(T::from_f64(wrong)).ok, "{wrong} in gradient {which}");
            }
            assert!(!verify(off(own, 1.1, verify)).ok, "gradient {which}");
            assert!(verify(off(own, 0.9, verify)).ok, "gradient {which}");
            // At most 12 terms of magnitudes below 30, each off by some hundred roundings.
            let bound = verify(T::from_f64(1e4)).worst.expect("a worst element").bound;
            let unit = T::Accum::UNIT_ROUNDOFF + f64::EPSILON / 2.0;
            let store = if T::DTYPE == T::Accum::DTYPE {
                0.0
            } else {
                2.0 * T::UNIT_ROUNDOFF * own.to_f64().abs()
            };
            assert!(bound > 0.0 && bound < 12.0 * 30.0 * 100.0 * unit + store, "{bound:e} is lax");
        }
        let verify = |value: T| {
            let mut found = example.of_bias.clone();
            found[40] = value;
            example.of_gradients(&example.gradients, &found)
        };
        let own = example.of_bias[40];
        assert!(!verify(off(own, 1.1, verify)).ok && verify(off(own, 0.9, verify)).ok);
    }
    check::<f32>();
    check::<f64>();
    check::<f16>();
    check::<bf16>();
}

#[test]
fn corrupted_softmaxes_are_caught() {
    fn check<T: Scalar>() {
        let a: Csr<T> = random_rows(ROWS, COLUMNS, 1, |r| r % 12);
        let (pattern, order) = (a.pattern().view(), HeadValues::HeadMajor);
        let (x, g) = (values::<T>(HEADS * a.nnz(), 2), values::<T>(HEADS * a.nnz(), 3));
        let (mut y, mut dx) = (vec![T::zero(); x.len()], vec![T::zero(); x.len()]);
        let (name, heads) = ("", HEADS);
        let case = SoftmaxCase { name, pattern, heads, order, values: &x, out: &mut y };
        softmax(case, Mistake::None).expect("a softmax");
        let (weights, of_weights) = (&y[..], &g[..]);
        let out = &mut dx[..];
        let case = SoftmaxGradientCase { name, pattern, heads, order, weights, of_weights, out };
        softmax_gradient(case, Mistake::None).expect("a gradient");
        let reference = Softmax { pattern, heads, order };
        let at = a.nnz() + a.view().row_range(23).start + 2;
        let forward = |value: T| {
            let mut found = y.clone();
            found[at] = value;
            reference.verify(&x, &found).expect("lengths that fit")
        };
        let backward = |value: T| {
            let mut found = dx.clone();
            found[at] = value;
            reference.verify_gradient(&y, &g, &found).expect("lengths that fit")
        };
        assert!(forward(y[at]).ok && backward(dx[at]).ok);
        assert!(!forward(off(y[at], 1.1, forward)).ok && forward(off(y[at], 0.9, forward)).ok);
        assert!(
            !backward(off(dx[at], 1.1, backward)).ok && backward(off(dx[at], 0.9, backward)).ok
        );
        for wrong in [f64::NAN, f64::INFINITY, 2.0] {
            assert!(!forward(T::from_f64(wrong)).ok && !backward(T::from_f64(wrong)).ok, "{wrong}");
        }
        let shared = Softmax { order: HeadValues::Shared, ..reference };
        assert!(shared.verify(&x[..a.nnz()], &y[..a.nnz()]).is_err());
        assert!(reference.verify(&x[1..], &y).is_err());
    }
    check::<f32>();
    check::<f64>();
    check::<f16>();
    check::<bf16>();
}

#[test]
fn what_does_not_fit_is_refused() {
    let example = Example::<f32>::new();
    let product = example.product();
    assert!(product.verify(example.v.view(), None).is_err());
    assert!(product.verify(example.o.view(), Some(&example.lse[1..])).is_err());
    let bias = Some((&example.a.values().as_slice()[1..], HeadValues::Shared));
    assert!(Attention { bias, ..product }.compute().is_err());
    assert!(Attention { heads: 3, ..product }.compute().is_err());
    assert!(Attention { columns: D + 1, ..product }.compute().is_err());
}
