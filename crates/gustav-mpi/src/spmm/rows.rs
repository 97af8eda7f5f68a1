//! Whole rows of A in one product, with rows of B that are received after this rank's own.

use std::ops::Range;

use gustav_core::{Arith, Buffer, Dense, DenseView, DenseViewMut, Index, Layout, Pattern, Result};
use gustav_cpu::CpuScalar;

use super::Section;
use crate::blocks::Blocks;
use crate::exchange::Exchange;
use crate::local::{DistScalar, Nonzeros, Product, copy_all, rows_mut, rows_of_sums};
use crate::row_parts::{RowPart, largest, row_parts};

// Fewest nonzeros that are worth a product of their own while messages are in flight.
const LEAST_EARLY: u64 = 1 << 14;

/// The product of this rank's rows of A, whoever has their columns. Values stay where they are, unlike those of blocks,
/// which are gathered first; B is copied instead, and only rows without columns of other ranks are multiplied before
/// the rows of B have arrived.
pub(super) struct WholeRows<A: CpuScalar> {
    parts: Vec<Part<A>>,
    /// This rank's rows of B, then those that are received.
    b: Dense<A>,
    arrivals: Vec<Arrival>,
}

/// Consecutive rows of A.
struct Part<A: CpuScalar> {
    of: RowPart,
    values: Range<usize>,
    product: Product<A>,
}

/// Rows of B that are received.
pub(super) struct Arrival {
    pub of_b: Section,
    /// Positions of the rows among those of the section; `None` for all of them.
    pub positions: Option<Vec<u32>>,
    /// Where they go in B.
    pub first: usize,
}

/// Whether moving the rows of B, with which nothing is multiplied meanwhile, takes fewer bytes than gathering the values
/// of blocks and adding their partial rows of C.
pub(super) fn is_cheaper<T: DistScalar>(blocks: &Blocks, rows_of_b: usize, n: usize) -> bool {
    let Blocks { own, others } = blocks;
    if n == 0 || others.is_empty() || others.iter().any(|b| !b.there.columns.is_empty()) {
        return false;
    }
    let row = (n * size_of::<T::Accum>()) as u128;
    let received: usize = others.iter().map(|b| b.columns.len()).sum();
    if u32::try_from(rows_of_b + received).is_err() {
        return false;
    }
    let copied = (2 * rows_of_b + 3 * received) as u128 * row;
    let remote: usize = others.iter().map(|b| b.here.columns.len()).sum();
    let value = size_of::<usize>() + 2 * size_of::<T::Accum>();
    let gathered = (own.columns.len() + remote) as u128 * value as u128;
    let added = others.iter().map(|b| 3 * b.here.rows.len() as u128 * row).sum::<u128>();
    copied <= gathered + added
}

impl<A: CpuScalar> WholeRows<A> {
    /// Plans the rows of `pattern`, whose nonzeros are `blocks`, by `plan`; `rows_of_b` are this rank's.
    ///
    /// # Errors
    /// Those of `plan`, and [`gustav_core::Error::OutOfMemory`].
    pub fn new<I: Index, O: Index>(
        pattern: &Pattern<I, O>,
        blocks: &Blocks,
        (rows_of_b, n): (usize, usize),
        plan: impl Fn(Nonzeros) -> Result<Product<A>>,
    ) -> Result<Self> {
        let mut columns = Buffer::<u32>::zeroed(pattern.nnz(), "column indices")?;
        let Blocks { own, others } = blocks;
        own.positions.iter().zip(&own.columns).for_each(|(at, column)| columns[*at] = *column);
        let mut rows = rows_of_b;
        for block in others {
            let here = &block.here;
            for (at, column) in here.positions.iter().zip(&here.columns) {
                let position = block.columns.partition_point(|c| c < column);
                columns[*at] = (rows + position) as u32;
            }
            rows += block.columns.len();
        }
        let offsets = pattern.offsets();
        let part = |of: RowPart| {
            let pattern = of.pattern(offsets, rows, |at| Ok(columns[at]))?;
            let product = plan(Nonzeros { pattern, positions: None })?;
            Ok(Part { values: of.nonzeros(offsets), of, product })
        };
        let work = |part: &RowPart| part.nonzeros(offsets).len() as u64;
        let parts = row_parts(blocks, pattern.nrows(), LEAST_EARLY, work);
        Ok(WholeRows {
            parts: parts.into_iter().map(part).collect::<Result<_>>()?,
            b: Dense::zeros(rows, n, Layout::RowMajor)?,
            arrivals: Vec::new(),
        })
    }

