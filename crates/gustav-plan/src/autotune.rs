//! Choice by trial: every candidate is timed, the fastest is chosen.

use std::fmt::Display;

use gustav_core::{Error, Result};

/// Candidates and the seconds that they took, the fastest first.
#[derive(Clone, Debug, PartialEq)]
pub struct Timed<C> {
    best: (C, f64),
    others: Vec<(C, f64)>,
}

impl<C> Timed<C> {
    /// The fastest.
    pub fn best(&self) -> &C {
        &self.best.0
    }

    /// The union with other candidates, timed in the same way.
    #[must_use]
    pub fn and(self, more: Timed<C>) -> Self {
        let mut all: Vec<(C, f64)> = [self, more].into_iter().flat_map(Timed::into_all).collect();
        all.sort_by(|a, b| a.1.total_cmp(&b.1));
        let best = all.remove(0);
        Timed { best, others: all }
    }

    fn into_all(self) -> impl Iterator<Item = (C, f64)> {
        std::iter::once(self.best).chain(self.others)
    }

    /// All, the fastest first.
    pub fn iter(&self) -> impl Iterator<Item = &(C, f64)> {
        std::iter::once(&self.best).chain(&self.others)
    }
}

impl<C: Display> Timed<C> {
    /// Why the fastest was chosen.
    pub fn reason(&self) -> String {
        let (count, ms) = (1 + self.others.len(), self.best.1 * 1e3);
        let mut reason = format!("fastest of {count} timed, {ms:.3} ms");
        if let Some((second, slower)) = self.others.first() {
            reason += &format!("; next {second}, {:.3} ms", slower * 1e3);
        }
        reason
    }
}

/// `candidates` sorted by the seconds that `time` returns.
///
/// Candidates that do not support the problem, or lack the memory for it, are skipped.
///
/// # Errors
/// Any other error of `time`; the last such error when no candidate is left.
pub fn timed<C>(
    candidates: impl IntoIterator<Item = C>,
    mut time: impl FnMut(&C) -> Result<f64>,
) -> Result<Timed<C>> {
    let mut timed: Vec<(C, f64)> = Vec::new();
    let mut refusal = None;
    for candidate in candidates {
        match time(&candidate) {
            Ok(seconds) => timed.push((candidate, seconds)),
            Err(e @ (Error::Unsupported { .. } | Error::OutOfMemory { .. })) => refusal = Some(e),
            Err(e) => return Err(e),
        }
    }
    timed.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut timed = timed.into_iter();
    match timed.next() {
        Some(best) => Ok(Timed { best, others: timed.collect() }),
        None => Err(refusal.unwrap_or_else(|| Error::Argument {
            name: "candidates",
            found: "none".into(),
            expected: "at least one to time".into(),
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Algorithm;

    fn refuse(algorithm: Algorithm) -> Error {
        Error::Unsupported {
            problem: "this".into(),
            backend: algorithm.to_string(),
            reason: "of the test".into(),
            nearest: "none".into(),
        }
    }

    #[test]
    fn takes_the_fastest_and_skips_refusals() {
        let all = timed(Algorithm::ALL.iter().copied(), |a| match *a {
            Algorithm::MergePath => Ok(0.5),
            Algorithm::Csb => Ok(0.25),
            _ => Err(refuse(*a)),
        })
        .expect("two candidates work");
        let reason = all.reason();
        assert_eq!(all.iter().map(|(_, s)| *s).collect::<Vec<_>>(), [0.25, 0.5]);
        assert_eq!(*all.best(), Algorithm::Csb);
        let faster = timed([Algorithm::RowSplit], |_| Ok(0.125)).expect("one works");
        let both = all.and(faster);
        assert_eq!(both.iter().map(|(_, s)| *s).collect::<Vec<_>>(), [0.125, 0.25, 0.5]);
        assert!(reason.starts_with("fastest of 2 timed, 250.000 ms; next merge-path"), "{reason}");
    }

    #[test]
    fn says_why_when_nothing_works() {
        let all_refuse = timed([Algorithm::Csb], |a| Err(refuse(*a)));
        assert!(matches!(all_refuse, Err(Error::Unsupported { .. })));
        assert!(matches!(timed::<Algorithm>([], |_| Ok(0.0)), Err(Error::Argument { .. })));
    }
}
