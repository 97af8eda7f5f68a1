//! `dense-output` on the battery, and on products whose C is full, nearly full or sparse.

use gustav_core::{
    Csr, Index, MaxTimes, MinPlus, OrAnd, PlusFirst, PlusTimes, Scalar, StaticSemiring, bf16, f16,
};
use gustav_cuda::DeviceCsr;
use gustav_cuda::spgemm::{Config, Options, SpgemmPlan, dense_output, multiply};
use gustav_cuda::{Call, SpgemmCall};
use gustav_plan::{Algorithm, Chooser};
use gustav_testkit::battery::Settings;
use gustav_testkit::battery::matrices::random_rows;
use gustav_testkit::oracle;

use crate::{battery, device};

fn named() -> Options {
    Options { chooser: Chooser::Named(Algorithm::DenseOutput), ..Options::default() }
}

fn passes<T: Scalar, I: Index, O: Index, S: StaticSemiring<T::Accum>>() {
    battery::<T, I, O, S>(&Settings::default(), &named());
}

macro_rules! battery {
    ($($name:ident: $t:ty, $semiring:ident, $index:ty, $offset:ty;)*) => {$(
        #[test]
        #[ignore = "needs a CUDA device"]
        fn $name() {
            passes::<$t, $index, $offset, $semiring>();
        }
    )*};
}

battery! {
    f32_plus_times: f32, PlusTimes, u32, u32;
    f64_plus_times: f64, PlusTimes, u64, u64;
    f16_plus_times: f16, PlusTimes, u32, u64;
    bf16_max_times: bf16, MaxTimes, u64, u32;
    i32_or_and: i32, OrAnd, u32, u32;
    i64_min_plus: i64, MinPlus, u32, u32;
    f32_plus_first: f32, PlusFirst, u32, u32;
}

/// A·B by `options` and its values anew, both against the oracle; all of C's values the same.
fn check<T: Scalar>(a: &Csr<T>, b: &Csr<T>, options: &Options, full: bool) {
    let device = device();
    let [on_a, on_b] = [a, b].map(|m| DeviceCsr::upload(&device, &m.view()).expect("an upload"));
    let (problem, stream) = (on_a.pattern().spgemm(on_b.pattern()).problem, device.stream());
    let mut plan =
        SpgemmPlan::new(on_a.pattern(), on_b.pattern(), &problem, options).expect("a plan");
    let one = T::one().to_accum();
    let mut c = plan.execute(&on_a, &on_b, SpgemmCall::new().alpha(one).on(stream)).expect("C");
    let first = c.download().expect("C");
    let verdict = oracle::Spgemm::new(a.view(), b.view()).verify(first.view()).expect("shapes");
    assert!(verdict.ok, "{verdict}");
    c.values_mut().fill(0xff, stream).expect("poison");
    plan.execute_into(&on_a, &on_b, &mut c, SpgemmCall::new().alpha(one).on(stream)).expect("C");
    let again = c.download().expect("C");
    if full {
        assert_eq!(first.nnz(), a.nrows() * b.ncols(), "rows are not full");
        assert!(first == again, "the order of summation changed");
    }
    let verdict = oracle::Spgemm::new(a.view(), b.view()).verify(again.view()).expect("shapes");
    assert!(verdict.ok, "{verdict}");
}

#[test]
#[ignore = "needs a CUDA device"]
fn full_rows_in_every_type_and_shape() {
    fn of<T: Scalar>() {
        // Rows and columns beside multiples of what CTAs and tiles have.
        for (rows, inner, columns) in [(70, 600, 2100), (257, 900, 513), (1, 700, 64)] {
            let a = random_rows::<T, u32, u32>(rows, inner, 1, |_| inner / 2);
            let b = random_rows::<T, u32, u32>(inner, columns, 2, |row| columns / 8 + row % 9);
            check(&a, &b, &named(), true);
        }
    }
    of::<f32>();
    of::<f64>();
    of::<bf16>();
    of::<i64>();
}

#[test]
#[ignore = "needs a CUDA device"]
fn rows_with_holes_are_computed_as_well() {
    // Every third row of A has few nonzeros, some none.
    let a = random_rows::<f32, u32, u32>(300, 800, 3, |row| [400, 12, row % 2][row % 3]);
    let b = random_rows::<f32, u32, u32>(800, 1500, 4, |row| 100 + row % 300);
    check(&a, &b, &named(), false);
    // No row is full.
    let b = random_rows::<f32, u32, u32>(800, 4_000, 5, |row| row % 7);
    check(&a, &b, &named(), false);
}

#[test]
#[ignore = "needs a CUDA device"]
fn nonzeros_in_any_order() {
    let a = random_rows::<f32, u32, u32>(300, 1500, 8, |row| 300 + row % 200);
    let b = random_rows::<f32, u32, u32>(1500, 2000, 9, |row| 250 + row % 90);
    // Some rows backwards, some halves swapped, some as they were.
    let (offsets, mut indices, mut values) =
        (a.offsets().to_vec(), a.indices().to_vec(), a.values().to_vec());
    for row in 0..a.nrows() {
        let part = offsets[row] as usize..offsets[row + 1] as usize;
        let half = part.len() / 2;
        match row % 3 {
            0 => {
                indices[part.clone()].reverse();
                values[part].reverse();
            }
            1 => {
                indices[part.clone()].rotate_left(half);
                values[part].rotate_left(half);
            }
            _ => {}
        }
    }
    let a = Csr::new(a.nrows(), a.ncols(), offsets, indices, values).expect("A");
    check(&a, &b, &named(), true);
}

