//! Loaded modules, and launches.

use std::ffi::{CStr, c_void};
use std::marker::PhantomData;
use std::sync::Arc;

use cudarc::driver::{CudaContext, sys};
use gustav_core::{Error, Result};

use crate::device::Stream;
use crate::device::driver::Checked;
use crate::jit::parameter_block::ParameterBlock;

/// The largest grid in y and z.
pub(crate) const GRID_Y: u64 = 65_535;
// The first compute capability (× 10) and the first driver with programmatic dependent launch.
const DEPENDENT: i32 = 90;
const DEPENDENT_DRIVER: i32 = 12_030;
// The first driver that reports the size of a kernel's parameters.
const PARAMETERS_DRIVER: i32 = 12_040;
// The largest grid in x.
const GRID_X: u64 = i32::MAX as u64;

/// A cubin or PTX loaded on a device.
pub(crate) struct Module {
    // The module must be unloaded before the context is destroyed.
    context: Arc<CudaContext>,
    raw: sys::CUmodule,
}

// SAFETY: a module handle may be used from any thread that has bound its context.
unsafe impl Send for Module {}
// SAFETY: the driver synchronises access to a module.
unsafe impl Sync for Module {}

impl Module {
    /// Loads `cubin`, or zero-terminated PTX; the context must be bound.
    pub(crate) fn load(context: Arc<CudaContext>, cubin: &[u8]) -> Result<Self> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: a cubin contains its length, PTX is zero-terminated; the driver copies the data.
        unsafe { sys::cuModuleLoadData(&mut raw, cubin.as_ptr().cast()) }
            .result()
            .during("loading a kernel")?;
        Ok(Module { context, raw })
    }

    /// The kernel `name`, whose one parameter is a `P`.
    pub(crate) fn kernel<P: ParameterBlock>(self: &Arc<Self>, name: &CStr) -> Result<Kernel<P>> {
        self.context.bind_to_thread().during("using the device from this thread")?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the module is loaded, the name ends in a zero.
        unsafe { sys::cuModuleGetFunction(&mut raw, self.raw, name.as_ptr()) }
            .result()
            .during("finding a kernel")?;
        let mut driver = 0;
        // SAFETY: the driver writes one number.
        unsafe { sys::cuDriverGetVersion(&mut driver) }
            .result()
            .during("asking for its version")?;
        if driver >= PARAMETERS_DRIVER {
            check_parameter::<P>(raw, name)?;
        }
        let dependent = driver >= DEPENDENT_DRIVER && compiled_for(raw)? >= DEPENDENT;
        Ok(Kernel { module: self.clone(), raw, dependent, parameter: PhantomData })
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if self.context.bind_to_thread().is_ok() {
            // SAFETY: loaded once, unloaded once; kernels hold the module.
            let _ = unsafe { sys::cuModuleUnload(self.raw) };
        }
    }
}

/// Checks that the kernel's parameter has the size of `P`.
fn check_parameter<P: ParameterBlock>(raw: sys::CUfunction, name: &CStr) -> Result<()> {
    let (mut offset, mut size) = (0, 0);
    // SAFETY: the kernel's module is loaded; the driver writes two numbers.
    unsafe { sys::cuFuncGetParamInfo(raw, 0, &mut offset, &mut size) }
        .result()
        .during("asking for the size of a kernel's parameter")?;
    if size == size_of::<P>() {
        return Ok(());
    }
    let (name, block) = (name.to_string_lossy(), P::SPELLING);
    let reason =
        format!("{name} takes {size} bytes, but {block} has {} on the host", size_of::<P>());
    Err(Error::Device { action: "checking a kernel's parameter", reason })
}

/// The compute capability × 10 that a kernel was compiled for.
fn compiled_for(raw: sys::CUfunction) -> Result<i32> {
    use sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_PTX_VERSION as VERSION;
    let mut version = 0;
    // SAFETY: the kernel's module is loaded.
    unsafe { sys::cuFuncGetAttribute(&mut version, VERSION, raw) }
        .result()
        .during("asking what a kernel was compiled for")?;
    Ok(version)
}

/// A kernel, ready to launch, whose one parameter is a `P` passed by value.
#[derive(Clone)]
pub(crate) struct Kernel<P> {
    module: Arc<Module>,
    raw: sys::CUfunction,
    /// Whether [`Kernel::launch_dependent`] has an effect.
    dependent: bool,
    parameter: PhantomData<fn(P)>,
}

// SAFETY: as for the module that holds it.
unsafe impl<P> Send for Kernel<P> {}
// SAFETY: as for the module that holds it.
unsafe impl<P> Sync for Kernel<P> {}

impl<P: ParameterBlock> Kernel<P> {
    /// Allows launches up to `bytes` of dynamic shared memory.
    pub(crate) fn allow_shared(&self, bytes: usize) -> Result<()> {
        use sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES as MOST;
        // SAFETY: the kernel's module is loaded.
        unsafe { sys::cuFuncSetAttribute(self.raw, MOST, i32::try_from(bytes).unwrap_or(i32::MAX)) }
            .result()
            .during("asking for shared memory")
    }

