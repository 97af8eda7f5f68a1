//! The types of values that are measured.

use gustav_core::{Error, Result, Scalar, bf16, f16};
use gustav_cpu::{CpuScalar, Threads};

use crate::engine::{Engine, Ours, Task};

/// A type that products are measured in.
pub(crate) trait Value: CpuScalar {
    /// Gustav on the CPU with the algorithm or chooser of that name; also prepared for `copy`, a
    /// copy of the operands.
    ///
    /// # Errors
    /// The library's own; [`Error::Unsupported`] for types that are measured on a GPU only.
    fn on_cpu<'a>(
        task: Task<'a, Self>,
        copy: Option<Task<'a, Self>>,
        algorithm: &str,
        threads: &Threads,
    ) -> Result<Box<dyn Engine<Self> + 'a>>;

    /// The crate of that name, if it is compiled in; also prepared for `copy`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for another name or a matrix that the crate refuses.
    fn by_crate<'a>(
        name: &str,
        task: Task<'a, Self>,
        copy: Option<Task<'a, Self>>,
        threads: usize,
    ) -> Result<Box<dyn Engine<Self> + 'a>>;
}

/// A type that every engine multiplies.
pub(crate) trait CpuValue: Value + CrateValue {}

macro_rules! on_cpu_and_gpu {
    ($($t:ty),*) => {$(
        impl CpuValue for $t {}
        impl Value for $t {
            fn on_cpu<'a>(
                task: Task<'a, Self>,
                copy: Option<Task<'a, Self>>,
                algorithm: &str,
                threads: &Threads,
            ) -> Result<Box<dyn Engine<Self> + 'a>> {
                Ok(Box::new(Ours::prepare(task, copy, algorithm, threads)?))
            }

            fn by_crate<'a>(
                name: &str,
                task: Task<'a, Self>,
                copy: Option<Task<'a, Self>>,
                threads: usize,
            ) -> Result<Box<dyn Engine<Self> + 'a>> {
                compiled_in(name, task, copy, threads)
            }
        }
    )*};
}

macro_rules! on_gpu {
    ($($t:ty),*) => {$(
        impl Value for $t {
            fn on_cpu<'a>(
                task: Task<'a, Self>,
                _: Option<Task<'a, Self>>,
                _: &str,
                _: &Threads,
            ) -> Result<Box<dyn Engine<Self> + 'a>> {
                Err(gpu_only(&task))
            }

            fn by_crate<'a>(
                _: &str,
                task: Task<'a, Self>,
                _: Option<Task<'a, Self>>,
                _: usize,
            ) -> Result<Box<dyn Engine<Self> + 'a>> {
                Err(gpu_only(&task))
            }
        }
    )*};
}

on_cpu_and_gpu!(f32, f64);
on_gpu!(f16, bf16);

fn gpu_only<T: Scalar>(task: &Task<'_, T>) -> Error {
    Error::Unsupported {
        problem: format!("{} in {}", task.operation.name(), <T as Scalar>::DTYPE),
        backend: "measuring on the CPU".into(),
        reason: "it has no peers there".into(),
        nearest: "a suite with a GPU as its device".into(),
    }
}

#[cfg(feature = "peers")]
use crate::engine::{CrateValue, crate_engine as compiled_in};

/// The traits that the compiled-in crates require of a type: none without them.
#[cfg(not(feature = "peers"))]
pub(crate) trait CrateValue {}
#[cfg(not(feature = "peers"))]
impl<T> CrateValue for T {}

#[cfg(not(feature = "peers"))]
fn compiled_in<'a, T: Scalar>(
    name: &str,
    _task: Task<'a, T>,
    _copy: Option<Task<'a, T>>,
    _threads: usize,
) -> Result<Box<dyn Engine<T> + 'a>> {
    Err(crate::engine::lacks(name, "built without `peers`".into()))
}
