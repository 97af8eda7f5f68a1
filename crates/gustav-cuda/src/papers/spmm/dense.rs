//! `dense`: A as a dense matrix with its zeros, and a product by cuBLAS, for matrices that are
//! dense enough (Yang, Buluç, Owens 2018, figure 7). See `kernels/papers/spmm/dense.cu`.

use gustav_core::{DType, Error, IndexType, Operation, Problem, Result, Semiring};

use crate::device::{Device, DeviceBuffer, Stream};
use crate::jit::Request;
use crate::jit::source::bits;
use crate::launch::Kernel;
use crate::product::method::Method;
use crate::product::operands::Operands;
use crate::product::unsupported;
use crate::schedule::pattern::Pattern;
use crate::vendor::cublas::Handle;

const BLOCK: u32 = 256;

/// `dense` has no parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Config;

/// Supports floating point and plus-times over finite operands.
pub(crate) fn supports(problem: &Problem) -> Result<()> {
    takes(problem, "dense (cuBLAS)", &[DType::F32, DType::F64, DType::F16, DType::Bf16])
}

/// Common checks of algorithms that multiply zeros that are not stored: finite operands of one of
/// `types`. `segmented` supports the rest.
pub(crate) fn takes(problem: &Problem, backend: &str, types: &[DType]) -> Result<()> {
    let refuse = |reason: &str| Err(unsupported(problem, backend, reason, "segmented"));
    if problem.operation != Operation::Spmm {
        let reason = "it multiplies by a dense matrix";
        return Err(unsupported(problem, backend, reason, "Problem::spmm"));
    }
    if !types.contains(&problem.dtype) {
        return refuse(&format!("it has no kernel for {}", problem.dtype));
    }
    if problem.semiring != Semiring::PlusTimes {
        return refuse("it computes plus-times");
    }
    if !problem.finite {
        let reason = "it multiplies zeros that are not stored";
        let nearest = "operands declared finite (Problem::finite, --finite), or segmented";
        return Err(unsupported(problem, backend, reason, nearest));
    }
    Ok(())
}

pub(crate) const ANY_LAYOUT: bool = false;

/// The only configuration.
pub(crate) fn choose(_: &Pattern<'_>, _: &Problem) -> Result<(Config, String)> {
    Ok((Config, "named by the caller".into()))
}

pub(crate) fn configs(_: &Problem) -> Vec<Config> {
    vec![Config]
}

/// The source with its parameters.
pub(crate) fn request(dtype: DType, index: IndexType, offset: IndexType, repeats: bool) -> Request {
    request!("papers/spmm/dense.cu")
        .with_block::<Arguments>()
        .with_block::<Finish>()
        .with("VALUE", dtype)
        .with("INDEX", index)
        .with("OFFSET", offset)
        .with("BLOCK", BLOCK)
        .with("REPEATS", repeats)
}

/// Memory for A with its zeros, and cuBLAS's handle.
pub(crate) struct Prepared {
    matrix: DeviceBuffer<u8>,
    fill: Kernel<Arguments>,
    /// For 16-bit values: sums in f32, and the kernel that computes C from them.
    sums: Option<(DeviceBuffer<f32>, Kernel<Finish>)>,
    /// Threads of a row.
    lanes: u64,
    handle: Handle,
    tf32: bool,
}

parameter_block! {
    struct Arguments {
        offsets: *const Offset,
        indices: *const Index,
        values: *const Value,
        out: *mut void,
        found: *mut u32,
        rows: u64,
        inner: u64,
    }
}

parameter_block! {
    struct Finish {
        /// Of rows x columns.
        sums: *const f32,
        c: *mut Value,
        rows: u64,
        columns: u64,
        ldc: u64,
        alpha: u64,
        beta: u64,
    }
}

