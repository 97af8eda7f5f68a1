//! Ranks as threads, for unit tests.

use crate::Ranks;

/// What `work` gives on every rank, in order.
pub fn on_ranks<R: Send>(ranks: Vec<Ranks>, work: impl Fn(Ranks) -> R + Sync) -> Vec<R> {
    let work = &work;
    std::thread::scope(|scope| {
        let threads: Vec<_> = ranks.into_iter().map(|r| scope.spawn(move || work(r))).collect();
        let results = threads.into_iter().map(|t| t.join());
        results.map(|r| r.unwrap_or_else(|e| std::panic::resume_unwind(e))).collect()
    })
}
