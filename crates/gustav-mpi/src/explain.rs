//! The explanation of a plan over ranks.

use std::fmt::Display;

use gustav_core::{Operation, Problem, Result};
use gustav_plan::Choice;

use crate::any_pattern::AnyDistPattern;
use crate::volume::Counted;
use crate::{Communication, Copies, Ordered, RankVolume, Ranks, Volume};

/// What is computed, what ranks send, and how work is balanced. Printed, it is a few lines of text.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// What is computed, over all ranks.
    pub problem: Problem,
    /// What connects the ranks.
    pub ranks: String,
    /// What they send each other.
    pub communication: Communication,
    /// How much, counted on the ranks when the plan was made.
    pub volume: Volume,
    /// The order that the rows were brought into, if they were.
    pub order: Option<Ordered>,
    /// How the number of copies was chosen, where there may be several.
    pub copies: Option<Copies>,
    /// Algorithm and reason for most of what this rank multiplies.
    pub choice: Choice<()>,
    /// Nonzeros (of SpGEMM, intermediate products) that this rank multiplies before anything of others has arrived.
    pub early: u64,
    /// Where this rank's messages are sent from and received.
    pub messages: MessageMemory,
    /// Bytes that the plan holds on this rank besides patterns.
    pub workspace_bytes: usize,
}

/// Where messages of a rank are sent from and received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MessageMemory {
    /// In the memory of the host, where the rank computes.
    #[default]
    Host,
    /// In page-locked memory of the host, copied from and to a GPU in chunks.
    PageLocked,
    /// In the memory of a GPU, of which MPI takes pointers.
    Device,
}

impl MessageMemory {
    /// In a few words.
    pub const fn name(self) -> &'static str {
        match self {
            MessageMemory::Host => "memory of the host",
            MessageMemory::PageLocked => "page-locked memory, copied from and to the GPU in chunks",
            MessageMemory::Device => "memory of the GPU",
        }
    }
}

/// What the expected fraction of communication is computed with: one rank's, as if all communicate at once and nothing
/// is overlapped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Seconds that a message to another host takes besides its bytes.
    pub latency: f64,
    /// Bytes that a rank sends to other hosts, and receives at the same time, in a second.
    pub network: f64,
    /// Seconds that a message to a rank of the same host takes besides its bytes.
    pub host_latency: f64,
    /// Bytes that a rank sends to ranks of the same host, and receives at the same time, in a second.
    pub host: f64,
    /// Bytes that a rank reads from memory in a second.
    pub memory: f64,
}

impl Default for Rates {
    /// 2 µs and the 12.5 GB/s of a network of 100 Gbit/s; on a host 0.5 µs, and 5 GB/s, as a core copies into shared
    /// memory and out of it; 10 GB/s of memory for a core.
    fn default() -> Self {
        Rates { latency: 2e-6, network: 12.5e9, host_latency: 0.5e-6, host: 5e9, memory: 1e10 }
    }
}

impl Display for Rates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Rates { latency, network, host_latency, host, memory } = self;
        write!(
            f,
            "{:.1} µs a message and {:.1} GB/s between hosts, {:.1} µs and {:.1} GB/s on one, {:.1} GB/s of memory",
            latency * 1e6,
            network / 1e9,
            host_latency * 1e6,
            host / 1e9,
            memory / 1e9
        )
    }
}

/// Seconds that a rank communicates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CommunicationTime {
    /// Of its messages, besides their bytes.
    pub messages: f64,
    /// Of its bytes in the busier direction, one level after the other.
    pub bytes: f64,
}

impl CommunicationTime {
    /// Both.
    pub fn sum(&self) -> f64 {
        self.messages + self.bytes
    }
}

impl Rates {
    /// How long a rank communicates.
    pub fn seconds(&self, rank: &RankVolume) -> CommunicationTime {
        let busier = |sent: u64, received: u64| sent.max(received) as f64;
        let network = &rank.network;
        let on_host = rank.sent_messages - network.sent_messages;
        let messages =
            network.sent_messages as f64 * self.latency + on_host as f64 * self.host_latency;
        let between = busier(network.sent_bytes, network.received_bytes);
        let within = busier(
            rank.sent_bytes - network.sent_bytes,
            rank.received_bytes - network.received_bytes,
        );
        CommunicationTime { messages, bytes: between / self.network + within / self.host }
    }
}

