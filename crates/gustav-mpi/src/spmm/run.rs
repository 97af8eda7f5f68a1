//! An execution, after all ranks have agreed on it.

use gustav_core::{Buffer, DenseView, DenseViewMut, Layout, Result, Semiring};

use super::{Contents, Incoming, Own, Peer, Received, Served, SpmmPlan, WholeRows, Workspace};
use crate::communicator::Communicator;
use crate::exchange::Exchange;
use crate::fetch::{Forwards, Section};
use crate::local::{
    DistScalar, Product, add_rows, is_widened, pack, rows_of_sums, store, view_mut_of_sums,
    view_of_sums,
};

/// What products of one execution share.
struct Shared<'e, T: DistScalar> {
    communicator: &'e dyn Communicator,
    exchange: &'e mut Exchange,
    values: &'e [T],
    b: DenseView<'e, T::Accum>,
    columns: usize,
    semiring: Semiring,
    /// Memory for values, for partial rows, for rows of B in the type of sums.
    scratch: [&'e mut Buffer<T::Accum>; 3],
}

impl<T: DistScalar> SpmmPlan<T> {
    pub(super) fn multiply(
        &mut self,
        values: &[T],
        b: &DenseView<'_, T>,
        c: &mut DenseViewMut<'_, T>,
        (alpha, beta): (T::Accum, T::Accum),
    ) -> Result<()> {
        let communicator = self.ranks.communicator();
        let (columns, semiring) = (self.problem.columns, self.problem.semiring);
        let exchange = &mut self.exchange;
        exchange.receive(communicator)?;
        self.forwards.begin();
        // What another rank forwards first: it is sent twice.
        for send in self.relays.iter().chain(self.peers.iter().filter_map(|p| p.send.as_ref())) {
            let message = exchange.outgoing::<T>(send.message);
            let (rows, of_a) = message.split_at_mut(send.rows.len() * columns);
            pack(b, &send.rows, rows);
            of_a.iter_mut().zip(&send.values).for_each(|(to, from)| *to = values[*from]);
            exchange.send(communicator, send.message)?;
        }
        let Workspace { values: for_values, partial, received, b: widened_b, sums } =
            &mut self.workspace;
        let b = view_of_sums(b, widened_b)?;
        let scratch = [for_values, partial, received];
        let mut shared = Shared { communicator, exchange, values, b, columns, semiring, scratch };
        // What other ranks wait for is done first.
        for peer in &mut self.peers {
            if let Some(served) = peer.served.as_mut().filter(|s| !s.values_received) {
                shared.serve(served, None, 0)?;
            }
        }
        // Sums go to C itself unless they are still to be scaled or rounded.
        let direct = alpha == semiring.one() && !is_widened(T::DTYPE);
        let mut to = match (direct, sums.as_mut()) {
            (false, Some(sums)) => sums.view_mut(),
            _ => view_mut_of_sums(c)?,
        };
        let first = if direct { beta } else { semiring.zero() };
        let (peers, forwards) = (&mut self.peers, &mut self.forwards);
        match &mut self.own {
            Own::Block(product) => {
                let scratch = &mut *shared.scratch[0];
                product.execute(values, scratch, shared.b, to.reborrow(), first)?;
                match self.problem.deterministic {
                    true => shared.in_rank_order(peers, &self.incoming, forwards, &mut to)?,
                    false => shared.in_arrival_order(peers, &self.incoming, forwards, &mut to)?,
                }
            }
            Own::Rows(rows) => {
                rows.begin(values, shared.scratch[0], (&shared.b, &mut to), first)?;
                let others = (&mut peers[..], &self.incoming[..]);
                shared.multiply_rows(rows, others, forwards, (&mut to, first))?;
            }
        }
        shared.exchange.finish(communicator)?;
        if let (false, Some(sums)) = (direct, sums) {
            store(semiring, (alpha, beta), &sums.view(), c);
        }
        Ok(())
    }
}

