//! What ranks send each other for a product, counted.

mod spgemm;
mod tally;

use std::ops::Range;

use gustav_core::{DType, Error, Index, IndexType, Pattern, PatternView, Result};

use crate::blocks::{self, Counts};
use crate::cover::{self, Prices};
use crate::exchange::Exchange;
use crate::matrix::gather_numbers;
use crate::{Hosts, Partition, Ranks};
use tally::Tally;

/// What ranks send each other of a block: the rows of one rank, the columns of another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Communication {
    /// Whatever mixture of the other two needs the fewest bytes: the cheapest vertex cover of every block.
    #[default]
    Cheapest,
    /// Rows of B that the rank of the rows of C needs.
    RowsOfB,
    /// Partial rows of C that the rank of the rows of B has computed, which needs values of A there.
    PartialRowsOfC,
}

impl Communication {
    /// All of them.
    pub const ALL: [Communication; 3] =
        [Communication::Cheapest, Communication::RowsOfB, Communication::PartialRowsOfC];

    /// The name in explanations.
    pub const fn name(self) -> &'static str {
        match self {
            Communication::Cheapest => "cheapest",
            Communication::RowsOfB => "rows-of-b",
            Communication::PartialRowsOfC => "partial-rows-of-c",
        }
    }
}

/// A product whose communication is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProductShape {
    /// Columns of B and C.
    pub columns: usize,
    /// Type of the values.
    pub dtype: DType,
    /// Whether Aᵀ is multiplied.
    pub transpose_a: bool,
    /// What ranks send.
    pub communication: Communication,
}

impl ProductShape {
    fn row_of_b(&self) -> u64 {
        (self.columns * self.dtype.bytes()) as u64
    }

    fn partial_row_of_c(&self) -> u64 {
        // Partial sums are sent in the type of sums: rounding them would miss the error bound.
        (self.columns * self.dtype.bytes().max(4)) as u64
    }

    fn value(&self) -> u64 {
        self.dtype.bytes() as u64
    }

    /// Which columns of a block are multiplied where its rows are.
    pub(crate) fn choose(&self, rows: usize, columns: usize, edges: &[(u32, u32)]) -> Vec<bool> {
        // Columns are rows of B, or of C for Aᵀ.
        let (column, row) = match self.transpose_a {
            false => (self.row_of_b(), self.partial_row_of_c()),
            true => (self.partial_row_of_c(), self.row_of_b()),
        };
        match self.communication {
            Communication::RowsOfB => vec![!self.transpose_a; columns],
            Communication::PartialRowsOfC => vec![self.transpose_a; columns],
            Communication::Cheapest => {
                let prices = Prices { row, column, nonzero: self.value() };
                cover::columns_to_take(rows, columns, edges, prices)
            }
        }
    }

    /// Bytes that the rank of a block's columns sends to that of its rows, and the reverse, for so many columns and
    /// rows and nonzeros that are here and there.
    pub(crate) fn block_bytes(
        &self,
        columns_here: usize,
        rows_there: usize,
        nonzeros_there: usize,
    ) -> [u64; 2] {
        let BlockBytes { from_columns, from_rows } =
            self.bytes(columns_here, rows_there, nonzeros_there);
        [from_columns, from_rows].map(|bytes| bytes.operands + bytes.partial)
    }

    /// Bytes that are sent for a block of which so many columns and rows and nonzeros are here and there.
    fn bytes(&self, columns_here: usize, rows_there: usize, nonzeros_there: usize) -> BlockBytes {
        let (here, there) = (columns_here as u64, rows_there as u64);
        let values = nonzeros_there as u64 * self.value();
        match self.transpose_a {
            false => BlockBytes {
                from_columns: Bytes {
                    operands: here * self.row_of_b(),
                    partial: there * self.partial_row_of_c(),
                },
                from_rows: Bytes { operands: values, partial: 0 },
            },
            true => BlockBytes {
                from_columns: Bytes::default(),
                from_rows: Bytes {
                    operands: there * self.row_of_b() + values,
                    partial: here * self.partial_row_of_c(),
                },
            },
        }
    }
}

