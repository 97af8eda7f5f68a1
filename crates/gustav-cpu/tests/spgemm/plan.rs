//! SpGEMM plans: reuse, ⊕ β·D, transposition, zeros, limits, and the algebra of products.

use gustav_core::{Coo, Csr, Error, MaxTimes, PlusTimes, Problem, Semiring};
use gustav_cpu::{Options, SpgemmPlan};
use gustav_plan::Algorithm;
use gustav_testkit::battery::matrices::{random_rows, unsorted};

use crate::support::{options, product};

type Matrix = Csr<i64, u32, u32>;

fn times(a: &Matrix, b: &Matrix) -> Matrix {
    let options = options(Algorithm::Gustavson, 2, None);
    product::<_, _, _, PlusTimes>(a.view(), b.view(), true, &options).unwrap().1
}

fn identity(n: usize) -> Matrix {
    let offsets: Vec<u32> = (0..=n as u32).collect();
    Csr::new(n, n, offsets, (0..n as u32).collect::<Vec<_>>(), vec![1; n]).unwrap()
}

fn square(n: usize, seed: u64) -> Matrix {
    random_rows(n, n, seed, |row| [0, 1, 7, 40][row % 4])
}

#[test]
fn algebra() {
    let (a, b, c) = (square(300, 1), square(300, 2), unsorted(300, 300, 3));
    assert_eq!(times(&times(&a, &b), &c), times(&a, &times(&b, &c)));
    let canonical = c.canonicalize().unwrap();
    assert_eq!(times(&c, &identity(300)), canonical);
    assert_eq!(times(&identity(300), &c), canonical);
    let transpose = |m: &Matrix| m.view().transpose().unwrap();
    assert_eq!(transpose(&times(&a, &b)), times(&transpose(&b), &transpose(&a)));
}

#[test]
fn hub_times_hub() {
    let n = 3000;
    let hub: Matrix = random_rows(n, n, 5, |row| if row % 1000 == 7 { n } else { 2 });
    let other = hub.view().transpose().unwrap();
    let c = times(&hub, &other);
    assert_eq!(c, times(&hub, &times(&other, &identity(n))));
    assert_eq!(c, c.view().transpose().unwrap());
}

#[test]
fn transposed_a_with_new_values() {
    let mut a: Matrix = random_rows(200, 90, 6, |row| row % 9);
    let b: Matrix = random_rows(200, 150, 7, |row| row % 5);
    let problem = Problem::spgemm(&a.view(), &b.view()).transpose_a(true);
    let mut plan = SpgemmPlan::new(a.view(), b.view(), &problem, &Options::default()).unwrap();
    for factor in [1, 3] {
        a.values_mut().iter_mut().for_each(|v| *v *= factor);
        let c = plan.execute(PlusTimes, a.view(), 1, b.view()).unwrap();
        assert_eq!(c, times(&a.view().transpose().unwrap(), &b));
    }
}

#[test]
fn new_values_into_a_known_pattern() {
    let (mut a, b) = (square(400, 8), square(400, 9));
    let options = options(Algorithm::Gustavson, 5, None);
    let (mut plan, mut c) =
        product::<_, _, _, PlusTimes>(a.view(), b.view(), false, &options).unwrap();
    a.values_mut().iter_mut().enumerate().for_each(|(k, v)| *v = k as i64 % 13 - 6);
    plan.execute_into(PlusTimes, a.view(), -2, b.view(), &mut c).unwrap();
    assert_eq!(c, plan.execute(PlusTimes, a.view(), -2, b.view()).unwrap());
}

