//! A file that somebody else writes to while it is read: an error, and no memory is harmed.

use std::fs::OpenOptions;
use std::io::{Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use gustav_core::{Csr, Result};
use gustav_io::{Progress, ReadOptions, read_csr};

const HEAD: &str = "%%MatrixMarket matrix coordinate real general\n1 1 100000\n";
// The body of 100,000 lines of ten bytes, or of 166,666 of six.
const BODY: usize = 1_000_000;

/// Puts `body` in place of the file's once the first piece of it has been read.
struct Rewriting {
    path: PathBuf,
    body: String,
    done: AtomicBool,
}

impl Progress for Rewriting {
    fn start(&self, _total: u64) {}

    fn advance(&self, _bytes: u64) {
        if !self.done.swap(true, Ordering::Relaxed) {
            let mut file = OpenOptions::new().write(true).open(&self.path).expect("the file");
            file.seek(SeekFrom::Start(HEAD.len() as u64)).expect("its body");
            file.write_all(self.body.as_bytes()).expect("another body");
        }
    }
}

fn body(line: &str) -> String {
    let mut body = line.repeat(BODY / line.len());
    // What is left over is a blank line.
    while body.len() < BODY {
        body.push(if body.len() + 1 == BODY { '\n' } else { ' ' });
    }
    body
}

fn read(before: &str, after: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.mtx");
    std::fs::write(&path, format!("{HEAD}{}", body(before))).expect("a file");
    let (body, done) = (body(after), AtomicBool::new(false));
    let rewriting = Rewriting { path: path.clone(), body, done };
    let options = ReadOptions { progress: Some(&rewriting), ..ReadOptions::default() };
    // One thread reads piece after piece: the file changes behind the first of them.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    let read: Result<Csr<f32>> = pool.install(|| read_csr(&path, &options));
    assert!(rewriting.done.into_inner(), "the file was never changed");
    let message = read.expect_err("the file changed").to_string();
    assert!(message.contains("a.mtx: "), "{message}");
    message
}

#[test]
fn more_lines_than_were_counted_are_an_error() {
    let message = read("1 1 1    \n", "1 1 1\n");
    assert!(message.contains("the file changed while it was read"), "{message}");
}

#[test]
fn fewer_lines_than_were_counted_are_an_error() {
    let message = read("1 1 1    \n", "1 1 1            \n");
    assert!(message.contains("expected 100000 entries as the size line says"), "{message}");
}
