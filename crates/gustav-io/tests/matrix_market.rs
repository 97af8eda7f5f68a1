//! What Matrix Market files hold, in every spelling that the format allows.

use gustav_core::{Csr, Layout, Result};
use gustav_io::{Field, ReadOptions, Symmetry, Values, parse_csr, parse_dense, parse_header};

fn csr(text: &str) -> Csr<f64> {
    parse(text.as_bytes()).unwrap()
}

fn parse(bytes: &[u8]) -> Result<Csr<f64>> {
    parse_csr(bytes, &ReadOptions::default())
}

/// Offsets, columns and values.
fn parts(a: &Csr<f64>) -> (&[u32], &[u32], &[f64]) {
    (a.offsets(), a.indices(), a.values().as_slice())
}

#[test]
fn coordinate_real_keeps_order_duplicates_and_zeros() {
    let a = csr("%%MatrixMarket matrix coordinate real general\n% a comment\n\n3 4 6\n\
                 3 2 1.5\n1 4 -2e-3\n1 1 0\n3 2 .5\n1 4 7.\n2 3 +1E2\n");
    assert_eq!((a.nrows(), a.ncols()), (3, 4));
    let values = [-2e-3, 0.0, 7.0, 100.0, 1.5, 0.5];
    assert_eq!(parts(&a), (&[0, 3, 4, 6][..], &[3, 0, 3, 2, 1, 1][..], &values[..]));
}

#[test]
fn spelling_of_lines_does_not_matter() {
    let plain = csr("%%MatrixMarket matrix coordinate integer general\n2 2 2\n1 1 3\n2 2 -4\n");
    for text in [
        "%%matrixmarket MATRIX Coordinate INTEGER General\r\n2 2 2\r\n1 1 3\r\n2 2 -4\r\n",
        "%%MatrixMarket\tmatrix  coordinate integer general  \n%\n%%x\n \n 2\t2 2 \n\n1 1 3\n\n\n  2   2  -4",
        "%%MatrixMarket matrix coordinate integer general\n2 2 2\n1 1 +3\n% between\n2\t2\t-4 \n\n",
        "%%MatrixMarket matrix coordinate integer general\n2 2 2\n0001 01 3\n2 2 -0000000000000000000000000004\n",
    ] {
        assert_eq!(csr(text), plain, "{text:?}");
    }
}

#[test]
fn symmetry_is_expanded_mirrors_last() {
    let a =
        csr("%%MatrixMarket matrix coordinate real symmetric\n3 3 4\n1 1 1\n3 1 2\n2 1 3\n3 3 4\n");
    let expanded = (&[0, 3, 4, 6][..], &[0, 2, 1, 0, 0, 2][..], &[1., 2., 3., 3., 2., 4.][..]);
    assert_eq!(parts(&a), expanded);
    let s = csr("%%MatrixMarket matrix coordinate integer skew-symmetric\n3 3 2\n2 1 5\n3 2 -6\n");
    assert_eq!(parts(&s), (&[0, 1, 3, 4][..], &[1, 0, 2, 1][..], &[-5., 5., 6., -6.][..]));
}

#[test]
fn patterns_take_ones_or_seeded_values() {
    let text = b"%%MatrixMarket matrix coordinate pattern symmetric\n3 3 3\n1 1\n2 1\n3 2\n";
    assert_eq!(parse(text).unwrap().values(), [1.0; 5]);
    let random = |seed| -> Csr<f64> {
        let values = Values::Random(seed);
        parse_csr(text, &ReadOptions { values, ..Default::default() }).unwrap()
    };
    let a = random(7);
    assert_eq!(a, random(7));
    assert_ne!(a, random(8));
    assert!(a.values().iter().all(|v| (-1.0..1.0).contains(v)));
    let d = a.view().to_dense(Layout::RowMajor).unwrap();
    assert_eq!((d.get(0, 1), d.get(1, 2)), (d.get(1, 0), d.get(2, 1)));
    let options = ReadOptions { values: Values::Random(7), ..Default::default() };
    let integers: Csr<i32> = parse_csr(text, &options).unwrap();
    assert!(integers.values().iter().all(|v| (1..=9).contains(v)));
}

#[test]
fn random_values_are_the_same_for_any_number_of_threads() {
    let n = 50_000;
    let mut text = format!("%%MatrixMarket matrix coordinate pattern general\n{n} {n} {n}\n");
    for k in 1..=n {
        text += &format!("{} {}\n", (k * 7919) % n + 1, k);
    }
    let options = ReadOptions { values: Values::Random(3), ..Default::default() };
    let read = |threads| -> Csr<f32> {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| parse_csr(text.as_bytes(), &options).unwrap())
    };
    let one = read(1);
    for threads in [2, 3, 7] {
        assert_eq!(read(threads), one);
    }
}

