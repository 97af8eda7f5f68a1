//! Rows that messages bring, put into one array on the GPU.

use gustav_core::{Result, Semiring};
use gustav_cuda::{Device, RowList, Stream};

use super::{Staging, part, rows_of};
use crate::fetch::{Fetch, Section};
use crate::local::DistScalar;
use crate::waiting::ByMessage;

/// How the rows of incoming messages, of `width` values each, get to where products read them.
pub struct Placing<T: DistScalar> {
    width: usize,
    /// The first value of every message that is received where its rows are read.
    pub in_place: Vec<Option<usize>>,
    copied: ByMessage<Copied<T>>,
}

/// Rows that are copied once they have arrived.
struct Copied<T: DistScalar> {
    section: Section,
    /// Those of the section that are needed; `None` for all of them.
    needed: Option<RowList<T>>,
    /// The first row of the array that they are copied to.
    first: usize,
}

impl<T: DistScalar> Placing<T> {
    /// That of the rows of `fetch`, which come in `messages` messages, where rows of rank q begin at row `first(q)`.
    ///
    /// # Errors
    /// [`gustav_core::Error::OutOfMemory`], [`gustav_core::Error::Device`].
    pub fn new<N: Copy + From<u32>>(
        device: &Device,
        fetch: &Fetch<N>,
        (messages, width): (usize, usize),
        first: impl Fn(usize) -> usize,
    ) -> Result<Self> {
        let (mut in_place, mut copied) = (vec![None; messages], Vec::new());
        for (peer, arrival) in &fetch.arrivals {
            let (section, first) = (arrival.section, first(*peer));
            if fetch.is_alone(arrival) {
                in_place[section.message] = Some(first * width);
                continue;
            }
            let list = |rows: &Vec<u32>| RowList::new(device, rows, Semiring::PlusTimes);
            let needed = arrival.positions.as_ref().map(list).transpose()?;
            copied.push((section.message, Copied { section, needed, first }));
        }
        Ok(Placing { width, in_place, copied: ByMessage::new(copied) })
    }

    /// Bytes on the GPU.
    pub fn bytes(&self) -> usize {
        self.copied.values().filter_map(|copied| copied.needed.as_ref()).map(RowList::bytes).sum()
    }

    /// Copies the rows of `message`, which has arrived, on `stream`, unless they are where they are read.
    ///
    /// # Errors
    /// [`gustav_core::Error::Device`].
    pub fn copy(&self, message: usize, staging: &mut Staging<T>, stream: &Stream) -> Result<()> {
        let Staging { incoming, joined: Some(all), .. } = staging else { return Ok(()) };
        for (_, copied) in self.copied.of(message) {
            let Copied { section: Section { first: from, rows, .. }, needed, first } = copied;
            let (width, received) = (self.width, &incoming[message]);
            // SAFETY: the plan has both, and all work on them is on this stream or waited for by it.
            unsafe {
                match needed {
                    None => part(all, first * width, rows * width)
                        .copy_from(&part(received, from * width, rows * width), stream)?,
                    Some(needed) => {
                        let received = rows_of(received, *from, (*rows, width))?;
                        needed.pack(&received, all, first * width, stream)?;
                    }
                }
            }
        }
        Ok(())
    }
}
