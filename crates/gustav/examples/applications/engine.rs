//! Who multiplies: gustav through a plan, the vendor's kernel, or a plain loop.

use std::time::{Duration, Instant};

use gustav::{Algorithm, Arith, Chooser, Csr, Dense, Device, Result, Semiring, SpmmPlan};

/// Multiplies A by dense matrices, and counts the time that takes.
pub trait Engine {
    /// C = A·B over the engine's semiring.
    fn multiply(&mut self, a: &Csr<f32>, b: &Dense<f32>, c: &mut Dense<f32>) -> Result<()>;

    /// The time spent since the last call.
    fn take_spent(&mut self) -> Duration;
}

/// What gustav is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rival {
    /// The vendor's kernel, on a GPU.
    Vendor,
    /// A loop over rows on one thread.
    Loop,
}

struct Counted<F> {
    /// Without one, the loop multiplies.
    plan: Option<SpmmPlan<'static, f32>>,
    spent: Duration,
    /// An empty sum.
    zero: f32,
    /// The sum with one more product, of the first two arguments.
    add_product: F,
}

/// The engine of + and ×.
///
/// # Errors
/// The library's own.
pub fn plus_times(
    device: &Device,
    a: &Csr<f32>,
    columns: usize,
    rival: Option<Rival>,
) -> Result<Box<dyn Engine>> {
    let add_product = |a: f32, b: f32, sum: f32| a.times_plus(b, sum);
    engine(Semiring::PlusTimes, add_product, device, a, columns, rival)
}

/// The engine of min and +.
///
/// # Errors
/// The library's own, for a vendor too: none has this semiring.
pub fn min_plus(
    device: &Device,
    a: &Csr<f32>,
    columns: usize,
    rival: Option<Rival>,
) -> Result<Box<dyn Engine>> {
    let add_product = |a: f32, b: f32, sum: f32| Arith::minimum(sum, a.plus_saturating(b));
    engine(Semiring::MinPlus, add_product, device, a, columns, rival)
}

fn engine<F: Fn(f32, f32, f32) -> f32 + 'static>(
    semiring: Semiring,
    add_product: F,
    device: &Device,
    a: &Csr<f32>,
    columns: usize,
    rival: Option<Rival>,
) -> Result<Box<dyn Engine>> {
    let request = a.pattern().spmm(columns).calls(1000).semiring(semiring);
    let plan = match rival {
        None => Some(request.plan(device)?),
        Some(Rival::Vendor) => {
            let device = device.clone().choose(Chooser::Named(Algorithm::Vendor));
            Some(request.plan(&device)?)
        }
        Some(Rival::Loop) => None,
    };
    Ok(Box::new(Counted { plan, spent: Duration::ZERO, zero: semiring.zero(), add_product }))
}

impl<F: Fn(f32, f32, f32) -> f32> Engine for Counted<F> {
    fn multiply(&mut self, a: &Csr<f32>, b: &Dense<f32>, c: &mut Dense<f32>) -> Result<()> {
        let start = Instant::now();
        match &mut self.plan {
            Some(plan) => plan.execute(a, b, c, ())?,
            None => plain(a, b, c, self.zero, &self.add_product),
        }
        self.spent += start.elapsed();
        Ok(())
    }

    fn take_spent(&mut self) -> Duration {
        std::mem::take(&mut self.spent)
    }
}

/// Row by row, entry by entry, on one thread.
fn plain(
    a: &Csr<f32>,
    b: &Dense<f32>,
    c: &mut Dense<f32>,
    zero: f32,
    add_product: impl Fn(f32, f32, f32) -> f32,
) {
    let n = b.ncols();
    let view = a.view();
    for (i, row) in c.data_mut().chunks_exact_mut(n).enumerate() {
        row.fill(zero);
        let (columns, values) = view.row(i);
        for (&k, &value) in columns.iter().zip(values) {
            let source = &b.data()[k as usize * n..][..n];
            for (sum, &other) in row.iter_mut().zip(source) {
                *sum = add_product(value, other, *sum);
            }
        }
    }
}

/// The largest difference of two solutions, relative to the largest finite element.
pub fn difference(one: &Dense<f32>, other: &Dense<f32>) -> f64 {
    let pairs = || one.data().iter().zip(other.data()).map(|(x, y)| (f64::from(*x), f64::from(*y)));
    let size = pairs().map(|(x, _)| x.abs()).filter(|x| x.is_finite()).fold(1e-30, f64::max);
    // Elements that are infinite in both do not differ.
    pairs().filter(|(x, y)| x != y).map(|(x, y)| (x - y).abs() / size).fold(0.0, f64::max)
}
