//! How the nonzeros of a team's rows are divided among its members.

use std::ops::Range;

use gustav_core::{Index, Pattern, Result};

use crate::DistPattern;
use crate::communicator::Tag;
use crate::exchange::{Exchange, all_to_all};
use crate::local::DistScalar;
use crate::positions::Positions;

/// What one member of a team multiplies.
pub(super) struct TeamPart<I: Index> {
    /// Its nonzeros: those of its rows, then those of rows of other members.
    pub pattern: Pattern<I, u64>,
    /// Positions of the values of its own nonzeros among those of the rank.
    pub own: Vec<usize>,
    /// What is sent between it and other ranks, by rank.
    pub members: Vec<Member>,
}

/// What is sent between two members of a team. Messages are numbered by [`Member::add`].
#[derive(Default)]
pub(super) struct Member {
    /// The message and the positions of values of A that are sent there.
    pub send_values: Option<(usize, Positions)>,
    /// The message of partial rows of C that are sent back for them, and these rows.
    pub receive_sums: Option<(usize, Vec<u32>)>,
    /// The message of values of A that are received, and where they are among those of the part.
    pub receive_values: Option<(usize, Range<usize>)>,
    /// The message of partial rows of C that are sent back for them, and where they are among the rows of the part.
    pub send_sums: Option<(usize, Range<usize>)>,
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

impl<I: Index> TeamPart<I> {
    /// The part of this rank in its team of `copies` consecutive ranks. Collective.
    ///
    /// # Errors
    /// On every rank, as [`Pattern::new`], and as all calls of a [`Communicator`](crate::Communicator).
    pub fn new<O: Index>(pattern: &DistPattern<I, O>, copies: usize) -> Result<Self> {
        let (ranks, local) = (pattern.ranks(), pattern.local().view());
        let team = ranks.rank() / copies;
        let (mut offsets, mut columns, mut own) = (vec![0_u64], Vec::new(), Vec::new());
        let mut sent = vec![Sent::default(); ranks.size()];
        for row in 0..local.nrows() {
            for at in local.row_range(row) {
                let column = local.indices()[at];
                let other = pattern.columns().owner(column.to_usize()) / copies;
                let member = team * copies + other % copies;
                if other == team || member == ranks.rank() {
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
            if !of_columns.is_empty() {
                member.receive_values = Some((0, first_value..columns.len()));
                member.send_sums = Some((0, first_row..offsets.len() - 1));
            }
        }
        for (to, member) in sent.into_iter().zip(&mut members) {
            if !to.positions.is_empty() {
                member.send_values = Some((0, Positions::new(to.positions)));
                let rows = to.rows.iter().map(|[row, _]| *row as u32);
                member.receive_sums = Some((0, rows.collect()));
            }
        }
        let made = Pattern::new(offsets.len() - 1, pattern.ncols(), offsets, columns);
        Ok(TeamPart { pattern: ranks.together(made)?, own, members })
    }
}

impl Member {
    /// Adds the messages to and from member `q`, of `n` columns.
    ///
    /// # Errors
    /// [`gustav_core::Error::OutOfMemory`].
    pub fn add<T: DistScalar>(
        &mut self,
        q: usize,
        n: usize,
        exchange: &mut Exchange,
    ) -> Result<()> {
        if let Some((message, positions)) = &mut self.send_values {
            *message = exchange.add_outgoing::<T>(q, Tag::Values, positions.len())?;
        }
        if let Some((message, range)) = &mut self.receive_values {
            *message = exchange.add_incoming::<T>(q, Tag::Values, range.len())?;
        }
        if n == 0 {
            (self.send_sums, self.receive_sums) = (None, None);
        }
        if let Some((message, rows)) = &mut self.send_sums {
            *message = exchange.add_outgoing::<T>(q, Tag::Sums, rows.len() * n)?;
        }
        if let Some((message, rows)) = &mut self.receive_sums {
            *message = exchange.add_incoming::<T>(q, Tag::Sums, rows.len() * n)?;
        }
        Ok(())
    }

    /// Numbers of values of A and of partial rows of C that are sent, and the same received.
    pub fn counts(&self) -> ([usize; 2], [usize; 2]) {
        let sent_values = self.send_values.as_ref().map_or(0, |(_, positions)| positions.len());
        let received_values = self.receive_values.as_ref().map_or(0, |(_, range)| range.len());
        let sent_rows = self.send_sums.as_ref().map_or(0, |(_, range)| range.len());
        let received_rows = self.receive_sums.as_ref().map_or(0, |(_, rows)| rows.len());
        ([sent_values, sent_rows], [received_values, received_rows])
    }
}