/// Bytes of operands and of partial rows that one rank sends another.
#[derive(Clone, Copy, Debug, Default)]
struct Bytes {
    operands: u64,
    partial: u64,
}

/// Bytes of a block from the rank of its columns, and from that of its rows.
struct BlockBytes {
    from_columns: Bytes,
    from_rows: Bytes,
}

impl BlockBytes {
    fn sum(&self) -> u64 {
        [self.from_columns, self.from_rows].iter().map(|b| b.operands + b.partial).sum()
    }
}

/// What one rank does in one execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RankVolume {
    /// Bytes that it sends.
    pub sent_bytes: u64,
    /// Bytes that it receives.
    pub received_bytes: u64,
    /// Messages that it sends, before long ones are split.
    pub sent_messages: u64,
    /// Nonzeros that it multiplies.
    pub nonzeros: u64,
    /// What of it goes from one host to another.
    pub network: Traffic,
}

/// Messages of one rank, in one execution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes that it sends.
    pub sent_bytes: u64,
    /// Bytes that it receives.
    pub received_bytes: u64,
    /// Messages that it sends, before long ones are split.
    pub sent_messages: u64,
}

impl Traffic {
    fn add(&mut self, other: &Traffic) {
        self.sent_bytes += other.sent_bytes;
        self.received_bytes += other.received_bytes;
        self.sent_messages += other.sent_messages;
    }
}

/// What all ranks do in one execution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Volume {
    /// By rank.
    pub ranks: Vec<RankVolume>,
    /// Bytes in all if only rows of B were sent.
    pub rows_of_b_bytes: u64,
    /// Bytes in all if only partial rows of C were sent, with the values of A that these need.
    pub partial_rows_bytes: u64,
    /// Bytes in all if every rank sent all its rows of B to all others.
    pub oblivious_bytes: u64,
    /// Bytes that go from one host to another if everything were sent directly.
    pub direct_network_bytes: u64,
}

impl Volume {
    /// The volume of a product of a whole pattern with so many ranks as `rows` has, counted rank by rank without
    /// running it: just what a plan on these ranks sends if each is on a host of its own. `columns` says which rank
    /// has which column.
    ///
    /// # Errors
    /// [`Error::Shape`] when a partition does not fit, [`Error::OutOfMemory`], [`Error::Unsupported`] when a rank has
    /// more than 2³² rows or columns.
    pub fn of<I: Index, O: Index>(
        pattern: &PatternView<'_, I, O>,
        rows: &Partition,
        columns: &Partition,
        shape: ProductShape,
    ) -> Result<Self> {
        Self::on_hosts(pattern, rows, columns, &Hosts::apart(rows.ranks()), shape)
    }

    /// The same for ranks that share hosts, with two levels, as plans have that are not deterministic.
    ///
    /// # Errors
    /// As [`Volume::of`].
    pub fn on_hosts<I: Index, O: Index>(
        pattern: &PatternView<'_, I, O>,
        rows: &Partition,
        columns: &Partition,
        hosts: &Hosts,
        shape: ProductShape,
    ) -> Result<Self> {
        check_shape((pattern.nrows(), pattern.ncols()), (rows.rows(), columns.rows()))?;
        Tally::count(rows, columns, hosts, shape, |rank, choose| {
            blocks::count(pattern, rows.range(rank), columns, rank, choose)
        })
    }

    /// The same for ranks that share hosts, of a pattern that is never whole: `part` gives the rows of one rank, over
    /// all columns. Memory is that of the largest part, some 20 bytes for each of its nonzeros and some 30 for each of
    /// the block that is counted; with `hosts` that several ranks share, also the numbers of rows that one host needs
    /// or sums.
    ///
    /// # Errors
    /// As [`Volume::of`], and those of `part`.
    pub fn of_parts<I: Index, O: Index>(
        rows: &Partition,
        columns: &Partition,
        hosts: &Hosts,
        shape: ProductShape,
        mut part: impl FnMut(Range<usize>) -> Result<Pattern<I, O>>,
    ) -> Result<Self> {
        Tally::count(rows, columns, hosts, shape, |rank, choose| {
            let (range, part) = (rows.range(rank), part(rows.range(rank))?);
            check_shape((part.nrows(), part.ncols()), (range.len(), columns.rows()))?;
            blocks::count(&part.view(), 0..part.nrows(), columns, rank, choose)
        })
    }