#[test]
fn nan_and_infinity_are_values() {
    let a = csr("%%MatrixMarket matrix coordinate double general\n1 6 6\n1 1 nan\n1 2 -INF\n\
                 1 3 +Infinity\n1 4 NaN\n1 5 inf\n1 6 -infinity\n");
    let v = a.values();
    assert!(v[0].is_nan() && v[3].is_nan());
    let inf = f64::INFINITY;
    assert_eq!((v[1], v[2], v[4], v[5]), (-inf, inf, inf, -inf));
}

#[test]
fn arrays_are_column_major_and_expanded() {
    let read = |text: &str| parse_dense::<f64>(text.as_bytes(), &ReadOptions::default()).unwrap();
    let a = read("%%MatrixMarket matrix array real general\n2 3\n1\n2\n3\n4\n5\n6");
    assert_eq!((a.layout(), a.data()), (Layout::ColumnMajor, &[1., 2., 3., 4., 5., 6.][..]));
    let s = read("%%MatrixMarket matrix array integer symmetric\n%c\n2 2\n1\n 2 \n\n%c\n3\n");
    assert_eq!(s.data(), [1., 2., 2., 3.]);
    let k = read("%%MatrixMarket matrix array real skew-symmetric\n3 3\n1\n2\n3\n");
    assert_eq!(k.data(), [0., 1., 2., -1., 0., 3., -2., -3., 0.]);
    let sparse = csr("%%MatrixMarket matrix array real general\n2 2\n0\n2\n3\n0\n");
    assert_eq!(parts(&sparse), (&[0, 1, 2][..], &[1, 0][..], &[3., 2.][..]));
}

#[test]
fn shapes_without_entries() {
    for (rows, cols) in [(0, 0), (0, 5), (5, 0), (1, 1), (3, 70_000)] {
        let a = csr(&format!("%%MatrixMarket matrix coordinate real general\n{rows} {cols} 0\n"));
        assert_eq!((a.nrows(), a.ncols(), a.nnz()), (rows, cols, 0));
        let text = format!("%%MatrixMarket matrix array real general\n{rows} {cols}\n");
        let array = parse_dense::<f64>(text.as_bytes(), &ReadOptions::default());
        assert_eq!(array.is_ok(), rows * cols == 0);
    }
}

#[test]
fn header_says_what_the_file_says() {
    let h =
        parse_header(b"%%MatrixMarket matrix coordinate pattern symmetric\n%x\n9 9 4\n").unwrap();
    assert_eq!((h.rows, h.cols, h.entries, h.dense), (9, 9, 4, false));
    assert_eq!((h.field, h.symmetry), (Field::Pattern, Symmetry::Symmetric));
    let h = parse_header(b"%%MatrixMarket matrix array real skew-symmetric\n4 4").unwrap();
    assert_eq!((h.dense, h.entries, h.field), (true, 6, Field::Real));
}

#[test]
fn reals_are_rounded_once() {
    // Between two f32 midpoints: rounding through f64 would round these twice.
    for text in [
        "1.00000017881393432617187499",
        "1.00000017881393421514957253748434595763683319091796875001",
        "1e-46",
        "3.4028235e38",
        "1.401298464324817e-45",
        "16777217",
        "123456789.123456789",
    ] {
        let file = format!(
            "%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 {text}\n% space for eight bytes at a time\n"
        );
        let a: Csr<f32> = parse_csr(file.as_bytes(), &ReadOptions::default()).unwrap();
        assert_eq!(a.values()[0], text.parse::<f32>().unwrap(), "{text}");
        assert_eq!(csr(&file).values()[0], text.parse::<f64>().unwrap(), "{text}");
    }
}

#[test]
fn integers_fit_or_are_refused() {
    let read = |text: &str| {
        format!("%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 {text}\n")
    };
    let max = read("9223372036854775807");
    let a: Csr<i64> = parse_csr(max.as_bytes(), &ReadOptions::default()).unwrap();
    assert_eq!(a.values(), [i64::MAX]);
    assert_eq!(csr(&read("9007199254740992")).values(), [9_007_199_254_740_992.0]);
    // A power of two is exact however large.
    assert_eq!(csr(&read("18446744073709551616")).values(), [18_446_744_073_709_551_616.0]);
}
