//! Which algorithms a device has.

use gustav_core::{Error, Operation, Problem, Result};
use gustav_plan::{Algorithm, Chooser};

use crate::Device;

fn cpu(operation: Operation) -> Vec<Algorithm> {
    let entries = match operation {
        Operation::Spmm => gustav_cpu::spmm::catalog(),
        Operation::Spmv => gustav_cpu::spmv::catalog(),
        Operation::Spgemm => gustav_cpu::spgemm::catalog(),
        Operation::Sddmm => gustav_cpu::sddmm::catalog(),
        Operation::Softmax => gustav_cpu::softmax::catalog(),
        Operation::Attention => gustav_cpu::attention::catalog(),
    };
    entries.iter().map(|e| e.algorithm).collect()
}

fn cuda(operation: Operation) -> Vec<Algorithm> {
    let entries = match operation {
        Operation::Spmm => gustav_cuda::spmm::catalog(),
        Operation::Spmv => gustav_cuda::spmv::catalog(),
        Operation::Spgemm => gustav_cuda::spgemm::catalog(),
        Operation::Sddmm => gustav_cuda::sddmm::catalog(),
        Operation::Attention => gustav_cuda::attention::catalog(),
        Operation::Softmax => gustav_cuda::softmax::catalog(),
    };
    entries.iter().map(|e| e.algorithm).collect()
}

impl Device {
    /// The algorithms that this device has for `operation`.
    pub fn algorithms(&self, operation: Operation) -> Vec<Algorithm> {
        if self.gpu().is_some() { cuda(operation) } else { cpu(operation) }
    }

    /// Refuses an operation or a named algorithm that only the other kind of device has, and
    /// timing where the result must be the same from run to run, naming what works.
    pub(crate) fn offers(&self, problem: &Problem) -> Result<()> {
        let operation = problem.operation;
        let here = self.algorithms(operation);
        let on_cpu = self.gpu().is_none();
        let refuse = |backend: String, reason: &str, nearest: String| {
            let problem = problem.to_string();
            Err(Error::Unsupported { problem, backend, reason: reason.into(), nearest })
        };
        if here.is_empty() {
            return refuse(self.name().into(), "this product has no kernels there", "cpu".into());
        }
        if let Some(order) = self.order()
            && (on_cpu || operation != Operation::Spmm)
        {
            let backend = format!("the row order {order} of {operation} on {}", self.name());
            let nearest = "spmm on the device cuda:0, or no order".into();
            return refuse(backend, "its algorithms take rows as they are stored", nearest);
        }
        if self.chooser() == Chooser::Predictor && (on_cpu || operation != Operation::Spmm) {
            let backend = format!("the predictor of {operation} on {}", self.name());
            let nearest = "spmm on the device cuda:0, or the chooser auto".into();
            return refuse(backend, "it chooses among algorithms of SpMM on GPUs", nearest);
        }
        if self.chooser() == Chooser::Autotune && problem.deterministic {
            let nearest = "the chooser auto or a named algorithm, or results that need not be the \
                           same to the bit";
            let reason = "which algorithm is fastest differs from run to run, and so do its sums";
            return refuse("autotuning".into(), reason, nearest.into());
        }
        let Chooser::Named(algorithm) = self.chooser() else { return Ok(()) };
        let (there, reason, other) = if on_cpu {
            (cuda(operation), "it is an algorithm of GPUs", "cuda:0")
        } else {
            (cpu(operation), "it is an algorithm of the CPU", "cpu")
        };
        if here.contains(&algorithm) || !there.contains(&algorithm) {
            return Ok(());
        }
        let names: Vec<_> = here.iter().map(|a| a.name()).collect();
        let nearest = format!("{algorithm} on the device {other}; here auto, {}", names.join(", "));
        refuse(format!("{algorithm} on {}", self.name()), reason, nearest)
    }
}

#[cfg(test)]
mod tests {
    use gustav_core::Csr;

    use super::*;

    #[test]
    fn what_only_gpus_have_is_refused_with_what_works() {
        let eye = Csr::<f32>::new(1, 1, vec![0u32, 1], vec![0u32], vec![1.0]).expect("a matrix");
        for algorithm in [Algorithm::Segmented, Algorithm::Vendor] {
            let device = Device::cpu().choose(Chooser::Named(algorithm));
            let plan = eye.pattern().spmm(2).plan::<f32, _>(&device);
            let text = plan.err().expect("a refusal").to_string();
            for part in [algorithm.name(), "on the device cuda:0", "row-split", "csb"] {
                assert!(text.contains(part), "{part}: {text}");
            }
        }
    }

    #[test]
    fn row_orders_are_refused_where_rows_are_taken_as_stored() {
        let eye = Csr::<f32>::new(1, 1, vec![0u32, 1], vec![0u32], vec![1.0]).expect("a matrix");
        let device = Device::cpu().with_order(gustav_plan::Order::Lpt);
        let spmm = |device: &Device| {
            let plan = eye.pattern().spmm(2).plan::<f32, _>(device);
            plan.err().expect("a refusal").to_string()
        };
        let text = spmm(&device);
        assert!(text.contains("lpt") && text.contains("cuda:0"), "{text}");
        let plan = eye.pattern().spmv().plan::<f32, _>(&device);
        let text = plan.err().expect("a refusal").to_string();
        assert!(text.contains("row order"), "{text}");
        let text = spmm(&Device::cpu().choose(Chooser::Predictor));
        assert!(text.contains("predictor") && text.contains("auto"), "{text}");
    }

    #[test]
    fn every_operation_has_algorithms_on_the_cpu() {
        for operation in [Operation::Spmm, Operation::Spmv, Operation::Spgemm] {
            assert!(Device::cpu().algorithms(operation).len() >= 3, "{operation}");
        }
    }
}