    /// Adds what ranks send in another exchange of the same execution.
    pub(crate) fn add(&mut self, other: &Volume) {
        for (mine, other) in self.ranks.iter_mut().zip(&other.ranks) {
            mine.sent_bytes += other.sent_bytes;
            mine.received_bytes += other.received_bytes;
            mine.sent_messages += other.sent_messages;
            mine.network.add(&other.network);
        }
        self.direct_network_bytes += other.network_bytes();
    }

    /// Bytes sent by all ranks.
    pub fn bytes(&self) -> u64 {
        self.ranks.iter().map(|r| r.sent_bytes).sum()
    }

    /// Bytes that go from one host to another.
    pub fn network_bytes(&self) -> u64 {
        self.ranks.iter().map(|r| r.network.sent_bytes).sum()
    }

    /// Messages sent by all ranks.
    pub fn messages(&self) -> u64 {
        self.ranks.iter().map(|r| r.sent_messages).sum()
    }

    /// The most nonzeros that a rank multiplies ÷ their mean; 1 when there are none.
    pub fn imbalance(&self) -> f64 {
        ratio(self.ranks.iter().map(|r| r.nonzeros))
    }

    /// The most bytes that a rank sends ÷ their mean; 1 when there are none.
    pub fn communication_imbalance(&self) -> f64 {
        ratio(self.ranks.iter().map(|r| r.sent_bytes))
    }
}

fn check_shape(found: (usize, usize), expected: (usize, usize)) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    let words = |(rows, columns): (usize, usize)| format!("{rows} rows and {columns} columns");
    Err(Error::Shape {
        op: "volume of a partition",
        expected: words(expected),
        found: words(found),
    })
}

fn check_ranks(rows: &Partition, columns: &Partition, hosts: &Hosts) -> Result<()> {
    let ranks = rows.ranks();
    if (columns.ranks(), hosts.ranks()) == (ranks, ranks) {
        return Ok(());
    }
    Err(Error::Shape {
        op: "volume of a partition",
        expected: format!("columns and hosts of {ranks} ranks, as rows are"),
        found: format!("columns of {} ranks, hosts of {}", columns.ranks(), hosts.ranks()),
    })
}

/// Counts bytes from one rank to another.
fn send(volume: &mut Volume, hosts: &Hosts, from: usize, to: usize, bytes: u64) {
    volume.ranks[from].sent_bytes += bytes;
    volume.ranks[to].received_bytes += bytes;
    if hosts.differ(from, to) {
        volume.ranks[from].network.sent_bytes += bytes;
        volume.ranks[to].network.received_bytes += bytes;
    }
}

/// Counts a message from one rank to another.
fn count_message(volume: &mut Volume, hosts: &Hosts, from: usize, to: usize) {
    let sender = &mut volume.ranks[from];
    sender.sent_messages += 1;
    sender.network.sent_messages += u64::from(hosts.differ(from, to));
}

/// Largest ÷ mean.
fn ratio(numbers: impl ExactSizeIterator<Item = u64> + Clone) -> f64 {
    let count = numbers.len() as f64;
    match numbers.clone().sum::<u64>() {
        0 => 1.0,
        sum => numbers.max().unwrap_or(0) as f64 * count / sum as f64,
    }
}

/// Bytes of a block if only one of the two were sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alternatives {
    pub rows_of_b: u64,
    pub partial_rows: u64,
}

impl Alternatives {
    pub fn of(counts: &Counts, shape: &ProductShape) -> Self {
        let all_here = shape.bytes(counts.columns, 0, 0).sum();
        let all_there = shape.bytes(0, counts.rows, counts.nonzeros).sum();
        match shape.transpose_a {
            false => Alternatives { rows_of_b: all_here, partial_rows: all_there },
            true => Alternatives { rows_of_b: all_there, partial_rows: all_here },
        }
    }
}

