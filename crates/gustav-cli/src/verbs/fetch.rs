//! `gustav fetch`: a matrix of the SuiteSparse Matrix Collection as a file.

use std::path::PathBuf;

use gustav::io::fetch::{COLLECTION, Checksum, Fetch, Fetched, MatrixName};
use serde::Serialize;

use crate::args::Printing;
use crate::failure::{Outcome, Result};
use crate::output;
use crate::source::Bar;

/// Download a matrix of the SuiteSparse Matrix Collection
///
/// Run the command again to resume an interrupted download.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The matrix, for example HB/bcsstk16
    #[arg(value_name = "GROUP/NAME")]
    name: MatrixName,
    /// Write the matrix to this file, .mtx, .mtx.gz or .mtx.zst; NAME.mtx unless given
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The collection's address, to which /GROUP/NAME.tar.gz is appended
    #[arg(long, value_name = "URL", env = "GUSTAV_COLLECTION", default_value = COLLECTION)]
    base: String,
    /// Checksum of the archive, as md5:HEX or sha256:HEX
    #[arg(long, value_name = "CHECKSUM")]
    checksum: Option<Checksum>,
    #[command(flatten)]
    printing: Printing,
}

#[derive(Serialize)]
struct Report {
    name: String,
    address: String,
    output: String,
    bytes: u64,
    resumed: u64,
    others: Vec<String>,
}

/// Downloads, checks and unpacks the matrix.
pub fn run(args: &Args) -> Result {
    let path = match &args.output {
        Some(path) => path.clone(),
        None => PathBuf::from(format!("{}.mtx", args.name.name())),
    };
    output::writable(&path)?;
    let bar = Bar::new(args.printing, "fetching");
    let mut fetch = Fetch::new(args.name.clone()).base(&args.base).progress(&bar);
    if let Some(checksum) = &args.checksum {
        fetch = fetch.checksum(checksum.clone());
    }
    let Fetched { bytes, resumed, path, others } = fetch.to(&path)?;
    let report = Report {
        name: args.name.to_string(),
        address: fetch.address(),
        output: path.display().to_string(),
        bytes,
        resumed,
        others,
    };
    let mut text = format!("{}: {bytes} bytes from {}", report.output, report.address);
    if resumed > 0 {
        text += &format!(", {resumed} of them from an earlier attempt");
    }
    text += "\n";
    if !report.others.is_empty() {
        text += &format!("left out: {}\n", report.others.join(", "));
    }
    output::print(args.printing, &report, &text)?;
    Ok(Outcome::Done)
}
