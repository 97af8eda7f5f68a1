//! The figures of a report: one family a file, each drawn when the records hold its data and
//! named as absent when they do not.

mod choice;
mod counters;
mod distribution;
mod limits;
mod orders;
mod predictor;
mod row_groups;
mod scaling;
mod speedup;
mod spy;
mod study;
mod sweeps;
mod timeline;

use std::collections::BTreeMap;

use super::figure::{Figure, Mark, Series};
use super::site::Site;
use crate::{Counters, TuneReport};

pub(crate) use distribution::overview;
pub(crate) use limits::table as limits;
pub(crate) use orders::{break_even_table as orders_break_even, gains, table as orders};

/// A family of figures.
struct Family {
    /// What it shows.
    name: &'static str,
    /// Which records it needs.
    needs: &'static str,
    draw: fn(&[Site]) -> Vec<Figure>,
}

const FAMILIES: &[Family] = &[
    Family {
        name: "Overview",
        needs: "products by auto beside a peer",
        draw: distribution::overview,
    },
    Family {
        name: "Speed-up against mean row length",
        needs: "products by auto beside a peer",
        draw: speedup::by_row_length,
    },
    Family {
        name: "Algorithms against mean row length",
        needs: "two or more of our algorithms by name, beside a peer",
        draw: speedup::by_algorithm,
    },
    Family {
        name: "Long rows and short rows",
        needs: "row-split and nonzero-split by name beside a peer, SpMM of 64 columns, on matrix \
                files of 100,000 nonzeros and more",
        draw: row_groups::all,
    },
    Family {
        name: "Distribution of speed-ups",
        needs: "products by auto beside a peer",
        draw: distribution::boxes,
    },
    Family {
        name: "Loss against the best",
        needs: "products by auto beside a peer",
        draw: distribution::losses,
    },
    Family {
        name: "Calls until a plan has paid",
        needs: "plans faster than every peer",
        draw: distribution::break_even,
    },
    Family { name: "Roofline", needs: "products with a memory floor", draw: limits::roofline },
    Family {
        name: "Share of the limits",
        needs: "products with a memory floor",
        draw: limits::shares,
    },
    Family {
        name: "Density sweep",
        needs: "random matrices of one shape in three or more densities",
        draw: sweeps::density,
    },
    Family {
        name: "Aspect-ratio sweep",
        needs: "full matrices of one size in three or more shapes",
        draw: sweeps::aspect_ratio,
    },
    Family {
        name: "Implementations of A times A",
        needs: "the study of suite paper-b on a GPU",
        draw: study::all,
    },
    Family {
        name: "Scaling with N",
        needs: "SpGEMM on random square matrices of one density in three or more sizes",
        draw: scaling::sizes,
    },
    Family {
        name: "Scaling with threads",
        needs: "the same cases on two or more numbers of threads",
        draw: scaling::threads,
    },
    Family {
        name: "Row orders",
        needs: "an algorithm with a row order (NAME@ORDER) beside the same one without",
        draw: orders::spread,
    },
    Family {
        name: "Which orders to keep",
        needs: "an algorithm in two or more row orders beside the same one without",
        draw: orders::portfolio,
    },
    Family {
        name: "Executions that repay a row order",
        needs: "an algorithm with a row order that is faster than the same one without",
        draw: orders::break_even,
    },
    Family {
        name: "The kernel of row orders by density",
        needs: "an algorithm with and without a row order, beside a peer",
        draw: orders::kernel,
    },
    Family {
        name: "What the rules chose",
        needs: "auto beside two or more of our algorithms by name",
        draw: choice::all,
    },
    Family {
        name: "Timeline of the pipeline",
        needs: "records with a timeline",
        draw: timeline::all,
    },
    Family {
        name: "Spy plots",
        needs: "records that hold pictures of their matrices",
        draw: spy::all,
    },
];

/// The figures that need the report of a tuning.
const TUNING: (&str, &str) = ("What the predictor learnt", "the report of gustav tune (--tuning)");

/// The figures that need what hardware counters said.
const COUNTERS: (&str, &str) =
    ("Occupancy, warp efficiency and instructions per cycle", "hardware counters (--counters)");

/// The figures of one family.
#[derive(Clone, Debug)]
pub(crate) struct Chapter {
    /// What they show.
    pub name: &'static str,
    /// At least one.
    pub figures: Vec<Figure>,
}

/// Series that a figure of points or of distributions has at most.
const MOST_SERIES: usize = 8;

