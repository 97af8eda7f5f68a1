//! Hardware counters of kernels, as `bench/paper_a_ncu.py` writes them.

use std::path::Path;

use gustav_core::Result;

use crate::csv::{self, Csv, Line};

/// Counters of one kernel on one matrix.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counters {
    /// Name of the operation: `spmm` or `spmv`.
    pub operation: String,
    /// Columns of B, 1 for SpMV.
    pub columns: usize,
    /// Rows of the matrix, which all have one length.
    pub rows: f64,
    /// Nonzeros of a row.
    pub row_length: f64,
    /// The algorithm, or the peer.
    pub algorithm: String,
    /// Name of the GPU.
    pub gpu: String,
    /// Warps on a multiprocessor over its maximum, while it was busy; `None` if the profiler gave
    /// no number.
    pub occupancy: Option<f64>,
    /// Lanes that took part in an instruction over those of a warp.
    pub warp_efficiency: Option<f64>,
    /// Instructions of a multiprocessor per cycle in which it was busy.
    pub ipc: Option<f64>,
}

/// The counters in a file.
///
/// # Errors
/// [`gustav_core::Error::Io`] when it cannot be read, [`gustav_core::Error::Format`] for columns that are missing,
/// [`gustav_core::Error::Parse`] for a line that lacks a value. Counters alone may be blank.
pub fn read(path: &Path) -> Result<Vec<Counters>> {
    parse(&csv::text(path)?).map_err(|e| e.in_file(path))
}

fn parse(text: &str) -> Result<Vec<Counters>> {
    let csv = Csv::parse(text, "counters", "bench/paper_a_ncu.py");
    let [operation, algorithm, gpu] =
        [csv.column("operation")?, csv.column("algorithm")?, csv.column("gpu")?];
    let [columns, rows, row_length] =
        [csv.column("columns")?, csv.column("rows")?, csv.column("row_length")?];
    let [occupancy, warp_efficiency, ipc] =
        [csv.column("occupancy")?, csv.column("warp_efficiency")?, csv.column("ipc")?];
    let of_line = |line: Line<'_>| {
        let counter = |column| match line.is_blank(column) {
            true => Ok(None),
            false => line.number(column).map(Some),
        };
        Ok(Counters {
            operation: line.word(operation).to_owned(),
            algorithm: line.word(algorithm).to_owned(),
            gpu: line.word(gpu).to_owned(),
            columns: line.number(columns)? as usize,
            rows: line.number(rows)?,
            row_length: line.number(row_length)?,
            occupancy: counter(occupancy)?,
            warp_efficiency: counter(warp_efficiency)?,
            ipc: counter(ipc)?,
        })
    };
    csv.lines().map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str =
        "matrix,operation,columns,rows,row_length,algorithm,occupancy,warp_efficiency,ipc,gpu\n";

    #[test]
    fn counters_are_read_past_commas_in_names() {
        let line = "\"uniform:8x4,4\",spmm,64,8,4,row-split,0.25,0.99,1.5,a GPU\n";
        let found = parse(&format!("{HEAD}{line}")).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].rows, found[0].occupancy, found[0].ipc), (8.0, Some(0.25), Some(1.5)));
        assert_eq!((found[0].algorithm.as_str(), found[0].gpu.as_str()), ("row-split", "a GPU"));
    }

    #[test]
    fn what_is_missing_is_named() {
        let error = parse("matrix,rows\n").unwrap_err().to_string();
        assert!(error.contains("operation"), "{error}");
        for (line, name) in [
            ("m,spmm,64,,4,row-split,0.2,0.99,1.5,a GPU\n", "rows"),
            ("m,spmm,64,8,4,row-split,high,0.99,1.5,a GPU\n", "occupancy"),
            ("m,spmm,64,8,4,row-split,0.2\n", "warp_efficiency"),
        ] {
            let error = parse(&format!("{HEAD}{line}")).unwrap_err().to_string();
            assert!(error.contains("line 2") && error.contains(name), "{error}");
        }
    }

    #[test]
    fn a_blank_counter_is_no_number() {
        let line = "m,spmm,64,8,4,row-split,,0.99,,a GPU\n";
        let found = parse(&format!("{HEAD}{line}")).unwrap();
        assert_eq!((found[0].occupancy, found[0].warp_efficiency), (None, Some(0.99)));
        assert_eq!(found[0].ipc, None);
    }
}
