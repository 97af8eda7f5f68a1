//! A figure as data: axes and series.

use super::axis::{Axis, Scale};

/// A figure, before anything is drawn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Figure {
    /// Name of its files and its anchor in the page.
    pub id: String,
    /// Its title.
    pub title: String,
    /// How to read it, and what was left out.
    pub caption: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The series.
    pub series: Vec<Series>,
    /// Horizontal lines: values of y with their names.
    pub rules: Vec<(f64, String)>,
}

/// Marks of one colour.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Series {
    /// Name in the legend; empty: not in the legend.
    pub name: String,
    /// The marks.
    pub mark: Mark,
}

/// The marks of a series.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Mark {
    /// A point for each (x, y).
    Points(Vec<(f64, f64)>),
    /// Points joined by a line.
    Line(Vec<(f64, f64)>),
    /// A step function, for distributions.
    Steps(Vec<(f64, f64)>),
    /// A dashed line without points, for limits.
    Limit(Vec<(f64, f64)>),
    /// A bar from zero at each named x.
    Bars(Vec<(f64, f64)>),
    /// At each named x the 5th, 25th, 50th, 75th and 95th percentile.
    Boxes(Vec<(f64, [f64; 5])>),
    /// At each named y a bar from one x to another.
    Stretches(Vec<(f64, f64, f64)>),
    /// In the cell of each named (x, y) a shade from 0 to 1 with a text.
    Cells(Vec<(f64, f64, f64, String)>),
    /// A raster of shades from 0 to 1 that fills the figure, row by row from the top.
    Bins(Vec<Vec<f64>>),
}

impl Figure {
    /// A figure whose files are named by the slug of `id`.
    pub fn new(
        id: impl AsRef<str>,
        title: impl Into<String>,
        caption: impl Into<String>,
        [x, y]: [Axis; 2],
        series: Vec<Series>,
    ) -> Self {
        let (title, caption) = (title.into(), caption.into());
        Figure { id: slug(id.as_ref()), title, caption, x, y, series, rules: Vec::new() }
    }

    /// The same with a horizontal line at `value`.
    #[must_use]
    pub fn rule(mut self, value: f64, name: impl Into<String>) -> Self {
        self.rules.push((value, name.into()));
        self
    }

    /// Values along x that must be visible.
    pub fn xs(&self) -> Vec<f64> {
        self.series.iter().flat_map(|s| s.mark.corners()).map(|corner| corner.0).collect()
    }

    /// Values along y that must be visible.
    pub fn ys(&self) -> Vec<f64> {
        let marks = self.series.iter().flat_map(|s| s.mark.corners());
        marks.map(|corner| corner.1).chain(self.rules.iter().map(|r| r.0)).collect()
    }

    /// Number of its marks.
    pub fn size(&self) -> usize {
        self.series.iter().map(|s| s.mark.size()).sum()
    }

    /// Height of the plot in lines of text: it grows with a vertical axis of names.
    pub fn lines(&self) -> usize {
        match &self.y.scale {
            Scale::Names(names) => names.len(),
            _ => 0,
        }
    }
}

impl Mark {
    /// Values of x and y that must be visible.
    fn corners(&self) -> Vec<(f64, f64)> {
        match self {
            Mark::Points(p) | Mark::Line(p) | Mark::Steps(p) | Mark::Limit(p) | Mark::Bars(p) => {
                p.clone()
            }
            Mark::Boxes(b) => b.iter().flat_map(|b| b.1.map(|y| (b.0, y))).collect(),
            Mark::Stretches(s) => s.iter().flat_map(|s| [(s.1, s.0), (s.2, s.0)]).collect(),
            Mark::Cells(c) => c.iter().map(|c| (c.0, c.1)).collect(),
            Mark::Bins(_) => Vec::new(),
        }
    }

    fn size(&self) -> usize {
        match self {
            Mark::Points(p) | Mark::Line(p) | Mark::Steps(p) | Mark::Limit(p) | Mark::Bars(p) => {
                p.len()
            }
            Mark::Boxes(boxes) => boxes.len(),
            Mark::Stretches(stretches) => stretches.len(),
            Mark::Cells(cells) => cells.len(),
            Mark::Bins(bins) => bins.iter().flatten().filter(|b| **b > 0.0).count(),
        }
    }
}

/// A text as the part of a file name: lower case, words joined by hyphens.
pub(crate) fn slug(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let text: String = text.chars().map(plain).collect();
    text.split('-').filter(|w| !w.is_empty()).collect::<Vec<_>>().join("-")
}

/// Points of a series.
pub(crate) type Points = Vec<(f64, f64)>;

