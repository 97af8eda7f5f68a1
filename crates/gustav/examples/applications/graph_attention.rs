//! A graph attention network of two layers with one head (Veličković et al., 2018), trained. A
//! layer is O = softmax(leaky_relu(s_i + t_j) over the neighbours j of i)·H + b with H = X·W and
//! (s, t) = H·A. The sums s_i + t_j are dense products of depth 2 at the nonzeros; their gradients,
//! and those of the weighted sums, are the products that `SddmmGradients` and `SpmmGradients` plan.

use std::rc::Rc;

use gustav::{Csr, Result, Semiring};

use super::algebra::{Algebra, Flat, PAIR_WIDTH, Parameter, Shape, Term};
use super::engine::{Attention, Products, Sddmm, Softmax, Spmm};
use super::graph;
use super::training::{CLASSES, Data, FEATURES, Loss, Network, parameters, zeros};

/// The undirected graph, with an edge from every vertex to itself.
pub fn prepare(pattern: &Csr<f32>) -> Result<Csr<f32>> {
    graph::with_values(&graph::undirected(pattern, true)?, |_, _, _| 1.0)
}

/// The data of a training with a hidden layer of so many columns: W, A and b of both layers.
pub fn data(a: &Csr<f32>, hidden: usize) -> Data {
    let layer = |from, to| [(from, to), (to, 2), (1, to)];
    Data::new(a.nrows(), &[layer(FEATURES, hidden), layer(hidden, CLASSES)].concat())
}

/// From the scores (s, t) to the weighted sums: one product after another, with their values at the
/// nonzeros; or all in one.
enum Sums<'e, A: Algebra> {
    Apart {
        pair: Sddmm<'e, A>,
        to_first: Spmm<'e, A>,
        to_second: Spmm<'e, A>,
        sum: Spmm<'e, A>,
        sum_transposed: Spmm<'e, A>,
        of_weights: Sddmm<'e, A>,
        softmax: Box<dyn Softmax<A> + 'e>,
        /// sᵢ + tⱼ, and that after the ReLU with its gradient.
        pairs: A::Vector,
        edges: A::Vector,
        of_edges: A::Vector,
        /// After the softmax, and the gradient of that.
        weights: A::Vector,
        gradients: A::Vector,
    },
    /// With the sums before the bias.
    Fused { attention: Box<dyn Attention<A> + 'e>, bare: A::Matrix },
}

/// A layer with its operands.
struct Layer<'e, A: Algebra> {
    algebra: Rc<A>,
    sums: Sums<'e, A>,
    relu: bool,
    /// X·W, and its gradient.
    h: A::Matrix,
    of_h: A::Matrix,
    /// (s, t), and as operands of the pairs' sums, with gradients.
    scores: A::Matrix,
    first: A::Matrix,
    second: A::Matrix,
    of_first: A::Matrix,
    of_second: A::Matrix,
    output: A::Matrix,
}

