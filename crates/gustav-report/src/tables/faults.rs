//! Failures, and the machines of the records.

use crate::analysis::{Platform, grouped_twice};
use crate::table::{Row, Table, row};
use crate::{Record, Status};

// A time is unsteady if the upper quartile over the lower one exceeds this.
const UNSTEADY: f64 = 2.0;

pub(super) fn faults(platforms: &[Platform]) -> Table {
    let fault = |r: &Record| {
        let spread = r.lower_ms.zip(r.upper_ms).filter(|(low, high)| *high > UNSTEADY * low);
        let word = match (r.status, spread) {
            (Status::Wrong, _) => "WRONG",
            (Status::Failed, _) => "failed",
            (Status::Skipped, _) => "skipped",
            (Status::Ok, Some((low, high))) => {
                return Some(("unsteady", format!("quartiles {low:.4} and {high:.4} ms")));
            }
            (Status::Ok, None) => return None,
        };
        Some((word, r.message.clone().unwrap_or_default()))
    };
    let of = |platform: &Platform| {
        let all = platform.records.iter().chain(&platform.programs);
        let line = |r: &Record| {
            let (word, why) = fault(r)?;
            Some(row![platform.name, word, r.engine_name(), r.case, why])
        };
        all.filter_map(line).collect::<Vec<_>>()
    };
    let caption = format!(
        "Results that the oracle refused, engines that failed, and cases that were not tried: \
         none of them has a time. Of unsteady times the upper quartile is more than {UNSTEADY} times \
         the lower: their ratios are not reliable."
    );
    let rows = platforms.iter().flat_map(of).collect();
    let title = "Wrong, failed, skipped, unsteady";
    Table::new("faults", title, "platform, status, engine, case, reason", caption, rows)
}

pub(super) fn machines(platforms: &[Platform]) -> Table {
    let machine = |r: &Record| match &r.gpu {
        Some(g) => format!(
            "{}, compute capability {}, {} multiprocessors, copies at {:.1} TB/s, L2 gives \
             {:.1} TB/s, driver {}",
            g.name,
            g.compute_capability,
            g.multiprocessors,
            g.copy_bandwidth / 1e12,
            g.l2_bandwidth / 1e12,
            g.driver
        ),
        None => format!("{}, {} cores, {}", r.machine.cpu, r.machine.cores, r.machine.system),
    };
    let versions = |r: &Record| {
        let words = r.versions.iter().map(|(name, version)| format!("{name} {version}"));
        words.collect::<Vec<_>>().join(", ")
    };
    let mut rows: Vec<Row> = Vec::new();
    for platform in platforms {
        let engines = platform.records.iter().map(|r| (&r.engine, (machine(r), versions(r)), ()));
        for (engine, found) in grouped_twice(engines) {
            rows.extend(found.into_iter().map(|((m, v), _)| row![platform.name, engine, m, v]));
        }
    }
    let caption = "Machines, devices and versions, as the records hold them.";
    let columns = "platform, engine, machine, versions";
    Table::new("machines", "Machines and versions", columns, caption, rows)
}
