//! Files that SciPy wrote are read, and files that we write are read by SciPy, value for value.
//! `GUSTAV_PYTHON` names the Python that has SciPy, if it is not `python3`.

use std::path::Path;
use std::process::Command;

use gustav_core::{Csr, Dense, Index, Layout, Scalar};
use gustav_io::{ReadOptions, WriteOptions, read_csr, write_csr, write_dense};

/// What the script prints.
fn script(arguments: &[&str]) -> String {
    let python = std::env::var("GUSTAV_PYTHON").unwrap_or_else(|_| "python3".into());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scipy_files.py");
    let output = Command::new(&python).arg(path).args(arguments).output();
    let output = output.unwrap_or_else(|e| panic!("{python} (GUSTAV_PYTHON names another): {e}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{python} {arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// As the script writes them: the shape, then the nonzeros by row and column.
fn triples<I: Index, O: Index>(a: &Csr<f64, I, O>) -> Vec<Vec<f64>> {
    let a = a.canonicalize().unwrap();
    let mut lines = vec![vec![a.nrows() as f64, a.ncols() as f64]];
    for row in 0..a.nrows() {
        let (cols, values) = a.view().row(row);
        let entries = cols.iter().zip(values).filter(|(_, v)| **v != 0.0);
        lines.extend(entries.map(|(c, v)| vec![row as f64, c.to_usize() as f64, *v]));
    }
    lines
}

fn parsed(text: &str) -> Vec<Vec<f64>> {
    let numbers = |line: &str| line.split(' ').map(|n| n.parse().unwrap()).collect();
    text.lines().map(numbers).collect()
}

#[test]
#[ignore = "needs SciPy"]
fn what_scipy_writes_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path().to_str().unwrap();
    script(&["write", here]);
    let (mut read, mut refused) = (0, 0);
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.ends_with(".triples") {
            continue;
        }
        let narrow = read_csr::<f64, u32, u32>(&path, &ReadOptions::default());
        if name.starts_with("refused") {
            let message = narrow.unwrap_err().to_string();
            assert!(message.contains("not supported") || message.contains("pickled"), "{message}");
            refused += 1;
            continue;
        }
        let expected = std::fs::read_to_string(folder.path().join(format!("{name}.triples")));
        let expected = parsed(&expected.unwrap());
        assert_eq!(triples(&narrow.unwrap()), expected, "{name}");
        let wide = read_csr::<f64, u64, u64>(&path, &ReadOptions::default()).unwrap();
        assert_eq!(triples(&wide), expected, "{name} with u64 indices");
        read += 1;
    }
    assert_eq!((read, refused), (58, 3));
}

#[test]
#[ignore = "needs SciPy"]
fn what_we_write_is_read_by_scipy() {
    fn example<T: Scalar>() -> Csr<T> {
        let part = if T::DTYPE.is_integer() { 1.0 } else { 0.25 };
        let values = [1.0, -2.0, 3.0, 40.0, 5.0].map(|v| T::from_f64(v * part));
        Csr::new(4, 3, vec![0, 2, 2, 3, 5], vec![0, 2, 1, 0, 2], values.to_vec()).unwrap()
    }
    fn check<T: Scalar>(folder: &Path, name: &str) {
        let (a, path) = (example::<T>(), folder.join(name));
        write_csr(&path, a.view(), &WriteOptions::default()).unwrap();
        let found = script(&["read", path.to_str().unwrap()]);
        let wide = a.values().iter().map(|v| v.to_f64()).collect::<Vec<_>>();
        let a = Csr::<f64>::new(4, 3, a.offsets().to_vec(), a.indices().to_vec(), wide).unwrap();
        assert_eq!(parsed(&found), triples(&a), "{name} of {}", T::DTYPE);
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for name in ["a.npz", "a.mtx", "a.mtx.gz"] {
        check::<f64>(folder, name);
        check::<f32>(folder, name);
        check::<i64>(folder, name);
    }
    for layout in [Layout::RowMajor, Layout::ColumnMajor] {
        let dense = Dense::<f32>::from_fn(3, 2, layout, |i, j| (3 * i + j) as f32 + 0.5).unwrap();
        let path = folder.join("b.npy");
        write_dense(&path, dense.view(), &WriteOptions::default()).unwrap();
        let found = script(&["read", path.to_str().unwrap()]);
        let expected = "3 2\n0 0 0.5\n0 1 1.5\n1 0 3.5\n1 1 4.5\n2 0 6.5\n2 1 7.5\n";
        assert_eq!(found, expected);
    }
}
