//! Dense algebra in host memory, on the threads of the device.

use std::time::Instant;

use gustav::{
    AttentionCall, AttentionGradients, AttentionGradientsCall, AttentionInputs, Dense, Device,
    Layout, Pattern, Result, SddmmPlan, SoftmaxPlan, SpmmPlan, SpmvPlan, Threads, parallel,
};

use super::{
    Algebra, CALLS, DECAY, EPSILON, Flat, PAIR_WIDTH, Parameter, SLOPE, Shape, Term, WeightedSums,
    corrected, products, width_of_pairs,
};

// Elements that a task has at least.
const LEAST: usize = 1 << 14;

/// Host memory.
pub struct Host {
    threads: Threads,
}

impl Host {
    pub fn new(device: &Device) -> Self {
        Host { threads: device.threads().clone() }
    }

    /// Calls `work` for rows of `x` of so many columns, with the number of the first, on all
    /// threads.
    fn rows(&self, x: &mut [f32], columns: usize, work: impl Fn(usize, &mut [f32]) + Sync) {
        let columns = columns.max(1);
        let rows = LEAST.div_ceil(columns);
        parallel::on(&self.threads, || {
            parallel::chunks_mut(x, rows * columns, |k, chunk| work(k * rows, chunk));
        });
    }

    /// Calls `work` for every element of `x` with its number.
    fn each(&self, x: &mut [f32], work: impl Fn(usize, &mut f32) + Sync) {
        self.rows(x, 1, |first, chunk| {
            chunk.iter_mut().enumerate().for_each(|(k, x)| work(first + k, x));
        });
    }
}

impl Flat<Host> for Dense<f32> {
    fn flat(&self) -> &[f32] {
        self.data()
    }

    fn flat_mut(&mut self) -> &mut [f32] {
        self.data_mut()
    }
}

impl Flat<Host> for Vec<f32> {
    fn flat(&self) -> &[f32] {
        self
    }

    fn flat_mut(&mut self) -> &mut [f32] {
        self
    }
}

impl Algebra for Host {
    type Matrix = Dense<f32>;
    type Vector = Vec<f32>;
    type Labels = Vec<u32>;
    type Pattern = Pattern;
    type Slice<'a> = &'a [f32];
    type SliceMut<'a> = &'a mut [f32];
    type Mark = Instant;

    products!();

    fn pattern(&self, pattern: &Pattern) -> Result<Pattern> {
        Ok(pattern.clone())
    }

    fn matrix(&self, rows: usize, columns: usize, values: Vec<f32>) -> Result<Dense<f32>> {
        Dense::from_row_major(rows, columns, values)
    }

    fn vector(&self, values: Vec<f32>) -> Result<Vec<f32>> {
        Ok(values)
    }

    fn labels(&self, labels: Vec<u32>) -> Result<Vec<u32>> {
        Ok(labels)
    }

    fn read(&self, values: &[f32]) -> Result<Vec<f32>> {
        Ok(values.to_vec())
    }

    fn wait(&self) -> Result<()> {
        Ok(())
    }

    fn mark(&self) -> Result<Instant> {
        Ok(Instant::now())
    }

    fn milliseconds(from: &Instant, to: &Instant) -> Result<f64> {
        Ok(to.duration_since(*from).as_secs_f64() * 1e3)
    }

    fn copy(&self, from: &[f32], to: &mut [f32]) -> Result<()> {
        self.rows(to, 1, |first, chunk| chunk.copy_from_slice(&from[first..][..chunk.len()]));
        Ok(())
    }

    fn clear(&self, values: &mut [f32]) -> Result<()> {
        values.fill(0.0);
        Ok(())
    }