/// What one rank counts when it makes a plan.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counted {
    pub sent_bytes: u64,
    pub received_bytes: u64,
    pub sent_messages: u64,
    pub nonzeros: u64,
    pub rows_of_b_bytes: u64,
    pub partial_rows_bytes: u64,
    pub network: Traffic,
    pub direct_network_bytes: u64,
}

impl Counted {
    /// Adds what a block of this rank's rows would need, with columns on another host or not.
    pub fn add_block(&mut self, counts: &Counts, shape: &ProductShape, other_host: bool) {
        let Alternatives { rows_of_b, partial_rows } = Alternatives::of(counts, shape);
        self.rows_of_b_bytes += rows_of_b;
        self.partial_rows_bytes += partial_rows;
        if other_host {
            let (here, there) = (counts.columns_here, counts.rows_there);
            self.direct_network_bytes += shape.bytes(here, there, counts.nonzeros_there).sum();
        }
    }

    /// Adds the messages of `exchange`, which `rank` sends and receives.
    pub fn add_messages(&mut self, exchange: &Exchange, rank: usize, hosts: &Hosts) {
        let Traffic { sent_bytes, received_bytes, sent_messages } = exchange.traffic(|_| true);
        self.sent_bytes += sent_bytes;
        self.sent_messages += sent_messages;
        self.received_bytes += received_bytes;
        self.network.add(&exchange.traffic(|peer| hosts.differ(rank, peer)));
    }
}

impl Volume {
    /// What the ranks counted. Collective.
    ///
    /// # Errors
    /// As all calls of a [`Communicator`](crate::Communicator).
    pub(crate) fn gather(ranks: &Ranks, mine: Counted, oblivious_bytes: u64) -> Result<Self> {
        let Counted { sent_bytes, received_bytes, sent_messages, nonzeros, .. } = mine;
        let sums = [mine.rows_of_b_bytes, mine.partial_rows_bytes, mine.direct_network_bytes];
        let Traffic { sent_bytes: sent, received_bytes: received, sent_messages: messages } =
            mine.network;
        let numbers =
            [sent_bytes, received_bytes, sent_messages, nonzeros, sent, received, messages];
        let numbers = gather_numbers(ranks, numbers.map(|n| n as usize))?;
        let sums = gather_numbers(ranks, sums.map(|n| n as usize))?;
        let sum = |k: usize| sums.iter().map(|n| n[k] as u64).sum();
        let of_rank = |n: &[usize; 7]| RankVolume {
            sent_bytes: n[0] as u64,
            received_bytes: n[1] as u64,
            sent_messages: n[2] as u64,
            nonzeros: n[3] as u64,
            network: Traffic {
                sent_bytes: n[4] as u64,
                received_bytes: n[5] as u64,
                sent_messages: n[6] as u64,
            },
        };
        Ok(Volume {
            ranks: numbers.iter().map(of_rank).collect(),
            rows_of_b_bytes: sum(0),
            partial_rows_bytes: sum(1),
            direct_network_bytes: sum(2),
            oblivious_bytes,
        })
    }
}

/// Refuses dense matrices of so many columns that the bytes of all their rows, sent to all ranks, are no number of 64
/// bits.
pub(crate) fn check_countable(
    rows: usize,
    cols: usize,
    columns: usize,
    ranks: usize,
) -> Result<()> {
    // Values and sums have eight bytes at most.
    let rows = (rows as u128 + cols as u128).saturating_mul(8 * ranks as u128);
    let need = rows.saturating_mul(columns as u128);
    match u64::try_from(need.max(8 * columns as u128)) {
        Ok(_) => Ok(()),
        Err(_) => {
            let what = "bytes that ranks send";
            Err(Error::Overflow { what, need, index_type: IndexType::U64 })
        }
    }
}

/// Bytes if every rank sent its rows of B to all others.
pub(crate) fn oblivious(rows_of_b: &Partition, shape: &ProductShape) -> u64 {
    rows_of_b.rows() as u64 * (rows_of_b.ranks() as u64 - 1) * shape.row_of_b()
}
