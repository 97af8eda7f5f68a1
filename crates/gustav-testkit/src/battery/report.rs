//! The list of failures that a check panics with.

use std::panic::{AssertUnwindSafe, catch_unwind};

use gustav_core::{Result, Scalar};

use crate::oracle::Verdict;

/// Failures listed in full; more are only counted.
const LISTED: usize = 20;

/// Collects the outcome of every case.
#[derive(Default)]
pub(crate) struct Report {
    cases: usize,
    failures: Vec<String>,
}

impl Report {
    /// Takes in one case: `None` is a pass.
    pub fn case(&mut self, name: impl FnOnce() -> String, failure: Option<String>) {
        self.cases += 1;
        if let Some(failure) = failure {
            self.failures.push(format!("{}: {failure}", name()));
        }
    }

    /// Panics when a case failed, or when there was none.
    pub fn finish(self, what: &str) {
        assert!(self.cases > 0, "{what}: the settings leave no case");
        if self.failures.is_empty() {
            return;
        }
        let mut list = self.failures.iter().take(LISTED).cloned().collect::<Vec<_>>().join("\n  ");
        if self.failures.len() > LISTED {
            list += &format!("\n  and {} more", self.failures.len() - LISTED);
        }
        panic!("{what}: {} of {} cases failed\n  {list}", self.failures.len(), self.cases);
    }
}

/// Runs a kernel; an error or a panic comes back as text.
pub(crate) fn attempt<R>(run: impl FnOnce() -> Result<R>) -> std::result::Result<R, String> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(error)) => Err(format!("error: {error}")),
        Err(payload) => {
            let text = payload
                .downcast_ref::<String>()
                .map(String::as_str)
                .or_else(|| payload.downcast_ref::<&str>().copied());
            Err(format!("panic: {}", text.unwrap_or("without a message")))
        }
    }
}

/// What is wrong with a verdict, if anything.
pub(crate) fn wrong(verdict: Result<Verdict>) -> Option<String> {
    match verdict {
        Ok(verdict) if verdict.ok => None,
        Ok(verdict) => Some(verdict.to_string()),
        Err(error) => Some(format!("the result has a wrong shape: {error}")),
    }
}

/// The first position outside the matrix that was written, where the sentinel is gone.
pub(crate) fn written_outside<T: Scalar>(
    data: &[T],
    inside: impl Fn(usize) -> bool,
    sentinel: T,
) -> Option<String> {
    let same = |v: &T| bytemuck::bytes_of(v) == bytemuck::bytes_of(&sentinel);
    let position = (0..data.len()).find(|&k| !inside(k) && !same(&data[k]))?;
    Some(format!("padding of C was written at element {position} of its array"))
}
