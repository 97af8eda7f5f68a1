//! Matrices of grids: rows whose columns lie in a few bands at one fixed distance.

use gustav_core::{Index, PatternView};

/// Bands of columns that most rows have in common: a stencil on a grid has one for every plane (or
/// line) of the grid that it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Bands {
    /// Bands of a row.
    pub count: usize,
    /// Columns from the middle of one band to the middle of the next.
    pub distance: usize,
    /// Columns from the first to the last of a band.
    pub width: usize,
}

// Rows in the sample.
const SAMPLE: usize = 128;
// Most bands of a row.
const MOST: usize = 5;

impl Bands {
    /// The bands that at least half of the sampled rows have, if any.
    pub fn new<I: Index, O: Index>(a: &PatternView<'_, I, O>) -> Option<Self> {
        let step = a.nrows().div_ceil(SAMPLE).max(1);
        let sample = || (0..a.nrows()).step_by(step);
        let mut found: Vec<(usize, usize, usize)> = sample().filter_map(|r| of_row(a, r)).collect();
        found.sort_unstable();
        let (distance, count, width) = *found.get(found.len() / 2)?;
        let same = found.iter().filter(|b| (b.0, b.1) == (distance, count)).count();
        (2 * same >= sample().count()).then_some(Bands { count, distance, width })
    }
}

/// Distance, count and width of the bands of row `r`.
fn of_row<I: Index, O: Index>(
    a: &PatternView<'_, I, O>,
    r: usize,
) -> Option<(usize, usize, usize)> {
    let cols = a.row(r);
    if !cols.is_sorted() {
        return None;
    }
    let gap = |w: &[I]| w[1].to_usize() - w[0].to_usize();
    let largest = cols.windows(2).map(gap).max().filter(|g| *g > 2)?;
    let (mut middles, mut width, mut first) = (Vec::with_capacity(MOST), 1, cols[0].to_usize());
    let mut close = |first: usize, last: usize| {
        middles.push((first + last) / 2);
        width = width.max(last - first + 1);
        middles.len() <= MOST
    };
    for w in cols.windows(2).filter(|w| gap(w) * 2 > largest) {
        if !close(first, w[0].to_usize()) {
            return None;
        }
        first = w[1].to_usize();
    }
    close(first, cols[cols.len() - 1].to_usize());
    let distance = middles[1] - middles[0];
    let even = middles.windows(2).all(|m| m[1] - m[0] == distance);
    (even && middles.len() <= MOST).then_some((distance, middles.len(), width))
}

#[cfg(test)]
mod tests {
    use gustav_core::Csr;

    use super::*;

    fn stencil(side: i64, planes: i64) -> Csr<f32> {
        let rows = side * planes;
        let (mut offsets, mut indices) = (vec![0u32], Vec::new());
        for r in 0..rows {
            let near = [-side, -1, 0, 1, side].map(|d| r + d);
            indices.extend(near.iter().filter(|c| (0..rows).contains(c)).map(|c| *c as u32));
            offsets.push(indices.len() as u32);
        }
        let values = vec![1.0; indices.len()];
        Csr::new(rows as usize, rows as usize, offsets, indices, values).unwrap()
    }

    #[test]
    fn the_lines_of_a_grid_are_bands() {
        let bands = Bands::new(&stencil(50, 40).pattern().view());
        assert_eq!(bands, Some(Bands { count: 3, distance: 50, width: 3 }));
    }

    #[test]
    fn scattered_columns_have_no_bands() {
        let (mut offsets, mut indices) = (vec![0u32], Vec::new());
        for r in 0..200u32 {
            let mut row: Vec<u32> =
                (0..6).map(|k| (r * r * 31 + k * k * 977 + k * r) % 5000).collect();
            row.sort_unstable();
            indices.extend(row);
            offsets.push(indices.len() as u32);
        }
        let values = vec![1.0; indices.len()];
        let a = Csr::<f32>::new(200, 5000, offsets, indices, values).unwrap();
        assert_eq!(Bands::new(&a.pattern().view()), None);
    }
}
