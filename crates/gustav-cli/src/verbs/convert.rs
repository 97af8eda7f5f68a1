//! `gustav convert`: one file format to another.

use std::path::PathBuf;

use clap::builder::TypedValueParser;
use gustav::buffer::try_vec;
use gustav::io::{Field, Format, Storage, Symmetry, WriteOptions};
use gustav::{Csr, CsrView, Index, IndexType, Layout, Scalar};
use serde::Serialize;

use crate::args::{Printing, Types, TypesIfGiven, named};
use crate::failure::{Outcome, Result};
use crate::output::{self, Content};
use crate::source::Source;
use crate::types::with_types;

/// Convert a matrix file to another format, by the name of the output
///
/// Without --dtype, values are kept: integers as i64, others as f64. Entries keep their order, and
/// repeated ones are kept, unless --canonical is given. Symmetric input is expanded: what is
/// written is general unless --symmetry is given. A .npy file holds a dense matrix: repeated
/// entries are summed, and stored zeros become ordinary zeros.
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
    /// Write positions only, no values; .npz and .npy, which always have values, get ones
    #[arg(long)]
    pattern: bool,
    /// Write only the half that Matrix Market stores of a matrix with this symmetry
    #[arg(long, value_parser = symmetries(), default_value = "general")]
    symmetry: Symmetry,
    /// The arrays of a .npz file
    #[arg(long, value_parser = storages(), default_value = "csr")]
    storage: Storage,
    /// Seed of generated matrices
    #[arg(long, default_value_t = 1, allow_negative_numbers = true)]
    seed: u64,
    #[command(flatten)]
    types: TypesIfGiven,
    #[command(flatten)]
    printing: Printing,
}

fn symmetries() -> impl TypedValueParser<Value = Symmetry> {
    named(&[Symmetry::General, Symmetry::Symmetric, Symmetry::SkewSymmetric], |s| s.name())
}

fn storages() -> impl TypedValueParser<Value = Storage> {
    named(&[Storage::Csr, Storage::Csc, Storage::Coo], |s| s.name())
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

/// Converts the file.
pub fn run(args: &Args) -> Result {
    let header = args.input.header()?;
    let dtype = match args.types.dtype {
        Some(dtype) => dtype,
        None => args.input.exact_dtype()?,
    };
    let types = Types { dtype, index: args.types.index.unwrap_or(IndexType::U32) };
    let format = output::check(&args.output, Content::Any, dtype)?;
    let pattern = args.pattern || header.is_some_and(|h| h.field == Field::Pattern);
    with_types!(&types, |T, I, O| typed::<T, I, O>(args, format, pattern))
}

fn typed<T: Scalar, I: Index, O: Index>(args: &Args, format: Format, pattern: bool) -> Result {
    let mut a: Csr<T, I, O> = args.input.read(args.seed, args.printing)?;
    if args.transpose {
        a = a.view().transpose()?;
    }
    if args.canonical {
        a = a.canonicalize()?;
    }
    let values = match format {
        Format::Npy => {
            write_dense(args, a.view(), pattern)?;
            if pattern { "dense, ones of" } else { "dense," }
        }
        _ => {
            let options = WriteOptions { pattern_only: pattern, ..written(args) };
            gustav::io::write_csr(&args.output, a.view(), &options)?;
            match format {
                Format::Npz if pattern => "ones of",
                _ if pattern || format == Format::Smtx => "positions only, read as",
                _ => "",
            }
        }
    };
    let report = Report {
        input: args.input.to_string(),
        output: args.output.display().to_string(),
        rows: a.nrows(),
        cols: a.ncols(),
        nnz: a.nnz(),
        dtype: T::DTYPE.to_string(),
    };
    let Report { rows, cols, nnz, dtype, output, .. } = &report;
    let values = format!("{values} {dtype}");
    let values = values.trim_start();
    let text = format!("{rows} x {cols}, {nnz} nonzeros, {values}, written to {output}\n");
    output::print(args.printing, &report, &text)?;
    Ok(Outcome::Done)
}

fn written(args: &Args) -> WriteOptions {
    let Args { symmetry, storage, .. } = *args;
    WriteOptions { symmetry, storage, ..WriteOptions::default() }
}

/// Writes every element; with `pattern`, ones at stored positions. Prints a note on information
/// that is lost.
fn write_dense<T: Scalar, I: Index, O: Index>(
    args: &Args,
    a: CsrView<'_, T, I, O>,
    pattern: bool,
) -> Result<()> {
    let mut dense = if pattern {
        let mut ones = try_vec(a.nnz(), "values")?;
        ones.resize(a.nnz(), T::one());
        let positions = CsrView::new(a.nrows(), a.ncols(), a.offsets(), a.indices(), &ones)?;
        positions.to_dense(Layout::RowMajor)?
    } else {
        a.to_dense(Layout::RowMajor)?
    };
    let zero = T::zero();
    let nonzeros = dense.data().iter().filter(|v| **v != zero).count();
    if nonzeros != a.nnz() {
        output::note(
            args.printing,
            &format!(
                "{} entries become {nonzeros} nonzero elements: repeated ones are summed, stored \
                 zeros are as all others",
                a.nnz()
            ),
        );
    }
    if pattern {
        dense.data_mut().iter_mut().filter(|v| **v != zero).for_each(|v| *v = T::one());
    }
    Ok(gustav::io::write_dense(&args.output, dense.view(), &written(args))?)
}
