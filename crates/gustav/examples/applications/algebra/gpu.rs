//! Dense algebra in a GPU's memory: cuBLAS, and the kernels of `steps.cu` on the stream of the
//! library's device.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_void};
use std::marker::PhantomData;

use cudarc::cublas::sys as cublas;
use cudarc::driver::{CudaContext, result, sys};
use gustav::cuda::{DeviceBuffer, DeviceDense, DevicePattern, Event};
use gustav::{
    AttentionCall, AttentionGradients, AttentionGradientsCall, AttentionInputs, DenseView, Device,
    Error, Pattern, Result, SddmmPlan, SoftmaxPlan, SpmmPlan, SpmvPlan,
};
use gustav_cuda::jit::{Jit, Request};

use super::{
    Algebra, CALLS, DECAY, EPSILON, Flat, PAIR_WIDTH, Parameter, SLOPE, Shape, Term, WeightedSums,
    corrected, products, width_of_pairs,
};

// Threads of a CTA; `BLOCK` in `steps.cu`.
const BLOCK: u32 = 256;
// CTAs for each multiprocessor.
const CTAS: usize = 8;
// Kernels count elements in 31 bits.
const MOST: usize = i32::MAX as usize;

/// A GPU's memory.
pub struct Gpu {
    device: gustav_cuda::Device,
    context: std::sync::Arc<CudaContext>,
    module: sys::CUmodule,
    kernels: Kernels,
    blas: cublas::cublasHandle_t,
    /// Sums over columns of every CTA.
    partial: RefCell<DeviceBuffer<f64>>,
}

macro_rules! kernels {
    ($($name:ident),* $(,)?) => {
        struct Kernels {
            $($name: sys::CUfunction,)*
        }

        #[cfg(test)]
        const NAMES: &[&str] = &[$(stringify!($name)),*];

        impl Kernels {
            fn load(module: sys::CUmodule) -> Result<Self> {
                let of = |name: &str| {
                    let name = CString::new(name).unwrap_or_default();
                    // SAFETY: the module is loaded, and lives as long as `Gpu`, which holds the
                    // kernels.
                    unsafe { result::module::get_function(module, name) }
                        .map_err(|e| failed("finding a kernel", e))
                };
                Ok(Kernels { $($name: of(stringify!($name))?,)* })
            }
        }
    };
}
kernels!(
    column_sums,
    finish_sums,
    ratios,
    add_columns,
    scale_columns,
    add_number,
    add_bias,
    relu_gradient,
    cross_entropy,
    adam,
    leaky_relu,
    leaky_relu_gradient,
    split_scores,
    join_scores,
);

/// What `steps.cu` is compiled from.
fn request() -> Request {
    Request::new("applications/steps.cu", include_str!("steps.cu"))
}

/// Elements that are read.
#[derive(Clone, Copy)]
pub struct Slice<'a> {
    address: u64,
    len: usize,
    memory: PhantomData<&'a ()>,
}

/// Elements that are written.
pub struct SliceMut<'a> {
    address: u64,
    len: usize,
    memory: PhantomData<&'a mut ()>,
}

impl Flat<Gpu> for DeviceDense<f32> {
    fn flat(&self) -> Slice<'_> {
        self.data().flat()
    }

    fn flat_mut(&mut self) -> SliceMut<'_> {
        let (address, len) = (self.data().address(), self.data().len());
        SliceMut { address, len, memory: PhantomData }
    }
}

impl Flat<Gpu> for DeviceBuffer<f32> {
    fn flat(&self) -> Slice<'_> {
        Slice { address: self.address(), len: self.len(), memory: PhantomData }
    }

    fn flat_mut(&mut self) -> SliceMut<'_> {
        SliceMut { address: self.address(), len: self.len(), memory: PhantomData }
    }
}

/// An argument of a kernel.
#[derive(Clone, Copy)]
enum Argument {
    Address(u64),
    Count(usize),
    Real(f32),
}

impl From<Slice<'_>> for Argument {
    fn from(slice: Slice<'_>) -> Self {
        Argument::Address(slice.address)
    }
}

impl From<&SliceMut<'_>> for Argument {
    fn from(slice: &SliceMut<'_>) -> Self {
        Argument::Address(slice.address)
    }
}

use Argument::{Address, Count, Real};