    fn column_sums(&self, term: Term, x: &[f32], y: &[f32], to: &mut [f32]) -> Result<()> {
        let columns = to.len();
        let y = &y[..x.len()];
        let chunk = LEAST.div_ceil(columns) * columns;
        let partial = parallel::on(&self.threads, || {
            parallel::map(x.len().div_ceil(chunk), |k| {
                let range = k * chunk..x.len().min((k + 1) * chunk);
                let mut sums = vec![0.0f64; columns];
                let rows = x[range.clone()].chunks_exact(columns);
                for (x, y) in rows.zip(y[range].chunks_exact(columns)) {
                    for ((sum, x), y) in sums.iter_mut().zip(x).zip(y) {
                        let (x, y) = (f64::from(*x), f64::from(*y));
                        *sum += match term {
                            Term::First => x,
                            Term::Product => x * y,
                            Term::Distance => (x - y).abs(),
                            Term::Unequal => f64::from(u8::from(x != y)),
                        };
                    }
                }
                sums
            })
        });
        for (j, to) in to.iter_mut().enumerate() {
            *to = partial.iter().map(|sums| sums[j]).sum::<f64>() as f32;
        }
        Ok(())
    }

    fn ratios(&self, over: &[f32], under: &[f32], to: &mut [f32]) -> Result<()> {
        for ((to, over), under) in to.iter_mut().zip(over).zip(under) {
            *to = if *under > 0.0 { over / under } else { 0.0 };
        }
        Ok(())
    }

    fn add_columns(&self, x: &mut [f32], sign: f32, factors: &[f32], y: &[f32]) -> Result<()> {
        let n = factors.len();
        self.rows(x, n, |first, rows| {
            for (x, y) in rows.chunks_exact_mut(n).zip(y[first * n..].chunks_exact(n)) {
                for ((x, y), factor) in x.iter_mut().zip(y).zip(factors) {
                    *x += sign * factor * y;
                }
            }
        });
        Ok(())
    }

    fn scale_columns(&self, x: &mut [f32], factors: &[f32], y: &[f32]) -> Result<()> {
        let n = factors.len();
        self.rows(x, n, |first, rows| {
            for (x, y) in rows.chunks_exact_mut(n).zip(y[first * n..].chunks_exact(n)) {
                for ((x, y), factor) in x.iter_mut().zip(y).zip(factors) {
                    *x = factor * *x + y;
                }
            }
        });
        Ok(())
    }

    fn add_number(&self, x: &mut [f32], constant: f32, factor: f32, number: &[f32]) -> Result<()> {
        let sum = constant + factor * number[0];
        self.each(x, |_, x| *x += sum);
        Ok(())
    }

    fn multiply(
        &self,
        (x, transpose_x): (&Dense<f32>, bool),
        (y, transpose_y): (&Dense<f32>, bool),
        beta: f32,
        to: &mut Dense<f32>,
    ) -> Result<()> {
        // A transposed operand that is small is written out; a tall Xᵀ is added up in parts below.
        let written;
        let y = match transpose_y {
            true => {
                written = transposed(y)?;
                &written
            }
            false => y,
        };
        let n = y.ncols();
        if transpose_x {
            let rows = LEAST.div_ceil(x.ncols() + n);
            let parts = parallel::on(&self.threads, || {
                parallel::map(x.nrows().div_ceil(rows), |k| {
                    let mut sums = vec![0.0f32; x.ncols() * n];
                    for i in k * rows..x.nrows().min((k + 1) * rows) {
                        let row = &y.data()[i * n..][..n];
                        let of_x = &x.data()[i * x.ncols()..][..x.ncols()];
                        add_products(&mut sums, of_x, row);
                    }
                    sums
                })
            });
            self.each(to.data_mut(), |k, to| {
                let sum: f64 = parts.iter().map(|part| f64::from(part[k])).sum();
                *to = sum as f32 + if beta == 0.0 { 0.0 } else { beta * *to };
            });
            return Ok(());
        }
        let depth = x.ncols();
        self.rows(to.data_mut(), n, |first, rows| {
            for (k, row) in rows.chunks_exact_mut(n).enumerate() {
                match beta == 0.0 {
                    true => row.fill(0.0),
                    false => row.iter_mut().for_each(|to| *to *= beta),
                }
                let x = &x.data()[(first + k) * depth..][..depth];
                for (x, y) in x.iter().zip(y.data().chunks_exact(n)) {
                    row.iter_mut().zip(y).for_each(|(to, y)| *to += x * y);
                }
            }
        });
        Ok(())
    }

