//! Matrices of other crates give the products that gustav's own give, to the bit.
#![cfg(any(feature = "faer", feature = "nalgebra-sparse", feature = "ndarray", feature = "sprs"))]

use gustav::{Csr, CsrView, Dense, Device, Index, Layout};

const ROWS: usize = 7;
const COLUMNS: usize = 5;
// Columns of B and C.
const N: usize = 3;

/// 7 × 5, every third element, one row empty.
fn matrix<I: Index, O: Index>() -> Csr<f64, I, O> {
    let (mut offsets, mut indices, mut values) = (vec![O::truncate(0)], vec![], vec![]);
    for i in 0..ROWS {
        for j in (0..COLUMNS).filter(|j| i != 4 && (i + 2 * j) % 3 == 0) {
            indices.push(I::truncate(j));
            values.push(1.0 + (i * COLUMNS + j) as f64 / 8.0);
        }
        offsets.push(O::truncate(indices.len()));
    }
    Csr::new(ROWS, COLUMNS, offsets, indices, values).expect("a matrix")
}

fn element(i: usize, j: usize) -> f64 {
    (3 * i + 5 * j) as f64 / 4.0 - 2.0
}

fn dense(rows: usize, columns: usize, layout: Layout) -> Dense<f64> {
    Dense::from_fn(rows, columns, layout, element).expect("small")
}

/// The elements of op(A)·B, row by row.
fn expected(transpose: bool) -> Vec<f64> {
    let a = matrix::<u32, u32>();
    let b = dense(if transpose { ROWS } else { COLUMNS }, N, Layout::RowMajor);
    gustav::Spmm::new(&a, &b).transpose(transpose).run().expect("a product").data().to_vec()
}

/// The elements of op(A)·B with another crate's A.
#[cfg(any(feature = "faer", feature = "nalgebra-sparse", feature = "sprs"))]
fn product<I: Index, O: Index>(a: CsrView<'_, f64, I, O>, transpose: bool) -> Vec<f64> {
    let b = dense(if transpose { a.nrows() } else { a.ncols() }, N, Layout::RowMajor);
    gustav::Spmm::new(a, &b).transpose(transpose).run().expect("a product").data().to_vec()
}

/// The same arrays.
#[cfg(any(feature = "faer", feature = "nalgebra-sparse", feature = "sprs"))]
fn in_place<T, U>(view: &[T], of: &[U]) -> bool {
    view.as_ptr().cast::<u8>() == of.as_ptr().cast() && view.len() == of.len()
}

#[cfg(feature = "ndarray")]
mod ndarray {
    use ::ndarray::{Array1, Array2, Array3, ShapeBuilder, s};
    use gustav::interop::ndarray::{array, array_view, dense_view, dense_view_mut};
    use gustav::{Error, Spmm};

    use super::*;

    /// `rows` × `columns` of [`element`], row-major or column-major.
    fn elements(rows: usize, columns: usize, column_major: bool) -> Array2<f64> {
        Array2::from_shape_fn((rows, columns).set_f(column_major), |(i, j)| element(i, j))
    }

    fn refusal<T: std::fmt::Debug>(result: gustav::Result<T>) -> String {
        match result {
            Err(e @ Error::Argument { .. }) => e.to_string(),
            other => panic!("not refused: {other:?}"),
        }
    }

    #[test]
    fn arrays_are_operands_in_both_layouts() {
        let a = matrix::<u32, u32>();
        let b = elements(COLUMNS, N, false);
        // The transpose of an array of N × COLUMNS is column-major.
        let transposed = Array2::from_shape_fn((N, COLUMNS), |(j, i)| element(i, j));
        let columns = elements(COLUMNS, N, true);
        let of = |c: Dense<f64>| c.data().to_vec();
        assert_eq!(of(gustav::spmm(&a, &b).expect("an array")), expected(false));
        assert_eq!(of(gustav::spmm(&a, b.view()).expect("a view")), expected(false));
        assert_eq!(of(gustav::spmm(&a, transposed.t()).expect("a transpose")), expected(false));
        assert_eq!(of(gustav::spmm(&a, &columns).expect("columns")), expected(false));
        assert_eq!(dense_view(columns.view()).expect("columns").layout(), Layout::ColumnMajor);
    }

