//! What became slower or faster between two sets of records, beyond the noise that the records
//! themselves show.

use std::collections::{BTreeMap, BTreeSet};

use gustav_core::{Error, Result};
use serde::Serialize;

use crate::{Case, Ratios, Record, Status};

/// How two sets of records are compared.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangeArgs {
    /// Changes smaller than this fraction of the time are noise whatever the quartiles are, which
    /// show the spread within a run but not between runs.
    pub threshold: f64,
    /// Divide times by those of this peer in the same rounds, which cancels changes of the machine.
    pub relative_to: Option<String>,
    /// Compare records even if they are of different machines or devices.
    pub across_machines: bool,
    /// Do not count cases of Gustav that the new records lack as regressions.
    pub partial: bool,
}

impl Default for ChangeArgs {
    fn default() -> Self {
        ChangeArgs { threshold: 0.05, relative_to: None, across_machines: false, partial: false }
    }
}

/// The change of one engine's result on one case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Had a time, and is now wrong or fails.
    Broken,
    /// Slower beyond noise.
    Slower,
    /// Faster beyond noise.
    Faster,
    /// Was wrong or failed, and now has a time.
    Repaired,
    /// No change beyond noise.
    Same,
    /// Without a time before and after.
    Untimed,
}

/// One engine on one case, before and after.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// The case.
    #[serde(flatten)]
    pub case: Case,
    /// The engine, as tables name it.
    pub engine: String,
    /// Number of threads.
    pub threads: usize,
    /// The change.
    pub verdict: Verdict,
    /// Median before, in milliseconds.
    pub old_ms: Option<f64>,
    /// Median after, in milliseconds.
    pub new_ms: Option<f64>,
    /// Old time over new: the new one is faster if above 1.
    pub speedup: Option<f64>,
    /// Three standard errors of the speed-up, relative to it.
    pub noise: Option<f64>,
}

/// Two sets of records side by side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Changes {
    /// Speed-ups of Gustav.
    pub ours: Option<Ratios>,
    /// Speed-ups of the peers, which show changes of the machine.
    pub peers: Option<Ratios>,
    /// Cases with their engines that both have, the worst first.
    pub changes: Vec<Change>,
    /// Cases with their engines that only the old records have.
    pub missing: Vec<String>,
    /// How many of them are Gustav's.
    pub ours_missing: usize,
    /// Cases with their engines that only the new records have.
    pub added: Vec<String>,
}

impl Changes {
    /// How many results of Gustav have this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.changes.iter().filter(|c| c.verdict == verdict && c.is_ours()).count()
    }

    /// Whether a result of Gustav is slower or no longer right, or missing unless `args.partial` is
    /// set.
    pub fn regressed(&self, args: &ChangeArgs) -> bool {
        let missing = if args.partial { 0 } else { self.ours_missing };
        self.count(Verdict::Slower) + self.count(Verdict::Broken) + missing > 0
    }
}

impl Change {
    /// Whether the engine is Gustav.
    pub fn is_ours(&self) -> bool {
        self.engine.starts_with("gustav")
    }
}

// A matrix of another size under the same name is another case.
type Key<'a> = (&'a Case, [usize; 3], String, usize);

/// The latest record of every engine on every case.
fn latest(records: &[Record]) -> BTreeMap<Key<'_>, &Record> {
    let mut found = BTreeMap::<Key<'_>, &Record>::new();
    for r in records {
        let key = (&r.case, [r.rows, r.cols, r.nnz], r.engine_name(), r.threads);
        let latest = found.entry(key).or_insert(r);
        if r.group >= latest.group {
            *latest = r;
        }
    }
    found
}

/// Where records were measured, as text.
fn platforms(records: &[Record]) -> BTreeSet<String> {
    let platform = |r: &Record| match &r.gpu {
        Some(gpu) => format!("{} with driver {}", gpu.name, gpu.driver),
        None => format!("{}, {} cores, {}", r.machine.cpu, r.machine.cores, r.machine.system),
    };
    records.iter().map(platform).collect()
}

/// One of a record's times.
type Figure = fn(&Record) -> Option<f64>;

