//! The ranks of a program, and what they have to agree on.

use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use gustav_core::{Error, Result};

use crate::Hosts;
use crate::communicator::Communicator;

// Bytes of a report that other ranks see; the rest is cut.
const SHOWN: usize = 1024;
// How reports begin.
const FAILED: char = 'e';
const GIVEN: char = 'a';
// How the call of `Ranks::any` is named.
const ANY: &str = "whether some rank says so";

/// The ranks of a program, as one of them sees them. Clones are the same ranks.
///
/// Plans and checks on one `Ranks` are made and executed in the same order on every rank; a rank that does something
/// else is named in the error that every rank gets. A rank makes collective calls from one thread at a time: their
/// order would be left to chance otherwise.
#[derive(Clone)]
pub struct Ranks {
    shared: Arc<Shared>,
}

struct Shared {
    communicator: Box<dyn Communicator>,
    lock: Mutex<()>,
    plans: AtomicU64,
    hosts: OnceLock<Hosts>,
}

impl std::fmt::Debug for Ranks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "rank {} of {}", self.rank(), self.shared.communicator.description())
    }
}

/// What a rank does and with which arguments: names and values of what has to be the same on every
/// rank.
pub(crate) type Arguments = Vec<(&'static str, String)>;

impl Ranks {
    /// The ranks that `communicator` connects.
    pub fn new(communicator: impl Communicator + 'static) -> Self {
        let communicator = Box::new(communicator);
        let (lock, plans, hosts) = (Mutex::new(()), AtomicU64::new(0), OnceLock::new());
        Ranks { shared: Arc::new(Shared { communicator, lock, plans, hosts }) }
    }

    /// The number of this rank, from 0.
    pub fn rank(&self) -> usize {
        self.shared.communicator.rank()
    }

    /// The number of ranks.
    pub fn size(&self) -> usize {
        self.shared.communicator.size()
    }

    /// What connects them.
    pub fn communicator(&self) -> &dyn Communicator {
        &*self.shared.communicator
    }

    /// Whether both are the same ranks.
    pub fn same(&self, other: &Ranks) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Which ranks share a host, by what their communicators say. The first call is collective.
    ///
    /// # Errors
    /// As [`Ranks::agree_on`], and all calls of a [`Communicator`].
    pub fn hosts(&self) -> Result<&Hosts> {
        if let Some(hosts) = self.shared.hosts.get() {
            return Ok(hosts);
        }
        self.agree_on(vec![("call", "which ranks share a host".to_owned())], Ok::<_, Error>(()))?;
        let name = self.shared.communicator.host();
        let mine = if name.is_empty() { format!("rank {}", self.rank()) } else { name };
        let mut all = vec![0_u64; self.size()];
        let bytes = bytemuck::cast_slice_mut(&mut all);
        self.shared.communicator.all_gather(&digest(mine.as_bytes()).to_ne_bytes(), bytes)?;
        Ok(self.shared.hosts.get_or_init(|| Hosts::of_names(&all)))
    }

    /// The number of the next plan, the same on every rank.
    pub(crate) fn next_plan(&self) -> u64 {
        self.shared.plans.load(Ordering::Relaxed)
    }

    /// Counts a plan on whose arguments all ranks agree: a rank that failed before counts none, and nor do others then.
    pub(crate) fn count_plan(&self) {
        self.shared.plans.fetch_add(1, Ordering::Relaxed);
    }

    /// Keeps other threads of this rank from communicating.
    pub(crate) fn lock(&self) -> MutexGuard<'_, ()> {
        // A panic cannot leave it inconsistent.
        self.shared.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `mine`, if no rank failed. Collective.
    ///
    /// # Errors
    /// The rank's own error; [`Error::OtherRank`] naming a rank that failed.
    pub fn together<R, E: Display + From<Error>>(&self, mine: Result<R, E>) -> Result<R, E> {
        self.agree(&[], Vec::new, mine)
    }

    /// Whether it is so on some rank, if no rank failed. Collective.
    ///
    /// # Errors
    /// [`Error::OtherRank`] naming a rank that failed, [`Error::RanksDiffer`] naming one that makes another call, and
    /// as all calls of a [`Communicator`].
    pub fn any(&self, mine: bool) -> Result<bool> {
        let words = |flag: bool| vec![("call", ANY.to_owned()), ("answer", flag.to_string())];
        let mut differ = false;
        let key = |flag: bool| [digest(ANY.as_bytes()), u64::from(flag)];
        let judge = &mut |reports: &[String]| {
            let known = [true, false].map(|flag| given(digest_of(&key(flag)), words(flag)));
            differ = reports.iter().all(|report| known.contains(report));
            if differ { None } else { Some(differing(reports)) }
        };
        let all = self.agree_by(&key(mine), &|| words(mine), Ok::<_, Error>(mine), judge)?;
        Ok(all || differ)
    }

    /// `mine`, if no rank failed and all ranks give the same arguments, each a name and a value. Collective.
    ///
    /// # Errors
    /// The rank's own error; [`Error::OtherRank`] naming a rank that failed; [`Error::RanksDiffer`] naming a rank
    /// that gives something else.
    pub fn agree_on<R, E: Display + From<Error>>(
        &self,
        arguments: Vec<(&'static str, String)>,
        mine: Result<R, E>,
    ) -> Result<R, E> {
        let key = arguments.iter().map(|(_, value)| digest(value.as_bytes()));
        let key: Vec<u64> = key.collect();
        self.agree(&key, || arguments.clone(), mine)
    }

    /// `mine`, if no rank failed and all ranks give the same `key`; `arguments` are those in words, which are made
    /// when they differ. One reduction of three numbers, and nothing else, when all is well. Collective.
    ///
    /// # Errors
    /// The rank's own error; [`Error::OtherRank`] naming a rank that failed; [`Error::RanksDiffer`] naming a rank
    /// that gives something else.
    pub(crate) fn agree<R, E: Display + From<Error>>(
        &self,
        key: &[u64],
        arguments: impl Fn() -> Arguments,
        mine: Result<R, E>,
    ) -> Result<R, E> {
        self.agree_by(key, &arguments, mine, &mut |reports| Some(differing(reports)))
    }

    /// The same, where `judge` finds what is wrong with reports of ranks none of which failed.
    fn agree_by<R, E: Display + From<Error>>(
        &self,
        key: &[u64],
        arguments: &dyn Fn() -> Arguments,
        mine: Result<R, E>,
        judge: &mut dyn FnMut(&[String]) -> Option<Error>,
    ) -> Result<R, E> {
        if self.size() > 1 {
            let failure = mine.as_ref().err().map(|e| format!("{FAILED}{e}"));
            self.settle(key, arguments, failure, judge)?;
        }
        mine
    }

    /// The same with the report of this rank if it failed, whose failure is none here. Not generic, as there are
    /// hundreds of types of what ranks agree on.
    fn settle(
        &self,
        key: &[u64],
        arguments: &dyn Fn() -> Arguments,
        failure: Option<String>,
        judge: &mut dyn FnMut(&[String]) -> Option<Error>,
    ) -> Result<()> {
        let (digest, failed) = (digest_of(key), failure.is_some());
        let mut found = [u64::from(failed), digest, !digest];
        self.shared.communicator.all_reduce_max(&mut found)?;
        if found[0] == 0 && found[1] == !found[2] {
            return Ok(());
        }
        let report = failure.unwrap_or_else(|| given(digest, arguments()));
        let reports = self.gather_reports(&report)?;
        if failed {
            return Ok(());
        }
        let mut failures = reports.iter().map(|text| text.strip_prefix(FAILED)).enumerate();
        if let Some((rank, reason)) = failures.find_map(|(rank, text)| Some((rank, text?))) {
            return Err(Error::OtherRank { rank, reason: reason.into() });
        }
        judge(&reports).map_or(Ok(()), Err)
    }

    /// What every rank gives as `mine`, as far as it fits into a kilobyte. Collective.
    ///
    /// # Errors
    /// As [`Ranks::agree_on`], and all calls of a [`Communicator`].
    pub fn gather_text(&self, mine: &str) -> Result<Vec<String>> {
        self.agree_on(vec![("call", "gathering text".to_owned())], Ok::<_, Error>(()))?;
        self.gather_reports(mine)
    }

    /// The same where all ranks are known to call it.
    fn gather_reports(&self, mine: &str) -> Result<Vec<String>> {
        let mut bytes = vec![0; SHOWN];
        let len = mine.len().min(SHOWN);
        bytes[..len].copy_from_slice(&mine.as_bytes()[..len]);
        let mut all = vec![0; SHOWN * self.size()];
        self.shared.communicator.all_gather(&bytes, &mut all)?;
        let text = |bytes: &[u8]| {
            String::from_utf8_lossy(bytes)
                .trim_end_matches(['\0', char::REPLACEMENT_CHARACTER])
                .to_owned()
        };
        Ok(all.chunks_exact(SHOWN).map(text).collect())
    }
}

/// The report of a rank that gives these arguments, whose key has this digest: what a report cuts is in it.
fn given(digest: u64, arguments: Arguments) -> String {
    let lines = arguments.into_iter().map(|(what, given)| format!("\n{what}\t{given}"));
    format!("{GIVEN}{digest:016x}{}", lines.collect::<String>())
}

/// The first argument that is not the same on every rank.
fn differing(reports: &[String]) -> Error {
    let same = |r: usize, other: usize| reports[r] == reports[other];
    // The first of the ranks that most agree with, and one that does not.
    let votes = |r: usize| (0..reports.len()).filter(|other| same(r, *other)).count();
    let other = (0..reports.len()).rev().max_by_key(|r| votes(*r)).unwrap_or(0);
    let rank = (0..reports.len()).find(|r| !same(*r, other)).unwrap_or(0);
    let [mine, others] = [rank, other].map(|r| -> Vec<(&str, &str)> {
        reports[r].lines().filter_map(|line| line.split_once('\t')).collect()
    });
    let of = |all: &[(&str, &str)], name: &str| {
        all.iter().find(|(of, _)| *of == name).map_or("none", |(_, given)| *given).to_owned()
    };
    let names = others.iter().chain(&mine).map(|(name, _)| *name);
    let differs = names.map(|name| (name, of(&mine, name), of(&others, name)));
    let (what, found, expected) =
        differs.into_iter().find(|(_, found, expected)| found != expected).unwrap_or_else(|| {
            let digest = |r: usize| reports[r].get(1..17).unwrap_or_default().to_owned();
            ("arguments past what a message shows, with the digest", digest(rank), digest(other))
        });
    Error::RanksDiffer { what: what.into(), rank, found, other, expected }
}

fn digest_of(key: &[u64]) -> u64 {
    digest(bytemuck::cast_slice(key))
}

/// FNV-1a: the same on every machine.
fn digest(bytes: &[u8]) -> u64 {
    let step = |h: u64, b: &u8| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each of three ranks gets, of which rank 2 does something else if `last` says so.
    fn on_ranks(flags: [bool; 3], last: Option<fn(&Ranks) -> Result<bool>>) -> Vec<Result<bool>> {
        std::thread::scope(|scope| {
            let call = move |r: Ranks| match last {
                Some(last) if r.rank() == 2 => last(&r),
                _ => r.any(flags[r.rank()]),
            };
            let ranks = Ranks::in_process(3).into_iter();
            let threads: Vec<_> = ranks.map(|r| scope.spawn(move || call(r))).collect();
            threads.into_iter().map(|t| t.join().expect("no panic")).collect()
        })
    }

    #[test]
    fn one_rank_is_enough() {
        let found = |flags| on_ranks(flags, None).into_iter().collect::<Result<Vec<_>>>();
        assert!(matches!(found([false; 3]), Ok(all) if all == [false; 3]));
        for flags in [[true; 3], [true, false, false], [false, true, true]] {
            assert!(matches!(found(flags), Ok(all) if all == [true; 3]), "{flags:?}");
        }
    }

    #[test]
    fn another_call_or_a_failure_of_a_rank_is_an_error_on_all() {
        let another = |r: &Ranks| r.agree_on(vec![("call", "another".into())], Ok(true));
        for flags in [[false; 3], [true; 3], [true, false, false]] {
            for found in on_ranks(flags, Some(another)) {
                assert!(matches!(found, Err(Error::RanksDiffer { .. })), "{flags:?}: {found:?}");
            }
            let failing = |r: &Ranks| {
                let what = "arrays";
                r.together(Err(Error::OutOfMemory { what, needed: 8, available: None }))
            };
            let found = on_ranks(flags, Some(failing));
            assert!(matches!(found[2], Err(Error::OutOfMemory { .. })));
            for found in &found[..2] {
                assert!(matches!(found, Err(Error::OtherRank { rank: 2, .. })), "{found:?}");
            }
        }
    }

    #[test]
    fn arguments_that_a_report_cuts_are_compared() {
        let call = |r: &Ranks| {
            let seed = if r.rank() == 2 { "2" } else { "1" };
            let path = "x".repeat(2 * SHOWN);
            r.agree_on(vec![("path", path), ("seed", seed.into())], Ok::<_, Error>(true))
        };
        let all = std::thread::scope(|scope| {
            let ranks = Ranks::in_process(3).into_iter();
            let threads: Vec<_> = ranks.map(|r| scope.spawn(move || call(&r))).collect();
            threads.into_iter().map(|t| t.join().expect("no panic")).collect::<Vec<_>>()
        });
        for found in all {
            assert!(
                matches!(found, Err(Error::RanksDiffer { rank: 2, other: 0, .. })),
                "{found:?}"
            );
        }
    }

    #[test]
    fn an_argument_that_a_rank_lacks_is_named() {
        let reports = [vec![("copies", "2"), ("call", "plan")], vec![("call", "plan")]];
        let reports: Vec<String> = reports
            .into_iter()
            .enumerate()
            .map(|(k, all)| given(k as u64, all.into_iter().map(|(n, v)| (n, v.into())).collect()))
            .collect();
        let Error::RanksDiffer { what, rank, found, other, expected } = differing(&reports) else {
            panic!("another error");
        };
        assert_eq!((what.as_str(), rank, found.as_str()), ("copies", 1, "none"));
        assert_eq!((other, expected.as_str()), (0, "2"));
    }
}