    #[test]
    fn blocks_of_arrays_are_operands_and_nothing_beside_them_is_written() {
        let a = matrix::<u32, u32>();
        for layout in [Layout::RowMajor, Layout::ColumnMajor] {
            let column_major = layout == Layout::ColumnMajor;
            let whole = elements(COLUMNS + 2, N + 3, column_major);
            let b = whole.slice(s![1..=COLUMNS, 2..2 + N]);
            let plain = Dense::from_fn(COLUMNS, N, layout, |i, j| b[[i, j]]).expect("small");
            let expected = Spmm::new(&a, &plain).run().expect("a product");

            let view = dense_view(b).expect("a leading dimension");
            assert_eq!((view.layout(), view.as_ptr()), (layout, b.as_ptr()));
            assert_eq!(view.as_slice(), None);

            let mut c = Array2::from_elem((ROWS + 2, N + 2).set_f(column_major), 7.0);
            let inner = c.slice_mut(s![1..=ROWS, 1..=N]);
            let request = a.pattern().spmm(N).layouts(layout, layout);
            let mut plan = request.plan(&Device::cpu()).expect("a plan");
            plan.execute(&a, b, inner, ()).expect("operands in place");
            for ((i, j), value) in c.indexed_iter() {
                let inside = (1..=ROWS).contains(&i) && (1..=N).contains(&j);
                let right = if inside { expected.get(i - 1, j - 1) } else { 7.0 };
                assert_eq!(*value, right, "{layout} ({i}, {j})");
            }
        }
    }

    #[test]
    fn one_column_with_a_stride_is_an_operand() {
        let a = matrix::<u32, u32>();
        let whole = elements(COLUMNS, N, false);
        let plain = dense(COLUMNS, N, Layout::RowMajor);
        let expected = gustav::spmm(&a, &plain).expect("a product");
        let mut c = Array2::zeros((ROWS, N));
        let mut plan = a.pattern().spmm(1).plan(&Device::cpu()).expect("a plan");
        for j in 0..N {
            let into = c.slice_mut(s![.., j..=j]);
            plan.execute(&a, whole.slice(s![.., j..=j]), into, ()).expect("a column");
        }
        assert!(c.indexed_iter().all(|((i, j), value)| *value == expected.get(i, j)), "{c}");
    }

    #[test]
    fn other_strides_are_refused_with_the_remedy() {
        let b = elements(10, 6, false);
        let a = matrix::<u32, u32>();
        let said = refusal(gustav::spmm(&a, b.slice(s![..COLUMNS, ..;2])));
        assert!(said.contains("5 x 3 with strides 6 and 2"), "{said}");
        assert!(said.contains("as_standard_layout"), "{said}");
        let copy = b.slice(s![..COLUMNS, ..;2]).as_standard_layout().into_owned();
        assert!(gustav::spmm(&a, &copy).is_ok());
        assert!(refusal(dense_view(b.slice(s![..;-1, ..]))).contains("strides -6 and 1"));
        let row = elements(1, 4, false);
        let repeated = row.broadcast((3, 4)).expect("a broadcast");
        assert!(refusal(dense_view(repeated)).contains("strides 0 and 1"));
        let mut c = Array3::<f64>::zeros((4, 4, 2));
        assert!(refusal(dense_view_mut(c.slice_mut(s![.., .., 0]))).contains("strides 8 and 2"));
        let x = Array1::<f64>::zeros(2 * COLUMNS);
        assert!(refusal(gustav::spmv(&a, x.slice(s![..;2]))).contains("5 elements with a stride"));
    }

