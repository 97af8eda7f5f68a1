//! How the nonzeros of a team's rows are divided among its members.

use std::ops::Range;

use gustav_core::{Error, Index, Pattern, Result};

use crate::DistPattern;
use crate::exchange::all_to_all;

/// What one member of a team multiplies.
pub(super) struct TeamPart<I: Index> {
    /// Its nonzeros: those of its rows, then those of rows of other members.
    pub pattern: Pattern<I, u64>,
    /// Positions of the values of its own nonzeros among those of the rank.
    pub own: Vec<usize>,
    /// What is sent between it and other ranks, by rank.
    pub members: Vec<Member>,
}

/// What is sent between two members of a team; what is empty is not sent.
#[derive(Default)]
pub(super) struct Member {
    /// Positions of the values of A that are sent there.
    pub send_values: Vec<usize>,
    /// The rows of C of which partial rows are sent back for them.
    pub receive_sums: Vec<u32>,
    /// Where the values of A that are received are among those of the part.
    pub receive_values: Range<usize>,
    /// Where the partial rows of C that are sent back for them are among the rows of the part.
    pub send_sums: Range<usize>,
}

/// Nonzeros of this rank's rows that another member multiplies.
#[derive(Clone, Default)]
struct Sent {
    /// Every row, and the number of its nonzeros.
    rows: Vec<[u64; 2]>,
    columns: Vec<u64>,
    /// Of the values, among those of the rank.
    positions: Vec<usize>,
}

/// The member of its team of `copies` ranks that multiplies a nonzero of `rank` in this column.
fn member<I: Index, O: Index>(pattern: &DistPattern<I, O>, copies: usize, column: I) -> usize {
    let (rank, other) =
        (pattern.ranks().rank(), pattern.columns().owner(column.to_usize()) / copies);
    match rank / copies == other {
        true => rank,
        false => rank / copies * copies + other % copies,
    }
}

/// How much a member of a team multiplies and sends, counted without memory for it.
pub(super) struct TeamCounts {
    /// Nonzeros and rows of its part.
    pub nonzeros: usize,
    pub rows: usize,
    /// Of its own, values of A that other members multiply, and rows that have such.
    sent: [usize; 2],
    /// The same of other members, that it multiplies.
    received: [usize; 2],
}

impl TeamCounts {
    /// Those of this rank in teams of `copies`. Collective.
    ///
    /// # Errors
    /// As all calls of a [`Communicator`](crate::Communicator).
    pub fn new<I: Index, O: Index>(pattern: &DistPattern<I, O>, copies: usize) -> Result<Self> {
        let (ranks, local) = (pattern.ranks(), pattern.local().view());
        let mut values = vec![0_u64; ranks.size()];
        let (mut rows, mut last) = (values.clone(), vec![usize::MAX; ranks.size()]);
        for row in 0..local.nrows() {
            for column in &local.indices()[local.row_range(row)] {
                let to = member(pattern, copies, *column);
                values[to] += 1;
                rows[to] += u64::from(std::mem::replace(&mut last[to], row) != row);
            }
        }
        let own = std::mem::take(&mut values[ranks.rank()]) as usize;
        rows[ranks.rank()] = 0;
        let total = |counts: &[u64]| counts.iter().sum::<u64>() as usize;
        let there = |sent: &[u64]| {
            let mut received = vec![0; ranks.size()];
            ranks.communicator().all_to_all(sent, &mut received)?;
            Ok::<_, Error>(total(&received))
        };
        let received = [there(&values)?, there(&rows)?];
        Ok(TeamCounts {
            nonzeros: own + received[0],
            rows: local.nrows() + received[1],
            sent: [total(&values), total(&rows)],
            received,
        })
    }

    /// Bytes that it sends within its team, where a value and a row of C have so many, and that it receives.
    pub fn bytes(&self, of_value: usize, of_row: usize) -> [usize; 2] {
        // Values of A go one way, and partial rows of C back.
        let bytes = |values: usize, rows: usize| values * of_value + rows * of_row;
        [bytes(self.sent[0], self.received[1]), bytes(self.received[0], self.sent[1])]
    }

    /// Bytes that making its part takes besides the part.
    pub fn making(&self) -> usize {
        (self.sent[0] + self.received[0]) * size_of::<[u64; 2]>()
    }
}

impl<I: Index> TeamPart<I> {
    /// The part of this rank in its team of `copies` consecutive ranks. Collective; what this rank alone fails in, it
    /// alone knows.
    ///
    /// # Errors
    /// As [`Pattern::new`], and as all calls of a [`Communicator`](crate::Communicator).
    pub fn new<O: Index>(pattern: &DistPattern<I, O>, copies: usize) -> Result<Self> {
        let (ranks, local) = (pattern.ranks(), pattern.local().view());
        let (mut offsets, mut columns, mut own) = (vec![0_u64], Vec::new(), Vec::new());
        let mut sent = vec![Sent::default(); ranks.size()];
        for row in 0..local.nrows() {
            for at in local.row_range(row) {
                let column = local.indices()[at];
                let member = member(pattern, copies, column);
                if member == ranks.rank() {
                    columns.push(column);
                    own.push(at);
                    continue;
                }
                let Sent { rows, columns, positions } = &mut sent[member];
                match rows.last_mut() {
                    Some([last, count]) if *last == row as u64 => *count += 1,
                    _ => rows.push([row as u64, 1]),
                }
                columns.push(column.to_usize() as u64);
                positions.push(at);
            }
            offsets.push(own.len() as u64);
        }
        let rows: Vec<&[[u64; 2]]> = sent.iter().map(|to| &to.rows[..]).collect();
        let rows = all_to_all(ranks, &rows)?;
        let of_columns: Vec<&[u64]> = sent.iter().map(|to| &to.columns[..]).collect();
        let of_columns = all_to_all(ranks, &of_columns)?;

        let mut members: Vec<Member> = sent.iter().map(|_| Member::default()).collect();
        for ((rows, of_columns), member) in rows.iter().zip(&of_columns).zip(&mut members) {
            let (first_value, first_row) = (columns.len(), offsets.len() - 1);
            columns.extend(of_columns.iter().map(|column| I::truncate(*column as usize)));
            for [_, count] in rows {
                offsets.push(offsets[offsets.len() - 1] + count);
            }
            member.receive_values = first_value..columns.len();
            member.send_sums = first_row..offsets.len() - 1;
        }
        for (to, member) in sent.into_iter().zip(&mut members) {
            member.receive_sums = to.rows.iter().map(|[row, _]| *row as u32).collect();
            member.send_values = to.positions;
        }
        let pattern = Pattern::new(offsets.len() - 1, pattern.ncols(), offsets, columns)?;
        Ok(TeamPart { pattern, own, members })
    }
}
