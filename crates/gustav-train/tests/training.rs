//! Networks learn, and learn the same every time.

#[path = "../../gustav-plan/tests/predictor/tables.rs"]
mod tables;

use gustav_plan::Features;
use gustav_plan::predictor::{Candidate, Case, Evaluation, Kind, Model, Selector, Table, Training};
use gustav_train::train;

use tables::{case, costly, table};

fn trained(table: &Table, kind: Kind, inputs: usize) -> Model {
    let training = Training { kind, inputs, passes: 40, rate: 1e-2, ..Training::default() };
    train(table, &training, "a GPU", 64, |_| {}).expect("a model")
}

#[test]
fn networks_learn_what_can_be_learnt() {
    let (learn, test) = table(600).split().expect("two tables");
    for kind in [Kind::Regression, Kind::Softmax] {
        let model = trained(&learn, kind, Features::COUNT);
        let found = Evaluation::new(&test, &model);
        assert!(found.right > 0.9 && found.oracle_share > 0.97, "{kind:?}: {found}");
        assert!(found.right > found.commonest + 0.2, "{found}");
        // What only locality shows cannot be seen by the first nine.
        let blind = Evaluation::new(&test, &trained(&learn, kind, Features::MATRIX_ONLY));
        assert!(blind.right < found.right, "{blind}");
    }
}

#[test]
fn predicted_times_come_near() {
    let table = table(300);
    let model = trained(&table, Kind::Regression, Features::COUNT);
    let off = |case: &Case| {
        let scores = model.predict(&case.inputs).scores;
        let each = scores.iter().zip(&case.ms).map(|(found, ms)| (found - ms).abs() / ms);
        each.sum::<f64>() / case.ms.len() as f64
    };
    let mean = table.cases().iter().map(off).sum::<f64>() / 300.0;
    assert!(mean < 0.1, "mean absolute percentage error {mean}");
}

#[test]
fn training_is_the_same_every_time_and_tells_its_passes() {
    let table = table(40);
    let training = Training { passes: 5, ..Training::default() };
    let mut passes = Vec::new();
    let first = train(&table, &training, "a GPU", 64, |pass| passes.push(pass)).expect("a model");
    assert_eq!(passes, [1, 2, 3, 4, 5]);
    let model = |training| train(&table, &training, "a GPU", 64, |_| {}).expect("a model");
    assert_eq!(first, model(training.clone()));
    assert_ne!(first, model(Training { seed: 2, ..training }));
}

#[test]
fn a_network_of_losses_takes_what_is_never_bad() {
    // One look for all: the first is the fastest most often, the second is always near.
    let ms =
        |k: usize| if k % 5 < 3 { vec![1.0, 1.01, 2.0, 9.0] } else { vec![3.0, 1.01, 1.0, 9.0] };
    let cases = (0..100).map(|k| Case { ms: ms(k), ..case(1) }).collect();
    let table = Table::new(Candidate::OF_THE_SOURCE.to_vec(), cases).expect("a table");
    let by_fastest = Training { kind: Kind::Softmax, weighted: false, ..Training::default() };
    let chosen = |training: Training| {
        let training = Training { passes: 60, rate: 1e-2, ..training };
        let model = train(&table, &training, "a GPU", 64, |_| {}).expect("a model");
        model.choose(&case(1).inputs)
    };
    assert_eq!((chosen(by_fastest.clone()), chosen(by_fastest.by_losses())), (0, 1));
}

#[test]
fn networks_learn_from_costs() {
    let table = costly();
    let model = trained(&table, Kind::Softmax, table.inputs());
    assert!(model.sees_costs());
    let found = Evaluation::new(&table, &model);
    assert!(found.right > 0.95, "{found}");
    let blind = trained(&table, Kind::Softmax, Features::COUNT);
    assert!(!blind.sees_costs() && Evaluation::new(&table, &blind).right < 0.6);
}

#[test]
fn networks_of_every_size_are_trained() {
    let table = table(40);
    for hidden in [&[][..], &[8], &[16, 8, 4]] {
        let training = Training { hidden: hidden.to_vec(), passes: 2, ..Training::default() };
        let model = train(&table, &training, "a GPU", 64, |_| {}).expect("a model");
        let text = model.to_text().expect("text");
        assert_eq!(text.matches("weights").count(), hidden.len() + 1);
        assert_eq!(Model::from_text(&text).expect("the model"), model);
    }
}

#[test]
fn more_l2_keeps_weights_smaller() {
    let table = table(60);
    let spread = |l2: f64| {
        let training = Training { l2, passes: 40, rate: 1e-2, ..Training::default() };
        let model = train(&table, &training, "a GPU", 64, |_| {}).expect("a model");
        // All the same but for the weights: what they say of different matrices differs less.
        let said = |k: usize| model.predict(&case(k).inputs).scores[3].ln();
        (0..60).map(said).fold(f64::NEG_INFINITY, f64::max)
            - (0..60).map(said).fold(f64::INFINITY, f64::min)
    };
    let (little, much) = (spread(1e-5), spread(1.0));
    assert!(much < 0.5 * little, "{much} {little}");
}
