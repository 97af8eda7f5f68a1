//! The cache of compiled kernels, with a compiler that only counts.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, SystemTime};

use gustav_core::{Error, Result};
use gustav_cuda::jit::{Cache, Compiler, Jit, Request};

struct Counting {
    version: &'static str,
    calls: AtomicUsize,
}

impl Compiler for Counting {
    fn version(&self) -> Result<String> {
        Ok(self.version.into())
    }

    fn compile(&self, request: &Request, target: &str) -> Result<Vec<u8>> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Ok(format!("{} {target} {:?}", request.name, request.parameters).into_bytes())
    }
}

fn jit(version: &'static str, folder: Option<&Path>) -> (Arc<Counting>, Jit) {
    let compiler = Arc::new(Counting { version, calls: AtomicUsize::new(0) });
    (compiler.clone(), Jit::new(compiler, Cache::new(folder.map(Into::into))))
}

fn request() -> Request {
    Request::new("a.cu", "source of a").with("LANES", 8)
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).expect("the folder").map(|e| e.expect("an entry").path()).collect()
}

/// A folder for a cache, which is not there yet.
fn new_folder() -> (tempfile::TempDir, PathBuf) {
    let parent = tempfile::tempdir().expect("a folder");
    let folder = parent.path().join("kernels");
    (parent, folder)
}

/// Compiles twice; how often the compiler ran. The cubin is right in any case.
fn compilations(folder: Option<&Path>) -> (usize, Option<String>) {
    let (compiler, jit) = jit("one", folder);
    let first = jit.cubin(&request(), "sm_90").expect("a cubin");
    assert!(first.starts_with(b"a.cu sm_90"));
    assert_eq!(jit.cubin(&request(), "sm_90").expect("a cubin"), first);
    (compiler.calls.load(Ordering::Relaxed), jit.cache().problem())
}

/// The reason for which the cache in `folder` is not used.
fn refused(folder: &Path) -> String {
    let (calls, problem) = compilations(Some(folder));
    assert_eq!(calls, 2, "the cache is used");
    let problem = problem.expect("a reason");
    assert!(problem.starts_with(&folder.display().to_string()), "{problem}");
    problem
}

#[test]
fn a_kernel_is_compiled_once() {
    let (_parent, folder) = new_folder();
    assert_eq!(compilations(Some(&folder)), (1, None));
    let names = entries(&folder);
    assert_eq!(names.len(), 1, "no temporary file is left: {names:?}");
    assert_eq!(compilations(Some(&folder)), (0, None), "another process reads the entry");
}

#[test]
fn whatever_matters_is_part_of_the_key() {
    let (_parent, folder) = new_folder();
    let (compiler, jit) = jit("one", Some(&folder));
    let variants = [
        request(),
        request().with("TILES", 2),
        Request::new("a.cu", "source of a").with("LANES", 16),
        Request::new("a.cu", "another source").with("LANES", 8),
    ];
    for r in &variants {
        for target in ["sm_75", "sm_90"] {
            jit.cubin(r, target).expect("a cubin");
        }
    }
    assert_eq!(compiler.calls.load(Ordering::Relaxed), 2 * variants.len());
    let (newer, jit) = self::jit("two", Some(&folder));
    jit.cubin(&request(), "sm_90").expect("a cubin");
    assert_eq!(newer.calls.load(Ordering::Relaxed), 1, "another compiler compiles again");
}

#[test]
fn fields_of_a_key_do_not_run_into_each_other() {
    let key = |name, source, target, compiler| Request::new(name, source).key(target, compiler);
    let keys = [
        key("a", "bc", "sm_90", "one"),
        key("ab", "c", "sm_90", "one"),
        key("a", "bc", "sm_9", "0one"),
        Request::new("a", "bc").with("X", "1 -DGUSTAV_Y=2").key("sm_90", "one"),
        Request::new("a", "bc").with("X", 1).with("Y", 2).key("sm_90", "one"),
    ];
    for (i, key) in keys.iter().enumerate() {
        assert_eq!(key.to_string().len(), 64, "all of SHA-256");
        assert!(!keys[..i].contains(key), "key {i}");
    }
}

