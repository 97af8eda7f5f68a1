//! Wrong lengths, and buffers that were swapped.

use gustav_core::{Epilogue, Error, Layout};
use gustav_cuda::{
    Call, DeviceBuffer, DeviceCsr, DeviceDense, SpgemmCall, SpgemmPlan, SpmmPlan, SpmvPlan, spgemm,
    spmm, spmv,
};

use crate::{device, upload, vector, whole};

const ROWS: usize = 60;

fn is_length<T: std::fmt::Debug>(result: gustav_core::Result<T>, what: &str) {
    match result {
        Err(Error::Length { what: found, .. }) => assert_eq!(found, what),
        other => panic!("{what}: {other:?}"),
    }
}

#[test]
#[ignore = "needs a CUDA device"]
fn values_of_another_number_are_refused() {
    let device = device();
    let a = upload(&device, &whole(ROWS, 0));
    let [short, long] = [a.nnz() - 1, a.nnz() + 1].map(|n| vector(&device, &vec![1.0; n]));
    let b = DeviceDense::zeros(&device, ROWS, 4, Layout::RowMajor).expect("B");
    let mut c = DeviceDense::zeros(&device, ROWS, 4, Layout::RowMajor).expect("C");
    let (x, mut y) = (vector(&device, &[1.0; ROWS]), vector(&device, &[0.0; ROWS]));
    let problem = a.pattern().spmm(4).problem;
    let mut spmm = SpmmPlan::<f32>::new(a.pattern(), &problem, &spmm::Options::default());
    let spmm = spmm.as_mut().expect("a plan");
    let mut spmv =
        SpmvPlan::<f32>::new(a.pattern(), &a.pattern().spmv().problem, &spmv::Options::default());
    let spmv = spmv.as_mut().expect("a plan");
    let options = spgemm::Options::default();
    let spgemm = SpgemmPlan::<f32>::new(
        a.pattern(),
        a.pattern(),
        &a.pattern().spgemm(a.pattern()).problem,
        &options,
    );
    let mut spgemm = spgemm.expect("a plan");
    for values in [&short, &long] {
        is_length(spmm.execute(values, &b, &mut c, Call::new()), "A");
        is_length(spmm.convert(values, Call::new()), "A");
        is_length(spmv.execute(values, &x, &mut y, Call::new()), "A");
        is_length(spgemm.execute(values, &a, SpgemmCall::new()), "A");
        is_length(spgemm.execute(&a, values, SpgemmCall::new()), "B");
    }
    is_length(DeviceCsr::from_pattern(a.pattern(), short), "values");
    let mut a = a;
    is_length(a.values_mut().write(&[0.0; 3]), "device buffer");
}

#[test]
#[ignore = "needs a CUDA device"]
fn dense_operands_of_another_size_are_refused() {
    let device = device();
    let a = upload(&device, &whole(ROWS, 0));
    let dense = |rows, columns, layout| {
        DeviceDense::<f32>::zeros(&device, rows, columns, layout).expect("a dense matrix")
    };
    let (row, column) = (Layout::RowMajor, Layout::ColumnMajor);
    let problem = a.pattern().spmm(4).problem;
    let mut plan = SpmmPlan::<f32>::new(a.pattern(), &problem, &spmm::Options::default());
    let plan = plan.as_mut().expect("a plan");
    let mut c = dense(ROWS, 4, row);
    for b in [dense(ROWS - 1, 4, row), dense(ROWS, 3, row), dense(ROWS, 4, column)] {
        let refused = plan.execute(&a, &b, &mut c, Call::new());
        assert!(matches!(refused, Err(Error::Shape { .. })), "{refused:?}");
    }
    let b = dense(ROWS, 4, row);
    for mut c in [dense(ROWS + 1, 4, row), dense(ROWS, 5, row), dense(ROWS, 4, column)] {
        let refused = plan.execute(&a, &b, &mut c, Call::new());
        assert!(matches!(refused, Err(Error::Shape { .. })), "{refused:?}");
    }
    // Matrices are swapped as a whole, shape and values.
    let mut small = dense(2, 2, row);
    std::mem::swap(&mut c, &mut small);
    let refused = plan.execute(&a, &b, &mut c, Call::new());
    assert!(matches!(refused, Err(Error::Shape { .. })), "{refused:?}");
    plan.execute(&a, &b, &mut small, Call::new()).expect("what was C");

    let short = || vector(&device, &[0.0; 11]);
    is_length(DeviceDense::new(3, 4, row, 4, short()), "dense matrix values");
    is_length(DeviceDense::new(3, 3, row, 5, short()), "dense matrix values");
    DeviceDense::new(3, 3, row, 4, short()).expect("the last row needs no padding");
    let refused = DeviceDense::new(3, 4, row, 3, short());
    assert!(matches!(refused, Err(Error::Shape { .. })), "{refused:?}");
}

#[test]
#[ignore = "needs a CUDA device"]
fn vectors_and_a_bias_of_another_length_are_refused() {
    let device = device();
    let a = upload(&device, &whole(ROWS, 0));
    let mut plan =
        SpmvPlan::<f32>::new(a.pattern(), &a.pattern().spmv().problem, &spmv::Options::default());
    let plan = plan.as_mut().expect("a plan");
    let of = |len: usize| vector(&device, &vec![1.0; len]);
    for (x, y) in [(ROWS - 1, ROWS), (ROWS, ROWS - 1), (ROWS + 1, ROWS), (ROWS, ROWS + 1)] {
        let refused = plan.execute(&a, &of(x), &mut of(y), Call::new());
        assert!(matches!(refused, Err(Error::Shape { .. })), "{x} {y}: {refused:?}");
    }
    let with_bias = Epilogue { bias: true, ..Epilogue::default() };
    let problem = a.pattern().spmm(4).problem.epilogue(with_bias);
    let mut plan = SpmmPlan::<f32>::new(a.pattern(), &problem, &spmm::Options::default());
    let plan = plan.as_mut().expect("a plan");
    let b = DeviceDense::zeros(&device, ROWS, 4, Layout::RowMajor).expect("B");
    let mut c = DeviceDense::zeros(&device, ROWS, 4, Layout::RowMajor).expect("C");
    for len in [0, 3, 5] {
        let refused = plan.execute(&a, &b, &mut c, Call::new().bias(&of(len)));
        assert!(matches!(refused, Err(Error::Argument { name: "bias", .. })), "{refused:?}");
    }
    plan.execute(&a, &b, &mut c, Call::new().bias(&of(4))).expect("a value for every column");
}

#[test]
#[ignore = "needs a CUDA device"]
fn copies_of_another_length_are_refused() {
    let device = device();
    let mut to = DeviceBuffer::<f32>::zeros(&device, 5, "five").expect("memory");
    let from = vector(&device, &[1.0; 6]);
    is_length(to.copy_from(&from, device.stream()), "device buffer");
    is_length(to.write(&[1.0; 4]), "device buffer");
    is_length(to.read(&mut [0.0; 6]), "device buffer");
    is_length(to.read_at(3, &mut [0.0; 3]), "device buffer");
    is_length(to.read_at(usize::MAX, &mut [0.0; 3]), "device buffer");
    assert!(to.to_host().expect("values").iter().all(|v| *v == 0.0));
}