/// The families that the records fill, and of the others what they are and what they need.
pub(crate) fn all(
    sites: &[Site],
    tunings: &[TuneReport],
    counters: &[Counters],
) -> (Vec<Chapter>, Vec<(&'static str, &'static str)>) {
    let families = FAMILIES.iter().map(|f| ((f.name, f.needs), (f.draw)(sites)));
    let extra = [(TUNING, predictor::all(tunings)), (COUNTERS, counters::all(counters))];
    let (mut drawn, mut absent) = (Vec::new(), Vec::new());
    for (family, figures) in families.chain(extra) {
        match figures.is_empty() {
            true => absent.push(family),
            false => drawn.push(Chapter { name: family.0, figures }),
        }
    }
    // Names that differ in nothing but signs are one slug, and would be one file.
    let mut seen = BTreeMap::<String, usize>::new();
    for figure in drawn.iter_mut().flat_map(|chapter| &mut chapter.figures) {
        let count = seen.entry(figure.id.clone()).or_default();
        *count += 1;
        if *count > 1 {
            figure.id = format!("{}-{count}", figure.id);
        }
    }
    (drawn, absent)
}

/// The groups of most points, as many as a reader can tell apart, in their order, and what is to
/// be said of the others. Of groups of one size all are drawn or none.
fn fullest<P>(mut groups: Vec<(String, Vec<P>)>) -> (Vec<(String, Vec<P>)>, String) {
    let mut sizes: Vec<_> = groups.iter().map(|(_, points)| points.len()).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let Some(first_left_out) = sizes.get(MOST_SERIES).copied() else {
        return (groups, String::new());
    };
    if first_left_out == sizes[0] {
        let rest: Vec<_> = groups.drain(MOST_SERIES..).map(|(name, _)| name).collect();
        return (groups, format!(" Not drawn, for want of room: {}.", rest.join(", ")));
    }
    let (kept, rest): (Vec<_>, Vec<_>) =
        groups.into_iter().partition(|(_, points)| points.len() > first_left_out);
    let rest: Vec<_> = rest.into_iter().map(|(name, _)| name).collect();
    (kept, format!(" Not drawn, for they have fewer points: {}.", rest.join(", ")))
}

/// Names of the lines and columns of a square of cells: where there are many, each line has a
/// letter, and the columns have the letters alone.
fn lines_and_columns(names: Vec<String>) -> (Vec<String>, Vec<String>) {
    const FEW: usize = 4;
    if names.len() <= FEW {
        return (names.clone(), names);
    }
    let letters: Vec<String> = ('a'..='z').chain('A'..='Z').map(String::from).collect();
    let letters: Vec<_> = letters.into_iter().cycle().take(names.len()).collect();
    let lines = names.iter().zip(&letters).map(|(name, letter)| format!("{name}  {letter}"));
    (lines.collect(), letters)
}

/// A series of each name, in their order, ours first: its colour is the same everywhere.
fn series<P>(
    groups: impl IntoIterator<Item = (String, Vec<P>)>,
    mark: fn(Vec<P>) -> Mark,
) -> Vec<Series> {
    let named = |(name, points): (String, Vec<P>)| Series { name, mark: mark(points) };
    let mut all: Vec<_> = groups.into_iter().map(named).collect();
    all.sort_by_key(|s| !s.name.starts_with("gustav"));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(sizes: &[usize]) -> Vec<(String, Vec<usize>)> {
        sizes.iter().enumerate().map(|(k, size)| (format!("g{k}"), vec![0; *size])).collect()
    }

    #[test]
    fn the_groups_of_most_points_are_kept_and_the_others_named() {
        let (kept, words) = fullest(groups(&[1, 9, 1, 9, 9, 9, 1, 1, 1, 1]));
        let names: Vec<_> = kept.iter().map(|g| g.0.as_str()).collect();
        assert_eq!(names, ["g1", "g3", "g4", "g5"]);
        assert!(words.contains("fewer points: g0, g2, g6"), "{words}");
        assert_eq!(fullest(groups(&[1; 8])).1, "");
        let (kept, words) = fullest(groups(&[2; 10]));
        assert!(kept.len() == MOST_SERIES && words.contains("room: g8, g9"), "{words}");
    }

    #[test]
    fn many_columns_have_letters() {
        let names = |count| (0..count).map(|k| format!("n{k}")).collect::<Vec<_>>();
        assert_eq!(lines_and_columns(names(2)), (names(2), names(2)));
        let (lines, columns) = lines_and_columns(names(5));
        assert_eq!((lines[4].as_str(), columns[4].as_str()), ("n4  e", "e"));
    }
}
