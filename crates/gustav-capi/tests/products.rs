//! Every product for every type of values and indices, through the functions that C calls. Numbers are small
//! integers, which every type holds exactly.

use std::ptr::{null, null_mut};

use gustav::interop::dlpack::{DLDataType, DLDevice, DLManagedTensorVersioned, DLTensor};
use gustav::{DType, IndexType, bf16, f16};
use gustav_capi::*;

const DTYPES: [DType; 6] =
    [DType::F16, DType::Bf16, DType::F32, DType::F64, DType::I32, DType::I64];
// Bits of row offsets and column indices.
const WIDTHS: [(u8, u8); 3] = [(32, 32), (64, 32), (64, 64)];

// A is 4 × 3: an empty row, unsorted columns, and two entries in one position.
const OFFSETS: [i64; 5] = [0, 3, 3, 4, 6];
const INDICES: [i64; 6] = [2, 0, 2, 1, 1, 0];
const VALUES: [i64; 6] = [1, 2, 3, -1, 4, 5];
const A: [[i64; 3]; 4] = [[2, 0, 4], [0, 0, 0], [0, -1, 0], [5, 4, 0]];

/// A tensor with its memory.
struct Owned {
    dtype: DLDataType,
    shape: Vec<i64>,
    strides: Vec<i64>,
    // Of 8 bytes each, so that every type is aligned.
    memory: Vec<u64>,
}

impl Owned {
    fn new(dtype: DLDataType, shape: &[i64], strides: &[i64], numbers: &[i64]) -> Self {
        let reach: i64 = shape.iter().zip(strides).map(|(n, s)| (n - 1) * s).sum();
        let memory = vec![u64::MAX; reach as usize + 1];
        let (shape, strides) = (shape.to_vec(), strides.to_vec());
        let mut made = Owned { dtype, shape, strides, memory };
        for (k, number) in numbers.iter().enumerate() {
            made.write(k, *number);
        }
        made
    }

    fn vector(dtype: DLDataType, numbers: &[i64]) -> Self {
        Self::new(dtype, &[numbers.len() as i64], &[1], numbers)
    }

    /// The place of element `k` in the order of rows, in bytes.
    fn place(&self, k: usize) -> usize {
        let columns = *self.shape.last().expect("a dimension") as usize;
        let element = match self.strides[..] {
            [stride] => k * stride as usize,
            [row, column] => k / columns * row as usize + k % columns * column as usize,
            _ => unreachable!("a vector or a matrix"),
        };
        element * usize::from(self.dtype.bits) / 8
    }

    fn write(&mut self, k: usize, number: i64) {
        let bytes: &[u8] = match (self.dtype.code, self.dtype.bits) {
            (DLDataType::BFLOAT, _) => &bf16::from_f64(number as f64).to_ne_bytes(),
            (DLDataType::FLOAT, 16) => &f16::from_f64(number as f64).to_ne_bytes(),
            (DLDataType::FLOAT, 32) => &(number as f32).to_ne_bytes(),
            (DLDataType::FLOAT, _) => &(number as f64).to_ne_bytes(),
            (_, 32) => &(number as i32).to_ne_bytes(),
            _ => &number.to_ne_bytes(),
        };
        let place = self.place(k);
        // SAFETY: the element lies in the memory.
        unsafe {
            self.memory.as_mut_ptr().cast::<u8>().add(place).copy_from(bytes.as_ptr(), bytes.len())
        };
    }

    fn numbers(&self) -> Vec<i64> {
        let count = self.shape.iter().product::<i64>() as usize;
        // SAFETY: the memory has these elements.
        (0..count)
            .map(|k| unsafe { number(self.dtype, self.memory.as_ptr().cast(), self.place(k)) })
            .collect()
    }

    fn tensor(&mut self) -> DLTensor {
        DLTensor {
            data: self.memory.as_mut_ptr().cast(),
            device: DLDevice { device_type: DLDevice::CPU, device_id: 0 },
            ndim: self.shape.len() as i32,
            dtype: self.dtype,
            shape: self.shape.as_mut_ptr(),
            strides: self.strides.as_mut_ptr(),
            byte_offset: 0,
        }
    }
}

