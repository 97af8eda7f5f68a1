//! What ranks of an MPI program send each other, against their number.

use gustav_core::Result;

use crate::draw::{Axis, Figure, Mark, Points, Series, svg_file};

/// Bytes that ranks send as shares of sending all of B to all ranks: for every way of communicating, in the order given,
/// its name and points of (number of ranks, share). As an SVG file.
///
/// # Errors
/// When the drawing fails.
pub fn picture_of_ranks(ways: &[(String, Points)]) -> Result<String> {
    let series = ways
        .iter()
        .map(|(name, points)| Series { name: name.clone(), mark: Mark::Line(points.clone()) });
    let axes = [Axis::doubling("ranks"), Axis::log("bytes ÷ bytes of all of B to all ranks")];
    let title = "What ranks send for a product with 64 columns, geometric means over matrices";
    svg_file(&Figure::new("ranks", title, "", axes, series.collect()))
}
