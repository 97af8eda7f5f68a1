//! Streams that the caller does not order, and memory that is dropped while work on it is queued.

use gustav_core::{Csr, Layout};
use gustav_cuda::{
    Call, Device, DeviceBuffer, DeviceCsr, DeviceDense, SpgemmCall, SpgemmPlan, SpmmPlan, SpmvPlan,
    Stream, spgemm, spmm, spmv,
};

use crate::{device, numbers, product, upload, vector, whole};

/// Rows enough that a product is not over before the next call is made.
const ROWS: usize = 400_000;

fn plan(a: &DeviceCsr<f32>) -> SpmvPlan<f32> {
    let problem = a.pattern().spmv().problem.calls(100);
    SpmvPlan::new(a.pattern(), &problem, &spmv::Options::default()).expect("a plan")
}

/// Each result is the next one's factor, every product on another stream.
fn chain(device: &Device, streams: &[Stream]) {
    let host = whole(ROWS, 0);
    // Signs alone, so that products of products stay whole numbers.
    let signs: Vec<f32> = host.values().iter().map(|v| v.signum()).collect();
    let host = Csr::from_pattern(host.pattern(), signs).expect("a matrix");
    let a = upload(device, &host);
    let mut plans: Vec<_> = streams.iter().map(|_| plan(&a)).collect();
    let mut expected = numbers(ROWS);
    let mut vectors = [vector(device, &expected), vector(device, &expected)];
    for turn in 0..5 {
        let [x, y] = &mut vectors;
        let (plan, stream) = (&mut plans[turn % streams.len()], &streams[turn % streams.len()]);
        plan.execute(&a, x, y, Call::new().on(stream)).expect("y");
        expected = product(&host, &expected);
        vectors.swap(0, 1);
    }
    assert!(vectors[0].to_host().expect("x")[..] == expected);
}

#[test]
#[ignore = "needs a CUDA device"]
fn streams_follow_one_another_by_themselves() {
    let device = device();
    let own = || device.new_stream().expect("a stream");
    chain(&device, &[own(), own()]);
    chain(&device, &[own(), device.stream().clone(), own()]);
}

/// Streams of other libraries: the default ones, and one that is known by two names.
#[test]
#[ignore = "needs a CUDA device"]
fn adopted_streams_follow_one_another_as_well() {
    let device = device();
    let own = device.new_stream().expect("a stream");
    // SAFETY: default streams are always there, and `own` outlives its second name.
    let adopt = |handle: usize| unsafe { Stream::from_raw(&device, handle as *mut _) };
    chain(&device, &[adopt(0), own.clone(), adopt(2)]);
    chain(&device, &[adopt(own.handle() as usize), own.clone(), adopt(1)]);
}

/// A write waits for what reads the buffer on another stream.
#[test]
#[ignore = "needs a CUDA device"]
fn operands_are_overwritten_after_they_were_read() {
    let device = device();
    let host = whole(ROWS, 0);
    let a = upload(&device, &host);
    let first = numbers(ROWS);
    let second: Vec<f32> = first.iter().map(|v| v + 1.0).collect();
    let expected = [product(&host, &first), product(&host, &second)];
    let (mut x, other) = (vector(&device, &first), vector(&device, &second));
    let results = [0; 2].map(|_| DeviceBuffer::<f32>::zeros(&device, ROWS, "y").expect("y"));
    let streams = [0; 2].map(|_| device.new_stream().expect("a stream"));
    let mut plan = plan(&a);
    let [mut y, mut z] = results;
    for _ in 0..20 {
        x.write(&first).expect("x");
        plan.execute(&a, &x, &mut y, Call::new().on(&streams[0])).expect("y");
        x.copy_from(&other, &streams[1]).expect("x");
        plan.execute(&a, &x, &mut z, Call::new().on(&streams[0])).expect("z");
        assert!(y.to_host().expect("y")[..] == expected[0]);
        assert!(z.to_host().expect("z")[..] == expected[1]);
    }
}

