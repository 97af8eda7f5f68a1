//! What records of programs say, as text.

use std::fmt::Write;

use crate::{Record, Status};

/// Whether the record is one of a program.
pub(crate) fn is_program(record: &Record) -> bool {
    !["spmm", "spmv", "spgemm"].contains(&record.case.operation.as_str())
}

/// Share of the products in the time of a program, in percent.
pub(crate) fn share(record: &Record) -> Option<f64> {
    Some(100.0 * record.product_ms? / record.execute_ms?)
}

/// A line for every engine and program.
pub(crate) fn summary(records: &[Record]) -> String {
    let mut out = format!("{:<44} {:<12} total ms  products  share\n", "Programs", "engine");
    for r in records.iter().filter(|r| r.status == Status::Ok) {
        let case = format!("{} {} n={}", r.case.operation, r.case.matrix, r.case.columns);
        let number = |x: Option<f64>| x.unwrap_or(f64::NAN);
        let _ = writeln!(
            out,
            "{case:<44} {:<12} {:>8.1} {:>9.1} {:>5.0}%",
            r.engine,
            number(r.execute_ms),
            number(r.product_ms),
            number(share(r)),
        );
    }
    out
}
