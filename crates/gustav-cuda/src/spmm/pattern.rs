//! The pattern of op(A) on a device, whatever its types.

use std::cell::OnceCell;

use gustav_core::buffer::try_vec;
use gustav_core::{Index, Result};

use crate::{Device, DeviceBuffer};

/// Row offsets of op(A), as a plan sees them.
pub(crate) struct Pattern<'a> {
    device: &'a Device,
    /// Address of the row offsets.
    pub offsets: u64,
    read: Box<dyn Fn() -> Result<Vec<u64>> + 'a>,
    host: OnceCell<Vec<u64>>,
}

impl<'a> Pattern<'a> {
    pub(crate) fn new<O: Index>(offsets: &'a DeviceBuffer<O>) -> Self {
        let read = move || {
            let found = offsets.to_host()?;
            let mut wide = try_vec(found.len(), "row offsets")?;
            wide.extend(found.iter().map(|o| o.to_usize() as u64));
            Ok(wide)
        };
        Pattern {
            device: offsets.device(),
            offsets: offsets.address(),
            read: Box::new(read),
            host: OnceCell::new(),
        }
    }

    /// The device that it is on.
    pub(crate) fn device(&self) -> &Device {
        self.device
    }

    /// The row offsets on the host, copied at the first call.
    pub(super) fn host_offsets(&self) -> Result<&[u64]> {
        if self.host.get().is_none() {
            let offsets = (self.read)()?;
            return Ok(self.host.get_or_init(|| offsets));
        }
        Ok(self.host.get().map_or(&[], Vec::as_slice))
    }
}
