//! Whole rows of A in one product, with rows of B that are received after this rank's own.

use std::collections::BTreeMap;
use std::ops::Range;

use gustav_core::{Arith, Buffer, Dense, DenseView, DenseViewMut, Layout, Result};
use gustav_cpu::CpuScalar;

use crate::any_pattern::AnyDistPattern;
use crate::blocks::Blocks;
use crate::exchange::Exchange;
use crate::fetch::Arrival;
use crate::local::{DistScalar, Nonzeros, Product, copy_all, rows_mut, rows_of_sums};
use crate::row_parts::{RowPart, largest, nonzeros_of, row_parts};
use crate::waiting::{ByMessage, Waiting};

// Fewest nonzeros that are worth a product of their own while messages are in flight.
const LEAST_EARLY: u64 = 1 << 14;

/// The product of this rank's rows of A, whoever has their columns. Values stay where they are, unlike those of blocks,
/// which are gathered first; B is copied instead, and rows are multiplied once all rows of B that they need have
/// arrived.
pub(super) struct WholeRows<A: CpuScalar> {
    parts: Vec<Part<A>>,
    /// This rank's rows of B, then those that are received.
    b: Dense<A>,
    /// Rows of B that are received, and where they go in B.
    arrivals: ByMessage<(usize, Arrival)>,
    /// The parts that wait for messages.
    waiting: Waiting,
}

/// Consecutive rows of A.
struct Part<A: CpuScalar> {
    of: RowPart,
    values: Range<usize>,
    product: Product<A>,
}

/// Whether moving the rows of B, with which nothing is multiplied meanwhile, takes fewer bytes than gathering the
/// values of blocks and adding their partial rows of C.
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
    pub fn new(
        pattern: &AnyDistPattern<'_>,
        blocks: &Blocks,
        (rows_of_b, n): (usize, usize),
        plan: impl Fn(Nonzeros) -> Result<Product<A>>,
    ) -> Result<Self> {
        let mut columns = Buffer::<u32>::zeroed(pattern.local.nnz(), "column indices")?;
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
        let offsets = &pattern.offsets()?[..];
        let part = |of: RowPart| {
            let pattern = of.pattern(offsets, rows, |at| Ok(columns[at]))?;
            let product = plan(Nonzeros { pattern, positions: None })?;
            Ok(Part { values: of.nonzeros(offsets), of, product })
        };
        let work = |rows: &Range<usize>| nonzeros_of(rows, offsets).len() as u64;
        let parts = row_parts(blocks, pattern.local.nrows(), LEAST_EARLY, &work);
        Ok(WholeRows {
            parts: parts.into_iter().map(part).collect::<Result<_>>()?,
            b: Dense::zeros(rows, n, Layout::RowMajor)?,
            arrivals: ByMessage::default(),
            waiting: Waiting::default(),
        })
    }

    /// Says where rows of B are received: the rank that has them, where they go in B, and their message.
    pub fn receives(&mut self, arrivals: Vec<(usize, usize, Arrival)>) {
        let messages: BTreeMap<usize, usize> =
            arrivals.iter().map(|(of, _, arrival)| (*of, arrival.section.message)).collect();
        let needs = |part: &Part<A>| {
            part.of.needs.iter().filter_map(|of| messages.get(of).copied()).collect()
        };
        self.waiting = Waiting::new(self.parts.iter().map(needs));
        let by_message = |(_, first, arrival): (usize, usize, Arrival)| {
            (arrival.section.message, (first, arrival))
        };
        self.arrivals = ByMessage::new(arrivals.into_iter().map(by_message).collect());
    }

    /// Rows of B that are received together, at most.
    pub fn most_received(&self) -> usize {
        self.arrivals.values().map(|(_, arrival)| arrival.section.rows).max().unwrap_or(0)
    }

    /// The product that has most nonzeros.
    pub fn largest(&self) -> &Product<A> {
        &self.parts[largest(self.parts.iter().map(|part| part.values.len()))].product
    }

    /// Nonzeros that are multiplied before anything has arrived.
    pub fn early(&self) -> u64 {
        self.waiting.early().map(|part| self.parts[part].values.len() as u64).sum()
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
        self.waiting.begin();
        let WholeRows { parts, b, waiting, .. } = self;
        waiting.early().try_for_each(|part| parts[part].execute(values, scratch, (b, c), beta))
    }

    /// Multiplies what waited for incoming `message` of `exchange` alone.
    pub fn arrived<T: DistScalar<Accum = A>>(
        &mut self,
        exchange: &Exchange,
        message: usize,
        values: &[T],
        [scratch, _, widened]: &mut [&mut Buffer<A>; 3],
        (c, beta): (&mut DenseViewMut<'_, A>, A),
    ) -> Result<()> {
        let WholeRows { parts, b, arrivals, waiting } = self;
        let n = b.ncols();
        for (_, (first, arrival)) in arrivals.of(message) {
            let section = &exchange.incoming::<T>(message)[arrival.range(n)];
            let section = rows_of_sums(section, widened);
            arrival.copy(section, &mut b.data_mut()[first * n..], n);
        }
        waiting
            .arrived(message)
            .try_for_each(|part| parts[part].execute(values, scratch, (b, c), beta))
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
