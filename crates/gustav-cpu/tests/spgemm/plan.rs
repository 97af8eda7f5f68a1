//! SpGEMM plans: reuse, ⊕ β·D, transposition, zeros, limits, and the algebra of products.

use gustav_core::Semiring::{self, MaxTimes, MinPlus, PlusTimes};
use gustav_core::{Coo, Csr, Error, PatternView, Problem};
use gustav_cpu::spgemm::{SpgemmCall, SpgemmKernels};
use gustav_cpu::{Options, SpgemmPlan};
use gustav_plan::Algorithm;
use gustav_testkit::battery::matrices::{random_rows, unsorted};

use crate::support::{for_every_type, options, product};

type Matrix = Csr<i64, u32, u32>;

fn times(a: &Matrix, b: &Matrix) -> Matrix {
    let options = options(Algorithm::Gustavson, 2, None);
    product(PlusTimes, a.view(), b.view(), true, &options).unwrap().1
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
    let mut plan = SpgemmPlan::new(&a, &b, &problem, &Options::default()).unwrap();
    for factor in [1, 3] {
        a.values_mut().iter_mut().for_each(|v| *v *= factor);
        let c = plan.execute(&a, &b, SpgemmCall::new()).unwrap();
        assert_eq!(c, times(&a.view().transpose().unwrap(), &b));
    }
}

#[test]
fn plans_obey_their_semiring() {
    let a: Matrix = Csr::new(2, 2, vec![0, 2, 3], vec![0, 1, 0], vec![1, 10, 3]).unwrap();
    let b: Matrix = Csr::new(2, 1, vec![0, 1, 2], vec![0, 0], vec![10, 4]).unwrap();
    let problem = Problem::spgemm(&a.view(), &b.view());
    let run = |semiring| {
        let problem = problem.clone().semiring(semiring);
        let mut plan = SpgemmPlan::new(&a, &b, &problem, &Options::default()).unwrap();
        plan.execute(&a, &b, SpgemmCall::new()).unwrap()
    };
    assert_eq!(run(PlusTimes).values(), [50, 30]);
    assert_eq!(run(MinPlus).values(), [11, 13]);
    assert_eq!(run(MaxTimes).values(), [40, 30]);
    assert_eq!(run(Semiring::OrAnd).values(), [1, 1]);
    assert_eq!(run(Semiring::PlusFirst).values(), [11, 3]);
    assert_eq!(run(Semiring::PlusSecond).values(), [14, 10]);
}

#[test]
fn new_values_share_the_pattern_of_c() {
    let (a, b) = (square(400, 8), square(400, 9));
    let options = options(Algorithm::Gustavson, 5, None);
    for sorted in [true, false] {
        let (mut plan, c) = product(PlusTimes, a.view(), b.view(), sorted, &options).unwrap();
        // In the order of the plan's nonzeros, without a matrix.
        let values: Vec<i64> = (0..a.nnz() as i64).map(|k| k % 13 - 6).collect();
        let call = || SpgemmCall { alpha: Some(-2), ..SpgemmCall::new() };
        let new = plan.execute(&values, &b, call()).unwrap();
        assert_eq!(new.pattern().id(), c.pattern().id());
        let refilled = plan.execute(&values, &b, SpgemmCall { reuse: Some(c), ..call() }).unwrap();
        assert_eq!(refilled, new);
        let changed = Csr::from_pattern(a.pattern(), values).unwrap();
        let problem = Problem::spgemm(&a.view(), &b.view()).sorted(sorted);
        let mut other = SpgemmPlan::new(&changed, &b, &problem, &options).unwrap();
        assert_eq!(other.execute(&changed, &b, call()).unwrap(), new);
    }
}

#[test]
fn united_with_a_sparse_matrix() {
    let (a, b, d) = (square(120, 10), square(120, 11), unsorted::<i64, u32, u32>(120, 120, 12));
    let problem = Problem::spgemm(&a.view(), &b.view());
    let mut plan = SpgemmPlan::new(&a, &b, &problem, &Options::default()).unwrap();
    let call = |alpha, beta, d| SpgemmCall {
        alpha: Some(alpha),
        add: Some((beta, d)),
        ..SpgemmCall::new()
    };
    let c = plan.execute(&a, &b, call(2, 3, d.view())).unwrap();
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
    let whole = plan.execute(&a, &b, call(1, 0, d.view())).unwrap();
    assert_eq!(whole, product);
    let reuse = SpgemmCall { reuse: Some(whole), ..call(1, 3, d.view()) };
    assert!(matches!(plan.execute(&a, &b, reuse), Err(Error::Unsupported { .. })));
    let narrow: Matrix = random_rows(120, 7, 1, |_| 1);
    let refused = plan.execute(&a, &b, call(1, 1, narrow.view()));
    assert!(matches!(refused, Err(Error::Shape { .. })));
}

