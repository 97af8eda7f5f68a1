//! What the plans of an SDDMM have in common, wherever a rank computes.

use gustav_core::{DType, Error, Operation, Problem, Result, Scalar, Semiring};

use crate::any_pattern::AnyDistPattern;
use crate::device::{arguments, supports};
use crate::exchange::Exchange;
use crate::fetch::Fetch;
use crate::ghosts::Ghosts;
use crate::gpu::chunks;
use crate::local::DistScalar;
use crate::ranks::Arguments;
use crate::routes::Routes;
use crate::volume::{Counted, oblivious};
use crate::{Communication, Device, ProductShape};

/// What ranks know of each other's part of a product.
pub struct Described {
    pub number: u64,
    pub problem: Problem,
    pub shape: ProductShape,
    pub ghosts: Ghosts,
    routes: Routes,
    /// Whether some rank computes on a GPU.
    pub any_gpu: bool,
    /// The most bytes of a chunk of a message.
    limit: usize,
}

/// The messages of a plan.
pub struct Messages {
    pub exchange: Exchange,
    /// Those of rows of Y.
    pub fetch: Fetch<u32>,
    pub counted: Counted,
}

impl Described {
    /// Checks `problem` and finds ghost rows; `on_gpu` says that this rank computes on a GPU. Collective.
    ///
    /// # Errors
    /// On every rank, as [`SddmmPlan::new`](crate::SddmmPlan::new).
    pub(crate) fn new(
        pattern: &AnyDistPattern<'_>,
        dtype: DType,
        problem: &Problem,
        device: &Device,
        on_gpu: bool,
    ) -> Result<Self> {
        let ranks = pattern.ranks;
        let number = ranks.next_plan();
        let (index_type, offset_type) = pattern.local.index_types();
        let problem = Problem { dtype, output: dtype, index_type, offset_type, ..problem.clone() };
        let checked = supports(&problem, ranks.size()).and_then(|()| {
            problem.check_a(pattern.rows.rows(), pattern.columns.rows(), pattern.nnz)?;
            match (problem.operation, problem.semiring) {
                (Operation::Sddmm, Semiring::PlusTimes) => Ok(()),
                _ => Err(Error::Unsupported {
                    problem: problem.to_string(),
                    backend: "the SDDMM over ranks".into(),
                    reason: "it multiplies dense matrices at the nonzeros of a pattern".into(),
                    nearest: "DistPattern::sddmm".into(),
                }),
            }
        });
        // Nothing but rows of Y can go.
        let communication = Communication::RowsOfB;
        let device = &device.clone().communication(communication);
        ranks.agree_on(arguments(number, &problem, pattern, device), checked)?;
        ranks.count_plan();
        let ghosts = Ghosts::new(pattern)?;
        let routes = Routes::new(ranks, device, problem.columns > 0, || ghosts.requested.clone())?;
        let (any_gpu, limit) = chunks(ranks, on_gpu, &problem)?;
        let columns = problem.columns;
        let shape = ProductShape { columns, dtype, transpose_a: false, communication };
        Ok(Described { number, problem, shape, ghosts, routes, any_gpu, limit })
    }

    /// Bytes if every rank sent all its rows of Y to all others.
    pub(crate) fn oblivious(&self, pattern: &AnyDistPattern<'_>) -> u64 {
        oblivious(pattern.columns, &self.shape)
    }

    /// The messages of this rank.
    ///
    /// # Errors
    /// When there is no memory for them.
    pub(crate) fn messages<T: DistScalar>(&self, pattern: &AnyDistPattern<'_>) -> Result<Messages> {
        let ranks = pattern.ranks;
        let (rank, n, hosts) = (ranks.rank(), self.problem.columns, ranks.hosts()?);
        let mut counted = Counted { nonzeros: pattern.local.nnz() as u64, ..Counted::default() };
        let mut needed = Vec::new();
        for block in &self.ghosts.blocks.others {
            counted.add_block(&block.counts, &self.shape, hosts.differ(rank, block.peer));
            needed.push((block.peer, block.columns.len()));
        }
        let mut exchange = Exchange::with_limit(self.limit);
        let rows = (&needed[..], &self.ghosts.requested[..]);
        let fetch = Fetch::new::<T>(&mut exchange, &self.routes, rank, rows, n)?;
        counted.add_messages(&exchange, rank, hosts);
        Ok(Messages { exchange, fetch, counted })
    }
}

/// What has to be the same on every rank for an execution by plan `number`: as a key, and in words.
pub fn execution<T: DistScalar>(
    number: u64,
    (alpha, beta): (T::Accum, T::Accum),
    with_factors: bool,
) -> ([u64; 4], impl Fn() -> Arguments) {
    let bits = |f: T::Accum| f.to_f64().to_bits() ^ (f.to_i64() as u64).rotate_left(32);
    let arguments = move || {
        vec![
            ("call", format!("sddmm by plan {number}")),
            ("alpha", alpha.to_string()),
            ("beta", beta.to_string()),
            ("factors", if with_factors { "yes" } else { "no" }.to_owned()),
        ]
    };
    ([number, bits(alpha), bits(beta), u64::from(with_factors)], arguments)
}
