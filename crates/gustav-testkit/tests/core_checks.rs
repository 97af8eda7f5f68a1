//! Input that is wrong is refused with the first place where it is, and memory that is not
//! there is an error.

use gustav_core::index::unsigned;
use gustav_core::{
    Buffer, Coo, Csr, CsrView, Dcsr, Dense, DenseView, DenseViewMut, Error, Layout, Permutation,
};

fn message<R>(result: gustav_core::Result<R>) -> String {
    match result {
        Ok(_) => panic!("accepted"),
        Err(error) => error.to_string(),
    }
}

fn csr(nrows: usize, ncols: usize, offsets: &[u32], indices: &[u32], values: usize) -> String {
    let values = vec![1.0f32; values];
    let owned = message(Csr::new(nrows, ncols, offsets.to_vec(), indices.to_vec(), values.clone()));
    let borrowed = message(CsrView::new(nrows, ncols, offsets, indices, &values));
    assert_eq!(owned, borrowed);
    owned
}

#[test]
fn arrays_that_are_no_matrix_are_refused() {
    assert_eq!(csr(2, 3, &[0, 1], &[0], 1), "row offsets: expected 3 elements, found 2");
    assert_eq!(csr(0, 3, &[], &[], 0), "row offsets: expected 1 elements, found 0");
    assert_eq!(
        csr(2, 3, &[1, 1, 1], &[0], 1),
        "row offsets at row 0: the first offset must be 0 (found 1, expected 0)"
    );
    assert_eq!(
        csr(3, 3, &[0, 2, 1, 2], &[0, 1], 2),
        "row offsets at row 1: offsets must not go back (found 1, expected at least 2)"
    );
    assert_eq!(
        csr(2, 3, &[0, 1, 3], &[0, 1], 2),
        "row offsets at row 2: the last offset must equal the number of entries \
         (found 3, expected 2, the number of column indices)"
    );
    assert_eq!(csr(2, 3, &[0, 1, 2], &[0, 1], 3), "values: expected 2 elements, found 3");
    assert_eq!(
        csr(3, 3, &[0, 1, 1, 3], &[2, 0, 3], 3),
        "row 2, entry 2: index 3 is out of range (must be below 3)"
    );
    assert_eq!(
        csr(1, 0, &[0, 1], &[0], 1),
        "row 0, entry 0: index 0 is out of range (must be below 0)"
    );
    let max = message(Csr::<f32>::new(usize::MAX, 1, vec![0], Vec::<u32>::new(), Vec::new()));
    assert!(max.contains("18446744073709551616 does not fit"), "{max}");
}

#[test]
fn the_first_fault_of_a_long_array_is_named() {
    let n = 300_000usize;
    let offsets: Vec<u32> = (0..=n as u32).collect();
    let mut indices = vec![0u32; n];
    for at in [250_000, 140_001, 299_999] {
        indices[at] = 7;
    }
    assert_eq!(
        csr(n, 7, &offsets, &indices, n),
        "row 140001, entry 140001: index 7 is out of range (must be below 7)"
    );
    let mut back = offsets;
    back[200_000] = 0;
    back[270_000] = 0;
    assert!(csr(n, 9, &back, &indices, n).starts_with("row offsets at row 199999: offsets must"));
}

#[test]
fn triples_and_row_ids_are_checked() {
    let coo = |rows: Vec<u32>, cols: Vec<u32>, values: usize| {
        message(Coo::new(3, 2, rows, cols, vec![1.0f32; values]))
    };
    assert_eq!(coo(vec![0, 1], vec![0], 2), "column indices: expected 2 elements, found 1");
    assert_eq!(coo(vec![0, 1], vec![0, 1], 1), "values: expected 2 elements, found 1");
    assert_eq!(
        coo(vec![0, 3], vec![0, 1], 2),
        "row 3, entry 1: index 3 is out of range (must be below 3)"
    );
    assert_eq!(
        coo(vec![0, 2], vec![0, 2], 2),
        "row 2, entry 1: index 2 is out of range (must be below 2)"
    );
    let dcsr = |ids: Vec<u32>| {
        message(Dcsr::<f32>::new(4, 2, ids, vec![0, 1, 2], vec![0, 1], vec![1.0, 2.0]))
    };
    assert!(dcsr(vec![1, 4]).contains("index 4 is out of range (must be below 4)"));
    assert!(dcsr(vec![2, 2]).contains("DCSR row ids must strictly increase (found 2"));
}

