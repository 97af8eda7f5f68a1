//! Writing fails without losing anything.

use std::fs;
use std::path::Path;

use gustav_core::{Csr, Dense, Error, Layout, bf16};
use gustav_io::{Compression, Format, ReadOptions, WriteOptions, read_csr, write_csr, write_dense};

fn matrix(rows: u32) -> Csr<f64> {
    let values = (0..rows).map(|k| f64::from(k) / 3.0).collect::<Vec<_>>();
    Csr::new(rows as usize, 1, (0..=rows).collect::<Vec<_>>(), vec![0; rows as usize], values)
        .unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect()
}

fn message(result: gustav_core::Result<()>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn names_and_formats_that_do_not_suit() {
    let a = matrix(3);
    let plain = WriteOptions::default();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let text = message(write_csr(file("a.xyz"), a.view(), &plain));
    assert!(
        text.ends_with(
            "expected a name ending in .mtx, .npz, .npy or .smtx, optionally with .gz or .zst"
        ),
        "{text}"
    );
    let text = message(write_csr(file("a.npy"), a.view(), &plain));
    assert!(
        text.contains("npy for a sparse matrix") && text.contains("expected npz, mtx or smtx"),
        "{text}"
    );
    let text = message(write_csr(file("a.smtx"), a.view(), &plain));
    assert!(
        text.contains("smtx does not support values other than 1") && text.contains("npz"),
        "{text}"
    );
    let dense = Dense::<f64>::zeros(2, 2, Layout::RowMajor).unwrap();
    let text = message(write_dense(file("a.npz"), dense.view(), &plain));
    assert!(text.contains("npz for a dense matrix is not valid, expected npy or mtx"), "{text}");
    let half = Csr::<bf16>::new(1, 1, vec![0, 1], vec![0], vec![bf16::ONE]).unwrap();
    let text = message(write_csr(file("a.npz"), half.view(), &plain));
    assert!(text.contains("bf16") && text.contains("nearest that works: f32"), "{text}");
    assert!(names(folder.path()).is_empty());
    let options = WriteOptions {
        format: Some(Format::Npz),
        compression: Some(Compression::Zstd),
        ..Default::default()
    };
    write_csr(file("no extension"), a.view(), &options).unwrap();
    assert_eq!(
        read_csr::<f64, u32, u32>(file("no extension"), &ReadOptions::default()).unwrap(),
        a
    );
}

#[test]
fn a_missing_folder_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("missing/a.mtx");
    let error = write_csr(&path, matrix(1).view(), &WriteOptions::default()).unwrap_err();
    assert!(matches!(&error, Error::Io { path: p, action: "write", .. } if *p == path), "{error}");
    let text = message(write_csr(
        folder.path().join("."),
        matrix(1).view(),
        &WriteOptions { format: Some(Format::Npz), ..Default::default() },
    ));
    assert!(text.contains("is a directory"), "{text}");
}

#[cfg(unix)]
#[test]
fn read_only_files_stay() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.mtx");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    let text = message(write_csr(&path, matrix(1).view(), &WriteOptions::default()));
    assert!(text.contains("permission denied"), "{text}");
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(names(folder.path()), ["a.mtx"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_device_is_an_error() {
    for format in [Format::MatrixMarket, Format::Npz] {
        for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
            let to = WriteOptions {
                format: Some(format),
                compression: Some(compression),
                ..Default::default()
            };
            let text = message(write_csr("/dev/full", matrix(1000).view(), &to));
            assert!(text.starts_with("cannot write /dev/full: No space left"), "{text}");
        }
    }
}

/// Runs one test of this program again, in a shell that first says `before`, on `folder`.
#[cfg(target_os = "linux")]
fn again(before: &str, folder: &Path) -> std::process::ExitStatus {
    let program = std::env::current_exe().unwrap();
    let line = format!("{before}; exec \"$0\" --exact writes_a_large_file --ignored --nocapture");
    let mut shell = std::process::Command::new("sh");
    shell.arg("-c").arg(line).arg(program).env("GUSTAV_WRITE_TO", folder);
    shell.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    shell.status().unwrap()
}

/// The part of the two tests below that runs in a process of its own.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "run by the tests of a limited and an interrupted write"]
fn writes_a_large_file() {
    let folder = std::env::var_os("GUSTAV_WRITE_TO").expect("GUSTAV_WRITE_TO names a folder");
    let path = Path::new(&folder).join("a.mtx");
    let text = message(write_csr(path, matrix(300_000).view(), &WriteOptions::default()));
    assert!(text.contains("File too large"), "{text}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_write_beyond_the_limit_leaves_the_old_file_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.mtx"), "old").unwrap();
    // 512 KiB may be written; the signal that comes with the limit is ignored.
    let status = again("ulimit -f 1024; trap '' XFSZ", folder.path());
    assert!(status.success(), "{status}");
    assert_eq!(fs::read(folder.path().join("a.mtx")).unwrap(), b"old");
    assert_eq!(names(folder.path()), ["a.mtx"]);
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupted_write_leaves_the_old_file() {
    use std::os::unix::process::ExitStatusExt;
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.mtx"), "old").unwrap();
    // The signal ends the process in the middle of the write.
    let status = again("ulimit -f 1024", folder.path());
    assert!(status.signal().is_some(), "{status}");
    assert_eq!(fs::read(folder.path().join("a.mtx")).unwrap(), b"old");
}
