//! Timing on a GPU: executions that follow one another on sets of operands that alternate, or single ones.

use gustav_core::Result;
use gustav_cuda::probe::timed;
use gustav_report::quantile;

use super::Started;

// Executions of which the hot time is the median; fewer once they have taken HOT_MS.
const HOT_RUNS: usize = 15;
const FEWEST_HOT_RUNS: usize = 3;
const HOT_MS: f64 = 300.0;
// If sets of operands alternate, executions run back to back until every set was used, or for about
// SERIES_MS if that takes longer, but then at most LONGEST_SERIES.
const SERIES_MS: f64 = 2.0;
const LONGEST_SERIES: usize = 8;
// Assumed time to queue an execution before it is measured.
const FIRST_QUEUE_MS: f64 = 0.02;
// Most reads of memory that keep the stream busy while executions are queued.
const MOST_READINGS: usize = 256;

/// What an engine keeps from one series of executions to the next.
#[derive(Default)]
pub(super) struct Series {
    /// The next set.
    next: usize,
    /// The least milliseconds for queueing an execution; larger times may include waiting for a full queue.
    queue_ms: Option<f64>,
    /// Whether an empty launch follows every product, because the next product would not wait for it.
    pub separated: bool,
}

impl Series {
    fn queue_ms(&self) -> f64 {
        self.queue_ms.unwrap_or(FIRST_QUEUE_MS)
    }
}

/// An engine with a plan for every set of operands.
pub(super) trait Rotating<'a> {
    /// The device.
    fn gpu(&self) -> &'a Started;

    /// The number of sets.
    fn sets(&self) -> usize;

    /// The engine's series.
    fn series(&mut self) -> &mut Series;

    /// Queues the product of a set.
    ///
    /// # Errors
    /// The library's own.
    fn execute(&mut self, set: usize) -> Result<()>;

    /// Queues an empty launch, if the engine's products need one between them.
    ///
    /// # Errors
    /// [`gustav_core::Error::Device`].
    fn queue_separator(&mut self) -> Result<()> {
        if !self.series().separated {
            return Ok(());
        }
        let Started { probe, device, .. } = self.gpu();
        probe.separate(device.stream())
    }

    /// Queues the product of a set in a series.
    ///
    /// # Errors
    /// The library's own.
    fn execute_in_series(&mut self, set: usize) -> Result<()> {
        self.execute(set)?;
        self.queue_separator()
    }

    /// Milliseconds of `repeats` executions with cold caches, after `wake` untimed ones; if sets
    /// alternate, the mean of back-to-back executions.
    fn round(&mut self, wake: usize, repeats: usize) -> Result<Vec<f64>> {
        if self.sets() > 1 && repeats >= self.sets() {
            return Ok(vec![alternating_ms(self, repeats)?]);
        }
        for _ in 0..wake {
            self.execute(0)?;
        }
        (0..repeats).map(|_| cold_ms(self)).collect()
    }

    /// Fewest executions in a round if one takes about `ms` milliseconds.
    fn executions_of_round(&self, ms: f64) -> usize {
        match self.sets() {
            1 => 1,
            sets => sets.max(executions(ms)),
        }
    }

    /// Milliseconds of an execution on the same set as those before it.
    fn repeated_ms(&mut self) -> Result<Option<f64>> {
        let once = again_ms(self, 1, FIRST_QUEUE_MS)?;
        let count = if self.sets() > 1 { executions(once) } else { 1 };
        median(|| again_ms(self, count, once))
    }

    /// Milliseconds of one of `count` executions in series without the empty launches between products, of an engine
    /// that needs them.
    fn unseparated_ms(&mut self, count: usize) -> Result<Option<f64>> {
        if !self.series().separated {
            return Ok(None);
        }
        self.series().separated = false;
        let ms = median(|| alternating_ms(self, count));
        self.series().separated = true;
        ms
    }

    /// Milliseconds of a single execution after a flush of the caches, if sets alternate.
    fn flushed_ms(&mut self) -> Result<Option<f64>> {
        if self.sets() == 1 {
            return Ok(None);
        }
        median(|| cold_ms(self))
    }
}

fn cold_ms<'a, E: Rotating<'a> + ?Sized>(engine: &mut E) -> Result<f64> {
    let Started { probe, device, .. } = engine.gpu();
    probe.cold_ms(device.stream(), || engine.execute(0))
}

/// Milliseconds of one of `count` back-to-back executions, each on the next set. The stream is
/// kept busy while they are queued.
fn alternating_ms<'a, E: Rotating<'a> + ?Sized>(engine: &mut E, count: usize) -> Result<f64> {
    let Started { probe, device, about, .. } = engine.gpu();
    let (stream, sets) = (device.stream(), engine.sets());
    let flush_ms = probe.flush_bytes() as f64 / about.copy_bandwidth * 1e3;
    let busy = engine.series().queue_ms() * count as f64 / flush_ms;
    for _ in 0..=(busy as usize).min(MOST_READINGS) {
        probe.flush(stream)?;
    }
    let mut queued = 0.0;
    let ms = timed(stream, || {
        let (ms, done) = crate::engine::timed(|| {
            for _ in 0..count {
                let set = engine.series().next;
                engine.execute_in_series(set)?;
                engine.series().next = (set + 1) % sets;
            }
            Ok(())
        });
        queued = ms;
        done
    })?;
    let queued = queued / count as f64;
    let series = engine.series();
    series.queue_ms = Some(series.queue_ms.map_or(queued, |least| least.min(queued)));
    Ok(ms / count as f64)
}

/// The same for `count` executions of about `ms`, all on the first set.
fn again_ms<'a, E: Rotating<'a> + ?Sized>(engine: &mut E, count: usize, ms: f64) -> Result<f64> {
    let busy = engine.series().queue_ms() * count as f64 / ms.max(1e-6);
    for _ in 0..=(busy.ceil() as usize).min(MOST_READINGS) {
        engine.execute_in_series(0)?;
    }
    let stream = engine.gpu().device.stream();
    let all = timed(stream, || (0..count).try_for_each(|_| engine.execute_in_series(0)))?;
    Ok(all / count as f64)
}

/// The number of back-to-back executions of `ms` milliseconds.
fn executions(ms: f64) -> usize {
    (SERIES_MS / ms.max(1e-6)).ceil().clamp(1.0, LONGEST_SERIES as f64) as usize
}

/// The median of the times of several executions.
pub(super) fn median(mut ms: impl FnMut() -> Result<f64>) -> Result<Option<f64>> {
    let mut times = Vec::new();
    while times.len() < FEWEST_HOT_RUNS
        || times.len() < HOT_RUNS && times.iter().sum::<f64>() < HOT_MS
    {
        times.push(ms()?);
    }
    Ok(quantile(&times, 0.5))
}
