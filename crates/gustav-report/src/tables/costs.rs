//! How close `auto` comes to the limits of memory, and the cost of plans, masks and memory.

use std::collections::BTreeMap;

use gustav_core::{CsrView, DType, Problem};
use gustav_plan::DeviceProfile;
use gustav_plan::heuristics::cuda_spmm::inspects;

use super::ratios::{PRODUCT, RATIOS, by_name, by_product, product_cells};
use crate::WHOLE;
use crate::analysis::{Comparison, Platform, Product, grouped};
use crate::table::{Row, Table, number, row};
use crate::{Ratios, Record};

pub(super) fn limits(platforms: &[Platform]) -> Table {
    type Ratio = fn(&Record) -> Option<f64>;
    const LIMITS: [Ratio; 6] = [
        |r| Some(r.floor_ms? / r.execute_ms?),
        |r| Some(r.floor_ms? / r.single_ms?),
        |r| Some(r.floor_ms? / r.hot_ms?),
        |r| Some(r.floor_ms?.max(r.gather_ms?) / r.execute_ms?),
        |r| Some(r.floor_ms? / r.floor_ms?.max(r.gather_ms?)),
        |r| Some(r.ratio? * r.execute_ms? / r.floor_ms?.max(r.gather_ms?)),
    ];
    let mut rows = Vec::new();
    for platform in platforms {
        for (product, own) in platform.with_floor() {
            let geomean = |ratio: Ratio| {
                let found: Vec<_> =
                    own.iter().filter_map(|r| ratio(r)).filter(|x| *x > 0.0).collect();
                Ratios::of(&found).map_or("-".into(), |r| format!("{:.1}", 100.0 * r.geomean))
            };
            let names = product_cells(platform, &product);
            rows.push([names, row![own.len()], LIMITS.map(geomean).into()].concat());
        }
    }
    let caption = "Geomeans over the matrices, in percent: the memory floor over the time of auto; the \
                   same over that of single executions, where executions followed one another, and \
                   over that with hot caches, where it was measured beside; the longer of floor and \
                   gather limit over it; the floor over that longer limit, which is the fraction of \
                   the floor that a product reaches if it reuses no row of B above L2 and runs at the \
                   speed of the caches; and the best peer's time over that longer limit, which is how much \
                   faster than the peer such a product would be if its launch took no time (800 is eight times as fast).";
    let columns = format!(
        "{PRODUCT}, matrices, floor / time (%), floor / single (%), floor / hot (%), \
         longer limit / time (%), floor / longer limit (%), peer / longer limit (%)"
    );
    Table::new("limits", "Limits", &columns, caption, rows)
}

/// Numbers of calls for which plans are made: one, which has records of its own; a few; many.
const CALLS: [u64; 3] = [1, 8, 1000];
// A plan for few calls should cost less than this many executions.
const MOST: f64 = 10.0;

/// The cost of the plan of `auto` in executions, by the number of calls that it is made for.
pub(super) fn plans(platforms: &[Platform]) -> Table {
    let mut rows = Vec::new();
    for platform in platforms {
        let once = platform.records.iter().rev().filter(|r| r.algorithm == "once");
        let once: BTreeMap<_, _> = once.map(|r| ((&r.case, r.group), r)).collect();
        for (product, found) in platform.products("auto") {
            for calls in CALLS {
                let own = found.iter().map(|(_, c)| c.ours).filter(|r| r.gpu.is_some());
                let cost = |r: &Record| {
                    let r = planned(once.get(&(&r.case, r.group)).copied(), r, calls)?;
                    Some(r.plan_ms? / r.execute_ms?)
                };
                let costs: Vec<f64> = own.filter_map(cost).collect();
                let Some(all) = Ratios::of(&costs) else { continue };
                let over = costs.iter().filter(|cost| **cost >= MOST).count();
                // `best` is the largest ratio, that is, the most expensive plan.
                let [mean, most] = [all.geomean, all.best].map(|x| number(x, 2));
                let cells = row![calls, all.count, mean, most, over];
                rows.push([product_cells(platform, &product), cells].concat());
            }
        }
    }
    let caption = format!(
        "Time of planning over the time of one execution, by the number of calls that the plan is \
         made for: over the matrices the geomean, the largest, and how many cost {MOST} executions or \
         more. For {} calls of SpMM it is the timed plan that inspects row lengths, or \
         the one that does not, as the rule of auto says.",
        CALLS[1]
    );
    let columns = format!("{PRODUCT}, calls, matrices, geomean, largest, over");
    Table::new("plans", "Planning cost", &columns, caption, rows)
}