    #[test]
    fn vectors_are_operands() {
        let a = matrix::<u32, u32>();
        let x = Array1::from_shape_fn(COLUMNS, |i| element(i, 0));
        let plain = gustav::spmv(&a, &x.to_vec()).expect("a product");
        assert_eq!(gustav::spmv(&a, &x).expect("an array"), plain);
        let mut plan = a.pattern().spmv().plan(&Device::cpu()).expect("a plan");
        let mut y = Array1::zeros(ROWS + 1);
        plan.execute(&a, x.view(), y.slice_mut(s![1..]), ()).expect("arrays");
        assert_eq!((y[0], &y.to_vec()[1..]), (0.0, &plain[..]));
    }

    #[test]
    fn products_become_arrays() {
        for layout in [Layout::RowMajor, Layout::ColumnMajor] {
            let c = dense(3, 4, layout);
            assert_eq!(array_view(&c).expect("a shape"), elements(3, 4, false));
            assert_eq!(array_view(&c).expect("a shape").as_ptr(), c.data().as_ptr());
            assert_eq!(array(c).expect("a shape"), elements(3, 4, false));
            let ld = 3 + 4;
            let padded = Dense::with_leading_dimension(3, 4, layout, ld, vec![1.0; 4 * ld]);
            let padded = padded.expect("a matrix");
            assert_eq!(array_view(&padded).expect("a shape"), Array2::<f64>::ones((3, 4)));
            assert_eq!(array(padded).expect("a shape"), Array2::<f64>::ones((3, 4)));
        }
        // Without a copy where the values are a `Vec`.
        let values = vec![0.5; 6];
        let at = values.as_ptr();
        let c = Dense::from_row_major(2, 3, values).expect("six values");
        assert_eq!(array(c).expect("a shape").as_ptr(), at);
    }

    #[test]
    fn empty_arrays_are_operands() {
        let a = Csr::<f64>::empty(0, COLUMNS).expect("small");
        let c = gustav::spmm(&a, &elements(COLUMNS, N, false)).expect("no rows");
        assert_eq!(array(c).expect("a shape").dim(), (0, N));
        let c = gustav::spmm(&matrix::<u32, u32>(), &Array2::zeros((COLUMNS, 0)));
        assert_eq!(array_view(&c.expect("no columns")).expect("a shape").dim(), (ROWS, 0));
        let a = Csr::<f64>::empty(ROWS, 0).expect("small");
        let c = gustav::spmm(&a, &Array2::zeros((0, N))).expect("no products");
        assert_eq!(array(c).expect("a shape"), Array2::<f64>::zeros((ROWS, N)));
    }
}

#[cfg(feature = "sprs")]
mod sprs {
    use ::sprs::{CompressedStorage, CsMat, CsMatI, CsMatViewI, SpIndex};
    use gustav::Error;
    use gustav::interop::sprs::{csc_view, csr_matrix, csr_view};

    use super::*;

    fn theirs<I: Index + SpIndex, O: Index + SpIndex>() -> CsMatI<f64, I, O> {
        let (offsets, indices, values) = matrix::<I, O>().into_parts().expect("arrays");
        CsMatI::new((ROWS, COLUMNS), offsets.to_vec(), indices.to_vec(), values.to_vec())
    }

    fn narrow() -> CsMat<f64> {
        theirs::<u32, u32>().to_other_types()
    }

    #[test]
    fn both_storages_are_read_in_place() {
        let a = narrow();
        let view = csr_view(a.view()).expect("CSR");
        assert!(in_place(view.indices(), a.indices()) && in_place(&view.values(), a.data()));
        assert_eq!(product(view, false), expected(false));
        assert_eq!(product(view, true), expected(true));
        let csc = a.to_csc();
        let view = csc_view(csc.view()).expect("CSC");
        assert_eq!((view.nrows(), view.ncols()), (ROWS, COLUMNS));
        assert_eq!(product(view.transpose(), true), expected(false));
        // The transpose of a matrix in CSR is in CSC.
        let view = csc_view(a.transpose_view()).expect("CSC");
        assert_eq!(product(view.transpose(), false), expected(false));
    }

