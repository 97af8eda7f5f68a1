//! Attention and softmax by the façade: against sums in f64, finite differences, and on a GPU the
//! CPU.

use gustav::{
    AttentionCall, AttentionGradients, AttentionGradientsCall, AttentionGradientsPlan,
    AttentionInputs, AttentionPlan, Dense, Device, Error, HeadValues, Layout, Pattern, SoftmaxCall,
    SoftmaxPlan,
};
use gustav_testkit::battery::matrices::random_rows;
use gustav_testkit::battery::values::values;

const ROWS: usize = 23;
const COLUMNS: usize = 17;
const SLOPE: f64 = 0.2;
const HEADS: usize = 2;
const WIDTH: usize = 5;
const VALUE_WIDTH: usize = 3;

fn pattern() -> Pattern {
    random_rows::<f64, u32, u32>(ROWS, COLUMNS, 1, |r| r % 6).pattern().clone()
}

fn dense(rows: usize, columns: usize, seed: u64) -> Dense<f64> {
    Dense::from_row_major(rows, columns, values(rows * columns, seed)).expect("values")
}

fn zeros(rows: usize, columns: usize) -> Dense<f64> {
    Dense::zeros(rows, columns, Layout::RowMajor).expect("zeros")
}

/// Operands of two heads: Q side by side, K and V one above the other.
struct Operands {
    pattern: Pattern,
    q: Dense<f64>,
    k: Dense<f64>,
    v: Dense<f64>,
    bias: Vec<f64>,
}

impl Operands {
    fn new() -> Self {
        let pattern = pattern();
        let bias = values(pattern.nnz() * HEADS, 4);
        Operands {
            q: dense(ROWS, HEADS * WIDTH, 1),
            k: dense(HEADS * COLUMNS, WIDTH, 2),
            v: dense(HEADS * COLUMNS, VALUE_WIDTH, 3),
            bias,
            pattern,
        }
    }

    /// O, side by side, and the logarithms.
    fn forward(&self, device: &Device) -> (Dense<f64>, Vec<f64>) {
        let request = self.pattern.attention(WIDTH).heads(HEADS).value_columns(VALUE_WIDTH);
        let mut plan: AttentionPlan<'_, f64> = request.plan(device).expect("a plan");
        assert!(plan.explain().to_string().contains("attention"));
        let (mut o, mut lse) = (zeros(ROWS, HEADS * VALUE_WIDTH), vec![0.0; HEADS * ROWS]);
        let call = AttentionCall::new().scale(0.5).negative_slope(SLOPE);
        let call = call.bias(&self.bias, HeadValues::NonzeroMajor);
        plan.execute(&self.q, &self.k, &self.v, &mut o, call.lse(&mut lse)).expect("a product");
        (o, lse)
    }

    /// The gradients of Q, K, V and the bias.
    fn gradients(&self, device: &Device, of_o: &Dense<f64>) -> [Vec<f64>; 4] {
        let (o, lse) = self.forward(device);
        let request = self.pattern.attention(WIDTH).heads(HEADS).value_columns(VALUE_WIDTH);
        let mut plan: AttentionGradientsPlan<'_, f64> =
            request.gradients().plan(device).expect("a plan");
        let mut of_q = zeros(ROWS, HEADS * WIDTH);
        let mut of_k = zeros(HEADS * COLUMNS, WIDTH);
        let mut of_v = zeros(HEADS * COLUMNS, VALUE_WIDTH);
        let mut of_bias = vec![f64::NAN; self.bias.len()];
        let call = AttentionGradientsCall::new().scale(0.5).negative_slope(SLOPE);
        let call = call.bias(&self.bias, HeadValues::NonzeroMajor);
        let call = call.of_bias(&mut of_bias, HeadValues::NonzeroMajor);
        let inputs = AttentionInputs::new(&self.q, &self.k, &self.v, &o, &lse, of_o);
        let results = AttentionGradients::new(&mut of_q, &mut of_k, &mut of_v);
        plan.execute(inputs, results, call).expect("gradients");
        [of_q.data().to_vec(), of_k.data().to_vec(), of_v.data().to_vec(), of_bias]
    }

    /// ⟨G, O⟩ as its definition has it.
    fn loss(&self, g: &Dense<f64>) -> f64 {
        let (mut loss, mut first) = (0.0, 0);
        for i in 0..ROWS {
            let row = self.pattern.view().row(i);
            for head in 0..HEADS {
                let score = |(p, j): (usize, &u32)| {
                    let dot = |c| {
                        self.q.get(i, head * WIDTH + c)
                            * self.k.get(head * COLUMNS + *j as usize, c)
                    };
                    let bias = self.bias[(first + p) * HEADS + head];
                    let score = 0.5 * (0..WIDTH).map(dot).sum::<f64>() + bias;
                    (if score > 0.0 { score } else { SLOPE * score }).exp()
                };
                let weights: Vec<_> = row.iter().enumerate().map(score).collect();
                let total: f64 = weights.iter().sum();
                for (weight, j) in weights.iter().zip(row) {
                    for c in 0..VALUE_WIDTH {
                        let value = self.v.get(head * COLUMNS + *j as usize, c);
                        loss += g.get(i, head * VALUE_WIDTH + c) * weight / total * value;
                    }
                }
            }
            first += row.len();
        }
        loss
    }
}

