//! `masked` on the battery: the entries of the whole product at the mask's places, to the bit.

use gustav_core::{
    Csr, Error, Index, MaxTimes, MinPlus, OrAnd, PlusFirst, PlusSecond, PlusTimes, Scalar,
    Semiring, bf16, f16,
};
use gustav_cuda::DeviceCsr;
use gustav_cuda::spgemm::masked::{self, MaskedPlan};
use gustav_cuda::spgemm::{Options, SpgemmPlan};
use gustav_testkit::battery::matrices::{random_rows, unsorted};
use gustav_testkit::battery::{Settings, check_spgemm};
use gustav_testkit::oracle;

use crate::{device, same};

/// The entries of `c` at places of `mask`.
fn kept<T: Scalar, I: Index, O: Index>(c: &Csr<T, I, O>, mask: &Csr<T, I, O>) -> Csr<T, I, O> {
    let (mut offsets, mut indices, mut values) = (vec![O::truncate(0)], Vec::new(), Vec::new());
    for row in 0..c.nrows() {
        let wanted: std::collections::BTreeSet<usize> =
            mask.view().row(row).0.iter().map(|j| j.to_usize()).collect();
        let (columns, entries) = c.view().row(row);
        for (j, value) in columns.iter().zip(entries) {
            if wanted.contains(&j.to_usize()) {
                indices.push(*j);
                values.push(*value);
            }
        }
        offsets.push(O::truncate(indices.len()));
    }
    Csr::new(c.nrows(), c.ncols(), offsets, indices, values).expect("entries of C")
}

/// The whole product in A's order, and its entries under several masks.
fn passes<T: Scalar, I: Index, O: Index, S: Semiring<T::Accum>>() {
    let device = device();
    let settings = Settings { sorted: vec![true], ..Settings::default() };
    check_spgemm::<T, I, O, S>(&settings, |case| {
        let (a, b) = (DeviceCsr::upload(&device, &case.a)?, DeviceCsr::upload(&device, &case.b)?);
        // Where columns of B repeat, sums are added in any order: integers alone compare.
        let ordered = case.b.is_canonical();
        let problem = a.spgemm(&b).semiring(S::KIND).deterministic(ordered);
        let mut plan = SpgemmPlan::new(&a, &b, &problem, &Options::default())?;
        let stream = device.new_stream()?;
        let whole = plan.execute(&a, S::one(), &b, &stream)?.download()?;
        let (m, n) = (whole.nrows(), whole.ncols());
        let masks = [
            whole.clone(),
            random_rows(m, n, 21, |row| [n, 0, n / 2, 1][row % 4].min(n)),
            unsorted(m, n, 22),
            Csr::empty(m, n)?,
        ];
        for mask in masks {
            let on_device = DeviceCsr::upload(&device, &mask.view())?;
            let mut plan = MaskedPlan::new(&a, &b, &on_device, &problem)?;
            drop(on_device);
            let mut c = plan.execute(&a, S::one(), &b, &stream)?;
            let expected = kept(&whole, &mask);
            let exact = ordered || T::DTYPE.is_integer();
            for _ in 0..2 {
                let found = c.download()?;
                assert_eq!(found.offsets(), expected.offsets());
                assert_eq!(found.indices(), expected.indices());
                assert!(!exact || same(&found, &expected), "{}", case.name);
                c.values_mut().fill(0xff, &stream)?;
                plan.execute_into(&a, S::one(), &b, &mut c, &stream)?;
            }
        }
        Ok(whole)
    });
}

#[test]
#[ignore = "needs a CUDA device"]
fn the_battery_under_masks() {
    passes::<f32, u32, u32, PlusTimes>();
    passes::<f64, u32, u64, PlusTimes>();
    passes::<f16, u64, u32, PlusTimes>();
    passes::<bf16, u64, u64, PlusFirst>();
    passes::<i32, u32, u32, OrAnd>();
    passes::<i64, u32, u32, MinPlus>();
    passes::<f64, u32, u32, MaxTimes>();
    passes::<f32, u32, u32, PlusSecond>();
}

