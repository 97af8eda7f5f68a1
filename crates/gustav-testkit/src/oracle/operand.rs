//! Operands without their types: the reference is compiled once for all of them.

use std::ops::Range;

use bytemuck::cast_slice;
use gustav_core::buffer::try_vec;
use gustav_core::{
    CsrView, DType, Dense, DenseView, Index, IndexSlice, Layout, Result, Scalar, bf16, f16,
};

/// A number as the reference sees it: f64, or i64 for the integer types.
pub(crate) trait Value: Copy + Default + Send + Sync {
    /// A stored number; exact.
    fn of<T: Scalar>(stored: T) -> Self;
    /// The real one, or the integer, of a factor.
    fn of_factor(factor: Factor) -> Self;
    /// Values of this type as an operand.
    fn numbers(values: &[Self]) -> Numbers<'_>;
    /// For reports.
    fn to_f64(self) -> f64;
    /// For exact comparisons; truncated.
    fn to_i64(self) -> i64;
}

impl Value for f64 {
    #[inline(always)]
    fn of<T: Scalar>(stored: T) -> f64 {
        stored.to_f64()
    }
    fn of_factor(factor: Factor) -> f64 {
        factor.real
    }
    fn numbers(values: &[f64]) -> Numbers<'_> {
        Numbers::F64(values)
    }
    fn to_f64(self) -> f64 {
        self
    }
    fn to_i64(self) -> i64 {
        self as i64
    }
}

impl Value for i64 {
    #[inline(always)]
    fn of<T: Scalar>(stored: T) -> i64 {
        stored.to_i64()
    }
    fn of_factor(factor: Factor) -> i64 {
        factor.integer
    }
    fn numbers(values: &[i64]) -> Numbers<'_> {
        Numbers::I64(values)
    }
    fn to_f64(self) -> f64 {
        self as f64
    }
    fn to_i64(self) -> i64 {
        self
    }
}

/// α or β.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Factor {
    real: f64,
    integer: i64,
}

impl Factor {
    pub fn of<A: Scalar>(factor: A) -> Self {
        Factor { real: factor.to_f64(), integer: factor.to_i64() }
    }

    /// The same over `count`; of integers, which have no means, as it is.
    pub fn over(self, count: usize) -> Self {
        Factor { real: self.real / count as f64, ..self }
    }
}

/// Stored numbers of some type.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Numbers<'a> {
    F16(&'a [f16]),
    Bf16(&'a [bf16]),
    F32(&'a [f32]),
    F64(&'a [f64]),
    I32(&'a [i32]),
    I64(&'a [i64]),
}

/// Evaluates `$body` with `$values` as the slice in a [`Numbers`].
macro_rules! with_numbers {
    ($numbers:expr, $values:ident => $body:expr) => {
        match $numbers {
            Numbers::F16($values) => $body,
            Numbers::Bf16($values) => $body,
            Numbers::F32($values) => $body,
            Numbers::F64($values) => $body,
            Numbers::I32($values) => $body,
            Numbers::I64($values) => $body,
        }
    };
}

impl<'a> Numbers<'a> {
    pub fn of<T: Scalar>(values: &'a [T]) -> Self {
        match T::DTYPE {
            DType::F16 => Numbers::F16(cast_slice(values)),
            DType::Bf16 => Numbers::Bf16(cast_slice(values)),
            DType::F32 => Numbers::F32(cast_slice(values)),
            DType::F64 => Numbers::F64(cast_slice(values)),
            DType::I32 => Numbers::I32(cast_slice(values)),
            DType::I64 => Numbers::I64(cast_slice(values)),
        }
    }

    /// The number at `at`.
    pub fn get<V: Value>(&self, at: usize) -> V {
        with_numbers!(self, values => V::of(values[at]))
    }

    /// Puts the numbers of `range` into `out`.
    pub fn read<V: Value>(&self, range: Range<usize>, out: &mut Vec<V>) {
        out.clear();
        with_numbers!(self, values => out.extend(values[range].iter().map(|v| V::of(*v))));
    }
}

/// A matrix in CSR form.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sparse<'a> {
    pub nrows: usize,
    pub ncols: usize,
    offsets: IndexSlice<'a>,
    indices: IndexSlice<'a>,
    values: Numbers<'a>,
}

impl<'a, T: Scalar, I: Index, O: Index> From<CsrView<'a, T, I, O>> for Sparse<'a> {
    fn from(a: CsrView<'a, T, I, O>) -> Self {
        Sparse {
            nrows: a.nrows(),
            ncols: a.ncols(),
            offsets: IndexSlice::new(a.offsets()),
            indices: IndexSlice::new(a.indices()),
            values: Numbers::of(a.values().as_slice()),
        }
    }
}

impl Sparse<'_> {
    /// Positions of a row's entries.
    pub fn range(&self, row: usize) -> Range<usize> {
        self.offsets.get(row)..self.offsets.get(row + 1)
    }

    /// Puts the columns of a row into `out`.
    pub fn columns(&self, row: usize, out: &mut Vec<usize>) {
        self.indices.read(self.range(row), out);
    }

    /// Puts the values of a row into `out`.
    pub fn values<V: Value>(&self, row: usize, out: &mut Vec<V>) {
        self.values.read(self.range(row), out);
    }

    /// Column and value of the entry at `at`.
    pub fn entry<V: Value>(&self, at: usize) -> (usize, V) {
        (self.indices.get(at), self.values.get(at))
    }

    /// The transposed matrix.
    pub fn transpose<V: Value>(&self) -> Result<Transposed<V>> {
        let nnz = self.offsets.get(self.nrows);
        let mut offsets = zeros::<u64>(self.ncols + 1)?;
        for at in 0..nnz {
            offsets[self.indices.get(at) + 1] += 1;
        }
        for col in 0..self.ncols {
            offsets[col + 1] += offsets[col];
        }
        let (mut indices, mut values) = (zeros::<u64>(nnz)?, zeros::<V>(nnz)?);
        for row in 0..self.nrows {
            for at in self.range(row) {
                let (col, value) = self.entry(at);
                let to = offsets[col] as usize;
                offsets[col] += 1;
                (indices[to], values[to]) = (row as u64, value);
            }
        }
        // Every offset has moved to the end of its row, where the next one begins.
        offsets.rotate_right(1);
        offsets[0] = 0;
        Ok(Transposed { nrows: self.ncols, ncols: self.nrows, offsets, indices, values })
    }
}

/// A transposed matrix, with arrays of its own.
pub(crate) struct Transposed<V> {
    nrows: usize,
    ncols: usize,
    offsets: Vec<u64>,
    indices: Vec<u64>,
    values: Vec<V>,
}

impl<V: Value> Transposed<V> {
    pub fn view(&self) -> Sparse<'_> {
        Sparse {
            nrows: self.nrows,
            ncols: self.ncols,
            offsets: IndexSlice::U64(&self.offsets),
            indices: IndexSlice::U64(&self.indices),
            values: V::numbers(&self.values),
        }
    }
}

fn zeros<V: Copy + Default>(len: usize) -> Result<Vec<V>> {
    let mut values = try_vec(len, "the transpose of A")?;
    values.resize(len, V::default());
    Ok(values)
}

/// A dense matrix.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matrix<'a> {
    pub nrows: usize,
    pub ncols: usize,
    row_stride: usize,
    column_stride: usize,
    values: Numbers<'a>,
}

