//! The writer's replies.
//!
//! To wake a task from another thread costs a lock and a system call. From its own runtime it costs
//! neither. So the writer pays once for each runtime, and a task there sends the replies of a group.

use std::collections::HashMap;
use std::error::Error as StdError;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::store::{Error, IfUnwritten};

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

    /// Makes a reply for later. `answer` is called only if the caller still waits, and the group
    /// was written or the reply stands all the same.
    pub(super) fn deferred(
        self,
        if_unwritten: IfUnwritten,
        answer: impl FnOnce() -> T + Send + 'static,
    ) -> DeferredReply {
        let Self { sender, runtime } = self;
        let send = move |written: Written| {
            if sender.is_closed() {
                return;
            }
            let _unsent = sender.send(match written {
                Err(error) if if_unwritten == IfUnwritten::Fails => {
                    Err(Error::Failed(Box::new(error)))
                }
                Ok(()) | Err(_) => Ok(answer()),
            });
        };
        DeferredReply { send: Box::new(send), runtime }
    }
}

impl DeferredReply {
    /// Sends the reply. If the group was not written, the call fails, unless its reply stands.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A copy that is turned away learns why, even if the note about it cannot be written.
    #[tokio::test]
    async fn after_a_failed_write_a_caller_gets_only_an_answer_that_stands() {
        for (if_unwritten, stands) in [(IfUnwritten::Stands, true), (IfUnwritten::Fails, false)] {
            for failed in [false, true] {
                let (reply, answer) = Reply::channel();
                let replies = vec![reply.deferred(if_unwritten, || "turned away")];
                let no_room = || Arc::new(std::io::Error::other("no room"));
                let written: Written = if failed { Err(no_room()) } else { Ok(()) };
                send_all(replies, &written);
                assert_eq!(
                    answer.await.unwrap().ok(),
                    (stands || !failed).then_some("turned away")
                );
            }
        }
    }
}
