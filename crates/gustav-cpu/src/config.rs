//! The caller's options for a plan, and the configuration that the plan chose.

use std::fmt::Display;

use gustav_core::{Error, Result};
use gustav_plan::Chooser;

use crate::Threads;
use crate::arch::Isa;

/// The caller's options for a plan.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Who chooses the algorithm.
    pub chooser: Chooser,
    /// The threads to run on.
    pub threads: Threads,
    /// The instruction set to use; `None` for the best of this machine.
    pub isa: Option<Isa>,
    /// Rows of B in one tile (`column-panel`), or rows and columns of a block (`csb` of SpMM), at
    /// least 1; `None` to derive it from the cache size.
    pub tile: Option<usize>,
    /// Whether SpMM and SpGEMM write C with streaming stores where they can; `None` to do so when C
    /// is larger than the caches.
    pub streaming: Option<bool>,
    /// How many nonzeros before their use an SpMM prefetches rows of B, 0 for no prefetch; `None`
    /// to derive it from how scattered the columns are.
    pub prefetch_distance: Option<usize>,
    /// Whether entries of an SpGEMM's result that come out as exactly zero are left out.
    pub drop_zeros: bool,
}

impl Options {
    /// The instruction set to use: the requested one, else the best of this machine.
    ///
    /// # Errors
    /// [`Error::Argument`] when this machine lacks the requested one.
    pub fn isa(&self) -> Result<Isa> {
        match self.isa {
            Some(isa) if !isa.available() => Err(Error::Argument {
                name: "instruction set",
                found: isa.to_string(),
                expected: format!("one of this machine, at best {}", Isa::detect()),
            }),
            Some(isa) => Ok(isa),
            None => Ok(Isa::detect()),
        }
    }
}

/// The configuration of a CPU algorithm.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Config {
    /// Instruction set.
    pub isa: Isa,
    /// Threads.
    pub threads: usize,
    /// Rows of B in one tile (`column-panel`), or rows and columns of a block (`csb`).
    pub tile: Option<usize>,
    /// Whether C is written with streaming stores.
    pub streaming: bool,
    /// How many nonzeros before their use rows of B are prefetched, 0 for no prefetch.
    pub prefetch_distance: usize,
}

/// The configuration in words; parameters at their defaults are left out.
impl Display for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Config { isa, threads, tile, streaming, prefetch_distance } = self;
        let s = if *threads == 1 { "" } else { "s" };
        write!(f, "{threads} thread{s}, {isa}")?;
        if let Some(tile) = tile {
            write!(f, ", tiles of {tile}")?;
        }
        if *streaming {
            f.write_str(", C written past the caches")?;
        }
        if *prefetch_distance > 0 {
            write!(f, ", rows of B prefetched {prefetch_distance} nonzeros ahead")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_displayed_in_words() {
        let isa = Isa::Portable;
        let plain = Config { isa, threads: 1, tile: None, streaming: false, prefetch_distance: 0 };
        assert_eq!(plain.to_string(), format!("1 thread, {isa}"));
        let rich =
            Config { isa, threads: 4, tile: Some(512), streaming: true, prefetch_distance: 16 };
        let words = "tiles of 512, C written past the caches, rows of B prefetched 16 nonzeros \
                     ahead";
        assert_eq!(rich.to_string(), format!("4 threads, {isa}, {words}"));
    }
}
