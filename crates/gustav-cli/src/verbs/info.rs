//! `gustav info`: properties and pictures of a matrix.

use std::fmt::Write;
use std::path::PathBuf;

use gustav::{
    Csr, CsrView, DType, Index, IndexType, Order, Permutation, RowStats, Scalar, Search, WarpShape,
};
use serde::Serialize;

use super::features;
use crate::args::Printing;
use crate::failure::{Failure, Outcome, Result, printable};
use crate::measure;
use crate::output::{self, Number};
use crate::picture::{self, Density, Drawing, RowLengths};
use crate::source::Source;

/// Show shape, nonzeros, row lengths, symmetry, and a picture of a matrix
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The matrix
    file: Source,
    /// Draw the picture to an SVG file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Draw the picture to a PNG file
    #[arg(long, value_name = "FILE")]
    png: Option<PathBuf>,
    /// Draw the matrix also with its rows in this order, as a CTA of 32 warps visits them
    #[arg(long, value_name = "NAME", value_parser = crate::args::orders())]
    order: Option<Order>,
    /// Print the 24 features of sparsity, for 32 warps of 32 lanes
    #[arg(long)]
    features: bool,
    /// Estimate the features from about so many rows
    #[arg(long, value_name = "ROWS", requires = "features", allow_negative_numbers = true)]
    sample: Option<usize>,
    /// Seed of generated matrices
    #[arg(long, default_value_t = 1, allow_negative_numbers = true)]
    seed: u64,
    /// Type of the values (i64 for integers, f64 for others unless given)
    #[arg(long, value_name = "TYPE", value_parser = crate::args::wide_dtypes())]
    dtype: Option<DType>,
    /// Type of column indices and row offsets
    #[arg(long, value_name = "TYPE", default_value = "u32", value_parser = crate::args::indices())]
    index: IndexType,
    #[command(flatten)]
    printing: Printing,
}

#[derive(Serialize)]
struct Report {
    file: String,
    rows: usize,
    cols: usize,
    nnz: usize,
    density: Number,
    min_row_length: usize,
    mean_row_length: Number,
    max_row_length: usize,
    row_length_deviation: Number,
    empty_rows: usize,
    mean_row_span: Number,
    symmetric: bool,
    sorted: bool,
    #[serde(flatten)]
    order: Option<Ordered>,
    #[serde(flatten)]
    features: Option<features::Report>,
}

/// The row order that is drawn.
#[derive(Serialize)]
struct Ordered {
    order: Order,
    order_ms: Number,
}

// Width of the picture, in characters in the terminal and in pixels in a file.
const ACROSS: usize = 64;
const PIXELS: usize = 512;

/// Reads the matrix and prints its properties.
pub fn run(args: &Args) -> Result {
    for (path, kind) in [(&args.svg, "svg"), (&args.png, "png")] {
        path.as_deref().map_or(Ok(()), |path| output::check_picture(path, kind))?;
    }
    let dtype = match args.dtype {
        Some(dtype) => dtype,
        None => args.file.exact_dtype()?,
    };
    match (dtype, args.index) {
        (DType::I64, IndexType::U32) => typed::<i64, u32>(args),
        (DType::I64, IndexType::U64) => typed::<i64, u64>(args),
        (_, IndexType::U32) => typed::<f64, u32>(args),
        (_, IndexType::U64) => typed::<f64, u64>(args),
    }
}

fn typed<T: Scalar, I: Index>(args: &Args) -> Result {
    let matrix: Csr<T, I, I> = args.file.read(args.seed, args.printing)?;
    let a = matrix.view();
    let stats = RowStats::new(&a.pattern());
    let cells = a.nrows() as f64 * a.ncols() as f64;
    let ordered = args.order.map(|order| in_order(&a, order)).transpose()?;
    let (order, ordered) = ordered.unzip();
    let report = Report {
        file: args.file.to_string(),
        rows: stats.rows,
        cols: stats.cols,
        nnz: stats.nnz,
        density: Number(if cells > 0.0 { stats.nnz as f64 / cells } else { 0.0 }),
        min_row_length: stats.min_row_length,
        mean_row_length: Number(stats.mean_row_length),
        max_row_length: stats.max_row_length,
        row_length_deviation: Number(stats.row_length_deviation),
        empty_rows: stats.empty_rows,
        mean_row_span: Number(stats.mean_row_span),
        symmetric: symmetric(&matrix)?,
        sorted: a.is_canonical(),
        order,
        features: args.features.then(|| features::Report::new(&a, args.sample)).transpose()?,
    };
    let pictures = |most, stretch| {
        let bins = |a: &Csr<T, I, I>| Density::new(&a.view().pattern(), most, stretch);
        (bins(&matrix), ordered.as_ref().map(bins))
    };
    draw(args, &a, &report, &pictures(PIXELS / 2, 1))?;
    output::print(args.printing, &report, &text(&a, &report, &pictures(ACROSS, 2)))?;
    Ok(Outcome::Done)
}

