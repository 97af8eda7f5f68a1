//! Timelines of a pipeline of CPU and GPU (figure 4 of Chen, Chen, Shih, Lee, 2025).

use crate::Record;
use crate::analysis::{Platform, grouped};
use crate::draw::{Axis, Figure, Mark, series};

/// A figure for every record with a timeline, of the largest matrices and the most threads: a line
/// for every lane.
pub(super) fn all(platforms: &[Platform]) -> Vec<Figure> {
    let of = |platform: &Platform| {
        let rounds = platform.rounds_with(|round| round.iter().any(|r| !r.timeline.is_empty()));
        let mut own: Vec<_> = rounds.into_iter().flat_map(|(_, round)| round).collect();
        own.retain(|r| !r.timeline.is_empty());
        let size = |r: &Record| (r.rows, r.threads);
        let most = own.iter().map(|r| size(r)).max();
        own.retain(|r| Some(size(r)) == most);
        own.into_iter().map(|r| figure(platform, r)).collect::<Vec<_>>()
    };
    platforms.iter().flat_map(of).collect()
}

fn figure(platform: &Platform, r: &Record) -> Figure {
    let mut lanes: Vec<&str> = Vec::new();
    for stage in &r.timeline {
        if !lanes.contains(&stage.lane.as_str()) {
            lanes.push(&stage.lane);
        }
    }
    let stages = grouped(r.timeline.iter().map(|stage| {
        let lane = lanes.iter().position(|lane| *lane == stage.lane).unwrap_or(0);
        (&stage.name, (lane as f64, stage.start_ms, stage.end_ms))
    }));
    let (name, engine) = (&platform.name, platform.engine(r));
    Figure::new(
        format!("timeline {name} {} {engine}", r.case),
        format!("{engine}: {}", r.case),
        format!("What ran when, on {name}."),
        [Axis::linear("time (ms)"), Axis::names("", lanes)],
        series(stages, Mark::Stretches),
    )
}
