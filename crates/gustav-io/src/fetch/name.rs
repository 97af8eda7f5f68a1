//! Names of the collection.

use std::fmt::Display;
use std::str::FromStr;

use gustav_core::{Error, Result};

/// A matrix of the collection, as `GROUP/NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatrixName {
    group: String,
    name: String,
}

impl MatrixName {
    /// The group.
    pub fn group(&self) -> &str {
        &self.group
    }

    /// The name within its group.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Display for MatrixName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.group, self.name)
    }
}

impl FromStr for MatrixName {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        // Names become parts of an address and of a path.
        let plain = |word: &str| {
            let known = |c: char| c.is_ascii_alphanumeric() || "_-+.".contains(c);
            !word.is_empty() && !word.starts_with('.') && word.chars().all(known)
        };
        match text.split_once('/') {
            Some((group, name)) if plain(group) && plain(name) => {
                Ok(MatrixName { group: group.into(), name: name.into() })
            }
            _ => Err(Error::Argument {
                name: "name",
                found: text.into(),
                expected: "GROUP/NAME as the collection lists it, for example HB/bcsstk16".into(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_a_group_and_stay_in_their_place() {
        let name: MatrixName = "HB/bcsstk16".parse().unwrap();
        assert_eq!((name.group(), name.name()), ("HB", "bcsstk16"));
        assert_eq!(name.to_string(), "HB/bcsstk16");
        assert!("SNAP/as-22july06".parse::<MatrixName>().is_ok());
        for bad in ["bcsstk16", "/x", "HB/", "HB/../x", "HB/a/b", "HB/..", "a?b/c", "HB/a b"] {
            let error = bad.parse::<MatrixName>().unwrap_err().to_string();
            assert!(error.contains("HB/bcsstk16"), "{bad}: {error}");
        }
    }
}
