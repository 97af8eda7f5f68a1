//! Matrices in files, and descriptions of matrices. The seeded mutation test of `gustav-io` runs
//! these functions on stable Rust.

use gustav_core::{Csr, Index, Scalar};
use gustav_io::generate::Generator;
use gustav_io::{ReadOptions, Values, parse_csr, parse_dense, parse_header};

// Row offsets take memory by the row, as they must: larger shapes are left to other tests.
const ROWS: u64 = 1 << 20;

/// Any file, as it is.
pub fn any(bytes: &[u8]) {
    if parse_header(bytes).is_ok_and(|header| header.rows > ROWS) {
        return;
    }
    for values in [Values::Ones, Values::Random(1)] {
        let options = ReadOptions { values, progress: None };
        read::<f64, u32, u32>(bytes, &options);
        read::<f32, u64, u32>(bytes, &options);
        read::<i32, u32, u64>(bytes, &options);
    }
    if let Ok(dense) = parse_dense::<f64>(bytes, &ReadOptions::default()) {
        assert_eq!(dense.data().len(), dense.nrows() * dense.ncols());
    }
}

/// The body of a Matrix Market file; the first byte chooses the banner.
pub fn matrix_market(bytes: &[u8]) {
    let Some((choice, body)) = bytes.split_first() else { return };
    let pick = |names: &[&'static str], shift: u8| names[(choice >> shift) as usize % names.len()];
    let form = pick(&["coordinate", "coordinate", "coordinate", "array"], 0);
    let field = pick(&["real", "integer", "pattern", "double"], 2);
    let symmetry = pick(&["general", "symmetric", "skew-symmetric", "general"], 4);
    let mut file = format!("%%MatrixMarket matrix {form} {field} {symmetry}\n").into_bytes();
    file.extend(body);
    any(&file);
}

/// A zip archive.
pub fn npz(bytes: &[u8]) {
    any(&[b"PK\x03\x04", bytes].concat());
}

/// A NumPy array; the length of its header is made to fit.
pub fn npy(bytes: &[u8]) {
    let header = bytes.iter().position(|b| *b == b'\n').map_or(bytes.len(), |n| n + 1);
    let length = (header as u16).to_le_bytes();
    any(&[b"\x93NUMPY\x01\x00", &length[..], bytes].concat());
}

/// A pattern of the Deep Learning Matrix Collection.
pub fn smtx(bytes: &[u8]) {
    any(&[b"3, 4, 5\n", bytes].concat());
    any(bytes);
}

/// The description of a matrix, which is made when it is small.
pub fn generator(bytes: &[u8]) {
    const SMALL: usize = 1 << 12;
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let generator: Generator = match text.parse() {
        Ok(generator) => generator,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let again: Generator = generator.to_string().parse().expect("what we print is read back");
    assert_eq!(again.to_string(), generator.to_string());
    let Ok((rows, cols)) = generator.shape() else { return };
    if rows.max(cols) > SMALL || generator.entries().is_none_or(|n| n > SMALL as u128) {
        return;
    }
    match generator.build::<f32, u32, u32>(1) {
        Ok(matrix) => {
            assert_eq!((matrix.nrows(), matrix.ncols()), (rows, cols));
            assert!(matrix.view().is_canonical());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn read<T: Scalar, I: Index, O: Index>(bytes: &[u8], options: &ReadOptions<'_>) {
    match parse_csr::<T, I, O>(bytes, options) {
        Ok(matrix) => {
            let (rows, cols) = (matrix.nrows(), matrix.ncols());
            let (offsets, indices, values) = matrix.into_parts().expect("memory");
            let checked = Csr::new(rows, cols, offsets, indices, values);
            assert!(checked.is_ok(), "{:?}", checked.err());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
