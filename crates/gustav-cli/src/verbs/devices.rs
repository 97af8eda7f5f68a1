//! `gustav devices`: the devices.

use gustav::{Device, DeviceInfo};
use serde::Serialize;

use crate::args::Printing;
use crate::failure::{Outcome, Result};
use crate::output;

/// List the devices that products can run on, and why others are not available
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    printing: Printing,
}

#[derive(Serialize)]
struct Report {
    devices: Vec<DeviceInfo>,
}

/// Lists the devices.
pub fn run(args: &Args) -> Result {
    let devices = Device::list();
    let text: String = devices.iter().map(|d| format!("{d}\n")).collect();
    output::print(args.printing, &Report { devices }, &text)?;
    Ok(Outcome::Done)
}
