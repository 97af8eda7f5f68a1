//! `gustav plan --mpi-ranks`: what ranks would send each other, counted without running them, and a
//! model of the time.

mod model;
mod oblivious;
mod operands;

use std::fmt::Write;

use gustav::{CpuScalar, DType, Index, Operation, Pattern, PatternView, Scalar};
use gustav_mpi::{Communication, Hosts, Partition, ProductShape, Rates, Volume};
use serde::Serialize;

use self::model::{ASSUMPTIONS, Line, Model, Scheme};
use self::oblivious::{RowBytes, all_gather, replicated};
use self::operands::{Operands, Rows};
use super::Ranked;
use crate::args::{Choice, Printing, Types, at_least_one};
use crate::failure::{Failure, Outcome, Result};
use crate::output;
use crate::source::Source;
use crate::types::with_types;

/// Counting takes time that grows with the square of the number, some minutes for this many.
const MOST_RANKS: usize = 1 << 16;

/// The scheme in which every rank has all of B.
const ALL_TO_ALL: &str = "all of B to all";

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
    /// Bytes a second that a rank sends to ranks of the same host while it receives as many, for the model of
    /// --mpi-ranks
    #[arg(long, value_name = "NUMBER", default_value_t = Rates::default().host, requires = "mpi_ranks")]
    pub host_bandwidth: f64,
    /// Nonzeros times columns (of spgemm, intermediate products) that a rank multiplies in a second, for the model of
    /// --mpi-ranks (measured on this machine, with --threads threads, unless given)
    #[arg(long, value_name = "NUMBER", requires = "mpi_ranks")]
    pub rate: Option<f64>,
}

/// A product over ranks that are not run, as the command line has it.
pub struct Forecast<'a> {
    /// A.
    pub file: &'a Source,
    /// B of an SpGEMM, if it is named.
    pub right: Option<&'a Source>,
    /// The product.
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
    for (name, given) in
        [("partition", args.ranked.partition.is_some()), ("copies", args.ranked.copies.is_some())]
    {
        if given {
            return Err(Failure::Request(format!(
                "{name}: ranks that are not run have balanced rows and one copy, leave it out or run them with --mpi"
            )));
        }
    }
    if matches!(args.operation, Operation::Spgemm | Operation::Sddmm) {
        args.ranked.of_dense_products_refused()?;
    }
    if args.operation == Operation::Spgemm && args.choice.transpose {
        return Err(Failure::Request(
            "transpose: a product of sparse matrices over ranks has none, leave it out".into(),
        ));
    }
    let report = with_types!(args.types, |T, I, O| counted::<T, I, O>(args))?;
    output::print(args.printing, &report, &text(&report))?;
    Ok(Outcome::Done)
}

fn counted<T: CpuScalar, I: Index, O: Index>(args: &Forecast<'_>) -> Result<Report> {
    let device = args.choice.device()?;
    if device.is_cuda() {
        return Err(Failure::Request("device: ranks multiply on CPUs, use --device cpu".into()));
    }
    let operands = device.threads().run(|| Operands::<I, O>::read::<T>(args, &device))?;
    let model = Model {
        ranks_per_host: args.ranks.ranks_per_host,
        latency_s: args.ranks.latency,
        bandwidth: args.ranks.bandwidth,
        host_latency_s: args.ranks.host_latency,
        host_bandwidth: args.ranks.host_bandwidth,
        rate: operands.rate,
        threads: device.threads().count(),
        assumptions: ASSUMPTIONS,
    };
    let mut forecasts = Vec::new();
    for ranks in &args.ranks.mpi_ranks {
        let lines = device.threads().run(|| match &operands.b {
            Some(b) => sparse_on_ranks::<I, O>((&operands.a, b), T::DTYPE, *ranks, &model),
            None => on_ranks::<T, I, O>(args, &operands.a, *ranks, &model),
        });
        forecasts.extend(lines?);
    }
    let a = &operands.a;
    Ok(Report {
        operation: args.operation,
        file: args.file.to_string(),
        rows: a.nrows(),
        cols: a.ncols(),
        nnz: a.nnz(),
        columns: operands.b.as_ref().map_or(args.columns, |b| b.columns),
        dtype: T::DTYPE,
        transpose: args.choice.transpose,
        model,
        forecasts,
    })
}

