//! Products from and to host memory, whole and in tiles (§7.2 of the paper).

use std::ops::ControlFlow;

use gustav_core::{Csr, Problem, Result, Scalar};
use gustav_cuda::spgemm::tiled::{self, Tiling};
use gustav_cuda::spgemm::{self, Options};
use gustav_cuda::{Call, DeviceCsr};
use gustav_plan::Algorithm;
use gustav_report::Record;

use super::{clocked, record, sample, verify};
use crate::check::take_rows;
use crate::cuda::Started;
use crate::value::Value;

// Timed executions, after one warm-up.
const RUNS: usize = 5;

/// Sizes of memory that tiles are made for, as parts of what the whole product takes.
const PARTS: [usize; 3] = [1, 4, 16];

/// The name of the last measurement of a matrix.
pub(super) const LAST: &str = "tiled#2";

/// The whole product, operands copied to the device and C back, and `tiled` for every size of memory.
pub(super) fn all<T: Value>(gpu: &Started, a: &Csr<T>, blank: &Record) -> Result<Vec<Record>> {
    let problem = Problem::spgemm(&a.view(), &a.view());
    let options = Options::default();
    let mut records = vec![record(blank, "auto+transfers", |r| {
        let stream = gpu.device.stream();
        time(r, a, || {
            let (on_a, on_b) = (
                DeviceCsr::upload(&gpu.device, &a.view())?,
                DeviceCsr::upload(&gpu.device, &a.view())?,
            );
            let c = spgemm::multiply(&on_a, &on_b, &problem, &options, Call::new())?;
            stream.synchronize()?;
            c.download()
        })
    })];
    // As `tiled` counts: both operands, C dense and in CSR form; their offsets are within the last number.
    let (dense, entry) = (a.nrows() * a.ncols(), size_of::<T>() + size_of::<u32>());
    let nnz_of_c = records[0].nnz_c.unwrap_or(0) as usize;
    let whole = 2 * a.nnz() * entry + dense * size_of::<T>() + nnz_of_c * entry + (1 << 20);
    for (k, part) in PARTS.into_iter().enumerate() {
        let name = match k {
            0 => Algorithm::Tiled.to_string(),
            _ => format!("{}#{k}", Algorithm::Tiled),
        };
        let memory = whole.div_ceil(part);
        records.push(record(blank, &name, |r| {
            let mut tiles = 0;
            time(r, a, || {
                let mut progress = |at: tiled::Progress| {
                    tiles = at.tiles;
                    ControlFlow::Continue(())
                };
                let tiling = Tiling { memory: Some(memory), progress: Some(&mut progress) };
                let one = <T as Scalar>::one().to_accum();
                tiled::multiply(&gpu.device, (a.view(), one, a.view()), &problem, &options, tiling)
            })?;
            r.reason = Some(format!("tiles: {tiles}, for {} MiB", memory >> 20));
            Ok(())
        }));
    }
    Ok(records)
}

/// Times a product from and to host memory.
fn time<T: Value>(
    record: &mut Record,
    a: &Csr<T>,
    mut multiply: impl FnMut() -> Result<Csr<T>>,
) -> Result<()> {
    let mut c = multiply()?;
    let mut times = Vec::new();
    for _ in 0..RUNS {
        // Freed first, so that its memory is used again.
        drop(c);
        let (ms, made) = clocked(&mut multiply)?;
        times.push(ms);
        c = made;
    }
    record.set_times(&times, 1);
    record.nnz_c = Some(c.nnz() as u64);
    let rows = sample(a.nrows());
    verify(record, a, &rows, take_rows(c.view(), &rows)?.view())
}
