//! Messages that a rank with a GPU forwards to others of its host.

use gustav_core::{Result, Semiring};
use gustav_cuda::{Device, RowList, Stream};

use super::{Staging, rows_of};
use crate::fetch::{Forward, Forwards};
use crate::local::DistScalar;

/// The messages, and how they are copied.
pub struct Forwarding<T: DistScalar> {
    pub forwards: Forwards,
    /// The rows of every message and source, where messages are on the GPU: it copies them. Else the host does.
    lists: Vec<Vec<RowList<T>>>,
    /// Values of a row.
    width: usize,
}

impl<T: DistScalar> Forwarding<T> {
    /// Those of `forwards`; `direct` says that messages are in memory of the GPU alone.
    ///
    /// # Errors
    /// [`gustav_core::Error::OutOfMemory`], [`gustav_core::Error::Device`].
    pub fn new(device: &Device, forwards: Forwards, direct: bool) -> Result<Self> {
        let list = |rows: &Vec<u32>| RowList::new(device, rows, Semiring::PlusTimes);
        let of = |of: &Forward| of.sources.iter().map(|(_, rows)| list(rows)).collect();
        let messages = if direct { forwards.messages() } else { &[] };
        let lists = messages.iter().map(of).collect::<Result<_>>()?;
        let width = forwards.row_bytes / size_of::<T>();
        Ok(Forwarding { forwards, lists, width })
    }

    /// Bytes on the GPU.
    pub fn bytes(&self) -> usize {
        self.lists.iter().flatten().map(RowList::bytes).sum()
    }

    /// Queues copies of the rows of messages that waited for `message` alone, and returns these messages.
    ///
    /// # Errors
    /// [`gustav_core::Error::Device`].
    pub fn pack(
        &mut self,
        message: usize,
        staging: &mut Staging<T>,
        stream: &Stream,
    ) -> Result<Vec<usize>> {
        let (width, lists) = (self.width, &self.lists);
        let Staging { incoming, outgoing, .. } = staging;
        let packed = self.forwards.complete(message).map(|(number, forward)| {
            let mut first = 0;
            for ((from, _), rows) in forward.sources.iter().zip(&lists[number]) {
                let from = &incoming[*from];
                // SAFETY: the plan has the memory, where the message has arrived.
                let from = unsafe { rows_of(from, 0, (from.len() / width, width))? };
                rows.pack(&from, &mut outgoing[forward.message], first, stream)?;
                first += rows.len() * width;
            }
            Ok(forward.message)
        });
        packed.collect()
    }
}
