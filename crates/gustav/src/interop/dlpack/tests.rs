//! Tensors of our own, as a foreign library would hand them over.

use super::*;

fn tensor<T>(data: &mut [T], dtype: DLDataType, shape: &mut [i64]) -> DLTensor {
    DLTensor {
        data: data.as_mut_ptr().cast(),
        device: DLDevice { device_type: DLDevice::CPU, device_id: 0 },
        ndim: shape.len() as i32,
        dtype,
        shape: shape.as_mut_ptr(),
        strides: std::ptr::null_mut(),
        byte_offset: 0,
    }
}

const F32: DLDataType = DLDataType { code: DLDataType::FLOAT, bits: 32, lanes: 1 };

#[test]
fn structs_have_the_layout_of_dlpack() {
    assert_eq!((size_of::<DLTensor>(), std::mem::offset_of!(DLTensor, byte_offset)), (48, 40));
    assert_eq!(std::mem::offset_of!(DLTensor, dtype), 20);
    assert_eq!(std::mem::offset_of!(DLManagedTensorVersioned, dl_tensor), 32);
}

#[test]
fn matrices_and_vectors_are_read_in_place() {
    let (mut data, mut shape) = ([0.0_f32, 1.0, 2.0, 3.0, 4.0, 5.0], [2, 3]);
    let mut plain = tensor(&mut data, F32, &mut shape);
    // SAFETY: the struct describes the array.
    let found = unsafe { Tensor::new("b", &plain) }.expect("a tensor");
    let view = found.dense::<f32>().expect("a matrix");
    assert_eq!((view.get(1, 2), view.layout()), (5.0, Layout::RowMajor));
    assert!(found.slice::<f32>().is_err() && found.dense::<f64>().is_err());
    let (mut shape, mut strides) = ([3, 2], [1, 3]);
    (plain.shape, plain.strides) = (shape.as_mut_ptr(), strides.as_mut_ptr());
    // SAFETY: as above.
    let found = unsafe { Tensor::new("b", &plain) }.expect("a tensor");
    let view = found.dense::<f32>().expect("a matrix");
    assert_eq!((view.get(2, 1), view.layout()), (5.0, Layout::ColumnMajor));
    let mut shape = [4];
    (plain.shape, plain.strides, plain.ndim, plain.byte_offset) =
        (shape.as_mut_ptr(), std::ptr::null_mut(), 1, 8);
    // SAFETY: as above.
    let found = unsafe { Tensor::new("b", &plain) }.expect("a tensor");
    assert_eq!(found.slice::<f32>().expect("a vector"), [2.0, 3.0, 4.0, 5.0]);
}

#[test]
fn what_a_struct_says_is_checked() {
    let (mut data, mut shape, mut far) = ([0.0_f32; 6], [2, 3], [i64::MAX, 1]);
    let good = tensor(&mut data, F32, &mut shape);
    let mut negative = [2, -3];
    let mut huge = [i64::MAX, 3];
    let null = std::ptr::null_mut();
    for (wrong, words) in [
        (DLTensor { ndim: 0, ..good }, "one or two dimensions"),
        (DLTensor { ndim: -1, ..good }, "one or two dimensions"),
        (DLTensor { shape: null, ..good }, "a shape of NULL"),
        (DLTensor { shape: negative.as_mut_ptr(), ..good }, "a length of -3"),
        (DLTensor { shape: huge.as_mut_ptr(), ..good }, "that memory can hold"),
        (DLTensor { data: std::ptr::null_mut(), ..good }, "data of NULL"),
        (DLTensor { byte_offset: 2, ..good }, "not aligned for float32"),
        (DLTensor { byte_offset: u64::MAX, ..good }, "a byte offset of 18446744073709551615"),
        (DLTensor { strides: far.as_mut_ptr(), ..good }, "a byte offset of 0 with"),
        (DLTensor { dtype: DLDataType { lanes: 4, ..F32 }, ..good }, "float32 in 4 lanes"),
        (DLTensor { dtype: DLDataType { code: 5, ..F32 }, ..good }, "complex32"),
        (
            DLTensor { device: DLDevice { device_type: 2, device_id: 1 }, ..good },
            "the memory of cuda:1",
        ),
    ] {
        // SAFETY: shapes and strides are two numbers, and no element is read.
        let found = unsafe { Tensor::new("b", &wrong) }.expect_err(words).to_string();
        assert!(found.contains(words), "{found}");
    }
}

#[test]
fn overlaps_are_found() {
    let (mut data, mut shape, mut strides) = ([0.0_f32; 12], [3, 2], [4, 1]);
    let whole = tensor(&mut data, F32, &mut shape);
    let block = DLTensor { strides: strides.as_mut_ptr(), ..whole };
    let at = |offset| DLTensor { byte_offset: offset, ..block };
    // SAFETY: blocks of one array, none of which is read or written.
    let overlaps = |first: &DLTensor, second: &DLTensor| unsafe {
        let written = TensorMut::new("c", first).expect("a tensor");
        written.refuse_overlap(&Tensor::new("b", second).expect("a tensor")).is_err()
    };
    assert!(overlaps(&block, &block) && overlaps(&block, &at(4)));
    assert!(!overlaps(&block, &at(8)) && !overlaps(&at(8), &block));
    assert!(overlaps(&block, &whole) && overlaps(&whole, &block));
}
