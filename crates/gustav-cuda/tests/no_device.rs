//! A machine without CUDA: one line says what is missing.

use gustav_core::Error;
use gustav_cuda::Device;

#[test]
fn a_missing_device_is_named_in_one_line() {
    // A number that no machine has, so that this holds with a driver as well.
    let error = Device::cuda(1 << 20).expect_err("no machine has so many devices");
    let text = error.to_string();
    assert!(matches!(error, Error::NoDevice { .. }), "{text}");
    assert!(!text.contains('\n') && text.len() > "no device: ".len(), "{text:?}");
}
