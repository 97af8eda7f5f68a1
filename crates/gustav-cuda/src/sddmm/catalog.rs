//! The SDDMM algorithms of this backend.

use gustav_core::{Problem, Result};
use gustav_plan::Algorithm;

use super::nonzero_split;
use crate::device::Device;
use crate::matrix::HeldPattern;
use crate::product::catalog::{algorithms, no_kernel};
use crate::product::sampled::Method;
use crate::vendor::sddmm as vendor;

algorithms! {
    NonzeroSplit => nonzero_split,
    Vendor => vendor,
}

impl Config {
    /// The algorithm's own choice, and the reason.
    pub(super) fn choose(algorithm: Algorithm, problem: &Problem) -> Result<(Self, String)> {
        match algorithm {
            Algorithm::NonzeroSplit => {
                let reason = "nonzeros do not depend on each other".into();
                Ok((Config::NonzeroSplit(nonzero_split::Config::new(problem)), reason))
            }
            Algorithm::Vendor => {
                Ok((Config::Vendor(vendor::Config::Default), "named by the caller".into()))
            }
            other => Err(no_kernel(CATALOG, problem, other)),
        }
    }

    /// The algorithm in this configuration, prepared for a pattern.
    pub(super) fn prepare(
        self,
        device: &Device,
        pattern: &HeldPattern,
        problem: &Problem,
    ) -> Result<Box<dyn Method>> {
        Ok(match self {
            Config::NonzeroSplit(config) => {
                Box::new(nonzero_split::Prepared::new(device, pattern, problem, config)?)
            }
            Config::Vendor(config) => Box::new(vendor::Prepared::new(config)?),
        })
    }
}