/// The time that both sides have: with warm caches if one has no other, of single executions if one
/// has no other, and otherwise the one that ratios use.
fn figure(old: &Record, new: &Record) -> Figure {
    if old.is_cold() != new.is_cold() {
        Record::warm_ms
    } else if old.sets.is_some() != new.sets.is_some() {
        Record::alone_ms
    } else {
        |r| r.execute_ms
    }
}

/// A time with the standard error of its logarithm.
#[derive(Clone, Copy)]
struct Measured {
    ms: f64,
    error: f64,
}

impl Measured {
    /// The time of a correct record. The quartiles of a normal distribution are 1.349 standard
    /// deviations apart, and the standard error of the median of r samples is 1.2533/√r standard
    /// deviations. Warm and single times have no quartiles of their own; those of the cold time are
    /// used.
    fn of(record: &Record, figure: Figure) -> Option<Self> {
        let ms = figure(record);
        let ms = ms.filter(|ms| record.status == Status::Ok && *ms > 0.0)?;
        let spread = record.lower_ms.zip(record.upper_ms).map(|(low, high)| (high / low).ln());
        let spread = spread.filter(|s| s.is_finite()).unwrap_or(0.0);
        let error = 1.2533 / 1.349 * spread / (record.rounds.max(1) as f64).sqrt();
        Some(Measured { ms, error })
    }

    fn over(self, other: Measured) -> Measured {
        Measured { ms: self.ms / other.ms, error: self.error.hypot(other.error) }
    }
}

/// The changes from `old` to `new`.
///
/// # Errors
/// [`Error::Argument`] when the records come from different machines or devices, unless `args`
/// allows it, and for a peer that neither has; [`Error::Format`] when there is nothing to compare.
pub fn changes(old: &[Record], new: &[Record], args: &ChangeArgs) -> Result<Changes> {
    for (records, which) in [(old, "first"), (new, "second")] {
        if records.is_empty() {
            return nothing(format!("the {which} file holds no record"));
        }
    }
    if let Some(peer) = &args.relative_to {
        let known: BTreeSet<_> =
            old.iter().chain(new).filter(|r| r.engine != "gustav").map(|r| &r.engine).collect();
        if !known.contains(peer) {
            let known: Vec<_> = known.into_iter().map(String::as_str).collect();
            return Err(Error::Argument {
                name: "relative-to",
                found: peer.clone(),
                expected: match known.is_empty() {
                    true => "records that hold a peer".into(),
                    false => format!("a peer of the records: {}", known.join(", ")),
                },
            });
        }
    }
    let (before, after) = (platforms(old), platforms(new));
    if before != after && !args.across_machines {
        let words = |p: BTreeSet<String>| p.into_iter().collect::<Vec<_>>().join(" and ");
        return Err(Error::Argument {
            name: "records",
            found: format!("those of {}, then those of {}", words(before), words(after)),
            expected: "records of one machine, or --across-machines".into(),
        });
    }
    let (before, after) = (latest(old), latest(new));
    let name = |key: &Key<'_>| format!("{} {}", key.0, key.2);
    let absent: Vec<_> = before.keys().filter(|k| !after.contains_key(*k)).collect();
    let ours_missing = absent.iter().filter(|k| k.2.starts_with("gustav")).count();
    let missing = absent.into_iter().map(name).collect();
    let added = after.keys().filter(|k| !before.contains_key(*k)).map(name).collect();
    let mut changes: Vec<_> = before
        .iter()
        .filter_map(|(key, old)| {
            let new = after.get(key)?;
            let figure = figure(old, new);
            let measured = |records: &BTreeMap<Key<'_>, &Record>, r: &Record| {
                let own = Measured::of(r, figure)?;
                let Some(peer) = &args.relative_to else { return Some(own) };
                let key = (&r.case, [r.rows, r.cols, r.nnz], peer.clone(), r.threads);
                Some(own.over(Measured::of(records.get(&key)?, figure)?))
            };
            let mut change = change(
                key,
                (old.status, measured(&before, old)),
                (new.status, measured(&after, new)),
                args,
            );
            (change.old_ms, change.new_ms) = (figure(old), figure(new));
            Some(change)
        })
        .collect();
    if changes.is_empty() {
        return nothing("no case is in both files: take records of the same suite".into());
    }
    changes.sort_by(|a, b| {
        let speed = |c: &Change| c.speedup.unwrap_or(1.0);
        a.verdict.cmp(&b.verdict).then(speed(a).total_cmp(&speed(b)))
    });
    let ratios = |ours: bool| {
        let own = changes.iter().filter(|c| c.is_ours() == ours);
        Ratios::of(&own.filter_map(|c| c.speedup).collect::<Vec<_>>())
    };
    Ok(Changes { ours: ratios(true), peers: ratios(false), changes, missing, ours_missing, added })
}

