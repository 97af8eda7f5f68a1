//! The kernels that are loaded on a device.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::ffi::CStr;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use gustav_core::Result;

use super::{Kernel, Module};
use crate::device::{Device, Profile};
use crate::jit::parameter_block::ParameterBlock;
use crate::jit::{Compiler, Jit, Nvrtc, Request};

/// The compiler for a device, and the loaded kernels.
#[derive(Default)]
struct Modules {
    jit: Jit,
    loaded: Mutex<HashMap<String, Arc<Module>>>,
    /// For every type of variant and parameter block, a map from variants to kernels.
    kernels: Mutex<HashMap<TypeId, Box<dyn Any + Send>>>,
}

impl Device {
    /// Device number `ordinal`, with kernels compiled and cached by `jit`.
    ///
    /// # Errors
    /// [`Error::NoDevice`](gustav_core::Error::NoDevice) that says what is missing.
    pub fn with_jit(ordinal: usize, jit: Jit) -> Result<Self> {
        let device = Self::cuda(ordinal)?;
        device.kernels(|| Modules { jit, ..Modules::default() })?;
        Ok(device)
    }

    /// The module of `request`, compiled and loaded at its first use.
    pub(crate) fn module(&self, request: &Request) -> Result<Arc<Module>> {
        let modules = self.kernels(Modules::default)?;
        let target = self.profile().target();
        // Sources are constants, so their addresses identify them.
        let key = format!("{:p} {request}", request.source);
        let loaded = || modules.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(module) = loaded().get(&key) {
            return Ok(module.clone());
        }
        // Without the lock, so that other threads are not blocked; they may compile the same kernel
        // too.
        let cubin = modules.jit.cubin(request, &target)?;
        self.bind()?;
        let module = Arc::new(Module::load(self.context().clone(), &cubin)?);
        Ok(loaded().entry(key).or_insert(module).clone())
    }

    /// The kernel `name` of `request`, loaded in the first call with this variant. The types of the
    /// variant and of the parameter block identify the kernel file.
    pub(crate) fn kernel<V: Clone + Eq + Hash + Send + 'static, P: ParameterBlock>(
        &self,
        variant: &V,
        name: &CStr,
        request: impl FnOnce() -> Request,
    ) -> Result<Kernel<P>> {
        let modules = self.kernels(Modules::default)?;
        let lock = || modules.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        let found = |all: &HashMap<TypeId, Box<dyn Any + Send>>| {
            let of_type =
                all.get(&TypeId::of::<(V, P)>())?.downcast_ref::<HashMap<V, Kernel<P>>>()?;
            of_type.get(variant).cloned()
        };
        if let Some(kernel) = found(&lock()) {
            return Ok(kernel);
        }
        let kernel = self.module(&request())?.kernel(name)?;
        let mut all = lock();
        let of_type = all
            .entry(TypeId::of::<(V, P)>())
            .or_insert_with(|| Box::new(HashMap::<V, Kernel<P>>::new()));
        if let Some(of_type) = of_type.downcast_mut::<HashMap<V, Kernel<P>>>() {
            of_type.insert(variant.clone(), kernel.clone());
        }
        Ok(kernel)
    }
}

impl Profile {
    /// Checks that products can run on the device, which is number `ordinal`.
    ///
    /// # Errors
    /// [`Error::NoDevice`](gustav_core::Error::NoDevice) if the device is too old for the kernels,
    /// or there is no compiler for it.
    pub fn check(&self, ordinal: usize) -> Result<()> {
        self.is_new_enough(ordinal)?;
        Nvrtc.version().map(drop)
    }
}
