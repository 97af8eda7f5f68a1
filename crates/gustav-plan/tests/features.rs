//! The features of table II against their definitions, row by row and warp by warp.

use std::collections::{BTreeMap, BTreeSet};

use gustav_core::{Csr, Error};
use gustav_plan::facts::{Features, SampledFeatures};
use gustav_plan::orders::WarpShape;
use gustav_testkit::battery::matrices::{matrices, random_rows, unsorted};

fn summary(values: impl IntoIterator<Item = usize>) -> [f64; 3] {
    let values: Vec<f64> = values.into_iter().map(|v| v as f64).collect();
    if values.is_empty() {
        return [0.0; 3];
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let min = values.iter().copied().fold(f64::INFINITY, f64::min);
    [min, mean, values.iter().copied().fold(0.0, f64::max)]
}

/// Table II taken literally.
fn reference(a: &Csr<f32, u32, u32>, shape: WarpShape) -> Vec<f64> {
    let (rows, cols) = (a.nrows(), a.ncols());
    let blocks = |r: usize, width: usize| -> BTreeSet<usize> {
        a.view().row(r).0.iter().map(|c| *c as usize / width).collect()
    };
    let of_warp = |w: usize| (0..rows).filter(move |r| r % shape.warps == w);
    let cells = (rows * cols) as f64;
    let density = if cells == 0.0 { 0.0 } else { a.nnz() as f64 / cells };
    let mut same: BTreeMap<usize, usize> = (0..cols.div_ceil(shape.line)).map(|l| (l, 0)).collect();
    for r in 0..rows {
        blocks(r, shape.line).into_iter().for_each(|l| *same.entry(l).or_default() += 1);
    }
    let load = |w| of_warp(w).map(|r| a.view().row_len(r).div_ceil(shape.lanes)).sum::<usize>();
    let distinct =
        |w| of_warp(w).flat_map(|r| blocks(r, shape.line)).collect::<BTreeSet<usize>>().len();
    let total = |w| of_warp(w).map(|r| blocks(r, shape.line).len()).sum::<usize>();
    let apart =
        |r: usize| blocks(r, shape.line).symmetric_difference(&blocks(r + 1, shape.line)).count();
    let mut all = vec![rows as f64, cols as f64, density];
    all.extend(summary((0..rows).map(|r| a.view().row_len(r))));
    all.extend(summary((0..rows).map(|r| blocks(r, shape.warps).len())));
    all.extend(summary((0..shape.warps).map(load)));
    all.extend(summary(same.into_values()));
    all.extend(summary((0..shape.warps).map(distinct)));
    all.extend(summary((0..shape.warps).map(total)));
    all.extend(summary((1..rows).map(|r| apart(r - 1))));
    all
}

fn check(name: &str, a: &Csr<f32, u32, u32>, shape: WarpShape) {
    let found = Features::new(&a.view().pattern(), shape).expect("features").values();
    let expected = reference(a, shape);
    assert_eq!(found.len(), expected.len());
    for ((feature, found), expected) in Features::NAMES.iter().zip(found).zip(expected) {
        let close = (found - expected).abs() <= 1e-12 * expected.abs();
        assert!(close, "{feature} of {name}, {shape:?}: {found} is not {expected}");
    }
}

#[test]
fn features_are_those_of_the_table() {
    let shape = |warps, lanes, line| WarpShape { warps, lanes, line };
    for shape in [shape(32, 32, 32), shape(4, 3, 8), shape(7, 2, 5), shape(70, 32, 16)] {
        for m in matrices::<f32, u32, u32>() {
            check(m.name, &m.csr, shape);
        }
        check("hub", &random_rows(700, 900, 1, |r| if r == 99 { 800 } else { r % 5 }), shape);
        check("unsorted", &unsorted(300, 700, 2), shape);
    }
}

#[test]
fn parts_of_a_large_matrix_add_up() {
    let shape = WarpShape::default();
    // Rows with and without runs in the same line, which are walked over in two ways.
    let mixed = |r: usize| if (r / 700).is_multiple_of(2) { 130 } else { r % 6 };
    let unlike = |r: usize| if r < 9 { 9000 } else { r * 7 % 23 };
    check("mixed", &random_rows(3000, 400, 1, mixed), shape);
    check("long and short", &random_rows(5000, 20_000, 2, unlike), shape);
    check("other lines", &random_rows(3000, 400, 1, mixed), WarpShape { line: 16, ..shape });
}

#[test]
fn a_worked_example() {
    // Two warps of two lanes, lines of four columns: rows {0 1 2} and {8}, {} and {1 4 9}.
    let a = Csr::<f32>::new(4, 10, vec![0, 3, 4, 4, 7], vec![0, 1, 2, 8, 1, 4, 9], vec![1.0; 7])
        .expect("a matrix");
    let f = Features::new(&a.view().pattern(), WarpShape { warps: 2, lanes: 2, line: 4 })
        .expect("features");
    let expect = |s: gustav_plan::facts::features::Summary| (s.min, s.mean, s.max);
    assert_eq!((f.nrow, f.ncol, f.density), (4.0, 10.0, 7.0 / 40.0));
    assert_eq!(expect(f.nnz_per_row), (0.0, 1.75, 3.0));
    assert_eq!(expect(f.nnz_blocks_per_row), (0.0, 1.5, 3.0));
    assert_eq!(expect(f.warp_load), (2.0, 2.5, 3.0));
    assert_eq!(expect(f.same_cache_lines), (1.0, 5.0 / 3.0, 2.0));
    assert_eq!(expect(f.distinct_cache_lines_per_warp), (1.0, 2.0, 3.0));
    assert_eq!(expect(f.total_cache_lines_per_warp), (1.0, 2.5, 4.0));
    assert_eq!(expect(f.adjacent_vector_distance), (1.0, 2.0, 3.0));
}

#[test]
fn samples_come_near_and_know_their_error() {
    let a = random_rows::<f32, u32, u32>(40_000, 3000, 3, |r| 1 + r * r % 11);
    let shape = WarpShape::default();
    let exact = Features::new(&a.view().pattern(), shape).expect("features").values();
    let sampled = SampledFeatures::new(&a.view().pattern(), shape, 4000).expect("features");
    assert!((4000..4100).contains(&sampled.rows), "{}", sampled.rows);
    let found = sampled.features.values();
    for (k, name) in Features::NAMES.iter().enumerate() {
        let off = (found[k] - exact[k]).abs();
        if k < 6 || name.starts_with("warp-load") {
            assert_eq!((off, sampled.errors[k]), (0.0, 0.0), "{name} needs no sample");
        } else if name.ends_with("mean") {
            // Five standard errors, and a model's bias of a few percent in the distinct lines.
            let bias = if name.starts_with("distinct") { 0.05 * exact[k] } else { 0.0 };
            assert!(off <= 5.0 * sampled.errors[k].max(1e-3 * exact[k]) + bias, "{name}: {off}");
        }
    }
    let all = SampledFeatures::new(&a.view().pattern(), shape, 39_000).expect("features");
    assert_eq!((all.features.values(), all.rows), (exact, 40_000));
}

#[test]
fn samples_know_that_favoured_lines_are_met_again() {
    // Most entries in few lines, the others all over: what looks saturated is not.
    let (rows, cols, per_row) = (60_000, 120_000, 6);
    let mut state = 1u64;
    let mut column = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let u = (state >> 11) as f64 / (1u64 << 53) as f64;
        (u.powi(6) * f64::from(cols)) as u32
    };
    let indices: Vec<u32> = (0..rows * per_row).map(|_| column()).collect();
    let offsets: Vec<u32> = (0..=rows).map(|row| row * per_row).collect();
    let values = vec![1.0; indices.len()];
    let a =
        Csr::<f32>::new(rows as usize, cols as usize, offsets, indices, values).expect("a matrix");
    let shape = WarpShape::default();
    let exact = Features::new(&a.view().pattern(), shape).expect("features").values();
    let sampled = SampledFeatures::new(&a.view().pattern(), shape, 1024).expect("features");
    let place = Features::NAMES.iter().position(|n| *n == "distinct-cache-lines-per-warp-mean");
    let k = place.expect("a feature");
    let (off, error) = ((sampled.features.values()[k] - exact[k]).abs(), sampled.errors[k]);
    assert!(
        off <= 2.0 * error && error < 0.6 * exact[k],
        "off by {off}, stated {error} of {}",
        exact[k]
    );
}

#[test]
fn samples_are_not_misled_by_rows_that_repeat() {
    // Every 64th group of neighbours is full: a sample at even distances sees it always or never.
    let a =
        random_rows::<f32, u32, u32>(65_536, 3000, 5, |r| if r / 32 % 64 == 0 { 90 } else { 2 });
    let shape = WarpShape::default();
    let exact =
        Features::new(&a.view().pattern(), shape).expect("features").nnz_blocks_per_row.mean;
    let sampled = SampledFeatures::new(&a.view().pattern(), shape, 1024).expect("features");
    assert_eq!(sampled.rows, 1024);
    let found = sampled.features.nnz_blocks_per_row.mean;
    assert!((0.4..3.0).contains(&(found / exact)), "{found} for {exact}");
}

#[test]
fn nothing_to_sample_is_an_error() {
    let a = random_rows::<f32, u32, u32>(9, 9, 1, |_| 2);
    let e =
        SampledFeatures::new(&a.view().pattern(), WarpShape::default(), 0).expect_err("no rows");
    assert!(matches!(e, Error::Argument { .. }), "{e}");
    let none = WarpShape { warps: 0, ..WarpShape::default() };
    assert!(Features::new(&a.view().pattern(), none).is_err());
}
