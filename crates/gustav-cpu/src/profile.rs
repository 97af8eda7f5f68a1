//! The device profile of this machine.

use std::sync::OnceLock;

use gustav_plan::DeviceProfile;

use crate::arch::Isa;

// Assumed where the system does not say.
const L2_BYTES: usize = 1 << 20;
const LLC_BYTES: usize = 32 << 20;

/// The profile of this machine with `threads` threads and `isa`.
pub fn profile(threads: usize, isa: Isa) -> DeviceProfile {
    static CACHES: OnceLock<(usize, usize)> = OnceLock::new();
    let (l2_bytes, llc_bytes) = *CACHES.get_or_init(|| {
        let l2 = cache_bytes(2).unwrap_or(L2_BYTES);
        (l2, cache_bytes(3).unwrap_or(LLC_BYTES).max(l2))
    });
    let lanes = match isa {
        Isa::Avx512 => 16,
        Isa::Avx2 => 8,
        Isa::Neon => 4,
        Isa::Portable => 1,
    };
    DeviceProfile { name: format!("CPU, {isa}"), units: threads, lanes, l2_bytes, llc_bytes }
}

/// Size of the first core's cache of level `level`, where Linux says.
fn cache_bytes(level: usize) -> Option<usize> {
    let file = format!("/sys/devices/system/cpu/cpu0/cache/index{level}/size");
    let text = std::fs::read_to_string(file).ok()?;
    text.trim().strip_suffix('K')?.parse::<usize>().ok().map(|k| k * 1024)
}
