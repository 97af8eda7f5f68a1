use gustav_plan::Algorithm;

use crate::battery;

// Small enough that the battery's matrices are cut.
const TILE: Option<usize> = Some(5);

#[test]
fn passes_the_battery() {
    battery::run(Algorithm::ColumnPanel, TILE);
}

#[test]
fn does_not_depend_on_the_number_of_threads() {
    battery::deterministic(Algorithm::ColumnPanel, TILE);
}
