//! The oracle against corrupted results: what is right passes, and whatever is wrong by more
//! than rounding can explain is caught, at the right place.

use gustav_core::{Csr, Dense, DenseView, Error, Layout, Scalar, Semiring, bf16, f16};
use gustav_testkit::battery::matrices::{random_rows, unsorted};
use gustav_testkit::battery::values::values;
use gustav_testkit::oracle::{Sddmm, Spgemm, Spmm, Verdict, spmv};

const ROWS: usize = 40;
const INNER: usize = 60;
const N: usize = 9;

fn a<T: Scalar>() -> Csr<T> {
    random_rows(ROWS, INNER, 1, |r| if r == 5 { 0 } else { 1 + r % 17 })
}

fn b<T: Scalar>() -> Dense<T> {
    Dense::from_row_major(INNER, N, values(INNER * N, 2)).expect("B")
}

/// A·B as a careful kernel computes it.
fn product<T: Scalar>(a: &Csr<T>, b: &Dense<T>) -> Dense<T> {
    Dense::from_fn(a.nrows(), b.ncols(), Layout::RowMajor, |i, j| {
        let (cols, vals) = a.view().row(i);
        let terms = cols.iter().zip(vals).map(|(k, v)| v.to_f64() * b.get(*k as usize, j).to_f64());
        T::from_f64(terms.sum())
    })
    .expect("C")
}

fn verdict<T: Scalar>(c: &Dense<T>) -> Verdict {
    let (a, b) = (a::<T>(), b::<T>());
    Spmm::new(a.view(), b.view()).verify(c.view()).expect("shapes that fit")
}

/// Corrupts a right result and expects the verdict to name `place`, or any place if `None`.
fn caught<T: Scalar>(place: Option<(usize, usize)>, corrupt: impl FnOnce(&mut Dense<T>)) {
    let mut c = product::<T>(&a(), &b());
    assert!(verdict(&c).ok, "{}", verdict(&c));
    corrupt(&mut c);
    let verdict = verdict(&c);
    assert!(!verdict.ok && verdict.max_ratio > 1.0, "not caught: {verdict}");
    let worst = verdict.worst.expect("a worst element");
    if let Some(place) = place {
        assert_eq!((worst.row, worst.col), place, "{verdict}");
    }
}

fn set<T: Scalar>(c: &mut Dense<T>, i: usize, j: usize, value: T) {
    c.view_mut().set(i, j, value);
}

fn corruptions<T: Scalar>() {
    let at = (23, 4);
    let own = |c: &Dense<T>| c.get(at.0, at.1).to_f64();
    // A sign, a missing row, two rows exchanged, a column shifted by one, another element.
    caught::<T>(Some(at), |c| set(c, at.0, at.1, T::from_f64(-own(c))));
    caught::<T>(None, |c| (0..N).for_each(|j| set(c, 12, j, T::zero())));
    caught::<T>(None, |c| {
        for j in 0..N {
            let (x, y) = (c.get(7, j), c.get(8, j));
            set(c, 7, j, y);
            set(c, 8, j, x);
        }
    });
    caught::<T>(None, |c| {
        let column: Vec<T> = (0..ROWS).map(|i| c.get(i, 3)).collect();
        (0..ROWS).for_each(|i| set(c, i, 2, column[i]));
    });
    // The empty row must be exactly zero.
    caught::<T>(Some((5, 0)), |c| set(c, 5, 0, T::one()));
}

#[test]
fn corrupted_results_are_caught() {
    corruptions::<f16>();
    corruptions::<bf16>();
    corruptions::<f32>();
    corruptions::<f64>();
    corruptions::<i32>();
    corruptions::<i64>();
}

