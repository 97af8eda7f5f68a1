//! The cache of compiled kernels, with a compiler that only counts.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

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

fn entries(folder: &Path) -> Vec<std::path::PathBuf> {
    fs::read_dir(folder).expect("the folder").map(|e| e.expect("an entry").path()).collect()
}

#[test]
fn a_kernel_is_compiled_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let (compiler, jit) = jit("one", Some(folder.path()));
    let first = jit.cubin(&request(), "sm_90").expect("a cubin");
    assert_eq!(jit.cubin(&request(), "sm_90").expect("a cubin"), first);
    assert_eq!(compiler.calls.load(Ordering::Relaxed), 1);
    let names = entries(folder.path());
    assert_eq!(names.len(), 1, "no temporary file is left: {names:?}");
}

#[test]
fn whatever_matters_is_part_of_the_key() {
    let folder = tempfile::tempdir().expect("a folder");
    let (compiler, jit) = jit("one", Some(folder.path()));
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
    let (newer, jit) = self::jit("two", Some(folder.path()));
    jit.cubin(&request(), "sm_90").expect("a cubin");
    assert_eq!(newer.calls.load(Ordering::Relaxed), 1, "another compiler compiles again");
}

#[test]
fn a_damaged_entry_is_rebuilt() {
    let folder = tempfile::tempdir().expect("a folder");
    let (compiler, jit) = jit("one", Some(folder.path()));
    let cubin = jit.cubin(&request(), "sm_90").expect("a cubin");
    let entry = entries(folder.path()).remove(0);
    let whole = fs::read(&entry).expect("the entry");
    let mut flipped = whole.clone();
    *flipped.last_mut().expect("bytes") ^= 1;
    let mut huge = whole.clone();
    huge[15..23].copy_from_slice(&u64::MAX.to_le_bytes());
    let damaged =
        [Vec::new(), whole[..20].to_vec(), whole[..whole.len() - 1].to_vec(), flipped, huge];
    for (calls, bytes) in damaged.into_iter().enumerate() {
        fs::write(&entry, bytes).expect("the entry");
        assert_eq!(jit.cubin(&request(), "sm_90").expect("a cubin"), cubin);
        assert_eq!(compiler.calls.load(Ordering::Relaxed), calls + 2);
        assert_eq!(fs::read(&entry).expect("the entry"), whole, "the entry is whole again");
    }
}

#[test]
fn an_unwritable_cache_costs_time_only() {
    let folder = tempfile::tempdir().expect("a folder");
    // A file where the folder should be: nothing can be written below it, by no user.
    let blocked = folder.path().join("file");
    fs::write(&blocked, "").expect("a file");
    for place in [Some(blocked.join("cubins")), None] {
        let (compiler, jit) = jit("one", place.as_deref());
        let first = jit.cubin(&request(), "sm_90").expect("a cubin");
        assert_eq!(jit.cubin(&request(), "sm_90").expect("a cubin"), first);
        assert_eq!(compiler.calls.load(Ordering::Relaxed), 2);
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
