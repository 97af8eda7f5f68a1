//! Eager calls of PyTorch's programs on tensors that are nothing but their memory.
//!
//! To check such a call in Python takes longer than a small product does, and twice as long again in a thread that
//! begins with empty caches, as PyTorch's thread of gradients does. Here calls are checked as most programs make them:
//! no transform, mode, tracer, profiler or tangent is there, for products no autocast, and the tensors are of PyTorch's
//! own classes, in layouts that are read in place. For any other call the answer is `None`, and Python makes it.

use std::sync::{Mutex, PoisonError};

use gustav::DType;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString, PyTuple, PyType};

use crate::array::Array;
use crate::dlpack::{self, Tensor};
use crate::exchange::{self, Functions};
use crate::place::Place;
use crate::shape::Shapes;
use crate::spmm::SpmmPlan;
use crate::threads;

/// What is asked of PyTorch before an eager call.
#[pyclass(frozen, module = "gustav._gustav")]
pub struct Eager {
    /// The classes whose instances may be nothing but their memory.
    classes: Vec<Py<PyType>>,
    functions: Functions,
    /// Functions, of which one returns something true where somebody sees calls of operators or changes them.
    watchers: Vec<Py<PyAny>>,
    /// The module that counts levels of tangents.
    forward_ad: Py<PyAny>,
    /// Whether gradients are recorded, and, as a call with one argument, whether they are below the current operator.
    is_grad_enabled: Py<PyAny>,
    is_excluded: Py<PyAny>,
    below_autograd: Py<PyAny>,
    /// Whether tangents count where there is a level of them.
    is_forward: Py<PyAny>,
    /// Whether autocast is on for some device.
    is_autocast: Py<PyAny>,
}

#[pymethods]
impl Eager {
    /// `classes` begins with the one that has DLPack's table of functions.
    #[new]
    fn new(
        classes: Vec<Bound<'_, PyType>>,
        watchers: Vec<Py<PyAny>>,
        forward_ad: Py<PyAny>,
        is_grad_enabled: Py<PyAny>,
        is_excluded: Py<PyAny>,
        below_autograd: Py<PyAny>,
        is_forward: Py<PyAny>,
        is_autocast: Py<PyAny>,
    ) -> PyResult<Self> {
        let functions = classes.first().map(exchange::functions_of_class).transpose()?.flatten();
        let functions = functions
            .ok_or_else(|| PyTypeError::new_err("classes: the first has no table of DLPack's"))?;
        let classes = classes.into_iter().map(Bound::unbind).collect();
        Ok(Eager {
            classes,
            functions,
            watchers,
            forward_ad,
            is_grad_enabled,
            is_excluded,
            below_autograd,
            is_forward,
            is_autocast,
        })
    }

    /// Whether a call with these arguments is recorded for gradients; `None` where Python has to decide how it is made.
    fn is_recorded(&self, arguments: &Bound<'_, PyTuple>) -> PyResult<Option<bool>> {
        let py = arguments.py();
        if self.is_watched(py)? {
            return Ok(None);
        }
        let mut requires_grad = false;
        for argument in arguments {
            if self.is_of_torch(&argument) {
                if self.tensor(&argument)?.is_none() {
                    return Ok(None);
                }
                requires_grad = requires_grad || wants_gradient(&argument)?;
            } else if !is_plain(&argument) {
                return Ok(None);
            }
        }
        Ok(Some(requires_grad && self.records(py)?))
    }
}

impl Eager {
    /// Whether a transform, a mode, a tracer, a profiler or a tangent is there.
    fn is_watched(&self, py: Python<'_>) -> PyResult<bool> {
        for watcher in &self.watchers {
            if is_true(py, watcher)? {
                return Ok(true);
            }
        }
        let level = self.forward_ad.bind(py).getattr(intern!(py, "_current_level"))?;
        Ok(level.extract::<i64>()? >= 0 && is_true(py, &self.is_forward)?)
    }

    /// Whether gradients are recorded of what requires them.
    fn records(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(is_true(py, &self.is_grad_enabled)?
            && !self.is_excluded.bind(py).call1((&self.below_autograd,))?.is_truthy()?)
    }

    fn is_of_torch(&self, object: &Bound<'_, PyAny>) -> bool {
        let class = object.get_type();
        self.classes.iter().any(|known| known.as_ptr() == class.as_ptr())
    }

    /// What a tensor of the known classes says of its memory, if it is that and nothing else.
    fn tensor(&self, object: &Bound<'_, PyAny>) -> PyResult<Option<Tensor>> {
        // PyTorch refuses those of which the memory is not all that there is.
        let Ok(tensor) = self.functions.described(object) else { return Ok(None) };
        // Without an address a tensor has no elements, or stands for what is computed later or by somebody else.
        if tensor.data.is_null() {
            return Ok(None);
        }
        let is_negative = object.call_method0(intern!(object.py(), "is_neg"))?.is_truthy()?;
        Ok((!is_negative).then_some(tensor))
    }

