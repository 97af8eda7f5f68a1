//! Rows in an order in which neighbours need the same rows of B, so that a part of them needs fewer of others.

use gustav_core::{Csr, DType, Error, Index, Permutation, Result, Scalar};
use gustav_plan::Order;
use gustav_plan::orders::{Search, WarpShape};

use crate::exchange::all_to_all;
use crate::matrix::gather_numbers;
use crate::{Communication, DistCsr, Partition, ProductShape, Ranks, Volume};

/// The order of the rows of a pattern over ranks, and what it saves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ordered {
    /// The order.
    pub order: Order,
    /// Rows of B that are sent where rows are as stored, in balanced parts, and only rows of B are sent.
    pub rows_before: u64,
    /// Those where they are in this order.
    pub rows_after: u64,
}

impl<T: Scalar, I: Index, O: Index> DistCsr<T, I, O> {
    /// Sends rows of `whole`, which rank 0 has and others do not, to the ranks, in an order of `gustav_plan` and in
    /// balanced parts. Columns of a square matrix are in the same order, and spread as rows; of others they stay, and
    /// are spread evenly. Also returned is the number that each row of this rank has in `whole`, which says where its
    /// rows of B (of a square matrix) and of C belong. Collective.
    ///
    /// # Errors
    /// On every rank: as [`DistCsr::scatter`] and [`Order::of`], [`Error::RanksDiffer`].
    pub fn scatter_ordered(
        ranks: &Ranks,
        whole: Option<&Csr<T, I, O>>,
        order: Order,
    ) -> Result<(Self, Vec<u32>)> {
        let arranged = {
            let _lock = ranks.lock();
            let arguments = vec![
                ("call", "scatter in an order".to_owned()),
                ("order", order.name().to_owned()),
                ("type of values", T::DTYPE.to_string()),
            ];
            let is_root = ranks.rank() == 0;
            let arranged = match whole {
                Some(a) if is_root => Arranged::new(a, order, ranks.size()).map(Some),
                None if !is_root => Ok(None),
                found => Err(Error::Argument {
                    name: "matrix to scatter",
                    found: format!(
                        "{} on rank {}",
                        if found.is_some() { "one" } else { "none" },
                        ranks.rank()
                    ),
                    expected: "the matrix on rank 0, and none on others".into(),
                }),
            };
            ranks.agree_on(arguments, arranged)?
        };
        let parts = arranged.as_ref().map(|a| (&a.matrix, &a.rows, &a.columns));
        let mut spread = DistCsr::scatter(ranks, parts)?;
        let _lock = ranks.lock();
        let of_rank = |q: usize| {
            arranged.as_ref().map_or(&[][..], |a| &a.permutation.order()[a.rows.range(q)])
        };
        let parts: Vec<&[u32]> = (0..ranks.size()).map(of_rank).collect();
        let numbers = all_to_all(ranks, &parts)?.swap_remove(0);
        let saved = arranged.as_ref().map_or([0; 2], |a| a.rows_sent);
        let [rows_before, rows_after] = gather_numbers(ranks, saved)?[0].map(|n| n as u64);
        spread.set_order(Ordered { order, rows_before, rows_after });
        Ok((spread, numbers))
    }
}

/// A matrix in an order.
struct Arranged<T: Scalar, I: Index, O: Index> {
    matrix: Csr<T, I, O>,
    rows: Partition,
    columns: Partition,
    permutation: Permutation<u32>,
    /// Rows of B that are sent before and after.
    rows_sent: [usize; 2],
}

impl<T: Scalar, I: Index, O: Index> Arranged<T, I, O> {
    fn new(a: &Csr<T, I, O>, order: Order, ranks: usize) -> Result<Self> {
        let found = order.of(&a.view().pattern(), WarpShape::default(), Search::default())?;
        let permutation = Permutation::new(found.sequence().collect())?;
        let square = a.nrows() == a.ncols();
        let matrix = permutation.apply_rows(a.view())?;
        let matrix = if square { permutation.apply_columns(matrix.view())? } else { matrix };
        let spread = |a: &Csr<T, I, O>| {
            let rows = Partition::balanced(&a.view().pattern(), ranks);
            let columns = if square { rows.clone() } else { Partition::even(a.ncols(), ranks) };
            (rows, columns)
        };
        let rows_sent = |a: &Csr<T, I, O>, (rows, columns): &(Partition, Partition)| {
            let shape = ProductShape {
                columns: 1,
                dtype: DType::F32,
                transpose_a: false,
                communication: Communication::RowsOfB,
            };
            let volume = Volume::of(&a.view().pattern(), rows, columns, shape)?;
            Ok::<_, Error>(volume.bytes() as usize / DType::F32.bytes())
        };
        let parts = spread(&matrix);
        let rows_sent = [rows_sent(a, &spread(a))?, rows_sent(&matrix, &parts)?];
        let (rows, columns) = parts;
        Ok(Arranged { matrix, rows, columns, permutation, rows_sent })
    }
}
