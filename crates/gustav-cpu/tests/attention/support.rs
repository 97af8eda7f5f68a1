//! Plans of the tests.

use gustav_core::{Csr, Dense, HeadValues, Scalar, ScoreOptions};
use gustav_cpu::arch::Isa;
use gustav_cpu::{
    AttentionCall, AttentionGradients, AttentionGradientsCall, AttentionGradientsPlan,
    AttentionInputs, AttentionPlan, CpuScalar, Options, Threads,
};
use gustav_testkit::battery::matrices::random_rows;
use gustav_testkit::battery::values::values;

pub fn options(isa: Isa, threads: usize) -> Options {
    let threads = Threads::new(threads, false).expect("threads");
    Options { isa: Some(isa), threads, ..Options::default() }
}

/// A pattern with long, short and empty rows, and the operands of an attention over it, heads side
/// by side.
pub struct Example<T: Scalar> {
    pub a: Csr<T>,
    pub heads: usize,
    pub columns: usize,
    pub value_columns: usize,
    pub q: Dense<T>,
    pub k: Dense<T>,
    pub v: Dense<T>,
    pub of_o: Dense<T>,
    /// For every head and nonzero.
    pub bias: Vec<T>,
    pub scores: ScoreOptions<T::Accum>,
}

/// What a product and its gradients leave.
#[derive(Clone, Debug, PartialEq)]
pub struct Results<T: Scalar> {
    pub o: Vec<T>,
    pub lse: Vec<T::Accum>,
    pub of_q: Vec<T>,
    pub of_k: Vec<T>,
    pub of_v: Vec<T>,
    pub of_bias: Vec<T>,
}

impl<T: CpuScalar> Example<T> {
    /// Over `a`, whose values are not used.
    pub fn over(a: Csr<T>, heads: usize, columns: usize, value_columns: usize) -> Self {
        let dense = |rows: usize, columns: usize, seed| {
            let values = values(rows * columns * heads, seed);
            Dense::from_row_major(rows, columns * heads, values).expect("a matrix")
        };
        let (m, n) = (a.nrows(), a.ncols());
        let (q, k) = (dense(m, columns, 1), dense(n, columns, 2));
        let (v, of_o) = (dense(n, value_columns, 3), dense(m, value_columns, 4));
        let bias = values(heads * a.nnz(), 5);
        let scores = ScoreOptions::default();
        Example { a, heads, columns, value_columns, q, k, v, of_o, bias, scores }
    }

    /// Rows of 5000 and 1500 nonzeros among short and empty ones; columns of 1100 and more.
    pub fn new() -> Self {
        let long = |row| match row {
            7 => 5000,
            600 => 1500,
            _ if row % 5 == 0 => 0,
            _ => row % 11,
        };
        // Many rows have column 3.
        let a: Csr<T> = random_rows(1400, 6000, 1, long);
        let (mut offsets, mut indices) = (vec![0u32], Vec::new());
        for row in 0..a.nrows() {
            let columns = a.pattern().view().row(row);
            indices.extend(columns.iter().copied().filter(|c| *c != 3));
            if row % 9 != 0 {
                indices.push(3);
            }
            offsets.push(indices.len() as u32);
        }
        let values = vec![T::one(); indices.len()];
        let a = Csr::new(a.nrows(), a.ncols(), offsets, indices, values).expect("a matrix");
        Self::over(a, 2, 20, 33)
    }

    pub fn plans(
        &self,
        options: &Options,
    ) -> (AttentionPlan<'_, T>, AttentionGradientsPlan<'_, T>) {
        let request = self.a.pattern().attention(self.columns).heads(self.heads);
        let request = request.value_columns(self.value_columns);
        let forward = AttentionPlan::new(request.pattern.clone(), &request.problem, options);
        let backward = AttentionGradientsPlan::new(request.pattern, &request.problem, options);
        (forward.expect("a plan"), backward.expect("a plan"))
    }

    /// The product and its gradients, that of the bias in `order`.
    pub fn run(&self, options: &Options, order: HeadValues) -> Results<T> {
        let (mut forward, mut backward) = self.plans(options);
        let zeros = |m: &Dense<T>| Dense::zeros(m.nrows(), m.ncols(), m.layout()).expect("zeros");
        let mut o = zeros(&self.of_o);
        let mut lse = vec![T::Accum::zero(); self.heads * self.a.nrows()];
        let bias = || Some(((&self.bias).into(), HeadValues::HeadMajor));
        let call = AttentionCall { scores: self.scores, bias: bias(), lse: Some(&mut lse) };
        forward.execute(&self.q, &self.k, &self.v, &mut o, call).expect("a product");
        let (mut of_q, mut of_k, mut of_v) = (zeros(&self.q), zeros(&self.k), zeros(&self.v));
        let mut of_bias = vec![T::zero(); order.len(self.heads, self.a.nnz())];
        let inputs = AttentionInputs {
            q: self.q.view(),
            k: self.k.view(),
            v: self.v.view(),
            o: o.view(),
            lse: &lse,
            of_o: self.of_o.view(),
        };
        let gradients = AttentionGradients {
            of_q: of_q.view_mut(),
            of_k: of_k.view_mut(),
            of_v: of_v.view_mut(),
        };
        let (scores, to_bias) = (self.scores, Some((&mut of_bias[..], order)));
        let call = AttentionGradientsCall { scores, bias: bias(), of_bias: to_bias };
        backward.execute(inputs, gradients, call).expect("gradients");
        let [o, of_q, of_k, of_v] = [o, of_q, of_k, of_v].map(|m| m.data().to_vec());
        Results { o, lse, of_q, of_k, of_v, of_bias }
    }
}
