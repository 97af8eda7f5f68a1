//! `dense-naive`: the loop over dense operands with one thread per element of C, as Chen et al.
//! (2025, §4.2.1) describe it. See `kernels/papers/spgemm/dense_naive.cu`.

use std::ops::Range;

use gustav_core::{DType, Problem, Result};
use gustav_plan::Algorithm;

use super::dense_rows::{DenseRows, ThroughDense};
use crate::device::{Device, DeviceBuffer, Stream};
use crate::jit::Request;
use crate::launch::Kernel;
use crate::papers::spgemm as papers;
use crate::product::sparse_operands::{Operands, Sparse};
use crate::product::{check_config, unsupported};

/// What the loop does with positions of A and B that are not stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Zeros {
    /// It multiplies them, as the paper does. Operands have to be declared finite
    /// ([`Problem::finite`]), and what adds up to zero is no entry of C.
    #[default]
    Multiplied,
    /// It tests both factors and leaves them out: C is that of a sparse product. Not in the paper.
    Tested,
}

/// The tile of C that a CTA computes, and the positions that are not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Config {
    /// Columns, one thread each.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// What is done with positions that are not stored.
    pub zeros: Zeros,
}

impl Default for Config {
    fn default() -> Self {
        Config { width: 32, height: 8, zeros: Zeros::Multiplied }
    }
}

impl Config {
    fn check(&self) -> Result<()> {
        let threads = self.width.saturating_mul(self.height);
        let fits = threads.is_multiple_of(32) && (32..=1024).contains(&threads);
        check_config("config of dense-naive", self, fits, "a multiple of 32 threads up to 1024")
    }
}

// Most multiplications: more would take too long.
const MOST: u128 = 1 << 42;

/// Supports what the paper defines, up to a size that finishes in reasonable time.
pub(crate) fn supports(problem: &Problem) -> Result<()> {
    papers::supports(problem, Algorithm::DenseNaive)?;
    let work = problem.rows as u128 * problem.cols as u128;
    let work = work.saturating_mul(problem.columns as u128);
    if work <= MOST {
        return Ok(());
    }
    let reason = format!("it multiplies {work} times, zeros included; more than {MOST}");
    let backend = "dense-naive on CUDA";
    Err(unsupported(problem, backend, &reason, Algorithm::SharedRow.name()))
}

/// With operands that nobody declared finite, the variant alone.
pub(crate) fn configs(problem: &Problem) -> Vec<Config> {
    let tiles =
        |zeros| [(32, 8), (16, 16)].map(|(width, height)| Config { width, height, zeros }).to_vec();
    match problem.finite {
        true => [tiles(Zeros::Multiplied), tiles(Zeros::Tested)].concat(),
        false => tiles(Zeros::Tested),
    }
}

/// The source with its parameters.
pub(crate) fn request(dtype: DType, config: Config) -> Request {
    request!("papers/spgemm/dense_naive.cu")
        .with_block::<Spread>()
        .with_block::<Arguments>()
        .with("VALUE", dtype)
        .with("WIDTH", config.width)
        .with("HEIGHT", config.height)
        .with("TESTED", config.zeros == Zeros::Tested)
}

/// With a result in CSR.
pub(crate) type Prepared = ThroughDense<DenseNaive>;

/// The compiled kernels, and memory for dense operands.
pub(crate) struct DenseNaive {
    config: Config,
    spread: Kernel<Spread>,
    multiply: Kernel<Arguments>,
    a: DeviceBuffer<u8>,
    b: DeviceBuffer<u8>,
    value_bytes: u64,
}

parameter_block! {
    struct Spread {
        offsets: *const u32,
        indices: *const u32,
        values: *const Value,
        dense: *mut Value,
        rows: u64,
        ld: u64,
    }
}

parameter_block! {
    struct Arguments {
        a: *const Value,
        b: *const Value,
        c: *mut Value,
        rows: u64,
        inner: u64,
        columns: u64,
        ldc: u64,
        alpha: u64,
    }
}

impl DenseRows for DenseNaive {
    type Config = Config;

    fn new(device: &Device, o: &Operands, problem: &Problem, config: Config) -> Result<Self> {
        config.check()?;
        if config.zeros == Zeros::Multiplied && !problem.finite {
            let reason = "it multiplies zeros that are not stored; A and B must be declared finite";
            let backend = "dense-naive on CUDA, as published,";
            return Err(unsupported(problem, backend, reason, "its variant Zeros::Tested"));
        }
        let module = device.module(&request(problem.dtype, config))?;
        let bytes = |m: &Sparse| m.rows.saturating_mul(m.cols).saturating_mul(o.dtype.bytes());
        Ok(DenseNaive {
            config,
            spread: module.kernel(c"spread")?,
            multiply: module.kernel(c"multiply")?,
            a: DeviceBuffer::uninit(device, bytes(&o.a), "dense A on the device")?,
            b: DeviceBuffer::uninit(device, bytes(&o.b), "dense B on the device")?,
            value_bytes: o.dtype.bytes() as u64,
        })
    }

    fn bytes(&self) -> usize {
        self.a.bytes() + self.b.bytes()
    }

    fn refills(&self) -> bool {
        self.config.zeros == Zeros::Tested
    }

    unsafe fn begin(&mut self, stream: &Stream, o: &Operands) -> Result<()> {
        let threads = self.config.width * self.config.height;
        for (m, dense) in [(&o.a, &self.a), (&o.b, &self.b)] {
            dense.used_on(stream);
            let (rows, ld) = (m.rows as u64, m.cols as u64);
            let (offsets, indices, values) = (m.offsets, m.indices, m.values);
            let arguments = Spread { offsets, indices, values, dense: dense.address(), rows, ld };
            let grid = (rows.div_ceil(u64::from(threads / 32)), 1);
            // SAFETY: the operands are the caller's promise,
            // and the dense matrix is large enough.
            unsafe { self.spread.launch(stream, grid, threads, &arguments)? };
        }
        Ok(())
    }

    unsafe fn rows(
        &mut self,
        stream: &Stream,
        o: &Operands,
        rows: Range<usize>,
        c: u64,
        ldc: usize,
    ) -> Result<()> {
        let arguments = Arguments {
            a: self.a.address() + (rows.start * o.a.cols) as u64 * self.value_bytes,
            b: self.b.address(),
            c,
            rows: rows.len() as u64,
            inner: o.a.cols as u64,
            columns: o.b.cols as u64,
            ldc: ldc as u64,
            alpha: o.alpha,
        };
        let Config { width, height, .. } = self.config;
        let grid = (
            arguments.columns.div_ceil(u64::from(width)),
            arguments.rows.div_ceil(u64::from(height)),
        );
        // SAFETY: c is the caller's promise.
        unsafe { self.multiply.launch(stream, grid, width * height, &arguments) }
    }
}
