//! Loops on the threads that a caller chose with [`on`], else on rayon's current pool.
//!
//! rayon compiles some fifty functions for every closure type. These loops use one closure type,
//! which calls the caller's closure once per task, so that a loop in generic code compiles as fast
//! as a serial one.

use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;

use rayon::prelude::*;

// Tasks per thread: several, to balance uneven ones.
const TASKS: usize = 8;

/// Threads that loops can run on.
pub trait Executor: Sync {
    /// Their number.
    fn threads(&self) -> usize;
    /// Calls `work(k)` for every `k` below `count`, on any of the threads.
    fn each(&self, count: usize, work: &(dyn Fn(usize) + Sync));
}

/// The calling thread alone.
struct Serial;

impl Executor for Serial {
    fn threads(&self) -> usize {
        1
    }
    fn each(&self, count: usize, work: &(dyn Fn(usize) + Sync)) {
        (0..count).for_each(work);
    }
}

thread_local! {
    // Set for the duration of `on` only.
    static CURRENT: Cell<Option<NonNull<dyn Executor>>> = const { Cell::new(None) };
}

/// Runs `work` on the calling thread, and the loops in it on `executor`. Nested loops run serially
/// on their thread.
pub fn on<R>(executor: &dyn Executor, work: impl FnOnce() -> R) -> R {
    struct Restore(Option<NonNull<dyn Executor>>);
    impl Drop for Restore {
        fn drop(&mut self) {
            CURRENT.set(self.0);
        }
    }
    // SAFETY: only the lifetime changes; the guard resets the pointer before the lifetime ends.
    let current: NonNull<dyn Executor> = unsafe { std::mem::transmute(NonNull::from(executor)) };
    let _restore = Restore(CURRENT.replace(Some(current)));
    work()
}

/// Number of threads that loops currently run on.
pub fn threads() -> usize {
    // SAFETY: set by an `on` that has not ended.
    CURRENT.get().map_or_else(rayon::current_num_threads, |e| unsafe { e.as_ref() }.threads())
}

/// Calls `work(k)` for every `k` below `count`, each as a task of its own.
pub fn each(count: usize, work: impl Fn(usize) + Sync) {
    match count {
        0 => {}
        1 => work(0),
        _ => on_pool(count, &work),
    }
}

fn on_pool(count: usize, work: &(dyn Fn(usize) + Sync)) {
    if let Some(executor) = CURRENT.get() {
        // SAFETY: set by an `on` that has not ended.
        let executor = unsafe { executor.as_ref() };
        return executor.each(count, &|k| on(&Serial, || work(k)));
    }
    (0..count).into_par_iter().with_max_len(1).for_each(work);
}

/// Calls `work` for disjoint ranges that cover `0..len`, each of at least `least` numbers unless
/// `len` is less: enough ranges to keep the threads busy, one when `len` is small, none when it is
/// 0.
pub fn ranges(len: usize, least: usize, work: impl Fn(Range<usize>) + Sync) {
    let most = (len / least.max(1)).max(1);
    if most == 1 {
        if len > 0 {
            work(0..len);
        }
        return;
    }
    let tasks = most.min(TASKS * threads());
    let cut = |k: usize| (len as u128 * k as u128 / tasks as u128) as usize;
    each(tasks, |k| work(cut(k)..cut(k + 1)));
}

/// Calls `work(k, chunk)` for chunk `k` of `values`, `len` elements each (the last may be
/// shorter), each as a task of its own.
///
/// # Panics
/// When `len` is 0.
pub fn chunks_mut<T: Send>(values: &mut [T], len: usize, work: impl Fn(usize, &mut [T]) + Sync) {
    let (count, end) = (values.len().div_ceil(len), values.len());
    let values = Shared::new(values);
    each(count, |k| {
        // SAFETY: chunks are disjoint.
        work(k, unsafe { values.slice(k * len..end.min((k + 1) * len)) });
    });
}

/// Calls `work(k, element)` for element `k` of `values`, at least `least` elements to a task.
pub fn each_mut<T: Send>(values: &mut [T], least: usize, work: impl Fn(usize, &mut T) + Sync) {
    let (len, values) = (values.len(), Shared::new(values));
    ranges(len, least, |range| {
        let start = range.start;
        // SAFETY: ranges are disjoint.
        for (k, value) in unsafe { values.slice(range) }.iter_mut().enumerate() {
            work(start + k, value);
        }
    });
}

/// `work(k)` for every `k` below `count`, each as a task of its own; results in order.
pub fn map<R: Send>(count: usize, work: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let mut results: Vec<Option<R>> = (0..count).map(|_| None).collect();
    each_mut(&mut results, 1, |k, result| *result = Some(work(k)));
    results.into_iter().flatten().collect()
}