impl Prepared {
    /// Allocates the memory, and checks whether rows repeat columns.
    pub(crate) fn new(p: &Pattern<'_>, problem: &Problem, _config: Config) -> Result<Self> {
        let (device, rows, inner) = (p.device(), problem.output_rows(), problem.inner());
        let stream = device.stream();
        // Rounded up to whole words, for the bits of the check.
        let bytes = rows.saturating_mul(inner).saturating_mul(problem.dtype.bytes());
        let padded = bytes.checked_next_multiple_of(8).unwrap_or(usize::MAX);
        let mut matrix = DeviceBuffer::<u8>::uninit(device, padded, "A with its zeros")?;
        let mut found = DeviceBuffer::<u32>::uninit(device, 1, "repeated columns")?;
        matrix.fill(0, stream)?;
        found.fill(0, stream)?;
        let compiled =
            |repeats| device.module(&request(problem.dtype, p.index_type, p.offset_type, repeats));
        let arguments = Arguments {
            offsets: p.offsets,
            indices: p.indices,
            values: 0,
            out: matrix.address(),
            found: found.address(),
            rows: rows as u64,
            inner: inner as u64,
        };
        let search = compiled(false)?.kernel(c"dense_repeats")?;
        // SAFETY: there is a bit for every position of A.
        unsafe { search.launch(stream, grid(rows as u64, 32), BLOCK, &arguments)? };
        let mut repeats = [0];
        found.read(&mut repeats)?;
        let repeats = repeats[0] != 0;
        if repeats && problem.dtype.bytes() == 2 {
            let reason = "columns repeat within a row, and sums of 16 bits would lose digits";
            return Err(unsupported(problem, "dense (cuBLAS)", reason, "segmented"));
        }
        let module = compiled(repeats)?;
        let sums = (problem.dtype.bytes() == 2)
            .then(|| {
                let count = rows.saturating_mul(problem.columns);
                let sums = DeviceBuffer::uninit(device, count, "sums of a dense product")?;
                Ok::<_, Error>((sums, module.kernel(c"dense_finish")?))
            })
            .transpose()?;
        Ok(Prepared {
            matrix,
            fill: module.kernel(c"dense_fill")?,
            sums,
            lanes: if repeats { 1 } else { 32 },
            handle: Handle::new(device)?,
            tf32: problem.tf32,
        })
    }
}

fn grid(rows: u64, lanes: u64) -> (u64, u64) {
    (rows.div_ceil(u64::from(BLOCK) / lanes), 1)
}

impl Method for Prepared {
    fn bytes(&self) -> usize {
        let sums = self.sums.as_ref().map_or(0, |(sums, _)| sums.bytes());
        self.matrix.bytes() + sums + self.handle.bytes()
    }

    fn converts(&self) -> bool {
        true
    }

    unsafe fn convert(&mut self, stream: &Stream, o: &Operands) -> Result<()> {
        self.matrix.fill(0, stream)?;
        let arguments = Arguments {
            offsets: o.offsets,
            indices: o.indices,
            values: o.values,
            out: self.matrix.address(),
            found: 0,
            rows: o.rows as u64,
            inner: o.inner as u64,
        };
        // SAFETY: there is memory for every element of A.
        unsafe { self.fill.launch(stream, grid(arguments.rows, self.lanes), BLOCK, &arguments) }
    }

    unsafe fn launch(&mut self, device: &Device, stream: &Stream, o: &Operands) -> Result<()> {
        let a = self.matrix.address();
        let Some((sums, finish)) = self.sums.as_ref().filter(|_| o.dtype_c.bytes() == 2) else {
            // SAFETY: A with its zeros is packed; the other operands are the caller's promise.
            return unsafe { self.handle.multiply(device, stream, a, o, self.tf32) };
        };
        sums.used_on(stream);
        let bare = Operands {
            c: sums.address(),
            ldc: o.columns,
            dtype_c: DType::F32,
            alpha: bits(1f32),
            beta: bits(0f32),
            ..*o
        };
        let arguments = Finish {
            sums: sums.address(),
            c: o.c,
            rows: o.rows as u64,
            columns: o.columns as u64,
            ldc: o.ldc as u64,
            alpha: o.alpha,
            beta: o.beta,
        };
        let grid = ((arguments.rows * arguments.columns).div_ceil(u64::from(BLOCK)), 1);
        // SAFETY: as above; there is memory for every sum.
        unsafe {
            self.handle.multiply(device, stream, a, &bare, self.tf32)?;
            finish.launch(stream, grid, BLOCK, &arguments)
        }
    }
}