/// What is dropped under queued work is freed after it, and its memory given to others after that.
#[test]
#[ignore = "needs a CUDA device"]
fn operands_may_be_dropped_while_work_is_queued() {
    let device = device();
    let host = whole(ROWS, 0);
    let numbers = numbers(ROWS);
    let expected = product(&host, &numbers);
    for transpose in [false, true] {
        let stored = match transpose {
            true => host.view().transpose().expect("a transpose"),
            false => host.clone(),
        };
        for turn in 0..10 {
            let stream = match turn % 2 {
                0 => device.new_stream().expect("a stream"),
                _ => device.stream().clone(),
            };
            let (a, x) = (upload(&device, &stored), vector(&device, &numbers));
            let mut y = DeviceBuffer::<f32>::zeros(&device, ROWS, "y").expect("y");
            let problem = a.pattern().spmv().problem.transpose_a(transpose).calls(2);
            let options = spmv::Options::default();
            let mut plan = SpmvPlan::<f32>::new(a.pattern(), &problem, &options).expect("a plan");
            for _ in 0..20 {
                plan.execute(&a, &x, &mut y, Call::new().on(&stream)).expect("y");
            }
            drop((a, x, plan, stream));
            // Memory of the same sizes, filled at once.
            let poison: Vec<_> = [stored.nnz(), stored.nnz(), ROWS, ROWS + 1]
                .into_iter()
                .map(|len| {
                    let mut poison = DeviceBuffer::<f32>::zeros(&device, len, "poison")?;
                    poison.fill(0xff, device.stream()).map(|()| poison)
                })
                .collect::<Result<_, _>>()
                .expect("memory");
            assert!(y.to_host().expect("y")[..] == expected, "transposed {transpose}, {turn}");
            drop(poison);
        }
    }
}

/// SpGEMM's own stream, SpMM's and the caller's.
#[test]
#[ignore = "needs a CUDA device"]
fn products_of_products_need_no_order_by_the_caller() {
    let device = device();
    let rows = 50_000;
    let host = whole(rows, 0);
    let a = upload(&device, &host);
    let ones = vec![1.0; rows];
    let expected = product(&host, &product(&host, &ones));
    let options = spgemm::Options::default();
    let mut square = SpgemmPlan::<f32>::new(
        a.pattern(),
        a.pattern(),
        &a.pattern().spgemm(a.pattern()).problem.calls(2),
        &options,
    )
    .expect("a plan");
    let streams = [0; 2].map(|_| device.new_stream().expect("a stream"));
    for _ in 0..5 {
        let c = square.execute(&a, &a, SpgemmCall::new().on(&streams[0])).expect("C");
        let mut b = DeviceDense::zeros(&device, rows, 1, Layout::RowMajor).expect("B");
        b.data_mut().write(&ones).expect("ones");
        let problem = c.pattern().spmm(1).problem;
        let mut plan =
            SpmmPlan::<f32>::new(c.pattern(), &problem, &spmm::Options::default()).expect("a plan");
        let product = plan.execute_new(&c, &b, Call::new().on(&streams[1])).expect("C·B");
        drop((c, b, plan));
        assert!(product.data().to_host().expect("C·B")[..] == expected);
    }
}

/// Left to the caller, work of two streams has no order but that of the caller's events.
#[test]
#[ignore = "needs a CUDA device"]
fn a_caller_may_keep_the_order() {
    let device = device();
    let host = whole(ROWS, 0);
    let a = upload(&device, &host);
    let numbers = numbers(ROWS);
    let expected = product(&host, &numbers);
    let x = vector(&device, &numbers);
    let mut y = DeviceBuffer::<f32>::zeros(&device, ROWS, "y").expect("y");
    let stream = device.new_stream().expect("a stream");
    device.stream().synchronize().expect("zeros");
    // SAFETY: nothing else uses the operands, and the stream is waited for before y is read.
    let call = unsafe { Call::new().on(&stream).unordered() };
    plan(&a).execute(&a, &x, &mut y, call).expect("y");
    stream.synchronize().expect("y");
    assert!(y.to_host().expect("y")[..] == expected);
}
