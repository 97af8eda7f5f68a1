//! What a process holds of freed buffers. One test, as the setting is the process's.

use gustav_core::Buffer;
use gustav_core::buffer::{release_blocks, retained_bytes, reuse_blocks};

const MIB: usize = 1 << 20;

/// A buffer of so many MiB, all of whose pages were touched.
fn buffer(mib: usize) -> Buffer<u8> {
    let mut buffer = Buffer::<u8>::zeroed(mib * MIB, "a test").expect("memory");
    buffer.fill(7);
    buffer
}

/// MiB that the process has in memory, as the system counts them.
#[cfg(target_os = "linux")]
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("the process's status");
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).expect("resident memory");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<usize>().ok()).expect("KiB") / 1024
}

#[test]
fn freed_blocks_are_held_only_when_asked_for_and_within_the_limit() {
    // Off: nothing is held.
    drop(buffer(1));
    #[cfg(target_os = "linux")]
    let at_first = resident();
    drop(buffer(128));
    drop(buffer(1));
    assert_eq!(retained_bytes(), 0);
    #[cfg(target_os = "linux")]
    assert!(resident() < at_first + 64, "{} MiB, at first {at_first}", resident());

    // On: the next buffer has the same block, cleared.
    let limit = 64 * MIB as u64;
    reuse_blocks(limit);
    let first = buffer(8);
    let at = first.as_ptr();
    drop(first);
    assert_eq!(retained_bytes(), 8 * MIB as u64);
    let again = Buffer::<u8>::zeroed(8 * MIB, "a test").expect("memory");
    assert_eq!((again.as_ptr(), retained_bytes()), (at, 0));
    assert!(again.iter().all(|byte| *byte == 0));
    drop(again);

    // Bounded: by all blocks together, and by each.
    let many: Vec<_> = (0..20).map(|_| buffer(8)).collect();
    for buffer in many {
        drop(buffer);
        assert!(retained_bytes() <= limit, "{}", retained_bytes());
    }
    let held = retained_bytes();
    assert!(held >= limit / 4, "{held}");
    drop(buffer(65));
    assert_eq!(retained_bytes(), held, "a block above the limit drives out no other");
    reuse_blocks(limit / 4);
    assert!((1..=limit / 4).contains(&retained_bytes()), "{}", retained_bytes());

    // Released: empty, and still on.
    release_blocks();
    assert_eq!(retained_bytes(), 0);
    drop(buffer(8));
    assert_eq!(retained_bytes(), 8 * MIB as u64);

    // Off again: everything is freed, and nothing is held.
    reuse_blocks(0);
    assert_eq!(retained_bytes(), 0);
    drop(buffer(8));
    assert_eq!(retained_bytes(), 0);
    #[cfg(target_os = "linux")]
    assert!(resident() < at_first + 64, "{} MiB, at first {at_first}", resident());
}
