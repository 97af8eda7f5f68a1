//! What records say of row orders: each beside rows as stored, where those were measured, and beside what the
//! same algorithm does without one.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::summary::{header, line};
use crate::report::gains;
use crate::{Case, Record};

/// Row orders of one algorithm on one case.
struct Ordered<'r> {
    case: &'r Case,
    /// Without an order.
    own: &'r Record,
    /// What gains are over.
    base: &'static str,
    /// Gain of everything else.
    others: Vec<(&'r str, f64)>,
    /// The fastest order.
    best: Option<(&'r str, &'r Record)>,
}

/// Time of `base` over that of `other`; above 1 the other pays.
fn ratio(base: &Record, other: &Record) -> Option<f64> {
    Some(base.execute_ms? / other.execute_ms?)
}

fn collect(records: &[Record]) -> Vec<Ordered<'_>> {
    let ours = || records.iter().filter(|r| r.engine == "gustav");
    let mut by_case = BTreeMap::<(&Case, u64, &str), Vec<(&str, &Record)>>::new();
    for r in ours() {
        if let Some((algorithm, order)) = r.algorithm.split_once('@') {
            by_case.entry((&r.case, r.group, algorithm)).or_default().push((order, r));
        }
    }
    let mut found = Vec::new();
    for ((case, group, algorithm), orders) in by_case {
        let key = (case, group, algorithm);
        let same = |r: &&Record| (&r.case, r.group, r.algorithm.as_str()) == key;
        let Some(own) = ours().find(same) else { continue };
        let time = |r: &Record| r.execute_ms.unwrap_or(f64::INFINITY);
        let best = orders.iter().copied().min_by(|a, b| time(a.1).total_cmp(&time(b.1)));
        let (base, others) = gains(own, orders);
        found.push(Ordered { case, own, base, others, best });
    }
    found
}

/// Tables by order and by matrix, where records name orders.
pub(super) fn orders(out: &mut String, records: &[Record]) {
    let all = collect(records);
    if all.is_empty() {
        return;
    }
    let mut by_order = BTreeMap::<String, Vec<f64>>::new();
    for Ordered { case, own, base, others, .. } in &all {
        let (algorithm, n) = (&own.algorithm, case.columns);
        let mut best = 1f64;
        for (name, ratio) in others {
            by_order
                .entry(format!("{algorithm} n={n} {name} over {base}"))
                .or_default()
                .push(*ratio);
            best = best.max(*ratio);
        }
        by_order.entry(format!("{algorithm} n={n} the best over {base}")).or_default().push(best);
    }
    header(out, "Gain of each row order");
    for (title, ratios) in by_order {
        line(out, &title, &ratios, "");
    }
    let _ = writeln!(
        out,
        "\nThe best row order of each matrix, over none, and executions that pay for it"
    );
    for Ordered { case, own, best, .. } in &all {
        let Some((name, best, ratio)) = best.and_then(|(name, r)| Some((name, r, ratio(own, r)?)))
        else {
            continue;
        };
        let extra = best.plan_ms.zip(own.plan_ms).map(|(order, plain)| order - plain);
        let saved = own.execute_ms.zip(best.execute_ms).map(|(plain, order)| plain - order);
        let calls = extra.zip(saved.filter(|ms| *ms > 0.0)).map(|(ms, saved)| ms / saved);
        let calls = calls.map_or("never".into(), |calls| format!("{:.0}", calls.max(0.0)));
        let part = |r: &Record| Some(100.0 * r.floor_ms? / r.execute_ms?);
        let _ = writeln!(
            out,
            "{ratio:>6.2}  {:<48} {name:<24} {calls:>8} calls, floor {:.0}% to {:.0}%",
            case.to_string(),
            part(own).unwrap_or(f64::NAN),
            part(best).unwrap_or(f64::NAN),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    fn of_stored(own: &Record, execute_ms: f64) -> Record {
        let algorithm = format!("{}@stored", own.algorithm);
        Record { algorithm, execute_ms: Some(execute_ms), ..own.clone() }
    }

    #[test]
    fn orders_stand_beside_the_stored_one() {
        let of = |algorithm: &str, execute_ms: f64, plan_ms: f64| Record {
            execute_ms: Some(execute_ms),
            plan_ms: Some(plan_ms),
            floor_ms: Some(1.0),
            ..record("m", "gustav", algorithm)
        };
        let records = [
            of("segmented", 2.0, 1.0),
            of("segmented@lpt", 1.0, 11.0),
            of("segmented@plain", 4.0, 1.0),
            of("row-split", 9.0, 1.0),
        ];
        let mut text = String::new();
        orders(&mut text, &records);
        let of = |title: &str| {
            let line = text.lines().find(|l| l.starts_with(title)).expect(title);
            line[title.len()..].split_whitespace().nth(1).map(str::to_owned).expect("a geomean")
        };
        assert_eq!(of("segmented n=8 lpt over its own list"), "2.00");
        assert_eq!(of("segmented n=8 plain over its own list"), "0.50");
        assert_eq!(of("segmented n=8 the best over its own list"), "2.00");
        assert!(text.contains("10 calls, floor 50% to 100%"), "{text}");
        // Beside rows as stored, what an algorithm does without an order is an order as well.
        let mut all = records.to_vec();
        all.push(of_stored(&records[0], 3.0));
        text.clear();
        orders(&mut text, &all);
        for (order, gain) in [("lpt", "3.00"), ("its own list", "1.50"), ("the best", "3.00")] {
            let title = format!("segmented n=8 {order} over stored");
            let line = text.lines().find(|l| l.starts_with(&title)).expect("a line");
            assert_eq!(line[title.len()..].split_whitespace().nth(1), Some(gain), "{text}");
        }
        // What is saved is saved of what would be done without one.
        assert!(text.contains("10 calls, floor 50% to 100%"), "{text}");
        text.clear();
        orders(&mut text, &records[3..]);
        assert!(text.is_empty());
    }
}