fn float_corruptions<T: Scalar>() {
    let at = (31, 8);
    caught::<T>(Some(at), |c| set(c, at.0, at.1, T::from_f64(f64::NAN)));
    caught::<T>(Some(at), |c| set(c, at.0, at.1, T::from_f64(f64::INFINITY)));
    caught::<T>(Some(at), |c| set(c, at.0, at.1, T::from_f64(f64::NEG_INFINITY)));
    // The bound is sharp on both sides: a bit more is caught, a bit less is not.
    let right = product::<T>(&a(), &b());
    let bound = {
        let mut c = right.clone();
        set(&mut c, at.0, at.1, T::from_f64(1e4));
        verdict(&c).worst.expect("a worst element").bound
    };
    let value = right.get(at.0, at.1).to_f64();
    let step = 2.0 * T::UNIT_ROUNDOFF * value.abs();
    // 15 terms below 1.5² each, summed in the type of sums; one store.
    let sums = 20.0 * T::Accum::UNIT_ROUNDOFF * 15.0 * 2.25;
    let store = 1.01 * T::UNIT_ROUNDOFF * (value.abs() + sums) + 1e-7;
    let store = if T::DTYPE == T::Accum::DTYPE { 0.0 } else { store };
    assert!(bound > 0.0 && bound < sums + store, "the bound {bound} is lax");
    for sign in [-1.0, 1.0] {
        caught::<T>(Some(at), |c| {
            set(c, at.0, at.1, T::from_f64(value + sign * (bound + 2.0 * step)))
        });
        let mut c = right.clone();
        set(&mut c, at.0, at.1, T::from_f64(value + sign * (bound - 2.0 * step).max(0.0)));
        assert!(verdict(&c).ok, "{}", verdict(&c));
    }
}

#[test]
fn nonfinite_and_slightly_wrong_elements_are_caught() {
    float_corruptions::<f16>();
    float_corruptions::<bf16>();
    float_corruptions::<f32>();
    float_corruptions::<f64>();
}

#[test]
fn integers_are_exact() {
    caught::<i32>(Some((3, 3)), |c| set(c, 3, 3, c.get(3, 3) + 1));
    caught::<i64>(Some((3, 3)), |c| set(c, 3, 3, c.get(3, 3) - 1));
}

#[test]
fn values_of_a_or_b_ignored_are_caught() {
    fn check<T: Scalar>() {
        let (a, b) = (a::<T>(), b::<T>());
        let mut ones = a.clone();
        ones.values_mut().fill(T::one());
        let flat = Dense::from_fn(INNER, N, Layout::RowMajor, |_, _| T::one()).expect("B");
        assert!(!verdict(&product(&ones, &b)).ok);
        assert!(!verdict(&product(&a, &flat)).ok);
    }
    check::<f32>();
    check::<bf16>();
    check::<i32>();
}

/// The verdict on one element with one row of terms.
fn element<T: Scalar>(kind: Semiring, terms: &[(f64, f64)], found: f64) -> Verdict {
    let n = terms.len();
    let values: Vec<T> = terms.iter().map(|(a, _)| T::from_f64(*a)).collect();
    let x: Vec<T> = terms.iter().map(|(_, b)| T::from_f64(*b)).collect();
    let a = Csr::<T>::new(1, n, vec![0, n as u32], (0..n as u32).collect::<Vec<_>>(), values);
    let (one, zero) = match kind {
        Semiring::MinPlus => (0.0, f64::INFINITY),
        Semiring::MaxTimes => (1.0, f64::NEG_INFINITY),
        _ => (1.0, 0.0),
    };
    let (alpha, beta) = (T::Accum::from_f64(one), T::Accum::from_f64(zero));
    let a = a.expect("A");
    spmv(kind, a.view(), false, &x, alpha, beta, None, &[T::from_f64(found)]).expect("shapes")
}

