//! Laws that hold for any matrix: permutations, and the products as the oracle sees them.

use gustav_core::{Csr, Dense, Layout, Permutation, Scalar, Semiring};
use gustav_testkit::oracle::{Spgemm, Spmm};
use proptest::prelude::*;

/// Integer-valued matrices of any small shape, entries in any order, with duplicates.
fn matrix(nrows: usize, ncols: usize) -> impl Strategy<Value = Csr<i64>> {
    let entry = (0..ncols.max(1) as u32, -50i64..50);
    let row = prop::collection::vec(entry, if ncols == 0 { 0..1 } else { 0..6 });
    prop::collection::vec(row, nrows).prop_map(move |rows| {
        let mut offsets = vec![0u32];
        let (mut indices, mut values) = (Vec::new(), Vec::new());
        for (col, value) in rows.iter().flat_map(|row| {
            offsets
                .push(offsets[offsets.len() - 1] + if ncols == 0 { 0 } else { row.len() as u32 });
            row.iter().filter(move |_| ncols > 0)
        }) {
            indices.push(*col);
            values.push(*value);
        }
        Csr::new(nrows, ncols, offsets, indices, values).expect("a matrix")
    })
}

fn any_matrix() -> impl Strategy<Value = Csr<i64>> {
    (0usize..9, 0usize..9).prop_flat_map(|(m, n)| matrix(m, n))
}

fn permutation(len: usize) -> impl Strategy<Value = Permutation> {
    Just((0..len as u32).collect::<Vec<_>>())
        .prop_shuffle()
        .prop_map(|order| Permutation::new(order).expect("a permutation"))
}

fn dense<T: Scalar>(a: &Csr<T>) -> Dense<T> {
    a.view().to_dense(Layout::RowMajor).expect("dense")
}

/// A·B by the definition.
fn product(a: &Csr<i64>, b: &Csr<i64>) -> Dense<i64> {
    let (a, b) = (dense(a), dense(b));
    Dense::from_fn(a.nrows(), b.ncols(), Layout::RowMajor, |i, j| {
        (0..a.ncols()).map(|k| a.get(i, k) * b.get(k, j)).sum()
    })
    .expect("C")
}

