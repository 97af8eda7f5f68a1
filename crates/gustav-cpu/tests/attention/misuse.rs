//! What does not fit is refused, and nothing is written.

use gustav_core::{
    Dense, DenseView, Error, HeadValues, Layout, Operation, Problem, Result, Semiring,
};
use gustav_cpu::{
    AttentionCall, AttentionGradients, AttentionGradientsCall, AttentionGradientsPlan,
    AttentionInputs, AttentionPlan, CpuScalar, Options,
};
use gustav_plan::{Algorithm, Chooser};

use crate::support::Example;

fn zeros(rows: usize, columns: usize) -> Dense<f32> {
    Dense::zeros(rows, columns, Layout::RowMajor).expect("zeros")
}

fn shape<T>(result: Result<T>) -> String {
    let error = result.err().expect("a refusal");
    assert!(matches!(error, Error::Shape { .. }), "{error}");
    error.to_string()
}

fn length(result: Result<()>) {
    assert!(matches!(result, Err(Error::Length { .. })), "{result:?}");
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let e = Example::<f32>::new();
    let (mut plan, _) = e.plans(&Options::default());
    let (m, heads) = (e.a.nrows(), e.heads);
    let mut o = Dense::from_row_major(m, heads * 33, vec![5.0; m * heads * 33]).expect("O");
    let refused = shape(plan.execute(&e.k, &e.k, &e.v, &mut o, ()));
    assert!(
        refused.contains("Q of 1400 x 40 or 2800 x 20") && refused.contains("batch of 2"),
        "{refused}"
    );
    shape(plan.execute(&e.q, &e.q, &e.v, &mut o, ()));
    shape(plan.execute(&e.q, &e.k, &e.k, &mut o, ()));
    shape(plan.execute(&e.q, &e.k, &e.v, &mut zeros(m, 33), ()));
    let turned = e.q.to_layout(Layout::ColumnMajor).expect("a copy");
    shape(plan.execute(&turned, &e.k, &e.v, &mut o, ()));
    let nnz = e.a.nnz();
    for order in [HeadValues::Shared, HeadValues::HeadMajor, HeadValues::NonzeroMajor] {
        for wrong in [0, order.len(heads, nnz) - 1, order.len(heads, nnz) + 1] {
            let bias = vec![0.0; wrong];
            let bias = Some(((&bias).into(), order));
            let call = AttentionCall { bias, ..Default::default() };
            length(plan.execute(&e.q, &e.k, &e.v, &mut o, call));
        }
    }
    for wrong in [0, heads * m - 1, heads * m + 1] {
        let mut lse = vec![5.0; wrong];
        let call = AttentionCall { lse: Some(&mut lse), ..Default::default() };
        length(plan.execute(&e.q, &e.k, &e.v, &mut o, call));
        assert!(lse.iter().all(|v| *v == 5.0));
    }
    // A bias of an equal pattern that is another one.
    let other = Example::<f32>::new();
    let bias = Some((other.a.values(), HeadValues::Shared));
    let refused =
        plan.execute(&e.q, &e.k, &e.v, &mut o, AttentionCall { bias, ..Default::default() });
    assert!(matches!(refused, Err(Error::Pattern { .. })), "{refused:?}");
    assert!(o.data().iter().all(|v| *v == 5.0));
    let bias = Some((e.a.values(), HeadValues::Shared));
    plan.execute(&e.q, &e.k, &e.v, &mut o, AttentionCall { bias, ..Default::default() })
        .expect("a product");
}

fn gradients(
    plan: &mut AttentionGradientsPlan<'_, f32>,
    inputs: AttentionInputs<'_, f32>,
    [of_q, of_k, of_v]: [&mut Dense<f32>; 3],
    of_bias: Option<(&mut [f32], HeadValues)>,
) -> Result<()> {
    let (of_q, of_k, of_v) = (of_q.view_mut(), of_k.view_mut(), of_v.view_mut());
    let call = AttentionGradientsCall { of_bias, ..Default::default() };
    plan.execute(inputs, AttentionGradients { of_q, of_k, of_v }, call)
}