/// Sorts `values`: every thread sorts a part, then the parts are merged.
pub fn sort<T: Ord + Send>(values: &mut [T]) {
    let part = values.len().div_ceil(threads()).max(1 << 14);
    chunks_mut(values, part, |_, chunk| chunk.sort_unstable());
    if values.len() > part {
        // The standard library's stable sort finds the sorted parts and merges them.
        values.sort();
    }
}

/// A mutable slice shared by threads that never touch the same element.
#[derive(Debug)]
pub struct Shared<'a, T> {
    ptr: *mut T,
    len: usize,
    slice: PhantomData<&'a mut [T]>,
}

impl<T> Clone for Shared<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Shared<'_, T> {}

// SAFETY: users of `put` and `slice` promise disjoint elements.
unsafe impl<T: Send> Send for Shared<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Shared<'_, T> {}

impl<'a, T> Shared<'a, T> {
    /// The elements of `slice`.
    pub fn new(slice: &'a mut [T]) -> Self {
        Shared { ptr: slice.as_mut_ptr(), len: slice.len(), slice: PhantomData }
    }

    /// `len` elements behind `ptr`, which need not be initialised while they are only written
    /// by [`Shared::put`].
    ///
    /// # Safety
    /// They are valid for writes throughout `'a`, and nobody else uses them.
    pub unsafe fn from_raw(ptr: *mut T, len: usize) -> Self {
        Shared { ptr, len, slice: PhantomData }
    }

    /// Writes element `at` without dropping what was there.
    ///
    /// # Safety
    /// `at` is in bounds, and no other thread accesses the element.
    #[inline(always)]
    pub unsafe fn put(self, at: usize, value: T) {
        debug_assert!(at < self.len);
        // SAFETY: promised by the caller.
        unsafe { self.ptr.add(at).write(value) }
    }

    /// The elements of `range`.
    ///
    /// # Safety
    /// The range is in bounds, and nothing else uses its elements while the slice lives.
    #[inline(always)]
    pub unsafe fn slice(self, range: Range<usize>) -> &'a mut [T] {
        debug_assert!(range.start <= range.end && range.end <= self.len);
        // SAFETY: promised by the caller.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.add(range.start), range.len()) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn ranges_cover_everything_once_and_are_large_enough() {
        for (len, least) in [(0, 1), (1, 1), (5, 100), (100, 0), (1000, 1), (1000, 7), (999, 333)] {
            let seen = Mutex::new(Vec::new());
            ranges(len, least, |r| seen.lock().unwrap().push(r));
            let mut seen = seen.into_inner().unwrap();
            seen.sort_by_key(|r| r.start);
            assert!(seen.iter().all(|r| r.len() >= least.clamp(1, len.max(1))), "{seen:?}");
            assert!(seen.into_iter().flatten().eq(0..len), "{len} {least}");
        }
    }

    #[test]
    fn loops_run_on_the_chosen_threads_and_serially_within() {
        struct Counting(Mutex<usize>);
        impl Executor for Counting {
            fn threads(&self) -> usize {
                3
            }
            fn each(&self, count: usize, work: &(dyn Fn(usize) + Sync)) {
                *self.0.lock().unwrap() += 1;
                (0..count).for_each(work);
            }
        }
        let executor = Counting(Mutex::new(0));
        let sums = on(&executor, || {
            assert_eq!(threads(), 3);
            map(5, |k| {
                assert_eq!(threads(), 1);
                map(k, |i| i).into_iter().sum::<usize>()
            })
        });
        assert_eq!(sums, [0, 0, 1, 3, 6]);
        assert_eq!(*executor.0.lock().unwrap(), 1);
        assert_eq!(threads(), rayon::current_num_threads());
    }

    #[test]
    fn sorting_in_parts_sorts() {
        let mut values: Vec<u32> =
            (0..100_000u32).map(|k| k.wrapping_mul(2_654_435_761) >> 7).collect();
        let mut expected = values.clone();
        expected.sort_unstable();
        sort(&mut values);
        assert!(values == expected);
    }

    #[test]
    fn chunks_and_elements_come_with_their_numbers() {
        let mut values = vec![0usize; 1003];
        chunks_mut(&mut values, 10, |k, chunk| {
            assert_eq!(chunk.len(), if k == 100 { 3 } else { 10 });
            chunk.fill(k);
        });
        assert!(values.iter().enumerate().all(|(at, k)| *k == at / 10));
        each_mut(&mut values, 4, |k, v| *v += k);
        assert!(values.iter().enumerate().all(|(at, v)| *v == at + at / 10));
        assert_eq!(map(300, |k| k * k), (0..300).map(|k| k * k).collect::<Vec<_>>());
    }
}
