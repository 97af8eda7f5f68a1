//! Graphs hold what they use, and their launches have an order with other work.

use gustav_core::{Error, Layout};
use gustav_cuda::{
    Call, DeviceBuffer, DeviceCsr, DeviceDense, Graph, SpgemmCall, SpgemmPlan, SpmmPlan, SpmvPlan,
    spgemm, spmm, spmv,
};

use crate::{device, numbers, product, upload, vector, whole};

const ROWS: usize = 200_000;

fn plan(a: &DeviceCsr<f32>, transpose: bool) -> SpmvPlan<f32> {
    let problem = a.pattern().spmv().problem.transpose_a(transpose).calls(100);
    SpmvPlan::new(a.pattern(), &problem, &spmv::Options::default()).expect("a plan")
}

/// Launches on several streams, between other work on the same buffers, without any other order.
#[test]
#[ignore = "needs a CUDA device"]
fn launches_have_an_order() {
    let device = device();
    let host = whole(ROWS, 0);
    let a = upload(&device, &host);
    let (mut x, mut y) = (vector(&device, &numbers(ROWS)), vector(&device, &numbers(ROWS)));
    let streams = [0; 3].map(|_| device.new_stream().expect("a stream"));
    let mut plan = plan(&a, false);
    let mut graph =
        Graph::capture(&streams[0], || plan.execute(&a, &x, &mut y, Call::new().on(&streams[0])))
            .expect("a graph");
    for turn in 0..12 {
        let factor: Vec<f32> = numbers(ROWS).iter().map(|v| v + turn as f32).collect();
        x.write(&factor).expect("x");
        y.fill(0xff, &streams[(turn + 1) % 3]).expect("poison");
        graph.launch(&streams[turn % 3]).expect("a launch");
        if turn % 4 == 3 {
            // The plan's workspaces are those of the graph.
            plan.execute(&a, &x, &mut y, Call::new().on(&streams[(turn + 1) % 3])).expect("y");
        }
        let expected = product(&host, &factor);
        x.fill(0xff, &streams[(turn + 2) % 3]).expect("poison");
        assert!(y.to_host().expect("y")[..] == expected, "turn {turn}");
    }
}

/// All that was captured may be dropped.
#[test]
#[ignore = "needs a CUDA device"]
fn a_graph_holds_what_it_uses() {
    let device = device();
    let host = whole(ROWS, 0);
    for transpose in [false, true] {
        let stored = match transpose {
            true => host.view().transpose().expect("a transpose"),
            false => host.clone(),
        };
        let a = upload(&device, &stored);
        let (x, y) = (vector(&device, &numbers(ROWS)), vector(&device, &numbers(ROWS)));
        let mut z = DeviceBuffer::<f32>::zeros(&device, ROWS, "z").expect("z");
        let (mut plan, mut y) = (plan(&a, transpose), y);
        let stream = device.new_stream().expect("a stream");
        let mut graph = Graph::capture(&stream, || {
            plan.execute(&a, &x, &mut y, Call::new().on(&stream))?;
            z.copy_from(&y, &stream)
        })
        .expect("a graph");
        drop((a, x, y, plan, stream));
        let poison: Vec<_> = [stored.nnz(), stored.nnz(), ROWS, ROWS + 1]
            .map(|len| {
                let mut poison =
                    DeviceBuffer::<f32>::zeros(&device, len, "poison").expect("memory");
                poison.fill(0xff, device.stream()).expect("poison");
                poison
            })
            .into();
        let stream = device.new_stream().expect("a stream");
        for _ in 0..3 {
            z.fill(0xff, device.stream()).expect("poison");
            graph.launch(&stream).expect("a launch");
        }
        drop(graph);
        assert!(z.to_host().expect("z")[..] == product(&host, &numbers(ROWS)));
        drop(poison);
    }
}

/// Work before the capture, on other streams, is joined before it.
#[test]
#[ignore = "needs a CUDA device"]
fn a_capture_waits_for_earlier_uses() {
    let device = device();
    let host = whole(ROWS, 0);
    let a = upload(&device, &host);
    let b = DeviceDense::zeros(&device, ROWS, 4, Layout::RowMajor).expect("B");
    let mut c = DeviceDense::zeros(&device, ROWS, 4, Layout::RowMajor).expect("C");
    let streams = [0; 2].map(|_| device.new_stream().expect("a stream"));
    // Of one call: the plan is still being made ready on the device's own stream.
    let problem = a.pattern().spmm(4).problem;
    let mut plan =
        SpmmPlan::<f32>::new(a.pattern(), &problem, &spmm::Options::default()).expect("a plan");
    plan.execute(&a, &b, &mut c, Call::new().on(&streams[1])).expect("C");
    c.data_mut().fill(0xff, &streams[1]).expect("poison");
    let mut graph =
        Graph::capture(&streams[0], || plan.execute(&a, &b, &mut c, Call::new().on(&streams[0])))
            .expect("a graph");
    assert!(c.data().to_host().expect("C").iter().all(|v| v.is_nan()), "nothing has run");
    graph.launch(&streams[1]).expect("a launch");
    assert!(c.data().to_host().expect("C").iter().all(|v| *v == 0.0));
}

/// What cannot be captured is refused, and the stream and the device stay usable.
#[test]
#[ignore = "needs a CUDA device"]
fn what_a_graph_cannot_hold_is_refused() {
    let device = device();
    let a = upload(&device, &whole(500, 0));
    let stream = device.new_stream().expect("a stream");
    let refused = Graph::capture(device.stream(), || Ok(()));
    assert!(matches!(refused, Err(Error::Argument { name: "stream", .. })), "{refused:?}");
    let taken = || DeviceBuffer::<f32>::zeros(&device, 9, "memory").map(drop);
    let refused = Graph::capture(&stream, taken);
    assert!(matches!(refused, Err(Error::Unsupported { .. })), "{refused:?}");
    let options = spgemm::Options::default();
    let mut square = SpgemmPlan::<f32>::new(
        a.pattern(),
        a.pattern(),
        &a.pattern().spgemm(a.pattern()).problem.calls(9),
        &options,
    )
    .expect("a plan");
    let mut c = square.execute(&a, &a, SpgemmCall::new()).expect("C");
    let call = || SpgemmCall::new().on(&stream);
    let refused = Graph::capture(&stream, || square.execute_into(&a, &a, &mut c, call()));
    assert!(matches!(refused, Err(Error::Unsupported { .. })), "{refused:?}");
    let refused = Graph::capture(&stream, || Graph::capture(&stream, || Ok(())).map(drop));
    assert!(matches!(refused, Err(Error::Device { .. })), "{refused:?}");
    // Memory in a capture that has not ended is not read.
    let mut y = DeviceBuffer::<f32>::zeros(&device, 9, "y").expect("y");
    let refused = Graph::capture(&stream, || {
        y.fill(1, &stream)?;
        y.to_host().map(drop)
    });
    assert!(matches!(refused, Err(Error::Device { .. })), "{refused:?}");
    square.execute_into(&a, &a, &mut c, call()).expect("new values");
    y.fill(0, &stream).expect("zeros");
    assert!(y.to_host().expect("y").iter().all(|v| *v == 0.0));
}
