//! DCSR: CSR over the rows that are not empty (the study of row permutations for SpMM on GPUs,
//! §II-A).

use crate::{Buffer, Csr, CsrView, Error, Index, Result, Scalar, validate};

/// A sparse matrix in doubly compressed sparse row form: the ids of the non-empty rows, and
/// CSR arrays over those rows only.
#[derive(Clone, Debug, PartialEq)]
pub struct Dcsr<T, I = u32, O = u32>
where
    T: Scalar,
    I: Index,
    O: Index,
{
    nrows: usize,
    row_ids: Vec<I>,
    rows: Csr<T, I, O>,
}

/// A DCSR matrix over borrowed arrays.
#[derive(Clone, Copy, Debug)]
pub struct DcsrView<'a, T, I = u32, O = u32>
where
    T: Scalar,
    I: Index,
    O: Index,
{
    nrows: usize,
    row_ids: &'a [I],
    rows: CsrView<'a, T, I, O>,
}

impl<T: Scalar, I: Index, O: Index> Dcsr<T, I, O> {
    /// An `nrows` × `ncols` matrix: `row_ids` strictly increasing, `offsets` one longer.
    ///
    /// # Errors
    /// [`Error::Index`] when a row id is out of range or not above the one before it;
    /// otherwise as [`Csr::new`].
    pub fn new(
        nrows: usize,
        ncols: usize,
        row_ids: Vec<I>,
        offsets: impl Into<Buffer<O>>,
        indices: impl Into<Buffer<I>>,
        values: impl Into<Buffer<T>>,
    ) -> Result<Self> {
        let rows = Csr::new(row_ids.len(), ncols, offsets, indices, values)?;
        check_row_ids(nrows, &row_ids)?;
        Ok(Dcsr { nrows, row_ids, rows })
    }

    /// The matrix as a view.
    pub fn view(&self) -> DcsrView<'_, T, I, O> {
        DcsrView { nrows: self.nrows, row_ids: &self.row_ids, rows: self.rows.view() }
    }
}

impl<'a, T: Scalar, I: Index, O: Index> DcsrView<'a, T, I, O> {
    /// A matrix over borrowed arrays, checked as [`Dcsr::new`].
    ///
    /// # Errors
    /// As [`Dcsr::new`].
    pub fn new(
        nrows: usize,
        ncols: usize,
        row_ids: &'a [I],
        offsets: &'a [O],
        indices: &'a [I],
        values: &'a [T],
    ) -> Result<Self> {
        let rows = CsrView::new(row_ids.len(), ncols, offsets, indices, values)?;
        check_row_ids(nrows, row_ids)?;
        Ok(DcsrView { nrows, row_ids, rows })
    }

    /// Number of rows, empty ones included.
    pub fn nrows(&self) -> usize {
        self.nrows
    }

    /// Number of columns.
    pub fn ncols(&self) -> usize {
        self.rows.ncols()
    }

    /// Number of stored entries.
    pub fn nnz(&self) -> usize {
        self.rows.nnz()
    }

    /// Ids of the non-empty rows, increasing.
    pub fn row_ids(&self) -> &'a [I] {
        self.row_ids
    }

    /// The non-empty rows as a CSR matrix of `row_ids().len()` rows.
    pub fn rows(&self) -> CsrView<'a, T, I, O> {
        self.rows
    }

    /// The matrix in CSR form.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] for the copies.
    pub fn to_csr(&self) -> Result<Csr<T, I, O>> {
        let mut offsets = Buffer::<O>::zeroed(self.nrows.saturating_add(1), "row offsets")?;
        let mut next = 0;
        for (k, id) in self.row_ids.iter().enumerate() {
            offsets[next..=id.to_usize()].fill(self.rows.offsets()[k]);
            next = id.to_usize() + 1;
        }
        offsets[next..].fill(O::truncate(self.nnz()));
        let copy = self.rows.to_owned()?;
        let (_, indices, values) = copy.into_parts()?;
        // SAFETY: offsets never decrease, end at nnz; indices were checked by this view.
        Ok(unsafe { Csr::new_unchecked(self.nrows, self.ncols(), offsets, indices, values) })
    }
}

fn check_row_ids<I: Index>(nrows: usize, row_ids: &[I]) -> Result<()> {
    validate::indices(nrows, row_ids)?;
    match row_ids.windows(2).position(|w| w[0] >= w[1]) {
        None => Ok(()),
        Some(k) => Err(Error::Offsets {
            row: k + 1,
            found: row_ids[k + 1].to_usize() as u64,
            expected: format!("above {}", row_ids[k]),
            reason: "DCSR row ids must strictly increase",
        }),
    }
}
