//! L1 of a multiprocessor, and an L2 that evicts nothing, both empty at first.

use gustav_core::Result;
use gustav_core::buffer::try_vec;

use super::CtaCosts;

/// Words of 4 bytes in a sector, the unit of a load, and sectors of a line.
pub(super) const SECTOR: usize = 8;
const SECTORS: usize = 4;
/// Sectors that are loaded from memory together.
const FETCHED: usize = 2;

// Marks no line, and a sector that is not cached.
const NONE: u32 = u32::MAX;
const ABSENT: f32 = -1.0;

/// Links of a line in the LRU list of L1.
#[derive(Clone, Copy)]
struct Links {
    held: bool,
    newer: u32,
    older: u32,
}

/// The contents of both caches, by sector number.
pub(super) struct Caches {
    costs: CtaCosts,
    /// When each sector arrives in L1, and in L2.
    l1: Vec<f32>,
    l2: Vec<f32>,
    lines: Vec<Links>,
    held: usize,
    newest: u32,
    oldest: u32,
}

impl Caches {
    /// Caches over sectors 0 to `sectors`, with the latencies and the L1 of `costs`.
    pub fn new(sectors: usize, costs: &CtaCosts) -> Result<Self> {
        let lines = sectors.div_ceil(SECTORS);
        let absent = || {
            let mut times = try_vec(lines * SECTORS, "simulated caches")?;
            times.resize(lines * SECTORS, ABSENT);
            Ok::<_, gustav_core::Error>(times)
        };
        let mut links = try_vec(lines, "simulated caches")?;
        links.resize(lines, Links { held: false, newer: NONE, older: NONE });
        Ok(Caches {
            costs: *costs,
            l1: absent()?,
            l2: absent()?,
            lines: links,
            held: 0,
            newest: NONE,
            oldest: NONE,
        })
    }

    /// The time at which a load of `sector` issued at `now` completes.
    pub fn load(&mut self, sector: usize, now: f64) -> f64 {
        let CtaCosts { l1_latency, l2_latency, memory_latency, .. } = self.costs;
        self.touch(sector / SECTORS);
        if self.l1[sector] != ABSENT {
            return f64::from(self.l1[sector]).max(now + l1_latency);
        }
        let first = sector / FETCHED * FETCHED;
        let stamp = self.l2[first];
        let at = if stamp != ABSENT {
            f64::from(stamp).max(now) + l2_latency
        } else {
            self.l2[first] = (now + memory_latency - l2_latency) as f32;
            now + memory_latency
        };
        self.l1[sector] = at as f32;
        at
    }

    /// Makes `line` the most recently used in L1; evicts the least recently used one if L1 is full.
    fn touch(&mut self, line: usize) {
        if self.newest == line as u32 {
            return;
        }
        if self.lines[line].held {
            self.unlink(line);
        } else if self.held == self.costs.l1_lines {
            let oldest = self.oldest as usize;
            self.unlink(oldest);
            self.lines[oldest].held = false;
            self.l1[oldest * SECTORS..(oldest + 1) * SECTORS].fill(ABSENT);
        } else {
            self.held += 1;
        }
        self.lines[line] = Links { held: true, newer: NONE, older: self.newest };
        match self.newest {
            NONE => self.oldest = line as u32,
            newest => self.lines[newest as usize].newer = line as u32,
        }
        self.newest = line as u32;
    }

    fn unlink(&mut self, line: usize) {
        let Links { newer, older, .. } = self.lines[line];
        match newer {
            NONE => self.newest = older,
            newer => self.lines[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.lines[older as usize].newer = newer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_take_the_latency_of_the_nearest_cache_with_the_sector() {
        let costs = CtaCosts { l1_lines: 3, ..CtaCosts::H200 };
        let CtaCosts { l1_latency, l2_latency, memory_latency, .. } = costs;
        let mut caches = Caches::new(8 * SECTORS, &costs).unwrap();
        assert_eq!(caches.load(0, 0.0), memory_latency);
        // Loaded to L2 together with the first.
        assert_eq!(caches.load(1, 0.0), memory_latency);
        assert_eq!(caches.load(0, 10.0), memory_latency);
        assert_eq!(caches.load(0, 20_000.0), 20_000.0 + l1_latency);
        // After as many other lines as L1 holds, the first is in L2 alone.
        for line in 1..=3 {
            caches.load(line * SECTORS, 30_000.0);
        }
        assert_eq!(caches.load(0, 90_000.0), 90_000.0 + l2_latency);
        assert_eq!(caches.load(3 * SECTORS, 90_000.0), 90_000.0 + l1_latency);
    }
}
