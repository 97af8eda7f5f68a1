//! Column labels: 32-bit numbers for the columns of B, used where its indices are wider, or where B
//! has far more columns than nonzeros, so that accumulators cover only the columns that occur.

use gustav_core::buffer::try_vec;
use gustav_core::{AnyPattern, Buffer, Index, IndexSlice, Result, parallel, with_pattern};

use super::operands::Right;

/// Labels for the column indices of B.
pub(super) struct Columns {
    labels: Buffer<u32>,
    names: Names,
}

/// The columns that labels stand for, ascending.
enum Names {
    /// The labels themselves, of so many columns.
    Same(usize),
    U32(Vec<u32>),
    U64(Vec<u64>),
}

impl Columns {
    /// Labels for `b`, or none where it needs none.
    ///
    /// # Errors
    /// [`gustav_core::Error::Overflow`] when more than 2^32 columns occur,
    /// [`gustav_core::Error::OutOfMemory`].
    pub fn new(b: &AnyPattern<'_>) -> Result<Option<Self>> {
        // The number of columns must fit in 32 bits too.
        let wide = b.ncols() as u64 >= u64::from(u32::MAX);
        let sparse = wide || b.ncols() > b.nnz().saturating_mul(8).max(1 << 20);
        with_pattern!(b, |p| match IndexSlice::new(p.view().indices()) {
            IndexSlice::U32(_) if !sparse => Ok(None),
            IndexSlice::U64(columns) if !sparse => {
                let mut labels = Buffer::<u32>::zeroed(columns.len(), LABELS)?;
                parallel::each_mut(&mut labels, 1024, |at, label| *label = columns[at] as u32);
                Ok(Some(Columns { labels, names: Names::Same(b.ncols()) }))
            }
            IndexSlice::U32(columns) => {
                let (names, labels) = that_occur(columns)?;
                Ok(Some(Columns { labels, names: Names::U32(names) }))
            }
            IndexSlice::U64(columns) => {
                let (names, labels) = that_occur(columns)?;
                Ok(Some(Columns { labels, names: Names::U64(names) }))
            }
        })
    }

    /// The columns that the labels stand for; none where labels equal columns.
    pub fn names(&self) -> Option<IndexSlice<'_>> {
        match &self.names {
            Names::Same(_) => None,
            Names::U32(names) => Some(IndexSlice::U32(names)),
            Names::U64(names) => Some(IndexSlice::U64(names)),
        }
    }

    /// `b`, for which the labels were made, with labels for columns.
    pub fn relabel<'a>(&'a self, b: &'a AnyPattern<'_>) -> Right<'a, IndexSlice<'a>> {
        let ncols = match &self.names {
            Names::Same(ncols) => *ncols,
            Names::U32(names) => names.len(),
            Names::U64(names) => names.len(),
        };
        let offsets = with_pattern!(b, |p| IndexSlice::new(p.view().offsets()));
        Right { nrows: b.nrows(), ncols, offsets, columns: &self.labels }
    }

    pub fn bytes(&self) -> usize {
        let names = match &self.names {
            Names::Same(_) => 0,
            Names::U32(names) => size_of_val(&**names),
            Names::U64(names) => size_of_val(&**names),
        };
        names + size_of_val(&*self.labels)
    }
}

const LABELS: &str = "column labels";

/// The columns that occur, and for every nonzero the number of its column among them.
fn that_occur<I: Index>(columns: &[I]) -> Result<(Vec<I>, Buffer<u32>)> {
    let mut names = try_vec(columns.len(), LABELS)?;
    names.extend_from_slice(columns);
    parallel::sort(&mut names);
    names.dedup();
    u32::try_from_usize(names.len(), "columns that occur")?;
    let mut labels = Buffer::<u32>::zeroed(columns.len(), LABELS)?;
    parallel::each_mut(&mut labels, 1024, |at, label| {
        *label = names.partition_point(|name| *name < columns[at]) as u32;
    });
    Ok((names, labels))
}
