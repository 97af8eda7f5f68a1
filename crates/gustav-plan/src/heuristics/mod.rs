//! Rules that choose an algorithm from facts.

pub mod cpu_spgemm;
pub mod cpu_spmm;
pub mod cpu_spmv;
pub mod cuda_sddmm;
pub mod cuda_spgemm;
pub mod cuda_spmm;
pub mod cuda_spmv;
pub mod masked;
pub mod mean_row_length;

/// Why the rows are not inspected.
pub fn uninspected(calls: u64) -> String {
    match calls {
        0 | 1 => ", not inspected for a single call".into(),
        _ => format!(", not inspected for {calls} calls, which would not repay it"),
    }
}
