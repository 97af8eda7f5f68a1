//! Where each rank computes its part, and what plans are made with.

use gustav_core::{
    Error, Index, Operation, Plans, Problem, Result, SddmmRequest, SpgemmRequest, SpmmRequest,
    SpmvRequest,
};
use gustav_cpu::Options;

use crate::any_pattern::AnyDistPattern;
use crate::ranks::Arguments;
use crate::volume::check_countable;
use crate::{Communication, DistPattern, DistScalar, SddmmPlan, SpgemmPlan, SpmmPlan, SpmvPlan};

/// Where a rank computes its part of products: on its CPU. Ranks may differ in it, but not in the communication.
#[derive(Clone, Debug, Default)]
pub struct Device {
    pub(crate) options: Options,
    pub(crate) communication: Communication,
    pub(crate) one_level: bool,
}

impl Device {
    /// The CPU, with the threads, the chooser and the instruction set of `options`.
    pub fn cpu(options: Options) -> Self {
        Device { options, ..Device::default() }
    }

    /// Sets what ranks send each other, else the cheapest.
    #[must_use]
    pub fn communication(self, communication: Communication) -> Self {
        Device { communication, ..self }
    }

    /// Sets whether a row of B (of SDDMM a row of Y, of SpGEMM a value of B) that several ranks of another host need
    /// is sent over the network once, to one of them that forwards it, or once for each of them; and so partial rows
    /// of C that several have computed, once one of them has added them up. Once is the default.
    #[must_use]
    pub fn two_levels(self, two: bool) -> Self {
        Device { one_level: !two, ..self }
    }
}

impl<T: DistScalar, I: Index, O: Index> Plans<SpmmRequest<DistPattern<I, O>>, T> for Device {
    type Plan = SpmmPlan<T>;

    fn plan(&self, request: SpmmRequest<DistPattern<I, O>>) -> Result<SpmmPlan<T>> {
        SpmmPlan::new(&request.pattern, &request.problem, self)
    }
}

impl<T: DistScalar, I: Index, O: Index> Plans<SpmvRequest<DistPattern<I, O>>, T> for Device {
    type Plan = SpmvPlan<T>;

    fn plan(&self, request: SpmvRequest<DistPattern<I, O>>) -> Result<SpmvPlan<T>> {
        SpmvPlan::new(&request.pattern, &request.problem, self)
    }
}

impl<T: DistScalar, I: Index, O: Index> Plans<SddmmRequest<DistPattern<I, O>>, T> for Device {
    type Plan = SddmmPlan<T>;

    fn plan(&self, request: SddmmRequest<DistPattern<I, O>>) -> Result<SddmmPlan<T>> {
        SddmmPlan::new(&request.pattern, &request.problem, self)
    }
}

impl<T: DistScalar, I: Index, O: Index> Plans<SpgemmRequest<DistPattern<I, O>>, T> for Device {
    type Plan = SpgemmPlan<T, I, O>;

    fn plan(&self, request: SpgemmRequest<DistPattern<I, O>>) -> Result<SpgemmPlan<T, I, O>> {
        unmasked(&request)?;
        let SpgemmRequest { a, b, problem, .. } = &request;
        SpgemmPlan::new(a, b, problem, self)
    }
}

/// Refuses a mask. Collective: by all ranks alike, as every other argument.
pub(crate) fn unmasked<I: Index, O: Index>(
    request: &SpgemmRequest<DistPattern<I, O>>,
) -> Result<()> {
    let SpgemmRequest { a, mask, problem, .. } = request;
    let masked = mask.is_some().then(|| Error::Unsupported {
        problem: problem.to_string(),
        backend: "the SpGEMM over ranks".into(),
        reason: "it computes all of C".into(),
        nearest: "the product without a mask, or one rank".into(),
    });
    a.ranks().together(masked.map_or(Ok(()), Err))
}

/// What has to be the same on every rank for a plan.
pub(crate) fn arguments(
    number: u64,
    problem: &Problem,
    pattern: &AnyDistPattern<'_>,
    device: &Device,
) -> Arguments {
    let yes = |b: bool| if b { "yes" } else { "no" }.to_owned();
    vec![
        ("call", format!("plan {number}, of {}", problem.operation)),
        ("columns of the dense matrix", problem.columns.to_string()),
        ("type of values", problem.dtype.to_string()),
        ("type of column indices", pattern.local.index_types().0.to_string()),
        ("semiring", problem.semiring.to_string()),
        ("transposed A", yes(problem.transpose_a)),
        ("deterministic", yes(problem.deterministic)),
        ("communication", device.communication.name().into()),
        ("two levels", yes(!device.one_level)),
        ("partition of rows", pattern.rows.description()),
        ("partition of columns", pattern.columns.description()),
    ]
}

/// Refuses what products over so many ranks do not have.
pub(crate) fn supports(problem: &Problem, ranks: usize) -> Result<()> {
    let refuse = |reason: &str, nearest: &str| {
        Err(Error::Unsupported {
            problem: problem.to_string(),
            backend: "products over ranks".into(),
            reason: reason.into(),
            nearest: nearest.into(),
        })
    };
    if problem.operation != Operation::Spgemm {
        check_countable(problem.rows, problem.cols, problem.columns, ranks)?;
    }
    if problem.batch != 1 {
        return refuse("they are of one matrix", "a plan of one matrix, executed for each");
    }
    if problem.extremum.is_some() {
        return refuse("rows are summed", "the semiring max-times or min-plus, or one rank");
    }
    if !problem.epilogue.is_none() {
        return refuse("sums are stored as they are", "the epilogue on each rank's rows of C");
    }
    if problem.tf32 {
        return refuse("CPUs have no TF32", "f32");
    }
    if problem.operation == Operation::Sddmm && problem.transpose_a {
        return refuse("it takes no transposed pattern", "X and Y exchanged");
    }
    Ok(())
}
