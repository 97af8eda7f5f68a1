//! What ran when in a pipeline of CPU and GPU (figure 4 of Chen, Chen, Shih, Lee, 2025).

use std::collections::BTreeMap;

use super::super::axis::Axis;
use super::super::figure::{Figure, Mark, slug};
use super::super::site::Site;
use super::series;
use crate::Record;

/// A figure for every record of the largest matrices and the most threads that holds a timeline:
/// a line for every stage's place.
pub(crate) fn all(sites: &[Site]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for site in sites {
        let rounds = site.rounds_with(|round| round.iter().any(|r| !r.timeline.is_empty()));
        let told: Vec<_> = rounds.values().flatten().filter(|r| !r.timeline.is_empty()).collect();
        let size = |r: &Record| (r.rows, r.threads);
        let most = told.iter().map(|r| size(r)).max();
        for r in told.into_iter().filter(|r| Some(size(r)) == most) {
            let mut lanes: Vec<String> = Vec::new();
            let mut stages = BTreeMap::<String, Vec<(f64, f64, f64)>>::new();
            for stage in &r.timeline {
                let lane = lanes.iter().position(|l| *l == stage.lane).unwrap_or_else(|| {
                    lanes.push(stage.lane.clone());
                    lanes.len() - 1
                });
                let stretch = (lane as f64, stage.start_ms, stage.end_ms);
                stages.entry(stage.name.clone()).or_default().push(stretch);
            }
            figures.push(Figure {
                id: slug(&format!("timeline {} {} {}", site.name, r.case, site.engine(r))),
                title: format!("{}: {}", site.engine(r), r.case),
                caption: format!("What ran when, on {}.", site.name),
                x: Axis::linear("time (ms)"),
                y: Axis::names("", lanes),
                series: series(stages, Mark::Stretches),
                rules: Vec::new(),
            });
        }
    }
    figures
}
