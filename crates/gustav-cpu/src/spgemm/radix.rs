//! Radix sort of column indices, for rows where it beats sorting by comparison.

const BITS: u32 = 8;
const DIGITS: usize = 1 << BITS;

// Below this length the standard library's sort is faster.
const SHORT: usize = 128;

/// Sorts `list`; `spare` is as long.
pub(super) fn sort(list: &mut [u32], spare: &mut [u32]) {
    if list.len() < SHORT {
        list.sort_unstable();
        return;
    }
    let used = u32::BITS - list.iter().fold(0, |all, c| all | c).leading_zeros();
    let (mut from, mut to) = (&mut *list, &mut *spare);
    let mut swapped = false;
    for shift in (0..used).step_by(BITS as usize) {
        let digit = |c: u32| (c >> shift) as usize % DIGITS;
        let mut next = [0usize; DIGITS];
        for c in from.iter() {
            next[digit(*c)] += 1;
        }
        let mut start = 0;
        for count in &mut next {
            start += std::mem::replace(count, start);
        }
        for c in from.iter() {
            let at = &mut next[digit(*c)];
            to[*at] = *c;
            *at += 1;
        }
        std::mem::swap(&mut from, &mut to);
        swapped = !swapped;
    }
    if swapped {
        list.copy_from_slice(spare);
    }
}
