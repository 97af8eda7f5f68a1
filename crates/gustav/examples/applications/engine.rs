//! Who multiplies: gustav through a plan, the vendor's kernel, or a plain loop.

use std::marker::PhantomData;
use std::time::{Duration, Instant};

use gustav::{
    Algorithm, Chooser, Csr, Dense, Device, MinPlus, PlusTimes, Problem, Result, Semiring, SpmmPlan,
};

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

struct Counted<S> {
    /// Without one, the loop multiplies.
    plan: Option<SpmmPlan<f32>>,
    spent: Duration,
    semiring: PhantomData<S>,
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
    engine::<PlusTimes>(device, a, columns, rival)
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
    engine::<MinPlus>(device, a, columns, rival)
}

fn engine<S: Semiring<f32>>(
    device: &Device,
    a: &Csr<f32>,
    columns: usize,
    rival: Option<Rival>,
) -> Result<Box<dyn Engine>> {
    let problem = Problem::spmm(&a.view()).columns(columns).calls(1000).semiring(S::KIND);
    let plan = match rival {
        None => Some(device.plan_spmm(a, &problem)?),
        Some(Rival::Vendor) => {
            let device = device.clone().choose(Chooser::Named(Algorithm::Vendor));
            Some(device.plan_spmm(a, &problem)?)
        }
        Some(Rival::Loop) => None,
    };
    Ok(Box::new(Counted::<S> { plan, spent: Duration::ZERO, semiring: PhantomData }))
}

impl<S: Semiring<f32>> Engine for Counted<S> {
    fn multiply(&mut self, a: &Csr<f32>, b: &Dense<f32>, c: &mut Dense<f32>) -> Result<()> {
        let start = Instant::now();
        match &mut self.plan {
            Some(plan) => plan.execute_with(S::default(), a, S::one(), b, S::zero(), c)?,
            None => plain::<S>(a, b, c),
        }
        self.spent += start.elapsed();
        Ok(())
    }

    fn take_spent(&mut self) -> Duration {
        std::mem::take(&mut self.spent)
    }
}

/// Row by row, entry by entry, on one thread.
fn plain<S: Semiring<f32>>(a: &Csr<f32>, b: &Dense<f32>, c: &mut Dense<f32>) {
    let n = b.ncols();
    let view = a.view();
    for (i, row) in c.data_mut().chunks_exact_mut(n).enumerate() {
        row.fill(S::zero());
        let (columns, values) = view.row(i);
        for (&k, &value) in columns.iter().zip(values) {
            let source = &b.data()[k as usize * n..][..n];
            for (sum, &other) in row.iter_mut().zip(source) {
                *sum = S::mul_add(value, other, *sum);
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
