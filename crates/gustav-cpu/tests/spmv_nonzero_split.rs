//! `nonzero-split` against the oracle.

mod common;

use gustav_plan::Algorithm;
use gustav_testkit::battery::Settings;

#[test]
fn passes_the_battery() {
    common::passes_the_battery(Algorithm::NonzeroSplit, &Settings::default());
}

#[test]
fn right_on_structures() {
    common::right_on_structures(Algorithm::NonzeroSplit, &[false, true]);
}

#[test]
fn serves_new_values_and_refuses_other_patterns() {
    common::serves_new_values_and_refuses_other_patterns(Algorithm::NonzeroSplit);
}
