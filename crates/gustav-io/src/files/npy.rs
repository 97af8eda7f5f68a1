//! NumPy arrays (`.npy`, format versions 1 to 3): reading and writing.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::atomic::{AtomicUsize, Ordering};

use gustav_core::{Buffer, DType, Dense, DenseView, Error, Layout, Result, Scalar, parallel};
use half::f16;

use super::header::Field;
use super::npy_header::{Array, Kind};
use super::value::{exact, nearest};

pub(crate) fn damaged(reason: impl Into<String>) -> Error {
    Error::Format { path: None, format: "npy", reason: reason.into() }
}

impl Array {
    /// The kind of values.
    pub(crate) fn field(&self) -> Field {
        if self.kind == Kind::Float { Field::Real } else { Field::Integer }
    }

    /// The bytes of the elements.
    fn elements<'a>(&self, file: &'a [u8]) -> Result<&'a [u8]> {
        let data = &file[self.data.min(file.len())..];
        let needed = u128::from(self.len) * self.size as u128;
        if data.len() as u128 != needed {
            let which =
                if (data.len() as u128) < needed { "ends too early" } else { "is too long" };
            return Err(damaged(format!(
                "the file {which}: {} elements of {} bytes take {needed} bytes, found {}",
                self.len,
                self.size,
                data.len()
            )));
        }
        Ok(data)
    }

    /// The elements in file order as scalars: integers exactly, floats rounded to nearest.
    pub(crate) fn read<T: Scalar>(&self, file: &[u8]) -> Result<Buffer<T>> {
        macro_rules! convert {
            ($from:ty, $to:expr) => {
                self.convert::<T, $from, _>(file, |bytes| <$from>::from_le_bytes(bytes), $to)
            };
        }
        match (self.kind, self.size) {
            (Kind::Float, 2) => convert!(f16, |v: f16| nearest(v.to_f64())),
            (Kind::Float, 4) => convert!(f32, |v: f32| nearest(f64::from(v))),
            (Kind::Float, 8) => convert!(f64, |v: f64| nearest(v)),
            (Kind::Signed, 1) => convert!(i8, |v: i8| exact(v.into())),
            (Kind::Signed, 2) => convert!(i16, |v: i16| exact(v.into())),
            (Kind::Signed, 4) => convert!(i32, |v: i32| exact(v.into())),
            (Kind::Signed, 8) => convert!(i64, |v: i64| exact(v)),
            (Kind::Unsigned | Kind::Bool, 1) => convert!(u8, |v: u8| exact(v.into())),
            (Kind::Unsigned, 2) => convert!(u16, |v: u16| exact(v.into())),
            (Kind::Unsigned, 4) => convert!(u32, |v: u32| exact(v.into())),
            (Kind::Unsigned, 8) => {
                convert!(u64, |v: u64| i64::try_from(v).ok().and_then(exact))
            }
            _ => Err(damaged(format!(
                "elements of type {} are not supported; convert with numpy.astype to float32 or \
                 float64",
                self.descr
            ))),
        }
    }

    fn convert<T: Scalar, F: bytemuck::Pod + std::fmt::Display + Sync, const N: usize>(
        &self,
        file: &[u8],
        decode: impl Fn([u8; N]) -> F + Sync,
        to: impl Fn(F) -> Option<T> + Sync,
    ) -> Result<Buffer<T>> {
        let data = self.elements(file)?;
        let mut buffer = Buffer::<T>::zeroed(data.len() / N, "array elements")?;
        let element = |bytes: &[u8]| {
            let mut element = [0; N];
            element.copy_from_slice(bytes);
            if self.big_endian {
                element.reverse();
            }
            decode(element)
        };
        const RUN: usize = 1 << 16;
        // Position of the first element that the type cannot hold.
        let lost = AtomicUsize::new(usize::MAX);
        parallel::chunks_mut(&mut buffer, RUN, |run, values| {
            let start = run * RUN;
            let bytes = data[start * N..].chunks_exact(N);
            for (k, (value, bytes)) in values.iter_mut().zip(bytes).enumerate() {
                match to(element(bytes)) {
                    Some(converted) => *value = converted,
                    None => {
                        lost.fetch_min(start + k, Ordering::Relaxed);
                        return;
                    }
                }
            }
        });
        match lost.into_inner() {
            usize::MAX => Ok(buffer),
            position => Err(Error::Value {
                what: format!("element {position}"),
                value: element(&data[position * N..][..N]).to_string(),
                dtype: T::DTYPE,
            }),
        }
    }
}

