//! What ranks send each other for a product, counted.

use std::collections::HashSet;

use gustav_core::{DType, Index, PatternView, Result};

use crate::blocks::{Block, Blocks, Counts};
use crate::cover::{self, Prices};
use crate::matrix::gather_numbers;
use crate::{Partition, Ranks};

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
        // Partial sums travel in the type of sums: rounding them would miss the error bound.
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

    /// Bytes that cross for a block of which so many columns and rows and nonzeros are here and there.
    fn bytes(&self, columns_here: usize, rows_there: usize, nonzeros_there: usize) -> Crossing {
        let (here, there) = (columns_here as u64, rows_there as u64);
        let values = nonzeros_there as u64 * self.value();
        match self.transpose_a {
            false => Crossing {
                from_columns: Bytes {
                    operands: here * self.row_of_b(),
                    partial: there * self.partial_row_of_c(),
                },
                from_rows: Bytes { operands: values, partial: 0 },
            },
            true => Crossing {
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
struct Crossing {
    from_columns: Bytes,
    from_rows: Bytes,
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
}

impl Volume {
    /// The volume of a product of a whole pattern with so many ranks as `rows` has, counted rank by rank without
    /// running it: just what a plan on these ranks sends. `columns` says which rank has which column.
    ///
    /// # Errors
    /// [`Error::Shape`](gustav_core::Error::Shape) when a partition does not fit,
    /// [`Error::OutOfMemory`](gustav_core::Error::OutOfMemory),
    /// [`Error::Unsupported`](gustav_core::Error::Unsupported) when a rank has more than 2³² rows or columns.
    pub fn of<I: Index, O: Index>(
        pattern: &PatternView<'_, I, O>,
        rows: &Partition,
        columns: &Partition,
        shape: ProductShape,
    ) -> Result<Self> {
        let (found, expected) = (
            (rows.rows(), columns.rows(), rows.ranks()),
            (pattern.nrows(), pattern.ncols(), columns.ranks()),
        );
        if found != expected {
            let words = |(r, c, p): (usize, usize, usize)| {
                format!("{r} rows and {c} columns over {p} ranks")
            };
            let op = "volume of a partition";
            return Err(gustav_core::Error::Shape {
                op,
                expected: words(expected),
                found: words(found),
            });
        }
        let mut volume =
            Volume { ranks: vec![RankVolume::default(); rows.ranks()], ..Volume::default() };
        // Operands of two blocks may go from one rank to another; they are one message.
        let mut operands = HashSet::new();
        for rank in 0..rows.ranks() {
            let choose = |r: usize, c: usize, e: &[(u32, u32)]| shape.choose(r, c, e);
            let blocks = Blocks::new(pattern, rows.range(rank), columns, rank, &choose)?;
            volume.ranks[rank].nonzeros += blocks.own.columns.len() as u64;
            for Block { peer, counts, .. } in &blocks.others {
                for [from, to] in volume.add_block(rank, *peer, counts, &shape) {
                    operands.insert([from, to]);
                }
            }
        }
        operands.iter().for_each(|[from, _]| volume.ranks[*from].sent_messages += 1);
        let of_b = if shape.transpose_a { rows } else { columns };
        volume.oblivious_bytes = oblivious(of_b, &shape);
        Ok(volume)
    }

    /// Adds a block of the rows of `rank` and the columns of `peer`, and returns from where to where operands go.
    fn add_block(
        &mut self,
        rank: usize,
        peer: usize,
        counts: &Counts,
        shape: &ProductShape,
    ) -> impl Iterator<Item = [usize; 2]> + use<> {
        let Alternatives { rows_of_b, partial_rows } = Alternatives::of(counts, shape);
        self.rows_of_b_bytes += rows_of_b;
        self.partial_rows_bytes += partial_rows;
        let crossing = shape.bytes(counts.columns_here, counts.rows_there, counts.nonzeros_there);
        self.ranks[rank].nonzeros += (counts.nonzeros - counts.nonzeros_there) as u64;
        self.ranks[peer].nonzeros += counts.nonzeros_there as u64;
        let directions = [(peer, rank, crossing.from_columns), (rank, peer, crossing.from_rows)];
        for (from, to, bytes) in &directions {
            self.ranks[*from].sent_bytes += bytes.operands + bytes.partial;
            self.ranks[*to].received_bytes += bytes.operands + bytes.partial;
            self.ranks[*from].sent_messages += u64::from(bytes.partial > 0);
        }
        let sent =
            |(from, to, bytes): (usize, usize, Bytes)| (bytes.operands > 0).then_some([from, to]);
        directions.into_iter().filter_map(sent)
    }

    /// Bytes sent by all ranks.
    pub fn bytes(&self) -> u64 {
        self.ranks.iter().map(|r| r.sent_bytes).sum()
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
        let sum = |c: Crossing| {
            [c.from_columns, c.from_rows].iter().map(|b| b.operands + b.partial).sum::<u64>()
        };
        let all_here = sum(shape.bytes(counts.columns, 0, 0));
        let all_there = sum(shape.bytes(0, counts.rows, counts.nonzeros));
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
}

impl Counted {
    /// Adds what a block of this rank's rows would need.
    pub fn add_block(&mut self, counts: &Counts, shape: &ProductShape) {
        let Alternatives { rows_of_b, partial_rows } = Alternatives::of(counts, shape);
        self.rows_of_b_bytes += rows_of_b;
        self.partial_rows_bytes += partial_rows;
    }
}

impl Volume {
    /// What the ranks counted. Collective.
    ///
    /// # Errors
    /// As all calls of a [`Communicator`](crate::Communicator).
    pub(crate) fn gather(
        ranks: &Ranks,
        mine: Counted,
        rows_of_b: &Partition,
        shape: &ProductShape,
    ) -> Result<Self> {
        let Counted { sent_bytes, received_bytes, sent_messages, nonzeros, .. } = mine;
        let alternatives = [mine.rows_of_b_bytes, mine.partial_rows_bytes];
        let numbers = [sent_bytes, received_bytes, sent_messages, nonzeros];
        let numbers = gather_numbers(ranks, numbers.map(|n| n as usize))?;
        let alternatives = gather_numbers(ranks, alternatives.map(|n| n as usize))?;
        let of_rank = |n: &[usize; 4]| RankVolume {
            sent_bytes: n[0] as u64,
            received_bytes: n[1] as u64,
            sent_messages: n[2] as u64,
            nonzeros: n[3] as u64,
        };
        Ok(Volume {
            ranks: numbers.iter().map(of_rank).collect(),
            rows_of_b_bytes: alternatives.iter().map(|n| n[0] as u64).sum(),
            partial_rows_bytes: alternatives.iter().map(|n| n[1] as u64).sum(),
            oblivious_bytes: oblivious(rows_of_b, shape),
        })
    }
}

/// Bytes if every rank sent its rows of B to all others.
pub(crate) fn oblivious(rows_of_b: &Partition, shape: &ProductShape) -> u64 {
    rows_of_b.rows() as u64 * (rows_of_b.ranks() as u64 - 1) * shape.row_of_b()
}
