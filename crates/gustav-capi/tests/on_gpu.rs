//! Executions on a stream, through the functions that C calls: tensors stay in a GPU's memory.

use std::ptr::{null, null_mut};

use gustav::cuda::DeviceBuffer;
use gustav::interop::dlpack::{DLDataType, DLDevice, DLTensor};
use gustav::{DType, Device, IndexType};
use gustav_capi::*;

const F32: DLDataType = DLDataType { code: DLDataType::FLOAT, bits: 32, lanes: 1 };

/// A tensor of these lengths and strides at an address.
fn tensor(
    address: u64,
    device_type: i32,
    dtype: DLDataType,
    shape: &mut [i64],
    strides: &mut [i64],
) -> DLTensor {
    DLTensor {
        data: std::ptr::with_exposed_provenance_mut(address as usize),
        device: DLDevice { device_type, device_id: 0 },
        ndim: shape.len() as i32,
        dtype,
        shape: shape.as_mut_ptr(),
        strides: strides.as_mut_ptr(),
        byte_offset: 0,
    }
}

fn ok(status: gustav_status) {
    // SAFETY: the text is that of this thread, which makes no other call meanwhile.
    let text = unsafe { std::ffi::CStr::from_ptr(gustav_last_error()) };
    assert_eq!(status, gustav_status::GUSTAV_OK, "{}", text.to_string_lossy());
}

#[test]
#[ignore = "needs a CUDA device"]
fn products_on_a_stream_of_the_caller() {
    let gpu = Device::cuda(0).expect("a CUDA device");
    let (of_gpu, theirs) = (gpu.cuda_device().expect("it"), gpu.stream().expect("a stream"));
    let on = |numbers: &[f32]| DeviceBuffer::from_slice(of_gpu, numbers, "a test").expect("memory");
    let index = DLDataType::of_index(IndexType::U32);
    assert_eq!(F32, DLDataType::of_value(DType::F32));
    // Row 0 has 1 in column 0 and 2 in column 2, row 1 has 3 in column 1; B is column-major in rows of four.
    let (mut offsets, mut indices) = ([0_u32, 2, 3], [0_u32, 2, 1]);
    let values = on(&[1.0, 2.0, 3.0]);
    let b = on(&[1.0, 3.0, 5.0, -1.0, 2.0, 4.0, 6.0]);
    let (c, y, sampled) = (on(&[1.0; 4]), on(&[0.0; 2]), on(&[0.0; 3]));
    let (mut two, mut three, mut one) = ([2_i64], [3_i64], [1_i64]);
    let (mut of_b, mut columns, mut of_c, mut rows) = ([3, 2], [1, 4], [2, 2], [2, 1]);
    let at = |data: &DeviceBuffer<f32>, shape: &mut [i64], strides: &mut [i64]| {
        tensor(data.address(), DLDevice::CUDA, F32, shape, strides)
    };
    let t_offsets = tensor(
        offsets.as_mut_ptr().expose_provenance() as u64,
        DLDevice::CPU,
        index,
        &mut three,
        &mut one,
    );
    let (mut nnz, mut step) = ([3_i64], [1_i64]);
    let t_indices = tensor(
        indices.as_mut_ptr().expose_provenance() as u64,
        DLDevice::CPU,
        index,
        &mut nnz,
        &mut step,
    );
    let t_values = at(&values, &mut nnz, &mut step);
    let t_b = at(&b, &mut of_b, &mut columns);
    let t_c = at(&c, &mut of_c, &mut rows);
    let (t_x, t_y) = (at(&b, &mut nnz, &mut step), at(&y, &mut two, &mut one));
    let t_sampled = at(&sampled, &mut nnz, &mut step);
    let options = gustav_options {
        size: size_of::<gustav_options>(),
        device: c"cuda:0".as_ptr(),
        threads: 0,
        calls: 100,
        semiring: null(),
        algorithm: null(),
        flags: 0,
    };
    let (mut pattern, mut stream) = (null_mut(), null_mut());
    let mut plans = [null_mut(); 3];
    let (alpha, beta) = (2.0, -1.0);
    // SAFETY: tensors say what memory there is, which lives until the stream was waited for.
    unsafe {
        ok(gustav_pattern_new(&t_offsets, &t_indices, 3, &mut pattern));
        ok(gustav_stream_of(c"cuda:0".as_ptr(), theirs.handle(), &mut stream));
        ok(gustav_plan_spmm(pattern, 2, F32, &options, &mut plans[0]));
        ok(gustav_plan_spmv(pattern, F32, &options, &mut plans[1]));
        ok(gustav_plan_sddmm(pattern, 2, F32, &options, &mut plans[2]));
        ok(gustav_execute_on(plans[0], &t_values, &t_b, &t_c, &alpha, &beta, stream));
        ok(gustav_execute_on(plans[1], &t_values, &t_x, &t_y, null(), null(), stream));
        ok(gustav_execute_on(plans[2], &t_c, &t_b, &t_sampled, null(), null(), stream));
    }
    ok(gustav_stream_synchronize(stream));
    let host = |data: &DeviceBuffer<f32>| data.to_host().expect("a copy").to_vec();
    // A·B is [[11, 14], [9, 12]].
    assert_eq!(host(&c), [21.0, 27.0, 17.0, 23.0]);
    assert_eq!(host(&y), [11.0, 9.0]);
    assert_eq!(host(&sampled), [21.0 + 54.0, 105.0 + 162.0, 51.0 + 92.0]);
    for plan in plans {
        ok(gustav_plan_free(plan));
    }
    ok(gustav_stream_free(stream));
    ok(gustav_pattern_free(pattern));
}