#[test]
fn gradients_that_do_not_fit_are_refused() {
    let e = Example::<f32>::new();
    let (_, mut plan) = e.plans(&Options::default());
    let (m, n, heads) = (e.a.nrows(), e.a.ncols(), e.heads);
    let lse = vec![0.0; heads * m];
    let right = AttentionInputs {
        q: e.q.view(),
        k: e.k.view(),
        v: e.v.view(),
        o: e.of_o.view(),
        lse: &lse,
        of_o: e.of_o.view(),
    };
    let (mut of_q, mut of_k, mut of_v) =
        (zeros(m, heads * 20), zeros(n, heads * 20), zeros(n, heads * 33));
    for inputs in [
        AttentionInputs { q: e.k.view(), ..right },
        AttentionInputs { k: e.q.view(), ..right },
        AttentionInputs { v: e.k.view(), ..right },
        AttentionInputs { o: e.q.view(), ..right },
        AttentionInputs { of_o: e.v.view(), ..right },
    ] {
        shape(gradients(&mut plan, inputs, [&mut of_q, &mut of_k, &mut of_v], None));
    }
    let short = AttentionInputs { lse: &lse[1..], ..right };
    length(gradients(&mut plan, short, [&mut of_q, &mut of_k, &mut of_v], None));
    let (mut wrong, mut other) = (zeros(m, 40 + 1), zeros(n, 40 + 1));
    shape(gradients(&mut plan, right, [&mut wrong, &mut of_k, &mut of_v], None));
    shape(gradients(&mut plan, right, [&mut of_q, &mut other, &mut of_v], None));
    shape(gradients(&mut plan, right, [&mut of_q, &mut of_k, &mut other], None));
    for order in [HeadValues::Shared, HeadValues::HeadMajor] {
        let mut of_bias = vec![5.0; order.len(heads, e.a.nnz()) - 1];
        let to = Some((&mut of_bias[..], order));
        length(gradients(&mut plan, right, [&mut of_q, &mut of_k, &mut of_v], to));
        assert!(of_bias.iter().all(|v| *v == 5.0));
    }
    for result in [&of_q, &of_k, &of_v] {
        assert!(result.data().iter().all(|v| *v == 0.0));
    }
    gradients(&mut plan, right, [&mut of_q, &mut of_k, &mut of_v], None).expect("gradients");
}

#[test]
fn problems_that_are_none_are_refused() {
    fn refused<T: CpuScalar>(e: &Example<f32>, problem: &Problem, options: &Options) -> String {
        let pattern = e.a.pattern();
        let forward = AttentionPlan::<T>::new(pattern, problem, options).err();
        let backward = AttentionGradientsPlan::<T>::new(pattern, problem, options).err();
        for error in [&forward, &backward] {
            let error = error.as_ref().expect("a refusal");
            assert!(matches!(error, Error::Unsupported { .. }), "{error}");
        }
        forward.map_or_else(String::new, |error| error.to_string())
    }
    let e = Example::<f32>::new();
    let right = e.a.pattern().attention(20).problem;
    let plain = Options::default();
    let of = |problem: Problem| refused::<f32>(&e, &problem, &plain);
    assert!(of(Problem { columns: 0, ..right.clone() }).contains("no columns"));
    assert!(of(Problem { batch: 0, ..right.clone() }).contains("no head"));
    assert!(of(Problem { columns: 257, ..right.clone() }).contains("257 columns"));
    assert!(of(Problem { value_columns: 300, ..right.clone() }).contains("300 columns"));
    assert!(
        of(Problem { operation: Operation::Softmax, ..right.clone() }).contains("another product")
    );
    of(right.clone().transpose_a(true));
    of(right.clone().semiring(Semiring::MaxTimes));
    assert!(refused::<i32>(&e, &right, &plain).contains("not integers"));
    assert!(refused::<i64>(&e, &right, &plain).contains("not integers"));
    for chooser in [Chooser::Named(Algorithm::RowSplit), Chooser::MeanRowLength] {
        let options = Options { chooser, ..Options::default() };
        assert!(refused::<f32>(&e, &right, &options).contains("segmented"));
    }
    let other = Problem { rows: right.rows + 1, ..right.clone() };
    let plan = AttentionPlan::<f32>::new(e.a.pattern(), &other, &plain);
    assert!(matches!(plan.err(), Some(Error::Pattern { .. })));
    let named = Options { chooser: Chooser::Named(Algorithm::Segmented), ..Options::default() };
    AttentionPlan::<f32>::new(e.a.pattern(), &right, &named).expect("a plan");
}

/// Heads that no shape divides into, and matrices without elements whatever their leading
/// dimension.
#[test]
fn shapes_at_the_edge() {
    let e = Example::<f32>::new();
    let (m, n) = (e.a.nrows(), e.a.ncols());
    let request = e.a.pattern().attention(20).heads(3);
    let plan = AttentionPlan::new(request.pattern, &request.problem, &Options::default());
    let mut plan = plan.expect("a plan");
    // 40 columns are two heads of 20.
    shape(plan.execute(&e.q, &e.k, &e.v, &mut zeros(m, 60), ()));
    let request = e.a.pattern().attention(20).heads(2).value_columns(0);
    let plan = AttentionPlan::new(request.pattern, &request.problem, &Options::default());
    let none = |rows| DenseView::<f32>::new(rows, 0, Layout::RowMajor, usize::MAX, &[]);
    let mut lse = vec![f32::NAN; 2 * m];
    let call = AttentionCall { lse: Some(&mut lse), ..Default::default() };
    let mut o = zeros(m, 0);
    plan.expect("a plan")
        .execute(&e.q, &e.k, none(n).expect("V"), &mut o, call)
        .expect("scores alone");
    assert!(lse.iter().all(|v| !v.is_nan()) && lse.iter().any(|v| v.is_finite()));
}