#[test]
fn a_truncated_or_changed_entry_is_rebuilt() {
    let (_parent, folder) = new_folder();
    let (compiler, jit) = jit("one", Some(&folder));
    let cubin = jit.cubin(&request(), "sm_90").expect("a cubin");
    let entry = entries(&folder).remove(0);
    let whole = fs::read(&entry).expect("the entry");
    let header = whole.len() - cubin.len();
    let cut = [0, 1, header - 1, header, whole.len() - 1].map(|len| whole[..len].to_vec());
    let flipped = (0..8 * whole.len()).map(|bit| {
        let mut bytes = whole.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        bytes
    });
    let longer = [whole.as_slice(), b"\0"].concat();
    for (calls, bytes) in cut.into_iter().chain(flipped).chain([longer]).enumerate() {
        fs::write(&entry, bytes).expect("the entry");
        assert_eq!(jit.cubin(&request(), "sm_90").expect("a cubin"), cubin);
        assert_eq!(compiler.calls.load(Ordering::Relaxed), calls + 2);
        assert_eq!(fs::read(&entry).expect("the entry"), whole, "the entry is whole again");
    }
}

#[test]
fn an_entry_under_the_name_of_another_is_rebuilt() {
    let (_parent, folder) = new_folder();
    let (compiler, jit) = jit("one", Some(&folder));
    let expected = ["sm_80", "sm_90"].map(|t| jit.cubin(&request(), t).expect("a cubin"));
    let found = entries(&folder);
    let bytes = [0, 1].map(|i| fs::read(&found[i]).expect("an entry"));
    fs::write(&found[0], &bytes[1]).expect("an entry");
    fs::write(&found[1], &bytes[0]).expect("an entry");
    assert_eq!(["sm_80", "sm_90"].map(|t| jit.cubin(&request(), t).expect("a cubin")), expected);
    assert_eq!(compiler.calls.load(Ordering::Relaxed), 4);
}

#[test]
fn a_cache_that_cannot_be_written_costs_time_only() {
    let parent = tempfile::tempdir().expect("a folder");
    // A file where the folder should be: nothing can be written below it, by no user.
    let blocked = parent.path().join("file");
    fs::write(&blocked, "").expect("a file");
    assert!(refused(&blocked).contains("not a folder"));
    refused(&blocked.join("kernels"));
    let (calls, problem) = compilations(None);
    assert_eq!(calls, 2);
    assert!(problem.expect("a reason").contains("no folder"));
}

#[test]
fn writers_of_one_entry_do_not_disturb_each_other() {
    const THREADS: usize = 8;
    let (_parent, folder) = new_folder();
    for round in 0..20 {
        let start = Barrier::new(THREADS);
        let request = request().with("ROUND", round);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    // A cache of its own, as every process has.
                    let (_, jit) = jit("one", Some(&folder));
                    start.wait();
                    let cubin = jit.cubin(&request, "sm_90").expect("a cubin");
                    assert!(cubin.starts_with(b"a.cu sm_90"));
                    assert_eq!(jit.cache().problem(), None);
                });
            }
        });
        assert_eq!(entries(&folder).len(), round + 1, "one entry, and no temporary file");
        let (compiler, jit) = jit("one", Some(&folder));
        jit.cubin(&request, "sm_90").expect("a cubin");
        assert_eq!(compiler.calls.load(Ordering::Relaxed), 0, "the entry is intact");
    }
}

fn set_used(file: &Path, before: Duration) {
    let file = File::options().write(true).open(file).expect("an entry");
    file.set_modified(SystemTime::now() - before).expect("a time");
}