impl Gpu {
    /// The GPU of `device`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for the CPU, [`Error::NoDevice`] without cuBLAS or NVRTC.
    pub fn new(device: &Device) -> Result<Self> {
        let name = device.name();
        let device = device.cuda_device()?.clone();
        let ordinal = name.trim_start_matches("cuda:").parse().map_err(|_| Error::Argument {
            name: "device",
            found: name.to_string(),
            expected: "cuda: and a number".into(),
        })?;
        // The same primary context as the library's.
        let context = CudaContext::new(ordinal).map_err(|e| failed("binding the device", e))?;
        let target = device.profile().target();
        let cubin = Jit::default().cubin(&request(), &target)?;
        // SAFETY: the compiler's output.
        let module = unsafe { result::module::load_data(cubin.as_ptr().cast()) }
            .map_err(|e| failed("loading kernels", e))?;
        let kernels = Kernels::load(module)?;
        // SAFETY: only tries to open the library.
        if !unsafe { cublas::is_culib_present() } {
            return Err(Error::NoDevice { reason: "the library libcublas was not found".into() });
        }
        let mut blas = std::ptr::null_mut();
        // SAFETY: writes the handle; the stream lives as long as the device, which is held.
        unsafe {
            check(cublas::cublasCreate_v2(&mut blas))?;
            check(cublas::cublasSetStream_v2(blas, device.stream().handle().cast()))?;
        }
        let partial = RefCell::new(DeviceBuffer::zeros(&device, 0, "sums over columns")?);
        Ok(Gpu { device, context, module, kernels, blas, partial })
    }

    /// Queues `kernel` with CTAs for `threads` threads, or as many as the device holds.
    ///
    /// # Safety
    /// The arguments are those of the kernel, and addresses are of as many elements as it takes.
    unsafe fn launch(
        &self,
        kernel: sys::CUfunction,
        threads: usize,
        arguments: &[Argument],
    ) -> Result<()> {
        let ctas = threads.div_ceil(BLOCK as usize);
        let ctas = ctas.min(self.device.profile().multiprocessors * CTAS) as u32;
        // SAFETY: the caller's promise.
        unsafe { self.launch_ctas(kernel, (ctas, 1), arguments) }
    }

    /// As [`Gpu::launch`] with so many CTAs.
    ///
    /// # Safety
    /// As there.
    unsafe fn launch_ctas(
        &self,
        kernel: sys::CUfunction,
        (x, y): (u32, u32),
        arguments: &[Argument],
    ) -> Result<()> {
        if x == 0 || y == 0 {
            return Ok(());
        }
        let mut words = Vec::with_capacity(arguments.len());
        for argument in arguments {
            words.push(match *argument {
                Address(address) => address,
                Real(real) => u64::from(real.to_bits()),
                Count(count) if count <= MOST => count as u64,
                Count(count) => {
                    return Err(Error::Argument {
                        name: "elements",
                        found: count.to_string(),
                        expected: format!("at most {MOST} in a step between products"),
                    });
                }
            });
        }
        // The machine is little-endian: what is shorter than a word begins where the word does.
        let mut pointers: Vec<*mut c_void> =
            words.iter().map(|w| std::ptr::from_ref(w).cast_mut().cast()).collect();
        let stream = self.device.stream().handle().cast();
        self.context.bind_to_thread().map_err(|e| failed("binding the device", e))?;
        // SAFETY: the caller's promise; buffers are freed on the same stream.
        unsafe { result::launch_kernel(kernel, (x, y, 1), (BLOCK, 1, 1), 0, stream, &mut pointers) }
            .map_err(|e| failed("launching a kernel", e))
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        // The work that uses them has to end first; errors of it have been reported.
        self.device.stream().synchronize().ok();
        // SAFETY: created once, destroyed once.
        unsafe {
            cublas::cublasDestroy_v2(self.blas);
            result::module::unload(self.module).ok();
        }
    }
}

fn failed(action: &'static str, e: impl std::fmt::Debug) -> Error {
    Error::Device { action, reason: format!("{e:?}") }
}

fn check(status: cublas::cublasStatus_t) -> Result<()> {
    if status == cublas::cublasStatus_t::CUBLAS_STATUS_SUCCESS {
        return Ok(());
    }
    // SAFETY: cuBLAS answers with a constant string.
    let reason = unsafe { CStr::from_ptr(cublas::cublasGetStatusString(status)) };
    Err(Error::Device { action: "cuBLAS", reason: reason.to_string_lossy().into_owned() })
}

/// Refuses operands of a step that do not fit one another.
fn fit(what: &'static str, expected: usize, found: usize) -> Result<()> {
    match expected == found {
        true => Ok(()),
        false => Err(Error::Length { what, expected, found }),
    }
}