impl Explanation {
    /// Of a plan for `problem` with `pattern`, before the ranks have gathered what they count.
    pub(crate) fn new<C>(
        (problem, pattern): (&Problem, &AnyDistPattern<'_>),
        communication: Communication,
        choice: &Choice<C>,
        (early, workspace_bytes): (u64, usize),
    ) -> Self {
        Explanation {
            problem: problem.clone(),
            ranks: pattern.ranks.communicator().description(),
            communication,
            volume: Volume::default(),
            order: pattern.order.copied(),
            copies: None,
            choice: Choice {
                algorithm: choice.algorithm,
                config: (),
                reason: choice.reason.clone(),
            },
            early,
            messages: MessageMemory::Host,
            workspace_bytes,
        }
    }

    /// The plan, if every rank has built its own, and in its explanation what they count; `all` is the bytes if every
    /// rank sent all that it has to all others. Collective.
    pub(crate) fn complete<P>(
        ranks: &Ranks,
        built: Result<(P, Counted)>,
        all: u64,
        of: impl FnOnce(&mut P) -> &mut Explanation,
    ) -> Result<P> {
        let (mut plan, counted) = ranks.together(built)?;
        of(&mut plan).volume = Volume::gather(ranks, counted, all)?;
        Ok(plan)
    }

    /// The fraction of communication in the time of the rank that takes longest, between 0 and 1: a multiplied nonzero
    /// reads its index, its value and a row of B (of SpGEMM, an element), a message takes the latency, and bytes are
    /// the larger of those sent and received.
    pub fn communication_share(&self, rates: &Rates) -> f64 {
        let value = self.problem.dtype.bytes();
        let of_b = match self.problem.operation {
            Operation::Spgemm => value + size_of::<u32>(),
            _ => self.problem.columns * value,
        };
        let nonzero = (size_of::<u32>() + value + of_b) as f64;
        let times = self.volume.ranks.iter().map(|rank| {
            let sending = rates.seconds(rank).sum();
            (sending, sending + rank.nonzeros as f64 * nonzero / rates.memory)
        });
        let slowest = times.max_by(|a, b| a.1.total_cmp(&b.1));
        slowest.filter(|(_, all)| *all > 0.0).map_or(0.0, |(sending, all)| sending / all)
    }
}

impl Display for Explanation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Explanation {
            problem,
            ranks,
            communication,
            volume,
            order,
            copies,
            choice,
            early,
            messages,
            workspace_bytes,
        } = self;
        writeln!(f, "problem    {problem}")?;
        writeln!(f, "ranks      {ranks}")?;
        writeln!(f, "sent       {} bytes in {} messages", volume.bytes(), volume.messages())?;
        let (rows, partial) = (volume.rows_of_b_bytes, volume.partial_rows_bytes);
        match problem.operation {
            Operation::Spmm | Operation::Spmv => writeln!(
                f,
                "           {}; only rows of B: {rows} bytes, only partial rows of C: {partial}, all of B to all: {}",
                communication.name(),
                volume.oblivious_bytes,
            )?,
            _ => writeln!(f, "           all to all: {} bytes", volume.oblivious_bytes)?,
        }
        let (network, direct) = (volume.network_bytes(), volume.direct_network_bytes);
        if network < direct {
            writeln!(
                f,
                "network    {network} bytes between hosts, {direct} if everything were sent directly"
            )?;
        }
        let multiplied = match problem.operation {
            Operation::Spgemm => "products",
            _ => "nonzeros",
        };
        writeln!(
            f,
            "balance    most {multiplied} of a rank {:.3} x the mean, most bytes {:.3} x",
            volume.imbalance(),
            volume.communication_imbalance(),
        )?;
        if let Some(copies) = copies {
            writeln!(f, "copies     {copies}")?;
        }
        if let Some(Ordered { order, rows_before, rows_after }) = order {
            writeln!(
                f,
                "order      {order}: {rows_after} rows of B travel, {rows_before} with rows as stored"
            )?;
        }
        let rates = Rates::default();
        writeln!(
            f,
            "expected   {:.0} % of the slowest rank's time is communication, at {rates}",
            100.0 * self.communication_share(&rates)
        )?;
        writeln!(
            f,
            "algorithm  {} for most of this rank's {multiplied}: {}",
            choice.algorithm, choice.reason
        )?;
        writeln!(
            f,
            "overlap    this rank multiplies {early} {multiplied} before anything arrives"
        )?;
        if volume.messages() > 0 {
            writeln!(f, "messages   in {}", messages.name())?;
        }
        write!(f, "workspace  {workspace_bytes} bytes on this rank")
    }
}
