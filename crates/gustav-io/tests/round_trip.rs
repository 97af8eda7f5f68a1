//! What is written reads back the same, in every format and compression.

use std::path::Path;

use gustav_core::{Coo, Csr, Dense, Layout, Scalar, bf16, f16};
use gustav_io::{
    Compression, Format, ReadOptions, Storage, Symmetry, WriteOptions, parse_csr, read_csr,
    read_dense, read_header, write_csr, write_dense,
};
use proptest::prelude::*;

const SPARSE: [&str; 7] =
    ["a.mtx", "a.mtx.gz", "a.mtx.zst", "a.npz", "a.npz.gz", "a.smtx", "a.smtx.zst"];
const DENSE: [&str; 5] = ["a.npy", "a.npy.gz", "a.npy.zst", "a.mtx", "a.mtx.gz"];

/// Bits rather than values, so that NaN equals NaN and -0 differs from 0.
fn bits<T: Scalar>(values: &[T]) -> Vec<u8> {
    bytemuck::cast_slice(values).to_vec()
}

fn sparse_trip<T: Scalar>(folder: &Path, name: &str, a: &Csr<T>) -> Csr<T> {
    let path = folder.join(name);
    let options = WriteOptions { pattern_only: name.contains("smtx"), ..Default::default() };
    write_csr(&path, a.view(), &options).unwrap();
    let header = read_header(&path).unwrap();
    assert_eq!((header.rows, header.cols), (a.nrows() as u64, a.ncols() as u64), "{name}");
    assert_eq!(header.entries, a.nnz() as u64, "{name}");
    read_csr(&path, &ReadOptions::default()).unwrap()
}

fn assert_same<T: Scalar>(name: &str, a: &Csr<T>, b: &Csr<T>) {
    assert_eq!((a.nrows(), a.ncols()), (b.nrows(), b.ncols()), "{name}");
    assert_eq!((a.offsets(), a.indices()), (b.offsets(), b.indices()), "{name}");
    if name.contains("smtx") {
        assert!(b.values().iter().all(|v| *v == T::one()), "{name}");
    } else {
        assert_eq!(bits(&a.values()), bits(&b.values()), "{name}");
    }
}

