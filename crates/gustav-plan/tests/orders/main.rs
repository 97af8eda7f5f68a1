//! Row orders: the definitions, taken literally, against what is built.

mod by_hand;
mod definitions;
mod files;
mod properties;

use gustav_core::Csr;

/// A pattern from the columns of its rows.
fn matrix(rows: &[&[u32]], cols: usize) -> Csr<f32> {
    let mut offsets = vec![0u32];
    offsets.extend(rows.iter().scan(0, |end, row| {
        *end += row.len() as u32;
        Some(*end)
    }));
    let indices = rows.concat();
    let values = vec![1.0; indices.len()];
    Csr::new(rows.len(), cols, offsets, indices, values).expect("a matrix")
}
