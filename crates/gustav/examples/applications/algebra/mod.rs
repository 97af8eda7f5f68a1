//! What programs do between products: dense algebra on vectors and matrices of one memory, the
//! host's or a GPU's. Matrices are row-major and packed; [`Flat`] gives the elements of a matrix or
//! a vector in order.

mod gpu;
mod host;

pub use gpu::Gpu;
pub use host::Host;

use gustav::{
    AttentionGradientsPlan, AttentionPlan, Device, Pattern, Result, SddmmPlan, Semiring,
    SoftmaxPlan, SpmmPlan, SpmvPlan,
};

/// The SpMM that a program asks for.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Columns of B and C.
    pub columns: usize,
    /// Whether op(A) is Aᵀ.
    pub transpose: bool,
    /// What products add and multiply by.
    pub semiring: Semiring,
}

/// What [`Algebra::column_sums`] adds up of an element of X and one of Y.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Term {
    /// X's.
    First,
    /// X's times Y's.
    Product,
    /// The magnitude of the difference.
    Distance,
    /// One for elements that differ.
    Unequal,
}

/// Elements in order.
pub trait Flat<A: Algebra> {
    /// To be read.
    fn flat(&self) -> A::Slice<'_>;
    /// To be written.
    fn flat_mut(&mut self) -> A::SliceMut<'_>;
}

/// A parameter of a network with its gradient and what Adam remembers of it.
pub struct Parameter<A: Algebra> {
    pub initial: A::Matrix,
    pub value: A::Matrix,
    pub gradient: A::Matrix,
    pub first: A::Matrix,
    pub second: A::Matrix,
}

/// Plans of softmax(leaky_relu(X·Yᵀ))·V at the nonzeros, and of its gradients.
pub struct WeightedSums<A: Algebra> {
    product: AttentionPlan<'static, f32>,
    gradients: AttentionGradientsPlan<'static, f32>,
    lse: A::Vector,
}

/// Columns of X and Y in [`WeightedSums`]: as many as a GPU loads at once.
pub const PAIR_WIDTH: usize = 4;

