//! The SpGEMM algorithms of this backend.

use gustav_core::{Index, Problem, Result, Scalar};

use super::{binned, dense_output};
use crate::device::Device;
use crate::papers::spgemm::{dense_naive, shared_row};
use crate::product::catalog::algorithms;
use crate::product::sparse_method::Method;
use crate::product::sparse_operands::Operands;
use crate::vendor::spgemm as vendor;

macro_rules! algorithms_of_sparse {
    ($($variant:ident => $module:ident,)*) => {
        algorithms! { $($variant => $module,)* }

        impl Config {
            /// The algorithm in this configuration, prepared for the patterns of `operands`.
            pub(super) fn prepare<T: Scalar, I: Index, O: Index>(
                self,
                device: &Device,
                operands: &Operands,
                problem: &Problem,
            ) -> Result<Box<dyn Method<T, I, O>>> {
                Ok(match self {
                    $(Config::$variant(config) => {
                        Box::new($module::Prepared::new(device, operands, problem, config)?)
                    })*
                })
            }
        }
    };
}

algorithms_of_sparse! {
    Binned => binned,
    DenseOutput => dense_output,
    SharedRow => shared_row,
    DenseNaive => dense_naive,
    Vendor => vendor,
}