#[test]
fn united_with_a_sparse_matrix() {
    let (a, b, d) = (square(120, 10), square(120, 11), unsorted::<i64, u32, u32>(120, 120, 12));
    let problem = Problem::spgemm(&a.view(), &b.view());
    let mut plan = SpgemmPlan::new(a.view(), b.view(), &problem, &Options::default()).unwrap();
    let c = plan.execute_add(PlusTimes, a.view(), 2, b.view(), 3, d.view()).unwrap();
    let product = times(&a, &b);
    let mut triples = Vec::new();
    for (m, factor) in [(&product, 2), (&d, 3)] {
        for row in 0..120 {
            let (columns, values) = m.view().row(row);
            triples.extend(columns.iter().zip(values).map(|(j, v)| (row as u32, *j, factor * v)));
        }
    }
    let rows = triples.iter().map(|t| t.0).collect();
    let columns = triples.iter().map(|t| t.1).collect();
    let values = triples.iter().map(|t| t.2).collect();
    let sum: Matrix = Csr::from_coo(&Coo::new(120, 120, rows, columns, values).unwrap()).unwrap();
    assert_eq!(c, sum.canonicalize().unwrap());
    let zero = <PlusTimes as Semiring<i64>>::zero();
    assert_eq!(
        plan.execute_add(PlusTimes, a.view(), 1, b.view(), zero, d.view()).unwrap(),
        product
    );
    let narrow: Matrix = random_rows(120, 7, 1, |_| 1);
    let refused = plan.execute_add(PlusTimes, a.view(), 1, b.view(), 1, narrow.view());
    assert!(matches!(refused, Err(Error::Shape { .. })));
}

#[test]
fn sums_of_zero_stay_unless_dropped() {
    let a: Matrix = Csr::new(1, 2, vec![0, 2], vec![0, 1], vec![1, -1]).unwrap();
    let b: Matrix = Csr::new(2, 3, vec![0, 2, 4], vec![0, 2, 0, 1], vec![5, 6, 5, 7]).unwrap();
    let c = times(&a, &b);
    assert_eq!((c.indices(), c.values()), (&[0, 1, 2][..], &[0, -7, 6][..]));
    let options = Options { drop_zeros: true, ..options(Algorithm::Gustavson, 1, None) };
    let (mut plan, mut c) =
        product::<_, _, _, PlusTimes>(a.view(), b.view(), true, &options).unwrap();
    assert_eq!((c.indices(), c.values()), (&[1, 2][..], &[-7, 6][..]));
    let refused = plan.execute_into(PlusTimes, a.view(), 1, b.view(), &mut c);
    assert!(matches!(refused, Err(Error::Unsupported { .. })));
}

#[test]
fn zeros_are_dropped_where_rows_merge_nothing() {
    // Every row of A names two rows of B, one of them empty, in more columns than a block has.
    let n = 200u32;
    let twice = (0..n).flat_map(|i| [i, n + i]).collect::<Vec<_>>();
    let ones = vec![1; 2 * n as usize];
    let ends = (0..=n).map(|i| 2 * i).collect::<Vec<_>>();
    let a: Matrix = Csr::new(n as usize, 2 * n as usize, ends, twice, ones).unwrap();
    let offsets = (0..=2 * n).map(|i| i.min(n)).collect::<Vec<_>>();
    let values = (0..i64::from(n)).collect::<Vec<_>>();
    let b: Matrix =
        Csr::new(2 * n as usize, n as usize, offsets, (0..n).collect::<Vec<_>>(), values).unwrap();
    for sorted in [true, false] {
        let options = Options { drop_zeros: true, ..options(Algorithm::Gustavson, 1, None) };
        let (_, c) = product::<_, _, _, PlusTimes>(a.view(), b.view(), sorted, &options).unwrap();
        assert_eq!(c.indices(), (1..n).collect::<Vec<_>>(), "sorted: {sorted}");
        assert!(c.values().iter().zip(1..).all(|(v, i)| *v == i), "sorted: {sorted}");
    }
}

#[test]
fn columns_past_32_bits() {
    let far = 1u64 << 40;
    let a: Csr<f64, u64, u64> =
        Csr::new(2, 2, vec![0, 2, 3], vec![0, 1, 1], vec![1.0, 2.0, 3.0]).unwrap();
    let b: Csr<f64, u64, u64> =
        Csr::new(2, far as usize + 1, vec![0, 2, 4], vec![far, 3, 3, 70], vec![1.0, 2.0, 3.0, 4.0])
            .unwrap();
    let options = options(Algorithm::Gustavson, 2, None);
    let (mut plan, mut c) =
        product::<_, _, _, PlusTimes>(a.view(), b.view(), true, &options).unwrap();
    for _ in 0..2 {
        assert_eq!(c.offsets(), [0, 3, 5]);
        assert_eq!(c.indices(), [3, 70, far, 3, 70]);
        assert_eq!(c.values(), [8.0, 8.0, 1.0, 9.0, 12.0]);
        c.values_mut().fill(f64::NAN);
        plan.execute_into(PlusTimes, a.view(), 1.0, b.view(), &mut c).unwrap();
    }
}

