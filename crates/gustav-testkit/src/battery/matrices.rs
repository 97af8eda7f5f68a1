//! The named matrices. All are small: what matters is their shape, not their size.

use gustav_core::{Csr, DType, Index, Scalar};
use rand::RngExt;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;

use super::values::{rng, value};

/// A matrix of the battery.
#[derive(Clone, Debug)]
pub struct Named<T: Scalar, I: Index, O: Index> {
    /// What it is called in reports.
    pub name: &'static str,
    /// What an algorithm may not take.
    pub traits: Traits,
    /// The matrix.
    pub csr: Csr<T, I, O>,
}

/// Properties that decide whether an algorithm is asked to take a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits {
    /// No NaN, no infinity, nothing that overflows.
    pub finite: bool,
    /// Columns of every row strictly increase.
    pub canonical: bool,
}

/// Every matrix of the battery, the same on every machine.
pub fn matrices<T: Scalar, I: Index, O: Index>() -> Vec<Named<T, I, O>> {
    let mut list = shapes();
    list.extend(patterns());
    list.extend(numbers());
    list
}

fn named<T: Scalar, I: Index, O: Index>(
    name: &'static str,
    finite: bool,
    csr: Csr<T, I, O>,
) -> Named<T, I, O> {
    let canonical = csr.view().is_canonical();
    Named { name, traits: Traits { finite, canonical }, csr }
}

/// Sizes and shapes at the edge.
fn shapes<T: Scalar, I: Index, O: Index>() -> Vec<Named<T, I, O>> {
    let none = |_| 0;
    vec![
        named("0 x 0", true, random_rows(0, 0, 1, none)),
        named("0 x 5", true, random_rows(0, 5, 1, none)),
        named("5 x 0", true, random_rows(5, 0, 1, none)),
        named("1 x 1", true, random_rows(1, 1, 2, |_| 1)),
        named("no nonzeros", true, random_rows(7, 9, 3, none)),
        named("one row", true, random_rows(1, 300, 4, |_| 120)),
        named("one column", true, random_rows(150, 1, 5, |r| usize::from(r % 3 != 0))),
        named("wide", true, random_rows(13, 500, 6, |r| 5 + r)),
        named("tall", true, random_rows(400, 11, 7, |r| r % 4)),
    ]
}

/// Where the entries are.
fn patterns<T: Scalar, I: Index, O: Index>() -> Vec<Named<T, I, O>> {
    let around = [0, 31, 32, 33, 1, 63, 64, 65, 30];
    let hub = |r| if r % 40 == 17 { 110 } else { r % 3 };
    vec![
        named(
            "all rows empty but one",
            true,
            random_rows(90, 40, 8, |r| 20 * usize::from(r == 61)),
        ),
        named(
            "a dense row among empty ones",
            true,
            random_rows(120, 257, 9, |r| 257 * usize::from(r == 37)),
        ),
        named("only the last row", true, random_rows(66, 70, 10, |r| 3 * usize::from(r == 65))),
        named("row lengths 31, 32, 33", true, random_rows(54, 150, 11, |r| around[r % 9])),
        named("hub", true, random_rows(120, 120, 12, hub)),
        named("one long row", true, random_rows(3, 2100, 13, |r| [2, 2050, 0][r])),
        named("90% empty rows", true, random_rows(200, 60, 14, |r| 4 * usize::from(r % 10 == 3))),
        named("diagonal", true, banded(100, 0)),
        named("tridiagonal", true, banded(77, 1)),
        named("dense block", true, random_rows(24, 24, 15, |_| 24)),
        named("identical rows", true, identical_rows(48, 80, 16)),
        named("random", true, random_rows(97, 89, 17, |r| (r * 7) % 12)),
        named("duplicate and unsorted columns", true, unsorted(60, 50, 18)),
    ]
}

