//! Times with cold caches on a CPU (docs/decisions/0026-cold-caches-of-a-cpu.md): before every
//! timed execution, the caches are filled with other data, and an execution on a copy of the
//! operands wakes the threads and reloads the code.

use std::cell::RefCell;
use std::hint::black_box;

use gustav_core::buffer::available_memory;
use gustav_core::{Buffer, Csr, Result, Scalar};
use gustav_cpu::Threads;

use crate::affinity::Pinned;
use crate::engine::{Engine, Task, pool_rows};
use crate::timing::{Runner, Timing};

// Bytes of the last-level cache if the system does not report it.
const UNKNOWN: usize = 64 << 20;
// Operands of so many times its size do not stay in the cache: their only time is a cold one.
const CACHES: u64 = 4;
// Bytes of one write: larger ones might bypass the caches.
const CHUNK: usize = 1 << 20;

/// A block of the size of the last-level cache, written to flush the caches.
pub(crate) struct Sweep<'t> {
    threads: &'t Threads,
    block: RefCell<Buffer<u8>>,
}

impl<'t> Sweep<'t> {
    /// For a last-level cache of `llc_bytes`, 0 when unknown, and the cores of `threads`.
    ///
    /// # Errors
    /// [`gustav_core::Error::OutOfMemory`] for the block.
    pub fn new(threads: &'t Threads, llc_bytes: usize) -> Result<Self> {
        let bytes = if llc_bytes == 0 { UNKNOWN } else { llc_bytes };
        let block = RefCell::new(Buffer::zeroed(bytes, "a block that fills the caches")?);
        Ok(Sweep { threads, block })
    }

    /// Writes the block, a part of it on each core that multiplies, so that private caches are
    /// flushed too.
    fn run(&self) {
        let _pinned = Pinned::to_first_core();
        let mut block = self.block.borrow_mut();
        let value = block[0].wrapping_add(1);
        let parts = self.threads.count();
        let chunks = block.len().div_ceil(CHUNK);
        let (target, bytes) = (block.as_mut_ptr() as usize, block.len());
        self.threads.each(parts, |k| {
            for first in (k * chunks / parts..(k + 1) * chunks / parts).map(|p| p * CHUNK) {
                // SAFETY: the chunks are disjoint and within the block, which nothing else touches
                // until `each` returns.
                let chunk = unsafe {
                    let start = (target as *mut u8).add(first);
                    std::slice::from_raw_parts_mut(start, CHUNK.min(bytes - first))
                };
                black_box(chunk).fill(value);
            }
        });
    }

    /// Whether `task`, whose sparse product has at most `result` bytes, is measured with cold
    /// caches too: if the operands could stay in a cache, and two sets for each of `engines` fit in
    /// memory.
    pub fn is_for<T: Scalar>(&self, task: &Task<'_, T>, result: u64, engines: usize) -> bool {
        let bytes = operands(task) + result;
        let fits = |free: u64| (4 * engines as u64).saturating_mul(bytes) <= free;
        bytes < CACHES * self.block.borrow().len() as u64 && available_memory().is_none_or(fits)
    }
}

/// Bytes of A, B and a dense C, or of A and two dense factors.
fn operands<T: Scalar>(task: &Task<'_, T>) -> u64 {
    let value = size_of::<T>();
    let sparse = |nnz: usize, rows: usize| nnz * (value + 4) + rows * 4;
    let a = sparse(task.a.nnz(), task.a.nrows());
    let b = match &task.b {
        Some(b) => sparse(b.nnz(), b.nrows()),
        None => (task.a.nrows() + task.a.ncols()) * task.columns * value,
    };
    (a + b) as u64
}

/// A second set of the operands of a task.
pub(crate) struct Copies<T: Scalar> {
    a: Csr<T>,
    /// `None` if B is A.
    b: Option<Csr<T>>,
    pool: Buffer<T>,
}

impl<T: Scalar> Copies<T> {
    /// Copies the operands of `task`; `b_is_a`: its B is its A.
    ///
    /// # Errors
    /// [`gustav_core::Error::OutOfMemory`].
    pub fn new(task: &Task<'_, T>, b_is_a: bool) -> Result<Self> {
        let b = task.b.filter(|_| !b_is_a).map(|b| b.to_owned()).transpose()?;
        let rows = pool_rows(task.operation, task.gradients, task.a.nrows(), task.a.ncols());
        let values = if task.b.is_some() { &[] } else { &task.pool[..rows * task.width()] };
        let mut pool = Buffer::zeroed(values.len(), "a copy of dense operands")?;
        pool.copy_from_slice(values);
        Ok(Copies { a: task.a.to_owned()?, b, pool })
    }

    /// `task` on the copies.
    pub fn task<'c>(&'c self, task: &Task<'_, T>) -> Task<'c, T> {
        let b = task.b.map(|_| self.b.as_ref().unwrap_or(&self.a).view());
        Task { a: self.a.view(), b, mask: None, pool: &self.pool, ..*task }
    }
}

/// Timing with cold caches: one execution a round, as a flush takes long.
pub(crate) fn timing(hot: &Timing) -> Timing {
    Timing { warmups: 1, repeats: 1, ..*hot }
}

/// An engine with a copy of its operands, timed with cold caches.
pub(crate) struct Cold<'e, 's, 't, T: Scalar> {
    pub engine: &'e mut dyn Engine<T>,
    pub sweep: &'s Sweep<'t>,
}

impl<T: Scalar> Runner for Cold<'_, '_, '_, T> {
    fn run(&mut self, _: usize, repeats: usize) -> Result<Vec<f64>> {
        let once = |_| {
            self.sweep.run();
            self.engine.cold_ms()
        };
        (0..repeats).map(once).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gustav_core::Operation;

    #[test]
    fn the_whole_block_is_written_every_time() {
        let threads = Threads::new(2, false).unwrap();
        let sweep = Sweep::new(&threads, 3 * CHUNK + 17).unwrap();
        for value in [1, 2] {
            sweep.run();
            assert!(sweep.block.borrow().iter().all(|b| *b == value));
        }
        assert_eq!(Sweep::new(&threads, 0).unwrap().block.borrow().len(), UNKNOWN);
    }

    #[test]
    fn small_operands_have_cold_times_and_copies_of_their_own() {
        let a = Csr::<f32>::new(2, 2, vec![0, 2, 3], vec![0, 1, 1], vec![1.0; 3]).unwrap();
        let pool = [3f32; 4];
        let task = crate::check::tests::task(&a, &pool);
        let threads = Threads::new(1, false).unwrap();
        let sweep = Sweep::new(&threads, CHUNK).unwrap();
        assert!(sweep.is_for(&task, 0, 3));
        assert!(!sweep.is_for(&task, CACHES * CHUNK as u64, 3));
        assert!(!sweep.is_for(&task, 0, usize::MAX / 1000));
        let copies = Copies::new(&task, false).unwrap();
        let copy = copies.task(&task);
        assert_eq!((copy.a.values(), copy.pool), (task.a.values(), task.pool));
        assert!(copy.a.values().as_ptr() != task.a.values().as_ptr());
        assert!(copy.pool.as_ptr() != task.pool.as_ptr());
        let square = Task { operation: Operation::Spgemm, b: Some(a.view()), ..task };
        let copies = Copies::new(&square, true).unwrap();
        let copy = copies.task(&square);
        assert_eq!(copy.b.unwrap().values().as_ptr(), copy.a.values().as_ptr());
    }
}
