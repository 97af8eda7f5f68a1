//! Options that several verbs share.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use gustav::io::Format;
use gustav::{
    Algorithm, Chooser, DType, Device, IndexType, Layout, Operation, Order, Problem, SemiringKind,
};

use crate::failure::{Failure, Result};

/// A parser that takes the names of `all` and lists them in help and completions.
fn named<T: Copy + Send + Sync + 'static>(
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

/// Parses `u32` or `u64`.
pub fn indices() -> impl TypedValueParser<Value = IndexType> {
    named(&[IndexType::U32, IndexType::U64], |i| match i {
        IndexType::U32 => "u32",
        IndexType::U64 => "u64",
    })
}

/// Parses the name of a product.
pub fn operations() -> impl TypedValueParser<Value = Operation> {
    named(&[Operation::Spmm, Operation::Spmv, Operation::Spgemm], |o| o.name())
}

fn semirings() -> impl TypedValueParser<Value = SemiringKind> {
    named(&SemiringKind::ALL, |s| s.name())
}

fn layouts() -> impl TypedValueParser<Value = Layout> {
    named(&[Layout::RowMajor, Layout::ColumnMajor], |l| l.name())
}

/// What `--algorithm` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlgorithmArg {
    /// The default rules choose.
    Auto,
    /// Every algorithm, one after another.
    All,
    /// This one.
    Named(Algorithm),
}

fn algorithms() -> impl TypedValueParser<Value = AlgorithmArg> {
    let names = ["auto", "all"].into_iter().chain(Algorithm::ALL.iter().map(|a| a.name()));
    PossibleValuesParser::new(names).try_map(|s| match s.as_str() {
        "auto" => Ok(AlgorithmArg::Auto),
        "all" => Ok(AlgorithmArg::All),
        s => s.parse().map(AlgorithmArg::Named),
    })
}

fn orders() -> impl TypedValueParser<Value = Order> {
    named(Order::ALL, |o| o.name())
}

fn choosers() -> impl TypedValueParser<Value = Chooser> {
    PossibleValuesParser::new(["auto", "mean-row-length", "autotune", "predictor"])
        .try_map(|s| s.parse::<Chooser>())
}

/// How the result is told.
#[derive(Args, Clone, Copy, Debug)]
pub struct Telling {
    /// Print one JSON object instead of text (keys: docs/json.md)
    #[arg(long)]
    pub json: bool,
    /// Print nothing but errors, and JSON where it was asked for
    #[arg(long, short)]
    pub quiet: bool,
}

/// The types a matrix is read in.
#[derive(Args, Clone, Copy, Debug)]
pub struct Types {
    /// Type of the values
    #[arg(long, value_name = "TYPE", default_value = "f32", value_parser = dtypes())]
    pub dtype: DType,
    /// Type of column indices and row offsets
    #[arg(long, value_name = "TYPE", default_value = "u32", value_parser = indices())]
    pub index: IndexType,
}

/// The types a matrix is converted in, when they are given.
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
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = algorithms())]
    pub algorithm: AlgorithmArg,
    /// Who chooses the algorithm
    #[arg(long, value_name = "CHOOSER", conflicts_with = "algorithm", value_parser = choosers())]
    pub choose: Option<Chooser>,
    /// Take the rows of A in this order, on GPUs; C stays in the stored one
    #[arg(long, value_name = "NAME", value_parser = orders())]
    pub order: Option<Order>,
    /// Where to compute: auto, cpu or cuda:K
    #[arg(long, default_value = "auto")]
    pub device: String,
    /// Number of threads, one per core unless given
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Multiply over this semiring
    #[arg(long, default_value = "plus-times", value_parser = semirings())]
    pub semiring: SemiringKind,
    /// Multiply the transpose of A
    #[arg(long)]
    pub transpose: bool,
    /// Only algorithms whose results are the same to the bit from run to run
    #[arg(long)]
    pub deterministic: bool,
    /// No operand holds NaN or infinity: algorithms may multiply zeros that are not stored (dense,
    /// tensor)
    #[arg(long)]
    pub finite: bool,
    /// Factors in f32 may be rounded to TF32, which misses the error bound of f32 (dense, tensor)
    #[arg(long)]
    pub tf32: bool,
}

impl Choice {
    /// What is asked of `problem`.
    pub fn refine(&self, problem: Problem) -> Problem {
        problem
            .transpose_a(self.transpose)
            .deterministic(self.deterministic)
            .finite(self.finite)
            .tf32(self.tf32)
            .semiring(self.semiring)
    }

    /// The device with its threads and chooser; with `--algorithm all`, choosing by itself.
    ///
    /// # Errors
    /// For unknown or missing devices and for thread counts that cannot be had.
    pub fn device(&self) -> Result<Device> {
        let chooser = match (self.choose, self.algorithm) {
            (Some(chooser), _) => chooser,
            (None, AlgorithmArg::Named(a)) => Chooser::Named(a),
            (None, AlgorithmArg::Auto | AlgorithmArg::All) => Chooser::Auto,
        };
        let device = self.device.parse::<Device>()?.choose(chooser);
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

/// How often a product is computed, whether it is checked, and where it goes.
#[derive(Args, Clone, Debug)]
pub struct Running {
    /// Write the product to this file
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Factor of the product (the semiring's one unless given)
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    pub alpha: Option<f64>,
    /// Execute K times and report the median (5 unless given, fewer when that takes seconds)
    #[arg(long, value_name = "K")]
    pub repeat: Option<usize>,
    /// Check the product against the oracle; exit status 1 when it is wrong
    #[arg(long)]
    pub verify: bool,
    /// Seed of random operands and of generated matrices
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

impl Running {
    /// Fails before any work when the request cannot end well; `dense` says what C is.
    ///
    /// # Errors
    /// For `--repeat 0` and an output file that cannot be written.
    pub fn check(&self, dense: bool) -> Result<()> {
        if self.repeat == Some(0) {
            return Err(Failure::Request("repeat: 0 is not valid, expected at least 1".into()));
        }
        let Some(path) = &self.output else { return Ok(()) };
        let (format, _) = gustav::io::format_of_name(path)?;
        let (fits, kind, names) = match format {
            Format::Npy => (dense, "dense", ".mtx, .npz or .smtx"),
            Format::Npz | Format::Smtx => (!dense, "sparse", ".npy or .mtx"),
            _ => (true, "", ""),
        };
        if !fits {
            return Err(Failure::Request(format!(
                "output: {} is named as a {kind} matrix and the product is none, use {names}",
                path.display()
            )));
        }
        crate::output::writable(path)
    }
}

/// The layout option of verbs with dense operands.
#[derive(Args, Clone, Copy, Debug)]
pub struct DenseLayout {
    /// Layout of B and C in memory
    #[arg(long, default_value = "row-major", value_parser = layouts())]
    pub layout: Layout,
}
