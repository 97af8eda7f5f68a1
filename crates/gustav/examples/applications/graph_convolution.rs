//! A graph convolution of two layers (Kipf and Welling, 2017), trained: Z = Â·relu(Â·X·W₁ +
//! b₁)·W₂ + b₂ with the cross entropy of Z. Â is symmetric, so that the gradients are products with the
//! same plans.

use std::rc::Rc;

use gustav::{Csr, Result, Semiring};

use super::algebra::{Algebra, Flat, Parameter, Shape, Term};
use super::engine::{Products, Spmm};
use super::graph;
use super::training::{CLASSES, Data, FEATURES, Loss, Network, parameters, zeros};

/// Â = D^(−1/2)·(W + I)·D^(−1/2) of the undirected graph W, D being the degrees of W + I.
pub fn prepare(pattern: &Csr<f32>) -> Result<Csr<f32>> {
    graph::with_values(&graph::undirected(pattern, true)?, |i, j, degrees| {
        1.0 / ((degrees[i] as f32).sqrt() * (degrees[j] as f32).sqrt())
    })
}

/// The data of a training with a hidden layer of so many columns: W₁, b₁, W₂, b₂.
pub fn data(a: &Csr<f32>, hidden: usize) -> Data {
    Data::new(a.nrows(), &[(FEATURES, hidden), (1, hidden), (hidden, CLASSES), (1, CLASSES)])
}

/// The network with its operands.
pub struct GraphConvolution<'e, A: Algebra> {
    algebra: Rc<A>,
    hidden: Spmm<'e, A>,
    output: Spmm<'e, A>,
    values: A::Vector,
    parameters: Vec<Parameter<A>>,
    loss: Loss<A>,
    features: A::Matrix,
    /// X·W₁, and the gradient of it.
    xw: A::Matrix,
    h: A::Matrix,
    of_h: A::Matrix,
    hw: A::Matrix,
    z: A::Matrix,
    of_z: A::Matrix,
}

impl<'e, A: Algebra> GraphConvolution<'e, A> {
    pub fn new(products: &mut Products<'e, A>, a: &Csr<f32>, hidden: usize) -> Result<Self> {
        let algebra = products.algebra.clone();
        let (m, data) = (a.nrows(), data(a, hidden));
        let pattern = algebra.pattern(a.pattern())?;
        let (transpose, semiring) = (false, Semiring::PlusTimes);
        let mut spmm = |columns| products.spmm(&pattern, Shape { columns, transpose, semiring });
        let tall = |columns| zeros(&*algebra, m, columns);
        Ok(GraphConvolution {
            hidden: spmm(hidden)?,
            output: spmm(CLASSES)?,
            values: algebra.vector(a.values().as_slice().to_vec())?,
            parameters: parameters(&*algebra, &data)?,
            loss: Loss::new(algebra.clone(), &data)?,
            features: algebra.matrix(m, FEATURES, data.features.values)?,
            xw: tall(hidden)?,
            h: tall(hidden)?,
            of_h: tall(hidden)?,
            hw: tall(CLASSES)?,
            z: tall(CLASSES)?,
            of_z: tall(CLASSES)?,
            algebra,
        })
    }
}

impl<A: Algebra> Network for GraphConvolution<'_, A> {
    type On = A;

    fn algebra(&self) -> Rc<A> {
        self.algebra.clone()
    }

    fn parameters(&mut self) -> &mut [Parameter<A>] {
        &mut self.parameters
    }

    fn loss(&self) -> &Loss<A> {
        &self.loss
    }

    fn epoch(&mut self, epoch: usize) -> Result<()> {
        let Self { algebra: on, values, features, xw, h, of_h, hw, z, of_z, .. } = self;
        let [w1, b1, w2, b2] = &mut self.parameters[..] else { return Ok(()) };
        on.multiply((features, false), (&w1.value, false), 0.0, xw)?;
        (self.hidden)(values, xw, h)?;
        on.add_bias(h.flat_mut(), b1.value.flat(), true)?;
        on.multiply((h, false), (&w2.value, false), 0.0, hw)?;
        (self.output)(values, hw, z)?;
        on.add_bias(z.flat_mut(), b2.value.flat(), false)?;
        self.loss.gradient(epoch, z, of_z)?;

        on.column_sums(Term::First, of_z.flat(), of_z.flat(), b2.gradient.flat_mut())?;
        (self.output)(values, of_z, hw)?;
        on.multiply((h, true), (hw, false), 0.0, &mut w2.gradient)?;
        on.multiply((hw, false), (&w2.value, true), 0.0, of_h)?;
        on.relu_gradient(of_h.flat_mut(), h.flat())?;
        on.column_sums(Term::First, of_h.flat(), of_h.flat(), b1.gradient.flat_mut())?;
        (self.hidden)(values, of_h, xw)?;
        on.multiply((features, true), (xw, false), 0.0, &mut w1.gradient)?;
        self.parameters.iter_mut().try_for_each(|p| on.adam(p, epoch + 1))
    }
}

#[cfg(test)]
mod tests {
    use gustav::Device;

    use super::super::algebra::Host;
    use super::super::engine::Plans;
    use super::super::training::tests::check_gradients;
    use super::*;

    #[test]
    fn gradients_are_slopes() {
        let graph = "rmat:6,5".parse::<gustav::io::Generator>().unwrap().build(2).unwrap();
        let a = prepare(&graph.canonicalize().unwrap()).unwrap();
        let device = Device::cpu();
        let mut products = Products::new(Host::new(&device), Plans::new(&device));
        check_gradients(&mut GraphConvolution::new(&mut products, &a, 8).unwrap());
    }
}
