//! `gustav plan --mpi-ranks`: what ranks would send each other, counted without running them, and a
//! model of the time.

use std::fmt::Write;
use std::ops::Range;

use gustav::{Csr, DType, Index, Operation, PatternRef, Scalar, SpmmRequest};
use gustav_mpi::{
    Communication, Hosts, Partition, ProductShape, RankVolume, Rates, Traffic, Volume,
};
use serde::Serialize;

use super::Ranked;
use crate::args::{Choice, Printing, Types, at_least_one};
use crate::failure::{Failure, Outcome, Result};
use crate::measure;
use crate::output::{self, Number};
use crate::random;
use crate::source::Source;
use crate::types::with_types;

/// Counting takes time that grows with the square of the number, some minutes for this many.
const MOST_RANKS: usize = 1 << 16;

/// The options of a plan over ranks that are not run.
#[derive(clap::Args, Clone, Debug)]
pub struct Ranks {
    /// Count what this many ranks would send each other, or each of several numbers (4,16,64),
    /// without running them; at most 65536
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        group = "over-ranks",
        conflicts_with = "measure"
    )]
    pub mpi_ranks: Vec<usize>,
    /// Consecutive ranks of a host, for --mpi-ranks
    #[arg(long, value_name = "N", default_value_t = 1, requires = "mpi_ranks")]
    pub ranks_per_host: usize,
    /// Seconds that a message to another host takes besides its bytes, for the model of --mpi-ranks
    #[arg(long, value_name = "SECONDS", default_value_t = Rates::default().latency, requires = "mpi_ranks")]
    pub latency: f64,
    /// Bytes a second that a rank sends to other hosts while it receives as many, for the model of --mpi-ranks
    #[arg(long, value_name = "NUMBER", default_value_t = Rates::default().network, requires = "mpi_ranks")]
    pub bandwidth: f64,
    /// Seconds that a message to a rank of the same host takes besides its bytes, for the model of --mpi-ranks
    #[arg(long, value_name = "SECONDS", default_value_t = Rates::default().host_latency, requires = "mpi_ranks")]
    pub host_latency: f64,
    /// Bytes a second that a rank sends to ranks of the same host while it receives as many, for the model of --mpi-ranks
    #[arg(long, value_name = "NUMBER", default_value_t = Rates::default().host, requires = "mpi_ranks")]
    pub host_bandwidth: f64,
    /// Nonzeros times columns that a rank multiplies in a second, for the model of --mpi-ranks
    /// (measured on this machine, with --threads threads, unless given)
    #[arg(long, value_name = "NUMBER", requires = "mpi_ranks")]
    pub rate: Option<f64>,
}

/// A product over ranks that are not run, as the command line has it.
pub struct Forecast<'a> {
    /// A.
    pub file: &'a Source,
    /// `Spmm`, `Spmv` or `Sddmm`.
    pub operation: Operation,
    /// Columns of B, or of X and Y.
    pub columns: usize,
    /// Seed of a generated A.
    pub seed: u64,
    /// Types of A.
    pub types: &'a Types,
    /// How to compute.
    pub choice: &'a Choice,
    /// Numbers of ranks, and the model.
    pub ranks: &'a Ranks,
    /// What ranks would send.
    pub ranked: Ranked,
    /// What is printed.
    pub printing: Printing,
}

/// A forecast as JSON; the keys are documented in docs/json.md.
#[derive(Serialize)]
struct Report {
    operation: Operation,
    file: String,
    rows: usize,
    cols: usize,
    nnz: usize,
    columns: usize,
    dtype: DType,
    transpose: bool,
    model: Model,
    forecasts: Vec<Line>,
}

