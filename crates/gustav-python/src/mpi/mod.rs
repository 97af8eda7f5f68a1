//! Products over the ranks of an MPI program.

mod pattern;
mod ranks;
mod scatter;
mod sddmm;
mod spgemm;
mod spmm;
mod target;

use pyo3::prelude::*;

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<ranks::Ranks>()?;
    module.add_class::<pattern::DistPattern>()?;
    module.add_function(wrap_pyfunction!(scatter::scatter, module)?)?;
    module.add_class::<target::DistExplanation>()?;
    module.add_class::<spmm::DistSpmmPlan>()?;
    module.add_class::<sddmm::DistSddmmPlan>()?;
    module.add_class::<spgemm::DistSpgemmPlan>()
}
