//! Compilation of kernels at run time, cached on disk.

#[macro_use]
pub(crate) mod parameter_block;
#[macro_use]
mod request;

mod cache;
mod folder;
mod nvrtc;
pub(crate) mod source;

use std::sync::Arc;

use gustav_core::Result;

pub use cache::Cache;
pub use nvrtc::{Nvrtc, search_in};
pub use request::{Key, Request};

/// Compiles CUDA C++ to code that the driver can load.
pub trait Compiler: Send + Sync {
    /// Name and version of this compiler, part of the cache key.
    ///
    /// # Errors
    /// [`Error::NoDevice`](gustav_core::Error::NoDevice) when the compiler is missing.
    fn version(&self) -> Result<String>;

    /// The cubin of `request` for `target` (for example `sm_90`); for a virtual target
    /// (`compute_75`), and for a target that the compiler does not know, zero-terminated PTX, which
    /// the driver compiles.
    ///
    /// # Errors
    /// [`Error::NoDevice`](gustav_core::Error::NoDevice) when the compiler is missing,
    /// [`Error::Device`](gustav_core::Error::Device) with its log when it rejects the source.
    fn compile(&self, request: &Request, target: &str) -> Result<Vec<u8>>;
}

/// A compiler with a cache.
#[derive(Clone)]
pub struct Jit {
    compiler: Arc<dyn Compiler>,
    cache: Cache,
}

impl Jit {
    /// Compiles with `compiler` and caches its output in `cache`.
    pub fn new(compiler: Arc<dyn Compiler>, cache: Cache) -> Self {
        Jit { compiler, cache }
    }

    /// The cache; see [`Cache::problem`] for why it may not be used.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// The cubin of `request` for `target`: from the cache, else compiled and written there. A
    /// cache that cannot be used costs time, not the result.
    ///
    /// # Errors
    /// As [`Compiler::compile`].
    pub fn cubin(&self, request: &Request, target: &str) -> Result<Vec<u8>> {
        let key = request.key(target, &self.compiler.version()?);
        if let Some(cubin) = self.cache.get(&key) {
            return Ok(cubin);
        }
        let cubin = self.compiler.compile(request, target)?;
        self.cache.put(&key, &cubin);
        Ok(cubin)
    }
}

impl Default for Jit {
    /// NVRTC, and the user's cache.
    fn default() -> Self {
        Jit::new(Arc::new(Nvrtc), Cache::of_user())
    }
}
