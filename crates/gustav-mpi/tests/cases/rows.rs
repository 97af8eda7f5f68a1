//! Matrices cut into the parts of ranks.

use gustav_core::{
    Csr, CsrView, Dense, DenseView, DenseViewMut, Index, IndexSlice, Layout, Pattern, Result,
    Scalar,
};
use gustav_mpi::{DistPattern, Partition, Ranks};

use super::job::{Part, values_of};

/// The rows of `a` that `rank` has.
pub fn rows_of<T: Scalar, I: Index, O: Index>(
    a: &CsrView<'_, T, I, O>,
    partition: &Partition,
    rank: usize,
) -> Result<(Pattern<I, O>, Vec<T>)> {
    let rows = partition.range(rank);
    let of = |row: usize| IndexSlice::new(a.offsets()).get(row);
    let entries = of(rows.start)..of(rows.end);
    let offsets =
        (rows.start..=rows.end).map(|r| O::truncate(of(r) - entries.start)).collect::<Vec<_>>();
    let indices = a.indices()[entries.clone()].to_vec();
    let pattern = Pattern::new(rows.len(), a.ncols(), offsets, indices)?;
    Ok((pattern, a.values().as_slice()[entries].to_vec()))
}

/// The pattern of `rank` with columns spread as `columns`.
pub fn pattern_of<T: Scalar, I: Index, O: Index>(
    ranks: &Ranks,
    a: &CsrView<'_, T, I, O>,
    (rows, columns): (&Partition, &Partition),
) -> Result<(DistPattern<I, O>, Vec<T>)> {
    let (local, values) = rows_of(a, rows, ranks.rank())?;
    Ok((DistPattern::new(ranks, columns, local)?, values))
}

/// A rank's rows of a dense matrix, in its layout, with padding where it has some.
pub struct Rows<T> {
    rows: usize,
    columns: usize,
    layout: Layout,
    ld: usize,
    pub data: Vec<T>,
}

impl<T: Scalar> Rows<T> {
    pub fn of(m: &DenseView<'_, T>, partition: &Partition, rank: usize) -> Self {
        let range = partition.range(rank);
        let (rows, columns, layout) = (range.len(), m.ncols(), m.layout());
        let (whole, len, lines) = match layout {
            Layout::RowMajor => (columns, columns, rows),
            Layout::ColumnMajor => (m.nrows(), rows, columns),
        };
        let ld = len + if m.leading_dimension() > whole { 3 } else { 0 };
        let mut data = vec![T::from_f64(-77.0); lines * ld];
        for i in 0..rows {
            for j in 0..columns {
                let at = if layout == Layout::RowMajor { i * ld + j } else { j * ld + i };
                data[at] = m.get(range.start + i, j);
            }
        }
        Rows { rows, columns, layout, ld, data }
    }

    pub fn view(&self) -> DenseView<'_, T> {
        DenseView::new(self.rows, self.columns, self.layout, self.ld, &self.data).expect("rows")
    }

    pub fn view_mut(&mut self) -> DenseViewMut<'_, T> {
        let Rows { rows, columns, layout, ld, data } = self;
        DenseViewMut::new(*rows, *columns, *layout, *ld, data).expect("rows")
    }

    pub fn has_bits_of(&self, other: &Self) -> bool {
        let [bits, of_other] = [self, other].map(|rows| bytemuck::cast_slice::<T, u8>(&rows.data));
        bits == of_other
    }

    /// Writes the rows to their place in `m`.
    pub fn copy_to(&self, m: &mut DenseViewMut<'_, T>, partition: &Partition, rank: usize) {
        let first = partition.range(rank).start;
        for i in 0..self.rows {
            for j in 0..self.columns {
                m.set(first + i, j, self.view().get(i, j));
            }
        }
    }
}

/// The rows of all ranks.
pub fn whole_of<T: Scalar>(
    parts: &[Rows<T>],
    partition: &Partition,
    columns: usize,
    layout: Layout,
) -> Dense<T> {
    let mut whole = Dense::zeros(partition.rows(), columns, layout).expect("a small matrix");
    for (rank, part) in parts.iter().enumerate() {
        part.copy_to(&mut whole.view_mut(), partition, rank);
    }
    whole
}

/// The matrix whose rows are those of all parts, one after another.
pub fn joined<T: Scalar, I: Index, O: Index>(
    parts: &[Csr<T, I, O>],
    ncols: usize,
) -> Result<Csr<T, I, O>> {
    let (mut offsets, mut indices, mut values) = (vec![O::truncate(0)], Vec::new(), Vec::new());
    for part in parts {
        let base = indices.len();
        offsets.extend(part.offsets()[1..].iter().map(|o| O::truncate(o.to_usize() + base)));
        indices.extend_from_slice(part.indices());
        values.extend_from_slice(part.values().as_slice());
    }
    Csr::new(offsets.len() - 1, ncols, offsets, indices, values)
}

impl<T: Scalar> Part for Rows<T> {
    fn to_bytes(&self) -> Vec<u8> {
        let in_columns = usize::from(self.layout == Layout::ColumnMajor);
        let sizes = [self.rows, self.columns, self.ld, in_columns];
        [bytemuck::cast_slice(&sizes), bytemuck::cast_slice(&self.data)].concat()
    }

    fn of_bytes(bytes: &[u8]) -> Self {
        let (sizes, data) = bytes.split_at(4 * size_of::<usize>());
        let [rows, columns, ld, in_columns] = values_of::<usize>(sizes)[..] else {
            panic!("four sizes of a matrix");
        };
        let layout = [Layout::RowMajor, Layout::ColumnMajor][in_columns];
        Rows { rows, columns, layout, ld, data: values_of(data) }
    }
}

impl<T: Scalar, I: Index, O: Index> Part for Csr<T, I, O> {
    fn to_bytes(&self) -> Vec<u8> {
        let sizes = [self.nrows(), self.ncols(), self.nnz()];
        let values = bytemuck::cast_slice(self.values().as_slice());
        let indices = bytemuck::cast_slice(self.indices());
        let offsets = bytemuck::cast_slice(self.offsets());
        [bytemuck::cast_slice(&sizes), values, indices, offsets].concat()
    }

    fn of_bytes(bytes: &[u8]) -> Self {
        let (sizes, rest) = bytes.split_at(3 * size_of::<usize>());
        let [rows, columns, nnz] = values_of::<usize>(sizes)[..] else {
            panic!("three sizes of a matrix");
        };
        let (values, rest) = rest.split_at(nnz * size_of::<T>());
        let (indices, offsets) = rest.split_at(nnz * size_of::<I>());
        let (offsets, indices) = (values_of::<O>(offsets), values_of::<I>(indices));
        Csr::new(rows, columns, offsets, indices, values_of::<T>(values)).expect("rows of a rank")
    }
}