fn accepts(a: &Csr<i64>, b: &Dense<i64>, c: &Dense<i64>) -> bool {
    Spmm::new(a.view(), b.view()).verify(c.view()).expect("shapes that fit").ok
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_permutation_and_its_inverse_cancel(p in (0usize..20).prop_flat_map(permutation)) {
        let identity = Permutation::identity(p.len()).expect("a permutation");
        let inverse = p.inverse().expect("memory");
        prop_assert_eq!(&p.then(&inverse).expect("lengths"), &identity);
        prop_assert_eq!(&inverse.then(&p).expect("lengths"), &identity);
        prop_assert_eq!(inverse.inverse().expect("memory"), p.clone());
        prop_assert_eq!(p.then(&identity).expect("lengths"), p);
    }

    #[test]
    fn composition_is_one_after_the_other(
        (p, q, values) in (0usize..20).prop_flat_map(|n| {
            (permutation(n), permutation(n), prop::collection::vec(any::<i32>(), n))
        })
    ) {
        let one_by_one = q.apply(&p.apply(&values).expect("lengths")).expect("lengths");
        prop_assert_eq!(p.then(&q).expect("lengths").apply(&values).expect("lengths"), one_by_one);
    }

    #[test]
    fn rows_and_columns_move_where_the_order_says(
        (a, p, q) in any_matrix().prop_flat_map(|a| {
            let (m, n) = (a.nrows(), a.ncols());
            (Just(a), permutation(m), permutation(n))
        })
    ) {
        let moved = q.apply_columns(p.apply_rows(a.view()).expect("rows").view()).expect("columns");
        let (from, to) = (dense(&a), dense(&moved));
        for i in 0..a.nrows() {
            for j in 0..a.ncols() {
                let (old_i, old_j) = (p.order()[i] as usize, q.order()[j] as usize);
                prop_assert_eq!(to.get(i, j), from.get(old_i, old_j));
            }
        }
        let back = p.inverse().expect("memory").apply_rows(moved.view()).expect("rows");
        prop_assert_eq!(q.inverse().expect("memory").apply_columns(back.view()).expect("columns"), a);
    }

    #[test]
    fn formats_keep_any_matrix(a in any_matrix()) {
        let view = a.view();
        let whole = dense(&a);
        prop_assert_eq!(&Csr::from_coo(&view.to_coo().expect("coo")).expect("csr"), &a);
        prop_assert_eq!(&view.to_dcsr().expect("dcsr").view().to_csr().expect("csr"), &a);
        let csc = view.to_csc().expect("csc").view().to_csr().expect("csr");
        let twice = view.transpose().expect("transpose").view().transpose().expect("transpose");
        let canonical = a.canonicalize().expect("canonical");
        for other in [csc, twice, canonical, a.sort_columns().expect("sorted")] {
            let other = dense(&other);
            prop_assert_eq!(other.data(), whole.data());
        }
    }

    /// The oracle agrees with the definition, and so do its views of A: a row order moves rows
    /// of C, a column order with rows of B to match changes nothing.
    #[test]
    fn the_oracle_is_invariant_under_permutation(
        (a, b, p, q) in (0usize..8, 0usize..8, 0usize..6).prop_flat_map(|(m, k, n)| {
            (matrix(m, k), matrix(k, n), permutation(m), permutation(k))
        })
    ) {
        let (c, b_dense) = (product(&a, &b), dense(&b));
        prop_assert!(accepts(&a, &b_dense, &c));
        let rows = Dense::from_fn(a.nrows(), b.ncols(), Layout::RowMajor, |i, j| {
            c.get(p.order()[i] as usize, j)
        }).expect("C");
        prop_assert!(accepts(&p.apply_rows(a.view()).expect("rows"), &b_dense, &rows));
        let columns = q.apply_columns(a.view()).expect("columns");
        let b_rows = q.apply_rows(b.view()).expect("rows");
        prop_assert!(accepts(&columns, &dense(&b_rows), &c));
    }

    /// A(xB + yB′) = xAB + yAB′, taken by the oracle as α and β.
    #[test]
    fn the_oracle_is_linear(
        (a, b, x, y) in (0usize..8, 0usize..8, 0usize..6).prop_flat_map(|(m, k, n)| {
            (matrix(m, k), matrix(k, n), -9i64..9, -9i64..9)
        })
    ) {
        let before = product(&a, &b);
        let combined = |f: i64, m: &Dense<i64>| {
            Dense::from_fn(m.nrows(), m.ncols(), Layout::RowMajor, |i, j| f * m.get(i, j)).expect("C")
        };
        let b = dense(&b);
        prop_assert!(accepts(&a, &combined(x, &b), &combined(x, &before)));
        let spmm = Spmm {
            alpha: x,
            beta: y,
            before: Some(before.view()),
            ..Spmm::new(a.view(), b.view())
        };
        prop_assert!(spmm.verify(combined(x + y, &before).view()).expect("shapes").ok);
        let wrong = combined(x + y + 1, &before);
        let changed = before.data().iter().any(|v| *v != 0);
        prop_assert_eq!(spmm.verify(wrong.view()).expect("shapes").ok, !changed);
    }

    /// (AB)ᵀ = BᵀAᵀ, pattern and values, and op(Aᵀ) = A.
    #[test]
    fn the_oracle_transposes(
        (a, b) in (0usize..8, 0usize..8, 0usize..8).prop_flat_map(|(m, k, n)| {
            (matrix(m, k), matrix(k, n))
        })
    ) {
        // The pattern from the products of ones, which cannot cancel; the values from the
        // definition.
        let ones = |m: &Csr<i64>| {
            let mut m = m.clone();
            m.values_mut().fill(1);
            m
        };
        let (pattern, values) = (product(&ones(&a), &ones(&b)), product(&a, &b));
        let c = Csr::<i64>::from_dense(pattern.view()).expect("C");
        let coo = c.view().to_coo().expect("C");
        let at = |k: usize| values.get(coo.rows()[k] as usize, coo.cols()[k] as usize);
        let values: Vec<i64> = (0..c.nnz()).map(at).collect();
        let c = c.view().pattern().with_values(&values).expect("C");
        prop_assert!(Spgemm::new(a.view(), b.view()).verify(c).expect("shapes").ok);
        let (at, bt) = (a.view().transpose().expect("Aᵀ"), b.view().transpose().expect("Bᵀ"));
        let ct = c.transpose().expect("Cᵀ");
        prop_assert!(Spgemm::new(bt.view(), at.view()).verify(ct.view()).expect("shapes").ok);

        let (b, c) = (dense(&b), product(&a, &b));
        let spmm = Spmm { transpose_a: true, ..Spmm::new(at.view(), b.view()) };
        prop_assert!(spmm.verify(c.view()).expect("shapes").ok);
    }

    /// Every semiring, exactly, against its definition in core.
    #[test]
    fn the_oracle_knows_every_semiring(
        (a, b) in (1usize..8, 1usize..8, 1usize..6).prop_flat_map(|(m, k, n)| {
            (matrix(m, k), matrix(k, n))
        }),
        kind in prop::sample::select(&Semiring::ALL[..]),
    ) {
        use gustav_core::{MaxTimes, MinPlus, OrAnd, PlusFirst, PlusSecond, PlusTimes};
        let b = dense(&b);
        let by = |f: &dyn Fn(i64, i64, i64) -> i64, zero: i64| {
            Dense::from_fn(a.nrows(), b.ncols(), Layout::RowMajor, |i, j| {
                let (cols, values) = a.view().row(i);
                cols.iter().zip(values).fold(zero, |s, (k, v)| f(*v, b.get(*k as usize, j), s))
            })
            .expect("C")
        };
        fn of<S: gustav_core::StaticSemiring<i64>>() -> (fn(i64, i64, i64) -> i64, i64, i64) {
            (S::mul_add, S::zero(), S::one())
        }
        let (f, zero, one) = match kind {
            Semiring::PlusTimes => of::<PlusTimes>(),
            Semiring::MinPlus => of::<MinPlus>(),
            Semiring::MaxTimes => of::<MaxTimes>(),
            Semiring::OrAnd => of::<OrAnd>(),
            Semiring::PlusFirst => of::<PlusFirst>(),
            Semiring::PlusSecond => of::<PlusSecond>(),
        };
        let mut c = by(&f, zero);
        let spmm =
            Spmm { semiring: kind, alpha: one, beta: zero, ..Spmm::new(a.view(), b.view()) };
        prop_assert!(spmm.verify(c.view()).expect("shapes").ok);
        c.data_mut()[0] ^= 1;
        prop_assert!(!spmm.verify(c.view()).expect("shapes").ok);
    }
}
