//! Options that several verbs share.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Command};
use gustav::{
    Algorithm, Chooser, DType, Device, IndexType, Layout, Operation, Order, Problem, Reduce,
    Semiring,
};

use crate::failure::{Failure, Result};
pub use crate::output::Printing;
use crate::output::{self, Content};
use crate::types::Factor;

/// A parser of the names of `all`, which help and completions list.
pub fn named<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    name: fn(&T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(all.iter().map(name)).try_map(move |s| {
        all.iter().copied().find(|v| name(v) == s).ok_or_else(|| format!("{s} is not known"))
    })
}

fn dtypes() -> impl TypedValueParser<Value = DType> {
    const ALL: &[DType] =
        &[DType::F32, DType::F64, DType::F16, DType::Bf16, DType::I32, DType::I64];
    named(ALL, |d| d.name())
}

/// Parses the widest types, `f64` and `i64`.
pub fn wide_dtypes() -> impl TypedValueParser<Value = DType> {
    named(&[DType::F64, DType::I64], |d| d.name())
}

/// Parses `u32` or `u64`.
pub fn indices() -> impl TypedValueParser<Value = IndexType> {
    named(&[IndexType::U32, IndexType::U64], |i| match i {
        IndexType::U32 => "u32",
        IndexType::U64 => "u64",
    })
}

/// Parses the name of a product.
pub fn operations() -> impl TypedValueParser<Value = Operation> {
    const ALL: &[Operation] =
        &[Operation::Spmm, Operation::Spmv, Operation::Spgemm, Operation::Sddmm];
    named(ALL, |o| o.name())
}

fn semirings() -> impl TypedValueParser<Value = Semiring> {
    named(&Semiring::ALL, |s| s.name())
}

fn reductions() -> impl TypedValueParser<Value = Reduce> {
    named(&Reduce::ALL, |r| r.name())
}

fn layouts() -> impl TypedValueParser<Value = Layout> {
    named(&[Layout::RowMajor, Layout::ColumnMajor], |l| l.name())
}

/// The value of `--algorithm`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlgorithmArg {
    /// The default rules choose.
    Auto,
    /// Every algorithm, one after another.
    All,
    /// This one.
    Named(Algorithm),
}

/// Parses `auto`, `all` or the name of an algorithm; help lists those of `operation`, or of all
/// operations.
pub fn algorithms(operation: Option<Operation>) -> impl TypedValueParser<Value = AlgorithmArg> {
    let listed = move |a: &Algorithm| operation.is_none_or(|o| a.operations().contains(&o));
    let named = Algorithm::ALL.iter().map(move |a| PossibleValue::new(a.name()).hide(!listed(a)));
    let names = ["auto", "all"].into_iter().map(PossibleValue::new).chain(named);
    PossibleValuesParser::new(names).try_map(|s| match s.as_str() {
        "auto" => Ok(AlgorithmArg::Auto),
        "all" => Ok(AlgorithmArg::All),
        s => s.parse().map(AlgorithmArg::Named),
    })
}

/// `command` with the options of `operation` only.
pub fn of_operation(command: Command, operation: Operation) -> Command {
    let command = command.mut_arg("algorithm", |a| a.value_parser(algorithms(Some(operation))));
    let without: &[&str] = match operation {
        Operation::Spmm => &[],
        Operation::Softmax | Operation::Attention => &[],
        Operation::Spmv | Operation::Spgemm => &["order", "finite", "tf32", "reduce"],
        Operation::Sddmm => {
            &["order", "finite", "tf32", "semiring", "transpose", "deterministic", "reduce"]
        }
    };
    without.iter().fold(command, |c, name| c.mut_arg(name, |a| a.hide(true)))
}

/// Parses the name of a row order.
pub fn orders() -> impl TypedValueParser<Value = Order> {
    named(Order::ALL, |o| o.name())
}

fn choosers() -> impl TypedValueParser<Value = Chooser> {
    PossibleValuesParser::new(["auto", "mean-row-length", "autotune", "predictor"])
        .try_map(|s| s.parse::<Chooser>())
}

/// The types in which a matrix is read.
#[derive(Args, Clone, Copy, Debug)]
pub struct Types {
    /// Type of the values
    #[arg(long, value_name = "TYPE", default_value = "f32", value_parser = dtypes())]
    pub dtype: DType,
    /// Type of column indices and row offsets
    #[arg(long, value_name = "TYPE", default_value = "u32", value_parser = indices())]
    pub index: IndexType,
}

/// The types in which a matrix is converted, if given.
#[derive(Args, Clone, Copy, Debug)]
pub struct TypesIfGiven {
    /// Type of the values
    #[arg(long, value_name = "TYPE", value_parser = dtypes())]
    pub dtype: Option<DType>,
    /// Type of column indices and row offsets
    #[arg(long, value_name = "TYPE", value_parser = indices())]
    pub index: Option<IndexType>,
}