/// A copy of `m` where what is between its lines is not borrowed.
pub(crate) fn without_gaps<T: Scalar>(m: DenseView<'_, T>) -> Result<Option<Dense<T>>> {
    m.as_slice().is_none().then(|| m.to_layout(m.layout())).transpose()
}

impl<'a> Matrix<'a> {
    /// `m`, or its copy from [`without_gaps`].
    pub fn new<T: Scalar>(m: DenseView<'a, T>, copy: &'a Option<Dense<T>>) -> Self {
        let m = copy.as_ref().map_or(m, Dense::view);
        let values = Numbers::of(m.as_slice().unwrap_or_default());
        let (row_stride, column_stride) = match m.layout() {
            Layout::RowMajor => (m.leading_dimension(), 1),
            Layout::ColumnMajor => (1, m.leading_dimension()),
        };
        let (nrows, ncols) = (m.nrows(), m.ncols());
        Matrix { nrows, ncols, row_stride, column_stride, values }
    }

    /// The element of a row and a column.
    pub fn get<V: Value>(&self, row: usize, col: usize) -> V {
        self.values.get(row * self.row_stride + col * self.column_stride)
    }

    /// Puts a row into `out`.
    pub fn row<V: Value>(&self, row: usize, out: &mut Vec<V>) {
        if self.ncols == 0 {
            return out.clear();
        }
        if self.column_stride == 1 {
            let start = row * self.row_stride;
            return self.values.read(start..start + self.ncols, out);
        }
        out.clear();
        out.extend((0..self.ncols).map(|col| self.get::<V>(row, col)));
    }

    /// The values row by row, of a matrix that does not hold them so.
    pub fn rows<V: Value>(&self) -> Result<Option<Vec<V>>> {
        if self.column_stride == 1 {
            return Ok(None);
        }
        let mut rows = try_vec(self.nrows * self.ncols, "B row by row")?;
        let mut row = Vec::new();
        for i in 0..self.nrows {
            self.row::<V>(i, &mut row);
            rows.extend_from_slice(&row);
        }
        Ok(Some(rows))
    }

    /// The same matrix, packed as `rows`.
    pub fn over<'b, V: Value>(&self, rows: &'b [V]) -> Matrix<'b> {
        let Matrix { nrows, ncols, .. } = *self;
        Matrix { nrows, ncols, row_stride: ncols, column_stride: 1, values: V::numbers(rows) }
    }
}