    fn add_bias(&self, x: &mut [f32], bias: &[f32], relu: bool) -> Result<()> {
        self.rows(x, bias.len(), |_, rows| {
            for row in rows.chunks_exact_mut(bias.len()) {
                for (x, bias) in row.iter_mut().zip(bias) {
                    *x += bias;
                    if relu {
                        *x = x.max(0.0);
                    }
                }
            }
        });
        Ok(())
    }

    fn relu_gradient(&self, g: &mut [f32], x: &[f32]) -> Result<()> {
        self.each(g, |k, g| *g = if x[k] > 0.0 { *g } else { 0.0 });
        Ok(())
    }

    fn cross_entropy(
        &self,
        z: &[f32],
        labels: &Vec<u32>,
        g: &mut [f32],
        losses: &mut [f32],
    ) -> Result<()> {
        let rows = labels.len();
        let (classes, share) = (z.len() / rows, 1.0 / rows as f32);
        let normaliser = |row: usize| {
            let z = &z[row * classes..][..classes];
            let most = z.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            (z, most, z.iter().map(|z| (z - most).exp()).sum::<f32>())
        };
        self.rows(g, classes, |first, g| {
            for (k, g) in g.chunks_exact_mut(classes).enumerate() {
                let (z, most, sum) = normaliser(first + k);
                for (class, (g, z)) in g.iter_mut().zip(z).enumerate() {
                    let hit = f32::from(u8::from(labels[first + k] as usize == class));
                    *g = ((z - most).exp() / sum - hit) * share;
                }
            }
        });
        self.each(losses, |row, loss| {
            let (z, most, sum) = normaliser(row);
            *loss = (sum.ln() + most - z[labels[row] as usize]) * share;
        });
        Ok(())
    }

    fn adam(&self, parameter: &mut Parameter<Self>, step: usize) -> Result<()> {
        let (rate, root) = corrected(step);
        let Parameter { value, gradient, first, second, .. } = parameter;
        let moments = first.data_mut().iter_mut().zip(second.data_mut());
        let all = value.data_mut().iter_mut().zip(gradient.data()).zip(moments);
        for ((value, g), (first, second)) in all {
            *first = DECAY.0 * *first + (1.0 - DECAY.0) * g;
            *second = DECAY.1 * *second + (1.0 - DECAY.1) * g * g;
            *value -= rate * *first / (second.sqrt() * root + EPSILON);
        }
        Ok(())
    }

    fn leaky_relu(&self, x: &[f32], to: &mut [f32]) -> Result<()> {
        self.each(to, |k, to| *to = if x[k] > 0.0 { x[k] } else { SLOPE * x[k] });
        Ok(())
    }

    fn leaky_relu_gradient(&self, g: &mut [f32], x: &[f32]) -> Result<()> {
        self.each(g, |k, g| *g *= if x[k] > 0.0 { 1.0 } else { SLOPE });
        Ok(())
    }

    fn split_scores(&self, scores: &[f32], x: &mut [f32], y: &mut [f32]) -> Result<()> {
        let width = width_of_pairs(scores.len(), x.len());
        let element = |k: usize, of_score: usize| match k % width {
            column if column == of_score => scores[k / width * 2 + of_score],
            0 | 1 => 1.0,
            _ => 0.0,
        };
        self.each(x, |k, x| *x = element(k, 0));
        self.each(y, |k, y| *y = element(k, 1));
        Ok(())
    }

    fn join_scores(&self, of_x: &[f32], of_y: &[f32], to: &mut [f32]) -> Result<()> {
        let width = width_of_pairs(to.len(), of_x.len());
        self.each(to, |k, to| {
            *to = if k % 2 == 0 { of_x[k / 2 * width] } else { of_y[k / 2 * width + 1] };
        });
        Ok(())
    }
}

/// Adds x[i]·y[j] to element (i, j) of `sums`.
fn add_products(sums: &mut [f32], x: &[f32], y: &[f32]) {
    for (sums, x) in sums.chunks_exact_mut(y.len()).zip(x) {
        sums.iter_mut().zip(y).for_each(|(sum, y)| *sum += x * y);
    }
}

fn transposed(x: &Dense<f32>) -> Result<Dense<f32>> {
    Dense::from_fn(x.ncols(), x.nrows(), Layout::RowMajor, |i, j| x.get(j, i))
}
