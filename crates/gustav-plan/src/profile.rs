//! What the planner knows of a device, as values.

/// A device as the planner sees it.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct DeviceProfile {
    /// The device's name.
    pub name: String,
    /// Threads (CPU) or streaming multiprocessors (GPU) that work at once.
    pub units: usize,
    /// Lanes of a warp, or f32 lanes of a vector register.
    pub lanes: usize,
    /// Level-2 cache in bytes: of one core on a CPU, of the chip on a GPU.
    pub l2_bytes: usize,
    /// Last-level cache in bytes.
    pub llc_bytes: usize,
}