#[test]
fn other_patterns_are_refused() {
    let (a, b) = (square(50, 13), square(50, 14));
    let problem = Problem::spgemm(&a.view(), &b.view());
    let mut plan = SpgemmPlan::new(a.view(), b.view(), &problem, &Options::default()).unwrap();
    let mut c = a.clone();
    let early = plan.execute_into(PlusTimes, a.view(), 1, b.view(), &mut c);
    assert!(matches!(early, Err(Error::Pattern { .. })));
    let mut moved = a.indices().to_vec();
    let row = (0..50).find(|r| a.view().row_len(*r) == 1).unwrap();
    let at = a.offsets()[row] as usize;
    moved[at] = (moved[at] + 1) % 50;
    let other: Matrix = Csr::new(50, 50, a.offsets().to_vec(), moved, a.values().to_vec()).unwrap();
    let refused = plan.execute(PlusTimes, other.view(), 1, b.view());
    assert!(matches!(refused, Err(Error::Pattern { .. })));
    let good = plan.execute(PlusTimes, a.view(), 1, b.view()).unwrap();
    let foreign = plan.execute_into(PlusTimes, a.view(), 1, b.view(), &mut c);
    assert!(matches!(foreign, Err(Error::Pattern { .. })));
    let mut again = good.clone();
    plan.execute_into(PlusTimes, a.view(), 1, b.view(), &mut again).unwrap();
    assert_eq!(good, again);
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    let (a, b) = (square(5, 1), square(6, 1));
    let problem = Problem::spgemm(&a.view(), &b.view());
    let refused = SpgemmPlan::new(a.view(), b.view(), &problem, &Options::default()).err();
    assert!(matches!(refused, Some(Error::Shape { .. })), "{refused:?}");
}

#[test]
fn more_entries_than_offsets_can_count() {
    let n = 65_537;
    let offsets: Vec<u32> = (0..=n as u32).collect();
    let a: Csr<f32> = Csr::new(n, 1, offsets, vec![0; n], vec![1.0; n]).unwrap();
    let b = a.view().transpose().unwrap();
    let options = options(Algorithm::Gustavson, 2, None);
    let refused = product::<_, _, _, PlusTimes>(a.view(), b.view(), true, &options).err();
    let Some(Error::Overflow { need, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(need, (n as u128).pow(2));
}

#[test]
fn more_entries_than_memory_holds() {
    let n = 1 << 21;
    let offsets: Vec<u64> = (0..=n as u64).collect();
    let a: Csr<f32, u32, u64> = Csr::new(n, 1, offsets, vec![0; n], vec![1.0; n]).unwrap();
    let b = a.view().transpose().unwrap();
    let options = options(Algorithm::Gustavson, 2, None);
    let refused = product::<_, _, _, PlusTimes>(a.view(), b.view(), true, &options).err();
    assert!(matches!(refused, Some(Error::OutOfMemory { .. })), "{refused:?}");
}

#[test]
fn what_d_repeats_is_scaled_once_and_zeros_are_dropped_from_the_sum() {
    // D holds 1 and 3 at the same place: the greatest of both times -2, not of their products.
    let eye = Csr::<f64>::new(1, 1, vec![0u32, 1], vec![0], vec![-9.0]).unwrap();
    let d = Csr::<f64>::new(1, 1, vec![0u32, 2], vec![0, 0], vec![1.0, 3.0]).unwrap();
    let problem = Problem::spgemm(&eye.view(), &eye.view());
    let mut plan = SpgemmPlan::new(eye.view(), eye.view(), &problem, &Options::default()).unwrap();
    let c = plan.execute_add(MaxTimes, eye.view(), -1.0, eye.view(), -2.0, d.view()).unwrap();
    assert_eq!(c.values(), [-6.0]);

    let opposite = Csr::<f64>::new(1, 1, vec![0u32, 1], vec![0], vec![81.0]).unwrap();
    for (drop_zeros, left) in [(false, 1), (true, 0)] {
        let options = Options { drop_zeros, ..Options::default() };
        let mut plan = SpgemmPlan::new(eye.view(), eye.view(), &problem, &options).unwrap();
        let c = plan.execute_add(PlusTimes, eye.view(), 1.0, eye.view(), -1.0, opposite.view());
        assert_eq!(c.unwrap().nnz(), left);
    }
}
