//! Compiling kernels at run time, once per machine.

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

/// Turns CUDA C++ into what a driver loads.
pub trait Compiler: Send + Sync {
    /// An identification of this compiler: its output may differ from that of another.
    ///
    /// # Errors
    /// [`Error::NoDevice`](gustav_core::Error::NoDevice) when the compiler is missing.
    fn version(&self) -> Result<String>;

    /// The cubin of `request` for `target` (for example `sm_90`); for a virtual target (`compute_75`),
    /// and for a target that the compiler does not know, PTX that ends in a zero, which drivers compile
    /// further.
    ///
    /// # Errors
    /// [`Error::NoDevice`](gustav_core::Error::NoDevice) when the compiler is missing,
    /// [`Error::Device`](gustav_core::Error::Device) with its log when it refuses the source.
    fn compile(&self, request: &Request, target: &str) -> Result<Vec<u8>>;
}

/// A compiler and the cache in front of it.
#[derive(Clone)]
pub struct Jit {
    compiler: Arc<dyn Compiler>,
    cache: Cache,
}

impl Jit {
    /// `compiler`, with its output in `cache`.
    pub fn new(compiler: Arc<dyn Compiler>, cache: Cache) -> Self {
        Jit { compiler, cache }
    }

    /// The cache; [`Cache::problem`] says why it is not used, if so.
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
