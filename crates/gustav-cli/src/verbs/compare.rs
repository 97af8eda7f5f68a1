//! `gustav compare`: changes of times between two record files.

use std::fmt::Write;
use std::path::PathBuf;

use gustav_report::{Change, ChangeArgs, Changes, Ratios, Verdict, changes, read_records};
use serde::Serialize;

use crate::args::Printing;
use crate::failure::{Failure, Outcome, Result};
use crate::output;

/// Compare two files of records: what became slower or faster beyond noise
///
/// Noise is three standard errors of the medians, from the quartiles and rounds of the records.
/// Exit status 1 when one of Gustav's results became slower, wrong, failed, or is missing.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Records from before
    #[arg(value_name = "OLD.jsonl")]
    old: PathBuf,
    /// Records from after
    #[arg(value_name = "NEW.jsonl")]
    new: PathBuf,
    /// Changes below this percentage count as noise in any case
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0)]
    threshold: f64,
    /// Compare times divided by those of this peer in the same rounds
    #[arg(long, value_name = "PEER")]
    relative_to: Option<String>,
    /// Compare records of different machines or devices
    #[arg(long)]
    across_machines: bool,
    /// The new records cover a part of the cases: missing ones are no regression
    #[arg(long)]
    partial: bool,
    #[command(flatten)]
    printing: Printing,
}

#[derive(Serialize)]
struct Report {
    old: String,
    new: String,
    slower: usize,
    faster: usize,
    same: usize,
    broken: usize,
    repaired: usize,
    untimed: usize,
    #[serde(flatten)]
    changes: Changes,
}

/// Compares and prints the changes.
pub fn run(args: &Args) -> Result {
    if !(args.threshold >= 0.0 && args.threshold.is_finite()) {
        let words = format!("threshold: {} is not valid, expected 0 or more", args.threshold);
        return Err(Failure::Request(words));
    }
    let how = ChangeArgs {
        threshold: args.threshold / 100.0,
        relative_to: args.relative_to.clone(),
        across_machines: args.across_machines,
        partial: args.partial,
    };
    let changes = changes(&read_records(&args.old)?, &read_records(&args.new)?, &how)?;
    let text = text(&changes);
    let outcome = if changes.regressed(&how) { Outcome::Failed } else { Outcome::Done };
    let report = Report {
        old: args.old.display().to_string(),
        new: args.new.display().to_string(),
        slower: changes.count(Verdict::Slower),
        faster: changes.count(Verdict::Faster),
        same: changes.count(Verdict::Same),
        broken: changes.count(Verdict::Broken),
        repaired: changes.count(Verdict::Repaired),
        untimed: changes.count(Verdict::Untimed),
        changes,
    };
    output::print(args.printing, &report, &text)?;
    Ok(outcome)
}

/// Changes of Gustav beyond noise, missing and new cases, and the means.
fn text(changes: &Changes) -> String {
    let mut out = String::new();
    let listed =
        |c: &&Change| c.is_ours() && !matches!(c.verdict, Verdict::Same | Verdict::Untimed);
    for c in changes.changes.iter().filter(listed) {
        let word = match c.verdict {
            Verdict::Broken => "broken",
            Verdict::Slower => "slower",
            Verdict::Faster => "faster",
            _ => "repaired",
        };
        let number = |x: Option<f64>, digits: usize| {
            x.map_or_else(|| "-".into(), |x| format!("{x:.digits$}"))
        };
        let _ = writeln!(
            out,
            "{word:<8} {:>6} ±{:>3}%  {:<48} {:<24} {} -> {} ms",
            number(c.speedup, 2),
            number(c.noise.map(|n| 100.0 * n), 0),
            c.case.to_string(),
            c.engine,
            number(c.old_ms, 4),
            number(c.new_ms, 4),
        );
    }
    for (word, names) in [("missing", &changes.missing), ("new", &changes.added)] {
        for name in names {
            let _ = writeln!(out, "{word:<8} {name}");
        }
    }
    let mut mean = |who: &str, ratios: &Option<Ratios>| {
        if let Some(Ratios { count, geomean, worst, best, .. }) = ratios {
            let _ = writeln!(
                out,
                "{who}: old time over new {geomean:.3} (worst {worst:.2}, best {best:.2}) over \
                 {count} results"
            );
        }
    };
    mean("ours", &changes.ours);
    mean("peers", &changes.peers);
    let counts = [
        (changes.count(Verdict::Slower), "slower"),
        (changes.count(Verdict::Faster), "faster"),
        (changes.count(Verdict::Same), "same"),
        (changes.count(Verdict::Broken), "broken"),
        (changes.count(Verdict::Untimed), "untimed"),
        (changes.ours_missing, "missing"),
    ];
    let counts: Vec<_> = counts.iter().map(|(count, word)| format!("{count} {word}")).collect();
    let _ = writeln!(out, "{}", counts.join(", "));
    out
}