/// The number of a type at a place in bytes.
///
/// # Safety
/// It is there.
unsafe fn number(dtype: DLDataType, memory: *const u8, place: usize) -> i64 {
    let mut bytes = [0; 8];
    let size = usize::from(dtype.bits) / 8;
    // SAFETY: promised by the caller.
    unsafe { bytes.as_mut_ptr().copy_from(memory.add(place), size) };
    let half: [u8; 2] = bytes[..2].try_into().expect("two bytes");
    let word: [u8; 4] = bytes[..4].try_into().expect("four bytes");
    match (dtype.code, dtype.bits) {
        (DLDataType::BFLOAT, _) => bf16::from_ne_bytes(half).to_f64() as i64,
        (DLDataType::FLOAT, 16) => f16::from_ne_bytes(half).to_f64() as i64,
        (DLDataType::FLOAT, 32) => f32::from_ne_bytes(word) as i64,
        (DLDataType::FLOAT, _) => f64::from_ne_bytes(bytes) as i64,
        (_, 32) => i64::from(i32::from_ne_bytes(word)),
        _ => i64::from_ne_bytes(bytes),
    }
}

fn integers(bits: u8, signed: bool) -> DLDataType {
    let width = if bits == 32 { IndexType::U32 } else { IndexType::U64 };
    let code = if signed { DLDataType::INT } else { DLDataType::UINT };
    DLDataType { code, ..DLDataType::of_index(width) }
}

#[track_caller]
fn ok(status: gustav_status) {
    // SAFETY: the text is this thread's, until its next error.
    let text = unsafe { std::ffi::CStr::from_ptr(gustav_last_error()) };
    assert_eq!(status, gustav_status::GUSTAV_OK, "{text:?}");
}

/// Runs `check` for every type of values and indices with a pattern of A, its arrays, and its values.
fn each(check: impl Fn(DLDataType, *mut gustav_pattern, [&mut Owned; 3])) {
    for dtype in DTYPES.map(DLDataType::of_value) {
        for (k, (of_offsets, of_indices)) in WIDTHS.into_iter().enumerate() {
            let signed = k != 1;
            let mut offsets = Owned::vector(integers(of_offsets, signed), &OFFSETS);
            let mut indices = Owned::vector(integers(of_indices, signed), &INDICES);
            let mut values = Owned::vector(dtype, &VALUES);
            let mut pattern = null_mut();
            // SAFETY: the tensors describe their memory.
            ok(unsafe {
                gustav_pattern_new(&offsets.tensor(), &indices.tensor(), 3, &mut pattern)
            });
            check(dtype, pattern, [&mut offsets, &mut indices, &mut values]);
            ok(gustav_pattern_free(pattern));
        }
    }
}

/// Strides of a matrix of `rows` × `columns`: packed rows, rows with a gap, columns with a gap.
fn strides(rows: i64, columns: i64) -> [[i64; 2]; 3] {
    [[columns, 1], [columns + 3, 1], [1, rows + 2]]
}

#[test]
fn spmm_of_every_type_index_and_layout() {
    let b = [1, -2, 3, 0, 2, 5];
    let product: Vec<i64> = A
        .iter()
        .flat_map(|row| (0..2).map(move |j| (0..3).map(|k| row[k] * b[2 * k + j]).sum()))
        .collect();
    each(|dtype, pattern, [offsets, indices, values]| {
        let mut plan = null_mut();
        // SAFETY: the pattern is not freed yet.
        ok(unsafe { gustav_plan_spmm(pattern, 2, dtype, null(), &mut plan) });
        for of_b in strides(3, 2) {
            for of_c in strides(4, 2) {
                let mut b = Owned::new(dtype, &[3, 2], &of_b, &b);
                let mut c = Owned::new(dtype, &[4, 2], &of_c, &[7; 8]);
                let (values, b, t) = (values.tensor(), b.tensor(), c.tensor());
                let (alpha, beta) = (2.0, -1.0);
                // SAFETY: the tensors describe their memory.
                ok(unsafe { gustav_execute(plan, &values, &b, &t, &alpha, &beta) });
                let expected: Vec<_> = product.iter().map(|p| 2 * p - 7).collect();
                assert_eq!(c.numbers(), expected, "{dtype} {of_b:?} {of_c:?}");
                // SAFETY: the tensors describe their memory.
                ok(unsafe {
                    let (offsets, indices) = (offsets.tensor(), indices.tensor());
                    gustav_spmm(&offsets, &indices, &values, &b, &t, null(), null(), null())
                });
                assert_eq!(c.numbers(), product, "{dtype} {of_b:?} {of_c:?}");
            }
        }
        ok(gustav_plan_free(plan));
    });
}

