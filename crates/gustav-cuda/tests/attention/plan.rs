//! What plans of attention promise.

use gustav_core::{Error, HeadValues, Layout, Result};
use gustav_cuda::attention::{
    AttentionCall, AttentionGradients, AttentionGradientsCall, AttentionGradientsPlan,
    AttentionInputs, AttentionPlan, Options,
};
use gustav_cuda::{Device, DeviceBuffer, DeviceDense, DevicePattern, Graph};
use gustav_testkit::battery::matrices::random_rows;

use crate::{device, problem, seeded};

const ROWS: usize = 900;
const COLUMNS: usize = 700;

fn pattern(device: &Device) -> DevicePattern {
    let rows = random_rows::<f32, u32, u32>(ROWS, COLUMNS, 1, |r| if r == 7 { 690 } else { r % 9 });
    DevicePattern::upload(device, rows.pattern().view()).expect("a pattern")
}

fn plan(on: &DevicePattern, heads: usize, columns: usize) -> Result<AttentionPlan<f32>> {
    AttentionPlan::new(on, &problem(on, (heads, columns, columns)), &Options::default())
}

fn zeros(device: &Device, rows: usize, columns: usize) -> DeviceDense<f32> {
    DeviceDense::zeros(device, rows, columns, Layout::RowMajor).expect("memory")
}

