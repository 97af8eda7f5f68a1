//! `gustav spgemm`: C = α·op(A)·B, all sparse.

use gustav::io::WriteOptions;
use gustav::{
    Algorithm, Chooser, CpuScalar, Csr, Device, Error, Index, Operation, PatternRef, Problem,
    Scalar, SpgemmCall, SpgemmPlan, SpgemmRequest, intermediate_products,
};
use gustav_testkit::oracle;

use crate::args::{AlgorithmArg, Printing};
use crate::cuda::{Pair, Run, in_tiles};
use crate::failure::{Failure, Result};
use crate::measure;
use crate::mpi;
use crate::output::{self, Content};
use crate::product::{self, Options, Product, Sparse, Trial};
use crate::source::Source;
use crate::types::{factor, with_types};

/// Multiply two sparse matrices
///
/// Without B: A·A, or A·Aᵀ when A is not square; with --transpose Aᵀ·A.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The sparse matrix A
    #[arg(value_name = "A")]
    file: Source,
    /// The sparse matrix B
    #[arg(value_name = "B")]
    right: Option<Source>,
    /// Compute only the entries of C at positions where this matrix has one
    #[arg(long, value_name = "FILE")]
    mask: Option<Source>,
    /// Compute C on a GPU in tiles, in at most this many bytes of its memory, such as 500M
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    memory: Option<usize>,
    /// Leave the columns of the rows of C unsorted, which can be faster
    #[arg(long)]
    unsorted: bool,
    #[command(flatten)]
    options: Options,
}

/// Multiplies and prints the result.
pub fn run(args: &Args) -> Result {
    if args.options.ranked.mpi {
        let refused = match () {
            () if args.mask.is_some() => Some("mask"),
            () if args.memory.is_some() => Some("memory"),
            () if args.options.choice.transpose => Some("transpose"),
            () => None,
        };
        return mpi::spgemm(&mpi::Spgemm {
            file: &args.file,
            right: args.right.as_ref(),
            refused,
            sorted: !args.unsorted,
            options: &args.options,
        });
    }
    args.options.running.check(Content::Sparse, args.options.types.dtype)?;
    if args.mask.is_some() && args.options.choice.algorithm == AlgorithmArg::All {
        return Err(Failure::Request(
            "algorithm: all is not valid with --mask, which one algorithm computes; leave it out"
                .into(),
        ));
    }
    let device = args.options.choice.device()?;
    if args.memory.is_some() {
        let whole = matches!(device.chooser(), Chooser::Auto | Chooser::Named(Algorithm::Tiled));
        let words = match (device.is_cuda(), &args.mask) {
            (false, _) => "has no meaning on the CPU, use --device cuda",
            (true, Some(_)) => "is not valid with --mask, whose product is not computed in tiles",
            (true, None) if !whole => "computes C in tiles, use --algorithm auto or tiled",
            (true, None) => "",
        };
        if !words.is_empty() {
            return Err(Failure::Request(format!("memory: it {words}")));
        }
    }
    with_types!(&args.options.types, |T, I, O| {
        let operands = device.threads().run(|| Operands::<T, I, O>::read(args))?;
        operands.multiply(args, &device)
    })
}

/// A number of bytes, with an optional K, M or G (powers of 1024).
fn bytes(text: &str) -> std::result::Result<usize, String> {
    let (digits, power) = match text.chars().last() {
        Some('K') => (&text[..text.len() - 1], 1),
        Some('M') => (&text[..text.len() - 1], 2),
        Some('G') => (&text[..text.len() - 1], 3),
        _ => (text, 0),
    };
    let count = digits.parse::<usize>().ok().and_then(|n| n.checked_mul(1024usize.pow(power)));
    count.ok_or_else(|| "expected a number of bytes, such as 65536, 500M or 2G".into())
}

/// What is said where A is not square and B is not named.
pub const NOT_SQUARE: &str = "A is not square; multiplying A·Aᵀ";

