//! What depends on incoming messages, as they arrive.

/// Tasks of one execution that wait for messages: products, or messages that are forwarded.
#[derive(Default)]
pub struct Waiting {
    /// The tasks that need each message, as [`ByMessage`] has them.
    of_message: ByMessage<usize>,
    /// How many messages each task needs.
    needed: Vec<usize>,
    /// How many of them have not arrived.
    missing: Vec<usize>,
}

impl Waiting {
    /// Tasks that need these messages each.
    pub fn new(tasks: impl Iterator<Item = Vec<usize>>) -> Self {
        let (mut of_message, mut needed) = (Vec::new(), Vec::new());
        for (task, mut messages) in tasks.enumerate() {
            messages.sort_unstable();
            messages.dedup();
            needed.push(messages.len());
            of_message.extend(messages.into_iter().map(|message| (message, task)));
        }
        Waiting { of_message: ByMessage::new(of_message), missing: needed.clone(), needed }
    }

    /// The tasks that need no message.
    pub fn early(&self) -> impl Iterator<Item = usize> {
        (0..self.needed.len()).filter(|task| self.needed[*task] == 0)
    }

    /// Begins an execution: no message has arrived.
    pub fn begin(&mut self) {
        self.missing.copy_from_slice(&self.needed);
    }

    /// The tasks that need nothing else, now that `message` has arrived.
    pub fn arrived(&mut self, message: usize) -> impl Iterator<Item = usize> {
        let Waiting { of_message, missing, .. } = self;
        of_message.of(message).iter().map(|(_, task)| *task).filter(|task| {
            missing[*task] -= 1;
            missing[*task] == 0
        })
    }
}

/// What belongs to incoming messages, found by their numbers.
pub struct ByMessage<V> {
    /// By number, increasing; those of one message in the order that they were given.
    all: Vec<(usize, V)>,
}

impl<V> ByMessage<V> {
    /// These values of messages.
    pub fn new(mut all: Vec<(usize, V)>) -> Self {
        all.sort_by_key(|(message, _)| *message);
        ByMessage { all }
    }

    /// Those of `message`.
    pub fn of(&self, message: usize) -> &[(usize, V)] {
        &self.all[self.range(message)]
    }

    /// The same, to be changed.
    pub fn of_mut(&mut self, message: usize) -> &mut [(usize, V)] {
        let range = self.range(message);
        &mut self.all[range]
    }

    fn range(&self, message: usize) -> std::ops::Range<usize> {
        let before = |end: usize| self.all.partition_point(|(number, _)| *number < end);
        before(message)..before(message + 1)
    }

    /// All.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.all.iter().map(|(_, value)| value)
    }

    /// All, to be changed.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.all.iter_mut().map(|(_, value)| value)
    }
}

impl<V> Default for ByMessage<V> {
    fn default() -> Self {
        ByMessage { all: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_complete_with_its_last_message() {
        let needs = [vec![], vec![2, 0, 2], vec![0]];
        let mut waiting = Waiting::new(needs.into_iter());
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

    #[test]
    fn values_are_found_by_message() {
        let found = ByMessage::new(vec![(3, 'a'), (1, 'b'), (3, 'c')]);
        assert_eq!(found.of(1), [(1, 'b')]);
        assert_eq!(found.of(3), [(3, 'a'), (3, 'c')]);
        assert!(found.of(0).is_empty() && found.of(2).is_empty() && found.of(4).is_empty());
    }
}