/// Where and how a product is computed.
#[derive(Args, Clone, Debug)]
pub struct Choice {
    /// The algorithm: a name, auto, or all of them one after another
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = algorithms(None))]
    pub algorithm: AlgorithmArg,
    /// Who chooses the algorithm
    #[arg(long, value_name = "CHOOSER", conflicts_with = "algorithm", value_parser = choosers())]
    pub choose: Option<Chooser>,
    /// Take the rows of A in this order, on GPUs; C stays in the stored one
    #[arg(long, value_name = "NAME", value_parser = orders())]
    pub order: Option<Order>,
    /// Where to compute: cpu, cuda:K, or auto, which is the CPU: moving matrices to a GPU and back
    /// takes longer than it gains on one product; with --mpi also cuda, a GPU for each rank of a host
    #[arg(long, default_value = "auto")]
    pub device: String,
    /// Number of threads, one per core unless given
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub threads: Option<usize>,
    /// Multiply over this semiring
    #[arg(long, default_value = "plus-times", value_parser = semirings())]
    pub semiring: Semiring,
    /// How the products of a row are reduced (spmm)
    #[arg(long, default_value = "sum", value_parser = reductions())]
    pub reduce: Reduce,
    /// Multiply the transpose of A
    #[arg(long)]
    pub transpose: bool,
    /// Only algorithms whose results are the same to the bit from run to run and for any number of
    /// threads
    #[arg(long)]
    pub deterministic: bool,
    /// No operand holds NaN or infinity: algorithms may multiply zeros that are not stored (dense,
    /// on GPUs)
    #[arg(long)]
    pub finite: bool,
    /// Factors in f32 may be rounded to TF32, which misses the error bound of f32 (dense, tensor,
    /// on GPUs)
    #[arg(long)]
    pub tf32: bool,
}

impl Choice {
    /// `problem` with these options.
    pub fn refine(&self, problem: Problem) -> Problem {
        problem
            .transpose_a(self.transpose)
            .deterministic(self.deterministic)
            .finite(self.finite)
            .tf32(self.tf32)
            .semiring(self.semiring)
            .reduce(self.reduce)
    }

    /// The device with its threads and chooser; with `--algorithm all`, the default chooser.
    ///
    /// # Errors
    /// For unknown or missing devices, for invalid thread counts, and for options without meaning
    /// on the CPU.
    pub fn device(&self) -> Result<Device> {
        let chooser = match (self.choose, self.algorithm) {
            (Some(chooser), _) => chooser,
            (None, AlgorithmArg::Named(a)) => Chooser::Named(a),
            (None, AlgorithmArg::Auto | AlgorithmArg::All) => Chooser::Auto,
        };
        let device = self.device.parse::<Device>()?.choose(chooser);
        for (given, name) in [(self.finite, "finite"), (self.tf32, "tf32")] {
            if given && !device.is_cuda() {
                return Err(Failure::Request(format!(
                    "{name}: nothing on the CPU depends on it; leave it out, or name a GPU by \
                     --device cuda:K"
                )));
            }
        }
        let device = match self.order {
            Some(order) => device.with_order(order),
            None => device,
        };
        Ok(match self.threads {
            Some(count) => device.with_threads(count)?,
            None => device,
        })
    }
}

/// Options for running a product: repetitions, checks, output.
#[derive(Args, Clone, Debug)]
pub struct Running {
    /// Write the product to this file
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Factor of the product (the semiring's one unless given)
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    pub alpha: Option<Factor>,
    /// Execute K times and report the median (unless given as often as fits into a tenth of a
    /// second, at least 5 times, fewer when that takes seconds); short ones warm up first
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    pub repeat: Option<usize>,
    /// How often the product would be computed, which influences the choice (K of --repeat unless
    /// given)
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    pub calls: Option<u64>,
    /// Check the product against the oracle; exit status 1 when it is wrong
    #[arg(long)]
    pub verify: bool,
    /// Seed of random operands and of generated matrices
    #[arg(long, default_value_t = 1, allow_negative_numbers = true)]
    pub seed: u64,
}

impl Running {
    /// The number of calls to plan for.
    pub fn calls(&self) -> u64 {
        self.calls.unwrap_or(self.repeat.unwrap_or(1) as u64)
    }

    /// Fails before any work if the product, `content` of `dtype`, could not be written.
    ///
    /// # Errors
    /// For numbers of executions that are 0 and an output file that cannot be written.
    pub fn check(&self, content: Content, dtype: DType) -> Result<()> {
        at_least_one("repeat", self.repeat.unwrap_or(1) as u64)?;
        at_least_one("calls", self.calls())?;
        match &self.output {
            Some(path) => output::check(path, content, dtype).map(drop),
            None => Ok(()),
        }
    }
}

/// Rejects 0 for an option.
///
/// # Errors
/// [`Failure::Request`].
pub fn at_least_one(option: &str, number: u64) -> Result<()> {
    match number {
        0 => Err(Failure::Request(format!("{option}: 0 is not valid, expected at least 1"))),
        _ => Ok(()),
    }
}

/// The layout option of verbs with dense operands.
#[derive(Args, Clone, Copy, Debug)]
pub struct DenseLayout {
    /// Layout of B and C in memory (row-major unless given)
    #[arg(long, value_parser = layouts())]
    pub layout: Option<Layout>,
}

impl DenseLayout {
    /// The layout.
    pub fn layout(self) -> Layout {
        self.layout.unwrap_or(Layout::RowMajor)
    }
}
