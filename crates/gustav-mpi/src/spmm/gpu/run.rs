//! An execution, after all ranks have agreed on it.

use gustav_core::{Result, Scale};
use gustav_cuda::{Call, DeviceBuffer, DeviceDense, Stream};

use super::super::{Contents, Incoming};
use super::{GpuSpmmPlan, Peer, Product, Received, Served};
use crate::gpu::{Transport, part, rows_of};
use crate::local::DistScalar;

/// What an execution has.
struct Running<'e, T: DistScalar> {
    transport: Transport<'e, T>,
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
        self.forwards.begin();
        let transport = self.messages.begin()?;
        let stream = transport.stream;
        let mut run = Running { transport, stream, values, b, columns, alpha, one };
        // What another rank forwards first: it is sent twice.
        for send in self.relays.iter().chain(self.peers.iter().filter_map(|p| p.send.as_ref())) {
            let to = &mut run.transport.staging.outgoing[send.message];
            send.rows.pack(b, to, 0, stream)?;
            send.values.pack_values(values, to, send.rows.len() * columns, stream)?;
            run.transport.queue_send(send.message)?;
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
        run.transport.send_pending()?;
        for _ in 0..self.incoming.len() {
            let number = run.transport.next_message()?;
            let Incoming { contents, multiplied } = &self.incoming[number];
            match *contents {
                Contents::ToRelay => {
                    run.transport.forward(&mut self.forwards, number)?;
                }
                Contents::Operands(peer) => {
                    let Peer { served, rows_received, .. } = &mut self.peers[peer];
                    if let Some(served) = served.as_mut().filter(|s| s.values_received) {
                        run.serve(served, Some((number, *rows_received)))?;
                        run.transport.send_pending()?;
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
        run.transport.finish()
    }
}

impl<T: DistScalar> Running<'_, T> {
    /// Computes partial rows for another rank and has them sent; the values are this rank's, or after so many rows in a
    /// message.
    fn serve(&mut self, served: &mut Served<T>, operands: Option<(usize, usize)>) -> Result<()> {
        let n = self.columns;
        let received_values = operands.map(|(message, rows)| {
            let from = &self.transport.staging.incoming[message];
            // SAFETY: the plan has the memory, and the stream waits for the copy to it.
            unsafe { part(from, rows * n, from.len() - rows * n) }
        });
        let values = received_values.as_ref().unwrap_or(self.values);
        let to = &self.transport.staging.outgoing[served.message];
        // SAFETY: the plan has the memory; the copy from it follows on an event.
        let mut partial = unsafe { rows_of(to, 0, (served.rows, n))? };
        let call = Call::new().on(self.stream);
        served.product.execute(values, self.b, &mut partial, call, self.stream)?;
        self.transport.queue_send(served.message)
    }

    /// Multiplies rows of B that were received and adds to C.
    fn add_product(&mut self, received: &mut Received<T>, c: &mut DeviceDense<T>) -> Result<()> {
        let n = self.columns;
        let Received { product, of_b, rows, values_received } = received;
        let from = &self.transport.staging.incoming[of_b.message];
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
