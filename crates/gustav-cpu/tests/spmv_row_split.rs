//! `row-split` against the oracle.

mod common;

use gustav_plan::Algorithm;
use gustav_testkit::battery::Settings;

#[test]
fn passes_the_battery() {
    common::passes_the_battery(Algorithm::RowSplit, &Settings::default());
}

#[test]
fn right_on_structures() {
    common::right_on_structures(Algorithm::RowSplit, &[false, true]);
}

#[test]
fn serves_new_values_and_refuses_other_patterns() {
    common::serves_new_values_and_refuses_other_patterns(Algorithm::RowSplit);
}
