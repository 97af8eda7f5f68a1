//! Reads one file again and again, once per line on standard input; `bench/read_speed.py`
//! drives it side by side with other readers.
//!
//! `read_speed FILE THREADS` answers the line `read` with the seconds that reading took, and
//! `save PREFIX` by writing the arrays of the matrix as raw little-endian numbers to
//! `PREFIX.offsets`, `PREFIX.indices` (u32) and `PREFIX.values` (f64).

use std::error::Error;
use std::io::{BufRead, Write};
use std::time::Instant;

use gustav_core::Csr;
use gustav_io::{ReadOptions, read_csr};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, path, threads] = &arguments[..] else {
        return Err("usage: read_speed FILE THREADS".into());
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.parse()?).build()?;
    let read = || -> gustav_core::Result<Csr<f64>> { read_csr(path, &ReadOptions::default()) };
    let mut out = std::io::stdout();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        if let Some(prefix) = line.strip_prefix("save ") {
            let matrix = pool.install(read)?;
            std::fs::write(format!("{prefix}.offsets"), bytemuck::cast_slice(matrix.offsets()))?;
            std::fs::write(format!("{prefix}.indices"), bytemuck::cast_slice(matrix.indices()))?;
            std::fs::write(format!("{prefix}.values"), bytemuck::cast_slice(&matrix.values()))?;
            writeln!(out, "{} {}", matrix.nrows(), matrix.ncols())?;
        } else {
            let start = Instant::now();
            let matrix = pool.install(read)?;
            let seconds = start.elapsed().as_secs_f64();
            writeln!(out, "{seconds} {}", matrix.nnz())?;
        }
        out.flush()?;
    }
    Ok(())
}
