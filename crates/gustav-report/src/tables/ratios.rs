//! Ratios as cells.

use crate::Ratios;
use crate::analysis::{Comparison, Platform, Product, grouped};
use crate::table::{Row, row};

/// Columns that [`cells`] fills.
pub(super) const RATIOS: &str = "geomean, worst, best, lost (%)";

/// Columns that [`product_cells`] fills.
pub(super) const PRODUCT: &str = "platform, product, type, variant";

/// The platform and the product.
pub(super) fn product_cells(platform: &Platform, product: &Product) -> Row {
    row![platform.name, product.name(), product.dtype, product.detail()]
}

/// Count, geomean, worst, best and percentage lost.
pub(super) fn cells(ratios: &[f64]) -> Option<Row> {
    Some(cells_of(Ratios::of(ratios)?))
}

/// The same of statistics.
pub(super) fn cells_of(ratios: Ratios) -> Row {
    let Ratios { count, geomean, worst, best, lost } = ratios;
    let [geomean, worst, best] = [geomean, worst, best].map(|x| format!("{x:.2}"));
    row![count, geomean, worst, best, format!("{:.0}", 100.0 * lost)]
}

/// A line for each group of ratios, in the order of their names.
pub(super) fn by_name(ratios: impl IntoIterator<Item = (Row, f64)>) -> Vec<Row> {
    let line = |(names, ratios): (Row, Vec<f64>)| Some([names, cells(&ratios)?].concat());
    grouped(ratios).into_iter().filter_map(line).collect()
}

/// A line for each product of every platform: `value` of the cases by `algorithm`.
pub(super) fn by_product(
    platforms: &[Platform],
    algorithm: &str,
    value: impl Fn(&Comparison<'_>) -> Option<f64>,
) -> Vec<Row> {
    let of = |platform: &Platform| {
        let cases = platform.ours(algorithm);
        let values = cases.iter().filter_map(|c| Some((Product::of(&c.ours.case), value(c)?)));
        let line = |(product, values): (Product, Vec<f64>)| {
            Some([product_cells(platform, &product), cells(&values)?].concat())
        };
        grouped(values).into_iter().filter_map(line).collect::<Vec<_>>()
    };
    platforms.iter().flat_map(of).collect()
}