    #[test]
    fn indices_of_every_width_are_read() {
        let a = theirs::<u32, u64>();
        assert_eq!(product(csr_view(a.view()).expect("u32, u64"), false), expected(false));
        let a: CsMatI<f64, i32, i64> = a.to_other_types();
        assert_eq!(product(csr_view(a.view()).expect("i32, i64"), false), expected(false));
    }

    #[test]
    fn the_other_storage_and_slices_are_refused() {
        let a = narrow();
        let refused = csc_view(a.view()).expect_err("CSR").to_string();
        assert!(refused.contains("csr_view"), "{refused}");
        let refused = csr_view(a.transpose_view()).expect_err("CSC").to_string();
        assert!(refused.contains("csc_view"), "{refused}");
        let slice = a.slice_outer(2..5);
        let refused = csr_view(slice).expect_err("a slice").to_string();
        assert!(refused.contains("proper_indptr"), "{refused}");
    }

    #[test]
    fn arrays_that_sprs_did_not_check_are_validated() {
        let (offsets, indices, values) = ([0_usize, 1, 2], [0_usize, 9], [1.0, 2.0]);
        // SAFETY: nothing of sprs reads through the index that is out of range.
        let a = unsafe {
            let csr = CompressedStorage::CSR;
            CsMatViewI::new_unchecked(csr, (2, 2), &offsets[..], &indices[..], &values[..])
        };
        assert!(matches!(csr_view(a), Err(Error::Index { value: 9, bound: 2, .. })));
    }

    #[test]
    fn products_become_matrices() {
        let a = narrow();
        let (view, csc) = (csr_view(a.view()).expect("CSR"), a.to_csc());
        let transposed = csc_view(csc.view()).expect("CSC").to_csr().expect("CSR");
        let product = gustav::Spgemm::new(view, &transposed).transpose(true).run();
        let found: CsMat<f64> = csr_matrix(product.expect("a product")).expect("sorted");
        let plain = matrix::<u32, u32>();
        let plain = gustav::Spgemm::new(&plain, &plain).transpose(true).run().expect("a product");
        let plain: CsMatI<f64, u32> = csr_matrix(plain).expect("sorted");
        assert_eq!(found, plain.to_other_types());
        assert_eq!(found.shape(), (COLUMNS, COLUMNS));

        let unsorted = Csr::<f64>::new(1, 3, vec![0, 2], vec![2, 0], vec![1.0, 2.0]).expect("CSR");
        let refused = csr_matrix::<f64, u32, u32>(unsorted).expect_err("unsorted").to_string();
        assert!(refused.contains("canonicalize"), "{refused}");
        let wide = Csr::<f64, u32, u32>::new(1, 1 << 32, vec![0, 1], vec![u32::MAX], vec![1.0]);
        let wide = csr_matrix::<f64, i32, i32>(wide.expect("CSR")).expect_err("past i32");
        assert!(wide.to_string().contains("4294967295"), "{wide}");
    }

    #[test]
    fn empty_matrices_are_read() {
        let a = CsMat::<f64>::zero((0, COLUMNS));
        assert!(product(csr_view(a.view()).expect("no rows"), false).is_empty());
        let a = CsMat::<f64>::zero((ROWS, COLUMNS));
        assert_eq!(product(csr_view(a.view()).expect("no entries"), false), [0.0; ROWS * N]);
    }
}

#[cfg(feature = "nalgebra-sparse")]
mod nalgebra_sparse {
    use ::nalgebra_sparse::na::{DMatrix, Matrix3x2};
    use ::nalgebra_sparse::{CscMatrix, CsrMatrix};
    use gustav::interop::nalgebra_sparse::{csc_view, csr_matrix, csr_view, dense_view};

    use super::*;

    fn theirs() -> CsrMatrix<f64> {
        csr_matrix(matrix::<u32, u32>()).expect("sorted")
    }