/// Refuses to repeat nothing, or a part of a row, over the elements of X.
fn fit_rows(what: &'static str, x: &SliceMut<'_>, row: &Slice<'_>) -> Result<()> {
    match x.len == 0 || row.len > 0 && x.len.is_multiple_of(row.len) {
        true => Ok(()),
        false => Err(Error::Length { what, expected: x.len, found: row.len }),
    }
}

impl Algebra for Gpu {
    type Matrix = DeviceDense<f32>;
    type Vector = DeviceBuffer<f32>;
    type Labels = DeviceBuffer<u32>;
    type Pattern = DevicePattern;
    type Slice<'a> = Slice<'a>;
    type SliceMut<'a> = SliceMut<'a>;
    type Mark = Event;

    products!();

    fn pattern(&self, pattern: &Pattern) -> Result<DevicePattern> {
        DevicePattern::upload(&self.device, pattern.view())
    }

    fn matrix(&self, rows: usize, columns: usize, values: Vec<f32>) -> Result<DeviceDense<f32>> {
        DeviceDense::upload(&self.device, &DenseView::row_major(rows, columns, &values)?)
    }

    fn vector(&self, values: Vec<f32>) -> Result<DeviceBuffer<f32>> {
        DeviceBuffer::from_slice(&self.device, &values, "a vector")
    }

    fn labels(&self, labels: Vec<u32>) -> Result<DeviceBuffer<u32>> {
        DeviceBuffer::from_slice(&self.device, &labels, "labels")
    }

    fn read(&self, values: Slice<'_>) -> Result<Vec<f32>> {
        let mut to = vec![0.0; values.len];
        // SAFETY: memory of a buffer that the slice borrows; nobody else owns what is made of it.
        let from = unsafe { DeviceBuffer::borrowed(&self.device, values.address, values.len) };
        from.read(&mut to)?;
        Ok(to)
    }

    fn wait(&self) -> Result<()> {
        self.device.stream().synchronize()
    }

    fn mark(&self) -> Result<Event> {
        self.device.stream().record()
    }

    fn milliseconds(from: &Event, to: &Event) -> Result<f64> {
        Ok(f64::from(from.milliseconds_to(to)?))
    }

    fn copy(&self, from: Slice<'_>, to: SliceMut<'_>) -> Result<()> {
        fit("a copy", from.len, to.len)?;
        if to.len == 0 {
            return Ok(());
        }
        self.context.bind_to_thread().map_err(|e| failed("binding the device", e))?;
        let stream = self.device.stream().handle().cast();
        // SAFETY: both have as many elements.
        unsafe { result::memcpy_dtod_async(to.address, from.address, 4 * to.len, stream) }
            .map_err(|e| failed("copying on the device", e))
    }

    fn clear(&self, values: SliceMut<'_>) -> Result<()> {
        if values.len == 0 {
            return Ok(());
        }
        self.context.bind_to_thread().map_err(|e| failed("binding the device", e))?;
        let stream = self.device.stream().handle().cast();
        // SAFETY: so many bytes.
        unsafe { result::memset_d8_async(values.address, 0, 4 * values.len, stream) }
            .map_err(|e| failed("clearing memory", e))
    }

    fn column_sums(&self, term: Term, x: Slice<'_>, y: Slice<'_>, to: SliceMut<'_>) -> Result<()> {
        fit("Y", x.len, y.len)?;
        let columns = to.len.max(1);
        let rows = x.len / columns;
        fit("X", rows * columns, x.len)?;
        // Rows that a CTA has at once, as in the kernel.
        let lines = (BLOCK as usize / columns).max(1);
        let most = 2 * self.device.profile().multiprocessors;
        let parts = rows.div_ceil(lines).clamp(1, most);
        let mut partial = self.partial.borrow_mut();
        if partial.len() < parts * columns {
            *partial = DeviceBuffer::zeros(&self.device, most * columns, "sums over columns")?;
        }
        let (sums, tiles) = (partial.address(), columns.div_ceil(BLOCK as usize));
        let kind = match term {
            Term::First => 0,
            Term::Product => 1,
            Term::Distance => 2,
            Term::Unequal => 3,
        };
        let first = [Count(kind), x.into(), y.into(), Count(rows), Count(columns), Address(sums)];
        let second = [Address(sums), Count(parts), Count(columns), (&to).into()];
        // SAFETY: `partial` has an element for every CTA and column; X and Y have rows · columns,
        // `to` has columns.
        unsafe {
            let grid = (parts as u32, tiles as u32);
            self.launch_ctas(self.kernels.column_sums, grid, &first)?;
            self.launch_ctas(self.kernels.finish_sums, (columns as u32, 1), &second)
        }
    }

