//! What a plan says of itself.

use std::fmt::Display;

use gustav_core::{Index, PatternView, Problem};
use gustav_plan::autotune::Timed;
use gustav_plan::{Choice, Order, RowStats};

use crate::Device;

/// The configuration of an algorithm on one backend.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(untagged)]
pub enum Config {
    /// On the CPU.
    Cpu(gustav_cpu::Config),
    /// Of a product with a dense matrix on an NVIDIA GPU.
    Cuda(gustav_cuda::spmm::Config),
    /// Of a product with a vector on an NVIDIA GPU.
    CudaSpmv(gustav_cuda::spmv::Config),
    /// Of a dense product at the nonzeros of a pattern on an NVIDIA GPU.
    CudaSddmm(gustav_cuda::sddmm::Config),
    /// Of a softmax over the rows of a pattern on an NVIDIA GPU.
    CudaSoftmax(gustav_cuda::softmax::Config),
    /// Of an attention on an NVIDIA GPU.
    CudaAttention(gustav_cuda::attention::Config),
    /// Of a product of two sparse matrices on an NVIDIA GPU.
    CudaSpgemm(gustav_cuda::spgemm::Config),
    /// Of a product in tiles, which follow from the memory of the NVIDIA GPU.
    CudaTiled,
    /// Of a product under a mask.
    Masked,
}

impl Display for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Config::Cpu(c) => write!(f, "{c}"),
            Config::Cuda(c) => write!(f, "{c:?}"),
            Config::CudaSpmv(c) => write!(f, "{c:?}"),
            Config::CudaSddmm(c) => write!(f, "{c:?}"),
            Config::CudaSoftmax(c) => write!(f, "{c:?}"),
            Config::CudaAttention(c) => write!(f, "{c:?}"),
            Config::CudaSpgemm(c) => write!(f, "{c:?}"),
            Config::Masked => f.write_str("the mask's places in hash tables"),
            Config::CudaTiled => f.write_str("tiles as the free memory asks for"),
        }
    }
}

/// The row order of a plan.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct OrderFacts {
    /// Which.
    pub order: Order,
    /// Candidates in each neighbourhood that a bounded search looked at; `None` where the order is
    /// exactly as it is defined.
    pub bound: Option<usize>,
    /// Milliseconds that making it took, on the CPU.
    pub ms: f64,
}

/// One of the candidates that a plan was chosen among by trial or prediction.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Considered {
    /// The algorithm, with a configuration and an order where it is one of several.
    pub candidate: String,
    /// Milliseconds that the predictor expects; `None` without a prediction of times.
    pub predicted_ms: Option<f64>,
    /// Milliseconds that it took; `None` where it was not run.
    pub measured_ms: Option<f64>,
}

/// What a trial or a prediction says of its choice.
pub(crate) struct Report {
    pub reason: String,
    pub considered: Vec<Considered>,
}

impl<C: Display> From<Timed<C>> for Report {
    fn from(timed: Timed<C>) -> Self {
        let one = |(candidate, seconds): &(C, f64)| Considered {
            candidate: candidate.to_string(),
            predicted_ms: None,
            measured_ms: Some(seconds * 1e3),
        };
        Report { reason: timed.reason(), considered: timed.iter().map(one).collect() }
    }
}

/// Algorithm, configuration, facts, reason and workspace of a plan. Printed, it is a few
/// lines of text.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Explanation {
    /// What is computed.
    pub problem: Problem,
    /// Where.
    pub device: String,
    /// The device in a few words.
    pub device_description: String,
    /// Facts about A; `None` for a matrix in a GPU's memory, which is not read back for them.
    pub facts: Option<RowStats>,
    /// The order in which rows are taken; `None` where none was asked for.
    pub order: Option<OrderFacts>,
    /// Algorithm, configuration and reason.
    pub choice: Choice<Config>,
    /// What was chosen among, where that was by trial or prediction: the best first, as timed or
    /// predicted; last what was tried beside a prediction and is not predicted itself.
    pub considered: Vec<Considered>,
    /// Bytes that the plan holds besides the operands.
    pub workspace_bytes: usize,
}

impl Explanation {
    pub(crate) fn new(
        problem: &Problem,
        device: &Device,
        facts: Option<RowStats>,
        choice: Choice<Config>,
        workspace_bytes: usize,
    ) -> Self {
        Explanation {
            problem: problem.clone(),
            device: device.name().into(),
            device_description: device.description(),
            facts,
            order: None,
            choice,
            considered: Vec::new(),
            workspace_bytes,
        }
    }

    /// The same with the reason and the candidates of a trial or a prediction.
    pub(crate) fn reported(mut self, report: Option<Report>) -> Self {
        if let Some(Report { reason, considered }) = report {
            self.choice.reason = reason;
            self.considered = considered;
        }
        self
    }
}

/// The facts about a pattern in host memory.
pub(crate) fn facts<I: Index, O: Index>(
    device: &Device,
    a: &PatternView<'_, I, O>,
) -> Option<RowStats> {
    Some(device.threads().run(|| RowStats::new(a)))
}

impl Display for Explanation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Explanation { problem, facts, order, choice, considered, .. } = self;
        writeln!(f, "problem    {problem}")?;
        writeln!(f, "device     {} ({})", self.device, self.device_description)?;
        if let Some(facts) = facts {
            writeln!(
                f,
                "facts      rows of {} to {} nonzeros, mean {:.2}, deviation {:.2}, {} empty",
                facts.min_row_length,
                facts.max_row_length,
                facts.mean_row_length,
                facts.row_length_deviation,
                facts.empty_rows,
            )?;
            writeln!(
                f,
                "           row span {:.0} columns; {:.0}% of neighbours consecutive, {:.0}% of rows \
                 like the next",
                facts.mean_row_span,
                facts.consecutive * 100.0,
                facts.same_as_next * 100.0,
            )?;
        }
        writeln!(f, "algorithm  {} ({})", choice.algorithm, choice.algorithm.source())?;
        if let Some(OrderFacts { order, bound, ms }) = order {
            let near = bound.map(|b| format!(", {b} candidates a neighbourhood"));
            let near = near.unwrap_or_default();
            writeln!(f, "order      {order} ({}), made in {ms:.1} ms{near}", order.source())?;
        }
        writeln!(f, "config     {}", choice.config)?;
        writeln!(f, "why        {}", choice.reason)?;
        for (k, Considered { candidate, predicted_ms, measured_ms }) in
            considered.iter().enumerate()
        {
            let ms = |ms: &Option<f64>| ms.map_or("-".into(), |ms| format!("{ms:.4}"));
            let (predicted, measured) = (ms(predicted_ms), ms(measured_ms));
            if k == 0 {
                writeln!(f, "candidates predicted ms  measured ms")?;
            }
            writeln!(f, "           {predicted:>12} {measured:>12}  {candidate}")?;
        }
        write!(f, "workspace  {} bytes", self.workspace_bytes)
    }
}
