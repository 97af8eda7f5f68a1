//! How fast is it, beside whom? Engines (ours and peers) are timed in interleaved rounds on the same matrix, every
//! result is checked against the oracle in the same run, and what was measured goes into JSON
//! lines. `bench/METHODOLOGY.md` describes the protocol and its biases.
//!
//! ```no_run
//! use gustav_bench::{BenchArgs, read_records, run, summary};
//!
//! let outcome = run(&BenchArgs::new("quick", "quick.jsonl"))?;
//! println!("{} cases", outcome.measured);
//! println!("{}", summary(&read_records("quick.jsonl".as_ref())?));
//! # Ok::<(), gustav_core::Error>(())
//! ```

mod affinity;
mod allocator;
mod analysis;
mod args;
mod case;
mod change;
mod check;
mod cold;
mod counters;
mod cuda;
mod derived;
mod engine;
mod layouts;
mod listing;
mod machine;
mod mask;
mod measure;
mod peers;
mod programs;
mod record;
mod report;
mod run;
mod schedule;
mod study;
mod suite;
mod timing;
mod tune;
mod value;
mod workload;

pub use allocator::with_huge_pages;
pub use analysis::{Comparison, Ratios, VENDORS, caches, compare};
pub use args::{BenchArgs, Forecast, Outcome, Part};
pub use case::{Case, Filter};
pub use change::{Change, ChangeArgs, Changes, Verdict, changes};
pub use counters::{Counters, read as read_counters};
pub use cuda::{Gpu, gather_ms};
pub use derived::Derived;
pub use layouts::Layouts;
pub use machine::{Bandwidth, Machine};
pub use mask::Mask;
pub use programs::Solve;
pub use record::{Record, RecordFile, Stage, Status, parse as parse_records, read as read_records};
pub use report::{Report, Written, pictures, summary};
pub use run::run;
pub use schedule::forecast;
pub use suite::{Engines, Products, Source, Suite};

pub use timing::Timing;
pub use tune::{
    Folded, PassCallback, TuneArgs, TuneReport, Tuned, can_train, measure_candidates, read_tuning,
    train_predictor,
};
