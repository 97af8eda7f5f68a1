//! Analyses benchmark results: records in files of JSON lines, comparisons of them, tables and
//! figures, and an HTML page of both. Nothing is measured here; engines are only names in records.
//!
//! ```no_run
//! use gustav_report::{Beside, Report, read_records};
//!
//! let records = read_records("quick.jsonl".as_ref())?;
//! let written = Report::of(&records, &Beside::default())?.write("report.html".as_ref())?;
//! println!("{} figures", written.figures);
//! # Ok::<(), gustav_core::Error>(())
//! ```

// Data.
mod case;
mod counters;
mod csv;
mod engines;
mod feature_times;
mod layouts;
mod machine;
mod ranks;
mod record;
mod record_file;
mod regrets;
mod tuning;

mod analysis;

mod table;
mod tables;
mod text;

mod draw;
mod figures;

mod page;
mod parts;
mod report;

pub use analysis::{
    Change, ChangeArgs, Changes, Comparison, Ratios, Verdict, caches, changes, compare, quantile,
};
pub use case::{Case, Filter};
pub use counters::{Counters, read as read_counters};
pub use engines::{CHOOSERS, CUBLAS, CUSPARSE, CUSPARSE_BEST, UNFUSED, VENDORS, WHOLE};
pub use feature_times::{FeatureTime, FeatureTimes, read as read_feature_times};
pub use figures::picture_of_ranks;
pub use layouts::{Layouts, Mask};
pub use machine::{Gpu, Machine};
pub use ranks::{BesidePetsc, CountedBytes, RankRecords, SCHEMES, Speed, read_ranks};
pub use record::{
    Record, Stage, Status, cusparse_of_groups, parse as parse_records, read as read_records,
};
pub use record_file::{MeasurementId, RecordFile, RecordIndex};
pub use regrets::{Regret, read as read_regrets};
pub use report::{Beside, Report, Written, pictures, summary};
pub use tuning::{Folded, TuneReport, read_tuning};
