//! Rules that choose an algorithm from facts.

pub mod mean_row_length;