#[test]
fn nan_and_infinity_follow_the_operands() {
    use Semiring::{MaxTimes, MinPlus, OrAnd, PlusFirst, PlusSecond, PlusTimes};
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let cases: &[(Semiring, &[(f64, f64)], f64)] = &[
        (PlusTimes, &[(inf, 1.0), (2.0, 3.0)], inf),
        (PlusTimes, &[(inf, -1.0), (2.0, 3.0)], -inf),
        (PlusTimes, &[(inf, 1.0), (-inf, 3.0)], nan),
        (PlusTimes, &[(inf, 0.0)], nan),
        (PlusTimes, &[(nan, 0.0), (1.0, 1.0)], nan),
        (PlusFirst, &[(1.5, nan), (1.0, inf)], 2.5),
        (PlusSecond, &[(nan, 1.5), (inf, 1.0)], 2.5),
        (PlusSecond, &[(0.0, inf)], inf),
        (MinPlus, &[(inf, 1.0), (2.0, 3.0)], 5.0),
        (MinPlus, &[], inf),
        (MinPlus, &[(nan, 1.0), (2.0, 3.0)], nan),
        (MinPlus, &[(2.0, 3.0), (inf, -inf)], nan),
        (MaxTimes, &[(-2.0, 3.0), (-1.0, 2.0)], -2.0),
        (MaxTimes, &[], -inf),
        (MaxTimes, &[(1.0, 1.0), (nan, 3.0)], nan),
        (OrAnd, &[(nan, 1.0)], 1.0),
        (OrAnd, &[(0.0, 1.0), (3.0, 0.0)], 0.0),
        (OrAnd, &[(1e-30, 1e-30)], 1.0),
    ];
    for (kind, terms, right) in cases {
        for found in [inf, -inf, nan, 0.0, 1.0, 2.5, 5.0, -2.0] {
            let same = found == *right || (found.is_nan() && right.is_nan());
            let verdict = element::<f32>(*kind, terms, found);
            assert_eq!(verdict.ok, same, "{kind} {terms:?}: {verdict}");
            assert_eq!(element::<f64>(*kind, terms, found).ok, same, "{kind} {terms:?} in f64");
        }
    }
}

#[test]
fn overflow_is_allowed_where_it_can_happen_and_nowhere_else() {
    use Semiring::PlusTimes;
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    // Certain: one product is out of range.
    let certain = [(1e30, 1e30)];
    assert!(element::<f32>(PlusTimes, &certain, inf).ok);
    for wrong in [-inf, nan, 3e38, 0.0] {
        assert!(!element::<f32>(PlusTimes, &certain, wrong).ok, "{wrong}");
    }
    // Depends on the order: +, + overflows, +, −, + does not.
    let mixed = [(2e38, 1.0), (2e38, 1.0), (-2e38, 1.0)];
    for right in [inf, 2e38] {
        assert!(element::<f32>(PlusTimes, &mixed, right).ok, "{right}");
    }
    assert!(!element::<f32>(PlusTimes, &mixed, 1e38).ok);
    // The stored type overflows, the type of sums does not.
    let stored = [(200.0, 200.0), (200.0, 200.0)];
    assert!(element::<f16>(PlusTimes, &stored, inf).ok);
    assert!(!element::<f16>(PlusTimes, &stored, 65504.0).ok);
    assert!(!element::<f16>(PlusTimes, &stored, nan).ok);
    let back = [(200.0, 200.0), (200.0, 200.0), (-200.0, 200.0)];
    assert!(element::<f16>(PlusTimes, &back, 40000.0).ok);
    assert!(!element::<f16>(PlusTimes, &back, inf).ok, "sums are kept in f32");
    // Nothing near the end of the range.
    for wrong in [inf, -inf, nan] {
        assert!(!element::<f64>(PlusTimes, &[(1.0, 2.0)], wrong).ok);
    }
    let huge = [(1e200, 1e200)];
    assert!(element::<f64>(PlusTimes, &huge, inf).ok && !element::<f64>(PlusTimes, &huge, -inf).ok);
}

#[test]
fn tiny_results_are_held_to_the_subnormal_spacing() {
    use Semiring::PlusTimes;
    let tiny = f64::from(f32::from_bits(1));
    let terms = [(1e-30, 1e-15)];
    assert!(
        element::<f32>(PlusTimes, &terms, 0.0).ok && element::<f32>(PlusTimes, &terms, tiny).ok
    );
    assert!(!element::<f32>(PlusTimes, &terms, 1e-38).ok);
}

#[test]
fn shapes_and_missing_operands_are_errors() {
    let (a, b) = (a::<f32>(), b::<f32>());
    let c = Dense::<f32>::zeros(ROWS, N + 1, Layout::RowMajor).expect("C");
    let text = |r: gustav_core::Result<Verdict>| r.expect_err("an error").to_string();
    let message = text(Spmm::new(a.view(), b.view()).verify(c.view()));
    assert!(message.contains("C of 40 x 9") && message.contains("40 x 10"), "{message}");
    let c = Dense::<f32>::zeros(ROWS, N, Layout::RowMajor).expect("C");
    let product = Spmm { beta: 1.0, ..Spmm::new(a.view(), b.view()) };
    assert!(text(product.verify(c.view())).contains("C before the product"));
    let product = Spmm { transpose_a: true, ..Spmm::new(a.view(), b.view()) };
    assert!(text(product.verify(c.view())).contains("B of 40 x 9"));
}