/// What the entries are.
fn numbers<T: Scalar, I: Index, O: Index>() -> Vec<Named<T, I, O>> {
    let edit = |seed, change: &dyn Fn(usize, T) -> T| {
        let mut csr = random_rows::<T, I, O>(50, 45, seed, |r| r % 14);
        for (k, v) in csr.values_mut().iter_mut().enumerate() {
            *v = change(k, *v);
        }
        csr
    };
    // In two steps: 2⁻¹⁰⁶⁰ itself is out of reach of `powi`.
    let scale = |v: T, power: i32| {
        let half = power / 2;
        T::from_f64(v.to_f64() * 2f64.powi(half) * 2f64.powi(power - half))
    };
    let mut list = vec![named(
        "explicit zeros",
        true,
        edit(20, &|k, v| if k % 3 == 0 { T::zero() } else { v }),
    )];
    // Exponents whose products with values near 1 stay in range, and reach into the subnormals.
    let (huge, tiny) = match T::DTYPE {
        DType::F16 => (10, -23),
        DType::Bf16 => (120, -130),
        DType::F32 => (120, -140),
        DType::F64 => (1000, -1060),
        DType::I32 => (24, 0),
        DType::I64 => (50, 0),
    };
    list.push(named("huge magnitudes", true, edit(21, &|_, v| scale(v, huge))));
    if T::DTYPE.is_integer() {
        // Sums that wrap around.
        list.push(named(
            "wrap-around",
            false,
            edit(22, &|_, v| scale(v, 8 * size_of::<T>() as i32 - 4)),
        ));
        return list;
    }
    let mixed = |k: usize| [huge, 0, tiny, tiny / 2][k % 4];
    let special = |k: usize, v: T| match k % 41 {
        7 => T::from_f64(f64::NAN),
        19 => T::from_f64(f64::INFINITY),
        33 => T::from_f64(f64::NEG_INFINITY),
        _ => v,
    };
    let top = match T::DTYPE {
        DType::F16 => 15,
        DType::F64 => 1023,
        _ => 127,
    };
    list.push(named("tiny magnitudes", true, edit(23, &|_, v| scale(v, tiny))));
    list.push(named("huge and tiny magnitudes", true, edit(24, &|k, v| scale(v, mixed(k)))));
    list.push(named("NaN and infinity", false, edit(25, &special)));
    list.push(named(
        "overflow",
        false,
        edit(26, &|_, v| scale(T::from_f64(v.to_f64() / 2.0), top)),
    ));
    list
}

/// A matrix with `length(row)` distinct, sorted columns in every row, and values of both signs.
pub fn random_rows<T: Scalar, I: Index, O: Index>(
    nrows: usize,
    ncols: usize,
    seed: u64,
    length: impl Fn(usize) -> usize,
) -> Csr<T, I, O> {
    let mut rng = rng(seed);
    build(nrows, ncols, |row| {
        let wanted = length(row).min(ncols);
        sample(&mut rng, ncols, wanted).into_iter().map(|c| (c, value(&mut rng))).collect()
    })
}

/// `wanted` of the numbers below `bound`, increasing (Knuth, TAOCP 3.4.2, algorithm S).
fn sample(rng: &mut Pcg64Mcg, bound: usize, wanted: usize) -> Vec<usize> {
    let mut left = wanted;
    (0..bound)
        .filter(|&k| {
            let take = rng.random_range(0..bound - k) < left;
            left -= usize::from(take);
            take
        })
        .collect()
}

/// Rows of up to 15 entries in random order, columns repeating; the first rows hold one column
/// many times.
pub fn unsorted<T: Scalar, I: Index, O: Index>(
    nrows: usize,
    ncols: usize,
    seed: u64,
) -> Csr<T, I, O> {
    let mut rng = rng(seed);
    build(nrows, ncols, |row| {
        let span = if row < 3 { 1 } else { ncols.min(8) };
        let first = rng.random_range(0..ncols + 1 - span);
        let count = if row < 3 { 40 } else { row % 16 };
        let mut entries: Vec<_> =
            (0..count).map(|_| (first + rng.random_range(0..span), value(&mut rng))).collect();
        entries.shuffle(&mut rng);
        entries
    })
}

fn banded<T: Scalar, I: Index, O: Index>(n: usize, half: usize) -> Csr<T, I, O> {
    let mut rng = rng(30);
    build(n, n, |row| {
        let cols = row.saturating_sub(half)..(row + half + 1).min(n);
        cols.map(|c| (c, value(&mut rng))).collect()
    })
}

/// Runs of three rows with the same columns, as degrees of freedom of one node have.
fn identical_rows<T: Scalar, I: Index, O: Index>(
    nrows: usize,
    ncols: usize,
    seed: u64,
) -> Csr<T, I, O> {
    let mut rng = rng(seed);
    let mut cols = Vec::new();
    build(nrows, ncols, |row| {
        if row % 3 == 0 {
            cols = sample(&mut rng, ncols, 6 + row % 5);
        }
        cols.iter().map(|&c| (c, value(&mut rng))).collect()
    })
}

/// A matrix from the entries of its rows.
///
/// # Panics
/// When a column is out of range: the battery's own fault.
fn build<T: Scalar, I: Index, O: Index>(
    nrows: usize,
    ncols: usize,
    mut row: impl FnMut(usize) -> Vec<(usize, T)>,
) -> Csr<T, I, O> {
    let (mut offsets, mut indices, mut values) = (vec![O::default()], Vec::new(), Vec::new());
    for r in 0..nrows {
        for (col, value) in row(r) {
            indices.push(I::truncate(col));
            values.push(value);
        }
        offsets.push(O::truncate(indices.len()));
    }
    Csr::new(nrows, ncols, offsets, indices, values)
        .unwrap_or_else(|error| panic!("the battery built a bad matrix: {error}"))
}
