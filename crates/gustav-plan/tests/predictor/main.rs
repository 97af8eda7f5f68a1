//! The predictor: its file, its choices.

mod tables;

use gustav_core::{Csr, Error};
use gustav_plan::Features;
use gustav_plan::predictor::{
    Candidate, Case, Evaluation, Inputs, Kind, Model, Selector, Table, Tree, simulates,
};
use serde_json::json;

use tables::{case, costly, table};

/// A model with so many inputs and weights from a formula.
fn stored(kind: Kind, inputs: usize) -> Model {
    let candidates = Candidate::OF_THE_SOURCE;
    let weight = |k: usize| ((k * 37 + 11) % 101) as f64 / 101.0 - 0.5;
    let layer = |outputs: usize, inputs: usize| {
        let row = |j| (0..inputs).map(|i| weight(j * inputs + i) / inputs as f64).collect();
        let rows: Vec<Vec<f64>> = (0..outputs).map(row).collect();
        json!({ "weights": rows, "bias": (0..outputs).map(weight).collect::<Vec<f64>>() })
    };
    let file = json!({
        "format": "gustav-predictor", "version": 1, "device": "a GPU", "columns": 64,
        "kind": kind, "candidates": candidates.map(|c| c.to_string()),
        "inputs": Inputs::names(&candidates)[..inputs],
        "mean": vec![0.5; inputs], "deviation": vec![1.5; inputs],
        "layers": [layer(5, inputs), layer(candidates.len(), 5)],
    });
    Model::from_text(&file.to_string()).expect("a model")
}

#[test]
fn trees_learn_what_can_be_learnt() {
    let (learn, test) = table(600).split().expect("two tables");
    assert!(test.cases().len() > 60 && learn.cases().len() > 400);
    assert!(test.cases().iter().all(|t| learn.cases().iter().all(|l| l.source != t.source)));
    let tree = Tree::train(&learn, Features::COUNT);
    assert!((2..64).contains(&tree.questions()));
    let found = Evaluation::new(&test, &tree);
    assert!(found.right > 0.95, "{found}");
    let table = costly();
    let all = Inputs::count(table.candidates());
    assert_eq!((table.inputs(), all), (27, 27));
    assert!(Evaluation::new(&table, &Tree::train(&table, all)).right > 0.9);
}

