//! Tuning: candidates are measured on many matrices, and the cost model is calibrated or a predictor trained on the
//! records.

mod bounds;
mod calibrate;
mod costs;
mod timed;
#[cfg(feature = "train")]
mod train;

use gustav_core::{Error, Result};
use gustav_plan::predictor::{Model, Training};
use gustav_report::TuneReport;

use crate::{BenchArgs, Outcome, run};

pub use bounds::write_bounds;
pub use calibrate::{Calibrated, Regret, calibrate};
pub use costs::{CostSample, CostSamples, cost_samples};

/// Arguments of tuning.
#[derive(Clone, Debug, PartialEq)]
pub struct TuneArgs {
    /// The measurements: a suite whose engines are the candidates, with one number of columns or a
    /// filter that selects one. Cases that the record file already has are not measured again.
    pub bench: BenchArgs,
    /// How the networks are trained.
    pub training: Training,
    /// Train networks of other sizes too, for comparison.
    pub topologies: bool,
    /// Five-fold cross-validation over the sources.
    pub folds: bool,
}

/// The results of training.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuned {
    /// The network that was taken.
    pub model: Model,
    /// The evaluation of it and its rivals.
    pub report: TuneReport,
}

/// Called after every epoch with the name of the network, the number of epochs done of all
/// networks, and their total.
pub type PassCallback<'a> = dyn FnMut(&str, usize, usize) + Send + 'a;

/// Measures the cases that the record file lacks.
///
/// # Errors
/// As [`run`]; [`Error::Argument`] unless the suite has one number of columns, at least two
/// candidates, each once, and only SpMM; and for a name that is not a candidate.
pub fn measure_candidates(args: &TuneArgs) -> Result<Outcome> {
    timed::selection(&args.bench)?;
    run(&args.bench)
}

/// Trains on the record file, and evaluates on held-out sources; `callback` is called after every epoch.
///
/// # Errors
/// As [`can_train`]; [`Error::Argument`] as [`measure_candidates`], and when too few matrices were
/// measured; for a record file that cannot be read.
pub fn train_predictor(args: &TuneArgs, callback: &mut PassCallback<'_>) -> Result<Tuned> {
    train::rivals(args, callback)
}

/// Training in a build without the feature `train`.
#[cfg(not(feature = "train"))]
mod train {
    use super::{PassCallback, Result, TuneArgs, Tuned, untrained};

    pub(super) fn rivals(_: &TuneArgs, _: &mut PassCallback<'_>) -> Result<Tuned> {
        Err(untrained())
    }
}

/// Whether this build can train.
///
/// # Errors
/// [`Error::Unsupported`] with what to do, in one without the feature `train`.
pub fn can_train() -> Result<()> {
    if cfg!(feature = "train") { Ok(()) } else { Err(untrained()) }
}

fn untrained() -> Error {
    Error::Unsupported {
        problem: "training a predictor".into(),
        backend: "this build".into(),
        reason: "it was made without the feature train".into(),
        nearest: "to measure here, and to train on the records with --train-only in a build of \
                  cargo build --release --features train"
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(products: &str, ours: &str) -> String {
        let folder = tempfile::tempdir().expect("a folder");
        let suite = folder.path().join("s.toml");
        let text = format!(
            "name='s'\ndescription='d'\n[[matrices]]\ngenerate='grid5:4x4'\n[products]\n{products}\n\
             [engines]\nours={ours}"
        );
        std::fs::write(&suite, text).expect("a suite");
        let bench = BenchArgs::new(suite.to_str().expect("a path"), folder.path().join("r.jsonl"));
        let training = Training::default();
        let args = TuneArgs { bench, training, topologies: false, folds: false };
        let error = measure_candidates(&args).expect_err("refused").to_string();
        assert!(!folder.path().join("r.jsonl").exists(), "nothing is measured: {error}");
        error
    }

    #[test]
    fn what_no_model_could_choose_from_is_refused_before_it_is_measured() {
        let spmm = "operations=['spmm']\ncolumns=[8]\ndtypes=['f32']";
        let two = "['row-split', 'nonzero-split']";
        assert!(refused(spmm, "['row-split']").contains("at least 2"));
        assert!(refused(spmm, "['row-split', 'row-split']").contains("row-split twice"));
        let spmv = "operations=['spmv']\ncolumns=[8]\ndtypes=['f32']";
        assert!(refused(spmv, two).contains("other products than spmm"));
        let wide = "operations=['spmm']\ncolumns=[8, 16]\ndtypes=['f32']";
        assert!(refused(wide, two).contains("2 numbers of columns"));
    }
}