fn sparse_product<T: Scalar>(a: &Csr<T>, b: &Csr<T>) -> Vec<Vec<(u32, T)>> {
    (0..a.nrows())
        .map(|i| {
            let mut row = std::collections::BTreeMap::new();
            for (k, x) in a.view().row(i).0.iter().zip(a.view().row(i).1) {
                let (cols, vals) = b.view().row(*k as usize);
                for (c, y) in cols.iter().zip(vals) {
                    *row.entry(*c).or_insert(0.0) += x.to_f64() * y.to_f64();
                }
            }
            row.into_iter().map(|(c, v)| (c, T::from_f64(v))).collect()
        })
        .collect()
}

fn csr<T: Scalar>(ncols: usize, rows: &[Vec<(u32, T)>]) -> Csr<T> {
    let mut offsets = vec![0];
    for row in rows {
        offsets.push(offsets[offsets.len() - 1] + row.len() as u32);
    }
    let entries = || rows.iter().flatten();
    let indices: Vec<u32> = entries().map(|e| e.0).collect();
    Csr::new(rows.len(), ncols, offsets, indices, entries().map(|e| e.1).collect::<Vec<_>>())
        .expect("C")
}

fn spgemm_corruptions<T: Scalar>(a: &Csr<T>, b: &Csr<T>) {
    let right = sparse_product(a, b);
    let row = (0..right.len()).find(|&r| right[r].len() > 4).expect("a long row");
    let check = |sorted: bool, corrupt: &dyn Fn(&mut Vec<Vec<(u32, T)>>)| {
        let mut rows = right.clone();
        corrupt(&mut rows);
        let c = csr(b.ncols(), &rows);
        Spgemm { sorted, ..Spgemm::new(a.view(), b.view()) }.verify(c.view()).expect("shapes")
    };
    let caught = |message: &str, corrupt: &dyn Fn(&mut Vec<Vec<(u32, T)>>)| {
        for sorted in [true, false] {
            let verdict = check(sorted, corrupt);
            assert!(!verdict.ok && verdict.to_string().contains(message), "{message}: {verdict}");
        }
    };
    assert!(check(true, &|_| {}).ok, "{}", check(true, &|_| {}));
    assert!(check(false, &|rows| rows[row].reverse()).ok);
    assert!(check(true, &|rows| rows[row].swap(1, 2)).to_string().contains("not sorted"));
    let missing = format!("row {row} lacks its entry in column {}", right[row][2].0);
    caught(&missing, &|rows| {
        rows[row].remove(2);
    });
    caught("more than once", &|rows| {
        let twice = rows[row][2];
        rows[row].insert(2, twice);
    });
    let free = (0..b.ncols() as u32).find(|c| right[row].iter().all(|e| e.0 != *c));
    if let Some(free) = free {
        caught("that no term produces", &|rows| {
            rows[row].push((free, T::zero()));
            rows[row].sort_by_key(|e| e.0);
        });
    }
    let place = format!("row {row}, column {}", right[row][3].0);
    caught(&place, &|rows| rows[row][3].1 = T::from_f64(-rows[row][3].1.to_f64() - 1.0));
    caught("worst at", &|rows| rows.iter_mut().flatten().for_each(|e| e.1 = T::one()));
    caught("lacks", &|rows| rows[row].clear());
}

#[test]
fn corrupted_sparse_results_are_caught() {
    fn check<T: Scalar>() {
        let a = a::<T>();
        spgemm_corruptions(&a, &random_rows(INNER, 50, 3, |r| 1 + r % 6));
        spgemm_corruptions::<T>(&unsorted(30, INNER, 4), &unsorted(INNER, 45, 5));
    }
    check::<f32>();
    check::<f64>();
    check::<bf16>();
    check::<i64>();
}