#[test]
fn dense_shapes_are_checked() {
    let data = [0.0f32; 11];
    let view = |nrows, ncols, layout, ld| DenseView::new(nrows, ncols, layout, ld, &data);
    assert!(view(3, 3, Layout::RowMajor, 4).is_ok(), "the last row needs no padding");
    assert_eq!(
        message(view(3, 4, Layout::RowMajor, 4)),
        "dense matrix values: expected 12 elements, found 11"
    );
    let narrow = message(view(3, 4, Layout::ColumnMajor, 2));
    assert!(narrow.contains("leading dimension of at least 3 for 3 x 4 column-major"), "{narrow}");
    assert!(view(0, 100, Layout::ColumnMajor, 0).is_ok());
    assert!(view(0, 100, Layout::RowMajor, 100).is_ok());
    let huge = message(view(usize::MAX, 2, Layout::RowMajor, usize::MAX));
    assert!(huge.contains("expected 18446744073709551615 elements, found 11"), "{huge}");
    let mut few = [0.0f32; 3];
    assert!(DenseViewMut::new(2, 2, Layout::RowMajor, 2, &mut few).is_err());
    assert!(Dense::from_row_major(2, 2, vec![0.0f32; 5]).is_err(), "one too many");
}

#[test]
fn dense_elements_are_where_the_layout_says() {
    let data: Vec<f64> = (0..12).map(f64::from).collect();
    let rows = DenseView::new(2, 3, Layout::RowMajor, 5, &data).expect("B");
    let cols = DenseView::new(2, 3, Layout::ColumnMajor, 4, &data).expect("B");
    assert_eq!((rows.get(1, 2), cols.get(1, 2)), (7.0, 9.0));
    let t = rows.transpose();
    assert_eq!((t.nrows(), t.ncols(), t.get(2, 1)), (3, 2, 7.0));
    let mut own = Dense::<f64>::zeros(2, 3, Layout::ColumnMajor).expect("C");
    own.view_mut().set(1, 2, 4.0);
    assert_eq!((own.get(1, 2), own.data()), (4.0, &[0.0, 0.0, 0.0, 0.0, 0.0, 4.0][..]));
    assert_eq!(own.to_layout(Layout::RowMajor).expect("C").data()[5], 4.0);
    assert!(std::panic::catch_unwind(|| rows.get(2, 0)).is_err());
}

#[test]
fn sizes_past_an_index_type_say_which_would_do() {
    let wide = Csr::<f32, u64, u64>::empty(2, 1 << 33).expect("no entries");
    let narrow = message(wide.view().to_indices::<u32, u32>());
    assert_eq!(narrow, "column index: 8589934591 does not fit in u32; use u64");
    // One more column than u32 can number is one too many; 2³² itself is not.
    let most = Csr::<f32, u64, u64>::empty(2, 1 << 32).expect("no entries");
    assert!(most.view().to_indices::<u32, u32>().is_ok());
    let columns = Dense::<f32>::zeros(0, 1 << 33, Layout::RowMajor).expect("no rows");
    assert!(matches!(Csr::<f32>::from_dense(columns.view()), Err(Error::Overflow { .. })));
    let tall = Dense::<f32>::zeros(1 << 33, 0, Layout::ColumnMajor).expect("no columns");
    assert_eq!(tall.view().nrows(), 1 << 33);
}

