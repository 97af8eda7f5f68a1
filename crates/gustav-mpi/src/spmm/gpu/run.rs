//! An execution, after all ranks have agreed on it.

use gustav_core::{Result, Scale};
use gustav_cuda::{Call, DeviceBuffer, DeviceDense, RowList, Stream};

use super::super::partial_rows::{Event, Outgoing, PartialRows};
use super::super::{Contents, ReceivedValues};
use super::{GpuSpmmPlan, Peer, Product, Received};
use crate::gpu::{Transport, part, rows_of};
use crate::local::DistScalar;

/// What an execution has.
struct Running<'e, T: DistScalar> {
    transport: Transport<'e, T>,
    partial_rows: &'e mut PartialRows<RowList<T>>,
    stream: &'e Stream,
    values: &'e DeviceBuffer<T>,
    b: &'e DeviceDense<T>,
    columns: usize,
    alpha: T::Accum,
    one: T::Accum,
}

impl<T: DistScalar> GpuSpmmPlan<T> {
    pub(super) fn multiply(
        &mut self,
        values: &DeviceBuffer<T>,
        b: &DeviceDense<T>,
        c: &mut DeviceDense<T>,
        (alpha, beta): (T::Accum, T::Accum),
    ) -> Result<()> {
        let (columns, one) = (self.problem.columns, self.problem.semiring.one());
        self.products.begin();
        self.partial_rows.begin();
        let partial_rows = &mut self.partial_rows;
        let transport = self.messages.begin()?;
        let stream = transport.stream;
        let mut run = Running { transport, partial_rows, stream, values, b, columns, alpha, one };
        // What another rank forwards first: it is sent twice.
        for send in self.relays.iter().chain(self.peers.iter().filter_map(|p| p.send.as_ref())) {
            let to = &mut run.transport.staging.outgoing[send.message];
            send.rows.pack(b, to, 0, stream)?;
            send.values.pack_values(values, to, send.rows.len() * columns, stream)?;
            run.transport.queue_send(send.message)?;
        }
        // What other ranks wait for is done first.
        for position in 0..self.peers.len() {
            run.serve(&mut self.peers, position, false)?;
        }
        let call = Call::from(Scale::new().alpha(alpha).beta(beta)).on(stream);
        self.own.execute(values, b, c, call, stream)?;
        // Copies and messages run while the GPU multiplies.
        run.transport.send_pending()?;
        for _ in 0..self.incoming.len() {
            let number = run.transport.next_message()?;
            let contents = self.incoming[number];
            match contents {
                Contents::ToRelay => run.transport.forward(number)?,
                Contents::ToReduce => run.send_partial_rows(Event::Arrived(number))?,
                Contents::Operands(peer) => run.serve(&mut self.peers, peer, true)?,
                Contents::Partial(_) | Contents::Forwarded => {}
            }
            run.transport.send_pending()?;
            if self.problem.deterministic {
                continue;
            }
            if let Contents::Partial(peer) = contents {
                run.add_partial(&self.peers[peer], c)?;
            }
            for peer in self.products.arrived(number) {
                if let Some(received) = &mut self.peers[peer].received {
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
        run.transport.finish()
    }
}

impl<T: DistScalar> Running<'_, T> {
    /// Computes partial rows for the peer at `position`, if there are some with values from there, or with this
    /// rank's, as `received` says; and has sent what is complete then.
    fn serve(&mut self, peers: &mut [Peer<T>], position: usize, received: bool) -> Result<()> {
        let n = self.columns;
        let served = peers[position].served.as_mut();
        let Some(served) = served.filter(|s| s.values.is_some() == received) else {
            return Ok(());
        };
        let received = served.values.map(|values| self.received_values(values));
        let values = received.as_ref().unwrap_or(self.values);
        let to = &self.transport.staging.outgoing[served.to.message];
        // SAFETY: the plan has the memory; the copy from it follows on an event.
        let mut partial = unsafe { rows_of(to, served.to.first, (served.to.rows, n))? };
        let call = Call::new().on(self.stream);
        served.product.execute(values, self.b, &mut partial, call, self.stream)?;
        self.send_partial_rows(Event::Computed(position))
    }

    /// Adds up the partial rows that waited for `event` alone, and has them sent.
    fn send_partial_rows(&mut self, event: Event) -> Result<()> {
        let Running { partial_rows, transport, stream, columns, .. } = self;
        for Outgoing { message, added } in partial_rows.complete(event) {
            let staging = &transport.staging;
            let sums = &staging.outgoing[*message];
            for (section, rows) in added {
                let range = section.range(*columns);
                // SAFETY: the plan has the memory; the stream waits for the copy to it, and the copy from it follows on
                // an event.
                let (from, mut to) = unsafe {
                    let from = &staging.incoming[section.message];
                    let to = rows_of(sums, 0, (sums.len() / *columns, *columns))?;
                    (part(from, range.start, range.len()), to)
                };
                rows.add(&from, &mut to, None, stream)?;
            }
            transport.queue_send(*message)?;
        }
        Ok(())
    }

    /// Values of A in a message that has arrived.
    fn received_values(
        &self,
        ReceivedValues { message, first }: ReceivedValues,
    ) -> DeviceBuffer<T> {
        let from = &self.transport.staging.incoming[message];
        // SAFETY: the plan has the memory, and the stream waits for the copy to it.
        unsafe { part(from, first, from.len() - first) }
    }

    /// Multiplies rows of B that were received and adds to C.
    fn add_product(&mut self, received: &mut Received<T>, c: &mut DeviceDense<T>) -> Result<()> {
        let n = self.columns;
        let Received { product, of_b, rows, values } = received;
        let from = &self.transport.staging.incoming[of_b.message];
        // SAFETY: as of values.
        let b = unsafe { rows_of(from, of_b.first, (of_b.rows, n))? };
        let received_values = values.map(|values| self.received_values(values));
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
            Some((message, rows)) => rows.add(
                &self.transport.staging.incoming[*message],
                c,
                Some(self.alpha),
                self.stream,
            ),
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
