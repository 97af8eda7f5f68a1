//! The C interface of gustav: `include/gustav.h`, which is made of this crate's functions.
//!
//! A handle is a number in the shape of a pointer and is looked up in every call, so that one that was
//! freed or never was one is an error. Operands are tensors of DLPack, checked by
//! [`gustav::interop::dlpack`]; what cannot be checked is that their memory is as large as they say. A
//! panic ends in `GUSTAV_INTERNAL` and does not cross into C.

mod dispatch;
mod export;
mod factors;
mod handle;
mod options;
mod pattern;
mod plan;
mod pointer;
mod product;
mod status;
mod stream;

pub use options::gustav_options;
pub use pattern::{
    gustav_pattern, gustav_pattern_arrays, gustav_pattern_free, gustav_pattern_new,
    gustav_pattern_shape, gustav_pattern_take,
};
pub use plan::{
    gustav_execute, gustav_execute_on, gustav_execute_spgemm, gustav_plan, gustav_plan_explain,
    gustav_plan_free, gustav_plan_sddmm, gustav_plan_spgemm, gustav_plan_spmm, gustav_plan_spmv,
};
pub use product::gustav_spmm;
pub use status::{gustav_last_error, gustav_status, gustav_tensor, gustav_version};
pub use stream::{gustav_stream, gustav_stream_free, gustav_stream_of, gustav_stream_synchronize};
