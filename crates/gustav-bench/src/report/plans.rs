//! What plans cost on GPUs, in executions.

use gustav_core::{CsrView, DType, Problem};
use gustav_plan::DeviceProfile;
use gustav_plan::heuristics::cuda_spmm::looks;

use super::site::{Product, Site};
use super::table::Table;
use crate::{Ratios, Record};

/// Calls that a plan is made for: one, of which there are records of their own; a few; many.
const CALLS: [u64; 3] = [1, 8, 1000];
// A plan for few calls is to cost less than so many executions.
const MOST: f64 = 10.0;

/// Executions that the plan of `auto` costs, by the number of calls that it is made for.
pub(crate) fn table(sites: &[Site]) -> Table {
    let mut rows = Vec::new();
    for site in sites {
        for (product, found) in site.products(&site.ours("auto")) {
            let auto: Vec<&Record> = found.iter().map(|f| f.1.ours).collect();
            for calls in CALLS {
                let costs: Vec<f64> = auto
                    .iter()
                    .filter(|r| r.gpu.is_some())
                    .filter_map(|r| {
                        let r = planned(site, r, &product, calls)?;
                        Some(r.plan_ms? / r.execute_ms?)
                    })
                    .collect();
                let Some(all) = Ratios::of(&costs) else { continue };
                let over = costs.iter().filter(|cost| **cost >= MOST).count();
                rows.push(vec![
                    site.name.clone(),
                    product.name().into(),
                    product.dtype.clone(),
                    product.detail(),
                    calls.to_string(),
                    all.count.to_string(),
                    format!("{:.2}", all.geomean),
                    // The dearest is the best ratio of times.
                    format!("{:.2}", all.best),
                    over.to_string(),
                ]);
            }
        }
    }
    Table {
        id: "plans",
        title: "What plans cost",
        caption: format!(
            "Time of planning over the time of one execution, by the number of calls that the plan is \
             made for: over the matrices the geomean, the dearest, and how many cost {MOST} executions \
             or more. For {} calls of SpMM the rule that decides whether rows are looked at says which \
             of the two plans that were timed it is.",
            CALLS[1]
        ),
        head: &[
            "place", "product", "type", "of", "calls", "matrices", "geomean", "dearest", "over",
        ],
        rows,
    }
}

/// The record of the plan that `auto`, whose plan for many calls `many` is, makes for `calls`.
fn planned<'a>(
    site: &'a Site,
    many: &'a Record,
    product: &Product,
    calls: u64,
) -> Option<&'a Record> {
    let once = || {
        let same = |r: &&Record| r.case == many.case && r.group == many.group;
        site.records.iter().filter(same).find(|r| r.algorithm == "once")
    };
    match calls {
        1 => once(),
        1000 => Some(many),
        _ if product.operation != "spmm" => None,
        _ => {
            let once = once()?;
            Some(if looked_at(many, calls)? { many } else { once })
        }
    }
}

/// Whether `auto` would look at the rows of this SpMM for so many calls.
fn looked_at(record: &Record, calls: u64) -> Option<bool> {
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
    Some(looks(&problem, &profile))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Gpu;
    use crate::record::tests::record;

    #[test]
    fn few_calls_take_the_plan_that_the_rule_says() {
        let gpu = Gpu { name: "a GPU".into(), multiprocessors: 132, ..Gpu::default() };
        let timed =
            |matrix: &str, engine: &str, algorithm: &str, nnz: usize, plan_ms: f64| Record {
                execute_ms: Some(0.5),
                plan_ms: Some(plan_ms),
                nnz,
                rows: nnz / 8,
                gpu: Some(gpu.clone()),
                ..record(matrix, engine, algorithm)
            };
        let mut records = Vec::new();
        for (matrix, nnz, plan_ms) in [("small", 8_000, 6.0), ("large", 800_000_000, 1.0)] {
            records.push(timed(matrix, "gustav", "auto", nnz, plan_ms));
            records.push(timed(matrix, "gustav", "once", nnz, 0.05));
            records.push(timed(matrix, "cusparse-alg2", "default", nnz, 1.0));
        }
        let rows = table(&Site::all(&records)).rows;
        let of = |calls: &str| {
            let row = rows.iter().find(|r| r[4] == calls).expect("a row");
            row[5..].to_vec()
        };
        assert_eq!(of("1"), ["2", "0.10", "0.10", "0"]);
        // The small one is not looked at for a few calls, the large one is.
        assert_eq!(of("8"), ["2", "0.45", "2.00", "0"]);
        assert_eq!(of("1000"), ["2", "4.90", "12.00", "1"]);
    }
}
