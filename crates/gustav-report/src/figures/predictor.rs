//! Evaluation of the predictors of a tuning (figures 11 to 15 of the study of row permutations for
//! SpMM on GPUs).

use crate::TuneReport;
use crate::analysis::distribution;
use crate::draw::{Axis, Figure, Mark, Series, bars, lines_and_columns, one, series};

/// The network of the study: it predicts times from the 24 features.
const REGRESSION: &str = "regression";

/// Bins of the histogram of losses in an evaluation, in percent.
const LOSSES: [&str; 7] = ["none", "up to 2", "2-4", "4-10", "10-25", "25-50", "over 50"];

/// The figures of every tuning whose candidates are those of the study, and of every other one. They
/// are two families, as a family has one figure of each kind first.
pub(super) fn all(tunings: &[TuneReport]) -> [Vec<Figure>; 2] {
    let (study, others): (Vec<_>, Vec<_>) = tunings.iter().partition(|t| t.is_of_the_study());
    [study, others].map(|tunings| of(&tunings))
}

fn of(tunings: &[&TuneReport]) -> Vec<Figure> {
    let mut figures = Vec::new();
    for tuning in tunings {
        figures.extend([classes(tuning), errors(tuning)]);
        for network in networks(tuning) {
            figures.extend([confusion(tuning, network), losses(tuning, network)]);
        }
        figures.push(rivals(tuning));
        if !tuning.topologies.is_empty() {
            figures.push(topologies(tuning));
        }
    }
    figures
}

/// A network whose choices are drawn.
#[derive(Clone, Copy)]
struct Network<'a> {
    name: &'a str,
    /// Before the name of a figure.
    id: &'static str,
    /// Behind its title.
    title: &'static str,
}

/// The network that was taken, and of the study's classes the study's own.
fn networks(t: &TuneReport) -> Vec<Network<'_>> {
    let taken = Network { name: &t.taken, id: "", title: "" };
    let own = Network { name: REGRESSION, id: "regression-", title: " by the study's network" };
    let has_own = t.is_of_the_study() && t.taken != REGRESSION && t.rivals.contains_key(REGRESSION);
    [taken].into_iter().chain(has_own.then_some(own)).collect()
}

/// A figure of one tuning.
fn figure(
    t: &TuneReport,
    (id, title): (&str, &str),
    caption: String,
    axes: [Axis; 2],
    series: Vec<Series>,
) -> Figure {
    let TuneReport { device, columns, .. } = t;
    let classes = if t.is_of_the_study() { "study-predictor" } else { "predictor" };
    let id = format!("{classes}-{id} {device} n-{columns}");
    Figure::new(id, format!("{title}, {device}, n = {columns}"), caption, axes, series)
}

fn classes(t: &TuneReport) -> Figure {
    let all = t.classes.iter().sum::<usize>().max(1) as f64;
    let caption = format!("Of the {} matrices that were trained on.", t.matrices.0);
    let x = Axis::names("candidate", t.candidates());
    let y = Axis::linear("matrices (%)");
    figure(
        t,
        ("classes", "Which candidate is the fastest"),
        caption,
        [x, y],
        bars(t.classes.iter().map(|count| 100.0 * *count as f64 / all)),
    )
}

fn errors(t: &TuneReport) -> Figure {
    let caption = format!(
        "For every regression the percentage of its predictions with at most this error: all \
         candidates of {} matrices of sources that it was not trained on.",
        t.matrices.1
    );
    let curves = t.errors.iter().map(|(name, errors)| (name.clone(), distribution(errors.clone())));
    let x = Axis::log("error of the predicted time (%)");
    let y = Axis::linear("predictions (%)");
    figure(t, ("errors", "Errors of predicted times"), caption, [x, y], series(curves, Mark::Steps))
}

