//! `gustav generate`: test matrices.

use std::path::PathBuf;

use gustav::io::generate::Kind;
use gustav::io::{Generator, WriteOptions};
use gustav::{Csr, Index, Scalar};
use serde::Serialize;

use crate::args::{Printing, Types};
use crate::failure::{Outcome, Result};
use crate::output::{self, Content};
use crate::types::with_types;

/// Generate a test matrix and write it to a file
#[derive(Debug, clap::Args)]
#[command(after_long_help = kinds())]
pub struct Args {
    /// What to generate, such as grid5:1000x1000
    #[arg(value_name = "KIND")]
    kind: Generator,
    /// The file to write; its name selects the format
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Seed: the same matrix on every machine
    #[arg(long, default_value_t = 1, allow_negative_numbers = true)]
    seed: u64,
    #[command(flatten)]
    types: Types,
    #[command(flatten)]
    printing: Printing,
}

#[derive(Serialize)]
struct Report {
    kind: String,
    seed: u64,
    rows: usize,
    cols: usize,
    nnz: usize,
    dtype: String,
    output: String,
}

/// Every kind with its arguments, for the help.
fn kinds() -> String {
    let usage = |k: &Kind| format!("  {:<36} {}\n", k.usage, k.about);
    "Kinds:\n".to_string() + &Generator::KINDS.iter().map(usage).collect::<String>()
}

/// Generates and writes the matrix.
pub fn run(args: &Args) -> Result {
    output::check(&args.output, Content::Sparse, args.types.dtype)?;
    with_types!(&args.types, |T, I, O| typed::<T, I, O>(args))
}

fn typed<T: Scalar, I: Index, O: Index>(args: &Args) -> Result {
    let a: Csr<T, I, O> = args.kind.build(args.seed)?;
    gustav::io::write_csr(&args.output, a.view(), &WriteOptions::default())?;
    let report = Report {
        kind: args.kind.to_string(),
        seed: args.seed,
        rows: a.nrows(),
        cols: a.ncols(),
        nnz: a.nnz(),
        dtype: T::DTYPE.to_string(),
        output: args.output.display().to_string(),
    };
    let Report { kind, rows, cols, nnz, output, .. } = &report;
    let text = format!("{kind}: {rows} x {cols}, {nnz} nonzeros, written to {output}\n");
    output::print(args.printing, &report, &text)?;
    Ok(Outcome::Done)
}
