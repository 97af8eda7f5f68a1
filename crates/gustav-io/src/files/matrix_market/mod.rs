//! The Matrix Market exchange format (R. Boisvert, R. Pozo and K. Remington, "The Matrix
//! Market Exchange Formats: Initial Design", NISTIR 5935, 1996).

pub(crate) mod array;
pub(crate) mod coordinate;
mod counting_sort;
pub(crate) mod half;
mod line;
pub(crate) mod prologue;
pub(crate) mod write;