fn confusion(t: &TuneReport, network: Network<'_>) -> Figure {
    let found = t.rivals.get(network.name);
    let counts = found.map_or(&[][..], |e| &e.confusion);
    let losses = found.map_or(&[][..], |e| &e.confusion_loss);
    // Without candidates that were neither the fastest nor chosen.
    let seen = |k: &usize| {
        counts.iter().enumerate().any(|(y, row)| {
            row.iter().enumerate().any(|(x, count)| *count > 0 && (x == *k || y == *k))
        })
    };
    let shown: Vec<usize> = (0..counts.len()).filter(seen).collect();
    let mut cells = Vec::new();
    for (y, &fastest) in shown.iter().enumerate() {
        let total = counts[fastest].iter().sum::<usize>().max(1) as f64;
        for (x, &chosen) in shown.iter().enumerate() {
            let loss = losses.get(fastest).and_then(|row| row.get(chosen)).unwrap_or(&0.0);
            let count = counts[fastest].get(chosen).copied().unwrap_or(0);
            let text = match count {
                0 => String::new(),
                count => format!("{count} ({:.0} %)", 100.0 * loss),
            };
            cells.push((x as f64, y as f64, count as f64 / total, text));
        }
    }
    let caption = format!(
        "Matrices of sources that {} was not trained on, with the mean loss of time where it \
         fits; shades show the fraction of the row. {:.0} % of the choices are right, {:.0} % if the \
         most common candidate is always taken. Candidates neither the fastest nor chosen, {} of {}, are left out.",
        network.name,
        100.0 * found.map_or(0.0, |e| e.right),
        100.0 * found.map_or(0.0, |e| e.commonest),
        counts.len() - shown.len(),
        counts.len()
    );
    let all = t.candidates();
    let names = shown.iter().filter_map(|k| all.get(*k).cloned()).collect();
    let (lines, columns) = lines_and_columns(names);
    let (x, y) = (Axis::names("chosen", columns), Axis::names("fastest", lines));
    let id = format!("{}confusion", network.id);
    let title = format!("Chosen and fastest candidate{}", network.title);
    figure(t, (&id, &title), caption, [x, y], one(Mark::Cells(cells)))
}

fn losses(t: &TuneReport, network: Network<'_>) -> Figure {
    let found = t.rivals.get(network.name);
    let counts = found.map(|e| e.losses).unwrap_or_default();
    let all = counts.iter().sum::<usize>().max(1) as f64;
    let caption = format!(
        "What the choices of {} lose of the fastest candidate's speed; {:.1} % on average.",
        network.name,
        100.0 * found.map_or(0.0, |e| e.mean_loss)
    );
    let id = format!("{}losses", network.id);
    let title = format!("Loss by wrong choices{}", network.title);
    let x = Axis::names("loss (%)", LOSSES);
    let y = Axis::linear("matrices (%)");
    figure(
        t,
        (&id, &title),
        caption,
        [x, y],
        bars(counts.iter().map(|count| 100.0 * *count as f64 / all)),
    )
}

fn rivals(t: &TuneReport) -> Figure {
    let over = match t.folds.values().next() {
        Some(folded) => format!("all {} matrices, in five folds of their sources", folded.cases),
        None => format!("{} matrices of every fifth source", t.matrices.1),
    };
    let first = t.candidates().first().cloned().unwrap_or_default();
    let caption = format!(
        "Mean loss against the fastest candidate of every matrix, on sources that no rival was trained \
         on: {over}. Matrix-only networks see shape, density and row lengths alone; first always takes \
         {first}."
    );
    let losses: Vec<(&String, f64)> = match t.folds.is_empty() {
        true => t.rivals.iter().map(|(name, e)| (name, e.mean_loss)).collect(),
        false => t.folds.iter().map(|(name, f)| (name, f.mean_loss)).collect(),
    };
    let x = Axis::names("rival", losses.iter().map(|(name, _)| name));
    let y = Axis::linear("mean loss (%)");
    figure(
        t,
        ("rivals", "Rivals"),
        caption,
        [x, y],
        bars(losses.iter().map(|(_, loss)| 100.0 * loss)),
    )
}

fn topologies(t: &TuneReport) -> Figure {
    let caption = "Mean loss of regressions with all features, by the neurons of their hidden \
                   layers."
        .into();
    let x = Axis::names("hidden layers", t.topologies.iter().map(|t| &t.0));
    let y = Axis::linear("mean loss (%)");
    figure(
        t,
        ("topologies", "Sizes of the network"),
        caption,
        [x, y],
        bars(t.topologies.iter().map(|t| 100.0 * t.1)),
    )
}