#[test]
fn explicit_zeros_belong_to_the_pattern() {
    let a = Csr::<f32>::new(1, 2, vec![0, 2], vec![0, 1], vec![1.0, -1.0]).expect("A");
    let b = Csr::<f32>::new(2, 1, vec![0, 1, 2], vec![0, 0], vec![1.0, 1.0]).expect("B");
    let kept = Csr::<f32>::new(1, 1, vec![0, 1], vec![0], vec![0.0]).expect("C");
    let dropped = Csr::<f32>::empty(1, 1).expect("C");
    let product = Spgemm::new(a.view(), b.view());
    assert!(product.verify(kept.view()).expect("shapes").ok);
    assert!(!product.verify(dropped.view()).expect("shapes").ok);
}

#[test]
fn the_verdict_does_not_depend_on_threads() {
    let (a, b) = (a::<f32>(), b::<f32>());
    let c = product(&a, &b);
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        pool.install(|| Spmm::new(a.view(), b.view()).verify(c.view()).expect("shapes"))
    };
    assert_eq!(with(1), with(5));
    assert_eq!(with(1).checked, ROWS * N);
}

#[test]
fn layouts_and_padding_make_no_difference() {
    let (a, b) = (a::<f64>(), b::<f64>());
    let c = product(&a, &b);
    let (b2, c2) = (b.to_layout(Layout::ColumnMajor), c.to_layout(Layout::ColumnMajor));
    let (b2, c2) = (b2.expect("B"), c2.expect("C"));
    let plain = Spmm::new(a.view(), b.view()).verify(c.view()).expect("shapes");
    assert_eq!(Spmm::new(a.view(), b2.view()).verify(c2.view()).expect("shapes"), plain);
    let mut padded = vec![f64::NAN; INNER * (N + 2)];
    for i in 0..INNER {
        (0..N).for_each(|j| padded[i * (N + 2) + j] = b.get(i, j));
    }
    let b3 = DenseView::new(INNER, N, Layout::RowMajor, N + 2, &padded).expect("B");
    assert_eq!(Spmm::new(a.view(), b3).verify(c.view()).expect("shapes"), plain);
}

/// Under a mask, entries that it leaves out are faults, and so is the lack of one that it asks for.
#[test]
fn spgemm_under_a_mask() {
    let a = Csr::<f64>::new(1, 2, vec![0, 2], vec![0, 1], vec![2.0, 3.0]).expect("A");
    let b = Csr::<f64>::new(2, 4, vec![0, 2, 4], vec![0, 2, 2, 3], vec![1.0; 4]).expect("B");
    let mask = Csr::<f64>::new(1, 4, vec![0, 3], vec![1, 2, 3], vec![0.0; 3]).expect("a mask");
    let product = Spgemm::new(a.view(), b.view());
    let masked = Spgemm { mask: Some(mask.view()), ..product };
    let verify = |oracle: &Spgemm<'_, f64, u32, u32>, columns: &[u32], values: &[f64]| {
        let offsets = vec![0, columns.len() as u32];
        let c = Csr::new(1, 4, offsets, columns.to_vec(), values.to_vec()).expect("C");
        oracle.verify(c.view()).expect("shapes fit").ok
    };
    assert!(verify(&product, &[0, 2, 3], &[2.0, 5.0, 3.0]));
    assert!(!verify(&product, &[2, 3], &[5.0, 3.0]));
    assert!(verify(&masked, &[2, 3], &[5.0, 3.0]));
    for (columns, values) in [
        (&[0, 2, 3][..], &[2.0, 5.0, 3.0][..]),
        (&[2], &[5.0]),
        (&[1, 2, 3], &[0.0, 5.0, 3.0]),
        (&[2, 3], &[5.0, 4.0]),
    ] {
        assert!(!verify(&masked, columns, values), "{columns:?}");
    }
    let narrow = Csr::<f64>::empty(1, 3).expect("a mask");
    let wrong = Spgemm { mask: Some(narrow.view()), ..product };
    assert!(wrong.verify(b.view()).is_err());
}