impl<'e, A: Algebra> Layer<'e, A> {
    fn new(
        products: &mut Products<'e, A>,
        pattern: &A::Pattern,
        a: &Csr<f32>,
        columns: usize,
        relu: bool,
    ) -> Result<Self> {
        let algebra = products.algebra.clone();
        let semiring = Semiring::PlusTimes;
        let spmm = |products: &mut Products<'e, A>, columns, transpose| {
            products.spmm(pattern, Shape { columns, transpose, semiring })
        };
        let tall = |columns| zeros(&*algebra, a.nrows(), columns);
        let long = || algebra.vector(vec![0.0; a.nnz()]);
        let (sums, width) = match products.attention(pattern, columns)? {
            Some(attention) => (Sums::Fused { attention, bare: tall(columns)? }, PAIR_WIDTH),
            None => {
                let apart = Sums::Apart {
                    pair: products.sddmm(pattern, 2)?,
                    to_first: spmm(products, 2, false)?,
                    to_second: spmm(products, 2, true)?,
                    sum: spmm(products, columns, false)?,
                    sum_transposed: spmm(products, columns, true)?,
                    of_weights: products.sddmm(pattern, columns)?,
                    softmax: products.softmax(pattern)?,
                    pairs: long()?,
                    edges: long()?,
                    of_edges: long()?,
                    weights: long()?,
                    gradients: long()?,
                };
                (apart, 2)
            }
        };
        Ok(Layer {
            sums,
            relu,
            h: tall(columns)?,
            of_h: tall(columns)?,
            scores: tall(2)?,
            first: tall(width)?,
            second: tall(width)?,
            of_first: tall(width)?,
            of_second: tall(width)?,
            output: tall(columns)?,
            algebra,
        })
    }

    fn forward(&mut self, x: &A::Matrix, parameters: &[Parameter<A>]) -> Result<()> {
        let Self { algebra: on, h, scores, first, second, output, .. } = self;
        let [w, a, b] = parameters else { return Ok(()) };
        on.multiply((x, false), (&w.value, false), 0.0, h)?;
        on.multiply((h, false), (&a.value, false), 0.0, scores)?;
        on.split_scores(scores.flat(), first.flat_mut(), second.flat_mut())?;
        match &mut self.sums {
            Sums::Apart { pair, pairs, edges, sum, softmax, weights, .. } => {
                pair(first, second, pairs)?;
                on.leaky_relu(pairs.flat(), edges.flat_mut())?;
                softmax.weights(edges, weights)?;
                sum(weights, h, output)?;
            }
            Sums::Fused { attention, bare } => {
                attention.sums((first, second), h, bare)?;
                on.copy(bare.flat(), output.flat_mut())?;
            }
        }
        on.add_bias(output.flat_mut(), b.value.flat(), self.relu)
    }

    /// The gradients of the parameters, given `g`, that of the sums before the ReLU, and to `of_x`
    /// that of `x`.
    fn backward(
        &mut self,
        x: &A::Matrix,
        g: &A::Matrix,
        parameters: &mut [Parameter<A>],
        of_x: Option<&mut A::Matrix>,
    ) -> Result<()> {
        let Self { algebra: on, h, of_h, scores, first, second, of_first, of_second, .. } = self;
        let [w, a, b] = parameters else { return Ok(()) };
        on.column_sums(Term::First, g.flat(), g.flat(), b.gradient.flat_mut())?;
        match &mut self.sums {
            Sums::Apart {
                to_first,
                to_second,
                sum_transposed,
                of_weights,
                softmax,
                pairs,
                of_edges,
                weights,
                gradients,
                ..
            } => {
                sum_transposed(weights, g, of_h)?;
                of_weights(g, h, gradients)?;
                softmax.gradient(weights, gradients, of_edges)?;
                on.leaky_relu_gradient(of_edges.flat_mut(), pairs.flat())?;
                to_first(of_edges, second, of_first)?;
                to_second(of_edges, first, of_second)?;
            }
            Sums::Fused { attention, bare } => {
                let of_pair = (&mut *of_first, &mut *of_second);
                attention.gradients((first, second), (h, bare, g), of_h, of_pair)?;
            }
        }
        // The gradient of (s, 1) is of the rows, that of (1, t) of the columns.
        on.join_scores(of_first.flat(), of_second.flat(), scores.flat_mut())?;
        on.multiply((scores, false), (&a.value, true), 1.0, of_h)?;
        on.multiply((h, true), (scores, false), 0.0, &mut a.gradient)?;
        on.multiply((x, true), (of_h, false), 0.0, &mut w.gradient)?;
        match of_x {
            Some(of_x) => on.multiply((of_h, false), (&w.value, true), 0.0, of_x),
            None => Ok(()),
        }
    }
}

/// The network with its operands.
pub struct GraphAttention<'e, A: Algebra> {
    algebra: Rc<A>,
    layers: [Layer<'e, A>; 2],
    parameters: Vec<Parameter<A>>,
    loss: Loss<A>,
    features: A::Matrix,
    of_z: A::Matrix,
    of_hidden: A::Matrix,
}

impl<'e, A: Algebra> GraphAttention<'e, A> {
    pub fn new(products: &mut Products<'e, A>, a: &Csr<f32>, hidden: usize) -> Result<Self> {
        let algebra = products.algebra.clone();
        let (m, data) = (a.nrows(), data(a, hidden));
        let pattern = algebra.pattern(a.pattern())?;
        Ok(GraphAttention {
            layers: [
                Layer::new(products, &pattern, a, hidden, true)?,
                Layer::new(products, &pattern, a, CLASSES, false)?,
            ],
            parameters: parameters(&*algebra, &data)?,
            loss: Loss::new(algebra.clone(), &data)?,
            features: algebra.matrix(m, FEATURES, data.features.values)?,
            of_z: zeros(&*algebra, m, CLASSES)?,
            of_hidden: zeros(&*algebra, m, hidden)?,
            algebra,
        })
    }
}

impl<A: Algebra> Network for GraphAttention<'_, A> {
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
        let Self { algebra: on, layers: [one, two], of_z, of_hidden, features, .. } = self;
        let (of_one, of_two) = self.parameters.split_at_mut(3);
        one.forward(features, of_one)?;
        two.forward(&one.output, of_two)?;
        self.loss.gradient(epoch, &two.output, of_z)?;
        two.backward(&one.output, of_z, of_two, Some(of_hidden))?;
        on.relu_gradient(of_hidden.flat_mut(), one.output.flat())?;
        one.backward(features, of_hidden, of_one, None)?;
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
        for plans in [Plans::new(&device), Plans::fused(&device)] {
            let mut products = Products::new(Host::new(&device), plans);
            check_gradients(&mut GraphAttention::new(&mut products, &a, 8).unwrap());
        }
    }
}