#[test]
fn signed_arrays_are_read_in_place() {
    let signed = [0i32, 5, i32::MAX];
    let read = unsigned(&signed).expect("nothing negative");
    assert_eq!(read, [0u32, 5, i32::MAX as u32]);
    assert_eq!(read.as_ptr().cast::<i32>(), signed.as_ptr(), "no copy");
    assert_eq!(unsigned(&[3i64, 4]).expect("nothing negative"), [3u64, 4]);
    let text = message(unsigned(&[0i64, 2, -7, -8]));
    assert!(text.contains("-7 at position 2") && text.contains("no negative entries"), "{text}");
}

#[test]
fn memory_that_is_not_there_is_an_error() {
    for len in [usize::MAX, usize::MAX / 8, 1 << 46] {
        let text = message(Buffer::<f64>::zeroed(len, "the test"));
        assert!(text.starts_with("out of memory") && text.contains("for the test"), "{text}");
        assert!(matches!(
            Buffer::<f64>::uninit(len, "the test").map(|b| b.capacity()),
            Err(Error::OutOfMemory { .. })
        ));
        assert!(gustav_core::buffer::try_vec::<u64>(len, "the test").is_err());
    }
    for n in [1 << 40, usize::MAX] {
        let refused = Dense::<f32>::from_fn(n, n, Layout::RowMajor, |_, _| 1.0);
        assert!(matches!(refused, Err(Error::OutOfMemory { .. })), "{n} x {n}");
    }
    let empty = Dense::<f32>::from_fn(usize::MAX, 0, Layout::RowMajor, |_, _| 1.0);
    assert_eq!(empty.map(|m| m.nrows()).ok(), Some(usize::MAX));
    assert!(matches!(Csr::<f32>::empty(usize::MAX, 1), Err(Error::OutOfMemory { .. })));
}

#[test]
fn buffers_are_aligned_cleared_and_given_back() {
    for len in [0, 1, 1000, 3 << 20] {
        let buffer = Buffer::<u32>::zeroed(len, "the test").expect("memory");
        assert_eq!(buffer.len(), len);
        assert!(buffer.iter().all(|v| *v == 0));
        assert!(len == 0 || (buffer.as_ptr() as usize).is_multiple_of(gustav_core::buffer::ALIGN));
        assert_eq!(buffer.into_vec(), vec![0; len]);
    }
    let mut vec = Vec::with_capacity(50);
    vec.extend([1u64, 2, 3]);
    let at = vec.as_ptr();
    let mut buffer = Buffer::from(vec);
    buffer[1] = 7;
    let copy = buffer.clone();
    assert_eq!(copy, buffer);
    let back = buffer.into_vec();
    assert_eq!((back.as_ptr(), back.capacity(), &back[..]), (at, 50, &[1u64, 7, 3][..]));
    assert!(Buffer::from(Vec::<f32>::new()).is_empty());
    let mut raw = Buffer::<u16>::uninit(10, "the test").expect("memory");
    for k in 0..4 {
        // SAFETY: within the ten values of the block.
        unsafe { raw.as_mut_ptr().add(k).write(k as u16) };
    }
    // SAFETY: the first four values were just written.
    assert_eq!(*unsafe { raw.assume_init(4) }, [0, 1, 2, 3]);
}

#[test]
fn permutations_are_checked() {
    let text = message(Permutation::<u32>::new(vec![0, 2, 2]));
    assert!(text.contains("2 a second time at position 2"), "{text}");
    assert!(message(Permutation::<u32>::new(vec![0, 3, 1])).contains("must be below 3"));
    let p = Permutation::<u32>::new(vec![2, 0, 1]).expect("a permutation");
    let q = Permutation::<u32>::identity(4).expect("a permutation");
    assert!(p.then(&q).is_err() && p.apply(&[1, 2]).is_err());
    let a = Csr::<f32>::empty(4, 5).expect("A");
    assert!(p.apply_rows(a.view()).is_err() && p.apply_columns(a.view()).is_err());
}