/// The rows of `a` in the sequence in which a CTA visits them with `order`.
fn in_order<T: Scalar, I: Index, O: Index>(
    a: &CsrView<'_, T, I, O>,
    order: Order,
) -> Result<(Ordered, Csr<T, I, O>)> {
    let (made, ms) =
        measure::once(|| Ok(order.of(&a.pattern(), WarpShape::default(), Search::Auto)?))?;
    let rows = Permutation::new(made.sequence().collect())?;
    Ok((Ordered { order, order_ms: Number(ms) }, rows.apply_rows(*a)?))
}

/// Rows as stored, and in the requested order.
type Pictures = (Density, Option<Density>);

/// Whether A equals its transpose, values included; repeated entries count as their sum.
fn symmetric<T: Scalar, I: Index, O: Index>(a: &Csr<T, I, O>) -> Result<bool> {
    if a.nrows() != a.ncols() {
        return Ok(false);
    }
    if !a.view().is_canonical() {
        return symmetric(&a.canonicalize()?);
    }
    // The transpose of sorted rows has sorted rows.
    let t = a.view().transpose()?;
    let equal = |(x, y): (&T, &T)| x == y || (x.to_f64().is_nan() && y.to_f64().is_nan());
    Ok(t.offsets() == a.offsets()
        && t.indices() == a.indices()
        && t.values().iter().zip(a.values()).all(equal))
}

/// Draws the requested files.
fn draw<T: Scalar, I: Index, O: Index>(
    args: &Args,
    a: &CsrView<'_, T, I, O>,
    report: &Report,
    (stored, ordered): &Pictures,
) -> Result<()> {
    if args.svg.is_none() && args.png.is_none() {
        return Ok(());
    }
    let Report { file, rows, cols, nnz, .. } = report;
    let title = format!("{file}: {rows} x {cols}, {nnz} nonzeros").replace('\n', "\\n");
    let title = printable(&title);
    let ordered = report.order.as_ref().zip(ordered.as_ref());
    let ordered = ordered.map(|(o, density)| (o.order.name(), density));
    let drawing = Drawing::new(&title, stored, ordered, &RowLengths::new(a));
    if let Some(path) = &args.svg {
        gustav::io::write_bytes(path, picture::to_svg(&drawing).as_bytes())?;
    }
    if let Some(path) = &args.png {
        let png = picture::to_png(&drawing)
            .map_err(|e| Failure::Request(format!("cannot draw {}: {e}", path.display())))?;
        gustav::io::write_bytes(path, &png)?;
    }
    Ok(())
}

fn text<T: Scalar, I: Index, O: Index>(
    a: &CsrView<'_, T, I, O>,
    r: &Report,
    (stored, ordered): &Pictures,
) -> String {
    let mut t = String::new();
    let yes = |b: bool| if b { "yes" } else { "no" };
    // Writing to a String cannot fail.
    let _ = writeln!(t, "{}", r.file);
    let _ = writeln!(t, "shape      {} x {}", r.rows, r.cols);
    let _ = writeln!(t, "nonzeros   {} ({:.3e} of all cells)", r.nnz, r.density.0);
    let _ = writeln!(
        t,
        "rows       {} to {} nonzeros, mean {:.2}, deviation {:.2}, {} empty",
        r.min_row_length,
        r.max_row_length,
        r.mean_row_length.0,
        r.row_length_deviation.0,
        r.empty_rows,
    );
    let _ = writeln!(t, "row span   {:.0} columns in the mean", r.mean_row_span.0);
    let _ = writeln!(t, "symmetric  {}", yes(r.symmetric));
    let _ = writeln!(t, "sorted     {} (columns of every row rise)", yes(r.sorted));
    if let Some(features) = &r.features {
        t += &features.text();
    }
    t += &picture::spy(stored);
    if let (Some(Ordered { order, order_ms }), Some(ordered)) = (&r.order, ordered) {
        let _ = writeln!(t, "rows in the order {order}, made in {:.1} ms", order_ms.0);
        t += &picture::spy(ordered);
    }
    t += "rows by number of nonzeros\n";
    t + &picture::histogram(&RowLengths::new(a))
}
