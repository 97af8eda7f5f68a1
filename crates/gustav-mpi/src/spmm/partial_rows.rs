//! Partial rows of C that a rank sends: its own, and sums of them with those of other ranks of its host.

use std::collections::BTreeMap;

use gustav_core::{Arith, DenseViewMut, Layout, Result, Semiring};

use crate::communicator::{Communicator, Tag};
use crate::exchange::Exchange;
use crate::fetch::Section;
use crate::local::add_rows;
use crate::routes::{RelayedRows, Routes};
use crate::waiting::Waiting;

/// Outgoing messages of partial rows. Each is sent once the products of this rank that it holds are computed, and what
/// other ranks of the host send for it has arrived; that is added in rank order, whenever it arrives. Rows are
/// numbered by lists `L`.
pub(super) struct PartialRows<L> {
    messages: Vec<Outgoing<L>>,
    waiting: Waiting,
    incoming: usize,
}

/// An outgoing message of partial rows.
pub(super) struct Outgoing<L> {
    pub message: usize,
    /// What is added to this rank's rows: rows that are received, and the rows of the message that they are added to.
    pub added: Vec<(Section, L)>,
}

/// What a message of partial rows may wait for.
#[derive(Clone, Copy)]
pub(super) enum Event {
    /// This incoming message has arrived.
    Arrived(usize),
    /// The product for the peer at this position is computed.
    Computed(usize),
}

impl<L> PartialRows<L> {
    /// Begins an execution.
    pub fn begin(&mut self) {
        self.waiting.begin();
    }

    /// The messages that waited for `event` alone.
    pub fn complete(&mut self, event: Event) -> impl Iterator<Item = &Outgoing<L>> {
        let PartialRows { messages, waiting, incoming } = self;
        let number = match event {
            Event::Arrived(message) => message,
            Event::Computed(peer) => *incoming + peer,
        };
        waiting.arrived(number).map(|at| &messages[at])
    }

    /// All lists of rows that are added.
    pub fn lists(&self) -> impl Iterator<Item = &L> {
        self.messages.iter().flat_map(|of| &of.added).map(|(_, list)| list)
    }
}

impl PartialRows<Vec<u32>> {
    /// The same with other lists.
    ///
    /// # Errors
    /// Those of `list`.
    pub fn with_lists<L>(self, list: &dyn Fn(&[u32]) -> Result<L>) -> Result<PartialRows<L>> {
        let PartialRows { messages, waiting, incoming } = self;
        let messages = messages.into_iter().map(|Outgoing { message, added }| {
            let added = added.into_iter().map(|(section, rows)| Ok((section, list(&rows)?)));
            Ok(Outgoing { message, added: added.collect::<Result<_>>()? })
        });
        Ok(PartialRows { messages: messages.collect::<Result<_>>()?, waiting, incoming })
    }

    /// Adds up and sends what waited for `event` alone, rows of `n` columns.
    ///
    /// # Errors
    /// As all calls of a [`Communicator`].
    pub fn send<A: Arith + bytemuck::Pod>(
        &mut self,
        event: Event,
        exchange: &mut Exchange,
        communicator: &dyn Communicator,
        (semiring, n): (Semiring, usize),
    ) -> Result<()> {
        for Outgoing { message, added } in self.complete(event) {
            for (section, rows) in added {
                let (received, sums) = exchange.pair::<A, A>(Some(section.message), *message);
                let mut sums = DenseViewMut::new(sums.len() / n, n, Layout::RowMajor, n, sums)?;
                add_rows(semiring, &mut sums, rows, &received[section.range(n)]);
            }
            exchange.send(communicator, *message)?;
        }
        Ok(())
    }
}

/// The messages of partial rows of a plan, as they are added.
#[derive(Default)]
pub(super) struct PartialMessages {
    messages: Vec<(Outgoing<Vec<u32>>, Vec<usize>)>,
    /// By the rank that they are for: where rows are put that another rank of this host adds up.
    sections: BTreeMap<usize, (usize, Section)>,
    /// By the rank that they are for: rows that this rank adds to its own.
    added: BTreeMap<usize, Vec<(Section, Vec<u32>)>>,
}