#[test]
fn spmv_of_every_type_and_index() {
    each(|dtype, pattern, [_, _, values]| {
        let mut plan = null_mut();
        let (mut x, mut y) = (Owned::vector(dtype, &[1, 2, -3]), Owned::vector(dtype, &[9; 4]));
        // SAFETY: the tensors describe their memory.
        ok(unsafe { gustav_plan_spmv(pattern, dtype, null(), &mut plan) });
        // SAFETY: the tensors describe their memory.
        ok(unsafe {
            gustav_execute(plan, &values.tensor(), &x.tensor(), &y.tensor(), null(), null())
        });
        assert_eq!(y.numbers(), [-10, 0, -2, 13], "{dtype}");
        ok(gustav_plan_free(plan));
    });
}

#[test]
fn sddmm_of_every_type_index_and_layout() {
    each(|dtype, pattern, _| {
        let mut plan = null_mut();
        // SAFETY: the tensors describe their memory.
        ok(unsafe { gustav_plan_sddmm(pattern, 2, dtype, null(), &mut plan) });
        for (of_x, of_y) in strides(4, 2).into_iter().zip(strides(3, 2).into_iter().rev()) {
            let mut x = Owned::new(dtype, &[4, 2], &of_x, &[1, 2, 0, 1, 3, -1, 2, 2]);
            let mut y = Owned::new(dtype, &[3, 2], &of_y, &[1, 0, 2, 1, -1, 3]);
            let mut values = Owned::vector(dtype, &[1; 6]);
            let beta = 10.0;
            // SAFETY: the tensors describe their memory.
            ok(unsafe {
                gustav_execute(plan, &x.tensor(), &y.tensor(), &values.tensor(), null(), &beta)
            });
            assert_eq!(values.numbers(), [15, 11, 15, 15, 16, 12], "{dtype} {of_x:?} {of_y:?}");
        }
        ok(gustav_plan_free(plan));
    });
}

#[test]
fn spgemm_of_every_type_and_index() {
    each(|dtype, pattern, [_, _, values]| {
        let mut plan = null_mut();
        // SAFETY: the options are a plain struct of zeros.
        let mut options: gustav_options = unsafe { std::mem::zeroed() };
        (options.size, options.flags) = (size_of::<gustav_options>(), 1);
        // SAFETY: Aᵀ·A, of a pattern that is not freed yet.
        ok(unsafe { gustav_plan_spgemm(pattern, pattern, null(), dtype, &options, &mut plan) });
        let (mut product, mut of_product, mut first) = (null_mut(), null_mut(), null_mut());
        // SAFETY: the tensors describe their memory.
        ok(unsafe {
            let values = values.tensor();
            let alpha = 3.0;
            gustav_execute_spgemm(plan, &values, &values, &alpha, &mut product, &mut of_product)
        });
        ok(gustav_plan_free(plan));
        let mut second: *mut DLManagedTensorVersioned = null_mut();
        // SAFETY: the tensors describe their memory.
        ok(unsafe { gustav_pattern_arrays(product, &mut first, &mut second) });
        ok(gustav_pattern_free(product));
        // SAFETY: managed tensors of the library, which describe their memory.
        let [offsets, columns, sums] = [first, second, of_product].map(|managed| unsafe {
            let tensor = &(*managed).dl_tensor;
            let size = usize::from(tensor.dtype.bits) / 8;
            let numbers = (0..*tensor.shape as usize)
                .map(|k| number(tensor.dtype, tensor.data.cast(), k * size))
                .collect::<Vec<_>>();
            ((*managed).deleter.expect("a deleter"))(managed);
            numbers
        });
        let mut dense = [[0; 3]; 3];
        for row in 0..3 {
            for k in offsets[row] as usize..offsets[row + 1] as usize {
                dense[row][columns[k] as usize] += sums[k];
            }
        }
        for (i, row) in dense.iter().enumerate() {
            for (j, found) in row.iter().enumerate() {
                assert_eq!(*found, 3 * A.iter().map(|r| r[i] * r[j]).sum::<i64>(), "{dtype}");
            }
        }
    });
}
