//! Benchmarks. Engines (Gustav and peers) are timed in interleaved rounds on the same matrix, every
//! result is checked against the oracle in the same run, and the measurements become records of
//! `gustav-report`. `bench/METHODOLOGY.md` describes the protocol and its biases.
//!
//! ```no_run
//! use gustav_bench::{BenchArgs, run};
//! use gustav_report::{read_records, summary};
//!
//! let outcome = run(&BenchArgs::new("quick", "quick.jsonl"))?;
//! println!("{} cases", outcome.measured);
//! println!("{}", summary(&read_records("quick.jsonl".as_ref())?));
//! # Ok::<(), gustav_core::Error>(())
//! ```

mod affinity;
mod allocator;
mod args;
mod check;
mod cold;
mod composed;
mod cuda;
mod derived;
mod engine;
mod listing;
mod machine;
mod mask;
mod measure;
mod peers;
mod programs;
mod run;
mod schedule;
mod study;
mod suite;
mod timing;
mod tune;
mod value;
mod workload;

pub use allocator::with_huge_pages;
pub use args::{BenchArgs, Forecast, Outcome, Part, PeerProgram};
pub use cuda::gather_ms;
pub use derived::Derived;
pub use machine::Bandwidth;
pub use programs::Solve;
pub use run::run;
pub use schedule::forecast;
pub use suite::{Engines, Products, Source, Suite};
pub use timing::Timing;
pub use tune::{
    Calibrated, CostSample, CostSamples, PassCallback, Regret, TuneArgs, Tuned, calibrate,
    can_train, cost_samples, measure_candidates, train_predictor, write_bounds,
};
