//! Analyses of records for tables and figures: comparisons, platforms and studies.

mod change;
mod compare;
mod paper_b;
mod platform;
mod ratios;
mod row_length_rule;
mod row_orders;
mod vendor_functions;

pub use change::{Change, ChangeArgs, Changes, Verdict, changes};
pub use compare::{Comparison, caches, compare};
pub(crate) use paper_b::PaperB;
pub(crate) use platform::{Platform, Product, threads_are_idle};
pub(crate) use ratios::{Groups, distribution, grouped, grouped_twice, histogram, percentiles};
pub use ratios::{Ratios, quantile};
pub(crate) use row_length_rule::row_length_rules;
pub(crate) use row_orders::{OrderStudy, OrderedMatrix};
pub(crate) use vendor_functions::VENDOR_FUNCTIONS;

#[cfg(test)]
pub(crate) use paper_b::tests::round as paper_b_round;