#[test]
#[ignore = "needs a CUDA device"]
fn every_execution_gives_the_same_bits() {
    let device = device();
    let on = pattern(&device);
    for (heads, columns) in [(1, 1), (2, 33), (4, 64), (1, 256)] {
        let mut plan = plan(&on, heads, columns).expect("a plan");
        let q = seeded(&device, ROWS, heads * columns, 1);
        let k = seeded(&device, COLUMNS, heads * columns, 2);
        let v = seeded(&device, COLUMNS, heads * columns, 3);
        let mut o = zeros(&device, ROWS, heads * columns);
        let mut results = Vec::new();
        for _ in 0..3 {
            plan.execute(&q, &k, &v, &mut o, ()).expect("a product");
            results.push(o.data().to_host().expect("values").to_vec());
        }
        assert!(results[0].iter().any(|v| *v != 0.0));
        assert!(results.iter().all(|r| *r == results[0]), "{heads} heads of {columns}");
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn what_does_not_fit_is_refused_and_nothing_is_written() {
    let device = device();
    let on = pattern(&device);
    let mut plan = plan(&on, 2, 40).expect("a plan");
    let (q, k) = (seeded(&device, ROWS, 80, 1), seeded(&device, COLUMNS, 80, 2));
    let mut o = seeded(&device, ROWS, 80, 3);
    let before = o.data().to_host().expect("values");
    let shape = |r: Result<()>| assert!(matches!(r, Err(Error::Shape { .. })), "{r:?}");
    shape(plan.execute(&k, &k, &k, &mut o, ()));
    shape(plan.execute(&q, &q, &k, &mut o, ()));
    shape(plan.execute(&q, &k, &q, &mut o, ()));
    shape(plan.execute(&q, &seeded(&device, COLUMNS, 40, 2), &k, &mut o, ()));
    let turned = DeviceDense::zeros(&device, ROWS, 80, Layout::ColumnMajor).expect("memory");
    shape(plan.execute(&turned, &k, &k, &mut o, ()));
    for length in [0, on.nnz() - 1, 2 * on.nnz()] {
        let bias = DeviceBuffer::zeros(&device, length, "bias").expect("memory");
        let call = AttentionCall::new().bias(&bias, HeadValues::Shared);
        let refused = plan.execute(&q, &k, &k, &mut o, call);
        assert!(matches!(refused, Err(Error::Length { .. })), "{refused:?}");
    }
    for length in [ROWS, 2 * ROWS + 1] {
        let mut lse = DeviceBuffer::zeros(&device, length, "lse").expect("memory");
        let refused = plan.execute(&q, &k, &k, &mut o, AttentionCall::new().lse(&mut lse));
        assert!(matches!(refused, Err(Error::Length { .. })), "{refused:?}");
    }
    // The memory of Q.
    let address = q.data().address();
    // SAFETY: so many values are there, and the call below is refused.
    let overlapping = unsafe { DeviceBuffer::<f32>::borrowed(&device, address, ROWS * 80) };
    let mut overlapping =
        DeviceDense::new(ROWS, 80, Layout::RowMajor, 80, overlapping).expect("a matrix");
    let refused = plan.execute(&q, &k, &k, &mut overlapping, ());
    assert!(matches!(refused, Err(Error::Argument { .. })), "{refused:?}");
    assert_eq!(o.data().to_host().expect("values")[..], before[..]);
    plan.execute(&q, &k, &k, &mut o, ()).expect("a product");
}

#[test]
#[ignore = "needs a CUDA device"]
fn what_cannot_be_done_is_refused_with_what_can() {
    let device = device();
    let on = pattern(&device);
    for (heads, columns, part) in
        [(0, 8, "one head"), (1, 0, "a column"), (1, 257, "at most 256 columns")]
    {
        let error = plan(&on, heads, columns).err().expect("a refusal").to_string();
        assert!(error.contains(part), "{error}");
    }
    let problem = problem(&on, (1, 8, 8));
    let error = AttentionPlan::<i32>::new(&on, &problem, &Options::default());
    assert!(error.err().expect("a refusal").to_string().contains("f32, f64, f16 or bf16"));
}

// So many nonzeros that the weights of three heads take more than a plan holds at once.
#[test]
#[ignore = "needs a CUDA device"]
fn gradients_of_heads_that_do_not_go_together_are_those_of_each_alone() {
    const HEADS: usize = 3;
    const DEPTH: usize = 4;
    let (rows, cols) = (6000, 4000);
    let device = device();
    let host = random_rows::<f32, u32, u32>(rows, cols, 1, |_| 2000);
    let on = DevicePattern::upload(&device, host.pattern().view()).expect("a pattern");
    // One above the other; Q, K, V and the gradient of O.
    let whole = [(rows, 1), (cols, 2), (cols, 3), (rows, 4)]
        .map(|(lines, seed)| seeded(&device, HEADS * lines, DEPTH, seed));
    let of_head = |m: &DeviceDense<f32>, head: usize| {
        let lines = m.nrows() / HEADS;
        let m = m.download().expect("values");
        let values = &m.data()[head * lines * DEPTH..][..lines * DEPTH];
        let values = DeviceBuffer::from_slice(&device, values, "a head").expect("memory");
        DeviceDense::new(lines, DEPTH, Layout::RowMajor, DEPTH, values).expect("a matrix")
    };
    let gradients = |heads: usize, [q, k, v, of_o]: [&DeviceDense<f32>; 4], order| {
        let problem = problem(&on, (heads, DEPTH, DEPTH));
        let mut o = zeros(&device, q.nrows(), DEPTH);
        let mut lse = DeviceBuffer::zeros(&device, q.nrows(), "lse").expect("memory");
        let options = Options::default();
        let mut plan = AttentionPlan::<f32>::new(&on, &problem, &options).expect("a plan");
        plan.execute(q, k, v, &mut o, AttentionCall::new().lse(&mut lse)).expect("a product");
        let mut plan = AttentionGradientsPlan::<f32>::new(&on, &problem, &options).expect("a plan");
        let mut of_q = zeros(&device, q.nrows(), DEPTH);
        let [mut of_k, mut of_v] = [(); 2].map(|()| zeros(&device, k.nrows(), DEPTH));
        let mut of_bias = DeviceBuffer::zeros(&device, on.nnz(), "gradient").expect("memory");
        let inputs = AttentionInputs { q, k, v, o: &o, lse: &lse, of_o };
        let results = AttentionGradients { of_q: &mut of_q, of_k: &mut of_k, of_v: &mut of_v };
        let call = AttentionGradientsCall::new().of_bias(&mut of_bias, order);
        plan.execute(inputs, results, call).expect("gradients");
        let workspace = plan.workspace_bytes();
        let matrices = [of_q, of_k, of_v].map(|m| m.download().expect("values").data().to_vec());
        (matrices, of_bias.to_host().expect("values").to_vec(), workspace)
    };
    let [q, k, v, of_o] = &whole;
    let (found, of_bias, workspace) = gradients(HEADS, [q, k, v, of_o], HeadValues::Shared);
    // The transposed pattern takes eight bytes a nonzero, the weights of a head as many.
    assert!(workspace < (8 + HEADS * 8) * on.nnz(), "{workspace} bytes");
    let mut sums = vec![0.0f32; on.nnz()];
    for head in 0..HEADS {
        let [q, k, v, of_o] = whole.each_ref().map(|m| of_head(m, head));
        let (alone, slopes, _) = gradients(1, [&q, &k, &v, &of_o], HeadValues::HeadMajor);
        for (found, alone) in found.iter().zip(&alone) {
            assert!(alone.iter().any(|v| *v != 0.0));
            assert_eq!(found[head * alone.len()..][..alone.len()], alone[..], "head {head}");
        }
        for (sum, slope) in sums.iter_mut().zip(&slopes) {
            *sum = if head == 0 { *slope } else { *sum + slope };
        }
    }
    assert_eq!(of_bias, sums);
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_graph_repeats_a_product() {
    let device = device();
    let on = pattern(&device);
    let mut plan = plan(&on, 2, 48).expect("a plan");
    let (q, k) = (seeded(&device, ROWS, 96, 1), seeded(&device, COLUMNS, 96, 2));
    let mut o = zeros(&device, ROWS, 96);
    plan.execute(&q, &k, &k, &mut o, ()).expect("a product");
    let expected = o.data().to_host().expect("values");
    let stream = device.new_stream().expect("a stream");
    let graph = Graph::capture(&stream, || {
        plan.execute(&q, &k, &k, &mut o, AttentionCall::new().on(&stream))
    });
    let mut graph = graph.expect("a graph");
    drop((plan, q, k));
    o.data_mut().fill(0, &stream).expect("zeros");
    graph.launch(&stream).expect("a launch");
    assert_eq!(o.data().to_host().expect("values")[..], expected[..]);
}