#[test]
fn a_model_comes_back_as_it_was_written() {
    let model = stored(Kind::Softmax, Features::MATRIX_ONLY);
    let back = Model::from_text(&model.to_text().expect("text")).expect("the model");
    assert_eq!(back, model);
    let prediction = back.predict(&case(7).inputs);
    assert!((prediction.scores.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    assert_eq!(back.choose(&case(7).inputs), prediction.best);
}

#[test]
fn a_network_of_shares_tells_times_by_a_regression() {
    let shares = stored(Kind::Softmax, Features::COUNT);
    assert_eq!(shares.predict(&case(7).inputs).ms, None);
    let times = stored(Kind::Regression, Features::COUNT);
    let both = shares.clone().with_times(&times).expect("a model");
    let back = Model::from_text(&both.to_text().expect("text")).expect("the model");
    assert_eq!(back, both);
    let [alone, found, expected] = [&shares, &both, &times].map(|m| m.predict(&case(7).inputs));
    assert_eq!((found.best, &found.scores), (alone.best, &alone.scores));
    assert_eq!(found.ms.as_ref(), Some(&expected.scores));
    assert_eq!(expected.ms, found.ms);
    // Not of a network that sees other inputs, or tells no times.
    let blind = stored(Kind::Regression, Features::MATRIX_ONLY);
    for other in [&blind, &shares] {
        assert!(matches!(shares.clone().with_times(other), Err(Error::Argument { .. })));
    }
    // Nor of one that tells times itself.
    assert!(matches!(times.clone().with_times(&times), Err(Error::Argument { .. })));
    let text = both.to_text().expect("text").replace("softmax", "regression");
    let e = Model::from_text(&text).expect_err("times beside times");
    assert!(e.to_string().contains("times: a regression"), "{e}");
    let text = both
        .to_text()
        .expect("text")
        .replace("\"times\":[{", "\"times\":[{\"bias\":[],\"weights\":[]},{");
    let e = Model::from_text(&text).expect_err("an empty layer");
    assert!(e.to_string().contains("times: layer 0"), "{e}");
}

#[test]
fn a_small_model_works_as_computed_by_hand() {
    // ln(1 + 0) and ln(1 + e − 1), standardised to −1 and 1; hidden 0 and 3; outputs 3.5 and 2.
    let text = r#"{"format": "gustav-predictor", "version": 1, "device": "d", "columns": 8,
        "kind": "regression", "candidates": ["segmented", "segmented@min-hash"],
        "inputs": ["nrow", "ncol"], "mean": [0.5, 0.5], "deviation": [0.5, 0.5],
        "layers": [{"weights": [[1, 0], [0, 2]], "bias": [0.5, 1]},
                   {"weights": [[9, 1], [9, 0.5]], "bias": [0.5, 0.5]}]}"#;
    let model = Model::from_text(text).expect("a model");
    let e = std::f64::consts::E;
    let features = Features { nrow: 0.0, ncol: e - 1.0, ..Features::default() };
    let prediction = model.predict(&features.into());
    assert_eq!(prediction.best, 1);
    for (found, log) in prediction.scores.iter().zip([3.5, 2.0]) {
        assert!((found.ln() - log).abs() < 1e-12, "{prediction:?}");
    }
}

#[test]
fn damaged_models_are_refused_with_the_place() {
    let text = stored(Kind::Regression, Features::COUNT).to_text().expect("text");
    let damaged = |from: &str, to: &str| {
        let other = text.replacen(from, to, 1);
        assert_ne!(other, text, "{from} is not in the file");
        match Model::from_text(&other) {
            Err(e @ Error::Format { .. }) => e.to_string(),
            other => panic!("{to} was taken: {other:?}"),
        }
    };
    for (from, to, says) in [
        ("\"version\":1", "\"version\":2", "version: expected 1, found 2"),
        ("gustav-predictor", "gustav", "format"),
        ("\"nrow\"", "\"rows\"", "inputs: expected the first of nrow"),
        ("output-stationary@lpt", "output-stationary@fastest", "order"),
        (",\"output-stationary@lpt\"", "", "3 candidates"),
        ("\"mean\":[", "\"mean\":[1,", "mean: expected 24 numbers, found 25"),
        ("\"deviation\":[", "\"deviation\":[0,", "deviation"),
        ("\"bias\":[", "\"bias\":[1,", "layer 0"),
        ("\"columns\"", "\"column\"", "column"),
        ("{", "[", "line 1"),
    ] {
        let message = damaged(from, to);
        assert!(message.contains(says), "{message} does not say {says}");
    }
}

#[test]
fn tables_that_cannot_be_learnt_from_are_refused() {
    let of = |candidates: &[Candidate], cases| Table::new(candidates.to_vec(), cases);
    let all = &Candidate::OF_THE_SOURCE;
    assert!(of(all, vec![]).is_err());
    assert!(of(&all[..1], vec![case(1)]).is_err());
    assert!(of(all, vec![Case { ms: vec![1.0, 2.0], ..case(1) }]).is_err());
    assert!(of(all, vec![Case { ms: vec![1.0, 0.0, 1.0, 1.0], ..case(1) }]).is_err());
    let costs = |count| Inputs { costs: vec![0.5; count], ..case(1).inputs };
    assert!(of(all, vec![Case { inputs: costs(2), ..case(1) }]).is_err());
    assert!(of(all, vec![Case { inputs: costs(3), ..case(1) }, case(2)]).is_err());
    // One source cannot be parted.
    let alike = (0..9).map(|k| Case { source: "one".into(), ..case(k) }).collect();
    let error = of(all, alike).expect("a table").split().expect_err("one source").to_string();
    assert!(error.contains("1 sources") && error.contains("at least 2"), "{error}");
}

/// The costs of the source's candidates for the pattern of `rows`.
fn costs(rows: &[Vec<u32>], cols: usize) -> Vec<f64> {
    let offsets = rows.iter().scan(0, |sum, row| {
        *sum += row.len() as u32;
        Some(*sum)
    });
    let offsets: Vec<u32> = std::iter::once(0).chain(offsets).collect();
    let indices: Vec<u32> = rows.concat();
    let values = vec![1f32; indices.len()];
    let a = Csr::<f32>::new(rows.len(), cols, offsets, indices, values).expect("a matrix");
    Inputs::with_costs(&a.view().pattern(), &Candidate::OF_THE_SOURCE).expect("costs").costs
}

#[test]
fn costs_know_balance_and_what_is_left_out() {
    // DCSR leaves out what is empty, which every other order walks over.
    let sparse: Vec<Vec<u32>> =
        (0..4000).map(|r| if r % 20 == 0 { vec![r] } else { vec![] }).collect();
    let [dcsr, lpt, warp] = costs(&sparse, 4000)[..] else { panic!("three costs") };
    assert!(dcsr < -1.0 && dcsr < lpt && dcsr < warp, "{dcsr} {lpt} {warp}");
    // Long rows all of one warp are dealt to all by LPT.
    let uneven: Vec<Vec<u32>> =
        (0..2048).map(|r| (0..if r % 32 == 0 { 2000 } else { 2 }).collect()).collect();
    let [dcsr, lpt, _] = costs(&uneven, 2048)[..] else { panic!("three costs") };
    assert!(lpt < -1.0 && dcsr.abs() < 0.1, "{dcsr} {lpt}");
    // Rows that are alike gain nothing, and a list is one load more.
    let even: Vec<Vec<u32>> = (0..2048).map(|r| (r..r + 100).collect()).collect();
    let [dcsr, lpt, warp] = costs(&even, 2148)[..] else { panic!("three costs") };
    assert!(dcsr > 0.0 && lpt > 0.0 && warp > -0.05, "{dcsr} {lpt} {warp}");
    assert_eq!(costs(&[], 3), [0.0; 3]);
}

#[test]
fn costs_are_of_the_kernel_of_the_source() {
    assert!(Candidate::OF_THE_SOURCE.iter().all(simulates));
    for other in ["segmented", "output-stationary#1", "dcsr@lpt", "segmented@lpt"] {
        assert!(!simulates(&other.parse().expect("a candidate")), "{other}");
    }
    let candidates = ["output-stationary", "segmented"].map(|c| c.parse().expect("a candidate"));
    let eye = Csr::<f32>::new(1, 1, vec![0, 1], vec![0], vec![1.0]).expect("a matrix");
    let inputs = Inputs::with_costs(&eye.view().pattern(), &candidates).expect("inputs");
    assert!(inputs.costs.is_empty());
}

#[test]
fn a_model_names_the_costs_that_it_sees() {
    let all = Inputs::count(&Candidate::OF_THE_SOURCE);
    let model = stored(Kind::Softmax, all);
    assert!(model.sees_costs() && !stored(Kind::Softmax, Features::COUNT).sees_costs());
    let text = model.to_text().expect("text");
    assert!(text.contains("cost-of-output-stationary@lpt"), "{text}");
    assert_eq!(Model::from_text(&text).expect("the model"), model);
    let fewer = text.replacen(",\"cost-of-output-stationary@warp-aware\"", "", 1);
    assert!(Model::from_text(&fewer).expect_err("too few").to_string().contains("inputs"));
}

#[test]
fn candidates_are_written_as_they_are_read() {
    for candidate in Candidate::OF_THE_SOURCE {
        assert_eq!(candidate.to_string().parse::<Candidate>().expect("itself"), candidate);
    }
    assert!("segmented@fastest".parse::<Candidate>().is_err());
    assert!("fastest@lpt".parse::<Candidate>().is_err());
}

#[test]
fn an_evaluation_worked_by_hand() {
    struct First;
    impl Selector for First {
        fn choose(&self, _: &Inputs) -> usize {
            0
        }
    }
    let of = |source: &str, ms: &[f64]| Case { source: source.into(), ms: ms.into(), ..case(0) };
    let cases = vec![of("a", &[1.0, 2.0]), of("a", &[2.0, 1.0]), of("b", &[1.25, 1.0])];
    let table = Table::new(Candidate::OF_THE_SOURCE[..2].to_vec(), cases).expect("a table");
    let found = Evaluation::new(&table, &First);
    assert_eq!((found.right, found.commonest), (1.0 / 3.0, 2.0 / 3.0));
    assert!((found.oracle_share - (1.0 + 0.5 + 0.8) / 3.0).abs() < 1e-12);
    assert_eq!((found.gain, found.worst_loss), (1.0, 0.5));
    assert!((found.oracle_gain - (1.0 + 2.0 + 1.25) / 3.0).abs() < 1e-12);
    assert_eq!((found.gain_ratio, found.confusion), (0.0, vec![vec![1, 0], vec![2, 0]]));
    assert_eq!(found.losses, [1, 0, 0, 0, 1, 1, 0]);
    assert_eq!(found.by_source["a"], (2, 0.5));
}