    fn ratios(&self, over: Slice<'_>, under: Slice<'_>, to: SliceMut<'_>) -> Result<()> {
        fit("dividends", to.len, over.len)?;
        fit("divisors", to.len, under.len)?;
        let arguments = [over.into(), under.into(), (&to).into(), Count(to.len)];
        // SAFETY: all have as many elements.
        unsafe { self.launch(self.kernels.ratios, to.len, &arguments) }
    }

    fn add_columns(
        &self,
        x: SliceMut<'_>,
        sign: f32,
        factors: Slice<'_>,
        y: Slice<'_>,
    ) -> Result<()> {
        fit("Y", x.len, y.len)?;
        fit_rows("factors", &x, &factors)?;
        let (len, columns) = (Count(x.len), Count(factors.len));
        let arguments = [(&x).into(), Real(sign), factors.into(), y.into(), len, columns];
        // SAFETY: X and Y have as many elements, and the kernel takes factors modulo their number.
        unsafe { self.launch(self.kernels.add_columns, x.len, &arguments) }
    }

    fn scale_columns(&self, x: SliceMut<'_>, factors: Slice<'_>, y: Slice<'_>) -> Result<()> {
        fit("Y", x.len, y.len)?;
        fit_rows("factors", &x, &factors)?;
        let (len, columns) = (Count(x.len), Count(factors.len));
        let arguments = [(&x).into(), factors.into(), y.into(), len, columns];
        // SAFETY: as above.
        unsafe { self.launch(self.kernels.scale_columns, x.len, &arguments) }
    }

    fn add_number(
        &self,
        x: SliceMut<'_>,
        constant: f32,
        factor: f32,
        number: Slice<'_>,
    ) -> Result<()> {
        fit("a number", 1, number.len)?;
        let arguments = [(&x).into(), Real(constant), Real(factor), number.into(), Count(x.len)];
        // SAFETY: one number.
        unsafe { self.launch(self.kernels.add_number, x.len, &arguments) }
    }

    fn multiply(
        &self,
        (x, transpose_x): (&DeviceDense<f32>, bool),
        (y, transpose_y): (&DeviceDense<f32>, bool),
        beta: f32,
        to: &mut DeviceDense<f32>,
    ) -> Result<()> {
        let shape = |m: &DeviceDense<f32>, transpose| match transpose {
            false => (m.nrows(), m.ncols()),
            true => (m.ncols(), m.nrows()),
        };
        let ((rows, depth), (inner, columns)) = (shape(x, transpose_x), shape(y, transpose_y));
        fit("the inner dimension", depth, inner)?;
        fit("rows of the product", rows, to.nrows())?;
        fit("columns of the product", columns, to.ncols())?;
        let operation = |transpose| match transpose {
            false => cublas::cublasOperation_t::CUBLAS_OP_N,
            true => cublas::cublasOperation_t::CUBLAS_OP_T,
        };
        let pointer = |m: &DeviceDense<f32>| m.data().address() as *mut f32;
        let ld = |m: &DeviceDense<f32>| m.leading_dimension().max(1) as i64;
        self.context.bind_to_thread().map_err(|e| failed("binding the device", e))?;
        // cuBLAS counts by columns: what is row-major to us is its transpose, so Y comes first.
        // SAFETY: the shapes fit, and the matrices are alive.
        check(unsafe {
            cublas::cublasSgemm_v2_64(
                self.blas,
                operation(transpose_y),
                operation(transpose_x),
                columns as i64,
                rows as i64,
                depth as i64,
                &1.0,
                pointer(y),
                ld(y),
                pointer(x),
                ld(x),
                &beta,
                pointer(to),
                ld(to),
            )
        })
    }

    fn add_bias(&self, x: SliceMut<'_>, bias: Slice<'_>, relu: bool) -> Result<()> {
        fit_rows("bias", &x, &bias)?;
        let (len, columns) = (Count(x.len), Count(bias.len));
        let arguments = [(&x).into(), bias.into(), Count(usize::from(relu)), len, columns];
        // SAFETY: the kernel takes elements of the bias modulo their number.
        unsafe { self.launch(self.kernels.add_bias, x.len, &arguments) }
    }

