//! An execution, after all ranks have agreed on it.

use std::collections::VecDeque;
use std::ops::Range;

use gustav_core::{Result, Scale};
use gustav_cuda::{Call, DeviceBuffer, DeviceDense, Event, Stream};

use super::super::{Contents, Incoming};
use super::{GpuSpmmPlan, Peer, Product, Received, Served, Staging, part, rows_of};
use crate::communicator::Communicator;
use crate::exchange::{Arrived, Exchange};
use crate::local::DistScalar;

/// What an execution has.
struct Running<'e, T: DistScalar> {
    communicator: &'e dyn Communicator,
    exchange: &'e mut Exchange,
    staging: &'e mut Staging<T>,
    stream: &'e Stream,
    copies: &'e Stream,
    values: &'e DeviceBuffer<T>,
    b: &'e DeviceDense<T>,
    columns: usize,
    alpha: T::Accum,
    one: T::Accum,
    /// Parts of messages that are sent once the copy to the host, or what computes them, is done.
    pending: VecDeque<(usize, Range<usize>, Event)>,
}

impl<T: DistScalar> GpuSpmmPlan<T> {
    pub(super) fn multiply(
        &mut self,
        values: &DeviceBuffer<T>,
        b: &DeviceDense<T>,
        c: &mut DeviceDense<T>,
        (alpha, beta): (T::Accum, T::Accum),
    ) -> Result<()> {
        let communicator = self.ranks.communicator();
        let stream = self.device.stream();
        let (columns, one) = (self.problem.columns, self.problem.semiring.one());
        self.forwards.iter_mut().for_each(|p| p.missing = p.sources.len());
        let mut run = Running {
            communicator,
            exchange: &mut self.exchange,
            staging: &mut self.staging,
            stream,
            copies: &self.copies,
            values,
            b,
            columns,
            alpha,
            one,
            pending: VecDeque::new(),
        };
        run.exchange.receive(communicator)?;
        // What another rank forwards first: it is sent twice.
        for send in self.relays.iter().chain(self.peers.iter().filter_map(|p| p.send.as_ref())) {
            let to = &mut run.staging.outgoing[send.message];
            send.rows.pack(b, to, 0, stream)?;
            send.values.pack_values(values, to, send.rows.len() * columns, stream)?;
            run.queue_send(send.message)?;
        }
        // What other ranks wait for is done first.
        for peer in &mut self.peers {
            if let Some(served) = peer.served.as_mut().filter(|s| !s.values_received) {
                run.serve(served, None)?;
            }
        }
        let call = Call::from(Scale::new().alpha(alpha).beta(beta)).on(stream);
        self.own.execute(values, b, c, call, stream)?;
        // Copies and messages run while the GPU multiplies.
        run.send_pending()?;
        let mut missing = self.incoming.len();
        while missing > 0 {
            let Arrived { number, range, complete } = run.exchange.next_chunk(communicator)?;
            run.upload(number, range)?;
            if !complete {
                continue;
            }
            missing -= 1;
            let Incoming { contents, multiplied } = &self.incoming[number];
            match *contents {
                Contents::ToRelay => super::super::run::forward_rows(
                    run.exchange,
                    communicator,
                    &mut self.forwards,
                    (number, columns * size_of::<T>()),
                )?,
                Contents::Operands(peer) => {
                    let Peer { served, rows_received, .. } = &mut self.peers[peer];
                    if let Some(served) = served.as_mut().filter(|s| s.values_received) {
                        run.serve(served, Some((number, *rows_received)))?;
                        run.send_pending()?;
                    }
                }
                Contents::Partial(_) | Contents::Forwarded => {}
            }
            if self.problem.deterministic {
                continue;
            }
            if let Contents::Partial(peer) = contents {
                run.add_partial(&self.peers[*peer], c)?;
            }
            for peer in multiplied {
                if let Some(received) = &mut self.peers[*peer].received {
                    run.add_product(received, c)?;
                }
            }
        }
        if self.problem.deterministic {
            for peer in &mut self.peers {
                if let Some(received) = &mut peer.received {
                    run.add_product(received, c)?;
                }
                run.add_partial(peer, c)?;
            }
        }
        run.exchange.finish(communicator)?;
        // The next execution receives into memory that copies read.
        self.copies.synchronize()?;
        stream.synchronize()
    }
}

