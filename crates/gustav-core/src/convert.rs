//! Conversions between formats, transposition and canonical form. All preserve the matrix: entries
//! are neither dropped nor summed unless documented.

use crate::csr::copy;
use crate::parallel::{self, Shared};
use crate::{
    Buffer, Coo, CooView, Csc, Csr, CsrView, Dcsr, Dense, DenseView, Index, Layout, PatternView,
    Result, Scalar,
    buffer::{try_collect, try_vec},
};

/// `from` in another index type, which must hold all of its values.
pub(crate) fn convert<A: Index, B: Index>(from: &[A], what: &'static str) -> Result<Vec<B>> {
    try_collect(from.iter().map(|k| B::truncate(k.to_usize())), what)
}

/// Counts → offsets: `counts[k + 1]` holds the length of row `k` on entry, the end on return.
fn prefix_sum(counts: &mut [usize]) {
    let mut sum = 0;
    for c in counts {
        sum += *c;
        *c = sum;
    }
}

/// Sorts (column, position) pairs. One type for all matrices, because sorting takes long to
/// compile.
fn sort(order: &mut [(usize, usize)]) {
    order.sort_unstable();
}

impl<T: Scalar, I: Index, O: Index> Csr<T, I, O> {
    /// CSR of triples (a [`Coo`] or a view), entries of a row keep their order.
    ///
    /// # Errors
    /// [`Error::Overflow`](crate::Error::Overflow) when the entries outnumber the offset type.
    pub fn from_coo<'a>(coo: impl Into<CooView<'a, T, I>>) -> Result<Self> {
        let coo = coo.into();
        let nnz = coo.nnz();
        O::try_from_usize(nnz, "row offset")?;
        let mut next = Buffer::<usize>::zeroed(coo.nrows().saturating_add(1), "row counts")?;
        for r in coo.rows() {
            next[r.to_usize() + 1] += 1;
        }
        prefix_sum(&mut next[1..]);
        let offsets = try_collect(next.iter().map(|&o| O::truncate(o)), "row offsets")?;
        let mut indices = Buffer::<I>::zeroed(nnz, "column indices")?;
        let mut values = Buffer::<T>::zeroed(nnz, "values")?;
        for ((r, c), v) in coo.rows().iter().zip(coo.cols()).zip(coo.values()) {
            let at = next[r.to_usize()];
            next[r.to_usize()] += 1;
            indices[at] = *c;
            values[at] = *v;
        }
        // SAFETY: a counting sort of checked triples by row.
        Ok(unsafe { Csr::new_unchecked(coo.nrows(), coo.ncols(), offsets, indices, values) })
    }

    /// CSR of the nonzero elements of a dense matrix, in the three parallel steps of Chen et al.
    /// 2025 §3.3: count the nonzeros of every row, prefix sum, fill.
    ///
    /// # Errors
    /// [`Error::Overflow`](crate::Error::Overflow) when columns or nonzeros do not fit the
    /// index types.
    pub fn from_dense(dense: DenseView<'_, T>) -> Result<Self> {
        let (nrows, ncols) = (dense.nrows(), dense.ncols());
        I::try_from_usize(ncols.saturating_sub(1), "column index")?;
        let row = |i: usize| (0..ncols).map(move |j| dense.get(i, j));
        let mut offsets = Buffer::<usize>::zeroed(nrows.saturating_add(1), "row counts")?;
        parallel::each_mut(&mut offsets[1..], 64, |i, count| {
            *count = row(i).filter(|v| !v.is_zero()).count();
        });
        prefix_sum(&mut offsets[1..]);
        let nnz = offsets[nrows];
        O::try_from_usize(nnz, "row offset")?;
        let mut indices = Buffer::<I>::uninit(nnz, "column indices")?;
        let mut values = Buffer::<T>::uninit(nnz, "values")?;
        let (to_i, to_v) = (indices.shared(), values.shared());
        parallel::ranges(nrows, 64, |rows| {
            for i in rows {
                let nonzeros = row(i).enumerate().filter(|(_, v)| !v.is_zero());
                for (at, (j, v)) in (offsets[i]..).zip(nonzeros) {
                    // SAFETY: row i owns the positions counted for it above.
                    unsafe {
                        to_i.put(at, I::truncate(j));
                        to_v.put(at, v);
                    }
                }
            }
        });
        let offsets = try_collect(offsets.iter().map(|&o| O::truncate(o)), "row offsets")?;
        // SAFETY: every position below nnz belongs to one row and was written by it.
        Ok(unsafe {
            let (indices, values) = (indices.assume_init(nnz), values.assume_init(nnz));
            Csr::new_unchecked(nrows, ncols, offsets, indices, values)
        })
    }

    /// The matrix in canonical form: columns of every row sorted, duplicates summed. Sums of
    /// duplicates are taken in the order of the entries and stay even when zero.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub fn canonicalize(&self) -> Result<Self> {
        let sorted = self.sort_columns()?;
        let view = sorted.view();
        let mut offsets = try_vec::<O>(self.nrows() + 1, "row offsets")?;
        let mut indices = try_vec::<I>(self.nnz(), "column indices")?;
        let mut values = try_vec::<T>(self.nnz(), "values")?;
        offsets.push(O::default());
        for r in 0..self.nrows() {
            let (cols, vals) = view.row(r);
            let mut k = 0;
            while k < cols.len() {
                let (col, mut sum) = (cols[k], vals[k].to_accum());
                k += 1;
                while k < cols.len() && cols[k] == col {
                    sum = crate::Arith::plus(sum, vals[k].to_accum());
                    k += 1;
                }
                indices.push(col);
                values.push(T::from_accum(sum));
            }
            offsets.push(O::truncate(indices.len()));
        }
        // SAFETY: a subset of a valid matrix's entries, with offsets to match.
        Ok(unsafe { Csr::new_unchecked(self.nrows(), self.ncols(), offsets, indices, values) })
    }

    /// The matrix with the columns of every row sorted (stable); duplicates stay.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub fn sort_columns(&self) -> Result<Self> {
        let offsets = copy(self.offsets(), "row offsets")?;
        let mut indices = copy(self.indices(), "column indices")?;
        let mut values = copy(&self.values(), "values")?;
        let (to_i, to_v) = (Shared::new(&mut indices), Shared::new(&mut values));
        let view = self.view();
        parallel::ranges(self.nrows(), 256, |rows| {
            let mut order = Vec::new();
            for r in rows {
                let (cols, vals) = view.row(r);
                if cols.is_sorted() {
                    continue;
                }
                order.clear();
                order.extend(cols.iter().enumerate().map(|(k, c)| (c.to_usize(), k)));
                sort(&mut order);
                for (at, (_, k)) in view.row_range(r).zip(&order) {
                    // SAFETY: rows own disjoint ranges.
                    unsafe {
                        to_i.put(at, cols[*k]);
                        to_v.put(at, vals[*k]);
                    }
                }
            }
        });
        // SAFETY: the same entries, reordered within rows.
        Ok(unsafe { Csr::new_unchecked(self.nrows(), self.ncols(), offsets, indices, values) })
    }
}

