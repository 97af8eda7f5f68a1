//! Configurations as the cost model sees them.

use gustav_core::{Problem, Result};
use gustav_plan::DeviceProfile;
use gustav_plan::cost::spmv::{EvenShares, InOrder, Listed, Schedule, Work};
use gustav_plan::cost::{Bounds, Facts, Lengths, Parameters};

use super::catalog::Config;
use super::segmented;

/// The bounds of a configuration of a product whose pattern has these facts; `None` for algorithms that the model does
/// not know.
///
/// # Errors
/// Those of `facts`.
pub fn bounds(
    problem: &Problem,
    facts: &dyn Facts,
    profile: &DeviceProfile,
    config: &Config,
) -> Result<Option<Bounds>> {
    let lengths = Lengths::new(facts.lengths()?);
    Ok(of_lengths(problem, &lengths, profile, config))
}

/// The same for rows of known lengths.
pub(super) fn of_lengths(
    problem: &Problem,
    lengths: &Lengths<'_>,
    profile: &DeviceProfile,
    config: &Config,
) -> Option<Bounds> {
    let rates = Parameters::of_gpus().rates;
    Some(Work { problem, lengths, profile, rates }.bounds(&schedule(config)?))
}

fn schedule(config: &Config) -> Option<Schedule> {
    Some(match config {
        Config::Segmented(segmented::Config::InOrder(c)) => Schedule::InOrder(InOrder {
            lanes: c.lanes,
            loads_in_flight: c.loads_in_flight,
            longest: c.longest,
            part: c.part,
        }),
        Config::Segmented(segmented::Config::Listed(c)) => Schedule::Listed(Listed {
            lanes: c.subgroups,
            chunk: c.chunk,
            longest: c.longest?,
            resident: c.resident,
        }),
        Config::EvenShares(c) => Schedule::EvenShares(EvenShares {
            items: c.items,
            threads: c.threads,
            resident: c.resident,
        }),
        _ => return None,
    })
}
