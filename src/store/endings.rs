//! Tells those who wait that an attempt has ended, within one process.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::operation::OperationId;

/// Who waits for which operation. Only operations that somebody waits for take space.
#[derive(Debug, Clone, Default)]
pub(super) struct Endings(Arc<Mutex<HashMap<OperationId, WaitedFor>>>);

/// An operation that somebody waits for, and how many do.
#[derive(Debug)]
struct WaitedFor {
    ended: watch::Sender<()>,
    watches: usize,
}

/// Waits for the end of an operation's attempt.
#[derive(Debug)]
pub struct Watch {
    id: OperationId,
    ended: watch::Receiver<()>,
    endings: Endings,
}

impl Endings {
    /// Hears of every end from now on.
    pub(super) fn watch(&self, id: OperationId) -> Watch {
        let mut waited_for = self.lock();
        let one = waited_for
            .entry(id)
            .or_insert_with(|| WaitedFor { ended: watch::Sender::new(()), watches: 0 });
        one.watches += 1;
        Watch { id, ended: one.ended.subscribe(), endings: self.clone() }
    }

    /// Wakes all who wait for this operation.
    pub(super) fn announce(&self, id: OperationId) {
        if let Some(one) = self.lock().get(&id) {
            one.ended.send_replace(());
        }
    }

    /// Wakes all who wait for anything: an end may have been missed.
    pub(super) fn announce_all(&self) {
        for one in self.lock().values() {
            one.ended.send_replace(());
        }
    }

    /// The map holds no invariant that a panic elsewhere could have broken.
    fn lock(&self) -> MutexGuard<'_, HashMap<OperationId, WaitedFor>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch {
    /// Returns when an attempt has ended since the last call, or since the watch began.
    pub async fn ended(&mut self) {
        // The sender lives in `endings` for as long as this watch does.
        let _sender_lives = self.ended.changed().await;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Entry::Occupied(mut entry) = self.endings.lock().entry(self.id) {
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
        let endings = Endings::default();
        let id = OperationId::from_bytes([1; 16]);
        let mut watch = endings.watch(id);
        endings.announce(id);
        watch.ended().await;
    }

    #[tokio::test]
    async fn whoever_may_have_missed_an_end_is_woken() {
        let endings = Endings::default();
        let ids = [1, 2].map(|n| OperationId::from_bytes([n; 16]));
        let mut watches = ids.map(|id| endings.watch(id));
        endings.announce_all();
        for watch in &mut watches {
            watch.ended().await;
        }
    }

    #[test]
    fn nothing_is_kept_of_those_who_stopped_waiting() {
        let endings = Endings::default();
        let id = OperationId::from_bytes([1; 16]);
        let one = endings.watch(id);
        let other = endings.watch(id);
        drop(one);
        assert_eq!(endings.lock().len(), 1);
        drop(other);
        assert_eq!(endings.lock().len(), 0);
    }
}
