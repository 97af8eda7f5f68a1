//! The tables of a report, which `gustav bench` prints as well.

mod algorithms;
mod costs;
mod faults;
mod features;
mod implementations;
mod orders;
mod papers;
mod peers;
mod predictor;
mod programs;
mod published_orders;
mod ranks;
mod ratios;
mod relations;
mod strips;
mod targets;

use super::table::Table;
use crate::analysis::Platform;

pub(crate) use features::all as of_features;
pub(crate) use predictor::all as of_tunings;
pub(crate) use ranks::all as of_ranks;

/// Every table that the records fill.
pub(crate) fn all(platforms: &[Platform]) -> Vec<Table> {
    let tables = [
        peers::summary,
        targets::targets,
        peers::kinds,
        peers::peers,
        peers::products,
        algorithms::algorithms,
        algorithms::choice,
        costs::limits,
        relations::relations,
        costs::plans,
        costs::one_call,
        costs::reuse,
        costs::masks,
        costs::memory,
        programs::ratios,
        programs::programs,
        peers::losses,
        orders::gains,
        orders::break_even,
        implementations::implementations,
        papers::claims,
        papers::tiles,
        papers::row_length_rule,
        papers::vendor_functions,
        strips::widths,
        faults::faults,
        faults::machines,
    ];
    tables.iter().map(|table| table(platforms)).filter(|t| !t.rows.is_empty()).collect()
}

#[cfg(test)]
mod tests;