/// X·Yᵀ at the nonzeros of `a`, times its values, as a careful kernel computes it.
fn sampled<T: Scalar>(a: &Csr<T>, x: &Dense<T>, y: &Dense<T>) -> Vec<T> {
    let rows = (0..a.nrows()).flat_map(|i| {
        let (cols, values) = a.view().row(i);
        cols.iter().zip(values).map(move |(j, value)| (i, *j as usize, value.to_f64()))
    });
    let inner = |i: usize, j: usize| -> f64 {
        (0..x.ncols()).map(|k| x.get(i, k).to_f64() * y.get(j, k).to_f64()).sum()
    };
    rows.map(|(i, j, value)| T::from_f64(inner(i, j) * value)).collect()
}

fn sampled_corruptions<T: Scalar>() {
    let a = a::<T>();
    let dense = |rows, seed| Dense::<T>::from_row_major(rows, N, values(rows * N, seed));
    let (x, y) = (dense(ROWS, 3).expect("X"), dense(INNER, 4).expect("Y"));
    let factors = Some(a.values().as_slice());
    let reference = Sddmm { factors, ..Sddmm::new(a.pattern(), x.view(), y.view()) };
    let right = sampled(&a, &x, &y);
    let verdict = |found: &[T]| reference.verify(found).expect("shapes that fit");
    assert!(verdict(&right).ok, "{}", verdict(&right));
    let at = a.view().row_range(23).start + 2;
    let place = (23, a.indices()[at] as usize);
    let wrong = |change: &dyn Fn(&mut Vec<T>)| {
        let mut found = right.clone();
        change(&mut found);
        let verdict = verdict(&found);
        assert!(!verdict.ok, "not caught: {verdict}");
        verdict.worst.map(|w| (w.row, w.col))
    };
    // A sign, a zero, NaN; two values exchanged; the factor left out.
    let negative = |v: &mut Vec<T>| v[at] = T::from_f64(-v[at].to_f64());
    assert_eq!(wrong(&negative), Some(place));
    assert_eq!(wrong(&|v| v[at] = T::zero()), Some(place));
    if !T::DTYPE.is_integer() {
        assert_eq!(wrong(&|v| v[at] = T::from_f64(f64::NAN)), Some(place));
    }
    wrong(&|v| v.swap(at, at + 1));
    let plain = Sddmm::new(a.pattern(), x.view(), y.view());
    assert!(!plain.verify(&right).expect("shapes that fit").ok);
    // β adds what was there.
    let one = T::from_i64(1);
    let before = vec![one; a.nnz()];
    let added = Sddmm { beta: one.to_accum(), before: Some(&before), ..reference };
    assert!(!added.verify(&right).expect("shapes that fit").ok);
    assert!(matches!(Sddmm { before: None, ..added }.verify(&right), Err(Error::Argument { .. })));
    assert!(matches!(reference.verify(&right[1..]), Err(Error::Length { .. })));
    let turned = Sddmm { x: y.view(), y: x.view(), ..reference };
    assert!(matches!(turned.verify(&right), Err(Error::Shape { .. })));
}

/// α times the sum is rounded before it is multiplied by the factor of its nonzero.
#[test]
fn sampled_products_may_overflow_before_their_factor() {
    let a = Csr::<f32>::new(1, 1, vec![0, 1], vec![0], vec![1e-20]).expect("A");
    let operand = |value| Dense::<f32>::from_row_major(1, 1, vec![value]).expect("an operand");
    let (x, y) = (operand(1e15), operand(1e15));
    let factors = Some(a.values().as_slice());
    let ok = |alpha, found: f32| {
        let reference = Sddmm { alpha, factors, ..Sddmm::new(a.pattern(), x.view(), y.view()) };
        reference.verify(&[found]).expect("shapes that fit").ok
    };
    // α·⟨x, y⟩ = 10³⁵ is in range, 10⁴⁰ is not; the result is in both.
    assert!(ok(1e5, 1e15) && !ok(1e5, f32::INFINITY));
    assert!(ok(1e10, 1e20) && ok(1e10, f32::INFINITY) && !ok(1e10, f32::NEG_INFINITY));
    assert!(!ok(1e10, 0.0) && !ok(1e10, f32::NAN));
}

#[test]
fn corrupted_sampled_products_are_caught() {
    sampled_corruptions::<f32>();
    sampled_corruptions::<f64>();
    sampled_corruptions::<bf16>();
    sampled_corruptions::<i32>();
}