/// Row offsets and column indices of Aᵀ, and for each of its nonzeros the position of the same
/// nonzero in A.
pub(crate) fn transpose_arrays<I: Index, O: Index>(
    a: &PatternView<'_, I, O>,
) -> Result<(Buffer<O>, Buffer<I>, Buffer<O>)> {
    I::try_from_usize(a.nrows().saturating_sub(1), "row index of the transpose")?;
    let (nrows, ncols, nnz) = (a.nrows(), a.ncols(), a.nnz());
    // Each part of the rows counts its columns; parts then know where to write.
    let parts = parallel::threads().min(nnz / (ncols + 1) + 1).min(64);
    let bounds: Vec<usize> = (0..=parts)
        .map(|p| {
            let target = (nnz as u128 * p as u128 / parts as u128) as usize;
            if p == parts {
                nrows
            } else {
                a.offsets().partition_point(|o| o.to_usize() < target).min(nrows)
            }
        })
        .collect();
    let span = |p: usize| a.offsets()[bounds[p]].to_usize()..a.offsets()[bounds[p + 1]].to_usize();
    let count = |p: usize| -> Result<Buffer<usize>> {
        let mut count = Buffer::zeroed(ncols, "column counts")?;
        for c in &a.indices()[span(p)] {
            count[c.to_usize()] += 1;
        }
        Ok(count)
    };
    let mut counts = parallel::map(parts, count).into_iter().collect::<Result<Vec<_>>>()?;
    let mut offsets = Buffer::<O>::zeroed(ncols.saturating_add(1), "row offsets")?;
    let mut sum = 0;
    for c in 0..ncols {
        for count in &mut counts {
            sum += std::mem::replace(&mut count[c], sum);
        }
        offsets[c + 1] = O::truncate(sum);
    }
    let mut indices = Buffer::<I>::uninit(nnz, "column indices")?;
    let mut source = Buffer::<O>::uninit(nnz, "transpose positions")?;
    let (to_i, to_s) = (indices.shared(), source.shared());
    parallel::each_mut(&mut counts, 1, |p, next| {
        for r in bounds[p]..bounds[p + 1] {
            for from in a.row_range(r) {
                let slot = &mut next[a.indices()[from].to_usize()];
                // SAFETY: the counts give every part its own positions in every column.
                unsafe {
                    to_i.put(*slot, I::truncate(r));
                    to_s.put(*slot, O::truncate(from));
                }
                *slot += 1;
            }
        }
    });
    // SAFETY: the counts add up to nnz, and each counted position was written.
    unsafe { Ok((offsets, indices.assume_init(nnz), source.assume_init(nnz))) }
}

