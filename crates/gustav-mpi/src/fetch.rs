//! Rows that a rank gets from others, directly or through a rank of its host, and those that it sends for it.

use std::collections::BTreeMap;
use std::ops::Range;

use gustav_core::Result;

use crate::communicator::{Communicator, Tag};
use crate::exchange::Exchange;
use crate::hosts::Relay;
use crate::routes::{RelayedRows, Routes};
use crate::waiting::Waiting;

/// Rows in an incoming message.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    pub message: usize,
    /// The first row.
    pub first: usize,
    pub rows: usize,
}

impl Section {
    /// Where it is in its message, if its rows have `width` values each.
    pub fn range(&self, width: usize) -> Range<usize> {
        self.first * width..(self.first + self.rows) * width
    }
}

/// The rows that a rank needs of one other.
#[derive(Debug)]
pub struct Arrival {
    /// Where they are received.
    pub section: Section,
    /// Positions of the rows among those of the section; `None` for all of them.
    pub positions: Option<Vec<u32>>,
}

impl Arrival {
    /// Number of the rows.
    pub fn rows(&self) -> usize {
        self.positions.as_ref().map_or(self.section.rows, Vec::len)
    }

    /// Where the section is in its message, if its rows have `width` values each.
    pub fn range(&self, width: usize) -> Range<usize> {
        self.section.range(width)
    }

    /// Copies the rows, of `width` values each, to `to`: `section` is where [`Arrival::range`] says.
    pub fn copy<T: Copy>(&self, section: &[T], to: &mut [T], width: usize) {
        match &self.positions {
            None => to[..section.len()].copy_from_slice(section),
            Some(positions) => copy_rows(section, positions, to, width),
        }
    }
}

/// Messages of rows that go through another rank than the one that has them.
pub struct Routed {
    /// Number of incoming messages whose rows this rank forwards: the first ones.
    pub to_relay: usize,
    /// Number of incoming messages of rows that were forwarded: those after them.
    pub forwarded: usize,
    pub forwards: Forwards,
    /// Where rows are received, by the rank that has them.
    pub sections: BTreeMap<usize, Section>,
}

impl Routed {
    /// Adds the messages to `exchange`: rank `rank` needs so many rows, of `width` values each, of each rank in
    /// `needed`.
    ///
    /// # Errors
    /// [`gustav_core::Error::OutOfMemory`].
    pub fn new<T>(
        exchange: &mut Exchange,
        routes: &Routes,
        rank: usize,
        needed: impl Iterator<Item = (usize, usize)>,
        width: usize,
    ) -> Result<Self> {
        let mut sources: BTreeMap<usize, Vec<(usize, Vec<u32>)>> = BTreeMap::new();
        let mut sections = BTreeMap::new();
        for RelayedRows { from, rows, requested } in &routes.relayed {
            let message = exchange.add_incoming::<T>(*from, Tag::ToRelay, rows * width)?;
            exchange.set_urgent(message);
            sections.insert(*from, Section { message, first: 0, rows: *rows });
            for (q, positions) in requested.iter().filter(|(q, _)| *q != rank) {
                sources.entry(*q).or_default().push((message, positions.clone()));
            }
        }
        // Rows of several ranks that one relay forwards are one message, in the order of those ranks.
        let mut by_relay: BTreeMap<usize, (usize, Vec<(usize, usize, usize)>)> = BTreeMap::new();
        for (peer, rows) in needed {
            let through = routes.through[peer];
            if through != peer && through != rank {
                let (sum, parts) = by_relay.entry(through).or_default();
                parts.push((peer, *sum, rows));
                *sum += rows;
            }
        }
        let (to_relay, forwarded) = (routes.relayed.len(), by_relay.len());
        for (through, (sum, parts)) in by_relay {
            let message = exchange.add_incoming::<T>(through, Tag::Forwarded, sum * width)?;
            let section = |(q, first, rows)| (q, Section { message, first, rows });
            sections.extend(parts.into_iter().map(section));
        }
        let mut forwards = Vec::new();
        for (q, sources) in sources {
            let rows: usize = sources.iter().map(|(_, positions)| positions.len()).sum();
            let message = exchange.add_outgoing::<T>(q, Tag::Forwarded, rows * width)?;
            forwards.push(Forward { message, sources });
        }
        let row_bytes = width * size_of::<T>();
        Ok(Routed { to_relay, forwarded, forwards: Forwards::new(forwards, row_bytes), sections })
    }
}

/// Messages of rows that this rank forwards to others of its host.
#[derive(Default)]
pub struct Forwards {
    messages: Vec<Forward>,
    waiting: Waiting,
    /// Bytes of a row.
    pub row_bytes: usize,
}

/// Rows that go to another rank of this host.
pub struct Forward {
    pub message: usize,
    /// Where they are received from: incoming messages, and positions of rows in them.
    pub sources: Vec<(usize, Vec<u32>)>,
}

