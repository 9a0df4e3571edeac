//! Notifies waiters of this process that an attempt has ended.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::operation::OperationId;

/// The waiters of all operations. An operation takes space only while somebody waits for it.
#[derive(Debug, Clone, Default)]
pub(super) struct Watchers(Arc<Mutex<HashMap<OperationId, Watched>>>);

/// An operation that somebody waits for.
#[derive(Debug)]
struct Watched {
    ended: watch::Sender<()>,
    watches: usize,
}

/// Waits for the end of an operation's attempt.
///
/// Nothing announces the end of a lease, because nobody writes anything at that moment. A waiter
/// therefore claims again when the lease that its own claim reported has passed.
#[derive(Debug)]
pub struct Watch {
    id: OperationId,
    ended: watch::Receiver<()>,
    watchers: Watchers,
}

impl Watchers {
    /// Returns a watch that notices every end of an attempt from now on.
    pub(super) fn watch(&self, id: OperationId) -> Watch {
        let mut operations = self.0.lock();
        let watched = operations
            .entry(id)
            .or_insert_with(|| Watched { ended: watch::Sender::new(()), watches: 0 });
        watched.watches += 1;
        Watch { id, ended: watched.ended.subscribe(), watchers: self.clone() }
    }

    /// Wakes all waiters of this operation.
    pub(super) fn announce(&self, id: OperationId) {
        if let Some(watched) = self.0.lock().get(&id) {
            watched.ended.send_replace(());
        }
    }

    /// Wakes the waiters of all operations, because this process may have missed an end. Each
    /// waiter claims again and so learns the state.
    pub(super) fn announce_all(&self) {
        for watched in self.0.lock().values() {
            watched.ended.send_replace(());
        }
    }
}

impl Watch {
    /// Returns once an attempt has ended. Returns at once if one has ended since the last call, or
    /// since the watch began.
    ///
    /// Cancel safe: no end is lost if the future is dropped.
    pub async fn ended(&mut self) {
        // This fails only if the sender is gone. The sender stays in the map as long as this watch.
        let _never_fails = self.ended.changed().await;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Entry::Occupied(mut entry) = self.watchers.0.lock().entry(self.id) {
            entry.get_mut().watches -= 1;
            if entry.get().watches == 0 {
                entry.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_end_before_the_wait_is_not_missed() {
        let watchers = Watchers::default();
        let id = OperationId::from_bytes([1; 16]);
        let mut watch = watchers.watch(id);
        watchers.announce(id);
        watch.ended().await;
    }

    #[tokio::test]
    async fn whoever_may_have_missed_an_end_is_woken() {
        let watchers = Watchers::default();
        let ids = [1, 2].map(|n| OperationId::from_bytes([n; 16]));
        let mut all = ids.map(|id| watchers.watch(id));
        watchers.announce_all();
        for watch in &mut all {
            watch.ended().await;
        }
    }

    #[test]
    fn nothing_is_kept_of_those_who_stopped_waiting() {
        let watchers = Watchers::default();
        let id = OperationId::from_bytes([1; 16]);
        let one = watchers.watch(id);
        let other = watchers.watch(id);
        drop(one);
        assert_eq!(watchers.0.lock().len(), 1);
        drop(other);
        assert_eq!(watchers.0.lock().len(), 0);
    }
}
