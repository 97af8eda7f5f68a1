//! What predictors choose, beside the row orders study (sections V-D and V-E).

use gustav_plan::predictor::Evaluation;

use crate::TuneReport;
use crate::table::{Row, Table, number, row};

/// What the study reports of one of its predictors on its GV100; empty where it says nothing.
#[derive(Default)]
struct Published {
    rival: &'static str,
    right: &'static str,
    of_oracle: &'static str,
    gain: &'static str,
    oracle_gain: &'static str,
    loss: &'static str,
}

/// Sections V-D, V-B and V-E; the ratio to the oracle is of the abstract.
const PUBLISHED: [Published; 3] = [
    Published {
        rival: "regression",
        right: "82",
        of_oracle: "0.96",
        gain: "1.37",
        oracle_gain: "1.41",
        loss: "3.8",
    },
    Published {
        rival: "softmax",
        right: "",
        of_oracle: "",
        gain: "",
        oracle_gain: "",
        loss: "4-5",
    },
    Published {
        rival: "regression, matrix-only",
        right: "",
        of_oracle: "",
        gain: "1.10",
        oracle_gain: "",
        loss: "31",
    },
];

/// The table that the reports of tuning fill, if there are any.
pub(crate) fn all(tunings: &[TuneReport]) -> Vec<Table> {
    let (study, others): (Vec<_>, Vec<_>) = tunings.iter().partition(|t| t.is_of_the_study());
    let rows: Vec<Row> = study.into_iter().chain(others).flat_map(of).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let caption = "Matrices of sources that no rival was trained on, where the study holds out a fifth of its \
                   matrices, whatever they resemble. Right: the fastest candidate was chosen. Times and gains are \
                   means of ratios; gains are over the first candidate, which in the study is plain CSR. regression \
                   and softmax are the study's networks on its 24 features, matrix-only ones see shape, density and \
                   row lengths alone; softmax of losses, tree, simulation and whatever reads simulated costs are \
                   ours. first always takes the first candidate, commonest the one that is most often the fastest. \
                   Folds: every matrix tested once; constants of the simulation were fitted to sources outside the first \
                   fold. The paper's values are of its GV100. Our first fold holds nearly all matrices on which DCSR \
                   is the fastest, so that gains are larger than the study's; right and loss are what compares.";
    let columns = "device, candidates, columns of B, rival, matrices, right (%), paper, oracle's time / chosen's, \
                   paper, gain, paper, gain of the oracle, paper, mean loss (%), paper, right in folds (%), \
                   mean loss in folds (%)";
    vec![Table::new("predictor", "Predictors", columns, caption, rows)]
}

/// The lines of a tuning.
fn of(tuning: &TuneReport) -> Vec<Row> {
    let is_of_the_study = tuning.is_of_the_study();
    let what = match is_of_the_study {
        true => "the study's".to_owned(),
        false => tuning.candidates().len().to_string(),
    };
    let names = |rival: &str| row![tuning.device, what, tuning.columns, rival];
    let line = |(rival, found): (&String, &Evaluation)| {
        let published = PUBLISHED.iter().find(|p| is_of_the_study && p.rival == rival);
        let silent = Published::default();
        let paper = published.unwrap_or(&silent);
        let folded = tuning.folds.get(rival);
        let numbers = row![
            found.cases,
            number(100.0 * found.right, 0),
            paper.right,
            number(found.oracle_share, 3),
            paper.of_oracle,
            number(found.gain, 3),
            paper.gain,
            number(found.oracle_gain, 3),
            paper.oracle_gain,
            number(100.0 * found.mean_loss, 1),
            paper.loss,
            number(folded.map(|f| 100.0 * f.right), 0),
            number(folded.map(|f| 100.0 * f.mean_loss), 1),
        ];
        [names(rival), numbers].concat()
    };
    let commonest = tuning.rivals.get(&tuning.taken).map(|found| {
        let right = number(100.0 * found.commonest, 0);
        let numbers = row![found.cases, right, "", "", "", "", "", "", "", "", "", "", ""];
        [names("commonest"), numbers].concat()
    });
    tuning.rivals.iter().map(line).chain(commonest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::tunings;

    #[test]
    fn the_papers_values_stand_beside_its_own_classes_alone() {
        let table = all(&tunings()).remove(0);
        let line = |what: &str, rival: &str| {
            table.rows.iter().find(|r| r[1] == what && r[3] == rival).expect("a line")[4..]
                .join(" ")
        };
        let found = line("the study's", "regression");
        assert_eq!(found, "3 67 82 0.900 0.96 1.100 1.37 1.200 1.41 10.0 3.8  ");
        assert_eq!(line("the study's", "commonest").trim_end(), "3 67");
        assert_eq!(line("3", "regression"), "3 67  0.900  1.100  1.200  10.0   ");
        assert!(table.rows.iter().all(|row| row.len() == table.columns.len()));
        assert!(all(&[]).is_empty());
    }
}
