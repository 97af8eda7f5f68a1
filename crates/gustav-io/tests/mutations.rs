//! Seeded mutations of small files through the functions of the fuzz targets: seconds in a
//! normal run, as long as `GUSTAV_FUZZ_SECONDS` says otherwise.

use std::io::{Cursor, Write};
use std::time::{Duration, Instant};

use gustav_core::{Csr, Dense, Layout};
use gustav_io::{WriteOptions, write_csr, write_dense};
use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

#[path = "../../../fuzz/src/lib.rs"]
mod gustav_fuzz;

/// Tokens that parsers stumble over.
const TOKENS: [&[u8]; 24] = [
    b"0",
    b"-1",
    b"1",
    b"4294967295",
    b"4294967296",
    b"9007199254740993",
    b"18446744073709551615",
    b"18446744073709551616",
    b"nan",
    b"-inf",
    b"1e400",
    b"1e-400",
    b"1e",
    b".",
    b"+",
    b"\n",
    b"\r\n",
    b"%",
    b"\0",
    b"\xff",
    b" ",
    b",",
    b"(",
    b"'",
];

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

fn mutate(file: &mut Vec<u8>, random: &mut Pcg64Mcg) {
    for _ in 0..random.random_range(1..5) {
        let at = random.random_range(0..=file.len());
        let end = (at + random.random_range(0..12)).min(file.len());
        match random.random_range(0..6) {
            0 => file.truncate(at),
            1 if at < file.len() => file[at] ^= 1 << random.random_range(0..8),
            2 => {
                file.drain(at..end);
            }
            3 => {
                let copy = file[at..end].to_vec();
                let to = random.random_range(0..=file.len());
                file.splice(to..to, copy);
            }
            4 => {
                let token = TOKENS[random.random_range(0..TOKENS.len())];
                file.splice(at..end, token.iter().copied());
            }
            _ => {
                let byte = random.next_u64() as u8;
                file.insert(at, byte);
            }
        }
    }
}

/// Prints the input when a parser panics on it.
struct Witness<'a>(&'a [u8]);

impl Drop for Witness<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the input was b\"{}\"", self.0.escape_ascii());
        }
    }
}

#[test]
fn mutated_files_give_matrices_or_errors() {
    let seconds = std::env::var("GUSTAV_FUZZ_SECONDS").ok().and_then(|s| s.parse().ok());
    let limit = Duration::from_secs(seconds.unwrap_or(3));
    let seeds = seeds();
    let start = Instant::now();
    let mut random = Pcg64Mcg::seed_from_u64(20);
    let mut inputs = 0u64;
    while start.elapsed() < limit {
        for seed in &seeds {
            let mut file = seed.clone();
            mutate(&mut file, &mut random);
            let _witness = Witness(&file);
            gustav_fuzz::any(&file);
            // The same bytes as the body behind a sound beginning.
            let body = &file[file.len().min(seed.len() / 3)..];
            gustav_fuzz::matrix_market(body);
            gustav_fuzz::npz(body);
            gustav_fuzz::npy(body);
            gustav_fuzz::smtx(body);
            inputs += 1;
        }
    }
    println!("{inputs} inputs");
    assert!(inputs > 0);
}
