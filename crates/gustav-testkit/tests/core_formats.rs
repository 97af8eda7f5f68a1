//! Formats: every conversion keeps the matrix, whatever its shape and order of entries.

use gustav_core::index::unsigned;
use gustav_core::{
    Coo, CooView, Csc, Csr, CsrView, Dcsr, Dense, DenseView, Index, Layout, Scalar, bf16, f16,
};
use gustav_testkit::battery::matrices::{matrices, random_rows, unsorted};

/// The entries as sorted triples; values as bits, so that NaN equals itself.
fn triples<T: Scalar, I: Index, O: Index>(a: CsrView<'_, T, I, O>) -> Vec<(usize, usize, Vec<u8>)> {
    let row = |r: usize| {
        let (cols, values) = a.row(r);
        let entry = move |(c, v): (&I, &T)| (r, c.to_usize(), bytemuck::bytes_of(v).to_vec());
        cols.iter().zip(values).map(entry).collect::<Vec<_>>()
    };
    let mut all: Vec<_> = (0..a.nrows()).flat_map(row).collect();
    all.sort();
    all
}

fn same<T: Scalar, I: Index, O: Index>(name: &str, a: &Csr<T, I, O>, b: &Csr<T, I, O>) {
    assert_eq!((a.nrows(), a.ncols()), (b.nrows(), b.ncols()), "{name}");
    assert_eq!(triples(a.view()), triples(b.view()), "{name}");
}

fn round_trips<T: Scalar, I: Index, O: Index>() {
    for m in matrices::<T, I, O>() {
        let (a, name) = (&m.csr, m.name);
        let view = a.view();
        let csc = view.to_csc().expect(name);
        assert_eq!(
            (csc.view().nrows(), csc.view().ncols(), csc.view().nnz()),
            (a.nrows(), a.ncols(), a.nnz())
        );
        same(name, a, &csc.view().to_csr().expect(name));
        same(
            name,
            a,
            &Csc::from_transpose(csc.clone().into_transpose()).view().to_csr().expect(name),
        );

        let twice = view.transpose().expect(name);
        assert_eq!((twice.nrows(), twice.ncols()), (a.ncols(), a.nrows()), "{name}");
        same(name, a, &twice.view().transpose().expect(name));

        let coo = view.to_coo().expect(name);
        let bytes = |a: &Csr<T, I, O>| {
            let values: &[u8] = bytemuck::cast_slice(a.values().as_slice());
            (a.offsets().to_vec(), a.indices().to_vec(), values.to_vec())
        };
        // Order within rows is kept, duplicates and all.
        assert_eq!(bytes(&Csr::from_coo(&coo).expect(name)), bytes(a), "{name}");
        let dcsr = view.to_dcsr().expect(name);
        let filled = (0..a.nrows()).filter(|&r| view.row_len(r) > 0).count();
        assert_eq!(dcsr.view().row_ids().len(), filled, "{name}");
        assert_eq!(bytes(&dcsr.view().to_csr().expect(name)), bytes(a), "{name}");
        let wide = view.to_indices::<u64, u64>().expect(name);
        assert_eq!(bytes(&wide.view().to_indices::<I, O>().expect(name)), bytes(a), "{name}");
        assert_eq!(bytes(&view.to_owned().expect(name)), bytes(a), "{name}");
    }
}

#[test]
fn conversions_keep_the_matrix() {
    round_trips::<f16, u32, u32>();
    round_trips::<bf16, u32, u64>();
    round_trips::<f32, u64, u32>();
    round_trips::<f64, u64, u64>();
    round_trips::<i32, u32, u32>();
    round_trips::<i64, u32, u32>();
}

#[test]
fn the_transpose_has_sorted_rows_and_knows_its_sources() {
    let a = unsorted::<f64, u32, u64>(60, 40, 1);
    for threads in [1, 2, 7] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        let pattern = a.view().pattern();
        let transposed = pool.install(|| pattern.transpose().expect("a transpose"));
        let t = pool.install(|| a.view().transpose().expect("a transpose"));
        assert_eq!(transposed.pattern(), t.pattern());
        for r in 0..t.nrows() {
            assert!(t.view().row(r).0.is_sorted());
        }
        for (at, from) in transposed.permutation().iter().enumerate() {
            assert_eq!(t.values()[at], a.values()[*from as usize]);
        }
    }
}

#[test]
fn dense_matrices_lose_their_zeros_and_nothing_else() {
    for m in matrices::<f64, u32, u32>().into_iter().filter(|m| m.traits.finite) {
        let a = m.csr.canonicalize().expect(m.name);
        for layout in [Layout::RowMajor, Layout::ColumnMajor] {
            let dense = a.view().to_dense(layout).expect(m.name);
            let zero = [0.0f64, -0.0].map(|z| bytemuck::bytes_of(&z).to_vec());
            let kept: Vec<_> =
                triples(a.view()).into_iter().filter(|t| !zero.contains(&t.2)).collect();
            for threads in [1, 2, 5] {
                let pool =
                    rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
                let back: Csr<f64> = pool.install(|| Csr::from_dense(dense.view()).expect(m.name));
                assert!(back.view().is_canonical(), "{}", m.name);
                assert_eq!(triples(back.view()), kept, "{} {layout} {threads}", m.name);
            }
        }
    }
}

