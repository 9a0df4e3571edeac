//! Takes one look at the markers at a time.
//!
//! Replies may overtake each other. If two looks ran at the same time, an older state of the markers
//! could be observed after a newer one, and would be taken for another loss.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Mutex;

use crate::store::Error;

/// The looks of this process.
#[derive(Debug)]
pub(super) struct Looks {
    /// The number of looks that have begun.
    begun: AtomicU64,
    /// The latest look that has ended. Whoever looks holds this lock.
    ended: Mutex<Look>,
}

#[derive(Debug)]
struct Look {
    number: u64,
    result: Result<(), Arc<Error>>,
}

impl Looks {
    pub(super) fn new() -> Self {
        Self { begun: AtomicU64::new(0), ended: Mutex::new(Look { number: 0, result: Ok(()) }) }
    }

    /// Returns the result of a look that began after this call: of another call's look, or of this
    /// one. The look of an earlier call may have read the markers too soon for this call.
    ///
    /// Cancel safe: a look that is given up counts for nobody.
    pub(super) async fn one(
        &self,
        look: impl Future<Output = Result<(), Error>>,
    ) -> Result<(), Error> {
        let begun_before = self.begun.load(Ordering::SeqCst);
        let mut ended = self.ended.lock().await;
        if ended.number <= begun_before {
            let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
            let result = look.await.map_err(Arc::new);
            *ended = Look { number, result };
        }
        ended.result.as_ref().copied().map_err(Error::copy_of)
    }
}