impl<T: DistScalar> Running<'_, T> {
    /// Has an outgoing message sent, part by part, once the work on it that is queued so far is done.
    fn queue_send(&mut self, message: usize) -> Result<()> {
        let from = &self.staging.outgoing[message];
        let computed = self.stream.record()?;
        for range in self.exchange.send_chunks(self.communicator, message) {
            if !self.staging.host {
                self.pending.push_back((message, range, self.stream.record()?));
                continue;
            }
            self.copies.wait(&computed)?;
            let (values, first) = self.exchange.outgoing_chunk::<T>(message, &range);
            // SAFETY: the part is sent after the event, and nothing else touches it before.
            unsafe { from.start_read(first, values, self.copies)? };
            self.pending.push_back((message, range, self.copies.record()?));
        }
        Ok(())
    }

    /// Sends what is pending, in order, each part once it is there.
    fn send_pending(&mut self) -> Result<()> {
        while let Some((message, range, event)) = self.pending.pop_front() {
            event.synchronize()?;
            self.exchange.send_chunk(self.communicator, message, range)?;
        }
        Ok(())
    }

    /// Copies a chunk that has arrived to the GPU.
    fn upload(&mut self, message: usize, range: Range<usize>) -> Result<()> {
        if !self.staging.host {
            return Ok(());
        }
        let (values, first) = self.exchange.incoming_chunk::<T>(message, &range);
        // SAFETY: the message has arrived, and is received again only after the copies were waited for.
        unsafe { self.staging.incoming[message].start_write(first, values, self.copies)? };
        // Products read the memory by other buffers.
        self.stream.wait(&self.copies.record()?)
    }

    /// Computes partial rows for another rank and has them sent; the values are this rank's, or after so many rows in a
    /// message.
    fn serve(&mut self, served: &mut Served<T>, operands: Option<(usize, usize)>) -> Result<()> {
        let n = self.columns;
        let received_values = operands.map(|(message, rows)| {
            let from = &self.staging.incoming[message];
            // SAFETY: the plan has the memory, and the stream waits for the copy to it.
            unsafe { part(from, rows * n, from.len() - rows * n) }
        });
        let values = received_values.as_ref().unwrap_or(self.values);
        let to = &self.staging.outgoing[served.message];
        // SAFETY: the plan has the memory; the copy from it follows on an event.
        let mut partial = unsafe { rows_of(to, 0, (served.rows, n))? };
        let call = Call::new().on(self.stream);
        served.product.execute(values, self.b, &mut partial, call, self.stream)?;
        self.queue_send(served.message)
    }

    /// Multiplies rows of B that were received and adds to C.
    fn add_product(&mut self, received: &mut Received<T>, c: &mut DeviceDense<T>) -> Result<()> {
        let n = self.columns;
        let Received { product, of_b, rows, values_received } = received;
        let from = &self.staging.incoming[of_b.message];
        let values_at = (of_b.first + of_b.rows) * n;
        // SAFETY: the plan has the memory, and the stream waits for the copy to it.
        let (b, received_values) = unsafe {
            let b = rows_of(from, of_b.first, (of_b.rows, n))?;
            (b, values_received.then(|| part(from, values_at, from.len() - values_at)))
        };
        let values = received_values.as_ref().unwrap_or(self.values);
        let call = Call::new().on(self.stream);
        let Some((rows, partial)) = rows else {
            let call = Call::from(Scale::new().alpha(self.alpha).beta(self.one)).on(self.stream);
            return product.execute(values, &b, c, call, self.stream);
        };
        product.execute(values, &b, partial, call, self.stream)?;
        rows.add(partial.data(), c, Some(self.alpha), self.stream)
    }

    fn add_partial(&self, peer: &Peer<T>, c: &mut DeviceDense<T>) -> Result<()> {
        match &peer.partial {
            Some((message, rows)) => {
                rows.add(&self.staging.incoming[*message], c, Some(self.alpha), self.stream)
            }
            None => Ok(()),
        }
    }
}

impl<T: DistScalar> Product<T> {
    fn execute(
        &mut self,
        values: &DeviceBuffer<T>,
        b: &DeviceDense<T>,
        c: &mut DeviceDense<T>,
        call: Call<'_, T>,
        stream: &Stream,
    ) -> Result<()> {
        let Some((list, gathered)) = &mut self.gathered else {
            return self.plan.execute(values, b, c, call);
        };
        list.pack_values(values, gathered, 0, stream)?;
        self.plan.execute(&*gathered, b, c, call)
    }
}