/// Rows and columns of A on so many ranks, as products over ranks have them.
fn spread<I: Index, O: Index>(a: &PatternView<'_, I, O>, ranks: usize) -> [Partition; 2] {
    let rows = Partition::balanced(a, ranks);
    let square = a.nrows() == a.ncols();
    let columns = if square { rows.clone() } else { Partition::even(a.ncols(), ranks) };
    [rows, columns]
}

/// The schemes of communication of an SpGEMM on so many ranks.
fn sparse_on_ranks<I: Index, O: Index>(
    (a, b): (&Pattern<I, O>, &Rows),
    dtype: DType,
    ranks: usize,
    model: &Model,
) -> Result<Vec<Line>> {
    let a = a.view();
    let [rows, columns] = spread(&a, ranks);
    let hosts = Hosts::of_consecutive(ranks, model.ranks_per_host);
    let volume = Volume::of_spgemm(&a, (&rows, &columns), &hosts, &b.lengths, dtype)?;
    let bytes_of =
        |q: usize| b.lengths[columns.range(q)].iter().sum::<u64>() * dtype.bytes() as u64;
    let bytes_of_b: Vec<u64> = (0..ranks).map(bytes_of).collect();
    let products: Vec<u64> = volume.ranks.iter().map(|r| r.nonzeros).collect();
    let all = all_gather(&bytes_of_b, &products, model.ranks_per_host);
    Ok(vec![
        model.line(Scheme::named(ALL_TO_ALL), &all, 1),
        model.line(Scheme::named(Communication::RowsOfB.name()), &volume, 1),
    ])
}

/// The schemes of communication on so many ranks.
fn on_ranks<T: Scalar, I: Index, O: Index>(
    args: &Forecast<'_>,
    a: &Pattern<I, O>,
    ranks: usize,
    model: &Model,
) -> Result<Vec<Line>> {
    let pattern = a.view();
    let [rows, columns] = spread(&pattern, ranks);
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
    let end = |row: usize| pattern.offsets()[row].to_usize() as u64;
    let nonzeros_of = |q: usize| end(rows.range(q).end) - end(rows.range(q).start);
    let nonzeros: Vec<u64> = (0..ranks).map(nonzeros_of).collect();
    let row = RowBytes {
        of_b: (args.columns * T::DTYPE.bytes()) as u64,
        of_c: (args.columns * T::DTYPE.bytes().max(4)) as u64,
    };
    let bytes_of_b: Vec<u64> = (0..ranks).map(|q| of_b.count(q) as u64 * row.of_b).collect();
    let mut lines = Vec::new();
    let all = all_gather(&bytes_of_b, &nonzeros, per_host);
    lines.push(model.line(Scheme::named(ALL_TO_ALL), &all, args.columns));
    let layers = (2..=ranks).take_while(|c| c * c <= ranks).filter(|c| ranks.is_multiple_of(c * c));
    let replicated = layers.map(|c| (c, replicated((of_b, of_c), &nonzeros, row, c, per_host)));
    // An SDDMM has no dense C whose copies could be summed.
    let replicated = replicated.filter(|_| args.operation != Operation::Sddmm);
    if let Some((c, best)) = replicated.min_by_key(|(_, volume)| volume.bytes()) {
        let scheme = Scheme { communication: format!("1.5D, {c} copies"), replication: c };
        lines.push(model.line(scheme, &best, args.columns));
    }
    for (scheme, volume) in volumes {
        lines.push(model.line(Scheme::named(scheme.name()), &volume, args.columns));
    }
    Ok(lines)
}

fn text(report: &Report) -> String {
    let Report { operation, file, rows, cols, nnz, columns, dtype, model, forecasts, .. } = report;
    let mut t = String::new();
    // Writing to a String cannot fail.
    let of_columns = format!("{operation} of {columns} columns");
    let (product, work) = match operation {
        Operation::Spgemm => ("spgemm", "intermediate products"),
        _ => (&of_columns[..], "nonzeros·columns"),
    };
    let _ = writeln!(t, "{product}, {dtype}, over ranks that were not run");
    let _ = writeln!(t, "A          {file}: {rows} x {cols}, {nnz} nonzeros");
    let _ = writeln!(
        t,
        "model      {:.3e} s a message and {:.3e} bytes/s between hosts, {:.3e} {work}/s a rank ({} threads)",
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
    // The last scheme of a number of ranks is what a plan uses.
    let mut planned = forecasts.chunk_by(|a, b| a.ranks == b.ranks).filter_map(<[Line]>::last);
    if let Some(l) = planned.find(|l| l.efficiency.0 < 0.5) {
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