    /// Says where rows of B are received from.
    pub fn receives(&mut self, arrivals: Vec<Arrival>) {
        self.arrivals = arrivals;
    }

    pub fn arrivals(&self) -> &[Arrival] {
        &self.arrivals
    }

    /// The product that has most nonzeros.
    pub fn largest(&self) -> &Product<A> {
        &self.parts[largest(self.parts.iter().map(|part| part.values.len()))].product
    }

    /// Nonzeros that are multiplied before anything has arrived.
    pub fn early(&self) -> u64 {
        let early = self.parts.iter().filter(|part| part.of.is_early);
        early.map(|part| part.values.len() as u64).sum()
    }

    /// All products.
    pub fn products(&self) -> impl Iterator<Item = &Product<A>> {
        self.parts.iter().map(|part| &part.product)
    }

    /// Bytes of B.
    pub fn bytes(&self) -> usize {
        size_of_val(self.b.data())
    }
}

impl<A: CpuScalar + Arith> WholeRows<A> {
    /// Copies this rank's B and multiplies what needs no other.
    pub fn begin<T: DistScalar<Accum = A>>(
        &mut self,
        values: &[T],
        scratch: &mut [A],
        (b, c): (&DenseView<'_, A>, &mut DenseViewMut<'_, A>),
        beta: A,
    ) -> Result<()> {
        let n = b.ncols();
        copy_all(b, &mut self.b.data_mut()[..b.nrows() * n]);
        let WholeRows { parts, b, .. } = self;
        let mut early = parts.iter_mut().filter(|part| part.of.is_early);
        early.try_for_each(|part| part.execute(values, scratch, (b, c), beta))
    }

    /// Multiplies the rest, once all rows of B are in messages of `exchange`.
    pub fn finish<T: DistScalar<Accum = A>>(
        &mut self,
        exchange: &Exchange,
        values: &[T],
        [scratch, _, widened]: &mut [&mut Buffer<A>; 3],
        c: &mut DenseViewMut<'_, A>,
        beta: A,
    ) -> Result<()> {
        let n = self.b.ncols();
        for Arrival { of_b, positions, first } in &self.arrivals {
            let received = &exchange.incoming::<T>(of_b.message)[of_b.first * n..][..of_b.rows * n];
            let received = rows_of_sums(received, widened);
            let to = &mut self.b.data_mut()[first * n..];
            match positions {
                None => to[..received.len()].copy_from_slice(received),
                Some(positions) => {
                    let rows = to.chunks_exact_mut(n).zip(positions);
                    rows.for_each(|(to, at)| {
                        to.copy_from_slice(&received[*at as usize * n..][..n])
                    });
                }
            }
        }
        let WholeRows { parts, b, .. } = self;
        let mut rest = parts.iter_mut().filter(|part| !part.of.is_early);
        rest.try_for_each(|part| part.execute(values, scratch, (b, c), beta))
    }
}

impl<A: CpuScalar + Arith> Part<A> {
    fn execute<T: DistScalar<Accum = A>>(
        &mut self,
        values: &[T],
        scratch: &mut [A],
        (b, c): (&Dense<A>, &mut DenseViewMut<'_, A>),
        beta: A,
    ) -> Result<()> {
        let (values, c) = (&values[self.values.clone()], rows_mut(c, self.of.rows.clone())?);
        self.product.execute(values, scratch, b.view(), c, beta)
    }
}
