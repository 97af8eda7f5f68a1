//! Tables of published studies, and their claims with the results here.

use super::ratios::{RATIOS, cells};
use crate::Layouts;
use crate::analysis::{PaperB, Platform, Product, VENDOR_FUNCTIONS, grouped, row_length_rules};
use crate::table::{Row, Table, row};

/// Claims of Chen, Chen, Shih, Lee (2025), with the results here.
pub(super) fn claims(platforms: &[Platform]) -> Table {
    let mut rows: Vec<Row> = Vec::new();
    for study in PaperB::all(platforms) {
        let claims = study.claims().into_iter();
        rows.extend(claims.map(|(claim, found)| row![study.gpu, claim, found]));
    }
    let caption = "Claims of the study on its kernels, and the results here.";
    Table::new("claims", "Claims of the study", "platform, claim, found", caption, rows)
}

/// What multiplies matrices of the host on a GPU at once.
const WHOLE: &str = "auto+transfers";

/// Products in tiles for several sizes of memory, beside the whole product (section 7.2 of that study).
pub(super) fn tiles(platforms: &[Platform]) -> Table {
    let mut rows: Vec<Row> = Vec::new();
    for platform in platforms {
        for (case, round) in
            platform.rounds_with(|round| round.iter().any(|r| r.algorithm == WHOLE))
        {
            let Some(whole) = round.iter().find(|r| r.algorithm == WHOLE) else { continue };
            for r in &round {
                let Some((ms, of_whole)) = r.execute_ms.zip(whole.execute_ms) else { continue };
                let (how, zeros) = (r.reason.as_deref().unwrap_or("the whole"), 1.0 - r.density());
                let names =
                    row![platform.name, case.dtype, r.rows, format!("{:.0}", 100.0 * zeros), how];
                let numbers = row![format!("{ms:.0}"), format!("{:.2}", ms / of_whole)];
                rows.push([names, numbers].concat());
            }
        }
    }
    let caption = "Random A times A from and to memory of the host: the whole product on the GPU, and tiled \
                   (section 7.2 of Chen, Chen, Shih, Lee, 2025) for the memory that operands and C, dense and in \
                   CSR form, take, for a quarter and for a sixteenth of it, which stand for matrices beyond a GPU's \
                   memory. The planner chooses the algorithm of the whole product and of a tile. Columns of B are \
                   cut where B takes more than half of the memory, else rows of A alone. Transfers and allocations \
                   are in the times.";
    let columns = "platform, type, N, zeros (%), how, ms, over the whole";
    Table::new("tiles", "Products in tiles", columns, caption, rows)
}

/// The rule of Yang, Buluc and Owens (section 5.4), which chooses between their two kernels.
pub(super) fn row_length_rule(platforms: &[Platform]) -> Table {
    let mut rows: Vec<Row> = Vec::new();
    for platform in platforms {
        for ((operation, dtype, columns), rule) in row_length_rules(&platform.records) {
            rows.push(row![platform.name, operation, dtype, columns, rule.matrices, rule]);
        }
    }
    let caption = "nonzero-split below a mean row length, else row-split: how often the faster of the \
                   two is chosen (99.3 % in the paper, with 9.35, on 157 matrices). Here nonzero-split is three \
                   kernels, one after another, and row-split one, which with its present registers is slower \
                   only where a single row takes long, whatever the mean; records from before are nearer to \
                   the paper.";
    let columns = "platform, product, type, columns, matrices, found";
    Table::new("row-length-rule", "The mean row length as the rule", columns, caption, rows)
}

/// The rule that the paper's speed-ups are of, and its two kernels.
const BESIDE_FUNCTIONS: [&str; 3] = ["mean-row-length", "row-split", "nonzero-split"];

/// Row-major products beside the vendor's in the layouts of the functions that Yang, Buluc and Owens had (figure 6).
pub(super) fn vendor_functions(platforms: &[Platform]) -> Table {
    let mut rows: Vec<Row> = Vec::new();
    for platform in platforms {
        for algorithm in BESIDE_FUNCTIONS {
            for function in &VENDOR_FUNCTIONS {
                let ratios = platform.ours(algorithm).into_iter().filter_map(|c| {
                    let case = &c.ours.case;
                    let of_application = !case.matrix.contains(':')
                        && case.layout == Layouts::RowMajor.name()
                        && case.operation == "spmm";
                    let ms = of_application.then(|| function.ms(platform, c.ours)).flatten()?;
                    Some((Product::of(case), ms / c.ours.execute_ms?))
                });
                for (product, ratios) in grouped(ratios) {
                    let names = row![platform.name, product.variant(), algorithm, function.title()];
                    let paper = if algorithm == BESIDE_FUNCTIONS[0] { function.paper } else { "" };
                    let Some(cells) = cells(&ratios) else { continue };
                    rows.push([names, cells, row![paper]].concat());
                }
            }
        }
    }
    let caption = "Time of the fastest peer in the layouts of the functions that the paper measured beside, over \
                   the time of the algorithm with B and C row-major, in another round of the same suite; no \
                   generated matrices. The peers of today have more algorithms for a layout than those \
                   functions were.";
    let columns =
        format!("platform, product, algorithm, peers in layouts, matrices, {RATIOS}, paper");
    Table::new("vendor-functions", "Beside csrmm and csrmm2", &columns, caption, rows)
}
