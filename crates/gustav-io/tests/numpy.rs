//! npz and npy files, made here byte by byte as SciPy and NumPy make them.

use std::io::{Cursor, Write};

use gustav_core::{Csr, Dense, Error, Layout, Result};
use gustav_io::{Field, Format, ReadOptions, parse_csr, parse_dense, parse_header};
use zip::write::{SimpleFileOptions, ZipWriter};

fn npy(descr: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
    let fortran = if fortran { "True" } else { "False" };
    let header =
        format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(data);
    file
}

macro_rules! bytes {
    ($t:ty: $($value:expr),*) => { [$(($value as $t).to_le_bytes()),*].concat() };
}

fn archive(arrays: &[(&str, Vec<u8>)], method: zip::CompressionMethod) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, file) in arrays {
        let options = SimpleFileOptions::default().compression_method(method);
        zip.start_file(format!("{name}.npy"), options).unwrap();
        zip.write_all(file).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// 2 × 3: (0, 2) = 1.5, (1, 0) = -2, (1, 1) = 4.
fn scipy(format: &str) -> Vec<(&'static str, Vec<u8>)> {
    let name = npy(&format!("|S{}", format.len()), false, "()", format.as_bytes());
    let shape = npy("<i8", false, "(2,)", &bytes!(i64: 2, 3));
    let mut arrays = vec![("format", name), ("shape", shape)];
    let i4 = |data: Vec<u8>| npy("<i4", false, &format!("({},)", data.len() / 4), &data);
    let values = |data: Vec<u8>| npy("<f8", false, "(3,)", &data);
    match format {
        "csc" => arrays.extend([
            ("indices", i4(bytes!(i32: 1, 1, 0))),
            ("indptr", i4(bytes!(i32: 0, 1, 2, 3))),
            ("data", values(bytes!(f64: -2.0, 4.0, 1.5))),
        ]),
        "coo" => arrays.extend([
            ("row", i4(bytes!(i32: 1, 0, 1))),
            ("col", i4(bytes!(i32: 0, 2, 1))),
            ("data", values(bytes!(f64: -2.0, 1.5, 4.0))),
        ]),
        _ => arrays.extend([
            ("indices", i4(bytes!(i32: 2, 0, 1))),
            ("indptr", i4(bytes!(i32: 0, 1, 3))),
            ("data", values(bytes!(f64: 1.5, -2.0, 4.0))),
        ]),
    }
    arrays
}

fn replaced(format: &str, name: &str, file: Vec<u8>) -> Vec<u8> {
    let mut arrays = scipy(format);
    arrays.iter_mut().find(|(n, _)| *n == name).unwrap().1 = file;
    archive(&arrays, zip::CompressionMethod::Stored)
}

fn read(file: &[u8]) -> Result<Csr<f64>> {
    parse_csr(file, &ReadOptions::default())
}

fn expected() -> Csr<f64> {
    Csr::new(2, 3, vec![0, 1, 3], vec![2, 0, 1], vec![1.5, -2.0, 4.0]).unwrap()
}

#[test]
fn csr_csc_and_coo_compressed_or_not() {
    for format in ["csr", "csc", "coo"] {
        for method in [zip::CompressionMethod::Stored, zip::CompressionMethod::Deflated] {
            let file = archive(&scipy(format), method);
            assert_eq!(read(&file).unwrap(), expected(), "{format}");
            let h = parse_header(&file).unwrap();
            assert_eq!((h.format, h.rows, h.cols, h.entries), (Format::Npz, 2, 3, 3));
            assert_eq!((h.field, h.dense), (Field::Real, false));
        }
    }
}

#[test]
fn every_type_of_value_and_index() {
    let values: [(&str, Vec<u8>); 9] = [
        ("<f4", bytes!(f32: 1.0, 0.0, 4.0)),
        (
            "<f2",
            [half::f16::ONE, half::f16::ZERO, half::f16::from_f32(4.0)]
                .map(|h| h.to_le_bytes())
                .concat(),
        ),
        (">f8", [1.0f64, 0.0, 4.0].map(f64::to_be_bytes).concat()),
        ("|i1", bytes!(i8: 1, 0, 4)),
        ("<i2", bytes!(i16: 1, 0, 4)),
        ("<i8", bytes!(i64: 1, 0, 4)),
        ("|u1", bytes!(u8: 1, 0, 4)),
        (">u4", [1u32, 0, 4].map(u32::to_be_bytes).concat()),
        ("<u8", bytes!(u64: 1, 0, 4)),
    ];
    for (descr, data) in values {
        let a = read(&replaced("csr", "data", npy(descr, false, "(3,)", &data))).unwrap();
        assert_eq!(a.values(), [1.0, 0.0, 4.0], "{descr}");
    }
    let a = read(&replaced("csr", "data", npy("|b1", false, "(3,)", &[1, 0, 1]))).unwrap();
    assert_eq!(a.values(), [1.0, 0.0, 1.0]);
    let wide = npy("<i8", false, "(3,)", &bytes!(i64: 2, 0, 1));
    assert_eq!(read(&replaced("csr", "indices", wide)).unwrap(), expected());
    let utf32 = npy("<U3", false, "()", &bytes!(u32: 'c', 's', 'r'));
    assert_eq!(read(&replaced("csr", "format", utf32)).unwrap(), expected());
}

#[test]
fn what_cannot_be_read_says_what_to_do() {
    for format in ["bsr", "dia"] {
        let message = read(&archive(&scipy(format), zip::CompressionMethod::Stored)).unwrap_err();
        assert_eq!(
            message.to_string(),
            format!(
                "npz: sparse format \"{format}\" is not supported; convert it first: \
                 scipy.sparse.save_npz(file, matrix.tocsr())"
            )
        );
    }
    let pickled = replaced("csr", "data", npy("|O", false, "(3,)", b"\x80\x04K\x01."));
    let message = read(&pickled).unwrap_err().to_string();
    assert!(message.contains("array data: the array holds pickled Python objects"), "{message}");
    let complex = replaced("csr", "data", npy("<c16", false, "(3,)", &[0; 48]));
    let message = read(&complex).unwrap_err().to_string();
    assert!(message.contains("complex arrays are not supported"), "{message}");
    let plain =
        archive(&[("arr_0", npy("<f8", false, "(0,)", b""))], zip::CompressionMethod::Stored);
    let message = read(&plain).unwrap_err().to_string();
    assert!(message.contains("arrays: arr_0.npy") && message.contains("save_npz"), "{message}");
    let longdouble = replaced("csr", "data", npy("<f16", false, "(3,)", &[0; 48]));
    let message = read(&longdouble).unwrap_err().to_string();
    assert!(message.contains("type <f16 are not supported; convert with"), "{message}");
}

#[test]
fn wrong_arrays_name_the_place() {
    let i4 = |data: &[u8]| npy("<i4", false, &format!("({},)", data.len() / 4), data);
    for (format, array, file, message) in [
        ("csr", "indptr", i4(&bytes!(i32: 0, 2, 1)), "offsets must not go back"),
        ("csr", "indptr", i4(&bytes!(i32: 0, 1)), "row offsets: expected 3 elements, found 2"),
        ("csr", "indptr", i4(&bytes!(i32: 0, 1, 2)), "the last offset must equal"),
        ("csr", "indices", i4(&bytes!(i32: 2, 0, 3)), "row 1, entry 2: index 3 is out of range"),
        ("csr", "indices", i4(&bytes!(i32: 2, -1, 0)), "array indices, element 1: -1 is out of"),
        ("coo", "row", i4(&bytes!(i32: 0, 2, 0)), "array row, element 1: 2 is out of range"),
        ("coo", "col", i4(&bytes!(i32: 0, 1)), "column indices: expected 3 elements, found 2"),
        ("csr", "shape", i4(&bytes!(i32: 2, 3, 4)), "a shape of 3 dimensions is no matrix"),
        ("csr", "shape", i4(&bytes!(i32: -2, 3)), "array shape, element 0: -2 is out of range"),
        ("csr", "data", i4(&bytes!(i32: 1, 2)), "values: expected 3 elements, found 2"),
        ("csr", "indices", npy("<f8", false, "(3,)", &[0; 24]), "type <f8, expected integers"),
        ("csr", "data", npy("<f8", false, "(3,)", &[0; 23]), "array data: the file ends too early"),
    ] {
        let found = read(&replaced(format, array, file)).unwrap_err().to_string();
        assert!(found.contains(message), "{format} {array}: {found}");
    }
    let big = npy("<i8", false, "(3,)", &bytes!(i64: 1, 2, (1i64 << 53) + 1));
    let found = read(&replaced("csr", "data", big)).unwrap_err();
    assert_eq!(
        found.to_string(),
        "array data, element 2: 9007199254740993 cannot be held in f64 without loss; use i64"
    );
    let wide = npy("<i8", false, "(2,)", &bytes!(i64: 2, 1i64 << 33));
    let mut arrays = scipy("csr");
    arrays[1].1 = wide;
    arrays[2].1 = npy("<i8", false, "(3,)", &bytes!(i64: 2, 0, 1i64 << 32));
    let file = archive(&arrays, zip::CompressionMethod::Stored);
    let found = read(&file).unwrap_err();
    assert_eq!(found.to_string(), "indices: 4294967296 does not fit in u32; use u64");
    assert!(parse_csr::<f64, u64, u32>(&file, &ReadOptions::default()).is_ok());
    let mut arrays = scipy("coo");
    arrays[1].1 = npy("<i8", false, "(2,)", &bytes!(i64: 1i64 << 62, 3));
    let found = read(&archive(&arrays, zip::CompressionMethod::Stored)).unwrap_err();
    assert!(matches!(found, Error::OutOfMemory { .. }), "{found}");
}

#[test]
fn truncated_archives_are_refused_at_every_length() {
    let file = archive(&scipy("csr"), zip::CompressionMethod::Deflated);
    for len in 4..file.len() {
        let found = read(&file[..len]).unwrap_err();
        assert!(matches!(found, Error::Format { format: "npz", .. }), "{len}: {found}");
    }
}

fn dense(file: &[u8]) -> Result<Dense<f64>> {
    parse_dense(file, &ReadOptions::default())
}

#[test]
fn npy_in_both_orders_and_both_byte_orders() {
    let data = bytes!(f64: 1.0, 2.0, 3.0, 4.0, 5.0, 6.0);
    let c = dense(&npy("<f8", false, "(2, 3)", &data)).unwrap();
    assert_eq!((c.layout(), c.get(0, 1), c.get(1, 0)), (Layout::RowMajor, 2.0, 4.0));
    let f = dense(&npy("<f8", true, "(2, 3)", &data)).unwrap();
    assert_eq!((f.layout(), f.get(0, 1), f.get(1, 0)), (Layout::ColumnMajor, 3.0, 2.0));
    let big: Vec<u8> = data.chunks(8).flat_map(|b| b.iter().rev().copied()).collect();
    assert_eq!(dense(&npy(">f8", false, "(2, 3)", &big)).unwrap().data(), c.data());
    let vector = dense(&npy("<f8", false, "(6,)", &data)).unwrap();
    assert_eq!((vector.nrows(), vector.ncols()), (6, 1));
    for shape in ["(0, 4)", "(4, 0)", "(0,)"] {
        assert!(dense(&npy("<f8", false, shape, b"")).unwrap().data().is_empty());
    }
    let sparse = read(&npy("<f8", false, "(2, 2)", &bytes!(f64: 0.0, 2.0, 0.0, 3.0))).unwrap();
    assert_eq!((sparse.offsets(), sparse.indices()), (&[0, 1, 2][..], &[1, 1][..]));
}

#[test]
fn npy_that_is_wrong() {
    let good = npy("<f8", false, "(2, 3)", &[0; 48]);
    for len in 6..good.len() {
        let found = dense(&good[..len]).unwrap_err().to_string();
        assert!(found.contains("too early"), "{len}: {found}");
    }
    let long = [&good[..], b"x"].concat();
    assert!(dense(&long).unwrap_err().to_string().contains("the file is too long"));
    for (descr, shape, message) in [
        ("<f8", "(2, 3, 1)", "an array of 3 dimensions is not a matrix"),
        ("<f8", "()", "an array of 0 dimensions is not a matrix"),
        ("<f8", "(9223372036854775807, 9)", "is beyond any file"),
        ("<f8", "(99999999999999999999,)", "expected a dimension"),
        ("<f8", "(-1, 3)", "expected a dimension, found \"-1, 3)"),
        ("<f8", "[2]", "expected (, found \"[2]"),
        ("|O", "(2, 3)", "pickled Python objects"),
        ("<c8", "(2, 3)", "complex arrays"),
        ("<M8[ns]", "(2, 3)", "element type \"<M8[ns]\" is not NumPy's"),
        ("|V8", "(2, 3)", "elements of type |V8 are not supported"),
        ("", "(2, 3)", "element type \"\" is not NumPy's"),
    ] {
        let found = dense(&npy(descr, false, shape, &[0; 48])).unwrap_err().to_string();
        assert!(found.contains(message), "{descr} {shape}: {found}");
    }
    let mut record = npy("x", false, "(1,)", &[0; 8]);
    let at = record.windows(3).position(|w| w == b"'x'").unwrap();
    record[at..at + 3].copy_from_slice(b"[  ");
    assert!(dense(&record).unwrap_err().to_string().contains("structured array"));
    let mut version = good.clone();
    version[6] = 9;
    assert!(dense(&version).unwrap_err().to_string().contains("version 9.0"));
    let huge = b"\x93NUMPY\x02\x00\xff\xff\xff\xff{}";
    assert!(dense(huge).unwrap_err().to_string().contains("longer than any matrix needs"));
    let f32s = parse_dense::<f32>(
        &npy("<f8", false, "(1,)", &bytes!(f64: 1e300)),
        &ReadOptions::default(),
    );
    let message = f32s.unwrap_err().to_string();
    assert!(message.starts_with("element 0: 1") && message.contains("held in f32"), "{message}");
}

#[test]
fn a_sparse_file_is_no_dense_one() {
    let file = archive(&scipy("csr"), zip::CompressionMethod::Stored);
    let message = dense(&file).unwrap_err().to_string();
    assert!(message.contains("npz: the file holds a sparse matrix where a dense one"), "{message}");
}
