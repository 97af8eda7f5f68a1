//! `gustav plan --mpi-ranks`: what ranks would send each other, counted without running them, and a
//! model of the time.

use std::fmt::Write;
use std::ops::Range;

use gustav::{Csr, DType, Index, Operation, PatternRef, Scalar, SpmmRequest};
use gustav_mpi::{Communication, Partition, ProductShape, RankVolume, Rates, Volume};
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
    /// Seconds that a message takes besides its bytes, for the model of --mpi-ranks
    #[arg(long, value_name = "SECONDS", default_value_t = Rates::default().latency, requires = "mpi_ranks")]
    pub latency: f64,
    /// Bytes a second that a rank sends while it receives as many, for the model of --mpi-ranks
    #[arg(long, value_name = "NUMBER", default_value_t = Rates::default().network, requires = "mpi_ranks")]
    pub bandwidth: f64,
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
    latency_s: f64,
    bandwidth: f64,
    rate: f64,
    threads: usize,
    assumptions: [&'static str; 6],
}

const ASSUMPTIONS: [&str; 6] = [
    "every rank multiplies at the rate of this machine on the whole matrix, whatever its block looks like: no gain from \
     caches that hold a smaller part of B, no loss from short rows",
    "every message costs the latency, one after another, and bytes cost the bandwidth of one rank in its busier \
     direction: no contention in the network, ranks of one host are treated as others",
    "packing and unpacking are free, as is the processor's part in sending",
    "the agreement before every execution costs the latency times the binary logarithm of the number of ranks",
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
    /// The line of a product whose ranks do what `volume` says, with so many messages sent by the
    /// busiest rank.
    fn line(&self, what: (usize, String, usize), volume: &Volume, columns: usize) -> Line {
        let (ranks, communication, replication) = what;
        let compute = |r: &RankVolume| r.nonzeros as f64 * columns as f64 / self.rate;
        let bytes = |r: &RankVolume| r.sent_bytes.max(r.received_bytes) as f64 / self.bandwidth;
        let waiting = |r: &RankVolume| r.sent_messages as f64 * self.latency_s;
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
    let Ranks { mpi_ranks, latency, bandwidth, rate } = args.ranks;
    mpi_ranks.iter().try_for_each(|count| at_least_one("mpi-ranks", *count as u64))?;
    if let Some(many) = mpi_ranks.iter().find(|count| **count > MOST_RANKS) {
        return Err(Failure::Request(format!(
            "mpi-ranks: {many} is not valid, expected at most {MOST_RANKS}, as what every two ranks send is counted"
        )));
    }
    for (name, value) in [("bandwidth", *bandwidth), ("rate", rate.unwrap_or(1.0))] {
        if value.is_nan() || value <= 0.0 {
            return Err(Failure::Request(format!(
                "{name}: {value} is not valid, expected more than 0"
            )));
        }
    }
    if latency.is_nan() || *latency < 0.0 {
        return Err(Failure::Request(format!(
            "latency: {latency} is not valid, expected at least 0"
        )));
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
        latency_s: args.ranks.latency,
        bandwidth: args.ranks.bandwidth,
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
    let mut volumes = Vec::new();
    for scheme in schemes {
        volumes.push((scheme, Volume::of(&pattern, &rows, &columns, shape(scheme))?));
    }
    let (of_b, of_c) = match args.choice.transpose {
        false => (&columns, &rows),
        true => (&rows, &columns),
    };
    let nonzeros = nonzeros_of_ranks(&pattern, &rows);
    let row = args.columns * T::DTYPE.bytes();
    let mut lines = Vec::new();
    let all = all_gather(of_b, &nonzeros, row as u64);
    lines.push(model.line((ranks, "all of B to all".into(), 1), &all, args.columns));
    let row_of_c = args.columns * T::DTYPE.bytes().max(4);
    let layers = (2..=ranks).take_while(|c| c * c <= ranks).filter(|c| ranks.is_multiple_of(c * c));
    let replicated =
        layers.map(|c| (c, replicated(of_b, of_c, &nonzeros, (row as u64, row_of_c as u64), c)));
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

/// Every rank sends its rows of B to all others.
fn all_gather(of_b: &Partition, nonzeros: &[u64], row: u64) -> Volume {
    let ranks = nonzeros.len();
    let of_rank = |q: usize| RankVolume {
        sent_bytes: of_b.count(q) as u64 * row * (ranks as u64 - 1),
        received_bytes: (of_b.rows() - of_b.count(q)) as u64 * row,
        sent_messages: ranks as u64 - 1,
        nonzeros: nonzeros[q],
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
) -> Volume {
    let ranks = nonzeros.len();
    let blocks = ranks / copies;
    let of_blocks = |p: &Partition, blocks: Range<usize>| {
        (p.offsets()[blocks.end * copies] - p.offsets()[blocks.start * copies]) as u64
    };
    let of_block = |p: &Partition, block: usize| of_blocks(p, block..block + 1);
    let stages = blocks / copies;
    let of_rank = |q: usize| {
        let (block, copy) = (q / copies, q % copies);
        let mine = copy * stages..(copy + 1) * stages;
        // The copy whose part has the block sends it to the other blocks' copies of that part.
        let sends = mine.contains(&block);
        let own = if sends { of_block(of_b, block) } else { 0 };
        let received = (of_blocks(of_b, mine) - own) * row_of_b;
        let sent = if sends { of_block(of_b, block) * row_of_b * (blocks as u64 - 1) } else { 0 };
        let sums = 2 * (copies as u64 - 1) * of_block(of_c, block) * row_of_c / copies as u64;
        let work: u64 = nonzeros[block * copies..(block + 1) * copies].iter().sum();
        RankVolume {
            sent_bytes: sent + sums,
            received_bytes: received + sums,
            sent_messages: if sends { blocks as u64 - 1 } else { 0 } + 2 * (copies as u64 - 1),
            nonzeros: work / copies as u64,
        }
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
        "model      {:.3e} s a message, {:.3e} bytes/s and {:.3e} nonzeros·columns/s a rank ({} threads)",
        model.latency_s, model.bandwidth, model.rate, model.threads
    );
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