/// A matrix with empty rows, duplicates and unsorted columns; values from any bits.
fn matrix<T: Scalar>(
    (rows, cols): (usize, usize),
    entries: &[(usize, u32, u64)],
    value: impl Fn(u64) -> T,
) -> Csr<T> {
    let r = entries.iter().map(|e| (e.0 % rows) as u32).collect();
    let c = entries.iter().map(|e| e.1 % cols as u32).collect();
    let canonical_nan = |v: T| if v.to_f64().is_nan() { T::from_f64(f64::NAN) } else { v };
    let v = entries.iter().map(|e| canonical_nan(value(e.2))).collect();
    Csr::from_coo(&Coo::new(rows, cols, r, c, v).unwrap()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn sparse_matrices_of_every_type(
        shape in (1usize..20, 1usize..20),
        entries in proptest::collection::vec((any::<usize>(), any::<u32>(), any::<u64>()), 0..40),
    ) {
        let folder = tempfile::tempdir().unwrap();
        macro_rules! trip {
            ($value:expr, $names:expr) => {
                let a = matrix(shape, &entries, $value);
                for name in $names {
                    assert_same(name, &a, &sparse_trip(folder.path(), name, &a));
                }
            };
        }
        trip!(f64::from_bits, SPARSE);
        trip!(|b| f32::from_bits(b as u32), SPARSE);
        trip!(|b| f16::from_bits(b as u16), SPARSE);
        trip!(|b| bf16::from_bits(b as u16), ["a.mtx", "a.smtx"]);
        trip!(|b| b as i32, SPARSE);
        trip!(|b| b as i64, SPARSE);
    }

    #[test]
    fn dense_matrices(
        (rows, cols) in (0usize..8, 0usize..8),
        padding in 0usize..3,
        column_major in any::<bool>(),
        values in proptest::collection::vec(any::<f64>(), 100),
    ) {
        let layout = if column_major { Layout::ColumnMajor } else { Layout::RowMajor };
        let ld = padding + if column_major { rows } else { cols };
        let a = Dense::with_leading_dimension(rows, cols, layout, ld, values).unwrap();
        let folder = tempfile::tempdir().unwrap();
        for name in DENSE {
            let path = folder.path().join(name);
            write_dense(&path, a.view(), &WriteOptions::default()).unwrap();
            let b = read_dense::<f64>(&path, &ReadOptions::default()).unwrap();
            assert_eq!((b.nrows(), b.ncols()), (rows, cols));
            for i in 0..rows {
                for j in 0..cols {
                    assert_eq!(a.get(i, j).to_bits(), b.get(i, j).to_bits(), "{name}");
                }
            }
            if name.contains("npy") {
                assert_eq!(b.layout(), layout);
            }
        }
    }
}

fn example() -> Csr<f64> {
    Csr::new(2, 3, vec![0, 1, 3], vec![2, 1, 0], vec![0.1, -0.0, 1e-300]).unwrap()
}

#[test]
fn text_is_the_shortest_that_reads_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mtx");
    write_csr(&path, example().view(), &WriteOptions::default()).unwrap();
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        "%%MatrixMarket matrix coordinate real general\n2 3 3\n1 3 0.1\n2 2 -0.0\n2 1 1e-300\n"
    );
    let pattern = WriteOptions { pattern_only: true, ..Default::default() };
    write_csr(&path, example().view(), &pattern).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, "%%MatrixMarket matrix coordinate pattern general\n2 3 3\n1 3\n2 2\n2 1\n");
    let smtx = folder.path().join("a.smtx");
    write_csr(&smtx, example().view(), &pattern).unwrap();
    assert_eq!(std::fs::read_to_string(&smtx).unwrap(), "2, 3, 3\n0 1 3\n2 1 0\n");
}

#[test]
fn many_lines_come_in_order() {
    let n = 100_000;
    let offsets: Vec<u32> = (0..=n).collect();
    let indices: Vec<u32> = (0..n).map(|k| k * 7919 % n).collect();
    let values: Vec<f64> = (0..n).map(|k| f64::from(k) / 7.0).collect();
    let a = Csr::new(n as usize, n as usize, offsets, indices, values).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.mtx", "a.mtx.zst", "a.npz"] {
        assert_same(name, &a, &sparse_trip(folder.path(), name, &a));
    }
}

fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn compression_is_known_by_content_and_may_come_in_parts() {
    let text =
        b"%%MatrixMarket matrix coordinate real general\n2 3 3\n1 3 0.1\n2 2 -0.0\n2 1 1e-300\n";
    let (head, tail) = text.split_at(70);
    let zst = |bytes: &[u8]| zstd::encode_all(bytes, 1).unwrap();
    let members = [gz(head), gz(b""), gz(tail)].concat();
    let frames = [zst(head), b"\x50\x2a\x4d\x18\x03\0\0\0xyz".to_vec(), zst(tail)].concat();
    for (bytes, compression) in [(members, Compression::Gzip), (frames, Compression::Zstd)] {
        let a: Csr<f64> = parse_csr(&bytes, &ReadOptions::default()).unwrap();
        assert_eq!(a, example());
        // The name says something else.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        std::fs::write(&path, &bytes).unwrap();
        let header = read_header(&path).unwrap();
        assert_eq!((header.compression, header.format), (compression, Format::MatrixMarket));
        assert_eq!(header.entries, 3);
        for len in 12..bytes.len() {
            // Cut between members or frames, what is left is a shorter text.
            let cut = parse_csr::<f64, u32, u32>(&bytes[..len], &ReadOptions::default());
            let message = cut.unwrap_err().to_string();
            let truncated = message.contains("truncated") || message.contains("end of the file");
            assert!(truncated || message.contains("is damaged"), "{len}: {message}");
        }
        let mut damaged = bytes.clone();
        damaged[40] ^= 0xff;
        assert!(parse_csr::<f64, u32, u32>(&damaged, &ReadOptions::default()).is_err());
    }
}

