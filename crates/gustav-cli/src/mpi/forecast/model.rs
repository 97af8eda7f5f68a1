//! A model of the time of a product over ranks that are not run.

use gustav_mpi::{RankVolume, Rates, Volume};
use serde::Serialize;

use crate::output::Number;

/// The model of the time.
#[derive(Clone, Serialize)]
pub struct Model {
    pub ranks_per_host: usize,
    pub latency_s: f64,
    pub bandwidth: f64,
    pub host_latency_s: f64,
    pub host_bandwidth: f64,
    pub rate: f64,
    pub threads: usize,
    pub assumptions: [&'static str; 6],
}

/// What the model assumes.
pub const ASSUMPTIONS: [&str; 6] = [
    "every rank multiplies at the rate of this machine on the whole matrix, whatever its block looks like: no gain from \
     caches that hold a smaller part of B, no loss from short rows",
    "every message costs the latency of its level, one after another, and bytes of a level cost its bandwidth of one rank in \
     its busier direction: no contention in the network, which the ranks of a host do not share, nor in a host's memory",
    "packing and unpacking are free, as is the processor's part in sending",
    "the agreement before every execution costs the latency between hosts times the binary logarithm of the number of ranks",
    "execute_ms adds communication to computation on every rank and takes the slowest; overlapped_ms hides the smaller of \
     both: the truth is between them, as a rank multiplies its own block while messages travel",
    "efficiency is the time of one rank ÷ number of ranks ÷ execute_ms, where one rank is taken to hold everything",
];

/// One scheme of communication on one number of ranks.
#[derive(Clone, Serialize)]
pub struct Line {
    pub ranks: usize,
    pub communication: String,
    pub replication: usize,
    pub bytes: u64,
    pub network_bytes: u64,
    pub messages: u64,
    pub most_sent_bytes: u64,
    pub most_received_bytes: u64,
    pub imbalance: Number,
    pub communication_imbalance: Number,
    pub compute_ms: Number,
    pub communicate_ms: Number,
    pub execute_ms: Number,
    pub overlapped_ms: Number,
    pub efficiency: Number,
    pub limit: &'static str,
}

/// How ranks communicate.
pub struct Scheme {
    /// Its name.
    pub communication: String,
    /// Copies of A, B and C.
    pub replication: usize,
}

impl Scheme {
    /// That of this name, without copies.
    pub fn named(communication: &str) -> Self {
        Scheme { communication: communication.into(), replication: 1 }
    }
}

impl Model {
    fn rates(&self) -> Rates {
        Rates {
            latency: self.latency_s,
            network: self.bandwidth,
            host_latency: self.host_latency_s,
            host: self.host_bandwidth,
            ..Rates::default()
        }
    }

    /// The line of a product whose ranks do what `volume` says, and multiply every nonzero by so many columns.
    pub fn line(&self, scheme: Scheme, volume: &Volume, columns: usize) -> Line {
        let (ranks, Scheme { communication, replication }) = (volume.ranks.len(), scheme);
        let compute = |r: &RankVolume| r.nonzeros as f64 * columns as f64 / self.rate;
        let rates = self.rates();
        let bytes = |r: &RankVolume| rates.seconds(r).bytes;
        let waiting = |r: &RankVolume| rates.seconds(r).messages;
        let most =
            |of: &dyn Fn(&RankVolume) -> f64| volume.ranks.iter().map(of).fold(0.0, f64::max);
        let agreement = (ranks as f64).log2().ceil() * self.latency_s;
        let execute = most(&|r| compute(r) + bytes(r) + waiting(r)) + agreement;
        let overlapped = most(&|r| compute(r).max(bytes(r) + waiting(r))) + agreement;
        let mean = volume.ranks.iter().map(compute).sum::<f64>() / ranks as f64;
        // What the slowest rank does beyond the mean multiplication.
        let losses = [
            (most(&compute) - mean, "balance"),
            (most(&bytes), "bandwidth"),
            (most(&waiting) + agreement, "latency"),
        ];
        let largest = losses.into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
        let ms = |seconds: f64| Number(seconds * 1e3);
        Line {
            ranks,
            communication,
            replication,
            bytes: volume.bytes(),
            network_bytes: volume.network_bytes(),
            messages: volume.messages(),
            most_sent_bytes: volume.ranks.iter().map(|r| r.sent_bytes).max().unwrap_or(0),
            most_received_bytes: volume.ranks.iter().map(|r| r.received_bytes).max().unwrap_or(0),
            imbalance: Number(volume.imbalance()),
            communication_imbalance: Number(volume.communication_imbalance()),
            compute_ms: ms(most(&compute)),
            communicate_ms: ms(most(&|r| bytes(r) + waiting(r)) + agreement),
            execute_ms: ms(execute),
            overlapped_ms: ms(overlapped),
            efficiency: Number(if execute > 0.0 { mean / execute } else { 1.0 }),
            limit: largest
                .map_or("nothing", |(loss, name)| if loss > 0.0 { name } else { "nothing" }),
        }
    }
}
