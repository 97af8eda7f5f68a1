use gustav_plan::Algorithm;
use gustav_testkit::battery::Settings;

use crate::{battery, structures};

#[test]
fn passes_the_battery() {
    battery::passes_the_battery(Algorithm::MergePath, &Settings::default());
}

#[test]
fn right_on_structures() {
    structures::right_on_structures(Algorithm::MergePath, &[false, true]);
}
