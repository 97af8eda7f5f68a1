use gustav_plan::Algorithm;
use gustav_testkit::battery::Settings;

use crate::{battery, structures};

#[test]
fn passes_the_battery() {
    battery::passes_the_battery(Algorithm::Csb, &Settings::default());
}

#[test]
fn right_on_structures() {
    structures::right_on_structures(Algorithm::Csb, &[false, true]);
}
