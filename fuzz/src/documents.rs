//! Text that is no matrix: suites, records, models and names. The seeded mutation test of
//! `gustav-bench` runs these functions on stable Rust.

use std::fmt::Display;
use std::str::FromStr;

use gustav_bench::Suite;
use gustav_core::Result;
use gustav_plan::predictor::{Candidate, Model};
use gustav_plan::{Algorithm, Chooser, Order};
use gustav_report::{Filter, parse_records};

/// A suite of the bench.
pub fn suite(bytes: &[u8]) {
    text(bytes, Suite::parse);
}

/// Records of the bench, as JSON lines.
pub fn records(bytes: &[u8]) {
    refused_in_words(parse_records(bytes, "fuzzed.jsonl".as_ref()));
}

/// A model of the predictor, and what it predicts.
pub fn model(bytes: &[u8]) {
    let Some(model) = text(bytes, Model::from_text) else { return };
    let written = model.to_text().expect("numbers that were read can be written");
    assert_eq!(Model::from_text(&written).expect("what we write is read back"), model);
}

/// Names and filters that are given on the command line.
pub fn names(bytes: &[u8]) {
    text(bytes, Filter::from_str);
    text(bytes, Chooser::from_str);
    same_again::<Algorithm>(bytes);
    same_again::<Candidate>(bytes);
    same_again::<Order>(bytes);
}

/// What is read, printed and read again is the same.
fn same_again<N: Display + FromStr<Err = gustav_core::Error>>(bytes: &[u8]) {
    let Some(name) = text(bytes, N::from_str) else { return };
    let printed = name.to_string();
    assert_eq!(N::from_str(&printed).expect("what we print is read back").to_string(), printed);
}

fn text<R>(bytes: &[u8], parse: impl FnOnce(&str) -> Result<R>) -> Option<R> {
    refused_in_words(parse(std::str::from_utf8(bytes).ok()?))
}

fn refused_in_words<R>(parsed: Result<R>) -> Option<R> {
    match parsed {
        Ok(value) => Some(value),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            None
        }
    }
}