#[test]
#[ignore = "needs a CUDA device"]
fn rows_of_many_places_are_taken_in_parts() {
    let device = device();
    let a = random_rows::<f32, u32, u32>(40, 5000, 1, |row| [3, 4000, 700, 60][row % 4]);
    let b = random_rows::<f32, u32, u32>(5000, 20_000, 2, |row| row % 70);
    let places = |row: usize| [20_000, 9000, 1024, 257, 1025, 256][row % 6];
    let mask = random_rows::<f32, u32, u32>(40, 20_000, 3, places);
    let [on_a, on_b, on_m] =
        [&a, &b, &mask].map(|m| DeviceCsr::upload(&device, &m.view()).expect("room"));
    let problem = on_a.spgemm(&on_b).deterministic(true);
    let options = Options::default();
    let mut plan = SpgemmPlan::new(&on_a, &on_b, &problem, &options).expect("a plan");
    let stream = device.stream();
    let whole = plan.execute(&on_a, 2.0, &on_b, stream).expect("C").download().expect("C");
    let c = masked::multiply(&on_a, 2.0, &on_b, &on_m, &problem, stream).expect("C");
    assert!(same(&c.download().expect("C"), &kept(&whole, &mask)));
    // Aᵀ under a mask.
    let at = DeviceCsr::upload(&device, &a.view().transpose().expect("Aᵀ").view()).expect("room");
    let problem = at.spgemm(&on_b).transpose_a(true).deterministic(true);
    let c = masked::multiply(&at, 2.0, &on_b, &on_m, &problem, stream).expect("C");
    assert!(same(&c.download().expect("C"), &kept(&whole, &mask)));
}

/// Rows that are searched by 8 lanes and by 32, that a warp takes and that are cut, also by searching
/// B's rows for few places; small enough for a sanitizer.
#[test]
#[ignore = "needs a CUDA device"]
fn rows_of_every_kind() {
    let device = device();
    let nonzeros = |row: usize| [2, 20, 60, 300, 0, 7][row % 6];
    let a = random_rows::<f32, u32, u32>(120, 300, 1, nonzeros);
    let lengths = |row: usize| [3, 40, 0, 1500, 9][row % 5];
    let sorted = random_rows::<f32, u32, u32>(300, 2000, 2, lengths);
    let mask =
        |places: [usize; 7]| random_rows::<f32, u32, u32>(120, 2000, 3, move |row| places[row % 7]);
    let masks = [mask([3, 20, 200, 1500, 0, 1, 300]), mask([1, 2, 3, 4, 5, 0, 40])];
    for b in [sorted, unsorted::<f32, u32, u32>(300, 2000, 4)] {
        for mask in &masks {
            let [on_a, on_b, on_m] =
                [&a, &b, mask].map(|m| DeviceCsr::upload(&device, &m.view()).expect("room"));
            for deterministic in [false, true] {
                if deterministic && !b.view().is_canonical() {
                    continue;
                }
                let problem = on_a.spgemm(&on_b).deterministic(deterministic);
                let mut plan = MaskedPlan::new(&on_a, &on_b, &on_m, &problem).expect("a plan");
                let stream = device.stream();
                let mut c = plan.execute(&on_a, 1.0, &on_b, stream).expect("C");
                for _ in 0..2 {
                    let found = c.download().expect("C");
                    let reference = oracle::Spgemm::new(a.view(), b.view());
                    let reference = oracle::Spgemm { mask: Some(mask.view()), ..reference };
                    let verdict = reference.verify(found.view()).expect("shapes fit");
                    assert!(verdict.ok, "{verdict}");
                    c.values_mut().fill(0xff, stream).expect("poison");
                    plan.execute_into(&on_a, 1.0, &on_b, &mut c, stream).expect("C");
                }
            }
        }
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_mask_of_another_shape_is_refused() {
    let device = device();
    let a = random_rows::<f64, u32, u32>(9, 9, 1, |_| 3);
    let mask = random_rows::<f64, u32, u32>(9, 8, 1, |_| 3);
    let [a, mask] = [a, mask].map(|m| DeviceCsr::upload(&device, &m.view()).expect("room"));
    let refused = masked::multiply(&a, 1.0, &a, &mask, &a.spgemm(&a), device.stream());
    assert!(matches!(refused, Err(Error::Shape { .. })), "{refused:?}");
}
