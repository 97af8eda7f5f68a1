//! An execution, after all ranks have agreed on it.

use gustav_core::{Buffer, DenseView, DenseViewMut, Layout, Result, Semiring};

use super::{Brings, Peer, Received, Served, SpmmPlan, Workspace};
use crate::communicator::Communicator;
use crate::exchange::Exchange;
use crate::local::{
    DistScalar, add_rows, is_widened, pack, rows_of_sums, store, view_mut_of_sums, view_of_sums,
};

/// What products of one execution share.
struct Shared<'e, T: DistScalar> {
    communicator: &'e dyn Communicator,
    exchange: &'e mut Exchange,
    values: &'e [T],
    b: DenseView<'e, T::Accum>,
    columns: usize,
    semiring: Semiring,
    /// Room for values, for partial rows, for rows of B in the type of sums.
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
        for send in self.peers.iter().filter_map(|peer| peer.send.as_ref()) {
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
        // What other ranks wait for comes first.
        for peer in &mut self.peers {
            if let Some(served) = peer.served.as_mut().filter(|s| !s.values_come) {
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
        let scratch = &mut *shared.scratch[0];
        self.own.execute(values, scratch, shared.b, to.reborrow(), first)?;
        match self.problem.deterministic {
            true => shared.in_rank_order(&mut self.peers, &mut to)?,
            false => shared.as_they_come(&mut self.peers, &self.incoming, &mut to)?,
        }
        shared.exchange.finish(communicator)?;
        if let (false, Some(sums)) = (direct, sums) {
            store(semiring, (alpha, beta), &sums.view(), c);
        }
        Ok(())
    }
}

impl<T: DistScalar> Shared<'_, T> {
    /// Computes partial rows for another rank and sends them; the values are behind `rows_come` rows in message
    /// `operands`, where there is one.
    fn serve(
        &mut self,
        served: &mut Served<T::Accum>,
        operands: Option<usize>,
        rows_come: usize,
    ) -> Result<()> {
        let Served { product, message, rows, .. } = served;
        let (come, partial) = self.exchange.pair::<T, T::Accum>(operands, *message);
        let values = operands.map_or(self.values, |_| &come[rows_come * self.columns..]);
        let partial =
            DenseViewMut::new(*rows, self.columns, Layout::RowMajor, self.columns, partial)?;
        product.execute(values, self.scratch[0], self.b, partial, self.semiring.zero())?;
        self.exchange.send(self.communicator, *message)
    }

    /// Multiplies the rows of B in message `operands` and adds to C.
    fn add_product(
        &mut self,
        received: &mut Received<T::Accum>,
        (operands, rows_come): (usize, usize),
        c: &mut DenseViewMut<'_, T::Accum>,
    ) -> Result<()> {
        let (n, semiring) = (self.columns, self.semiring);
        let (rows, values) = self.exchange.incoming::<T>(operands).split_at(rows_come * n);
        let values = if received.values_come { values } else { self.values };
        let [scratch, partial, widened] = &mut self.scratch;
        let b = rows_of_sums(rows, widened);
        let b = DenseView::row_major(rows_come, n, b)?;
        let Received { product, rows, .. } = received;
        let Some(rows) = rows else {
            return product.execute(values, scratch, b, c.reborrow(), semiring.one());
        };
        let partial = &mut partial[..rows.len() * n];
        let to = DenseViewMut::new(rows.len(), n, Layout::RowMajor, n, partial)?;
        product.execute(values, scratch, b, to, semiring.zero())?;
        add_rows(semiring, c, rows, partial);
        Ok(())
    }

    /// What message `operands` of a peer is for.
    fn operands_came(
        &mut self,
        peer: &mut Peer<T::Accum>,
        operands: usize,
        c: &mut DenseViewMut<'_, T::Accum>,
    ) -> Result<()> {
        let rows_come = peer.rows_come;
        if let Some(served) = peer.served.as_mut().filter(|s| s.values_come) {
            self.serve(served, Some(operands), rows_come)?;
        }
        match &mut peer.received {
            Some(received) => self.add_product(received, (operands, rows_come), c),
            None => Ok(()),
        }
    }

    fn partial_came(&self, peer: &Peer<T::Accum>, c: &mut DenseViewMut<'_, T::Accum>) {
        if let Some(partial) = &peer.partial {
            add_rows(self.semiring, c, &partial.rows, self.exchange.incoming(partial.message));
        }
    }

    fn as_they_come(
        &mut self,
        peers: &mut [Peer<T::Accum>],
        incoming: &[(Brings, usize)],
        c: &mut DenseViewMut<'_, T::Accum>,
    ) -> Result<()> {
        for _ in incoming {
            let message = self.exchange.next(self.communicator)?;
            let (brings, peer) = incoming[message];
            match brings {
                Brings::Operands => self.operands_came(&mut peers[peer], message, c)?,
                Brings::Partial => self.partial_came(&peers[peer], c),
            }
        }
        Ok(())
    }

    fn in_rank_order(
        &mut self,
        peers: &mut [Peer<T::Accum>],
        c: &mut DenseViewMut<'_, T::Accum>,
    ) -> Result<()> {
        // Nobody waits for partial rows before having sent those that others wait for.
        for peer in &mut *peers {
            let served = peer.served.as_mut().filter(|s| s.values_come);
            if let (Some(served), Some(operands)) = (served, peer.operands) {
                self.exchange.wait(self.communicator, operands)?;
                self.serve(served, Some(operands), peer.rows_come)?;
            }
        }
        for peer in peers {
            if let (Some(received), Some(operands)) = (&mut peer.received, peer.operands) {
                self.exchange.wait(self.communicator, operands)?;
                self.add_product(received, (operands, peer.rows_come), c)?;
            }
            if let Some(partial) = &peer.partial {
                self.exchange.wait(self.communicator, partial.message)?;
            }
            self.partial_came(peer, c);
        }
        Ok(())
    }
}