#[test]
fn sums_of_zero_stay_unless_dropped() {
    let a: Matrix = Csr::new(1, 2, vec![0, 2], vec![0, 1], vec![1, -1]).unwrap();
    let b: Matrix = Csr::new(2, 3, vec![0, 2, 4], vec![0, 2, 0, 1], vec![5, 6, 5, 7]).unwrap();
    let c = times(&a, &b);
    assert_eq!((c.indices(), c.values().as_slice()), (&[0, 1, 2][..], &[0, -7, 6][..]));
    let options = Options { drop_zeros: true, ..options(Algorithm::Gustavson, 1, None) };
    let (mut plan, c) = product(PlusTimes, a.view(), b.view(), true, &options).unwrap();
    assert_eq!((c.indices(), c.values().as_slice()), (&[1, 2][..], &[-7, 6][..]));
    let refused = plan.execute(&a, &b, SpgemmCall { reuse: Some(c), ..SpgemmCall::new() });
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
        let (_, c) = product(PlusTimes, a.view(), b.view(), sorted, &options).unwrap();
        assert_eq!(c.indices(), (1..n).collect::<Vec<_>>(), "sorted: {sorted}");
        assert!(c.values().into_iter().zip(1..).all(|(v, i)| *v == i), "sorted: {sorted}");
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
    let (mut plan, mut c) = product(PlusTimes, a.view(), b.view(), true, &options).unwrap();
    for _ in 0..2 {
        assert_eq!(c.offsets(), [0, 3, 5]);
        assert_eq!(c.indices(), [3, 70, far, 3, 70]);
        assert_eq!(c.values(), [8.0, 8.0, 1.0, 9.0, 12.0]);
        c.values_mut().fill(f64::NAN);
        c = plan.execute(&a, &b, SpgemmCall { reuse: Some(c), ..SpgemmCall::new() }).unwrap();
    }
}

#[test]
fn operands_of_another_pattern_of_equal_nnz_are_refused() {
    let (a, b) = (square(50, 13), square(50, 14));
    let problem = Problem::spgemm(&a.view(), &b.view());
    let mut plan = SpgemmPlan::new(&a, &b, &problem, &Options::default()).unwrap();
    let mut moved = a.indices().to_vec();
    let row = (0..50).find(|r| a.view().row_len(*r) == 1).unwrap();
    let at = a.offsets()[row] as usize;
    moved[at] = (moved[at] + 1) % 50;
    let other: Matrix = Csr::new(50, 50, a.offsets().to_vec(), moved, vec![1; a.nnz()]).unwrap();
    let refused = plan.execute(&other, &b, SpgemmCall::new());
    assert!(matches!(refused, Err(Error::Pattern { .. })), "{refused:?}");
    let other = b.view().to_owned().unwrap();
    let refused = plan.execute(&a, &other, SpgemmCall::new());
    assert!(matches!(refused, Err(Error::Pattern { .. })), "{refused:?}");
    let c = plan.execute(&a, &b, SpgemmCall::new()).unwrap();
    assert_eq!(c, times(&a, &b));
}

#[test]
fn values_of_another_length_are_refused() {
    fn check<T: SpgemmKernels>() {
        let a: Csr<T> = random_rows(50, 50, 13, |row| row % 7);
        let problem = |transposed| Problem::spgemm(&a.view(), &a.view()).transpose_a(transposed);
        let values = a.values().as_slice();
        let longer = [values, &[T::one()]].concat();
        for transposed in [false, true] {
            let problem = problem(transposed);
            let mut plan = SpgemmPlan::new(&a, &a, &problem, &Options::default()).unwrap();
            for wrong in [&values[1..], &longer, &[]] {
                for (a, b) in [(wrong, values), (values, wrong)] {
                    let refused = plan.execute(a, b, SpgemmCall::new()).err();
                    assert!(matches!(refused, Some(Error::Length { .. })), "{refused:?}");
                }
            }
            assert!(plan.execute(values, values, SpgemmCall::new()).is_ok());
        }
    }
    for_every_type!(check);
}