/// Most series of a figure of points or distributions.
const MOST_SERIES: usize = 8;

/// A series for each name that has points, Gustav first, so that its colour is the same in all
/// figures.
pub(crate) fn series<N: ToString, P>(
    groups: impl IntoIterator<Item = (N, Vec<P>)>,
    mark: fn(Vec<P>) -> Mark,
) -> Vec<Series> {
    let named = |(name, points): (N, Vec<P>)| Series { name: name.to_string(), mark: mark(points) };
    let groups = groups.into_iter().filter(|(_, points)| !points.is_empty());
    let mut all: Vec<_> = groups.map(named).collect();
    all.sort_by_key(|s| !s.name.starts_with("gustav"));
    all
}

/// One series, without a legend.
pub(crate) fn one(mark: Mark) -> Vec<Series> {
    vec![Series { name: String::new(), mark }]
}

/// A bar for each value.
pub(crate) fn bars(values: impl IntoIterator<Item = f64>) -> Vec<Series> {
    one(Mark::Bars(values.into_iter().enumerate().map(|(k, value)| (k as f64, value)).collect()))
}

/// A box for each set of five percentiles.
pub(crate) fn boxes(percentiles: Vec<[f64; 5]>) -> Vec<Series> {
    one(Mark::Boxes(
        percentiles.into_iter().enumerate().map(|(k, five)| (k as f64, five)).collect(),
    ))
}

/// At most MOST_SERIES groups, those with the most points, in their order, and a sentence on the
/// others. Of groups of equal size, all are drawn or none.
pub(crate) fn fullest<P>(
    groups: impl IntoIterator<Item = (String, Vec<P>)>,
) -> (Vec<(String, Vec<P>)>, String) {
    let mut groups: Vec<_> = groups.into_iter().collect();
    let mut sizes: Vec<_> = groups.iter().map(|(_, points)| points.len()).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let Some(first_left_out) = sizes.get(MOST_SERIES).copied() else {
        return (groups, String::new());
    };
    let (rest, why): (Vec<_>, _) = if first_left_out == sizes[0] {
        (groups.drain(MOST_SERIES..).collect(), "to keep the figure readable")
    } else {
        let few = |group: &mut (String, Vec<P>)| group.1.len() <= first_left_out;
        (groups.extract_if(.., few).collect(), "as they have fewer points")
    };
    let rest: Vec<_> = rest.into_iter().map(|(name, _)| name).collect();
    (groups, format!(" Not drawn, {why}: {}.", rest.join(", ")))
}

/// Names of the rows and columns of a square of cells. If there are many, each row gets a letter,
/// and columns show only the letters.
pub(crate) fn lines_and_columns(names: Vec<String>) -> (Vec<String>, Vec<String>) {
    const FEW: usize = 4;
    if names.len() <= FEW {
        return (names.clone(), names);
    }
    let letters = ('a'..='z').chain('A'..='Z').map(String::from).cycle();
    let letters: Vec<_> = letters.take(names.len()).collect();
    let lines = names.iter().zip(&letters).map(|(name, letter)| format!("{name}  {letter}"));
    (lines.collect(), letters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slugs_are_file_names() {
        assert_eq!(slug("NVIDIA H200: SpMM, f32 (n = 64)"), "nvidia-h200-spmm-f32-n-64");
    }

    fn groups(sizes: &[usize]) -> Vec<(String, Vec<usize>)> {
        sizes.iter().enumerate().map(|(k, size)| (format!("g{k}"), vec![0; *size])).collect()
    }

    #[test]
    fn the_groups_of_most_points_are_drawn_and_the_others_named() {
        let (drawn, words) = fullest(groups(&[1, 9, 1, 9, 9, 9, 1, 1, 1, 1]));
        let names: Vec<_> = drawn.iter().map(|g| g.0.as_str()).collect();
        assert_eq!(names, ["g1", "g3", "g4", "g5"]);
        assert!(words.contains("fewer points: g0, g2, g6"), "{words}");
        assert_eq!(fullest(groups(&[1; 8])).1, "");
        let (drawn, words) = fullest(groups(&[2; 10]));
        assert!(drawn.len() == MOST_SERIES && words.contains("readable: g8, g9"), "{words}");
    }

    #[test]
    fn many_columns_have_letters() {
        let names = |count| (0..count).map(|k| format!("n{k}")).collect::<Vec<_>>();
        assert_eq!(lines_and_columns(names(2)), (names(2), names(2)));
        let (lines, columns) = lines_and_columns(names(5));
        assert_eq!((lines[4].as_str(), columns[4].as_str()), ("n4  e", "e"));
    }
}
