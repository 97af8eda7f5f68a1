//! The machine that runs the benchmarks.

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use gustav_core::Buffer;
use gustav_cpu::Threads;
use gustav_report::Machine;

/// Queries the system.
pub(crate) fn describe() -> Machine {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = info.lines().find(|l| l.split(':').next().is_some_and(|k| k.trim() == name));
        line.and_then(|l| l.split_once(':')).map(|(_, value)| value.trim().to_owned())
    };
    let model = field("model name").unwrap_or_else(|| "unknown".into());
    let codes = ["cpu family", "model", "stepping"].map(field);
    let cpu = match codes {
        [Some(family), Some(number), Some(stepping)] => {
            format!("{model} (family {family}, model {number}, stepping {stepping})")
        }
        _ => model,
    };
    let (l2_bytes, llc_bytes) = caches(Path::new("/sys/devices/system/cpu/cpu0/cache"));
    Machine {
        cpu,
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        l2_bytes,
        llc_bytes,
        system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
    }
}

/// Sizes of the level-2 and of the largest cache listed in a folder of sysfs.
fn caches(folder: &Path) -> (usize, usize) {
    let (mut l2, mut last) = (0, 0);
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let text = |name| std::fs::read_to_string(entry.path().join(name)).unwrap_or_default();
        let size = text("size");
        let size = size.trim();
        let unit = match size.chars().last() {
            Some('K') => 1 << 10,
            Some('M') => 1 << 20,
            _ => 1,
        };
        let Ok(count) = size.trim_end_matches(['K', 'M']).parse::<usize>() else { continue };
        let bytes = count * unit;
        if text("level").trim() == "2" {
            l2 = bytes;
        }
        last = last.max(bytes);
    }
    (l2, last)
}

/// Copy bandwidth by the size of the copy: small ones stay in caches.
#[derive(Clone, Debug)]
pub struct Bandwidth {
    // (bytes read and written, bytes per millisecond), sizes ascending.
    points: Vec<(f64, f64)>,
}

const SIZES: [usize; 6] = [1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26, 1 << 28];

impl Bandwidth {
    /// Copies blocks of growing size on `threads`, each several times; the best counts.
    ///
    /// # Errors
    /// [`gustav_core::Error::OutOfMemory`] for the blocks.
    pub fn measure(threads: &Threads) -> gustav_core::Result<Self> {
        let parts = threads.count();
        let largest = SIZES[SIZES.len() - 1] / 2;
        let from = Buffer::<u8>::zeroed(largest, "bandwidth blocks")?;
        let mut to = Buffer::<u8>::zeroed(largest, "bandwidth blocks")?;
        let mut points = Vec::new();
        for size in SIZES {
            let (half, part) = (size / 2, size / 2 / parts);
            let target = to.as_mut_ptr() as usize;
            let mut best = f64::INFINITY;
            let tries = (1 << 27) / size + 3;
            for _ in 0..tries {
                let start = Instant::now();
                threads.each(parts, |k| {
                    let source = &from[k * part..(k + 1) * part];
                    // SAFETY: the parts are disjoint chunks of `to`, which nothing else touches
                    // until `each` returns.
                    let chunk = unsafe {
                        std::slice::from_raw_parts_mut((target as *mut u8).add(k * part), part)
                    };
                    chunk.copy_from_slice(black_box(source));
                });
                best = best.min(start.elapsed().as_secs_f64() * 1e3);
            }
            black_box(&to[..half]);
            points.push((size as f64, 2.0 * (part * parts) as f64 / best));
        }
        Ok(Bandwidth { points })
    }

    /// The same bytes per second for every size.
    pub(crate) fn constant(bytes_per_second: f64) -> Self {
        Bandwidth { points: vec![(1.0, bytes_per_second / 1e3)] }
    }

    /// Milliseconds to move `bytes` once from and to memory: at the bandwidth of the largest
    /// copies.
    pub fn cold_floor_ms(&self, bytes: f64) -> f64 {
        bytes / self.points[self.points.len() - 1].1
    }

    /// Milliseconds to move `bytes` once with warm caches: at the bandwidth of copies of that size.
    pub fn floor_ms(&self, bytes: f64) -> f64 {
        let after = self.points.iter().position(|p| p.0 >= bytes);
        let rate = match after {
            None => self.points[self.points.len() - 1].1,
            Some(0) => self.points[0].1,
            Some(k) => {
                let ((x0, y0), (x1, y1)) = (self.points[k - 1], self.points[k]);
                y0 + (y1 - y0) * (bytes / x0).ln() / (x1 / x0).ln()
            }
        };
        bytes / rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_floor_follows_the_points_and_flattens_outside() {
        let b = Bandwidth { points: vec![(100.0, 10.0), (10_000.0, 2.0)] };
        assert_eq!(b.floor_ms(10.0), 1.0);
        assert_eq!(b.floor_ms(100.0), 10.0);
        assert!((b.floor_ms(1000.0) - 1000.0 / 6.0).abs() < 1e-9);
        assert_eq!(b.floor_ms(20_000.0), 10_000.0);
        assert_eq!(b.cold_floor_ms(10.0), 5.0);
    }

    #[test]
    fn a_machine_has_cores() {
        assert!(describe().cores > 0);
    }
}