    /// The tensor as an array, if its storage holds it.
    fn array(&self, name: &'static str, object: &Bound<'_, PyAny>) -> PyResult<Option<Array>> {
        if !self.is_of_torch(object) {
            return Ok(None);
        }
        let Some(tensor) = self.tensor(object)? else { return Ok(None) };
        let Ok(array) =
            dlpack::described(name, &tensor, false, Shapes::Matrix, || Ok(object.clone().unbind()))
        else {
            return Ok(None);
        };
        let is_held = matches!(exchange::shrunk_storage(object, &array), Ok(None));
        Ok(is_held.then_some(array))
    }
}

/// Whether a function returns something true.
fn is_true(py: Python<'_>, function: &Py<PyAny>) -> PyResult<bool> {
    function.bind(py).call0()?.is_truthy()
}

fn wants_gradient(tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
    tensor.getattr(intern!(tensor.py(), "requires_grad"))?.is_truthy()
}

/// Whether an argument of an operator is no tensor and holds none.
fn is_plain(argument: &Bound<'_, PyAny>) -> bool {
    argument.is_none()
        || argument.is_exact_instance_of::<PyInt>()
        || argument.is_exact_instance_of::<PyBool>()
        || argument.is_exact_instance_of::<PyFloat>()
        || argument.is_exact_instance_of::<PyString>()
}

/// Most plans of one pattern that are found here; the one that was used longest ago is dropped first.
const MOST_PLANS: usize = 16;

/// Products of one pattern with tensors, by the plans that Python made for it.
#[pyclass(frozen, module = "gustav._gustav")]
pub struct EagerSpmm {
    eager: Py<Eager>,
    gpu: Option<u32>,
    rows: usize,
    columns: usize,
    nnz: usize,
    plans: Mutex<Vec<Known>>,
}

/// A plan, and the shape of its result.
struct Known {
    kind: Kind,
    plan: Py<SpmmPlan>,
    shape: Py<PyTuple>,
}

/// What products of one plan have in common.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Kind {
    columns: usize,
    dtype: DType,
    transpose: bool,
    /// 0 on a GPU.
    threads: usize,
}

#[pymethods]
impl EagerSpmm {
    #[new]
    fn new(eager: Py<Eager>, gpu: Option<u32>, shape: (usize, usize), nnz: usize) -> Self {
        let (rows, columns) = shape;
        EagerSpmm { eager, gpu, rows, columns, nnz, plans: Mutex::default() }
    }

    /// Lets products find a plan for this number of threads.
    fn add(
        &self,
        py: Python<'_>,
        plan: Py<SpmmPlan>,
        transpose: bool,
        threads: usize,
    ) -> PyResult<()> {
        let made = plan.get();
        let kind = Kind { columns: made.width(), dtype: made.scalar(), transpose, threads };
        let shape = (self.sizes(transpose).0, kind.columns).into_pyobject(py)?.unbind();
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let same = plans.iter().position(|known| known.kind == kind);
        let dropped = match same {
            Some(at) => Some(plans.remove(at)),
            None if plans.len() == MOST_PLANS => plans.pop(),
            None => None,
        };
        plans.insert(0, Known { kind, plan, shape });
        drop(plans);
        // The end of a plan may do anything, so nothing is locked.
        drop(dropped);
        Ok(())
    }

    /// Forgets all plans.
    fn clear(&self) {
        let plans = std::mem::take(&mut *self.plans.lock().unwrap_or_else(PoisonError::into_inner));
        drop(plans);
    }

