//! `row-split` (Yang, Buluç, Owens 2018, §4.1): the same number of rows for every thread.
//!
//! For matrices whose rows have similar lengths; a long row delays its thread. Every row is summed
//! by one thread, so there are no carry-outs and the plan holds no workspace.

use gustav_core::{Index, Ops, Scalar};

use super::epilogue::{Epilogue, Output};
use super::rows::Operands;
use crate::Threads;
use crate::arch::Isa;

pub(crate) fn execute<T: Scalar, I: Index, S: Ops<T::Accum>>(
    threads: &Threads,
    isa: Isa,
    operands: &Operands<'_, T, I>,
    epilogue: &Epilogue<T::Accum, S>,
    y: &mut [T],
) {
    let rows = y.len();
    let workers = threads.count().min(rows);
    let out = Output::new(y);
    threads.each(workers, |w| {
        let rows = rows * w / workers..rows * (w + 1) / workers;
        // SAFETY: the ranges of rows are disjoint and within y.
        unsafe { operands.multiply(isa, rows, epilogue, out) };
    });
}