#[test]
fn entries_that_were_not_used_for_longest_are_removed() {
    let (_parent, folder) = new_folder();
    let compiler = Arc::new(Counting { version: "one", calls: AtomicUsize::new(0) });
    let limited =
        |bytes| Jit::new(compiler.clone(), Cache::new(Some(folder.clone())).with_limit(bytes));
    let variant = |i: usize| request().with("I", i);
    let used = |jit: &Jit, i| {
        let before = compiler.calls.load(Ordering::Relaxed);
        jit.cubin(&variant(i), "sm_90").expect("a cubin");
        compiler.calls.load(Ordering::Relaxed) == before
    };
    let jit = limited(u64::MAX);
    for i in 0..4 {
        assert!(!used(&jit, i));
        for file in entries(&folder) {
            let age = file.metadata().and_then(|m| m.modified()).expect("a time").elapsed();
            set_used(&file, age.unwrap_or_default() + Duration::from_secs(60));
        }
    }
    let size = entries(&folder)[0].metadata().expect("an entry").len();
    // Entry 0 is the oldest, and is used now; entries 1 and 2 have to go for entry 4.
    assert!(used(&jit, 0));
    let jit = limited(3 * size + size / 2);
    assert!(!used(&jit, 4));
    assert_eq!(entries(&folder).len(), 3);
    assert!(used(&jit, 0) && used(&jit, 3) && used(&jit, 4));
    // What is larger than the limit is not written at all, and costs no other entry.
    assert!(!used(&limited(size - 1), 5));
    assert_eq!(entries(&folder).len(), 3);
    let off = limited(0);
    assert!(!used(&off, 0) && off.cache().problem().expect("a reason").contains("0 bytes"));
    assert_eq!(entries(&folder).len(), 3);
}

#[test]
fn abandoned_temporary_files_are_removed_and_other_files_are_not() {
    let (_parent, folder) = new_folder();
    compilations(Some(&folder));
    let file = |name: &str, hours: u64| {
        fs::write(folder.join(name), "part").expect("a file");
        set_used(&folder.join(name), Duration::from_secs(3600 * hours));
    };
    file("0123.gustav-tmp", 2);
    file("4567.gustav-tmp", 0);
    file("notes.tmp", 2);
    let (_, jit) = jit("two", Some(&folder));
    jit.cubin(&request(), "sm_90").expect("a cubin");
    let left =
        ["0123.gustav-tmp", "4567.gustav-tmp", "notes.tmp"].map(|name| folder.join(name).exists());
    assert_eq!(left, [false, true, true]);
}

