//! Parsing of the arguments of a description: numbers and dimensions separated by commas.

use std::str::FromStr;

use gustav_core::{Error, IndexType, Result};

/// The arguments that are not parsed yet.
pub(crate) struct Args<'a> {
    whole: &'a str,
    rest: Option<&'a str>,
    usage: &'static str,
}

impl<'a> Args<'a> {
    pub fn new(whole: &'a str, rest: &'a str, usage: &'static str) -> Self {
        Args { whole, rest: Some(rest).filter(|r| !r.is_empty()), usage }
    }

    /// The error for argument `found`.
    pub fn error(&self, reason: &str) -> Error {
        Error::Argument {
            name: "generator",
            found: format!("{:?}", self.whole),
            expected: format!("{}: {reason}", self.usage),
        }
    }

    fn next(&mut self) -> Option<&'a str> {
        let rest = self.rest.take()?;
        let (first, rest) = match rest.split_once(',') {
            Some((first, rest)) => (first, Some(rest)),
            None => (rest, None),
        };
        self.rest = rest;
        Some(first)
    }

    fn parse<N: FromStr>(&self, text: &str, what: &str) -> Result<N> {
        text.parse().map_err(|_| self.error(&format!("{what} cannot be {text:?}")))
    }

    fn required(&mut self, what: &str) -> Result<&'a str> {
        self.next().ok_or_else(|| self.error(&format!("{what} is missing")))
    }

    /// `N` dimensions joined by `x`.
    pub fn dimensions<const N: usize>(&mut self, what: &str) -> Result<[usize; N]> {
        let text = self.required(what)?;
        let sizes: Vec<usize> =
            text.split('x').map(|part| self.parse(part, what)).collect::<Result<_>>()?;
        sizes.try_into().map_err(|_| self.error(&format!("{what} cannot be {text:?}")))
    }

    /// A size.
    pub fn size(&mut self, what: &str) -> Result<usize> {
        let text = self.required(what)?;
        self.parse(text, what)
    }

    /// A size of at most `most`, the number of `of`.
    pub fn size_up_to(&mut self, what: &str, most: usize, of: &str) -> Result<usize> {
        let size = self.size(what)?;
        if size <= most {
            return Ok(size);
        }
        Err(self.error(&format!("{what} must be at most the number of {of}, {most}, not {size}")))
    }

    /// A real number within `range`.
    pub fn real(&mut self, what: &str, range: std::ops::RangeInclusive<f64>) -> Result<f64> {
        let text = self.required(what)?;
        let value: f64 = self.parse(text, what)?;
        if range.contains(&value) {
            return Ok(value);
        }
        let (low, high) = range.into_inner();
        Err(self.error(&format!("{what} must lie between {low} and {high}, not at {text}")))
    }

    /// Whether every argument has been read.
    pub fn is_done(&self) -> bool {
        self.rest.is_none()
    }

    /// Checks that all arguments were parsed.
    pub fn end(&self) -> Result<()> {
        match self.rest {
            None => Ok(()),
            Some(rest) => Err(self.error(&format!("{rest:?} is too much"))),
        }
    }
}

/// The product of sizes.
///
/// # Errors
/// [`Error::Overflow`] when it passes 64 bits.
pub(crate) fn product(what: &'static str, sizes: &[usize]) -> Result<usize> {
    sizes.iter().try_fold(1usize, |p, &s| p.checked_mul(s)).ok_or_else(|| {
        let need = sizes.iter().fold(1u128, |p, &s| p.saturating_mul(s as u128));
        Error::Overflow { what, need, index_type: IndexType::U64 }
    })
}
