//! Figures as data, and drawn as SVG and PNG.

mod axis;
mod canvas;
mod figure;
mod image;
mod plot;

pub(crate) use axis::Axis;
pub(crate) use canvas::dark_rules;
pub(crate) use figure::{
    Figure, Mark, Points, Series, bars, boxes, fullest, lines_and_columns, one, series, slug,
};
pub(crate) use image::{png, svg, svg_file};