/// A·B in one call against the oracle.
fn check_at_once<T: Scalar, I: Index, O: Index>(
    a: &Csr<T, I, O>,
    b: &Csr<T, I, O>,
) -> Csr<T, I, O> {
    let device = device();
    let [on_a, on_b] = [a, b].map(|m| DeviceCsr::upload(&device, &m.view()).expect("an upload"));
    let stream = device.new_stream().expect("a stream");
    let one = T::one().to_accum();
    let problem = on_a.pattern().spgemm(on_b.pattern()).problem;
    let c =
        multiply(&on_a, &on_b, &problem, &named(), Call::new().alpha(one).on(&stream)).expect("C");
    stream.synchronize().expect("work");
    let c = c.download().expect("C");
    let verdict = oracle::Spgemm::new(a.view(), b.view()).verify(c.view()).expect("shapes");
    assert!(verdict.ok, "{verdict}");
    c
}

#[test]
#[ignore = "needs a CUDA device"]
fn what_is_taken_for_full_is_right_where_it_is_not() {
    fn of<T: Scalar, I: Index, O: Index>() {
        let entries = |a: usize, b: usize, empty: usize| {
            let a = random_rows::<T, I, O>(150, 700, 10, |row| if row == empty { 0 } else { a });
            check_at_once(&a, &random_rows::<T, I, O>(700, 1100, 11, |_| b)).nnz()
        };
        // Full; a row without nonzeros; far from full.
        assert_eq!(entries(400, 500, 700), 150 * 1100);
        assert_eq!(entries(400, 500, 149), 149 * 1100);
        assert!(entries(4, 50, 700) < 150 * 400);
    }
    of::<f32, u32, u32>();
    of::<f64, u64, u32>();
    of::<f16, u32, u64>();
    of::<i32, u32, u32>();
}

#[test]
#[ignore = "needs a CUDA device"]
fn products_of_minus_zero_are_entries() {
    let full = random_rows::<f32, u32, u32>(200, 200, 14, |_| 200);
    let (mut a, mut b) = (full.clone(), full);
    a.values_mut().fill(1.0);
    // One column of minus zeros, which sum to minus zero.
    b.values_mut().iter_mut().skip(7).step_by(200).for_each(|v| *v = -0.0);
    assert_eq!(check_at_once(&a, &b).nnz(), 200 * 200);
}

#[test]
#[ignore = "needs a CUDA device"]
fn rows_of_b_in_any_order_are_not_taken_for_full() {
    let a = random_rows::<f32, u32, u32>(150, 700, 12, |_| 400);
    let b = random_rows::<f32, u32, u32>(700, 1100, 13, |_| 500);
    // All rows, or two entries of the last.
    for first in [0, b.nnz() - 2] {
        let (offsets, mut indices, mut values) =
            (b.offsets().to_vec(), b.indices().to_vec(), b.values().to_vec());
        indices[first..].reverse();
        values[first..].reverse();
        let b = Csr::new(700, 1100, offsets, indices, values).expect("B");
        assert_eq!(check_at_once(&a, &b).nnz(), 150 * 1100);
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn other_tiles() {
    let a = random_rows::<f32, u32, u32>(150, 700, 6, |_| 300);
    let b = random_rows::<f32, u32, u32>(700, 3000, 7, |row| 300 + row % 90);
    let rings = [(3, 16), (32, 16), (5, 16), (6, 32), (12, 4)]
        .map(|(chunks, pairs)| dense_output::Ring { chunks, pairs });
    let tiles = [(64, 30, 4), (1024, 5, 1), (1984, 3, 2), (544, 17, 3), (1024, 16, 2)];
    for ((columns, warps, in_flight), ring) in tiles.into_iter().zip(rings) {
        let balance = dense_output::Balance { eighths: 2 * in_flight, rounds: in_flight - 1 };
        let config = dense_output::Config {
            columns: Some(columns),
            warps,
            pairs_in_flight: Some(in_flight),
            ring: Some(ring),
            balance: Some(balance),
        };
        let config = Some(Config::DenseOutput(config));
        check(&a, &b, &Options { config, ..Options::default() }, true);
    }
    let config = dense_output::Config { columns: Some(100), ..dense_output::Config::default() };
    let options = Options { config: Some(Config::DenseOutput(config)), ..Options::default() };
    let a = DeviceCsr::upload(&device(), &a.view()).expect("A");
    let b = DeviceCsr::upload(a.device(), &b.view()).expect("B");
    assert!(
        SpgemmPlan::<f32>::new(
            a.pattern(),
            b.pattern(),
            &a.pattern().spgemm(b.pattern()).problem,
            &options
        )
        .is_err()
    );
}
