//! `gustav convert`: one file format to another.

use std::path::PathBuf;

use gustav::io::{Field, Header, WriteOptions};
use gustav::{Csr, DType, Index, IndexType, Scalar};
use serde::Serialize;

use crate::args::{Telling, Types, TypesIfGiven};
use crate::failure::{Outcome, Result};
use crate::output;
use crate::source::Source;
use crate::types::with_types;

/// Convert a matrix file to another format, told by the name of the output
///
/// Without --dtype, values are kept: integers as i64, others as f64. Entries keep their order
/// and repeated ones stay unless --canonical is given.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The matrix to read
    #[arg(value_name = "IN")]
    input: Source,
    /// The file to write: .mtx, .npz, .smtx, or .npy for a dense matrix, with .gz or .zst
    #[arg(value_name = "OUT")]
    output: PathBuf,
    /// Sort the columns of every row and sum repeated entries
    #[arg(long)]
    canonical: bool,
    /// Write the transpose
    #[arg(long)]
    transpose: bool,
    /// Write positions only, no values
    #[arg(long)]
    pattern: bool,
    /// Seed of generated matrices
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    types: TypesIfGiven,
    #[command(flatten)]
    telling: Telling,
}

#[derive(Serialize)]
struct Report {
    input: String,
    output: String,
    rows: usize,
    cols: usize,
    nnz: usize,
    dtype: String,
}

/// Reads and writes.
pub fn run(args: &Args) -> Result {
    output::writable(&args.output)?;
    let header = match &args.input {
        Source::File(path) => Some(gustav::io::read_header(path)?),
        Source::Generated(_) => None,
    };
    let exact = match header.as_ref().map(|h| h.field) {
        Some(Field::Integer) => DType::I64,
        Some(Field::Real | Field::Pattern) | None => DType::F64,
    };
    let types = Types {
        dtype: args.types.dtype.unwrap_or(exact),
        index: args.types.index.unwrap_or(IndexType::U32),
    };
    with_types!(&types, |T, I, O| typed::<T, I, O>(args, header.as_ref()))
}

fn typed<T: Scalar, I: Index, O: Index>(args: &Args, header: Option<&Header>) -> Result {
    let dense_out = args.output.to_string_lossy().to_ascii_lowercase().contains(".npy");
    let pattern_only = args.pattern || header.is_some_and(|h| h.field == Field::Pattern);
    let options = WriteOptions { pattern_only, ..WriteOptions::default() };
    let mut a: Csr<T, I, O> = args.input.read(args.seed, args.telling)?;
    if args.transpose {
        a = a.view().transpose()?;
    }
    if args.canonical {
        a = a.canonicalize()?;
    }
    if dense_out {
        let dense = a.view().to_dense(gustav::Layout::RowMajor)?;
        gustav::io::write_dense(&args.output, dense.view(), &WriteOptions::default())?;
    } else {
        gustav::io::write_csr(&args.output, a.view(), &options)?;
    }
    let report = Report {
        input: args.input.to_string(),
        output: args.output.display().to_string(),
        rows: a.nrows(),
        cols: a.ncols(),
        nnz: a.nnz(),
        dtype: T::DTYPE.to_string(),
    };
    let Report { rows, cols, nnz, dtype, output, .. } = &report;
    let text = format!("{rows} x {cols}, {nnz} nonzeros, {dtype}, written to {output}\n");
    output::tell(args.telling, &report, &text)?;
    Ok(Outcome::Done)
}
