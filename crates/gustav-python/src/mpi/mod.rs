//! Products over the ranks of an MPI program.

mod pattern;
mod plans;
mod ranks;

use pyo3::prelude::*;

pub fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<ranks::Ranks>()?;
    module.add_class::<pattern::DistPattern>()?;
    module.add_class::<plans::DistSpmmPlan>()?;
    module.add_class::<plans::DistSddmmPlan>()?;
    module.add_class::<plans::DistSpgemmPlan>()
}