#[test]
fn headers_far_behind_comments_are_found() {
    let comments = "% a line of comment\n".repeat(20_000);
    let text = format!("%%MatrixMarket matrix coordinate pattern general\n{comments}3 4 0\n");
    for bytes in [text.clone().into_bytes(), gz(text.as_bytes())] {
        let header = gustav_io::parse_header(&bytes).unwrap();
        assert_eq!((header.rows, header.cols), (3, 4));
    }
}

#[test]
fn every_storage_of_npz_reads_back() {
    let folder = tempfile::tempdir().unwrap();
    let entries = [(3, 1, 5), (0, 4, 7), (3, 0, 9), (5, 4, 2), (3, 1, 6)];
    let a: Csr<f64> = matrix((6, 5), &entries, |bits| bits as f64);
    for storage in [Storage::Csr, Storage::Csc, Storage::Coo] {
        let path = folder.path().join(format!("{}.npz", storage.name()));
        for pattern_only in [false, true] {
            let options = WriteOptions { storage, pattern_only, ..Default::default() };
            write_csr(&path, a.view(), &options).unwrap();
            let b: Csr<f64> = read_csr(&path, &ReadOptions::default()).unwrap();
            let (a, b) = (a.sort_columns().unwrap(), b.sort_columns().unwrap());
            assert_eq!((a.offsets(), a.indices()), (b.offsets(), b.indices()), "{storage:?}");
            match pattern_only {
                true => assert!(b.values().iter().all(|v| *v == 1.0), "{storage:?}"),
                false => assert_eq!(a.values(), b.values(), "{storage:?}"),
            }
        }
    }
}

#[test]
fn half_of_a_matrix_reads_back_whole() {
    let folder = tempfile::tempdir().unwrap();
    let (mtx, dense_file) = (folder.path().join("a.mtx"), folder.path().join("d.mtx"));
    let n = 150;
    for (symmetry, sign, name) in
        [(Symmetry::Symmetric, 1.0, "symmetric"), (Symmetry::SkewSymmetric, -1.0, "skew-symmetric")]
    {
        let of =
            |i: usize, j: usize| if (i * j + i + j) % 7 < 2 { (1 + i + 3 * j) as f64 } else { 0.0 };
        let value = |i: usize, j: usize| match i.cmp(&j) {
            std::cmp::Ordering::Less => sign * of(j, i),
            std::cmp::Ordering::Equal if sign < 0.0 => 0.0,
            _ => of(i, j),
        };
        let dense = Dense::from_fn(n, n, Layout::ColumnMajor, value).unwrap();
        let a: Csr<f64> = Csr::from_dense(dense.view()).unwrap();
        let options = WriteOptions { symmetry, ..Default::default() };
        write_csr(&mtx, a.view(), &options).unwrap();
        let header = read_header(&mtx).unwrap();
        assert_eq!(header.symmetry.name(), name);
        assert!(header.entries < a.nnz() as u64);
        assert_same(name, &a, &read_csr(&mtx, &ReadOptions::default()).unwrap());
        write_dense(&dense_file, dense.view(), &options).unwrap();
        let back = read_dense::<f64>(&dense_file, &ReadOptions::default()).unwrap();
        assert!((0..n * n).all(|k| back.get(k % n, k / n) == dense.get(k % n, k / n)), "{name}");
        let npz = write_csr(folder.path().join("a.npz"), a.view(), &options).unwrap_err();
        assert!(npz.to_string().contains("Matrix Market"), "{npz}");
    }
    let coo = WriteOptions { storage: Storage::Coo, ..Default::default() };
    let a: Csr<f64> = matrix((2, 2), &[(0, 1, 3)], |bits| bits as f64);
    let wrong = write_csr(&mtx, a.view(), &coo).unwrap_err();
    assert!(wrong.to_string().contains("npz"), "{wrong}");
}
