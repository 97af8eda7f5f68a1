//! A 5-point grid times 64 columns: plan once, multiply ten times, say how.

use std::time::Instant;

use gustav::{Csr, Dense, Device, Layout, Result};

fn main() -> Result<()> {
    let a = grid(500)?;
    let b = Dense::from_fn(a.ncols(), 64, Layout::RowMajor, |i, j| ((i + j) % 7) as f32)?;
    let mut c = Dense::zeros(a.nrows(), 64, Layout::RowMajor)?;

    let mut plan = a.pattern().spmm(64).calls(10).plan(&Device::cpu())?;
    println!("{}", plan.explain());
    for _ in 0..10 {
        let start = Instant::now();
        plan.execute(&a, &b, &mut c, ())?;
        println!("execute    {:.3} ms", start.elapsed().as_secs_f64() * 1e3);
    }
    println!("C(0, 0)    {}", c.get(0, 0));
    Ok(())
}

/// The Laplacian of an `n` × `n` grid: 4 on the diagonal, −1 for each neighbour.
fn grid(n: usize) -> Result<Csr<f32>> {
    let (mut offsets, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for k in 0..n * n {
        let (i, j) = (k / n, k % n);
        let neighbours = [
            (i > 0, k.wrapping_sub(n)),
            (j > 0, k.wrapping_sub(1)),
            (true, k),
            (j + 1 < n, k + 1),
            (i + 1 < n, k + n),
        ];
        for (_, column) in neighbours.into_iter().filter(|(inside, _)| *inside) {
            indices.push(column as u32);
            values.push(if column == k { 4.0 } else { -1.0 });
        }
        offsets.push(indices.len() as u32);
    }
    Csr::new(n * n, n * n, offsets, indices, values)
}
