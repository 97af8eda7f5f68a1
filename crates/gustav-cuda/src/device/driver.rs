//! Conversion of driver errors to [`Error`].

use cudarc::driver::DriverError;
use gustav_core::{Error, Result};

/// Converts a driver error to [`Error::Device`] with the action that failed.
pub(crate) trait Checked<T> {
    /// The value, or [`Error::Device`] naming `action`.
    fn during(self, action: &'static str) -> Result<T>;
}

impl<T> Checked<T> for std::result::Result<T, DriverError> {
    fn during(self, action: &'static str) -> Result<T> {
        self.map_err(|e| Error::Device { action, reason: describe(e) })
    }
}

/// The driver's message.
pub(crate) fn describe(e: DriverError) -> String {
    let text = |s: std::result::Result<&std::ffi::CStr, DriverError>| {
        s.map(|s| s.to_string_lossy().into_owned()).unwrap_or_default()
    };
    format!("{} ({})", text(e.error_string()), text(e.error_name()))
}