/// Vectors, matrices, and what is computed with them. On a GPU everything is queued on the stream
/// of its device, in the order of the calls.
pub trait Algebra: Sized + 'static {
    type Matrix: Flat<Self>;
    type Vector: Flat<Self>;
    type Labels;
    type Pattern: Clone;
    type Slice<'a>: Copy;
    type SliceMut<'a>;
    /// A point in time.
    type Mark;

    /// A copy of `pattern` where the others are.
    fn pattern(&self, pattern: &Pattern) -> Result<Self::Pattern>;
    fn matrix(&self, rows: usize, columns: usize, values: Vec<f32>) -> Result<Self::Matrix>;
    fn vector(&self, values: Vec<f32>) -> Result<Self::Vector>;
    fn labels(&self, labels: Vec<u32>) -> Result<Self::Labels>;
    /// The elements on the host, after the work queued on them.
    fn read(&self, values: Self::Slice<'_>) -> Result<Vec<f32>>;
    /// Waits for all work.
    fn wait(&self) -> Result<()>;
    fn mark(&self) -> Result<Self::Mark>;
    fn milliseconds(from: &Self::Mark, to: &Self::Mark) -> Result<f64>;

    fn plan_spmm(on: &Device, p: &Self::Pattern, shape: Shape) -> Result<SpmmPlan<'static, f32>>;
    fn plan_spmv(on: &Device, p: &Self::Pattern) -> Result<SpmvPlan<'static, f32>>;
    fn plan_sddmm(on: &Device, p: &Self::Pattern, depth: usize) -> Result<SddmmPlan<'static, f32>>;
    fn plan_softmax(on: &Device, p: &Self::Pattern) -> Result<SoftmaxPlan<'static, f32>>;
    fn plan_weighted_sums(
        &self,
        on: &Device,
        p: &Self::Pattern,
        columns: usize,
    ) -> Result<WeightedSums<Self>>;
    fn spmm(
        plan: &mut SpmmPlan<'static, f32>,
        values: &Self::Vector,
        b: &Self::Matrix,
        c: &mut Self::Matrix,
    ) -> Result<()>;
    fn spmv(
        plan: &mut SpmvPlan<'static, f32>,
        values: &Self::Vector,
        x: &Self::Vector,
        y: &mut Self::Vector,
    ) -> Result<()>;
    fn sddmm(
        plan: &mut SddmmPlan<'static, f32>,
        x: &Self::Matrix,
        y: &Self::Matrix,
        values: &mut Self::Vector,
    ) -> Result<()>;
    fn softmax(
        plan: &mut SoftmaxPlan<'static, f32>,
        scores: &Self::Vector,
        weights: &mut Self::Vector,
    ) -> Result<()>;
    fn softmax_gradient(
        plan: &mut SoftmaxPlan<'static, f32>,
        weights: &Self::Vector,
        of_weights: &Self::Vector,
        to: &mut Self::Vector,
    ) -> Result<()>;
    /// o = softmax(leaky_relu(x·yᵀ))·v at the nonzeros.
    fn weighted_sums(
        plan: &mut WeightedSums<Self>,
        pair: (&Self::Matrix, &Self::Matrix),
        v: &Self::Matrix,
        o: &mut Self::Matrix,
    ) -> Result<()>;
    /// The gradients with respect to v, x and y, given v, o and the gradient with respect to o.
    fn weighted_sums_gradients(
        plan: &mut WeightedSums<Self>,
        pair: (&Self::Matrix, &Self::Matrix),
        inputs: (&Self::Matrix, &Self::Matrix, &Self::Matrix),
        of_v: &mut Self::Matrix,
        of_pair: (&mut Self::Matrix, &mut Self::Matrix),
    ) -> Result<()>;

    fn copy(&self, from: Self::Slice<'_>, to: Self::SliceMut<'_>) -> Result<()>;
    fn clear(&self, values: Self::SliceMut<'_>) -> Result<()>;
    /// to[j] = Σ over i of the term of x[i, j] and y[i, j], summed in f64; `to` has an element for
    /// every column.
    fn column_sums(
        &self,
        term: Term,
        x: Self::Slice<'_>,
        y: Self::Slice<'_>,
        to: Self::SliceMut<'_>,
    ) -> Result<()>;
    /// to = over / under, 0 where `under` is not positive.
    fn ratios(
        &self,
        over: Self::Slice<'_>,
        under: Self::Slice<'_>,
        to: Self::SliceMut<'_>,
    ) -> Result<()>;
    /// x[i, j] += sign·factors[j]·y[i, j].
    fn add_columns(
        &self,
        x: Self::SliceMut<'_>,
        sign: f32,
        factors: Self::Slice<'_>,
        y: Self::Slice<'_>,
    ) -> Result<()>;
    /// x[i, j] = factors[j]·x[i, j] + y[i, j].
    fn scale_columns(
        &self,
        x: Self::SliceMut<'_>,
        factors: Self::Slice<'_>,
        y: Self::Slice<'_>,
    ) -> Result<()>;
    /// x += constant + factor·number[0].
    fn add_number(
        &self,
        x: Self::SliceMut<'_>,
        constant: f32,
        factor: f32,
        number: Self::Slice<'_>,
    ) -> Result<()>;
    /// to = op(x)·op(y) + beta·to; the flags say which operands are transposed.
    fn multiply(
        &self,
        x: (&Self::Matrix, bool),
        y: (&Self::Matrix, bool),
        beta: f32,
        to: &mut Self::Matrix,
    ) -> Result<()>;
    /// x[i, j] += bias[j], then what is negative becomes 0 if `relu`.
    fn add_bias(&self, x: Self::SliceMut<'_>, bias: Self::Slice<'_>, relu: bool) -> Result<()>;
    /// Clears `g` where `x`, which `add_bias` gave, is not positive.
    fn relu_gradient(&self, g: Self::SliceMut<'_>, x: Self::Slice<'_>) -> Result<()>;
    /// The mean over rows of the cross entropy of softmax(z) and the labels: `losses` has a term
    /// for every row, `g` is its gradient with respect to `z`.
    fn cross_entropy(
        &self,
        z: Self::Slice<'_>,
        labels: &Self::Labels,
        g: Self::SliceMut<'_>,
        losses: Self::SliceMut<'_>,
    ) -> Result<()>;
    /// Step number `step`, from 1, of Adam (Kingma and Ba, 2015).
    fn adam(&self, parameter: &mut Parameter<Self>, step: usize) -> Result<()>;
    /// to = x, times [`SLOPE`] where it is negative.
    fn leaky_relu(&self, x: Self::Slice<'_>, to: Self::SliceMut<'_>) -> Result<()>;
    /// Multiplies `g` by [`SLOPE`] where `x` is not positive.
    fn leaky_relu_gradient(&self, g: Self::SliceMut<'_>, x: Self::Slice<'_>) -> Result<()>;
    /// Of every row (s, t) of `scores`: x = (s, 1) and y = (1, t), so that ⟨x[i], y[j]⟩ = s[i] +
    /// t[j]; with zeros behind where rows of x and y are longer.
    fn split_scores(
        &self,
        scores: Self::Slice<'_>,
        x: Self::SliceMut<'_>,
        y: Self::SliceMut<'_>,
    ) -> Result<()>;
    /// The gradient of that: (of_x's first, of_y's second) of every row.
    fn join_scores(
        &self,
        of_x: Self::Slice<'_>,
        of_y: Self::Slice<'_>,
        to: Self::SliceMut<'_>,
    ) -> Result<()>;
}

/// Columns of x and y of [`Algebra::split_scores`].
fn width_of_pairs(scores: usize, of_pairs: usize) -> usize {
    2 * of_pairs / scores.max(1)
}

/// Slope of the leaky ReLU where it is negative.
pub const SLOPE: f32 = 0.2;
/// Adam's learning rate, the decay of its moments, and what keeps its divisor from 0.
const RATE: f32 = 0.01;
const DECAY: (f32, f32) = (0.9, 0.999);
const EPSILON: f32 = 1e-8;

/// What `step` makes of Adam's rate, and the factor of the second moment's root.
fn corrected(step: usize) -> (f32, f32) {
    let left = |decay: f32| 1.0 - f64::from(decay).powi(i32::try_from(step).unwrap_or(i32::MAX));
    let rate = f64::from(RATE) / left(DECAY.0);
    (rate as f32, (1.0 / left(DECAY.1).sqrt()) as f32)
}

/// The products of the library, spelled alike for patterns in either memory.
macro_rules! products {
    () => {
        fn plan_spmm(
            on: &Device,
            p: &Self::Pattern,
            shape: Shape,
        ) -> Result<SpmmPlan<'static, f32>> {
            let request = p.spmm(shape.columns).calls(CALLS).transpose(shape.transpose);
            request.semiring(shape.semiring).plan(on)
        }

        fn plan_spmv(on: &Device, p: &Self::Pattern) -> Result<SpmvPlan<'static, f32>> {
            p.spmv().calls(CALLS).plan(on)
        }

        fn plan_sddmm(
            on: &Device,
            p: &Self::Pattern,
            depth: usize,
        ) -> Result<SddmmPlan<'static, f32>> {
            p.sddmm(depth).calls(CALLS).plan(on)
        }

        fn plan_softmax(on: &Device, p: &Self::Pattern) -> Result<SoftmaxPlan<'static, f32>> {
            p.softmax().calls(CALLS).plan(on)
        }

        fn spmm(
            plan: &mut SpmmPlan<'static, f32>,
            values: &Self::Vector,
            b: &Self::Matrix,
            c: &mut Self::Matrix,
        ) -> Result<()> {
            plan.execute(values, b, c, ())
        }

        fn spmv(
            plan: &mut SpmvPlan<'static, f32>,
            values: &Self::Vector,
            x: &Self::Vector,
            y: &mut Self::Vector,
        ) -> Result<()> {
            plan.execute(values, x, y, ())
        }

        fn sddmm(
            plan: &mut SddmmPlan<'static, f32>,
            x: &Self::Matrix,
            y: &Self::Matrix,
            values: &mut Self::Vector,
        ) -> Result<()> {
            plan.execute(x, y, values, ())
        }

        fn softmax(
            plan: &mut SoftmaxPlan<'static, f32>,
            scores: &Self::Vector,
            weights: &mut Self::Vector,
        ) -> Result<()> {
            plan.execute(scores, weights, ())
        }

        fn softmax_gradient(
            plan: &mut SoftmaxPlan<'static, f32>,
            weights: &Self::Vector,
            of_weights: &Self::Vector,
            to: &mut Self::Vector,
        ) -> Result<()> {
            plan.gradient(weights, of_weights, to, ())
        }

        fn plan_weighted_sums(
            &self,
            on: &Device,
            p: &Self::Pattern,
            columns: usize,
        ) -> Result<WeightedSums<Self>> {
            let request = p.attention(PAIR_WIDTH).value_columns(columns).calls(CALLS);
            Ok(WeightedSums {
                product: request.clone().plan(on)?,
                gradients: request.gradients().calls(CALLS).plan(on)?,
                lse: self.vector(vec![0.0; p.nrows()])?,
            })
        }

        fn weighted_sums(
            plan: &mut WeightedSums<Self>,
            (x, y): (&Self::Matrix, &Self::Matrix),
            v: &Self::Matrix,
            o: &mut Self::Matrix,
        ) -> Result<()> {
            let WeightedSums { product, lse, .. } = plan;
            let call = AttentionCall::new().scale(1.0).negative_slope(SLOPE).lse(lse);
            product.execute(x, y, v, o, call)
        }

        fn weighted_sums_gradients(
            plan: &mut WeightedSums<Self>,
            (x, y): (&Self::Matrix, &Self::Matrix),
            (v, o, of_o): (&Self::Matrix, &Self::Matrix, &Self::Matrix),
            of_v: &mut Self::Matrix,
            (of_x, of_y): (&mut Self::Matrix, &mut Self::Matrix),
        ) -> Result<()> {
            let WeightedSums { gradients, lse, .. } = plan;
            let call = AttentionGradientsCall::new().scale(1.0).negative_slope(SLOPE);
            let inputs = AttentionInputs::new(x, y, v, o, &*lse, of_o);
            gradients.execute(inputs, AttentionGradients::new(of_x, of_y, of_v), call)
        }
    };
}
use products;

/// Executions that plans are made for.
const CALLS: u64 = 1000;