    /// op(A) @ x with these values of A. If the call has to be recorded for gradients, it returns what
    /// `record(pattern, values, x, transpose)` returns; `None` where Python has to make the call.
    fn product<'py>(
        &self,
        values: &Bound<'py, PyAny>,
        x: &Bound<'py, PyAny>,
        transpose: bool,
        pattern: &Bound<'py, PyAny>,
        record: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = values.py();
        let eager = self.eager.get();
        if eager.is_watched(py)? || is_true(py, &eager.is_autocast)? {
            return Ok(None);
        }
        let Some(product) = self.find(py, values, x, transpose)? else { return Ok(None) };
        if (wants_gradient(x)? || wants_gradient(values)?) && eager.records(py)? {
            if record.is_none() {
                return Ok(None);
            }
            return record.call1((pattern, values, x, transpose)).map(Some);
        }
        product.compute(py, eager, x, self.gpu).map(Some)
    }

    /// Whether a graph convolution with these operands is recorded for gradients; `None` where Python has to check the
    /// call, as it has without weights of edges: ones are a tensor that the pattern keeps.
    fn is_convolution_recorded(
        &self,
        values: &Bound<'_, PyAny>,
        x: &Bound<'_, PyAny>,
        weight: &Bound<'_, PyAny>,
        bias: &Bound<'_, PyAny>,
    ) -> PyResult<Option<bool>> {
        let py = values.py();
        let eager = self.eager.get();
        if eager.is_watched(py)? || is_true(py, &eager.is_autocast)? {
            return Ok(None);
        }
        let given = [("edge_weight", values), ("x", x), ("weight", weight), ("bias", bias)];
        let given = &given[..if bias.is_none() { 3 } else { 4 }];
        let mut arrays = Vec::with_capacity(given.len());
        let mut requires_grad = false;
        for (name, operand) in given {
            let Some(array) = eager.array(name, operand)? else { return Ok(None) };
            arrays.push(array);
            requires_grad = requires_grad || wants_gradient(operand)?;
        }
        let element = &arrays[0].element;
        let is_float = element.value("x").is_ok_and(|dtype| !dtype.is_integer());
        let alike = arrays.iter().all(|a| a.gpu == self.gpu && a.element == *element);
        let shapes = arrays.iter().map(Array::shape).collect::<Vec<_>>();
        let fit = match shapes[..] {
            [[nnz], [nodes, features], [out, features_of_weight], ref of_bias @ ..] => {
                (*nnz, *nodes) == (self.nnz, self.columns)
                    && features == features_of_weight
                    && of_bias.iter().all(|shape| *shape == [*out])
            }
            _ => false,
        };
        if !(is_float && alike && fit) {
            return Ok(None);
        }
        Ok(Some(requires_grad && eager.records(py)?))
    }

    /// The same without asking who sees it: within a call that was asked about. It is not recorded.
    fn compute<'py>(
        &self,
        values: &Bound<'py, PyAny>,
        x: &Bound<'py, PyAny>,
        transpose: bool,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = values.py();
        match self.find(py, values, x, transpose)? {
            Some(product) => product.compute(py, self.eager.get(), x, self.gpu).map(Some),
            None => Ok(None),
        }
    }
}

impl EagerSpmm {
    /// Rows of the result and of x.
    fn sizes(&self, transpose: bool) -> (usize, usize) {
        if transpose { (self.columns, self.rows) } else { (self.rows, self.columns) }
    }

    /// The product, if the operands fit, are read in place, and there is a plan.
    fn find(
        &self,
        py: Python<'_>,
        values: &Bound<'_, PyAny>,
        x: &Bound<'_, PyAny>,
        transpose: bool,
    ) -> PyResult<Option<Product>> {
        let eager = self.eager.get();
        let Some(values) = eager.array("values", values)? else { return Ok(None) };
        let Some(x) = eager.array("x", x)? else { return Ok(None) };
        let fits = values.gpu == self.gpu
            && x.gpu == self.gpu
            && values.shape() == [self.nnz]
            && x.shape().len() == 2
            && x.shape()[0] == self.sizes(transpose).1
            && values.element == x.element
            && values.is_read_in_place()
            && x.is_read_in_place();
        let Some(dtype) = fits.then(|| x.element.value("x").ok()).flatten() else {
            return Ok(None);
        };
        let threads = if self.gpu.is_some() { 0 } else { threads::get_num_threads() };
        let kind = Kind { columns: x.shape()[1], dtype, transpose, threads };
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        let at = plans.iter().position(|known| known.kind == kind);
        if let Some(at) = at {
            plans[..=at].rotate_right(1);
        }
        Ok(at.map(|_| &plans[0]).map(|known| Product {
            values,
            x,
            plan: known.plan.clone_ref(py),
            shape: known.shape.clone_ref(py),
        }))
    }
}

/// A product that can be computed.
struct Product {
    values: Array,
    x: Array,
    plan: Py<SpmmPlan>,
    shape: Py<PyTuple>,
}

impl Product {
    /// Its result, a new tensor of the kind of `x`.
    fn compute<'py>(
        self,
        py: Python<'py>,
        eager: &Eager,
        x: &Bound<'py, PyAny>,
        gpu: Option<u32>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let out = x.call_method1(intern!(py, "new_empty"), (&self.shape,))?;
        let tensor = eager.functions.described(&out)?;
        let written =
            dlpack::described("out", &tensor, false, Shapes::Matrix, || Ok(out.clone().unbind()))?;
        written.expect_memory()?;
        let place = match gpu {
            None => Place::Host,
            Some(ordinal) => {
                let stream = eager.functions.current_stream(py, &tensor)?;
                Place::new(py, Some((ordinal, stream, py.None())))?
            }
        };
        self.plan.get().fill(py, self.values, self.x, written, place)?;
        Ok(out)
    }
}
