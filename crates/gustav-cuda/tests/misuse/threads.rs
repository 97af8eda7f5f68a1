//! Two threads on one device.

use gustav_cuda::{
    Call, Device, DeviceBuffer, DeviceCsr, SpgemmCall, SpgemmPlan, SpmvPlan, Stream, spgemm, spmv,
};
use gustav_testkit::oracle;

use crate::{device, numbers, product, upload, vector, whole};

const THREADS: usize = 4;
const ROWS: usize = 60_000;

/// Products by plans of one pattern, on a stream that all have or on one of each.
fn multiply(device: &Device, a: &DeviceCsr<f32>, x: &DeviceBuffer<f32>, stream: &Stream) {
    let problem = a.pattern().spmv().problem.transpose_a(true).calls(100);
    let mut plan =
        SpmvPlan::<f32>::new(a.pattern(), &problem, &spmv::Options::default()).expect("a plan");
    let expected = {
        let host = a.download().expect("A");
        product(&host.view().transpose().expect("Aᵀ"), &x.to_host().expect("x"))
    };
    for _ in 0..50 {
        let mut y = DeviceBuffer::<f32>::zeros(device, ROWS, "y").expect("y");
        plan.execute(a, x, &mut y, Call::new().on(stream)).expect("y");
        assert!(y.to_host().expect("y")[..] == expected);
    }
}

/// Threads read the same operands, make the transposed pattern at the same time, and free memory.
#[test]
#[ignore = "needs a CUDA device"]
fn threads_share_operands_and_a_pattern() {
    let device = device();
    for own_streams in [true, false] {
        let a = upload(&device, &whole(ROWS, 0));
        let x = vector(&device, &numbers(ROWS));
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| match own_streams {
                    true => multiply(&device, &a, &x, &device.new_stream().expect("a stream")),
                    false => multiply(&device, &a, &x, device.stream()),
                });
            }
        });
    }
}

/// Products of sparse matrices share kernels, side streams and the device's own stream.
#[test]
#[ignore = "needs a CUDA device"]
fn threads_multiply_sparse_matrices_at_once() {
    let device = device();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let device = &device;
            scope.spawn(move || {
                let host = whole(20_000 + 1000 * thread, thread);
                let a = upload(device, &host);
                let problem = a.pattern().spgemm(a.pattern()).problem.calls(2);
                let options = spgemm::Options::default();
                let stream = device.new_stream().expect("a stream");
                for _ in 0..10 {
                    let mut plan =
                        SpgemmPlan::<f32>::new(a.pattern(), a.pattern(), &problem, &options)
                            .expect("a plan");
                    let c = plan.execute(&a, &a, SpgemmCall::new().on(&stream)).expect("C");
                    let c = c.download().expect("C");
                    let verdict = oracle::Spgemm::new(host.view(), host.view()).verify(c.view());
                    assert!(verdict.expect("shapes fit").ok);
                }
            });
        }
    });
}

/// A plan goes from thread to thread, and its buffers are dropped on another one.
#[test]
#[ignore = "needs a CUDA device"]
fn a_plan_goes_from_thread_to_thread() {
    let device = device();
    let host = whole(ROWS, 0);
    let expected = product(&host, &numbers(ROWS));
    let a = upload(&device, &host);
    let mut plan = SpmvPlan::<f32>::new(
        a.pattern(),
        &a.pattern().spmv().problem.calls(9),
        &spmv::Options::default(),
    )
    .expect("a plan");
    for _ in 0..10 {
        let (y, back) = std::thread::scope(|scope| {
            let work = scope.spawn(|| {
                // SAFETY: the default stream of this thread, used here alone.
                let stream = unsafe { Stream::from_raw(&device, 2 as *mut _) };
                let x = vector(&device, &numbers(ROWS));
                let mut y = DeviceBuffer::<f32>::zeros(&device, ROWS, "y").expect("y");
                plan.execute(&a, &x, &mut y, Call::new().on(&stream)).expect("y");
                (y, plan)
            });
            work.join().expect("a thread")
        });
        plan = back;
        assert!(y.to_host().expect("y")[..] == expected);
    }
}
