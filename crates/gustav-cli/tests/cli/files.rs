//! Nothing is lost: outputs that cannot be written leave old files as they were.

use crate::support::{Folder, SMALL};

const WRITERS: [(&str, &str); 6] = [
    ("spmm a.mtx --columns 2 -o", "out.npy"),
    ("spmv a.mtx -o", "out.npy"),
    ("spgemm a.mtx -o", "out.mtx"),
    ("generate grid5:3x3 -o", "out.npz"),
    ("convert a.mtx", "out.npz"),
    ("info a.mtx --svg", "out.svg"),
];

#[test]
fn a_missing_folder_is_told_before_any_work() {
    let folder = Folder::new();
    folder.write("a.mtx", SMALL);
    for (line, name) in WRITERS {
        let message = folder.error(&format!("{line} nowhere/{name}"));
        assert_eq!(
            message,
            format!(
                "gustav: cannot write nowhere/{name}: No such file or directory (os error 2)\n"
            ),
        );
    }
    // A product that takes long: the message comes before the matrix is made.
    let line = "spmm gen:grid5:100000x100000 --index u64 --columns 1 -o nowhere/c.npy";
    assert!(folder.error(line).contains("cannot write nowhere/c.npy"));
}

#[test]
fn a_folder_is_no_output_file() {
    let folder = Folder::new();
    folder.write("a.mtx", SMALL);
    for (line, name) in WRITERS {
        std::fs::create_dir_all(folder.path(name)).expect("a folder");
        let message = folder.error(&format!("{line} {name}"));
        assert!(message.starts_with(&format!("gustav: cannot write {name}: ")), "{message}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_and_the_old_file_stays() {
    let folder = Folder::new();
    folder.write("a.mtx", SMALL);
    // A limit on file sizes stands for a full disk: old.mtx exists, the new one is larger.
    folder.write("old.mtx", "old");
    let script = "ulimit -f 1; trap '' XFSZ; exec \"$0\" generate grid5:60x60 -o old.mtx";
    let output = std::process::Command::new("sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_gustav")])
        .current_dir(folder.path(""))
        .output()
        .expect("a shell");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.starts_with("gustav: cannot write old.mtx: "), "{message}");
    assert_eq!(folder.read("old.mtx"), b"old");
    assert_eq!(folder.names(), ["a.mtx", "old.mtx"]);

    // A device that is always full, named as a matrix file.
    std::os::unix::fs::symlink("/dev/full", folder.path("full.mtx")).expect("a link");
    let message = folder.error("generate grid5:60x60 -o full.mtx");
    assert!(message.starts_with("gustav: cannot write full.mtx: No space left"), "{message}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_standard_output_is_an_error() {
    let folder = Folder::new();
    folder.write("a.mtx", SMALL);
    for line in ["info a.mtx", "info a.mtx --json", "spmv a.mtx", "completions zsh"] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
        let mut command = folder.command(line);
        command.stdout(full);
        let output = command.output().expect("gustav starts");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{line}: {message}");
        assert!(message.starts_with("gustav: cannot write to standard output: No space"));
    }
}

#[cfg(unix)]
#[test]
fn an_interrupted_write_leaves_the_old_file() {
    let folder = Folder::new();
    folder.write("old.mtx.gz", "old");
    let mut command = folder.command("generate grid5:700x700 -o old.mtx.gz --quiet");
    let mut child = command.spawn().expect("gustav starts");
    // Killed once it writes: a temporary file has appeared beside the old one.
    while folder.names().len() < 2 && child.try_wait().expect("a child").is_none() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let interrupted = child.try_wait().expect("a child").is_none();
    child.kill().expect("a running child");
    child.wait().expect("a child");
    assert!(interrupted, "the file was written before it could be interrupted");
    assert_eq!(folder.read("old.mtx.gz"), b"old");
}

#[test]
fn an_existing_file_is_replaced_as_a_whole() {
    let folder = Folder::new();
    folder.write("c.mtx", "old");
    assert_eq!(folder.run("generate diagonal:2 -o c.mtx").status, 0);
    assert!(folder.read("c.mtx").starts_with(b"%%MatrixMarket"));
    assert_eq!(folder.names(), ["c.mtx"]);
}