#[cfg(unix)]
mod unix {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("permissions");
    }

    #[test]
    fn folder_and_entries_are_closed_to_others() {
        let (parent, _) = new_folder();
        let folder = parent.path().join("missing/kernels");
        assert_eq!(compilations(Some(&folder)), (1, None));
        let mode = |path: &Path| path.metadata().expect("a file").mode() & 0o777;
        assert_eq!(mode(&folder), 0o700);
        assert_eq!(mode(folder.parent().expect("a folder")), 0o700);
        assert_eq!(mode(&entries(&folder)[0]), 0o600);
    }

    #[test]
    fn a_folder_that_others_can_use_is_refused() {
        let (_parent, folder) = new_folder();
        assert_eq!(compilations(Some(&folder)), (1, None));
        for mode in [0o777, 0o770, 0o755, 0o740, 0o701, 0o702, 0o1777] {
            set_mode(&folder, mode);
            let reason = refused(&folder);
            assert!(reason.contains(&format!("mode {mode:o}")), "{reason}");
            assert_eq!(entries(&folder).len(), 1, "nothing is written");
        }
        set_mode(&folder, 0o700);
        assert_eq!(compilations(Some(&folder)), (0, None));
    }

    #[test]
    fn a_symbolic_link_is_no_folder() {
        let (parent, folder) = new_folder();
        assert_eq!(compilations(Some(&folder)), (1, None));
        let link = parent.path().join("link");
        symlink(&folder, &link).expect("a link");
        assert!(refused(&link).contains("symbolic link"));
        let dangling = parent.path().join("dangling");
        symlink(parent.path().join("nowhere"), &dangling).expect("a link");
        assert!(refused(&dangling).contains("symbolic link"));
        assert!(!parent.path().join("nowhere").exists(), "nothing is made behind a link");
    }

    #[test]
    fn an_entry_behind_a_link_is_rebuilt_and_the_link_not_followed() {
        let (parent, folder) = new_folder();
        let (compiler, jit) = jit("one", Some(&folder));
        let cubin = jit.cubin(&request(), "sm_90").expect("a cubin");
        let entry = entries(&folder).remove(0);
        let moved = parent.path().join("moved");
        fs::rename(&entry, &moved).expect("an entry");
        let whole = fs::read(&moved).expect("an entry");
        symlink(&moved, &entry).expect("a link");
        assert_eq!(jit.cubin(&request(), "sm_90").expect("a cubin"), cubin);
        assert_eq!(compiler.calls.load(Ordering::Relaxed), 2);
        assert!(entry.symlink_metadata().expect("an entry").is_file(), "the link is replaced");
        assert_eq!(fs::read(&moved).expect("a file"), whole);
    }

    #[test]
    fn what_is_no_file_is_not_read() {
        let (_parent, folder) = new_folder();
        compilations(Some(&folder));
        let entry = entries(&folder).remove(0);
        fs::remove_file(&entry).expect("an entry");
        // Opening a pipe to read it would wait for a writer.
        let made = std::process::Command::new("mkfifo").arg(&entry).status();
        assert!(made.expect("mkfifo").success());
        assert_eq!(compilations(Some(&folder)), (1, None));
    }

    #[test]
    fn a_read_only_folder_is_read() {
        let (_parent, folder) = new_folder();
        compilations(Some(&folder));
        set_mode(&folder, 0o500);
        let (compiler, jit) = jit("one", Some(&folder));
        jit.cubin(&request(), "sm_90").expect("a cubin");
        assert_eq!(compiler.calls.load(Ordering::Relaxed), 0);
        jit.cubin(&request(), "sm_80").expect("a cubin");
        assert!(jit.cache().problem().expect("a reason").contains("read-only"));
        assert_eq!(entries(&folder).len(), 1, "nothing is written, not even by root");
        set_mode(&folder, 0o700);
    }

    /// Some user who is not this process's.
    fn give_away(path: &Path) {
        let owner = path.metadata().expect("a file").uid();
        std::os::unix::fs::lchown(path, Some(owner + 1), None).expect("root may give files away");
    }

    #[test]
    #[ignore = "needs root, to give a folder to another user"]
    fn a_folder_of_another_user_is_refused() {
        let (_parent, folder) = new_folder();
        assert_eq!(compilations(Some(&folder)), (1, None));
        give_away(&folder);
        let reason = refused(&folder);
        assert!(reason.contains("belongs to user"), "{reason}");
    }

    #[test]
    #[ignore = "needs root, to give a file to another user"]
    fn an_entry_of_another_user_is_rebuilt() {
        let (_parent, folder) = new_folder();
        assert_eq!(compilations(Some(&folder)), (1, None));
        let entry = entries(&folder).remove(0);
        give_away(&entry);
        let foreign = entry.metadata().expect("an entry").uid();
        assert_eq!(compilations(Some(&folder)), (1, None));
        assert_ne!(entry.metadata().expect("an entry").uid(), foreign);
    }

    /// The owner of a folder is checked without root too: the system's is not the user's, and for
    /// root it is open to others.
    #[test]
    fn a_folder_of_the_system_is_refused() {
        let reason = refused(Path::new("/usr"));
        let expected = ["belongs to user", "others can use it"];
        assert!(expected.iter().any(|words| reason.contains(words)), "{reason}");
    }
}

struct Missing;

impl Compiler for Missing {
    fn version(&self) -> Result<String> {
        Err(Error::NoDevice { reason: "no compiler".into() })
    }

    fn compile(&self, _request: &Request, _target: &str) -> Result<Vec<u8>> {
        self.version().map(|_| Vec::new())
    }
}

#[test]
fn a_missing_compiler_is_an_error() {
    let jit = Jit::new(Arc::new(Missing), Cache::new(None));
    let found = jit.cubin(&request(), "sm_90");
    assert!(matches!(found, Err(Error::NoDevice { .. })), "{found:?}");
}