#[test]
fn foreign_matrices_are_not_reused() {
    let (a, b) = (square(50, 13), square(50, 14));
    let problem = Problem::spgemm(&a.view(), &b.view());
    let mut plan = SpgemmPlan::new(&a, &b, &problem, &Options::default()).unwrap();
    let into = |c: &Matrix| SpgemmCall { reuse: Some(c.clone()), ..SpgemmCall::new() };
    let early = plan.execute(&a, &b, into(&a));
    assert!(matches!(early, Err(Error::Pattern { .. })), "{early:?}");
    let c = plan.execute(&a, &b, SpgemmCall::new()).unwrap();
    // An equal pattern is not enough: it would have to be compared.
    for foreign in [&a, &c.view().to_owned().unwrap(), &Csr::empty(50, 50).unwrap()] {
        let refused = plan.execute(&a, &b, into(foreign));
        assert!(matches!(refused, Err(Error::Pattern { .. })), "{refused:?}");
    }
    assert_eq!(plan.execute(&a, &b, into(&c)).unwrap(), c);
}

#[test]
fn problems_of_other_operands_are_refused() {
    let (a, b) = (square(50, 13), square(50, 14));
    let (options, empty) = (Options::default(), Csr::<i64>::empty(50, 50).unwrap());
    let problem = Problem::spgemm(&a.view(), &b.view());
    let refused = SpgemmPlan::<i64>::new(&empty, &b, &problem, &options).err();
    assert!(matches!(refused, Some(Error::Pattern { .. })), "{refused:?}");
    let refused = SpgemmPlan::<f64>::new(&a, &b, &problem, &options).err();
    assert!(matches!(refused, Some(Error::Pattern { .. })), "{refused:?}");
    let wide = [&a, &b].map(|m| m.view().to_indices::<u64, u64>().unwrap());
    let refused = SpgemmPlan::<i64, u64, u64>::new(&wide[0], &wide[1], &problem, &options).err();
    assert!(matches!(refused, Some(Error::Pattern { .. })), "{refused:?}");
}

#[test]
fn arrays_of_the_program_are_read_in_place() {
    let (offsets, indices) = ([0u64, 2, 3], [1u32, 0, 1]);
    let pattern = PatternView::new(2, 2, &offsets, &indices).unwrap();
    let a = pattern.with_values(&[1.0f32, 2.0, 3.0]).unwrap();
    let problem = Problem::spgemm(&a, &a);
    let mut plan = SpgemmPlan::new(pattern, pattern, &problem, &Options::default()).unwrap();
    let c = plan.execute(&[1.0, 2.0, 3.0], a, SpgemmCall::new()).unwrap();
    assert_eq!((c.indices(), c.values().as_slice()), (&[0, 1, 1][..], &[4.0, 5.0, 9.0][..]));
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    let (a, b) = (square(5, 1), square(6, 1));
    let problem = Problem::spgemm(&a.view(), &b.view());
    let refused = SpgemmPlan::<i64>::new(&a, &b, &problem, &Options::default()).err();
    assert!(matches!(refused, Some(Error::Shape { .. })), "{refused:?}");
}

#[test]
fn more_entries_than_offsets_can_count() {
    let n = 65_537;
    let offsets: Vec<u32> = (0..=n as u32).collect();
    let a: Csr<f32> = Csr::new(n, 1, offsets, vec![0; n], vec![1.0; n]).unwrap();
    let b = a.view().transpose().unwrap();
    let options = options(Algorithm::Gustavson, 2, None);
    let refused = product(PlusTimes, a.view(), b.view(), true, &options).err();
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
    let refused = product(PlusTimes, a.view(), b.view(), true, &options).err();
    assert!(matches!(refused, Some(Error::OutOfMemory { .. })), "{refused:?}");
}

#[test]
fn what_d_repeats_is_scaled_once_and_zeros_are_dropped_from_the_sum() {
    // D holds 1 and 3 at the same place: the greatest of both times -2, not of their products.
    let eye = Csr::<f64>::new(1, 1, vec![0u32, 1], vec![0], vec![-9.0]).unwrap();
    let d = Csr::<f64>::new(1, 1, vec![0u32, 2], vec![0, 0], vec![1.0, 3.0]).unwrap();
    let problem = Problem::spgemm(&eye.view(), &eye.view());
    let run = |problem: &Problem, options: &Options, alpha, beta, d: &Csr<f64>| {
        let mut plan = SpgemmPlan::new(&eye, &eye, problem, options).unwrap();
        let add = Some((beta, d.view()));
        let call = SpgemmCall { alpha: Some(alpha), add, ..SpgemmCall::new() };
        plan.execute(&eye, &eye, call).unwrap()
    };
    let c = run(&problem.clone().semiring(MaxTimes), &Options::default(), -1.0, -2.0, &d);
    assert_eq!(c.values(), [-6.0]);

    let opposite = Csr::<f64>::new(1, 1, vec![0u32, 1], vec![0], vec![81.0]).unwrap();
    for (drop_zeros, left) in [(false, 1), (true, 0)] {
        let options = Options { drop_zeros, ..Options::default() };
        assert_eq!(run(&problem, &options, 1.0, -1.0, &opposite).nnz(), left);
    }
}
