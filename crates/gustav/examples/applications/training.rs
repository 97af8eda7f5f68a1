//! What the trainings of graph networks have in common: their data and first weights, which are the
//! same for every engine and written out for others, the loss, and Adam.

use std::rc::Rc;

use gustav::{Result, parallel};

use super::algebra::{Algebra, Flat, Parameter, Term};
use super::program::Program;

/// Epochs of a training.
pub const EPOCHS: usize = 20;
/// Numbers that a vertex has, and classes that it may be of.
pub const FEATURES: usize = 128;
pub const CLASSES: usize = 16;

/// A row-major matrix.
pub struct Array {
    pub rows: usize,
    pub columns: usize,
    pub values: Vec<f32>,
}

/// Vertices with labels, and the first parameters of a network.
pub struct Data {
    pub features: Array,
    pub labels: Vec<u32>,
    pub parameters: Vec<Array>,
}

/// A number from −1 to 1 that is the same for `seed` and `k` everywhere: SplitMix64 (Steele, Lea,
/// Flood 2014).
fn noise(seed: u64, k: usize) -> f32 {
    let z = (seed << 40 ^ k as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(seed);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 40) as f32 / (1u64 << 23) as f32 - 1.0
}

impl Data {
    /// Features that tell of the label, under noise; `shapes` are those of the parameters, of which
    /// those of one row are biases and begin at 0, and the others uniform as Glorot and Bengio
    /// (2010) have them.
    pub fn new(vertices: usize, shapes: &[(usize, usize)]) -> Self {
        let label = |i: usize| ((noise(1, i) + 1.0) * 0.5 * CLASSES as f32) as u32 % CLASSES as u32;
        let labels: Vec<u32> = (0..vertices).map(label).collect();
        let mut features = vec![0.0; vertices * FEATURES];
        parallel::each_mut(&mut features, 1 << 14, |k, feature| {
            let (i, j) = (k / FEATURES, k % FEATURES);
            let own = j % CLASSES == labels[i] as usize;
            *feature = 0.5 * noise(2, k) + if own { 0.25 } else { 0.0 };
        });
        let parameter = |(seed, (rows, columns)): (usize, &(usize, usize))| {
            let (rows, columns) = (*rows, *columns);
            let bound = if rows == 1 { 0.0 } else { (6.0 / (rows + columns) as f32).sqrt() };
            let value = |k| bound * noise(3 + seed as u64, k);
            Array { rows, columns, values: (0..rows * columns).map(value).collect() }
        };
        Data {
            features: Array { rows: vertices, columns: FEATURES, values: features },
            labels,
            parameters: shapes.iter().enumerate().map(parameter).collect(),
        }
    }
}

/// Zeros.
pub fn zeros<A: Algebra>(on: &A, rows: usize, columns: usize) -> Result<A::Matrix> {
    on.matrix(rows, columns, vec![0.0; rows * columns])
}

/// Parameters in the memory of an algebra, in the order of [`Data::parameters`].
pub fn parameters<A: Algebra>(on: &A, data: &Data) -> Result<Vec<Parameter<A>>> {
    let parameter = |array: &Array| {
        let Array { rows, columns, values } = array;
        let zeros = || zeros(on, *rows, *columns);
        Ok(Parameter {
            initial: on.matrix(*rows, *columns, values.clone())?,
            value: zeros()?,
            gradient: zeros()?,
            first: zeros()?,
            second: zeros()?,
        })
    };
    data.parameters.iter().map(parameter).collect()
}

/// Brings `parameters` back to the first ones.
fn restart<A: Algebra>(on: &A, parameters: &mut [Parameter<A>]) -> Result<()> {
    for p in parameters {
        on.copy(p.initial.flat(), p.value.flat_mut())?;
        on.clear(p.first.flat_mut())?;
        on.clear(p.second.flat_mut())?;
    }
    Ok(())
}

