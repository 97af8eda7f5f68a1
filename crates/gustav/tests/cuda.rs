//! The façade on a GPU: matrices that stay there, matrices in host memory, and what is refused.

use gustav::cuda::{self, Call, DeviceBuffer, DeviceDense};
use gustav::{
    Algorithm, Chooser, Csr, Dense, DenseView, DenseViewMut, Device, Error, Layout, Order, Problem,
    Semiring, Spgemm, SpgemmCall, Spmm, SpmmPlan, Spmv, f16,
};
use gustav_testkit::oracle;

fn gpu() -> Device {
    Device::cuda(0).expect("a CUDA device")
}

fn matrix(description: &str) -> Csr<f32> {
    let generator: gustav::io::Generator = description.parse().expect("a description");
    generator.build(5).expect("a small matrix")
}

fn operand(rows: usize, columns: usize, layout: Layout) -> Dense<f32> {
    Dense::from_fn(rows, columns, layout, |i, j| ((5 * i + 3 * j) % 13) as f32 - 6.0)
        .expect("small")
}

#[test]
#[ignore = "needs a CUDA device"]
fn the_four_nouns() {
    let (gpu, host) = (gpu(), matrix("uniform:300x200,7"));
    let b = operand(200, 33, Layout::RowMajor);
    let before = operand(300, 33, Layout::RowMajor);
    let a = gpu.upload(&host).expect("A");
    let b_there = gpu.upload(&b).expect("B");
    let mut c = gpu.upload(&before).expect("C");
    let stream = gpu.stream().expect("a stream");
    let mut plan = a.pattern().spmm(33).calls(1000).plan(&gpu).expect("a plan");
    let call = Call::new().alpha(2.0).beta(0.5).on(&stream);
    plan.execute(&a, &b_there, &mut c, call).expect("C");
    let reference = oracle::Spmm {
        alpha: 2.0,
        beta: 0.5,
        before: Some(before.view()),
        ..oracle::Spmm::new(host.view(), b.view())
    };
    let c = c.download().expect("C");
    assert!(reference.verify(c.view()).expect("shapes fit").ok);
    let text = plan.explain().to_string();
    for part in ["cuda:0", "algorithm", "why", "workspace"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn blocks_of_host_matrices_go_there_and_nothing_beside_them_comes_back() {
    let (gpu, host) = (gpu(), matrix("uniform:40x30,4"));
    for layout in [Layout::RowMajor, Layout::ColumnMajor] {
        let (whole, before) = (operand(60, 60, layout), operand(60, 60, layout));
        let mut c = before.clone();
        let mut plan = host.pattern().spmm(9).layouts(layout, layout).plan(&gpu).expect("a plan");
        // SAFETY: the first 30 rows and 40 rows of 9 columns are within the matrices.
        let (b, block) = unsafe {
            let of_b = DenseView::from_raw_parts(30, 9, layout, 60, whole.view().as_ptr());
            let at = c.data_mut().as_mut_ptr();
            (of_b.expect("B"), DenseViewMut::from_raw_parts(40, 9, layout, 60, at).expect("C"))
        };
        let uploaded = gpu.upload(b).expect("B").download().expect("B");
        assert!((0..270).all(|k| uploaded.get(k / 9, k % 9) == whole.get(k / 9, k % 9)));
        plan.execute(&host, b, block, Call::new().alpha(2.0).beta(0.5)).expect("C");
        let mut expected = Dense::from_fn(40, 9, layout, |i, j| before.get(i, j)).expect("small");
        let cpu = Spmm::new(&host, b).alpha(2.0);
        cpu.run_into(0.5, &mut expected).expect("C");
        for (i, j) in (0..60).flat_map(|i| (0..60).map(move |j| (i, j))) {
            let inside = i < 40 && j < 9;
            let right = if inside { expected.get(i, j) } else { before.get(i, j) };
            assert!((c.get(i, j) - right).abs() <= 1e-3 * f32::from(u8::from(inside)), "{i}, {j}");
        }
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn borrowed_pointers_are_multiplied_in_place() {
    let (gpu, host) = (gpu(), matrix("banded:100,2"));
    let a = gpu.upload(&host).expect("A");
    let b = operand(100, 8, Layout::RowMajor);
    let owned = gpu.upload(&b).expect("B");
    let device = gpu.cuda_device().expect("a GPU");
    // SAFETY: the memory is that of `owned`, which outlives its borrower.
    let memory = unsafe { DeviceBuffer::borrowed(device, owned.data().address(), 800) };
    let borrowed = DeviceDense::new(100, 8, Layout::RowMajor, 8, memory).expect("B");
    let mut c = gpu.zeros(100, 8, Layout::RowMajor).expect("C");
    let mut plan = a.pattern().spmm(8).plan(&gpu).expect("a plan");
    plan.execute(&a, &borrowed, &mut c, ()).expect("C");
    let c = c.download().expect("C");
    assert!(oracle::Spmm::new(host.view(), b.view()).verify(c.view()).expect("shapes fit").ok);
}

#[test]
#[ignore = "needs a CUDA device"]
fn host_matrices_go_there_and_back() {
    let (gpu, a) = (gpu(), matrix("rmat:9,8"));
    for layout in [Layout::RowMajor, Layout::ColumnMajor] {
        let b = operand(512, 5, layout);
        let c = Spmm::new(&a, &b).layout(layout).device(gpu.clone()).run().expect("C");
        assert!(oracle::Spmm::new(a.view(), b.view()).verify(c.view()).expect("shapes fit").ok);
    }
    // Lines with padding between them, which must stay as it is.
    let b = operand(512, 3, Layout::RowMajor);
    let mut c =
        Dense::with_leading_dimension(512, 3, Layout::RowMajor, 4, vec![7.0; 2048]).expect("C");
    Spmm::new(&a, &b).device(gpu.clone()).run_into(0.0, &mut c).expect("C");
    assert!(oracle::Spmm::new(a.view(), b.view()).verify(c.view()).expect("shapes fit").ok);
    assert!(c.data().iter().skip(3).step_by(4).all(|v| *v == 7.0));

    let x: Vec<f32> = (0..512).map(|k| (k % 9) as f32).collect();
    let y = Spmv::new(&a, &x).transpose(true).device(gpu).run().expect("y");
    let plus_times = Semiring::PlusTimes;
    let verdict = oracle::spmv(plus_times, a.view(), true, &x, 1.0, 0.0, None, &y);
    assert!(verdict.expect("shapes fit").ok);
}

#[test]
#[ignore = "needs a CUDA device"]
fn sparse_times_sparse() {
    let (gpu, host) = (gpu(), matrix("rmat:9,8"));
    let reference = oracle::Spgemm::new(host.view(), host.view());
    let c = Spgemm::new(&host, &host).device(gpu.clone()).run().expect("C");
    assert!(reference.verify(c.view()).expect("shapes fit").ok);
    let a = gpu.upload(&host).expect("A");
    let mut plan = a.pattern().spgemm(a.pattern()).plan(&gpu).expect("a plan");
    let c = plan.execute(&a, &a, cuda::SpgemmCall::new()).expect("C").download().expect("C");
    assert!(reference.verify(c.view()).expect("shapes fit").ok);
    assert!(plan.explain().to_string().contains("workspace"));
}

#[test]
#[ignore = "needs a CUDA device"]
fn products_under_a_mask_and_added_to() {
    let (gpu, a, mask) = (gpu(), matrix("rmat:8,6"), matrix("uniform:256x256,20"));
    let reference = oracle::Spgemm::new(a.view(), a.view());
    let masked = oracle::Spgemm { mask: Some(mask.view()), ..reference };
    let c = Spgemm::new(&a, &a).mask(&mask).device(gpu.clone()).run().expect("C");
    assert!(masked.verify(c.view()).expect("shapes fit").ok);
    let sum = Spgemm::new(&a, &a).plus(0.5, &mask).device(gpu.clone()).run().expect("C");
    let expected = Spgemm::new(&a, &a).plus(0.5, &mask).run().expect("C");
    assert_eq!((sum.offsets(), sum.indices()), (expected.offsets(), expected.indices()));
    let [on_a, on_mask] = [&a, &mask].map(|m| gpu.upload(m).expect("room"));
    let request = on_a.pattern().spgemm(on_a.pattern()).mask(on_mask.pattern());
    let mut plan = request.plan(&gpu).expect("a plan");
    assert_eq!(plan.algorithm(), Algorithm::Masked);
    let c = plan.execute(&on_a, &on_a, cuda::SpgemmCall::new()).expect("C");
    let c = c.download().expect("C");
    assert!(masked.verify(c.view()).expect("shapes fit").ok);
    let half = Csr::<f16>::new(1, 1, vec![0, 1], vec![0], vec![f16::from_f32(0.1)]).expect("A");
    let c = Spgemm::new(&half, &half).device(gpu.clone()).run_as::<f32>().expect("C");
    assert_eq!(c, Spgemm::new(&half, &half).run_as::<f32>().expect("C"));
    let call = cuda::SpgemmCall::new().add(1.0, &on_mask);
    let refused = plan.execute(&on_a, &on_a, call).map(drop);
    assert!(matches!(refused, Err(Error::Unsupported { .. })), "{refused:?}");
}

#[test]
#[ignore = "needs a CUDA device"]
fn dense_matrices_go_through_the_pipeline() {
    let (gpu, host) = (gpu(), matrix("sparse:300x300,0.9"));
    let dense = host.view().to_dense(Layout::RowMajor).expect("a dense matrix");
    let config = cuda::spgemm::pipeline::Config::default();
    let mut plan = gpu.plan_pipeline::<f32>([300; 3], config).expect("a plan");
    let mut c = gpu.zeros(300, 300, Layout::RowMajor).expect("C");
    plan.execute(dense.view(), 1.0, dense.view(), &mut c, None).expect("the product");
    let stream = gpu.stream().expect("a stream");
    let c = c.to_csr(cuda::Entries::Pattern, &stream).expect("CSR");
    let reference = oracle::Spgemm::new(host.view(), host.view());
    assert!(reference.verify(c.download().expect("C").view()).expect("shapes fit").ok);
    assert!(plan.timeline().iter().any(|s| s.lane == "CPU") && plan.bytes().0 > 0);
    let narrow = operand(300, 5, Layout::RowMajor);
    let mut c = gpu.zeros(300, 300, Layout::RowMajor).expect("C");
    let e = plan.execute(dense.view(), 1.0, narrow.view(), &mut c, None).expect_err("shapes");
    assert!(matches!(e, Error::Shape { op: "pipeline", .. }), "{e}");
}

#[test]
#[ignore = "needs a CUDA device"]
fn tiles_of_host_matrices() {
    let gpu = gpu().choose(Chooser::Named(Algorithm::SharedRow));
    let host = matrix("rmat:9,8");
    let problem = Problem::spgemm(&host.view(), &host.view());
    let tiling = cuda::spgemm::tiled::Tiling { memory: Some(1 << 16), ..Default::default() };
    let c = gpu.spgemm_tiled(&host, 1.0, &host, &problem, tiling).expect("C");
    assert!(oracle::Spgemm::new(host.view(), host.view()).verify(c.view()).expect("shapes").ok);
    let named = gpu.choose(Chooser::Named(Algorithm::Tiled));
    let mut plan = host.pattern().spgemm(host.pattern()).plan(&named).expect("a plan");
    assert!(plan.explain().to_string().contains("tiled"));
    let c = plan.execute(&host, &host, SpgemmCall::new()).expect("C");
    assert!(oracle::Spgemm::new(host.view(), host.view()).verify(c.view()).expect("shapes").ok);
}

#[test]
#[ignore = "needs a CUDA device"]
fn plans_of_host_matrices_take_new_values() {
    let (gpu, mut a) = (gpu(), matrix("grid5:20x20"));
    let b = operand(400, 6, Layout::RowMajor);
    let mut plan = a.pattern().spmm(6).plan(&gpu).expect("a plan");
    let mut c = Dense::zeros(400, 6, Layout::RowMajor).expect("C");
    for _ in 0..2 {
        plan.execute(&a, &b, &mut c, ()).expect("C");
        assert!(oracle::Spmm::new(a.view(), b.view()).verify(c.view()).expect("shapes fit").ok);
        a.values_mut().iter_mut().for_each(|v| *v *= -3.0);
    }
    assert!(plan.explain().facts.is_some());
    for other in [matrix("grid5:20x21"), moved(&a)] {
        let wrong = plan.execute(&other, &b, &mut c, ());
        assert!(matches!(wrong, Err(Error::Pattern { .. })), "{wrong:?}");
    }
    let there = gpu.upload(&b).expect("B");
    let mixed = plan.execute(&a, &there, &mut c, ());
    assert!(matches!(mixed, Err(Error::Argument { name: "operands", .. })), "{mixed:?}");
    let copy = a.clone();
    plan.execute(&copy, &b, &mut c, ()).expect("a clone shares the pattern");
    plan.execute(moved(&a).values().as_slice(), &b, &mut c, ()).expect("as many values");
    let short = plan.execute(&a.values().as_slice()[1..], &b, &mut c, ());
    assert!(matches!(short, Err(Error::Length { .. })), "{short:?}");
}

#[test]
#[ignore = "needs a CUDA device"]
fn plans_obey_the_semiring_of_their_request() {
    // Plus-times gives [50, 60].
    let host = Csr::<f32>::new(2, 2, vec![0, 2, 3], vec![0, 1, 1], vec![1.0, 2.0, 3.0]);
    let (gpu, host) = (gpu(), host.expect("A"));
    let b = Dense::from_row_major(2, 1, vec![10.0, 20.0]).expect("B");
    let (a, there) = (gpu.upload(&host).expect("A"), gpu.upload(&b).expect("B"));
    let request = a.pattern().spmm(1).semiring(Semiring::MinPlus);
    let mut plan: SpmmPlan<'_, f32> = request.plan(&gpu).expect("a plan");
    let mut c = gpu.zeros(2, 1, Layout::RowMajor).expect("C");
    plan.execute(&a, &there, &mut c, ()).expect("C");
    assert_eq!(c.download().expect("C").data(), [11.0, 23.0]);
    let mut y = [0.0; 2];
    let mut plan = host.pattern().spmv().semiring(Semiring::MinPlus).plan(&gpu).expect("a plan");
    plan.execute(&host, &[10.0, 20.0], &mut y, ()).expect("y");
    assert_eq!(y, [11.0, 23.0]);
}

/// As many nonzeros in as many rows, the first of them in another column.
fn moved(a: &Csr<f32>) -> Csr<f32> {
    let mut indices = a.indices().to_vec();
    indices[0] = 399;
    let values = a.values().to_vec();
    Csr::new(a.nrows(), a.ncols(), a.offsets().to_vec(), indices, values).expect("a matrix")
}

#[test]
#[ignore = "needs a CUDA device"]
fn plans_of_host_matrices_refuse_other_patterns() {
    let (gpu, a) = (gpu(), matrix("grid5:20x20"));
    let other = moved(&a);
    let x = vec![1.0f32; 400];
    let mut plan = a.pattern().spmv().plan(&gpu).expect("a plan");
    let mut y = vec![0.0f32; 400];
    plan.execute(&a, &x, &mut y, ()).expect("y");
    let wrong = plan.execute(&other, &x, &mut y, ());
    assert!(matches!(wrong, Err(Error::Pattern { .. })), "{wrong:?}");
    let mut plan = a.pattern().spgemm(a.pattern()).plan(&gpu).expect("a plan");
    for (left, right) in [(&a, &other), (&other, &a)] {
        let wrong = plan.execute(left, right, SpgemmCall::new());
        assert!(matches!(wrong, Err(Error::Pattern { .. })), "{wrong:?}");
    }
    plan.execute(&a, &a, SpgemmCall::new()).expect("C");
}

#[test]
#[ignore = "needs a CUDA device"]
fn autotuning_names_the_fastest() {
    let (gpu, host) = (gpu().choose(Chooser::Autotune), matrix("rmat:10,8"));
    let a = gpu.upload(&host).expect("A");
    let plan: SpmmPlan<'_, f32> = a.pattern().spmm(64).plan(&gpu).expect("a plan");
    assert!(plan.reason().starts_with("fastest of "), "{}", plan.reason());
}

#[test]
#[ignore = "needs a CUDA device"]
fn trials_hold_the_row_orders_that_calls_may_repay() {
    let (gpu, host) = (gpu().choose(Chooser::Autotune), matrix("rmat:10,8"));
    let a = gpu.upload(&host).expect("A");
    let considered = |gpu: &Device, calls| {
        let request = a.pattern().spmm(64).calls(calls);
        let plan: SpmmPlan<'_, f32> = request.plan(gpu).expect("a plan");
        let explanation = plan.explain();
        let best = &explanation.considered[0];
        let order = explanation.order.map(|o| o.order.to_string());
        assert_eq!(best.candidate.split_once('@').map(|c| c.1.to_owned()), order);
        let ordered = |c: &&gustav::Considered| c.candidate.contains('@');
        explanation.considered.iter().filter(ordered).count()
    };
    assert_eq!(considered(&gpu, 1), 0);
    assert_eq!(considered(&gpu, 1_000_000_000), Order::NEAR_LINEAR.len());
    let b = operand(host.ncols(), 64, Layout::RowMajor);
    let many = a.pattern().spmm(64).calls(1_000_000_000);
    let (mut plan, on) = (many.plan(&gpu).expect("a plan"), gpu.upload(&b).expect("B"));
    let mut c = gpu.zeros(host.nrows(), 64, Layout::RowMajor).expect("C");
    plan.execute(&a, &on, &mut c, ()).expect("C");
    let (reference, c) = (oracle::Spmm::new(host.view(), b.view()), c.download().expect("C"));
    assert!(reference.verify(c.view()).expect("shapes fit").ok);
}

#[test]
#[ignore = "needs a CUDA device"]
fn trials_keep_to_the_row_order_that_was_asked_for() {
    let gpu = gpu().choose(Chooser::Autotune).with_order(Order::MinHash);
    let a = gpu.upload(&matrix("rmat:10,8")).expect("A");
    let plan: SpmmPlan<'_, f32> = a.pattern().spmm(64).plan(&gpu).expect("a plan");
    let explanation = plan.explain();
    assert_eq!(explanation.order.map(|o| o.order), Some(Order::MinHash));
    let asked = |c: &gustav::Considered| c.candidate.ends_with("@min-hash");
    assert!(!explanation.considered.is_empty() && explanation.considered.iter().all(asked));
}

#[test]
#[ignore = "needs a CUDA device"]
fn what_a_gpu_lacks_is_refused_with_what_works() {
    let (gpu, a) = (gpu(), matrix("banded:50,1"));
    let dropping = Spgemm::new(&a, &a).drop_zeros(true).device(gpu.clone());
    let e = dropping.run().expect_err("zeros stay");
    assert!(e.to_string().contains("nearest that works: cpu"), "{e}");
    let b = operand(50, 2, Layout::RowMajor);
    let csb = gpu.choose(Chooser::Named(Algorithm::Csb));
    let e = Spmm::new(&a, &b).device(csb).run().expect_err("no kernels");
    assert!(e.to_string().contains("csb on the device cpu"), "{e}");
}