    #[test]
    fn both_storages_are_read_in_place() {
        let a = theirs();
        let view = csr_view(&a).expect("CSR");
        assert!(in_place(view.indices(), a.col_indices()) && in_place(&view.values(), a.values()));
        assert_eq!(product(view, false), expected(false));
        assert_eq!(product(view, true), expected(true));
        let a = CscMatrix::from(&a);
        let view = csc_view(&a).expect("CSC");
        assert_eq!((view.nrows(), view.ncols()), (ROWS, COLUMNS));
        assert_eq!(product(view.transpose(), true), expected(false));
    }

    #[test]
    fn products_become_matrices() {
        let a = theirs();
        let view = csr_view(&a).expect("CSR");
        let found = gustav::Spgemm::new(view, view).transpose(true).run().expect("a product");
        let plain = matrix::<u32, u32>();
        let plain = gustav::Spgemm::new(&plain, &plain).transpose(true).run().expect("a product");
        let (found, plain) = (csr_matrix(found).expect("sorted"), csr_matrix(plain));
        assert_eq!(found, plain.expect("sorted"));
        assert_eq!((found.nrows(), found.ncols()), (COLUMNS, COLUMNS));

        let unsorted = Csr::<f64>::new(1, 3, vec![0, 2], vec![2, 0], vec![1.0, 2.0]).expect("CSR");
        let refused = csr_matrix(unsorted).expect_err("unsorted").to_string();
        assert!(refused.contains("canonicalize"), "{refused}");
    }

    #[test]
    fn dense_matrices_are_operands() {
        let a = matrix::<u32, u32>();
        let b = DMatrix::from_fn(COLUMNS, N, element);
        let c = gustav::spmm(&a, &b).expect("column-major");
        assert_eq!(c.data(), expected(false));

        let columns = Layout::ColumnMajor;
        let request = a.pattern().spmm(N).layouts(columns, columns);
        let mut plan = request.plan(&Device::cpu()).expect("a plan");
        let mut into = DMatrix::zeros(ROWS, N);
        plan.execute(&a, &b, &mut into, ()).expect("operands in place");
        assert_eq!(into.transpose().as_slice(), expected(false));

        let fixed = Matrix3x2::new(1.0, 2.0, 3.0, 4.0, 5.0, 6.0);
        let view = dense_view(&fixed).expect("three rows");
        assert_eq!((view.get(1, 0), view.get(0, 1)), (3.0, 2.0));
    }

    #[test]
    fn empty_matrices_are_read() {
        let a = CsrMatrix::<f64>::zeros(0, COLUMNS);
        assert!(product(csr_view(&a).expect("no rows"), false).is_empty());
        let a = CsrMatrix::<f64>::zeros(ROWS, COLUMNS);
        assert_eq!(product(csr_view(&a).expect("no entries"), false), [0.0; ROWS * N]);
        let c = gustav::spmm(&matrix::<u32, u32>(), &DMatrix::zeros(COLUMNS, 0));
        assert_eq!(c.expect("no columns").ncols(), 0);
    }
}

#[cfg(feature = "faer")]
mod faer {
    use ::faer::sparse::Triplet;
    use ::faer::sparse::{SparseColMat, SparseRowMat, SparseRowMatRef, SymbolicSparseRowMatRef};
    use ::faer::{Mat, MatMut};
    use gustav::Error;
    use gustav::interop::faer::{csc_view, csr_view, dense_view, dense_view_mut};

    use super::*;

    fn triplets() -> Vec<Triplet<usize, usize, f64>> {
        let a = matrix::<u32, u32>();
        let row = |i| {
            let (columns, values) = a.view().row(i);
            let row = columns.iter().zip(values);
            row.map(|(j, v)| Triplet::new(i, *j as usize, *v)).collect::<Vec<_>>()
        };
        (0..ROWS).flat_map(row).collect()
    }

    #[test]
    fn both_storages_are_read_in_place() {
        let a = SparseRowMat::<usize, f64>::try_new_from_triplets(ROWS, COLUMNS, &triplets());
        let a = a.expect("in range");
        let view = csr_view(a.as_ref()).expect("CSR");
        assert!(
            in_place(view.indices(), a.symbolic().col_idx()) && in_place(&view.values(), a.val())
        );
        assert_eq!(product(view, false), expected(false));
        assert_eq!(product(view, true), expected(true));

        let a = SparseColMat::<usize, f64>::try_new_from_triplets(ROWS, COLUMNS, &triplets());
        let a = a.expect("in range");
        let view = csc_view(a.as_ref()).expect("CSC");
        assert_eq!((view.nrows(), view.ncols()), (ROWS, COLUMNS));
        assert_eq!(product(view.transpose(), true), expected(false));
    }

