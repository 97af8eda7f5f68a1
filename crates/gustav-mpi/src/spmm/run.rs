//! An execution, after all ranks have agreed on it.

use gustav_core::{Buffer, DenseView, DenseViewMut, Layout, Result, Semiring};

use super::partial_rows::{Event, PartialRows};
use super::{Contents, Own, Peer, Received, SpmmPlan, WholeRows, Workspace};
use crate::communicator::Communicator;
use crate::exchange::Exchange;
use crate::fetch::Forwards;
use crate::local::{
    DistScalar, Product, add_rows, is_widened, pack, rows_of_sums, store, view_mut_of_sums,
    view_of_sums,
};
use crate::waiting::Waiting;

/// What products of one execution share.
struct Shared<'e, T: DistScalar> {
    communicator: &'e dyn Communicator,
    exchange: &'e mut Exchange,
    forwards: &'e mut Forwards,
    partial_rows: &'e mut PartialRows<Vec<u32>>,
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
        let SpmmPlan { exchange, forwards, partial_rows, products, .. } = self;
        exchange.receive(communicator)?;
        forwards.begin();
        partial_rows.begin();
        products.begin();
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
        let mut shared = Shared {
            communicator,
            exchange,
            forwards,
            partial_rows,
            values,
            b,
            columns,
            semiring,
            scratch,
        };
        // What other ranks wait for is done first.
        for position in 0..self.peers.len() {
            shared.serve(&mut self.peers, position, false)?;
        }
        // Sums go to C itself unless they are still to be scaled or rounded.
        let direct = alpha == semiring.one() && !is_widened(T::DTYPE);
        let mut to = match (direct, sums.as_mut()) {
            (false, Some(sums)) => sums.view_mut(),
            _ => view_mut_of_sums(c)?,
        };
        let first = if direct { beta } else { semiring.zero() };
        let (peers, incoming) = (&mut self.peers, &self.incoming);
        match &mut self.own {
            Own::Block(product) => {
                let scratch = &mut *shared.scratch[0];
                product.execute(values, scratch, shared.b, to.reborrow(), first)?;
                match self.problem.deterministic {
                    true => shared.in_rank_order(peers, incoming, &mut to)?,
                    false => shared.in_arrival_order(peers, incoming, products, &mut to)?,
                }
            }
            Own::Rows(rows) => {
                rows.begin(values, shared.scratch[0], (&shared.b, &mut to), first)?;
                shared.multiply_rows(rows, (peers, incoming), (&mut to, first))?;
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
    /// Computes partial rows for the peer at `position`, if there are some with values from there, or with this
    /// rank's, as `received` says; and sends what is complete then.
    fn serve(
        &mut self,
        peers: &mut [Peer<Product<T::Accum>>],
        position: usize,
        received: bool,
    ) -> Result<()> {
        let served = peers[position].served.as_mut();
        let Some(served) = served.filter(|s| s.values.is_some() == received) else {
            return Ok(());
        };
        let message = served.values.map(|values| values.message);
        let (received, partial) = self.exchange.pair::<T, T::Accum>(message, served.to.message);
        let values = served.values.map_or(self.values, |values| &received[values.first..]);
        let partial = &mut partial[served.to.range(self.columns)];
        let (rows, n) = (served.to.rows, self.columns);
        let partial = DenseViewMut::new(rows, n, Layout::RowMajor, n, partial)?;
        served.product.execute(values, self.scratch[0], self.b, partial, self.semiring.zero())?;
        self.send_partial_rows(Event::Computed(position))
    }

    /// Sends the partial rows that waited for `event` alone.
    fn send_partial_rows(&mut self, event: Event) -> Result<()> {
        let Shared { partial_rows, exchange, communicator, semiring, columns, .. } = self;
        partial_rows.send::<T::Accum>(event, exchange, *communicator, (*semiring, *columns))
    }

    /// Multiplies rows of B that were received and adds to C.
    fn add_product(
        &mut self,
        received: &mut Received<Product<T::Accum>>,
        c: &mut DenseViewMut<'_, T::Accum>,
    ) -> Result<()> {
        let (n, semiring) = (self.columns, self.semiring);
        let Received { product, rows: rows_of_c, values, of_b } = received;
        let received = &self.exchange.incoming::<T>(of_b.message)[of_b.range(n)];
        let values = match values {
            Some(values) => &self.exchange.incoming::<T>(values.message)[values.first..],
            None => self.values,
        };
        let [scratch, partial, widened] = &mut self.scratch;
        let b = rows_of_sums(received, widened);
        let b = DenseView::row_major(of_b.rows, n, b)?;
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
        (message, contents): (usize, Contents),
    ) -> Result<()> {
        match contents {
            Contents::ToRelay => self.forwards.arrived(self.exchange, self.communicator, message),
            Contents::ToReduce => self.send_partial_rows(Event::Arrived(message)),
            Contents::Operands(peer) => self.serve(peers, peer, true),
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
        incoming: &[Contents],
        products: &mut Waiting,
        c: &mut DenseViewMut<'_, T::Accum>,
    ) -> Result<()> {
        for _ in incoming {
            let message = self.exchange.next(self.communicator)?;
            let contents = incoming[message];
            self.serve_arrived(peers, (message, contents))?;
            if let Contents::Partial(peer) = contents {
                self.add_partial(&peers[peer], c);
            }
            for peer in products.arrived(message) {
                if let Some(received) = &mut peers[peer].received {
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
        (peers, incoming): (&mut [Peer<Product<T::Accum>>], &[Contents]),
        (c, beta): (&mut DenseViewMut<'_, T::Accum>, T::Accum),
    ) -> Result<()> {
        for _ in incoming {
            let message = self.exchange.next(self.communicator)?;
            self.serve_arrived(peers, (message, incoming[message]))?;
            let (exchange, values) = (&*self.exchange, self.values);
            rows.arrived(exchange, message, values, &mut self.scratch, (c, beta))?;
        }
        Ok(())
    }

    fn in_rank_order(
        &mut self,
        peers: &mut [Peer<Product<T::Accum>>],
        incoming: &[Contents],
        c: &mut DenseViewMut<'_, T::Accum>,
    ) -> Result<()> {
        // What others wait for is done before what this rank waits for: it depends on what is sent at once alone, or,
        // of partial rows that are added up, on that.
        for stage in [1, 2] {
            for (message, contents) in incoming.iter().enumerate() {
                let is_now = match *contents {
                    Contents::ToRelay => stage == 1,
                    Contents::Operands(peer) => {
                        let served = &peers[peer].served;
                        stage == 1 && served.as_ref().is_some_and(|s| s.values.is_some())
                    }
                    Contents::ToReduce => stage == 2,
                    Contents::Partial(_) | Contents::Forwarded => false,
                };
                if is_now {
                    self.exchange.wait(self.communicator, message)?;
                    self.serve_arrived(peers, (message, *contents))?;
                }
            }
        }
        for peer in peers {
            if let Some(received) = &mut peer.received {
                let values = received.values.map(|values| values.message);
                for message in [received.of_b.message].into_iter().chain(values) {
                    self.exchange.wait(self.communicator, message)?;
                }
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
