//! Whole programs.

use crate::analysis::{Platform, Ratios, grouped};
use crate::table::{Row, Table, number, row};
use crate::{Record, Status};

const NAMES: &str = "cg: conjugate gradients with many right-hand sides; eigenvectors: the smallest eigenvalues by \
                     LOBPCG; pagerank: power iteration; gcn-training and gat-training: an epoch of two layers of graph convolution or attention; paths: shortest paths \
                     over min and +.";

pub(super) fn programs(platforms: &[Platform]) -> Table {
    let of = |platform: &Platform| {
        let line = |r: &Record| {
            let (case, share) = (&r.case, number(r.product_percentage(), 0));
            let [total, products, ratio] =
                [r.execute_ms, r.product_ms, r.ratio].map(|x| number(x, 3));
            let names =
                row![platform.name, case.operation, case.matrix, case.columns, r.engine_name()];
            let calls = r.products.map_or(String::new(), |n| n.to_string());
            [names, vec![total, products, share, calls, ratio]].concat()
        };
        let right = platform.programs.iter().filter(|r| r.status == Status::Ok);
        right.map(line).collect::<Vec<_>>()
    };
    let caption = format!(
        "Time to solution, the products in it, and the time of the best other engine over that of gustav. {NAMES} \
         The code around the products is the same for all engines but pyg and pyg-csr, which are networks of PyTorch \
         Geometric on edge lists and on CSR tensors. On a GPU everything stays in its memory, products are timed \
         in runs of their own, and cusparse is the fastest of its algorithms in a trial, but for SpMVOp. The engine loop is a loop \
         over rows on one thread. Other libraries on a CPU are timed in their products, beside the rest of the \
         program as it was around gustav's."
    );
    let columns = "platform, program, matrix, columns, engine, total (ms), products (ms), products (%), \
                   products, over the best other";
    let rows = platforms.iter().flat_map(of).collect();
    Table::new("programs", "Whole programs", columns, caption, rows)
}

pub(super) fn ratios(platforms: &[Platform]) -> Table {
    let of = |platform: &Platform| {
        let right = |r: &&Record| r.status == Status::Ok;
        let ours = platform.programs.iter().filter(right).filter(|r| r.is_ours());
        let pairs = ours.flat_map(|ours| {
            let beside =
                move |r: &&Record| !r.is_ours() && r.group == ours.group && r.case == ours.case;
            let others = platform.programs.iter().filter(right).filter(beside);
            others.map(move |other| {
                // Descriptions of generators have a colon.
                let made = if ours.case.matrix.contains(':') { "generated" } else { "files" };
                let key =
                    (ours.case.operation.clone(), made, ours.engine_name(), other.engine.clone());
                let ratio = |of: fn(&Record) -> Option<f64>| Some(of(other)? / of(ours)?);
                (key, (ratio(|r| r.execute_ms), ratio(|r| r.product_ms)))
            })
        });
        let lines = grouped(pairs).into_iter().map(|((program, made, ours, engine), ratios)| {
            let (whole, products): (Vec<_>, Vec<_>) = ratios.into_iter().unzip();
            let of = |ratios: Vec<Option<f64>>| {
                Ratios::of(&ratios.into_iter().flatten().collect::<Vec<_>>())
            };
            let (whole, products) = (of(whole), of(products));
            let count = whole.as_ref().map_or(0, |r| r.count);
            let mut line = row![platform.name, program, made, ours, engine, count];
            for ratios in [&whole, &products] {
                line.push(number(ratios.as_ref().map(|r| r.geomean), 2));
                line.push(number(ratios.as_ref().map(|r| r.worst), 2));
            }
            line
        });
        lines.collect::<Vec<Row>>()
    };
    let caption = format!(
        "Time of the other engine over that of gustav: of whole programs, and of their products. {NAMES} Files are \
         real matrices. gustav:fused has the softmax and the weighted sums of an attention in one product."
    );
    let columns = "platform, program, matrices, of, engine, cases, geomean, worst, products: geomean, products: worst";
    let rows = platforms.iter().flat_map(of).collect();
    Table::new("program-ratios", "Whole programs, compared", columns, caption, rows)
}