impl<'a, T: Scalar, I: Index, O: Index> CsrView<'a, T, I, O> {
    /// Aᵀ in CSR form; rows come out sorted, duplicates in the order of A.
    ///
    /// # Errors
    /// [`Error::Overflow`](crate::Error::Overflow) when the row count of A does not fit the
    /// index type, [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub fn transpose(&self) -> Result<Csr<T, I, O>> {
        let transposed = self.pattern().transpose()?;
        let mut values = Buffer::<T>::zeroed(self.nnz(), "values")?;
        transposed.gather(&self.values(), &mut values)?;
        Csr::from_pattern(transposed.pattern(), values)
    }

    /// The matrix in CSC form.
    ///
    /// # Errors
    /// As [`CsrView::transpose`].
    pub fn to_csc(&self) -> Result<Csc<T, I, O>> {
        self.transpose().map(Csc::from_transpose)
    }

    /// The matrix as triples, row by row.
    ///
    /// # Errors
    /// [`Error::Overflow`](crate::Error::Overflow) when the row count does not fit the index
    /// type.
    pub fn to_coo(&self) -> Result<Coo<T, I>> {
        I::try_from_usize(self.nrows().saturating_sub(1), "row index")?;
        let mut rows = try_vec(self.nnz(), "row indices")?;
        for r in 0..self.nrows() {
            rows.extend(std::iter::repeat_n(I::truncate(r), self.row_len(r)));
        }
        let cols = try_collect(self.indices().iter().copied(), "column indices")?;
        let values = try_collect(self.values().iter().copied(), "values")?;
        Coo::new(self.nrows(), self.ncols(), rows, cols, values)
    }

    /// The matrix in DCSR form.
    ///
    /// # Errors
    /// [`Error::Overflow`](crate::Error::Overflow) when the row count does not fit the index
    /// type.
    pub fn to_dcsr(&self) -> Result<Dcsr<T, I, O>> {
        I::try_from_usize(self.nrows().saturating_sub(1), "row id")?;
        let filled = || (0..self.nrows()).filter(|&r| self.row_len(r) > 0);
        let count = filled().count();
        let mut row_ids = try_vec(count, "row ids")?;
        row_ids.extend(filled().map(I::truncate));
        let mut offsets = try_vec(count + 1, "row offsets")?;
        offsets.push(O::default());
        offsets.extend(filled().map(|r| self.offsets()[r + 1]));
        let indices = try_collect(self.indices().iter().copied(), "column indices")?;
        let values = try_collect(self.values().iter().copied(), "values")?;
        Dcsr::new(self.nrows(), self.ncols(), row_ids, offsets, indices, values)
    }

    /// The matrix in dense form; duplicates are summed.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`](crate::Error::OutOfMemory).
    pub fn to_dense(&self, layout: Layout) -> Result<Dense<T>> {
        let mut dense = Dense::<T>::zeros(self.nrows(), self.ncols(), layout)?;
        let mut view = dense.view_mut();
        for r in 0..self.nrows() {
            let (cols, vals) = self.row(r);
            for (c, v) in cols.iter().zip(vals) {
                let sum = crate::Arith::plus(view.get(r, c.to_usize()).to_accum(), v.to_accum());
                view.set(r, c.to_usize(), T::from_accum(sum));
            }
        }
        Ok(dense)
    }
}