impl<T: DistScalar> Shared<'_, T> {
    /// Computes partial rows for another rank and sends them; the values are after `rows_received` rows in message
    /// `operands`, where there is one.
    fn serve(
        &mut self,
        served: &mut Served<Product<T::Accum>>,
        operands: Option<usize>,
        rows_received: usize,
    ) -> Result<()> {
        let Served { product, message, rows, .. } = served;
        let (received, partial) = self.exchange.pair::<T, T::Accum>(operands, *message);
        let values = operands.map_or(self.values, |_| &received[rows_received * self.columns..]);
        let partial =
            DenseViewMut::new(*rows, self.columns, Layout::RowMajor, self.columns, partial)?;
        product.execute(values, self.scratch[0], self.b, partial, self.semiring.zero())?;
        self.exchange.send(self.communicator, *message)
    }

    /// Multiplies rows of B that were received and adds to C.
    fn add_product(
        &mut self,
        received: &mut Received<Product<T::Accum>>,
        c: &mut DenseViewMut<'_, T::Accum>,
    ) -> Result<()> {
        let (n, semiring) = (self.columns, self.semiring);
        let Received { product, rows: rows_of_c, values_received, of_b } = received;
        let Section { message, first, rows } = *of_b;
        let (received, values) =
            self.exchange.incoming::<T>(message)[first * n..].split_at(rows * n);
        let values = if *values_received { values } else { self.values };
        let [scratch, partial, widened] = &mut self.scratch;
        let b = rows_of_sums(received, widened);
        let b = DenseView::row_major(rows, n, b)?;
        let Some(rows) = rows_of_c else {
            return product.execute(values, scratch, b, c.reborrow(), semiring.one());
        };
        let partial = &mut partial[..rows.len() * n];
        let to = DenseViewMut::new(rows.len(), n, Layout::RowMajor, n, partial)?;
        product.execute(values, scratch, b, to, semiring.zero())?;
        add_rows(semiring, c, rows, partial);
        Ok(())
    }

    /// Does what others wait for, once `message` has arrived.
    fn serve_arrived(
        &mut self,
        peers: &mut [Peer<Product<T::Accum>>],
        forwards: &mut Forwards,
        (message, contents): (usize, Contents),
    ) -> Result<()> {
        match contents {
            Contents::ToRelay => forwards.arrived(self.exchange, self.communicator, message),
            Contents::Operands(peer) => {
                let Peer { served, rows_received, .. } = &mut peers[peer];
                match served.as_mut().filter(|s| s.values_received) {
                    Some(served) => self.serve(served, Some(message), *rows_received),
                    None => Ok(()),
                }
            }
            Contents::Partial(_) | Contents::Forwarded => Ok(()),
        }
    }

    fn add_partial(&self, peer: &Peer<Product<T::Accum>>, c: &mut DenseViewMut<'_, T::Accum>) {
        if let Some(partial) = &peer.partial {
            add_rows(self.semiring, c, &partial.rows, self.exchange.incoming(partial.message));
        }
    }

    fn in_arrival_order(
        &mut self,
        peers: &mut [Peer<Product<T::Accum>>],
        incoming: &[Incoming],
        forwards: &mut Forwards,
        c: &mut DenseViewMut<'_, T::Accum>,
    ) -> Result<()> {
        for _ in incoming {
            let message = self.exchange.next(self.communicator)?;
            let Incoming { contents, multiplied } = &incoming[message];
            self.serve_arrived(peers, forwards, (message, *contents))?;
            if let Contents::Partial(peer) = contents {
                self.add_partial(&peers[*peer], c);
            }
            for peer in multiplied {
                if let Some(received) = &mut peers[*peer].received {
                    self.add_product(received, c)?;
                }
            }
        }
        Ok(())
    }

    /// Multiplies whole rows as what they need arrives: nothing is added to C in that order.
    fn multiply_rows(
        &mut self,
        rows: &mut WholeRows<T::Accum>,
        (peers, incoming): (&mut [Peer<Product<T::Accum>>], &[Incoming]),
        forwards: &mut Forwards,
        (c, beta): (&mut DenseViewMut<'_, T::Accum>, T::Accum),
    ) -> Result<()> {
        for _ in incoming {
            let message = self.exchange.next(self.communicator)?;
            self.serve_arrived(peers, forwards, (message, incoming[message].contents))?;
            let (exchange, values) = (&*self.exchange, self.values);
            rows.arrived(exchange, message, values, &mut self.scratch, (c, beta))?;
        }
        Ok(())
    }

    fn in_rank_order(
        &mut self,
        peers: &mut [Peer<Product<T::Accum>>],
        incoming: &[Incoming],
        forwards: &mut Forwards,
        c: &mut DenseViewMut<'_, T::Accum>,
    ) -> Result<()> {
        // What others wait for is done before what this rank waits for: it depends on what is sent at once alone.
        for (message, Incoming { contents, .. }) in incoming.iter().enumerate() {
            let helps = match contents {
                Contents::ToRelay => true,
                Contents::Operands(peer) => {
                    peers[*peer].served.as_ref().is_some_and(|s| s.values_received)
                }
                Contents::Partial(_) | Contents::Forwarded => false,
            };
            if helps {
                self.exchange.wait(self.communicator, message)?;
                self.serve_arrived(peers, forwards, (message, *contents))?;
            }
        }
        for peer in peers {
            if let Some(received) = &mut peer.received {
                self.exchange.wait(self.communicator, received.of_b.message)?;
                self.add_product(received, c)?;
            }
            if let Some(partial) = &peer.partial {
                self.exchange.wait(self.communicator, partial.message)?;
            }
            self.add_partial(peer, c);
        }
        Ok(())
    }
}