impl PartialMessages {
    /// Adds the messages between this rank, `rank`, and others of its host for partial rows that one of them adds up,
    /// of `n` columns: `routes` are the reverse of those of rows of C, and this rank computes so many rows for each
    /// rank in `computed`. Returns the number of incoming messages, which come last.
    ///
    /// # Errors
    /// [`gustav_core::Error::OutOfMemory`].
    pub fn reduce<A>(
        exchange: &mut Exchange,
        routes: &Routes,
        rank: usize,
        computed: impl Iterator<Item = (usize, usize)>,
        n: usize,
    ) -> Result<(Self, usize)> {
        let mut all = PartialMessages::default();
        let mut by_source: BTreeMap<usize, Vec<(usize, &[u32])>> = BTreeMap::new();
        for RelayedRows { from: to, requested, .. } in &routes.relayed {
            for (source, rows) in requested.iter().filter(|(source, _)| *source != rank) {
                by_source.entry(*source).or_default().push((*to, rows));
            }
        }
        let incoming = by_source.len();
        for (source, lists) in by_source {
            let rows: usize = lists.iter().map(|(_, rows)| rows.len()).sum();
            let message = exchange.add_incoming::<A>(source, Tag::ToReduce, rows * n)?;
            exchange.set_urgent(message);
            let mut first = 0;
            for (to, rows) in lists {
                let section = Section { message, first, rows: rows.len() };
                all.added.entry(to).or_default().push((section, rows.to_vec()));
                first += rows.len();
            }
        }
        // Rows for several ranks that one rank adds up are one message, in the order of those ranks.
        let mut by_rank: BTreeMap<usize, Vec<(usize, usize)>> = BTreeMap::new();
        for (to, rows) in computed {
            let through = routes.through[to];
            if through != to && through != rank {
                by_rank.entry(through).or_default().push((to, rows));
            }
        }
        for (through, lists) in by_rank {
            let rows: usize = lists.iter().map(|(_, rows)| rows).sum();
            let message = exchange.add_outgoing::<A>(through, Tag::ToReduce, rows * n)?;
            let mut first = 0;
            for (to, rows) in lists {
                let section = Section { message, first, rows };
                all.sections.insert(to, (all.messages.len(), section));
                first += rows;
            }
            all.messages.push((Outgoing { message, added: Vec::new() }, Vec::new()));
        }
        Ok((all, incoming))
    }

    /// Where the `rows` partial rows, of `n` columns, go that the product for `peer`, the one at `position`, computes.
    ///
    /// # Errors
    /// [`gustav_core::Error::OutOfMemory`].
    pub fn add<A>(
        &mut self,
        exchange: &mut Exchange,
        (peer, position): (usize, usize),
        (rows, n): (usize, usize),
    ) -> Result<Section> {
        if let Some((at, section)) = self.sections.get(&peer) {
            self.messages[*at].1.push(position);
            return Ok(*section);
        }
        let message = exchange.add_outgoing::<A>(peer, Tag::Partial, rows * n)?;
        let added = self.added.remove(&peer).unwrap_or_default();
        self.messages.push((Outgoing { message, added }, vec![position]));
        Ok(Section { message, first: 0, rows })
    }

    /// All of them, of a plan with so many incoming messages.
    pub fn finish(self, incoming: usize) -> PartialRows<Vec<u32>> {
        let needs = |(of, products): &(Outgoing<Vec<u32>>, Vec<usize>)| {
            let arrived = of.added.iter().map(|(section, _)| section.message);
            arrived.chain(products.iter().map(|position| incoming + position)).collect()
        };
        let waiting = Waiting::new(self.messages.iter().map(needs));
        let messages = self.messages.into_iter().map(|(message, _)| message).collect();
        PartialRows { messages, waiting, incoming }
    }
}
