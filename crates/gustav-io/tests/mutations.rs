//! Seeded mutations of small files and descriptions through the functions of the fuzz targets.

use std::io::{Cursor, Write};

use gustav_core::{Csr, Dense, Layout};
use gustav_io::{WriteOptions, write_csr, write_dense};
use gustav_testkit::mutation;

#[path = "../../../fuzz/src/files.rs"]
mod gustav_fuzz;

/// Valid files of every format.
fn seeds() -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let a = Csr::<f64>::new(
        5,
        4,
        vec![0, 2, 2, 3, 5, 6],
        vec![3, 0, 1, 2, 2, 0],
        vec![1.0, -2.5, 0.1, 1e-7, 3.0, 123_456.789],
    );
    let a = a.unwrap();
    let dense = Dense::from_fn(3, 4, Layout::ColumnMajor, |i, j| (i * 4 + j) as f32).unwrap();
    let mut files = Vec::new();
    let file = |name: &str| folder.path().join(name);
    let pattern = WriteOptions { pattern_only: true, ..Default::default() };
    for name in ["a.mtx", "a.mtx.gz", "a.mtx.zst", "a.npz", "a.smtx"] {
        write_csr(file(name), a.view(), &pattern).unwrap();
        files.push(std::fs::read(file(name)).unwrap());
    }
    write_csr(file("a.mtx"), a.view(), &WriteOptions::default()).unwrap();
    files.push(std::fs::read(file("a.mtx")).unwrap());
    for name in ["b.npy", "b.mtx"] {
        write_dense(file(name), dense.view(), &WriteOptions::default()).unwrap();
        files.push(std::fs::read(file(name)).unwrap());
    }
    files.push(stored_npz());
    for text in [
        "%%MatrixMarket matrix coordinate integer symmetric\n% c\n\n4 4 4\n1 1 1\n3 1 -2\n4 2 7\n4 4 0\n",
        "%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 2\n2 1 1.5\n3 2 -inf\n",
        "%%MatrixMarket matrix array real symmetric\n2 2\n1\n2\n3\n",
    ] {
        files.push(text.into());
    }
    files
}

/// An archive whose arrays stand in it as they are, within reach of mutations.
fn stored_npz() -> Vec<u8> {
    let array = |descr: &str, shape: &str, data: &[u8]| {
        let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
        let length = (text.len() as u16).to_le_bytes();
        [b"\x93NUMPY\x01\x00", &length[..], text.as_bytes(), data].concat()
    };
    let ints = |values: &[i32]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>();
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let stored =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, file) in [
        ("format.npy", array("|S3", "()", b"coo")),
        ("shape.npy", array("<i4", "(2,)", &ints(&[2, 3]))),
        ("row.npy", array("<i4", "(2,)", &ints(&[1, 0]))),
        ("col.npy", array("<i4", "(2,)", &ints(&[2, 0]))),
        ("data.npy", array("<i4", "(2,)", &ints(&[5, -6]))),
    ] {
        zip.start_file(name, stored).unwrap();
        zip.write_all(&file).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

#[test]
fn mutated_files_give_matrices_or_errors() {
    let inputs = mutation::run(&seeds(), |seed, file| {
        gustav_fuzz::any(file);
        // The same bytes as the body behind a sound beginning.
        let body = &file[file.len().min(seed.len() / 3)..];
        gustav_fuzz::matrix_market(body);
        gustav_fuzz::npz(body);
        gustav_fuzz::npy(body);
        gustav_fuzz::smtx(body);
    });
    assert!(inputs > 0);
}

#[test]
fn mutated_descriptions_give_matrices_or_errors() {
    let seeds: Vec<Vec<u8>> = [
        "grid5:7x5",
        "grid27:4x3x5",
        "fem:3x3x2,3",
        "rmat:7,4,0.4,0.3,0.2,0.1",
        "uniform:60x90,7",
        "sparse:110x70,0.9",
        "block:30,8",
        "road:30x20",
        "power-law:70x300,2,2.1",
        "banded:40,3",
        "diagonal:25",
        "hubs:100x500,3,4,200",
        "pruned:64x25,0.8",
        "empty:300x200,6,0.9",
    ]
    .map(|text| text.into())
    .into();
    assert!(mutation::run(&seeds, |_, text| gustav_fuzz::generator(text)) > 0);
}
