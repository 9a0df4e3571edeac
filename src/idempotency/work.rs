//! The work on a request, which no sender owns: it goes on if its sender hangs up.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

use super::disposition::Disposition;
use super::executor::Executor;

/// The work on one request. As a future it ends with the answer to the sender, or with none if the
/// work has panicked.
///
/// The work runs in the task of its sender, because most work has ended when the sender gets its
/// answer, and a task of its own would cost each request a change of tasks. If the sender gets its
/// answer earlier or hangs up, this is dropped, and the rest of the work goes on in a task of its
/// own.
#[must_use = "the work begins when it is first polled"]
pub(super) struct Work {
    /// None once the work has ended.
    rest: Option<BoxFuture<'static, ()>>,
    answer: oneshot::Receiver<Disposition>,
    /// The runtime for the rest of the work. Whoever drops this may do so outside of a runtime.
    runtime: Handle,
}

impl Executor {
    /// Prepares the work on a request. `answer` receives the answer that the work sends.
    pub(super) fn work(
        &self,
        work: impl Future<Output = ()> + Send + 'static,
        answer: oneshot::Receiver<Disposition>,
    ) -> Work {
        // A panic must end this work only, and not the connection of its sender.
        let caught = AssertUnwindSafe(self.running.track_future(work)).catch_unwind();
        Work { rest: Some(caught.map(drop).boxed()), answer, runtime: Handle::current() }
    }
}

impl Future for Work {
    type Output = Option<Disposition>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(rest) = &mut self.rest
            && rest.as_mut().poll(cx).is_ready()
        {
            self.rest = None;
        }
        // Only the work sends the answer, so the channel need not wake this task.
        match self.answer.try_recv() {
            Ok(answer) => Poll::Ready(Some(answer)),
            Err(TryRecvError::Empty) => Poll::Pending,
            Err(TryRecvError::Closed) => Poll::Ready(None),
        }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if let Some(rest) = self.rest.take() {
            self.runtime.spawn(rest);
        }
    }
}
