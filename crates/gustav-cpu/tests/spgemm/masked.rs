//! `masked` on the battery: the entries of the whole product at the mask's positions.

use std::collections::BTreeSet;

use gustav_core::Semiring::{self, PlusTimes};
use gustav_core::{Csr, Error, Index, Problem, Result, Scalar};
use gustav_cpu::spgemm::{SpgemmCall, SpgemmKernels};
use gustav_cpu::{Options, SpgemmPlan};
use gustav_plan::{Algorithm, Chooser};
use gustav_testkit::battery::matrices::{random_rows, unsorted};
use gustav_testkit::battery::{Settings, check_spgemm_over};

use crate::support::{for_every_type, options, product};

/// The entries of `c`, rows sorted, at positions of `mask`.
fn at_mask<T: Scalar, I: Index, O: Index>(c: &Csr<T, I, O>, mask: &Csr<T, I, O>) -> Csr<T, I, O> {
    let (mut offsets, mut indices, mut values) = (vec![O::truncate(0)], Vec::new(), Vec::new());
    for row in 0..c.nrows() {
        let wanted: BTreeSet<usize> = mask.view().row(row).0.iter().map(|j| j.to_usize()).collect();
        let (columns, entries) = c.view().row(row);
        for (j, value) in columns.iter().zip(entries) {
            if wanted.contains(&j.to_usize()) {
                indices.push(*j);
                values.push(*value);
            }
        }
        offsets.push(O::truncate(indices.len()));
    }
    Csr::new(c.nrows(), c.ncols(), offsets, indices, values).unwrap()
}

fn passes<T: SpgemmKernels, I: Index, O: Index>(semiring: Semiring) {
    let plain = options(Algorithm::Gustavson, 1, None);
    let masked = [1, 3].map(|threads| options(Algorithm::Masked, threads, None));
    let settings = Settings { sorted: vec![true], ..Settings::default() };
    check_spgemm_over::<T, I, O>(semiring, &settings, |case| {
        let (_, whole) = product(semiring, case.a, case.b, true, &plain)?;
        let (m, n) = (whole.nrows(), whole.ncols());
        let masks = [
            whole.clone(),
            random_rows(m, n, 21, |row| [n, 0, n / 2, 1][row % 4].min(n)),
            unsorted(m, n.max(1), 22),
            Csr::empty(m, n)?,
        ];
        for mask in masks.iter().filter(|mask| mask.ncols() == n) {
            let expected = at_mask(&whole, mask);
            for options in &masked {
                let problem = Problem::spgemm(&case.a, &case.b).semiring(semiring);
                let mut plan = SpgemmPlan::masked(case.a, case.b, mask, &problem, options)?;
                let first = plan.execute(case.a, case.b, SpgemmCall::new())?;
                let again = plan.execute(case.a, case.b, SpgemmCall::new())?;
                assert_eq!(first.pattern().id(), again.pattern().id());
                let call = SpgemmCall { reuse: Some(again.clone()), ..SpgemmCall::new() };
                for c in [first, again, plan.execute(case.a, case.b, call)?] {
                    assert_eq!(c.pattern(), expected.pattern());
                    let mut pairs = c.values().into_iter().zip(expected.values());
                    let is_nan = |v: &T| v.partial_cmp(v).is_none();
                    let alike = pairs.all(|(l, r)| l == r || is_nan(l) && is_nan(r));
                    assert!(alike, "{}", case.name);
                }
            }
        }
        Ok(whole)
    });
}

#[test]
fn battery_under_masks() {
    fn check<T: SpgemmKernels>() {
        for semiring in Semiring::ALL {
            passes::<T, u32, u32>(semiring);
        }
    }
    for_every_type!(check);
    passes::<f64, u32, u64>(PlusTimes);
    passes::<f64, u64, u32>(PlusTimes);
    passes::<f64, u64, u64>(PlusTimes);
}

#[test]
fn transposed_scaled_and_without_zeros() {
    let a: Csr<i64> = random_rows(200, 90, 6, |row| row % 9);
    let b: Csr<i64> = random_rows(200, 150, 7, |row| row % 5);
    let mask: Csr<i64> = random_rows(90, 150, 8, |row| row % 60);
    let problem = Problem::spgemm(&a.view(), &b.view()).transpose_a(true);
    let plain = options(Algorithm::Gustavson, 2, None);
    let at = a.view().transpose().unwrap();
    let (_, mut whole) = product(PlusTimes, at.view(), b.view(), true, &plain).unwrap();
    whole.values_mut().iter_mut().for_each(|v| *v *= 3);
    let expected = at_mask(&whole, &mask);
    let all = Options::default();
    let run = |options: &Options| {
        let mut plan = SpgemmPlan::masked(&a, &b, &mask, &problem, options).unwrap();
        plan.execute(&a, &b, SpgemmCall { alpha: Some(3), ..SpgemmCall::new() }).unwrap()
    };
    assert_eq!(run(&all), expected);
    let zeros = expected.values().into_iter().filter(|v| **v == 0).count();
    let dropped = run(&Options { drop_zeros: true, ..all });
    assert_eq!(dropped.nnz(), expected.nnz() - zeros);
    assert!(dropped.values().into_iter().all(|v| *v != 0));
}

#[test]
fn columns_past_32_bits() {
    let far = 1u64 << 40;
    let n = far as usize + 1;
    let a: Csr<f64, u64, u64> = Csr::new(1, 1, vec![0, 1], vec![0], vec![2.0]).unwrap();
    let b: Csr<f64, u64, u64> =
        Csr::new(1, n, vec![0, 3], vec![3, 70, far], vec![1.0, 2.0, 3.0]).unwrap();
    let mask: Csr<f64, u64, u64> =
        Csr::new(1, n, vec![0, 3], vec![far, 3, 5], vec![0.0; 3]).unwrap();
    let problem = Problem::spgemm(&a.view(), &b.view());
    let options = Options::default();
    let mut plan = SpgemmPlan::masked(&a, &b, &mask, &problem, &options).unwrap();
    let c = plan.execute(&a, &b, SpgemmCall::new()).unwrap();
    assert_eq!((c.indices(), c.values().as_slice()), ([3, far].as_slice(), [2.0, 6.0].as_slice()));
}

#[test]
fn what_does_not_fit_is_refused() {
    let a: Csr<f32> = random_rows(9, 9, 1, |_| 3);
    let narrow: Csr<f32> = random_rows(9, 8, 1, |_| 3);
    let problem = Problem::spgemm(&a.view(), &a.view());
    let run = |mask: &Csr<f32>, options: &Options, add| -> Result<Csr<f32>> {
        let mut plan = SpgemmPlan::masked(&a, &a, mask, &problem, options)?;
        plan.execute(&a, &a, SpgemmCall { add, ..SpgemmCall::new() })
    };
    let refused = run(&narrow, &Options::default(), None);
    assert!(matches!(refused, Err(Error::Shape { .. })), "{refused:?}");
    let chooser = Chooser::Named(Algorithm::Gustavson);
    let refused = run(&a, &Options { chooser, ..Options::default() }, None);
    assert!(matches!(refused, Err(Error::Unsupported { .. })), "{refused:?}");
    let refused = run(&a, &Options::default(), Some((1.0, a.view())));
    assert!(matches!(refused, Err(Error::Unsupported { .. })), "{refused:?}");
}