    #[test]
    fn matrices_without_compression_are_refused_and_spare_room_is_left() {
        let (offsets, indices, values) = ([0_u32, 2, 3], [1_u32, 0, 2, 0], [1.0, 2.0, 3.0, 4.0]);
        let symbolic = |lengths| {
            SymbolicSparseRowMatRef::new_unsorted_checked(2, 3, &offsets, lengths, &indices)
        };
        let a = SparseRowMatRef::new(symbolic(None), &values[..]);
        let view = csr_view(a).expect("CSR");
        assert_eq!((view.nnz(), view.values().as_slice()), (3, &[1.0, 2.0, 3.0][..]));
        let a = SparseRowMatRef::new(symbolic(Some(&[1, 1])), &values[..]);
        let refused = csr_view(a).expect_err("uncompressed").to_string();
        assert!(refused.contains("compressed form"), "{refused}");
    }

    #[test]
    fn dense_matrices_and_their_blocks_are_operands() {
        let a = matrix::<u32, u32>();
        let whole = Mat::from_fn(COLUMNS + 2, N + 1, |i, j| element(i.max(2) - 2, j));
        let b = whole.get(2.., ..N);
        assert_eq!(gustav::spmm(&a, b).expect("a block").data(), expected(false));
        let b = Mat::from_fn(COLUMNS, N, element);
        assert_eq!(gustav::spmm(&a, &b).expect("a matrix").data(), expected(false));
        assert_eq!(dense_view(b.as_ref().transpose()).expect("rows").layout(), Layout::RowMajor);

        let mut c = Mat::full(ROWS + 1, N + 2, 7.0);
        let columns = Layout::ColumnMajor;
        let request = a.pattern().spmm(N).layouts(columns, columns);
        let mut plan = request.plan(&Device::cpu()).expect("a plan");
        let into: MatMut<'_, f64> = c.as_mut().get_mut(..ROWS, 1..N + 1);
        plan.execute(&a, &b, into, ()).expect("operands in place");
        let plain = expected(false);
        for (i, j) in (0..ROWS + 1).flat_map(|i| (0..N + 2).map(move |j| (i, j))) {
            let inside = i < ROWS && (1..=N).contains(&j);
            assert_eq!(c[(i, j)], if inside { plain[i * N + j - 1] } else { 7.0 }, "({i}, {j})");
        }
    }

    #[test]
    fn other_strides_are_refused_with_the_remedy() {
        let mut b = Mat::<f64>::zeros(4, 4);
        let refused = dense_view(b.as_ref().reverse_rows()).expect_err("backwards").to_string();
        assert!(refused.contains("strides -1") && refused.contains("to_owned"), "{refused}");
        let refused = dense_view_mut(b.as_mut().reverse_cols_mut()).expect_err("backwards");
        assert!(matches!(refused, Error::Argument { .. }), "{refused}");
    }

    #[test]
    fn empty_matrices_are_read() {
        let a = SparseRowMat::<usize, f64>::try_new_from_triplets(0, COLUMNS, &[]).expect("empty");
        assert!(product(csr_view(a.as_ref()).expect("no rows"), false).is_empty());
        let a = SparseColMat::<u32, f64>::try_new_from_triplets(ROWS, COLUMNS, &[]).expect("empty");
        let view = csc_view(a.as_ref()).expect("no entries");
        assert_eq!(product(view.transpose(), true), [0.0; ROWS * N]);
        let c = gustav::spmm(&matrix::<u32, u32>(), &Mat::zeros(COLUMNS, 0)).expect("no columns");
        assert_eq!(c.ncols(), 0);
    }
}
