//! What choices lose against the fastest of all measured configurations.

use crate::Regret;
use crate::analysis::{distribution, grouped};
use crate::draw::{Axis, Figure, Mark, series};

/// A figure for each product and type of values.
pub(super) fn all(regrets: &[Regret]) -> Vec<Figure> {
    let product = |r: &Regret| (r.product.clone(), r.dtype.clone());
    let products = grouped(regrets.iter().map(|r| (product(r), r)));
    products.into_iter().map(|((product, dtype), own)| figure(&product, &dtype, &own)).collect()
}

fn figure(product: &str, dtype: &str, own: &[&Regret]) -> Figure {
    // Percent, over all numbers of columns.
    let lost = |r: &&Regret| (format!("{}, {}", r.chooser, r.matrices), 100.0 * r.regret + 1.0);
    let curves = grouped(own.iter().map(lost)).into_iter().map(|(name, losses)| {
        let mean = losses.iter().sum::<f64>() / losses.len() as f64 - 1.0;
        (format!("{name}: mean {mean:.1} %"), distribution(losses))
    });
    let of = match product {
        "spmv" => "SpMV on a GPU",
        "spmm" => "SpMM on a GPU",
        "cpu-spmm" => "SpMM on a CPU",
        other => other,
    };
    let curves: Vec<_> = curves.collect();
    let caption = "Share of the cases that lose at most so much against the fastest of all measured configurations: by the \
                   rules before the cost model, by the model, and by the one configuration that loses least on the \
                   matrices of the fit. Unseen matrices were read by no fit, and copies of them along the diagonal, of four \
                   million nonzeros, are judged apart, beside a model that was fitted to no copies; families held out are \
                   judged by a fit without them.";
    let axes = [Axis::log("1 + loss (%)"), Axis::linear("cases (%)")];
    let title = format!("{of}, {dtype}: what choices lose");
    Figure::new(format!("regrets {of} {dtype}"), title, caption, axes, series(curves, Mark::Steps))
}
