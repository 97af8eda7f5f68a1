//! Hardware counters of kernels, as `bench/paper_a_ncu.py` writes them.

use std::path::Path;

use gustav_core::{Error, Result};

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
/// [`Error::Io`] when it cannot be read, [`Error::Format`] for columns that are missing,
/// [`Error::Parse`] for a line that lacks a value. Counters alone may be blank.
pub fn read(path: &Path) -> Result<Vec<Counters>> {
    let io = |source| Error::Io { path: path.into(), action: "read", source };
    parse(&std::fs::read_to_string(path).map_err(io)?).map_err(|e| e.in_file(path))
}

fn parse(text: &str) -> Result<Vec<Counters>> {
    let mut lines = text.lines();
    let head = cells(lines.next().unwrap_or_default());
    let place = |name: &str| {
        head.iter().position(|cell| cell == name).ok_or_else(|| Error::Format {
            path: None,
            format: "counters",
            reason: format!("there is no column {name}; bench/paper_a_ncu.py writes one"),
        })
    };
    let words = [place("operation")?, place("algorithm")?, place("gpu")?];
    let numbers = [
        place("columns")?,
        place("rows")?,
        place("row_length")?,
        place("occupancy")?,
        place("warp_efficiency")?,
        place("ipc")?,
    ];
    let mut found = Vec::new();
    for (k, line) in lines.enumerate() {
        let cells = cells(line);
        let word = |at: usize| cells.get(at).cloned().unwrap_or_default();
        let number = |at: usize| {
            word(at).parse::<f64>().map_err(|_| Error::Parse {
                path: None,
                line: k as u64 + 2,
                column: 1,
                expected: format!("a number as {}", head[at]),
                found: word(at),
            })
        };
        let blank = |at: usize| cells.get(at).is_some_and(|cell| cell.trim().is_empty());
        let counter = |at: usize| if blank(at) { Ok(None) } else { number(at).map(Some) };
        found.push(Counters {
            operation: word(words[0]),
            algorithm: word(words[1]),
            gpu: word(words[2]),
            columns: number(numbers[0])? as usize,
            rows: number(numbers[1])?,
            row_length: number(numbers[2])?,
            occupancy: counter(numbers[3])?,
            warp_efficiency: counter(numbers[4])?,
            ipc: counter(numbers[5])?,
        });
    }
    Ok(found)
}

/// The cells of a line; those with commas are quoted.
fn cells(line: &str) -> Vec<String> {
    let (mut found, mut quoted) = (vec![String::new()], false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => found.push(String::new()),
            c => found.iter_mut().last().into_iter().for_each(|cell| cell.push(c)),
        }
    }
    found
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