/// Whether B has as many rows as `op`, A or its transpose, has columns.
///
/// # Errors
/// [`Error::Shape`].
pub fn check_inner(op: &str, columns: usize, (rows, cols): (usize, usize)) -> Result<()> {
    if rows == columns {
        return Ok(());
    }
    Err(Error::Shape {
        op: "spgemm",
        expected: format!("B with {columns} rows, as many as {op} has columns"),
        found: format!("{rows} x {cols}"),
    }
    .into())
}

/// A, and B if it is not A.
pub struct Operands<T: Scalar, I: Index, O: Index> {
    /// A.
    pub a: Csr<T, I, O>,
    b: Option<Csr<T, I, O>>,
    mask: Option<Csr<T, I, O>>,
    /// The product as text.
    pub formula: String,
}

impl<T: Scalar, I: Index, O: Index> Operands<T, I, O> {
    fn read(args: &Args) -> Result<Self> {
        let seed = args.options.running.seed;
        let right = args.right.as_ref();
        let operands = Self::choose(
            &args.file,
            right,
            args.options.choice.transpose,
            seed,
            args.options.printing,
        )?;
        let Some(source) = &args.mask else { return Ok(operands) };
        let mask = Some(source.read(seed, args.options.printing)?);
        Ok(Operands { mask, formula: operands.formula.replacen('C', "C⟨M⟩", 1), ..operands })
    }

    /// Reads A and B, or B's default.
    ///
    /// # Errors
    /// For files that cannot be read, and shapes that do not fit.
    pub fn choose(
        left: &Source,
        right: Option<&Source>,
        transpose: bool,
        seed: u64,
        printing: Printing,
    ) -> Result<Self> {
        let a = left.read::<T, I, O>(seed, printing)?;
        let op = if transpose { "Aᵀ" } else { "A" };
        let square = a.nrows() == a.ncols();
        let (b, name) = match right {
            Some(source) => (Some(source.read(seed, printing)?), "B"),
            None if square || transpose => (None, "A"),
            None => (Some(a.view().transpose()?), "Aᵀ"),
        };
        if right.is_none() && !square {
            let words = if transpose { "A is not square; multiplying Aᵀ·A" } else { NOT_SQUARE };
            output::note(printing, words);
        }
        let operands = Operands { a, b, mask: None, formula: format!("C = {op}·{name}") };
        let inner = if transpose { operands.a.nrows() } else { operands.a.ncols() };
        check_inner(op, inner, (operands.b().nrows(), operands.b().ncols()))?;
        Ok(operands)
    }

    /// B.
    pub fn b(&self) -> &Csr<T, I, O> {
        self.b.as_ref().unwrap_or(&self.a)
    }
}

