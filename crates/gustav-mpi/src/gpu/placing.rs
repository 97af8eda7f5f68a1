//! Rows that messages bring, put into one array on the GPU.

use gustav_core::{Result, Semiring};
use gustav_cuda::{Device, RowList, Stream};

use super::{Staging, part, rows_of};
use crate::fetch::{Fetch, Section};
use crate::local::DistScalar;

/// How the rows of incoming messages, of `width` values each, get to where products read them.
pub struct Placing<T: DistScalar> {
    width: usize,
    /// The first value of every message that is received where its rows are read.
    pub in_place: Vec<Option<usize>>,
    copied: Vec<Copied<T>>,
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
    pub fn new(
        device: &Device,
        fetch: &Fetch,
        (messages, width): (usize, usize),
        first: impl Fn(usize) -> usize,
    ) -> Result<Self> {
        let mut placing = Placing { width, in_place: vec![None; messages], copied: Vec::new() };
        for (peer, arrival) in &fetch.arrivals {
            let (section, first) = (arrival.section, first(*peer));
            if fetch.is_alone(arrival) {
                placing.in_place[section.message] = Some(first * width);
                continue;
            }
            let list = |rows: &Vec<u32>| RowList::new(device, rows, Semiring::PlusTimes);
            let needed = arrival.positions.as_ref().map(list).transpose()?;
            placing.copied.push(Copied { section, needed, first });
        }
        Ok(placing)
    }

    /// Bytes on the GPU.
    pub fn bytes(&self) -> usize {
        self.copied.iter().filter_map(|copied| copied.needed.as_ref()).map(RowList::bytes).sum()
    }

    /// Copies the rows of `message`, which has arrived, on `stream`, unless they are where they are read.
    ///
    /// # Errors
    /// [`gustav_core::Error::Device`].
    pub fn copy(&self, message: usize, staging: &mut Staging<T>, stream: &Stream) -> Result<()> {
        let Staging { incoming, joined: Some(all), .. } = staging else { return Ok(()) };
        let of_message = self.copied.iter().filter(|copied| copied.section.message == message);
        for Copied { section: Section { first: from, rows, .. }, needed, first } in of_message {
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