impl Forwards {
    fn new(messages: Vec<Forward>, row_bytes: usize) -> Self {
        let needs = |of: &Forward| of.sources.iter().map(|(message, _)| *message).collect();
        let waiting = Waiting::new(messages.iter().map(needs));
        Forwards { messages, waiting, row_bytes }
    }

    /// All messages.
    pub fn messages(&self) -> &[Forward] {
        &self.messages
    }

    /// Bytes of its lists.
    pub fn bytes(&self) -> usize {
        let lists = self.messages.iter().flat_map(|of| &of.sources);
        lists.map(|(_, rows)| size_of_val(&rows[..])).sum()
    }

    /// Begins an execution: nothing that is forwarded has arrived.
    pub fn begin(&mut self) {
        self.waiting.begin();
    }

    /// The messages that waited for `message` alone, by number.
    pub fn complete(&mut self, message: usize) -> impl Iterator<Item = (usize, &Forward)> {
        let Forwards { messages, waiting, .. } = self;
        waiting.arrived(message).map(|number| (number, &messages[number]))
    }

    /// Sends on what waited for `message` alone.
    ///
    /// # Errors
    /// As all calls of a [`Communicator`].
    pub fn arrived(
        &mut self,
        exchange: &mut Exchange,
        communicator: &dyn Communicator,
        message: usize,
    ) -> Result<()> {
        let row_bytes = self.row_bytes;
        for (_, Forward { message, sources }) in self.complete(message) {
            let mut first = 0;
            for (from, positions) in sources {
                let (received, out) = exchange.pair::<u8, u8>(Some(*from), *message);
                copy_rows(received, positions, &mut out[first..], row_bytes);
                first += positions.len() * row_bytes;
            }
            exchange.send(communicator, *message)?;
        }
        Ok(())
    }
}

/// Copies the rows of `from` at `positions`, of `width` elements each, to `to`, one after another.
fn copy_rows<T: Copy>(from: &[T], positions: &[u32], to: &mut [T], width: usize) {
    let rows = to.chunks_exact_mut(width).zip(positions);
    rows.for_each(|(to, at)| to.copy_from_slice(&from[*at as usize * width..][..width]));
}

/// All rows that a rank gets, and sends: the latter are numbered by `N`.
pub struct Fetch<N> {
    /// Outgoing messages, and the rows that go with them: first those that another rank forwards, which are sent twice.
    pub sends: Vec<(usize, Vec<N>)>,
    pub forwards: Forwards,
    /// What arrives from each rank that some rows are needed of, in rank order.
    pub arrivals: Vec<(usize, Arrival)>,
}

impl<N: Copy + From<u32>> Fetch<N> {
    /// Adds the messages to `exchange`: rank `rank` needs so many rows, of `width` values each, of each rank in
    /// `needed`, and rank q needs `requested[q]` of it.
    ///
    /// # Errors
    /// [`gustav_core::Error::OutOfMemory`].
    pub fn new<T>(
        exchange: &mut Exchange,
        routes: &Routes,
        rank: usize,
        (needed, requested): (&[(usize, usize)], &[Vec<N>]),
        width: usize,
    ) -> Result<Self> {
        let needed = || needed.iter().copied().filter(|(_, rows)| rows * width > 0);
        let routed = Routed::new::<T>(exchange, routes, rank, needed(), width)?;
        let mut sends = Vec::new();
        for Relay { through, rows, .. } in &routes.relays {
            let message = exchange.add_outgoing::<T>(*through, Tag::ToRelay, rows.len() * width)?;
            sends.push((message, rows.iter().map(|row| N::from(*row)).collect()));
        }
        let mut arrivals = Vec::new();
        for (peer, rows) in needed() {
            let section = match routed.sections.get(&peer) {
                Some(section) => *section,
                None => {
                    let message = exchange.add_incoming::<T>(peer, Tag::Operands, rows * width)?;
                    Section { message, first: 0, rows }
                }
            };
            let relayed = routes.relayed_rows(peer, rank);
            let positions = relayed.map(|(_, positions)| positions.to_vec());
            arrivals.push((peer, Arrival { section, positions }));
        }
        for (q, rows) in requested.iter().enumerate() {
            if rows.len() * width > 0 && !routes.is_relayed(q) {
                let message = exchange.add_outgoing::<T>(q, Tag::Operands, rows.len() * width)?;
                sends.push((message, rows.clone()));
            }
        }
        Ok(Fetch { sends, forwards: routed.forwards, arrivals })
    }

    /// Whether the rows are all of their message.
    pub fn is_alone(&self, arrival: &Arrival) -> bool {
        let message = arrival.section.message;
        let same = |(_, other): &&(usize, Arrival)| other.section.message == message;
        arrival.positions.is_none() && self.arrivals.iter().filter(same).count() == 1
    }

    /// The message that brings the rows of rank `peer`, if there is one.
    pub fn message_of(&self, peer: usize) -> Option<usize> {
        let at = self.arrivals.binary_search_by_key(&peer, |(peer, _)| *peer).ok()?;
        Some(self.arrivals[at].1.section.message)
    }
}