/// The model of the time.
#[derive(Clone, Serialize)]
struct Model {
    ranks_per_host: usize,
    latency_s: f64,
    bandwidth: f64,
    host_latency_s: f64,
    host_bandwidth: f64,
    rate: f64,
    threads: usize,
    assumptions: [&'static str; 6],
}

const ASSUMPTIONS: [&str; 6] = [
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
struct Line {
    ranks: usize,
    communication: String,
    replication: usize,
    bytes: u64,
    network_bytes: u64,
    messages: u64,
    most_sent_bytes: u64,
    most_received_bytes: u64,
    imbalance: Number,
    communication_imbalance: Number,
    compute_ms: Number,
    communicate_ms: Number,
    execute_ms: Number,
    overlapped_ms: Number,
    efficiency: Number,
    limit: &'static str,
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

    /// The line of a product whose ranks do what `volume` says, with so many messages sent by the
    /// busiest rank.
    fn line(&self, what: (usize, String, usize), volume: &Volume, columns: usize) -> Line {
        let (ranks, communication, replication) = what;
        let compute = |r: &RankVolume| r.nonzeros as f64 * columns as f64 / self.rate;
        let rates = self.rates();
        let bytes = |r: &RankVolume| rates.seconds(r).1;
        let waiting = |r: &RankVolume| rates.seconds(r).0;
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

/// Counts, and prints what would be sent.
///
/// # Errors
/// For numbers that are not positive, files that cannot be read, and lack of memory.
pub fn forecast(args: &Forecast<'_>) -> Result {
    let Ranks { mpi_ranks, ranks_per_host, latency, bandwidth, host_latency, host_bandwidth, rate } =
        args.ranks;
    at_least_one("ranks-per-host", *ranks_per_host as u64)?;
    mpi_ranks.iter().try_for_each(|count| at_least_one("mpi-ranks", *count as u64))?;
    if let Some(many) = mpi_ranks.iter().find(|count| **count > MOST_RANKS) {
        return Err(Failure::Request(format!(
            "mpi-ranks: {many} is not valid, expected at most {MOST_RANKS}, as what every two ranks send is counted"
        )));
    }
    let positive = [
        ("bandwidth", *bandwidth),
        ("host-bandwidth", *host_bandwidth),
        ("rate", rate.unwrap_or(1.0)),
    ];
    for (name, value) in positive {
        if value.is_nan() || value <= 0.0 {
            return Err(Failure::Request(format!(
                "{name}: {value} is not valid, expected more than 0"
            )));
        }
    }
    for (name, value) in [("latency", *latency), ("host-latency", *host_latency)] {
        if value.is_nan() || value < 0.0 {
            return Err(Failure::Request(format!(
                "{name}: {value} is not valid, expected at least 0"
            )));
        }
    }
    if args.operation == Operation::Spgemm {
        return Err(Failure::Request(
            "mpi-ranks: what an spgemm sends is counted by running it, as mpirun -n N gustav plan --mpi --operation \
             spgemm; spmm, spmv and sddmm are counted here"
                .into(),
        ));
    }
    let report = with_types!(args.types, |T, I, O| counted::<T, I, O>(args))?;
    output::print(args.printing, &report, &text(&report))?;
    Ok(Outcome::Done)
}

fn counted<T: gustav::CpuScalar, I: Index, O: Index>(args: &Forecast<'_>) -> Result<Report> {
    let device = args.choice.device()?;
    if device.is_cuda() {
        return Err(Failure::Request("device: ranks multiply on CPUs, use --device cpu".into()));
    }
    let a = device.threads().run(|| args.file.read::<T, I, O>(args.seed, args.printing))?;
    let rate = match args.ranks.rate {
        Some(rate) => rate,
        None => measured_rate(args, &device, &a)?,
    };
    let model = Model {
        ranks_per_host: args.ranks.ranks_per_host,
        latency_s: args.ranks.latency,
        bandwidth: args.ranks.bandwidth,
        host_latency_s: args.ranks.host_latency,
        host_bandwidth: args.ranks.host_bandwidth,
        rate,
        threads: device.threads().count(),
        assumptions: ASSUMPTIONS,
    };
    let mut forecasts = Vec::new();
    for ranks in &args.ranks.mpi_ranks {
        forecasts.extend(on_ranks(args, &a, *ranks, &model)?);
    }
    Ok(Report {
        operation: args.operation,
        file: args.file.to_string(),
        rows: a.nrows(),
        cols: a.ncols(),
        nnz: a.nnz(),
        columns: args.columns,
        dtype: T::DTYPE,
        transpose: args.choice.transpose,
        model,
        forecasts,
    })
}

/// Nonzeros times columns that this machine multiplies in a second: the SpMM of the whole matrix.
fn measured_rate<T: gustav::CpuScalar, I: Index, O: Index>(
    args: &Forecast<'_>,
    device: &gustav::Device,
    a: &Csr<T, I, O>,
) -> Result<f64> {
    let request = a.pattern().spmm(args.columns);
    let problem = args.choice.refine(request.problem);
    let layout = problem.layout_b;
    let b = random::dense::<T>(problem.inner(), args.columns, layout, args.seed)?;
    let mut c = gustav::Dense::zeros(problem.output_rows(), args.columns, layout)?;
    let request: SpmmRequest<PatternRef<'_, I, O>> =
        SpmmRequest { pattern: PatternRef::from(a.pattern()), problem };
    let mut plan = request.plan::<T, _>(device)?;
    let timing = measure::repeat(None, &mut || {
        Ok(measure::once(|| Ok(plan.execute(a, &b, &mut c, ())?))?.1)
    })?;
    let work = (a.nnz() as f64 * args.columns as f64).max(1.0);
    Ok(work / (timing.median_ms.max(1e-6) / 1e3))
}

/// The schemes of communication on so many ranks.
fn on_ranks<T: Scalar, I: Index, O: Index>(
    args: &Forecast<'_>,
    a: &Csr<T, I, O>,
    ranks: usize,
    model: &Model,
) -> Result<Vec<Line>> {
    let pattern = a.pattern().view();
    let rows = Partition::balanced(&pattern, ranks);
    let square = a.nrows() == a.ncols();
    let columns = if square { rows.clone() } else { Partition::even(a.ncols(), ranks) };
    let shape = |communication| ProductShape {
        columns: args.columns,
        dtype: T::DTYPE,
        transpose_a: args.choice.transpose,
        communication,
    };
    let schemes = match (args.operation, args.ranked.communication) {
        // Only rows of Y can go.
        (Operation::Sddmm, _) => vec![Communication::RowsOfB],
        (_, Some(one)) => vec![one],
        (_, None) => {
            vec![Communication::RowsOfB, Communication::PartialRowsOfC, Communication::Cheapest]
        }
    };
    let per_host = args.ranks.ranks_per_host;
    let hosts = Hosts::of_consecutive(ranks, per_host);
    let mut volumes = Vec::new();
    for scheme in schemes {
        volumes.push((scheme, Volume::on_hosts(&pattern, &rows, &columns, &hosts, shape(scheme))?));
    }
    let (of_b, of_c) = match args.choice.transpose {
        false => (&columns, &rows),
        true => (&rows, &columns),
    };
    let nonzeros = nonzeros_of_ranks(&pattern, &rows);
    let row = args.columns * T::DTYPE.bytes();
    let mut lines = Vec::new();
    let all = all_gather(of_b, &nonzeros, row as u64, per_host);
    lines.push(model.line((ranks, "all of B to all".into(), 1), &all, args.columns));
    let row_of_c = args.columns * T::DTYPE.bytes().max(4);
    let layers = (2..=ranks).take_while(|c| c * c <= ranks).filter(|c| ranks.is_multiple_of(c * c));
    let replicated = layers.map(|c| {
        (c, replicated(of_b, of_c, &nonzeros, (row as u64, row_of_c as u64), c, per_host))
    });
    if let Some((c, best)) = replicated.min_by_key(|(_, volume)| volume.bytes()) {
        lines.push(model.line((ranks, format!("1.5D, {c} copies"), c), &best, args.columns));
    }
    for (scheme, volume) in volumes {
        lines.push(model.line((ranks, scheme.name().into(), 1), &volume, args.columns));
    }
    Ok(lines)
}

fn nonzeros_of_ranks<I: Index, O: Index>(
    pattern: &gustav::PatternView<'_, I, O>,
    rows: &Partition,
) -> Vec<u64> {
    let end = |row: usize| pattern.offsets()[row].to_usize() as u64;
    (0..rows.ranks()).map(|q| end(rows.range(q).end) - end(rows.range(q).start)).collect()
}

/// A rank with these messages, of which those of `on_host` stay on its host.
fn of_traffic(all: Traffic, on_host: Traffic, nonzeros: u64) -> RankVolume {
    let Traffic { sent_bytes, received_bytes, sent_messages } = all;
    let network = Traffic {
        sent_bytes: sent_bytes - on_host.sent_bytes,
        received_bytes: received_bytes - on_host.received_bytes,
        sent_messages: sent_messages - on_host.sent_messages,
    };
    RankVolume { sent_bytes, received_bytes, sent_messages, nonzeros, network }
}

/// The ranks on the host of rank `q`, of which each has so many.
fn of_host(q: usize, per_host: usize, ranks: usize) -> Range<usize> {
    let first = q - q % per_host;
    first..first.saturating_add(per_host).min(ranks)
}

/// Every rank sends its rows of B to all others.
fn all_gather(of_b: &Partition, nonzeros: &[u64], row: u64, per_host: usize) -> Volume {
    let ranks = nonzeros.len();
    let of_rank = |q: usize| {
        // Among the ranks of a range, of which it is one.
        let among = |others: Range<usize>| {
            let messages = others.len() as u64 - 1;
            let rows = of_b.offsets()[others.end] - of_b.offsets()[others.start];
            Traffic {
                sent_bytes: of_b.count(q) as u64 * row * messages,
                received_bytes: (rows - of_b.count(q)) as u64 * row,
                sent_messages: messages,
            }
        };
        of_traffic(among(0..ranks), among(of_host(q, per_host, ranks)), nonzeros[q])
    };
    Volume { ranks: (0..ranks).map(of_rank).collect(), ..Volume::default() }
}

/// 1.5D (Koanantakool et al. 2016): `copies` ranks have a block of rows of A, B and C, as large as
/// those of as many ranks together; each multiplies its part of the blocks of B, which is sent to
/// it whole, and the copies of C are summed by an all-reduce.
fn replicated(
    of_b: &Partition,
    of_c: &Partition,
    nonzeros: &[u64],
    (row_of_b, row_of_c): (u64, u64),
    copies: usize,
    per_host: usize,
) -> Volume {
    let ranks = nonzeros.len();
    let blocks = ranks / copies;
    let of_block = |p: &Partition, block: usize| {
        (p.offsets()[(block + 1) * copies] - p.offsets()[block * copies]) as u64
    };
    let stages = blocks / copies;
    let of_rank = |q: usize| {
        let (block, copy) = (q / copies, q % copies);
        let mine = copy * stages..(copy + 1) * stages;
        // The copy whose part has the block sends it to the other blocks' copies of that part.
        let sends = mine.contains(&block);
        let rounds = 2 * (copies as u64 - 1);
        let sums = rounds * of_block(of_c, block) * row_of_c / copies as u64;
        // Sums go round the copies of a block.
        let [next, previous] = [1, copies - 1].map(|step| block * copies + (copy + step) % copies);
        // Among the ranks of a range, of which it is one.
        let among = |others: Range<usize>| {
            let first = others.start + (copy + copies - others.start % copies) % copies;
            let same_copy = (first..others.end).step_by(copies).map(|other| other / copies);
            let (mut receivers, mut received) = (0, 0);
            for other in same_copy.filter(|other| *other != block) {
                receivers += u64::from(sends);
                received += if mine.contains(&other) { of_block(of_b, other) } else { 0 };
            }
            let is_there = |rank: usize| u64::from(others.contains(&rank));
            Traffic {
                sent_bytes: receivers * of_block(of_b, block) * row_of_b + is_there(next) * sums,
                received_bytes: received * row_of_b + is_there(previous) * sums,
                sent_messages: receivers + is_there(next) * rounds,
            }
        };
        let work: u64 = nonzeros[block * copies..(block + 1) * copies].iter().sum();
        let on_host = among(of_host(q, per_host, ranks));
        of_traffic(among(0..ranks), on_host, work / copies as u64)
    };
    Volume { ranks: (0..ranks).map(of_rank).collect(), ..Volume::default() }
}

fn text(report: &Report) -> String {
    let Report { operation, file, rows, cols, nnz, columns, dtype, model, forecasts, .. } = report;
    let mut t = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(t, "{operation} of {columns} columns, {dtype}, over ranks that were not run");
    let _ = writeln!(t, "A          {file}: {rows} x {cols}, {nnz} nonzeros");
    let _ = writeln!(
        t,
        "model      {:.3e} s a message and {:.3e} bytes/s between hosts, {:.3e} nonzeros·columns/s a rank ({} threads)",
        model.latency_s, model.bandwidth, model.rate, model.threads
    );
    if model.ranks_per_host > 1 {
        let _ = writeln!(
            t,
            "hosts      {} ranks each, on one {:.3e} s a message and {:.3e} bytes/s",
            model.ranks_per_host, model.host_latency_s, model.host_bandwidth
        );
    }
    let _ = writeln!(
        t,
        "\n{:>6} {:<18}{:>16}{:>10}{:>15}{:>9}{:>9}{:>12}{:>7}  limit",
        "ranks",
        "sent",
        "bytes",
        "messages",
        "most of a rank",
        "balance",
        "of bytes",
        "execute ms",
        "eff."
    );
    for l in forecasts {
        let most = l.most_sent_bytes.max(l.most_received_bytes);
        let _ = writeln!(
            t,
            "{:>6} {:<18}{:>16}{:>10}{:>15}{:>9.2}{:>9.2}{:>12.4}{:>6.0}%  {}",
            l.ranks,
            l.communication,
            l.bytes,
            l.messages,
            most,
            l.imbalance.0,
            l.communication_imbalance.0,
            l.execute_ms.0,
            100.0 * l.efficiency.0,
            l.limit
        );
    }
    let cheapest = |l: &&Line| l.communication == Communication::Cheapest.name();
    if let Some(l) = forecasts.iter().filter(cheapest).find(|l| l.efficiency.0 < 0.5) {
        let _ = writeln!(
            t,
            "\nfrom {} ranks on, more than half of the time is lost, most of it to {}",
            l.ranks, l.limit
        );
    }
    t += "\nThe model assumes:\n";
    model.assumptions.iter().for_each(|a| t += &format!("- {a}\n"));
    t
}