    fn relu_gradient(&self, g: SliceMut<'_>, x: Slice<'_>) -> Result<()> {
        fit("X", g.len, x.len)?;
        let arguments = [(&g).into(), x.into(), Count(g.len)];
        // SAFETY: both have as many elements.
        unsafe { self.launch(self.kernels.relu_gradient, g.len, &arguments) }
    }

    fn cross_entropy(
        &self,
        z: Slice<'_>,
        labels: &DeviceBuffer<u32>,
        g: SliceMut<'_>,
        losses: SliceMut<'_>,
    ) -> Result<()> {
        let rows = labels.len();
        let classes = z.len / rows.max(1);
        fit("Z", rows * classes, z.len)?;
        fit("the gradient of Z", z.len, g.len)?;
        fit("losses", rows, losses.len)?;
        let (to, labels) = ((&losses).into(), Address(labels.address()));
        let arguments = [z.into(), labels, (&g).into(), to, Count(rows), Count(classes)];
        // SAFETY: the lengths are right; labels are below the number of classes, as
        // `training::Data` makes them.
        unsafe { self.launch(self.kernels.cross_entropy, 32 * rows, &arguments) }
    }

    fn adam(&self, parameter: &mut Parameter<Self>, step: usize) -> Result<()> {
        let (rate, root) = corrected(step);
        let Parameter { value, gradient, first, second, .. } = parameter;
        let (value, first, second) = (value.flat_mut(), first.flat_mut(), second.flat_mut());
        let len = value.len;
        for found in [gradient.flat().len, first.len, second.len] {
            fit("a moment", len, found)?;
        }
        let arguments = [
            (&value).into(),
            gradient.flat().into(),
            (&first).into(),
            (&second).into(),
            Real(rate),
            Real(root),
            Real(DECAY.0),
            Real(DECAY.1),
            Real(EPSILON),
            Count(len),
        ];
        // SAFETY: all have as many elements.
        unsafe { self.launch(self.kernels.adam, len, &arguments) }
    }

    fn leaky_relu(&self, x: Slice<'_>, to: SliceMut<'_>) -> Result<()> {
        fit("X", to.len, x.len)?;
        let arguments = [x.into(), (&to).into(), Real(SLOPE), Count(to.len)];
        // SAFETY: both have as many elements.
        unsafe { self.launch(self.kernels.leaky_relu, to.len, &arguments) }
    }

    fn leaky_relu_gradient(&self, g: SliceMut<'_>, x: Slice<'_>) -> Result<()> {
        fit("X", g.len, x.len)?;
        let arguments = [(&g).into(), x.into(), Real(SLOPE), Count(g.len)];
        // SAFETY: as above.
        unsafe { self.launch(self.kernels.leaky_relu_gradient, g.len, &arguments) }
    }

    fn split_scores(&self, scores: Slice<'_>, x: SliceMut<'_>, y: SliceMut<'_>) -> Result<()> {
        let width = width_of_pairs(scores.len, x.len);
        fit("X", scores.len / 2 * width, x.len)?;
        fit("Y", x.len, y.len)?;
        let arguments = [scores.into(), (&x).into(), (&y).into(), Count(width), Count(x.len)];
        // SAFETY: X and Y have a row of as many elements for every pair of scores.
        unsafe { self.launch(self.kernels.split_scores, x.len, &arguments) }
    }

    fn join_scores(&self, of_x: Slice<'_>, of_y: Slice<'_>, to: SliceMut<'_>) -> Result<()> {
        let width = width_of_pairs(to.len, of_x.len);
        fit("the gradient of X", to.len / 2 * width, of_x.len)?;
        fit("the gradient of Y", of_x.len, of_y.len)?;
        let arguments = [of_x.into(), of_y.into(), (&to).into(), Count(width), Count(to.len)];
        // SAFETY: as above.
        unsafe { self.launch(self.kernels.join_scores, to.len, &arguments) }
    }
}

#[cfg(test)]
mod nvrtc {
    use gustav_cuda::jit::{Compiler, Nvrtc};

    #[test]
    #[ignore = "needs NVRTC"]
    fn the_steps_compile() {
        for target in ["sm_80", "sm_90", "sm_100"] {
            let cubin = Nvrtc.compile(&super::request(), target).expect("a cubin");
            for name in super::NAMES {
                let found = cubin.windows(name.len()).any(|w| w == name.as_bytes());
                assert!(found, "{name} for {target}");
            }
        }
    }
}
