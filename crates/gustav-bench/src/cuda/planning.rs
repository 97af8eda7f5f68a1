//! What making a plan takes.

use gustav_core::{Error, Result};
use gustav_cuda::DevicePattern;
use gustav_report::quantile;

use super::Started;

// Samples of which a time is the median, fewer once they have taken `MOST_MS`.
const MOST: usize = 9;
const FEWEST: usize = 3;
const MOST_MS: f64 = 30.0;

/// Whether a median needs more samples than these, in milliseconds.
pub(super) fn needs_more(ms: &[f64]) -> bool {
    ms.len() < FEWEST || ms.len() < MOST && ms.iter().sum::<f64>() < MOST_MS
}

/// Median milliseconds of making a plan for `pattern` and of what it queues, without facts that other plans counted.
/// Kernels are compiled once per machine, in a plan that does not count; nor does dropping one.
///
/// # Errors
/// Those of `plan`, [`Error::Device`].
pub(super) fn planning_ms<P>(
    gpu: &Started,
    pattern: &DevicePattern,
    plan: impl Fn(&DevicePattern) -> Result<P>,
) -> Result<Option<f64>> {
    drop(plan(pattern)?);
    let mut times = Vec::new();
    while needs_more(&times) {
        let without = pattern.without_facts();
        gpu.device.stream().synchronize()?;
        let (ms, made) = crate::engine::timed(|| {
            let made = plan(&without)?;
            gpu.device.stream().synchronize()?;
            Ok::<_, Error>(made)
        });
        times.push(ms);
        drop(made?);
    }
    Ok(quantile(&times, 0.5))
}