/// Rows, columns and layout of an array of one or two dimensions.
fn shape(array: &Array) -> Result<(usize, usize, Layout)> {
    let layout = if array.fortran { Layout::ColumnMajor } else { Layout::RowMajor };
    match array.shape[..] {
        [n] => Ok((n as usize, 1, layout)),
        [rows, cols] => Ok((rows as usize, cols as usize, layout)),
        _ => Err(damaged(format!(
            "an array of {} dimensions is not a matrix; reshape it to two",
            array.shape.len()
        ))),
    }
}

/// The matrix in a `.npy` file; a vector is read as one column. Fortran order is kept as
/// column-major, C order as row-major, and either byte order is read.
pub(crate) fn read_dense<T: Scalar>(file: &[u8]) -> Result<Dense<T>> {
    let array = Array::parse(file)?;
    let (rows, cols, layout) = shape(&array)?;
    let values = array.read::<T>(file)?;
    let ld = if layout == Layout::RowMajor { cols } else { rows };
    Dense::with_leading_dimension(rows, cols, layout, ld, values)
}

/// Rows and columns of the matrix in a `.npy` file.
pub(crate) fn dimensions(array: &Array) -> Result<(u64, u64)> {
    shape(array).map(|(rows, cols, _)| (rows as u64, cols as u64))
}

/// NumPy's name for the scalar type.
///
/// # Errors
/// [`Error::Unsupported`] for bfloat16, which NumPy does not have.
pub(crate) fn descr<T: Scalar>() -> Result<&'static str> {
    Ok(match T::DTYPE {
        DType::F16 => "<f2",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
        DType::I32 => "<i4",
        DType::I64 => "<i8",
        DType::Bf16 => {
            return Err(Error::Unsupported {
                problem: "bf16 values".into(),
                backend: "npy".into(),
                reason: "NumPy has no such type".into(),
                nearest: "f32, which holds every bf16 value, or Matrix Market".into(),
            });
        }
    })
}

/// Values as little-endian bytes.
pub(crate) fn little_endian<T: bytemuck::Pod>(values: &[T]) -> Cow<'_, [u8]> {
    let bytes: &[u8] = bytemuck::cast_slice(values);
    if cfg!(target_endian = "little") {
        return Cow::Borrowed(bytes);
    }
    let mut swapped = bytes.to_vec();
    swapped.chunks_exact_mut(size_of::<T>()).for_each(<[u8]>::reverse);
    Cow::Owned(swapped)
}

/// Writes one array: the header, then `data`.
pub(crate) fn write_array(
    to: &mut (impl Write + ?Sized),
    descr: &str,
    fortran: bool,
    shape: &[usize],
    data: &[u8],
) -> io::Result<()> {
    write_header(to, descr, fortran, shape)?;
    to.write_all(data)
}

pub(crate) fn write_header(
    to: &mut (impl Write + ?Sized),
    descr: &str,
    fortran: bool,
    shape: &[usize],
) -> io::Result<()> {
    let fortran = if fortran { "True" } else { "False" };
    let dimensions: String = shape.iter().map(|n| format!("{n},")).collect();
    let mut text =
        format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': ({dimensions}), }}");
    // The data begins at a multiple of 64 bytes; magic, version and length take ten.
    const FIXED: usize = 10;
    let padded = (FIXED + text.len() + 1).next_multiple_of(64);
    text.extend(std::iter::repeat_n(' ', padded - FIXED - text.len() - 1));
    text.push('\n');
    to.write_all(b"\x93NUMPY\x01\x00")?;
    to.write_all(&(text.len() as u16).to_le_bytes())?;
    to.write_all(text.as_bytes())
}

/// Writes a matrix in its own layout.
pub(crate) fn write_dense<T: Scalar>(
    to: &mut (impl Write + ?Sized),
    descr: &str,
    dense: DenseView<'_, T>,
) -> io::Result<()> {
    let (rows, cols) = (dense.nrows(), dense.ncols());
    let fortran = dense.layout() == Layout::ColumnMajor;
    write_header(to, descr, fortran, &[rows, cols])?;
    // A matrix of empty lines may have any number of them: skip the loop.
    let lines = if rows == 0 || cols == 0 {
        0
    } else if fortran {
        cols
    } else {
        rows
    };
    for line in 0..lines {
        to.write_all(&little_endian(dense.line(line)))?;
    }
    Ok(())
}
