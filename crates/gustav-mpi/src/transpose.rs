//! The transpose of a matrix over ranks.

use gustav_core::buffer::try_vec;
use gustav_core::{Buffer, Index, Result, Scalar};
use gustav_io::parts::Entries;

use crate::DistCsr;
use crate::io::{csr_of, send_to_owners};

impl<T: Scalar, I: Index, O: Index> DistCsr<T, I, O> {
    /// Aᵀ, with rows spread as columns of this matrix and columns as its rows: every rank sends its entries to the
    /// ranks that have their columns. Entries of a row are in the order of the rows of this matrix. Collective.
    ///
    /// # Errors
    /// On every rank: [`Error::Overflow`](gustav_core::Error::Overflow) when rows of this matrix pass the type of
    /// column indices, or the entries of a rank that of row offsets;
    /// [`Error::RanksDiffer`](gustav_core::Error::RanksDiffer);
    /// [`Error::OutOfMemory`](gustav_core::Error::OutOfMemory).
    pub fn transpose(&self) -> Result<Self> {
        let pattern = self.pattern();
        let ranks = pattern.ranks();
        let (rows, columns) = (pattern.columns(), pattern.rows());
        let local = {
            let _lock = ranks.lock();
            let arguments = vec![
                ("call", "transposing a matrix".to_owned()),
                ("type of values", T::DTYPE.to_string()),
                ("type of column indices", I::TYPE.to_string()),
                ("partition of rows", columns.description()),
                ("partition of columns", rows.description()),
            ];
            let entries = ranks.agree_on(arguments, self.transposed_entries())?;
            let owned = send_to_owners::<T, I>(ranks, entries, rows)?;
            let own = rows.range(ranks.rank());
            ranks.together(csr_of(&[owned], (own.start, own.len(), columns.rows())))?
        };
        Self::new(ranks, columns, local)
    }

    /// The entries of this rank, at their positions in the transpose.
    fn transposed_entries(&self) -> Result<Entries<T>> {
        let (pattern, local) = (self.pattern(), self.local());
        I::try_from_usize(pattern.nrows().saturating_sub(1), "column index")?;
        let first = pattern.rows().range(pattern.ranks().rank()).start;
        let mut rows = try_vec::<u64>(local.nnz(), "rows of entries")?;
        let mut columns = try_vec::<u64>(local.nnz(), "columns of entries")?;
        let mut values = Buffer::<T>::zeroed(local.nnz(), "values of entries")?;
        rows.extend(local.indices().iter().map(|column| column.to_usize() as u64));
        for row in 0..local.nrows() {
            let end = columns.len() + local.pattern().view().row_len(row);
            columns.resize(end, (first + row) as u64);
        }
        values.copy_from_slice(local.values().as_slice());
        Ok(Entries { rows, columns, values: Some(values) })
    }
}

#[cfg(test)]
mod tests {
    use gustav_core::{Csr, IndexSlice};
    use gustav_io::Generator;

    use super::*;
    use crate::testing::on_ranks;
    use crate::{Partition, Ranks};

    /// Every rank's part of the transpose is that of the whole.
    fn check<T: Scalar, I: Index, O: Index>(generator: &str, rows: &[usize], columns: &[usize]) {
        let generator: Generator = generator.parse().expect("a generator");
        let whole: Csr<T, I, O> = generator.build(3).expect("small");
        let expected = whole.view().transpose().expect("small");
        let [rows, columns] =
            [rows, columns].map(|counts| Partition::of_counts(counts).expect("counts"));
        on_ranks(Ranks::in_process_with_limit(rows.ranks(), 64), |ranks| {
            let a = crate::io::generate::<T, I, O>(&ranks, &generator, 3, (&rows, &columns));
            let transposed = a.expect("a matrix").transpose().expect("a transpose");
            let (pattern, local) = (transposed.pattern(), transposed.local());
            assert_eq!((pattern.rows(), pattern.columns()), (&columns, &rows));
            assert_eq!((pattern.nnz(), local.ncols()), (whole.nnz(), whole.nrows()));
            let own = columns.range(ranks.rank());
            assert_eq!(local.nrows(), own.len());
            for (row, of_whole) in own.enumerate() {
                assert_eq!(local.view().row(row), expected.view().row(of_whole), "{of_whole}");
            }
            assert_eq!(IndexSlice::new(local.offsets()).get(0), 0);
            let back = transposed.transpose().expect("the matrix");
            assert_eq!(back.local().offsets().len(), rows.count(ranks.rank()) + 1);
            assert_eq!(back.pattern().nnz(), whole.nnz());
        });
    }

    #[test]
    fn parts_are_those_of_the_whole_transpose() {
        check::<f64, u32, u32>("rmat:7,5", &[128], &[128]);
        check::<f32, u32, u64>("uniform:40x90,6", &[10, 0, 30], &[0, 45, 45]);
        check::<i64, u64, u32>("power-law:90x40,1,2", &[1, 80, 0, 9], &[40, 0, 0, 0]);
        check::<f32, u32, u32>("empty:3x3,1,0.5", &[1, 1, 1, 0, 0], &[0, 0, 0, 1, 2]);
    }

    #[test]
    fn a_rank_that_makes_another_call_is_named() {
        let generator: Generator = "diagonal:6".parse().expect("a generator");
        let even = Partition::even(6, 2);
        let results = on_ranks(Ranks::in_process(2), |ranks| {
            let a = crate::io::generate::<f32, u32, u32>(&ranks, &generator, 1, (&even, &even))?;
            if ranks.rank() == 0 { a.transpose() } else { a.balanced() }
        });
        for found in results {
            assert!(matches!(found, Err(gustav_core::Error::RanksDiffer { .. })));
        }
    }
}