    /// How many CTAs of `block` threads with `shared` bytes of dynamic shared memory a
    /// multiprocessor holds at once.
    pub(crate) fn resident(&self, block: u32, shared: usize) -> Result<usize> {
        self.module.context.bind_to_thread().during("using the device from this thread")?;
        let mut ctas = 0;
        let block = i32::try_from(block).unwrap_or(i32::MAX);
        // SAFETY: the kernel's module is loaded.
        unsafe {
            sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut ctas, self.raw, block, shared)
        }
        .result()
        .during("asking for the occupancy")?;
        Ok(usize::try_from(ctas).unwrap_or(0))
    }

    /// Queues a launch of `grid` CTAs of `block` threads.
    ///
    /// # Safety
    /// Every address in `arguments` is valid for the kernel's accesses until the launch is done.
    pub(crate) unsafe fn launch(
        &self,
        stream: &Stream,
        grid: (u64, u64),
        block: u32,
        arguments: &P,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.launch_with_shared(stream, grid, block, 0, arguments) }
    }

    /// As [`Kernel::launch`], with `shared` bytes of dynamic shared memory.
    ///
    /// # Safety
    /// As there.
    pub(crate) unsafe fn launch_with_shared(
        &self,
        stream: &Stream,
        grid: (u64, u64),
        block: u32,
        shared: usize,
        arguments: &P,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.launch_when(false, stream, grid, block, shared, arguments) }
    }

    /// As [`Kernel::launch_with_shared`], by programmatic dependent launch if the device has it:
    /// the kernel may begin before the previous launch on the stream has ended, and waits for it as
    /// `ptx/dependents.cuh` says.
    ///
    /// # Safety
    /// As there; before it waits, the kernel writes nothing, and reads only data that no launch
    /// writes, or, if the previous launch waited for all earlier ones before it triggered this one,
    /// data that the previous launch does not write.
    pub(crate) unsafe fn launch_dependent(
        &self,
        stream: &Stream,
        grid: (u64, u64),
        block: u32,
        shared: usize,
        arguments: &P,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        unsafe { self.launch_when(true, stream, grid, block, shared, arguments) }
    }

    /// As [`Kernel::launch_dependent`] when `dependent`, else as [`Kernel::launch_with_shared`].
    ///
    /// # Safety
    /// As there.
    pub(crate) unsafe fn launch_when(
        &self,
        dependent: bool,
        stream: &Stream,
        grid: (u64, u64),
        block: u32,
        shared: usize,
        arguments: &P,
    ) -> Result<()> {
        if grid.0 == 0 || grid.1 == 0 {
            return Ok(());
        }
        if grid.0 > GRID_X {
            return Err(Error::Overflow {
                what: "CTAs of a launch",
                need: u128::from(grid.0),
                index_type: gustav_core::IndexType::U32,
            });
        }
        self.module.context.bind_to_thread().during("using the device from this thread")?;
        let mut parameters = [std::ptr::from_ref(arguments).cast_mut().cast::<c_void>()];
        let (x, y) = (grid.0 as u32, grid.1.min(GRID_Y) as u32);
        let shared = u32::try_from(shared).unwrap_or(u32::MAX);
        let (raw, stream) = (self.raw, stream.raw().cu_stream());
        let (parameters, none) = (parameters.as_mut_ptr(), std::ptr::null_mut());
        if dependent && self.dependent {
            let mut attribute = sys::CUlaunchAttribute {
                id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                pad: [0; 4],
                value: sys::CUlaunchAttributeValue { programmaticStreamSerializationAllowed: 1 },
            };
            let config = sys::CUlaunchConfig {
                gridDimX: x,
                gridDimY: y,
                gridDimZ: 1,
                blockDimX: block,
                blockDimY: 1,
                blockDimZ: 1,
                sharedMemBytes: shared,
                hStream: stream,
                attrs: &raw mut attribute,
                numAttrs: 1,
            };
            // SAFETY: the caller's promise; the driver copies the arguments before it returns.
            unsafe { sys::cuLaunchKernelEx(&raw const config, raw, parameters, none) }
        } else {
            // SAFETY: as above.
            unsafe {
                sys::cuLaunchKernel(raw, x, y, 1, block, 1, 1, shared, stream, parameters, none)
            }
        }
        .result()
        .during("launching a kernel")
    }
}

#[cfg(test)]
mod tests {
    use crate::device::Device;
    use crate::launch::probe;

    parameter_block! {
        struct Shorter {
            from: *const u64,
        }
    }

    #[test]
    #[ignore = "needs a CUDA device"]
    fn a_parameter_of_another_size_is_refused() {
        let device = Device::cuda(0).expect("a CUDA device");
        let module = device.module(&probe::request()).expect("a module");
        let refused = module.kernel::<Shorter>(c"read").err().expect("32 bytes, not 8").to_string();
        assert!(refused.contains("read takes 32 bytes, but Shorter has 8"), "{refused}");
    }
}
