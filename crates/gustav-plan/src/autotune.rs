//! Choosing by trial: every candidate is timed, the fastest is taken.

use std::fmt::Display;

use gustav_core::{Error, Result};

/// The fastest of `candidates` and the reason, by the seconds that `time` returns.
///
/// A candidate that does not support the problem, or has not the memory for it, is passed over.
///
/// # Errors
/// Any other error of `time`; the last refusal when no candidate supports the problem.
pub fn fastest<C: Clone + Display>(
    candidates: impl IntoIterator<Item = C>,
    mut time: impl FnMut(&C) -> Result<f64>,
) -> Result<(C, String)> {
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
    let Some((best, seconds)) = timed.first() else {
        return Err(refusal.unwrap_or_else(|| Error::Argument {
            name: "candidates",
            found: "none".into(),
            expected: "at least one to time".into(),
        }));
    };
    let mut reason = format!("fastest of {} timed, {:.3} ms", timed.len(), seconds * 1e3);
    if let Some((second, slower)) = timed.get(1) {
        reason += &format!("; next {second}, {:.3} ms", slower * 1e3);
    }
    Ok((best.clone(), reason))
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
    fn takes_the_fastest_and_passes_over_refusals() {
        let (best, reason) = fastest(Algorithm::ALL.iter().copied(), |a| match *a {
            Algorithm::MergePath => Ok(0.5),
            Algorithm::Csb => Ok(0.25),
            _ => Err(refuse(*a)),
        })
        .expect("two candidates work");
        assert_eq!(best, Algorithm::Csb);
        assert!(reason.starts_with("fastest of 2 timed, 250.000 ms; next merge-path"), "{reason}");
    }

    #[test]
    fn says_why_when_nothing_works() {
        let all_refuse = fastest([Algorithm::Csb], |a| Err(refuse(*a)));
        assert!(matches!(all_refuse, Err(Error::Unsupported { .. })));
        assert!(matches!(fastest::<Algorithm>([], |_| Ok(0.0)), Err(Error::Argument { .. })));
    }
}
