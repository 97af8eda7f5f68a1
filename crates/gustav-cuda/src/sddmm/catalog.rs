//! The SDDMM algorithms of this backend.

use gustav_core::{Problem, Result};
use gustav_plan::Algorithm;

use super::{auto, b_stationary, dense_tiles, nonzero_split, row_block};
use crate::matrix::HeldPattern;
use crate::product::catalog::{algorithms, no_kernel};
use crate::product::sampled::Method;
use crate::schedule::pattern::Pattern;
use crate::vendor::sddmm as vendor;

algorithms! {
    NonzeroSplit => nonzero_split,
    RowBlock => row_block,
    BStationary => b_stationary,
    DenseTiles => dense_tiles,
    Vendor => vendor,
}

impl Config {
    /// The algorithm's own choice for a pattern, and the reason.
    pub(super) fn choose(
        algorithm: Algorithm,
        pattern: &Pattern<'_>,
        problem: &Problem,
    ) -> Result<(Self, String)> {
        match algorithm {
            Algorithm::NonzeroSplit => {
                let reason = "nonzeros do not depend on each other".into();
                let multiprocessors = pattern.device().profile().multiprocessors;
                let config = nonzero_split::Config::new(problem, multiprocessors);
                Ok((Config::NonzeroSplit(config), reason))
            }
            Algorithm::RowBlock => auto::row_block(pattern, problem),
            Algorithm::BStationary => {
                let config = b_stationary::Config::new(problem);
                let reason = format!("tiles of {} rows of Y stay in L1", config.rows(problem));
                Ok((Config::BStationary(config), reason))
            }
            Algorithm::DenseTiles => {
                let reason = "whole tiles, whatever the number of nonzeros in them".into();
                Ok((Config::DenseTiles(dense_tiles::Config::new()), reason))
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
        pattern: &Pattern<'_>,
        held: &HeldPattern,
        problem: &Problem,
    ) -> Result<Box<dyn Method>> {
        Ok(match self {
            Config::NonzeroSplit(config) => {
                Box::new(nonzero_split::Prepared::new(pattern.device(), held, problem, config)?)
            }
            Config::RowBlock(config) => {
                Box::new(row_block::Prepared::new(pattern, held, problem, config)?)
            }
            Config::BStationary(config) => {
                Box::new(b_stationary::Prepared::new(pattern, held, problem, config)?)
            }
            Config::DenseTiles(config) => {
                Box::new(dense_tiles::Prepared::new(pattern, held, problem, config)?)
            }
            Config::Vendor(config) => Box::new(vendor::Prepared::new(config)?),
        })
    }
}