fn nothing(reason: String) -> Result<Changes> {
    Err(Error::Format { path: None, format: "pair of record files", reason })
}

fn change(
    key: &Key<'_>,
    (old, before): (Status, Option<Measured>),
    (new, after): (Status, Option<Measured>),
    args: &ChangeArgs,
) -> Change {
    let speedup = before.zip(after).map(|(b, a)| b.over(a));
    let noise = speedup.map(|s| (3.0 * s.error).exp_m1());
    let verdict = match (old == Status::Ok, new == Status::Ok) {
        (true, false) => Verdict::Broken,
        (false, true) => Verdict::Repaired,
        _ => match (speedup, noise) {
            (Some(s), Some(noise)) => {
                let least = noise.max(args.threshold).ln_1p();
                match s.ms.ln() {
                    change if change < -least => Verdict::Slower,
                    change if change > least => Verdict::Faster,
                    _ => Verdict::Same,
                }
            }
            _ => Verdict::Untimed,
        },
    };
    Change {
        case: key.0.clone(),
        engine: key.2.clone(),
        threads: key.3,
        verdict,
        old_ms: None,
        new_ms: None,
        speedup: speedup.map(|s| s.ms),
        noise,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    fn timed(engine: &str, ms: f64, spread: f64) -> Record {
        Record {
            execute_ms: Some(ms),
            lower_ms: Some(ms * (1.0 - spread)),
            upper_ms: Some(ms * (1.0 + spread)),
            ..record("m", engine, if engine == "gustav" { "auto" } else { "default" })
        }
    }

    fn verdict(old: &Record, new: &Record) -> Verdict {
        let args = ChangeArgs::default();
        let found = changes(std::slice::from_ref(old), std::slice::from_ref(new), &args).unwrap();
        found.changes[0].verdict
    }

    #[test]
    fn a_change_counts_beyond_noise_and_threshold() {
        let old = timed("gustav", 1.0, 0.01);
        for (ms, spread, expected) in [
            (1.2, 0.01, Verdict::Slower),
            (0.8, 0.01, Verdict::Faster),
            (1.04, 0.0, Verdict::Same),
            (1.2, 0.5, Verdict::Same),
        ] {
            assert_eq!(verdict(&old, &timed("gustav", ms, spread)), expected, "{ms} {spread}");
        }
    }

    #[test]
    fn figures_of_warm_caches_alone_are_compared_with_warm_ones() {
        let old = timed("gustav", 1.0, 0.01);
        let new = Record { hot_ms: Some(1.0), ..timed("gustav", 3.0, 0.01) };
        assert_eq!(verdict(&old, &new), Verdict::Same);
        assert_eq!(verdict(&new, &new), Verdict::Same);
        let slower = Record { hot_ms: Some(2.0), ..new.clone() };
        assert_eq!(verdict(&old, &slower), Verdict::Slower);
        // If both have cold times, those are compared.
        assert_eq!(verdict(&new, &slower), Verdict::Same);
    }

    #[test]
    fn figures_of_single_executions_alone_are_compared_with_single_ones() {
        let on_gpu = |r: Record| Record { gpu: Some(crate::Gpu::default()), ..r };
        let old = on_gpu(timed("gustav", 3.0, 0.01));
        let new =
            Record { sets: Some(2), single_ms: Some(3.0), ..on_gpu(timed("gustav", 1.0, 0.01)) };
        assert_eq!(verdict(&old, &new), Verdict::Same);
        assert_eq!(verdict(&old, &Record { single_ms: Some(6.0), ..new.clone() }), Verdict::Slower);
        // If both have times of back-to-back executions, those are compared.
        assert_eq!(verdict(&new, &Record { single_ms: Some(6.0), ..new.clone() }), Verdict::Same);
    }

    #[test]
    fn a_result_that_is_no_longer_right_is_a_regression() {
        let old = timed("gustav", 1.0, 0.01);
        let new = Record { status: Status::Wrong, execute_ms: None, ..old.clone() };
        let args = ChangeArgs::default();
        let found = changes(std::slice::from_ref(&old), std::slice::from_ref(&new), &args).unwrap();
        assert!(found.regressed(&ChangeArgs::default()));
        assert_eq!(found.count(Verdict::Broken), 1);
        assert_eq!(verdict(&new, &old), Verdict::Repaired);
        assert_eq!(verdict(&new, &new), Verdict::Untimed);
    }

    #[test]
    fn a_slower_machine_shows_in_the_peers_and_is_divided_out_on_request() {
        let old = [timed("gustav", 1.0, 0.01), timed("mkl", 2.0, 0.01)];
        let new = [timed("gustav", 1.5, 0.01), timed("mkl", 3.0, 0.01)];
        let found = changes(&old, &new, &ChangeArgs::default()).unwrap();
        assert!(found.regressed(&ChangeArgs::default()));
        assert!((found.peers.unwrap().geomean - 2.0 / 3.0).abs() < 1e-12);
        let args = ChangeArgs { relative_to: Some("mkl".into()), ..ChangeArgs::default() };
        let found = changes(&old, &new, &args).unwrap();
        assert!(!found.regressed(&args));
        assert!((found.ours.unwrap().geomean - 1.0).abs() < 1e-12);
        let args = ChangeArgs { relative_to: Some("mlk".into()), ..ChangeArgs::default() };
        let error = changes(&old, &new, &args).unwrap_err().to_string();
        assert!(error.contains("mlk") && error.contains("mkl"), "{error}");
    }

    #[test]
    fn files_without_records_are_refused_by_name() {
        let some = [timed("gustav", 1.0, 0.01)];
        for (old, new, which) in [(&some[..], &[][..], "second"), (&[], &some, "first")] {
            let error = changes(old, new, &ChangeArgs::default()).unwrap_err().to_string();
            assert!(error.contains(which), "{error}");
        }
    }

    #[test]
    fn cases_of_one_side_are_named_and_the_latest_record_counts() {
        let other = record("n", "gustav", "auto");
        let again = Record { group: 9, ..timed("gustav", 1.0, 0.0) };
        let old = [timed("gustav", 9.0, 0.0), again, other];
        let larger = Record { nnz: 7, ..record("n", "gustav", "auto") };
        let found =
            changes(&old, &[timed("gustav", 1.0, 0.0), larger], &ChangeArgs::default()).unwrap();
        assert_eq!(found.changes.len(), 1);
        assert_eq!(found.changes[0].speedup, Some(1.0));
        assert_eq!(found.missing, ["n spmm f32 n=8 gustav:auto"]);
        assert_eq!(found.added, found.missing);
        let args = ChangeArgs::default();
        assert!(found.regressed(&args) && found.ours_missing == 1);
        assert!(!found.regressed(&ChangeArgs { partial: true, ..args }));
    }

    #[test]
    fn another_machine_is_refused_unless_allowed() {
        let old = [timed("gustav", 1.0, 0.0)];
        let mut new = old.clone();
        new[0].machine.cpu = "another processor".into();
        let error = changes(&old, &new, &ChangeArgs::default()).unwrap_err().to_string();
        assert!(error.contains("another processor") && error.contains("--across"), "{error}");
        let args = ChangeArgs { across_machines: true, ..ChangeArgs::default() };
        assert_eq!(changes(&old, &new, &args).unwrap().changes[0].verdict, Verdict::Same);
    }

    #[test]
    fn nothing_in_common_is_an_error() {
        let (old, new) = (record("a", "gustav", "auto"), record("b", "gustav", "auto"));
        let error = changes(&[old], &[new], &ChangeArgs::default()).unwrap_err().to_string();
        assert!(error.contains("no case is in both"), "{error}");
    }
}
