//! Outputs that cannot be written leave old files unchanged.

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
fn a_missing_folder_is_reported_before_any_work() {
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
    // A long product: the error is reported before the matrix is generated.
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
    // A limit on file sizes simulates a full disk: old.mtx exists, the new file is larger.
    folder.write("old.mtx", "old");
    let script = "ulimit -f 1; exec \"$0\" generate grid5:60x60 -o old.mtx";
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
    for line in
        ["info a.mtx", "info a.mtx --json", "spmv a.mtx", "completions zsh", "--help", "--version"]
    {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
        let mut command = folder.command(line);
        command.stdout(full);
        let output = command.output().expect("gustav starts");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{line}: {message}");
        assert!(message.starts_with("gustav: cannot write to standard output: No space"));
    }
}

/// Whether a process has a file in `folder` open, with or without a name.
#[cfg(target_os = "linux")]
fn writes_in(process: u32, folder: &std::path::Path) -> bool {
    let Ok(files) = std::fs::read_dir(format!("/proc/{process}/fd")) else { return false };
    files.flatten().any(|f| std::fs::read_link(f.path()).is_ok_and(|l| l.starts_with(folder)))
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupted_write_leaves_the_old_file_and_nothing_else() {
    for signal in ["TERM", "KILL"] {
        let folder = Folder::new();
        folder.write("old.mtx.gz", "old");
        let mut command = folder.command("generate grid5:700x700 -o old.mtx.gz --quiet");
        let mut child = command.spawn().expect("gustav starts");
        let place = folder.path("").canonicalize().expect("the folder");
        while child.try_wait().expect("a child").is_none() && !writes_in(child.id(), &place) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let kill = format!("kill -{signal} {}", child.id());
        let killed = std::process::Command::new("sh").args(["-c", &kill]).status();
        assert!(killed.expect("a shell").success(), "{signal}: written before it was interrupted");
        let status = child.wait().expect("a child");
        assert_eq!(status.code(), None, "{signal}: {status}");
        assert_eq!(folder.read("old.mtx.gz"), b"old");
        assert_eq!(folder.names(), ["old.mtx.gz"], "{signal}");
    }
}

#[cfg(unix)]
#[test]
fn a_read_only_file_is_reported_before_any_work() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let huge = "gen:grid5:100000x100000 --index u64";
    for (line, name) in [
        (format!("spmm {huge} --columns 1 -o"), "c.npy"),
        (format!("spgemm {huge} -o"), "c.mtx"),
        (format!("info {huge} --png"), "c.png"),
        (format!("convert {huge}"), "c.npz"),
        ("generate grid5:100000x100000 --index u64 -o".to_string(), "c.mtx.gz"),
    ] {
        folder.write(name, "old");
        let path = folder.path(name);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o444)).expect("a file");
        let message = folder.error(&format!("{line} {name}"));
        let words = format!("gustav: cannot write {name}: permission denied\n");
        assert_eq!(message, words);
        assert_eq!(folder.read(name), b"old");
    }
}

#[test]
fn escape_sequences_in_names_do_not_reach_the_terminal() {
    let folder = Folder::new();
    let name = "red\u{1b}[31m.mtx";
    let said = |line: &str| {
        let run = folder.run(line);
        assert!(!format!("{}{}", run.stdout, run.stderr).contains('\u{1b}'), "{line}: {run:?}");
        format!("{}{}", run.stdout, run.stderr)
    };
    let shown = "red\\u{1b}[31m.mtx";
    assert!(said(&format!("info {name}")).contains(shown));
    folder.write(name, SMALL);
    assert!(said(&format!("info {name} --svg a.svg")).contains(shown));
    assert!(said(&format!("spmv {name} --columns")).contains("columns"));
    assert!(said(&format!("convert {name} a.npz --quiet")).is_empty());
    let svg = String::from_utf8(folder.read("a.svg")).expect("text");
    assert!(svg.contains(shown) && !svg.contains('\u{1b}'), "{svg}");
    // JSON has its own escapes, so the name is unchanged.
    assert_eq!(folder.json(&format!("info {name} --json"))["file"], name);
}

#[test]
fn an_existing_file_is_replaced_as_a_whole() {
    let folder = Folder::new();
    folder.write("c.mtx", "old");
    assert_eq!(folder.run("generate diagonal:2 -o c.mtx").status, 0);
    assert!(folder.read("c.mtx").starts_with(b"%%MatrixMarket"));
    assert_eq!(folder.names(), ["c.mtx"]);
}

#[test]
fn halves_and_storages_are_converted_and_read_back() {
    let folder = Folder::new();
    let norm = |file: &str| folder.json(&format!("spmv {file} --json"))["norm"].clone();
    let symmetric = "%%MatrixMarket matrix coordinate real symmetric\n\
                     3 3 4\n1 1 2\n2 1 -1\n3 2 0.5\n3 3 7\n";
    folder.write("g.mtx", symmetric);
    for (options, file, says) in [
        ("--symmetry symmetric", "half.mtx", "coordinate real symmetric"),
        ("--storage coo", "coo.npz", "row.npy"),
        ("--storage csc", "csc.npz", "indptr.npy"),
    ] {
        folder.json(&format!("convert g.mtx {file} {options} --json"));
        let bytes = std::fs::read(folder.path(file)).expect("the file");
        assert!(String::from_utf8_lossy(&bytes).contains(says), "{file}");
        assert_eq!(norm(file), norm("g.mtx"), "{file}");
    }
    let message = folder.error("convert g.mtx skew.mtx --symmetry skew-symmetric");
    assert!(message.contains("(1, 1) and (1, 1) disagree"), "{message}");
    let message = folder.error("convert g.mtx g.npz --symmetry symmetric");
    assert!(message.contains("Matrix Market"), "{message}");
}
