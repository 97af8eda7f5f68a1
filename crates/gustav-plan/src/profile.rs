//! The planner's description of a device.

/// A device as described to the planner.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct DeviceProfile {
    /// The device's name.
    pub name: String,
    /// Threads (CPU) or multiprocessors (GPU) that run concurrently.
    pub units: usize,
    /// Lanes of a warp, or f32 lanes of a vector register.
    pub lanes: usize,
    /// Level-2 cache in bytes: of one core on a CPU, of the chip on a GPU.
    pub l2_bytes: usize,
    /// Last-level cache in bytes.
    pub llc_bytes: usize,
}
