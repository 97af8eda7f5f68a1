//! What can be multiplied, as messages arrive.

/// Products of one execution that wait for messages.
pub struct Waiting {
    /// The products that need each incoming message.
    of_message: Vec<Vec<usize>>,
    /// How many messages each product needs.
    needed: Vec<usize>,
    /// How many of them have not arrived.
    missing: Vec<usize>,
}

impl Waiting {
    /// Products that need these messages each, of `messages` incoming ones.
    pub fn new(products: impl Iterator<Item = Vec<usize>>, messages: usize) -> Self {
        let mut of_message = vec![Vec::new(); messages];
        let mut needed = Vec::new();
        for (product, mut messages) in products.enumerate() {
            messages.sort_unstable();
            messages.dedup();
            needed.push(messages.len());
            messages.into_iter().for_each(|message| of_message[message].push(product));
        }
        Waiting { of_message, missing: needed.clone(), needed }
    }

    /// The products that need no message.
    pub fn early(&self) -> impl Iterator<Item = usize> {
        (0..self.needed.len()).filter(|product| self.needed[*product] == 0)
    }

    /// Begins an execution: no message has arrived.
    pub fn begin(&mut self) {
        self.missing.copy_from_slice(&self.needed);
    }

    /// The products that need nothing else, now that `message` has arrived.
    pub fn arrived(&mut self, message: usize) -> impl Iterator<Item = usize> {
        let Waiting { of_message, missing, .. } = self;
        of_message[message].iter().copied().filter(|product| {
            missing[*product] -= 1;
            missing[*product] == 0
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_is_complete_with_its_last_message() {
        let needs = [vec![], vec![2, 0, 2], vec![0]];
        let mut waiting = Waiting::new(needs.into_iter(), 3);
        assert_eq!(waiting.early().collect::<Vec<_>>(), [0]);
        for order in [[0, 1, 2], [2, 1, 0]] {
            waiting.begin();
            let found = order.map(|message| waiting.arrived(message).collect::<Vec<_>>());
            match order[0] {
                0 => assert_eq!(found, [vec![2], vec![], vec![1]]),
                _ => assert_eq!(found, [vec![], vec![], vec![1, 2]]),
            }
        }
    }
}
