//! The writer's replies.
//!
//! If another thread wakes a task, that costs a lock and a system call. If the task is woken on its
//! own runtime, it costs neither. So the replies of a group are sent by tasks, one on each runtime
//! whose callers wait for the group.

use std::collections::HashMap;
use std::error::Error as StdError;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::store::Error;

/// The channel for the reply to a call. It is closed once the caller has stopped waiting.
pub(super) struct Reply<T> {
    sender: oneshot::Sender<Result<T, Error>>,
    /// The runtime on which the call was made.
    runtime: Handle,
}

/// Whether a group was written, or why not.
pub(super) type Written = Result<(), Arc<dyn StdError + Send + Sync>>;

/// A reply that waits until its group is written.
pub(super) struct DeferredReply {
    send: Box<dyn FnOnce(Written) + Send>,
    runtime: Handle,
}

impl<T: Send + 'static> Reply<T> {
    /// Makes the channel for the reply to a call that this runtime makes.
    pub(super) fn channel() -> (Self, oneshot::Receiver<Result<T, Error>>) {
        let (sender, receiver) = oneshot::channel();
        (Self { sender, runtime: Handle::current() }, receiver)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Replies at once.
    pub(super) fn send(self, answer: Result<T, Error>) {
        // An error means that the caller has stopped waiting.
        let _unsent = self.sender.send(answer);
    }

    /// Makes a reply for later. It gets its answer only if the group is written and the caller
    /// still waits.
    pub(super) fn deferred(self, answer: impl FnOnce() -> T + Send + 'static) -> DeferredReply {
        let Self { sender, runtime } = self;
        let send = move |written: Written| {
            if !sender.is_closed() {
                let failed = |error| Error::Failed(Box::new(error));
                let _unsent = sender.send(written.map(|()| answer()).map_err(failed));
            }
        };
        DeferredReply { send: Box::new(send), runtime }
    }
}

impl DeferredReply {
    /// Sends the reply. An unwritten group fails its call.
    pub(super) fn send(self, written: Written) {
        (self.send)(written);
    }
}

/// Sends the replies that waited for a group.
pub(super) fn send_all(replies: Vec<DeferredReply>, written: &Written) {
    let mut of_runtimes: HashMap<_, Vec<DeferredReply>> = HashMap::new();
    for reply in replies {
        of_runtimes.entry(reply.runtime.id()).or_default().push(reply);
    }
    for replies in of_runtimes.into_values() {
        let written = written.clone();
        match replies.as_slice() {
            [first, _, ..] => {
                let runtime = first.runtime.clone();
                runtime.spawn(async move { send_each(replies, &written) });
            }
            // A task would cost a single reply more than it saves.
            [] | [_] => send_each(replies, &written),
        }
    }
}

fn send_each(replies: Vec<DeferredReply>, written: &Written) {
    for reply in replies {
        reply.send(written.clone());
    }
}