impl<T: CpuScalar, I: Index, O: Index> Operands<T, I, O> {
    /// The request for all of C, or for the entries of the mask.
    pub fn request(&self, problem: &Problem) -> SpgemmRequest<PatternRef<'_, I, O>> {
        let pattern = |m: &Csr<T, I, O>| PatternRef::from(m.pattern());
        let (a, b, mask) = (pattern(&self.a), pattern(self.b()), self.mask.as_ref().map(pattern));
        SpgemmRequest { a, b, mask, problem: problem.clone() }
    }

    fn multiply(&self, args: &Args, device: &Device) -> Result {
        let (a, b) = (&self.a, self.b());
        let Options { choice, running, .. } = &args.options;
        let problem = choice
            .refine(Problem::spgemm(&a.view(), &b.view()))
            .sorted(!args.unsorted)
            .calls(running.calls());
        let alpha = factor("alpha", running.alpha.as_ref(), problem.semiring.one())?;

        let mut resident = self.resident(device, args)?;
        let mut product: Option<(Csr<T, I, O>, u64)> = None;
        let mut trial = |device: &Device| -> Result<Trial> {
            let mut run = if device.is_cuda() {
                let (run, c) = self.on_gpu(&mut resident, device, &problem, alpha, args)?;
                let (a, b) = (a.pattern().view(), b.pattern().view());
                let products = intermediate_products(&a, &b, problem.transpose_a);
                product = Some((c, products));
                Trial::of(run)
            } else {
                let plan = || Ok(self.request(&problem).plan::<T, _>(device)?);
                let (mut plan, plan_ms): (SpgemmPlan<'_, T, I, O>, _) = measure::once(plan)?;
                let timing = measure::repeat(running.repeat, &mut || {
                    // Free the previous product first.
                    product = None;
                    let call = SpgemmCall { alpha: Some(alpha), add: None, reuse: None };
                    let run = || Ok(plan.execute(a, b, call)?);
                    let (c, ms) = measure::once(run)?;
                    product = Some((c, plan.products()));
                    Ok(ms)
                })?;
                Trial::new(plan.explain(), plan_ms, timing)
            };
            run.verdict = match &product {
                Some((c, _)) if running.verify => {
                    let _spinner = output::spinner(args.options.printing, "verifying");
                    let transposed =
                        if choice.transpose { Some(a.view().transpose()?) } else { None };
                    let reference = oracle::Spgemm {
                        semiring: problem.semiring,
                        alpha: Some(alpha),
                        sorted: problem.sorted,
                        mask: self.mask.as_ref().map(Csr::view),
                        ..oracle::Spgemm::new(transposed.as_ref().unwrap_or(a).view(), b.view())
                    };
                    Some(device.threads().run(|| reference.verify(c.view()))?)
                }
                _ => None,
            };
            Ok(run)
        };
        let (best, attempts) = product::attempt(choice, device, Operation::Spgemm, &mut trial)?;
        let Some((c, products)) = product else {
            return Err(Failure::Request("no product was computed".into()));
        };
        if let Some(path) = &running.output {
            gustav::io::write_csr(path, c.view(), &WriteOptions::default())?;
        }
        let (sample, norm) = product::look(c.values().iter().copied());
        let summary = Product {
            source: &args.file,
            types: &args.options.types,
            device,
            best: &best,
            attempts: &attempts,
            multiplications: self.mask.is_none().then_some(products as f64),
            sparse: Some(Sparse {
                mask: args.mask.as_ref().map(ToString::to_string),
                products,
                nnz_c: c.nnz(),
            }),
            limits: None,
            formula: self.formula.clone(),
            sample,
            norm,
        };
        summary.print(args.options.printing)
    }

    /// The operands in the memory of a GPU, unless they are multiplied in tiles.
    fn resident(&self, device: &Device, args: &Args) -> Result<Option<Pair<T, I, O>>> {
        let named = device.chooser() == Chooser::Named(Algorithm::Tiled) && self.mask.is_none();
        if args.memory.is_some() || named || !device.is_cuda() {
            return Ok(None);
        }
        match Pair::new(device, &self.a, self.b(), self.mask.as_ref()) {
            Err(Failure::Library(Error::OutOfMemory { what, .. })) if self.may_tile(device) => {
                let why = format!("not enough memory on {device} for {what}: in tiles");
                output::note(args.options.printing, &why);
                Ok(None)
            }
            other => other.map(Some),
        }
    }

    /// Whether a product that does not fit on `device` may be computed in tiles.
    fn may_tile(&self, device: &Device) -> bool {
        device.chooser() == Chooser::Auto && self.mask.is_none()
    }

    /// The product on a GPU: of resident operands, or in tiles if requested or if memory does not
    /// suffice. `resident` is freed for tiles, which need its memory.
    fn on_gpu(
        &self,
        resident: &mut Option<Pair<T, I, O>>,
        device: &Device,
        problem: &Problem,
        alpha: T::Accum,
        args: &Args,
    ) -> Result<(Run, Csr<T, I, O>)> {
        let repeat = args.options.running.repeat;
        if let Some(pair) = resident {
            match pair.run(device, problem, alpha, repeat, args.options.printing) {
                Err(Failure::Library(Error::OutOfMemory { what, .. })) if self.may_tile(device) => {
                    let why = format!("not enough memory on {device} for {what}: in tiles");
                    output::note(args.options.printing, &why);
                    *resident = None;
                }
                other => return other,
            }
        }
        let limits = (args.memory, repeat);
        in_tiles(device, (&self.a, alpha, self.b()), problem, limits, args.options.printing)
    }
}
