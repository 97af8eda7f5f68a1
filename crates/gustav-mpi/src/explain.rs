//! What a plan over ranks says of itself.

use std::fmt::Display;

use gustav_core::{Operation, Problem};
use gustav_cpu::Config;
use gustav_plan::Choice;

use crate::{Communication, Volume};

/// What is computed, what ranks send, and how work is balanced. Printed, it is a few lines of text.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// What is computed, over all ranks.
    pub problem: Problem,
    /// What connects the ranks.
    pub ranks: String,
    /// What they send each other.
    pub communication: Communication,
    /// How much, counted on the ranks when the plan was made.
    pub volume: Volume,
    /// Algorithm, configuration and reason for this rank's own block.
    pub choice: Choice<Config>,
    /// Bytes that the plan holds on this rank.
    pub workspace_bytes: usize,
}

impl Display for Explanation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Explanation { problem, ranks, communication, volume, choice, workspace_bytes } = self;
        writeln!(f, "problem    {problem}")?;
        writeln!(f, "ranks      {ranks}")?;
        writeln!(f, "sent       {} bytes in {} messages", volume.bytes(), volume.messages())?;
        let (rows, partial) = (volume.rows_of_b_bytes, volume.partial_rows_bytes);
        match problem.operation {
            Operation::Spmm | Operation::Spmv => writeln!(
                f,
                "           {}; only rows of B: {rows} bytes, only partial rows of C: {partial}, all of B to all: {}",
                communication.name(),
                volume.oblivious_bytes,
            )?,
            _ => writeln!(f, "           all to all: {} bytes", volume.oblivious_bytes)?,
        }
        let (network, direct) = (volume.network_bytes, volume.direct_network_bytes);
        if network < direct {
            writeln!(
                f,
                "network    {network} bytes between hosts, {direct} if no rank passed on rows of B"
            )?;
        }
        writeln!(
            f,
            "balance    most nonzeros of a rank {:.3} x the mean, most bytes {:.3} x",
            volume.imbalance(),
            volume.communication_imbalance(),
        )?;
        writeln!(
            f,
            "algorithm  {} for this rank's own block: {}",
            choice.algorithm, choice.reason
        )?;
        write!(f, "workspace  {workspace_bytes} bytes on this rank")
    }
}
