//! Where files that describe a device are installed, in the user's configuration folder.

use std::path::PathBuf;

/// The folder of files of one kind; `None` if the system has no configuration folder.
pub(crate) fn folder(kind: &str) -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty());
    let config = match named("XDG_CONFIG_HOME") {
        Some(config) => PathBuf::from(config),
        None => PathBuf::from(named("HOME")?).join(".config"),
    };
    Some(config.join("gustav").join(kind))
}

/// The name of a device as used in file names.
pub(crate) fn plain(device: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    device.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_devices_are_plain() {
        assert_eq!(plain("NVIDIA H200"), "nvidia-h200");
    }
}
