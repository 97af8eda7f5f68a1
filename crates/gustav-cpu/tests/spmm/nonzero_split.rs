use gustav_plan::Algorithm;

use crate::battery;

#[test]
fn passes_the_battery() {
    battery::run(Algorithm::NonzeroSplit, None);
}

#[test]
fn does_not_depend_on_the_number_of_threads() {
    battery::deterministic(Algorithm::NonzeroSplit, None);
}
