//! SDDMM over ranks.

use crate::cases::sddmm;
use crate::common::Threads;

#[test]
fn f32_battery() {
    sddmm::f32_battery(&Threads);
}

#[test]
fn battery_of_sixteen_bits_and_integers() {
    sddmm::battery_of_sixteen_bits_and_integers(&Threads);
}