/// The record with the plan that `auto` makes for `calls`: `once` or `many`.
fn planned<'a>(once: Option<&'a Record>, many: &'a Record, calls: u64) -> Option<&'a Record> {
    match calls {
        1 => once,
        1000 => Some(many),
        _ if many.case.operation != "spmm" => None,
        _ => once.and_then(|once| Some(if inspects_rows(many, calls)? { many } else { once })),
    }
}

/// Whether `auto` would inspect the rows of this SpMM for `calls` calls.
fn inspects_rows(record: &Record, calls: u64) -> Option<bool> {
    let types = [DType::F32, DType::F64, DType::F16, DType::Bf16];
    let dtype = types.into_iter().find(|t| t.to_string() == record.case.dtype)?;
    let empty = CsrView::<f32, u32, u32>::new(0, 0, &[0], &[], &[]).ok()?;
    let (rows, cols, nnz) = (record.rows, record.cols, record.nnz);
    let columns = record.case.columns;
    let problem = Problem { rows, cols, nnz, columns, dtype, calls, ..Problem::spmm(&empty) };
    let gpu = record.gpu.as_ref()?;
    let profile = DeviceProfile {
        name: gpu.name.clone(),
        units: gpu.multiprocessors,
        lanes: 32,
        l2_bytes: gpu.l2_bytes,
        llc_bytes: gpu.l2_bytes,
    };
    Some(inspects(&problem, &profile))
}

pub(super) fn one_call(platforms: &[Platform]) -> Table {
    let rows = by_product(platforms, "once", |c| {
        let peer = c.peers.get("cusparse-default")?;
        // A single call: the peer's time is also of single executions.
        let theirs = if c.ours.sets.is_some() { peer.single_ms } else { peer.execute_ms };
        Some(theirs? / (c.ours.plan_ms? + c.ours.alone_ms()?))
    });
    let caption = "Time of cuSPARSE's default over one call of ours, planning counted in.";
    ratio_table("one-call", "One call with its plan", caption, rows)
}

pub(super) fn reuse(platforms: &[Platform]) -> Table {
    let saved = |c: &Comparison<'_>| Some(c.ours.execute_ms? / c.ours.reuse_ms?);
    let caption = "Time of one SpGEMM by auto over that of new values under its pattern.";
    let rows = by_product(platforms, "auto", saved);
    ratio_table("reuse", "Cost of symbolic work", caption, rows)
}

fn ratio_table(id: &'static str, title: &'static str, caption: &str, rows: Vec<Row>) -> Table {
    Table::new(id, title, &format!("{PRODUCT}, matrices, {RATIOS}"), caption, rows)
}

pub(super) fn masks(platforms: &[Platform]) -> Table {
    let mut ratios = Vec::new();
    for platform in platforms {
        for (case, round) in platform.rounds() {
            let whole = round.iter().find(|r| r.algorithm == WHOLE);
            let own = round.iter().filter(|r| r.algorithm != WHOLE);
            ratios.extend(own.filter_map(|r| {
                let names = row![platform.name, case.mask, case.dtype, r.engine_name()];
                Some((names, whole?.execute_ms? / r.execute_ms?))
            }));
        }
    }
    let columns = format!("platform, mask, type, engine, cases, {RATIOS}");
    let caption = "Time of all of C over that of a product under a mask.";
    Table::new("masks", "Products under a mask", &columns, caption, by_name(ratios))
}

/// Peak memory over the allowed peak of an SpGEMM; the worst is the largest.
pub(super) fn memory(platforms: &[Platform]) -> Table {
    let mut rows = Vec::new();
    for platform in platforms {
        let records = platform.latest();
        let used = records.filter_map(|r| {
            let key = (Product::of(&r.case), r.engine_name());
            Some((key, (r.peak_memory? as f64 / r.memory_bar? as f64, r.case.matrix.as_str())))
        });
        for ((product, engine), used) in grouped(used) {
            let parts: Vec<_> = used.iter().map(|u| u.0).collect();
            let Some(all) = Ratios::of(&parts) else { continue };
            let largest = used.iter().max_by(|a, b| a.0.total_cmp(&b.0)).map_or("", |u| u.1);
            let above = format!("{:.0}", 100.0 * (1.0 - all.lost));
            let [mean, most] = [all.geomean, all.best].map(|x| number(x, 2));
            let cells = row![engine, all.count, mean, most, above, largest];
            rows.push([product_cells(platform, &product), cells].concat());
        }
    }
    let caption = "Peak memory of an SpGEMM over that of the operands and twice that of C, which it \
                   should not pass.";
    let columns = format!("{PRODUCT}, engine, cases, geomean, largest, above 1 (%), largest on");
    Table::new("memory", "Peak memory", &columns, caption, rows)
}