/// The loss of a network, and its value in every epoch.
pub struct Loss<A: Algebra> {
    algebra: Rc<A>,
    labels: A::Labels,
    of_rows: A::Vector,
    of_epochs: Vec<A::Vector>,
}

impl<A: Algebra> Loss<A> {
    pub fn new(algebra: Rc<A>, data: &Data) -> Result<Self> {
        Ok(Loss {
            labels: algebra.labels(data.labels.clone())?,
            of_rows: algebra.vector(vec![0.0; data.labels.len()])?,
            of_epochs: (0..EPOCHS).map(|_| algebra.vector(vec![0.0])).collect::<Result<_>>()?,
            algebra,
        })
    }

    /// Keeps the loss of `z` in this epoch, and gives its gradient.
    pub fn gradient(&mut self, epoch: usize, z: &A::Matrix, g: &mut A::Matrix) -> Result<()> {
        let on = &self.algebra;
        on.cross_entropy(z.flat(), &self.labels, g.flat_mut(), self.of_rows.flat_mut())?;
        let rows = self.of_rows.flat();
        on.column_sums(Term::First, rows, rows, self.of_epochs[epoch].flat_mut())
    }

    /// The loss of every epoch.
    pub fn values(&self) -> Result<Vec<f32>> {
        let mut all = Vec::with_capacity(EPOCHS);
        for loss in &self.of_epochs {
            all.extend(self.algebra.read(loss.flat())?);
        }
        Ok(all)
    }
}

/// A network, trained as a program.
pub trait Network {
    type On: Algebra;

    fn algebra(&self) -> Rc<Self::On>;
    fn parameters(&mut self) -> &mut [Parameter<Self::On>];
    fn loss(&self) -> &Loss<Self::On>;
    /// Computes the loss of the epoch and its gradients, and moves the parameters.
    fn epoch(&mut self, epoch: usize) -> Result<()>;
}

impl<N: Network> Program for N {
    fn run(&mut self) -> Result<()> {
        restart(&*self.algebra(), self.parameters())?;
        (0..EPOCHS).try_for_each(|epoch| self.epoch(epoch))?;
        self.algebra().wait()
    }

    fn result(&self) -> Result<Vec<f32>> {
        self.loss().values()
    }
}

#[cfg(test)]
pub mod tests {
    use super::super::algebra::Host;
    use super::*;

    /// The slope of the loss along the gradient of every parameter is the gradient's norm.
    pub fn check_gradients<N: Network<On = Host>>(network: &mut N) {
        const STEP: f32 = 2e-2;
        let algebra = network.algebra();
        let loss = |network: &mut N| {
            restart(&*algebra, network.parameters()).unwrap();
            network.epoch(0).unwrap();
            f64::from(network.loss().values().unwrap()[0])
        };
        // Biases begin at 0, where every ReLU of an empty sum is undecided.
        for p in network.parameters() {
            p.initial.data_mut().iter_mut().for_each(|x| *x += 1e-2);
        }
        loss(network);
        let count = network.parameters().len();
        let of = |k: usize, network: &mut N| network.parameters()[k].gradient.data().to_vec();
        let gradients: Vec<_> = (0..count).map(|k| of(k, network)).collect();
        for (k, g) in gradients.iter().enumerate() {
            let norm = g.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
            assert!(norm > 1e-4, "parameter {k} has a gradient: {norm}");
            let mut along = |step: f32| {
                let first = network.parameters()[k].initial.data().to_vec();
                let moved = first.iter().zip(g).map(|(x, g)| x + step * g / norm as f32);
                let moved: Vec<f32> = moved.collect();
                network.parameters()[k].initial.data_mut().copy_from_slice(&moved);
                let found = loss(network);
                network.parameters()[k].initial.data_mut().copy_from_slice(&first);
                found
            };
            let slope = (along(STEP) - along(-STEP)) / f64::from(2.0 * STEP);
            assert!((slope - norm).abs() < 2e-2 * norm, "parameter {k}: {slope}, not {norm}");
        }
    }
}
