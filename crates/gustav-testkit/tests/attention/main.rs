//! The oracles and batteries of attention and softmax: what is right passes, and typical mistakes
//! and corrupted results are caught.

mod kernels;

use std::panic::{AssertUnwindSafe, catch_unwind};

use gustav_core::{Csr, Dense, HeadValues, Index, Layout, Scalar, ScoreOptions, bf16, f16};
use gustav_testkit::battery::matrices::random_rows;
use gustav_testkit::battery::values::values;
use gustav_testkit::battery::{
    AttentionCase, AttentionGradientsCase, Settings, SoftmaxCase, SoftmaxGradientCase,
    check_attention, check_attention_gradients, check_softmax, check_softmax_gradient,
};
use gustav_testkit::oracle::{Attention, AttentionGradients, FoundGradients, Softmax, Verdict};

use kernels::{Mistake, attention, gradients, softmax, softmax_gradient};

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
        IgnoresSlope,
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
    for mistake in [
        IgnoresBias,
        IgnoresScale,
        IgnoresSlope,
        EmptyRowsAreNan,
        NoDelta,
        ScaleTwice,
        SlopeOfScoresAlone,
        LeakBySignOfScore,
        BiasOfOneHead,
    ] {
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

fn scores<T: Scalar>() -> ScoreOptions<T::Accum> {
    ScoreOptions { scale: None, negative_slope: Some(T::Accum::from_f64(0.2)) }
}

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
            scores: scores::<T>(),
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
            scores: scores::<T>(),
            bias: Some((a.values().as_slice(), HeadValues::Shared)),
            of_q: of_q.view_mut(),
            of_k: of_k.view_mut(),
            of_v: of_v.view_mut(),
            of_bias: Some((&mut of_bias, HeadValues::Shared)),
        };
        kernels::gradients(case, Mistake::None).expect("gradients");
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
            scores: scores::<T>(),
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
