//! Records an outcome even if the store fails: the call is repeated, and the sender is answered in
//! time.

use std::pin::pin;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::sleep;

use super::lease::OwnLease;
use crate::store;
use crate::telemetry::chain;

/// The pause after the first failure. It doubles with each further failure.
const PAUSE_FIRST: Duration = Duration::from_millis(50);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Records an outcome with a call that is repeated until the store has replied. If the lease ends
/// first and the store has failed, `answer_early` is called once, so that the sender gets its
/// answer. The call is repeated after that too.
///
/// # Errors
/// The record cannot be read, and the lease has run out.
pub(super) async fn insist<T, F: Future<Output = Result<T, store::Error>>>(
    lease: &OwnLease,
    call: impl FnMut() -> F,
    answer_early: impl FnOnce(),
) -> Result<T, store::Error> {
    let failed = Notify::new();
    let mut recording = pin!(repeat(lease, &failed, call));
    let out_of_time = async {
        lease.stop_renewing_at_its_end().await;
        // The store may still reply to a call under way, so the sender waits until a call has
        // failed.
        failed.notified().await;
    };
    tokio::select! {
        biased;
        recorded = &mut recording => recorded,
        () = out_of_time => {
            answer_early();
            recording.await
        }
    }
}

/// Repeats a call until the store has replied. Each failure notifies `failed`.
async fn repeat<T, F: Future<Output = Result<T, store::Error>>>(
    lease: &OwnLease,
    failed: &Notify,
    mut call: impl FnMut() -> F,
) -> Result<T, store::Error> {
    let mut pause = PAUSE_FIRST;
    loop {
        let error = match call().await {
            Ok(reply) => return Ok(reply),
            Err(error) => error,
        };
        failed.notify_one();
        // An unreadable record does not become readable by itself, and the claim has a place of its
        // route for as long as this goes on.
        if matches!(error, store::Error::Unreadable(..)) && lease.left().is_zero() {
            return Err(error);
        }
        tracing::warn!(
            operation.id = %lease.operation(),
            error = %chain(&error),
            "an outcome is not recorded yet"
        );
        sleep(pause).await;
        pause = PAUSE_MAX.min(pause * 2);
    }
}