#[test]
fn from_dense_reads_strided_matrices() {
    let data = [1.0, 0.0, 9.0, 0.0, 2.0, 9.0];
    let row_major = DenseView::new(2, 2, Layout::RowMajor, 3, &data).expect("B");
    let a = Csr::<f64>::from_dense(row_major).expect("A");
    assert_eq!(
        (a.offsets(), a.indices(), a.values().as_slice()),
        (&[0, 1, 2][..], &[0, 1][..], &[1.0, 2.0][..])
    );
    let column_major = DenseView::new(2, 2, Layout::ColumnMajor, 3, &data[1..]);
    assert!(column_major.is_ok(), "the last column needs no padding");
    let nan = Dense::from_row_major(1, 3, vec![f64::NAN, -0.0, 0.0]).expect("B");
    assert_eq!(Csr::<f64>::from_dense(nan.view()).expect("A").indices(), [0], "-0 is a zero");
}

#[test]
fn canonical_form_sorts_and_sums() {
    let a = Csr::<f32>::new(
        2,
        5,
        vec![0, 6, 6],
        vec![3, 1, 3, 0, 1, 3],
        vec![1.0, 2.0, 10.0, 4.0, -2.0, 100.0],
    )
    .expect("A");
    assert!(!a.view().is_canonical());
    let c = a.canonicalize().expect("canonical");
    assert_eq!(c.indices(), [0, 1, 3]);
    // Sums of zero stay.
    assert_eq!(c.values(), [4.0, 0.0, 111.0]);
    assert_eq!(c.offsets(), [0, 3, 3]);
    let sorted = a.sort_columns().expect("sorted");
    assert_eq!(sorted.indices(), [0, 1, 1, 3, 3, 3]);
    assert_eq!(sorted.values(), [4.0, 2.0, -2.0, 1.0, 10.0, 100.0], "the sort is stable");
    assert_eq!(a.indices(), [3, 1, 3, 0, 1, 3], "the original is left alone");
    let big = unsorted::<i64, u64, u64>(900, 70, 9);
    let canonical = big.canonicalize().expect("canonical");
    assert!(canonical.view().is_canonical());
    let dense = |m: &Csr<i64, u64, u64>| m.view().to_dense(Layout::RowMajor).expect("dense");
    assert_eq!(dense(&canonical).data(), dense(&big).data());
    // Sixteen-bit duplicates are summed in f32: 2048 + 1 + 1 is not lost one at a time.
    let ones = vec![f16::from_f32(2048.0), f16::ONE, f16::ONE];
    let half = Csr::<f16>::new(1, 1, vec![0, 3], vec![0, 0, 0], ones).expect("A");
    assert_eq!(half.canonicalize().expect("canonical").values(), [f16::from_f32(2050.0)]);
}

#[test]
fn hand_made_formats_agree() {
    let coo = Coo::<f64>::new(3, 4, vec![2, 0, 2], vec![1, 3, 0], vec![5.0, 6.0, 7.0]).expect("A");
    let csr = Csr::<f64>::from_coo(&coo).expect("A");
    assert_eq!((csr.offsets(), csr.indices()), (&[0, 1, 1, 3][..], &[3, 1, 0][..]));
    let (rows, cols) =
        (unsigned(&[2i32, 0, 2]).expect("rows"), unsigned(&[1i32, 3, 0]).expect("A"));
    let borrowed = CooView::new(3, 4, rows, cols, coo.values()).expect("A");
    assert_eq!(Csr::<f64>::from_coo(borrowed).expect("A"), csr);
    assert_eq!((borrowed.nrows(), borrowed.ncols(), borrowed.nnz()), (3, 4, 3));
    assert!(CooView::new(2, 4, rows, cols, coo.values()).is_err());
    let dcsr =
        Dcsr::<f64>::new(3, 4, vec![0, 2], vec![0, 1, 3], vec![3, 1, 0], vec![6.0, 5.0, 7.0]);
    assert_eq!(dcsr.expect("A").view().to_csr().expect("A"), csr);
    let csc =
        Csc::<f64>::new(3, 4, vec![0, 1, 2, 2, 3], vec![2, 2, 0], vec![7.0, 5.0, 6.0]).expect("A");
    assert_eq!(csc.view().to_csr().expect("A"), csr.canonicalize().expect("canonical"));
}

#[test]
fn with_values_changes_the_values_alone() {
    let a = random_rows::<f32, u32, u32>(10, 10, 1, |_| 3);
    let twos = vec![2.0f64; a.nnz()];
    let b = a.view().pattern().with_values(&twos).expect("the same pattern");
    assert_eq!(
        (b.offsets(), b.indices(), b.values().as_slice()),
        (a.offsets(), a.indices(), &twos[..])
    );
    let message = a.view().pattern().with_values(&twos[1..]).expect_err("one too few").to_string();
    assert_eq!(message, "values: expected 30 elements, found 29");
}
