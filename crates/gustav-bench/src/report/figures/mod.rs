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
mod sweeps;
mod timeline;

use std::collections::BTreeMap;

use super::figure::{Figure, Mark, Series};
use super::site::Site;
use crate::{Counters, TuneReport};

pub(crate) use distribution::overview;
pub(crate) use orders::table as orders;

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
        needs: "row-split and nonzero-split by name at 64 columns, on matrix files",
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

/// The figures that the records fill, and of the others what they are and what they need.
pub(crate) fn all(
    sites: &[Site],
    tunings: &[TuneReport],
    counters: &[Counters],
) -> (Vec<Figure>, Vec<(&'static str, &'static str)>) {
    let families = FAMILIES.iter().map(|f| ((f.name, f.needs), (f.draw)(sites)));
    let extra = [(TUNING, predictor::all(tunings)), (COUNTERS, counters::all(counters))];
    let (mut drawn, mut absent) = (Vec::new(), Vec::new());
    for (family, figures) in families.chain(extra) {
        if figures.is_empty() {
            absent.push(family);
        }
        drawn.extend(figures);
    }
    // Names that differ in nothing but signs are one slug, and would be one file.
    let mut seen = BTreeMap::<String, usize>::new();
    for figure in &mut drawn {
        let count = seen.entry(figure.id.clone()).or_default();
        *count += 1;
        if *count > 1 {
            figure.id = format!("{}-{count}", figure.id);
        }
    }
    (drawn, absent)
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