fn close(found: f64, expected: f64, tolerance: f64, what: &str) {
    let error = (found - expected).abs();
    assert!(error <= tolerance * (1.0 + expected.abs()), "{what}: {found} {expected}");
}

#[test]
fn gradients_are_those_of_finite_differences() {
    let g = dense(ROWS, HEADS * VALUE_WIDTH, 5);
    let found = Operands::new().gradients(&Device::cpu(), &g);
    let step = 1e-4;
    for (which, of) in found.iter().enumerate() {
        for (at, found) in of.iter().enumerate() {
            let moved = |step: f64| {
                let mut o = Operands::new();
                match which {
                    0 => o.q.data_mut()[at] += step,
                    1 => o.k.data_mut()[at] += step,
                    2 => o.v.data_mut()[at] += step,
                    _ => o.bias[at] += step,
                }
                o.loss(&g)
            };
            // Of order 4 in the step.
            let wide = (moved(2.0 * step) - moved(-2.0 * step)) / (4.0 * step);
            let narrow = (moved(step) - moved(-step)) / (2.0 * step);
            close(*found, (4.0 * narrow - wide) / 3.0, 1e-8, &format!("operand {which}, {at}"));
        }
    }
}

#[test]
fn weights_of_a_row_add_up_to_one_and_their_gradient_to_zero() {
    let pattern = pattern();
    for order in [HeadValues::HeadMajor, HeadValues::NonzeroMajor] {
        let scores = values::<f64>(pattern.nnz() * HEADS, 6);
        let of_weights = values::<f64>(pattern.nnz() * HEADS, 7);
        let (mut weights, mut of_scores) = (vec![0.0; scores.len()], vec![0.0; scores.len()]);
        let mut plan: SoftmaxPlan<'_, f64> =
            pattern.softmax().heads(HEADS).plan(&Device::cpu()).expect("a plan");
        let call = SoftmaxCall::new().order(order);
        plan.execute(&scores, &mut weights, call).expect("a product");
        plan.gradient(&weights, &of_weights, &mut of_scores, call).expect("a gradient");
        let (head, nonzero) = order.strides(HEADS, pattern.nnz());
        for row in pattern.offsets().windows(2).filter(|w| w[0] < w[1]) {
            for h in 0..HEADS {
                let sum = |v: &[f64]| -> f64 {
                    (row[0]..row[1]).map(|p| v[h * head + p as usize * nonzero]).sum()
                };
                close(sum(&weights), 1.0, 1e-12, "weights");
                close(sum(&of_scores), 0.0, 1e-12, "gradient");
            }
        }
    }
}

#[test]
fn heads_that_do_not_divide_are_refused() {
    let o = Operands::new();
    let request = o.pattern.attention(WIDTH).heads(3).value_columns(VALUE_WIDTH);
    let mut plan: AttentionPlan<'_, f64> = request.plan(&Device::cpu()).expect("a plan");
    let mut result = zeros(ROWS, 3 * VALUE_WIDTH);
    let refused = plan.execute(&o.q, &o.k, &o.v, &mut result, ());
    assert!(matches!(refused, Err(Error::Shape { .. })), "{refused:?}");
    for (heads, columns) in [(0, 4), (1, 0)] {
        let refused = o.pattern.attention(columns).heads(heads).plan::<f32, _>(&Device::cpu());
        assert!(matches!(refused.err(), Some(Error::Unsupported { .. })));
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_gpu_computes_what_the_cpu_does() {
    let (cpu, gpu) = (Device::cpu(), Device::cuda(0).expect("a CUDA device"));
    let (o, g) = (Operands::new(), dense(ROWS, HEADS * VALUE_WIDTH, 5));
    let (expected, found) = (o.forward(&cpu), o.forward(&gpu));
    let pairs = |found: &[f64], expected: &[f64], what: &str| {
        assert_eq!(found.len(), expected.len());
        found
            .iter()
            .zip(expected)
            .filter(|(f, e)| f != e)
            .for_each(|(f, e)| close(*f, *e, 1e-12, what));
    };
    pairs(found.0.data(), expected.0.data(), "O");
    pairs(&found.1, &expected.1, "lse");
    for (found, expected) in o.gradients(&gpu, &g).iter().zip(&o.gradients(&cpu, &g)) {
        pairs(found, expected, "a gradient");
    }
    // In the GPU's memory.
    let on = gpu.upload(&o.pattern).expect("a pattern");
    let [q, k, v] = [&o.q, &o.k, &o.v].map(|m| gpu.upload(m).expect("an operand"));
    let mut result = gpu.zeros(ROWS, HEADS * VALUE_WIDTH, Layout::RowMajor).expect("memory");
    let request = on.attention(WIDTH).heads(HEADS).value_columns(VALUE_WIDTH);
    let mut plan: AttentionPlan<'_, f64> = request.plan(&gpu).expect("a plan");
    let call = AttentionCall::new().scale(0.5).negative_slope(SLOPE);
    plan.execute(&q, &k, &v, &mut result, call).expect("a product");
    let without_bias = Operands { bias: vec![0.0; o.bias.len()], ..o };
    pairs(result.download().expect("values").data(), without_bias.forward(&cpu).0.data(), "O");
    // Both kinds of memory.
    let refused = plan.execute(&without_bias.q, &k, &v, &mut result, ());
    assert!(matches!(refused, Err(Error::Argument { .. })), "{refused:?}");
}
