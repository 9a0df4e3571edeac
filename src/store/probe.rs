//! Tests a store with a throw-away operation.

use std::sync::Arc;
use std::time::Duration;

use super::{Error, Store, StoreExt as _, random};
use crate::operation::state::{
    ClaimReply, ClaimRequest, Decided, Ending, Forgetting, Grant, Renewal, Renewed, Settled,
    Settlement,
};
use crate::operation::{
    ClaimId, Durations, FingerprintDigest, Key, KeyKind, Operation, OperationId, Reason,
    RequestMode, Subject,
};

/// The route of throw-away operations. The name of a real route has no colon.
const ROUTE: &str = "onceward:probe";

/// The durations of a throw-away operation. They are short, so that the operation expires soon if a
/// probe stops half-way.
const DURATIONS: Durations = Durations {
    lease: Duration::from_secs(10),
    attempt_timeout: Duration::from_secs(10),
    retention: Duration::from_secs(10),
    hold_for: Duration::ZERO,
};

/// Claims, renews, settles and forgets a throw-away operation.
pub(super) async fn probe(store: &dyn Store) -> Result<(), Error> {
    probe_as(store, random()?).await
}

/// Does the same as [`probe`], with an operation of this id.
pub(super) async fn probe_as(store: &dyn Store, id: [u8; 16]) -> Result<(), Error> {
    let subject = Arc::new(throw_away(id));
    let claim_id = ClaimId::from_random(random()?);
    let operation = subject.id;
    let holder = Arc::<str>::from("probe");
    let request = ClaimRequest::new(Arc::clone(&subject), claim_id, Arc::clone(&holder), DURATIONS);
    let ClaimReply::Granted(Grant { attempt, .. }) = store.apply(request).await? else {
        return Err(unsound("claim"));
    };
    let renewal = Renewal { operation, claim_id, lease: DURATIONS.lease };
    if store.apply(renewal).await? != Renewed::Renewed {
        return Err(unsound("renewal"));
    }
    // This is the only true ending, because nothing was sent to an upstream.
    let ending = Ending::NeverSent { reason: Reason::NothingWritten };
    let settlement =
        Settlement { subject, claim_id, attempt, holder, durations: DURATIONS, ending };
    if !matches!(store.apply(settlement).await?, Settled::Recorded { .. }) {
        return Err(unsound("settle"));
    }
    let by = "probe".to_owned();
    let reason = "a throw-away operation".to_owned();
    match store.apply(Forgetting { operation, by, reason }).await? {
        Decided::Done => Ok(()),
        Decided::Unknown | Decided::Refused => Err(unsound("forget")),
    }
}

/// Whether a probe made this operation.
pub(super) fn is_throw_away(operation: &Operation) -> bool {
    &*operation.subject.route == ROUTE
}

/// A request that no sender sends.
fn throw_away(bits: [u8; 16]) -> Subject {
    Subject {
        id: OperationId::from_bytes(bits),
        route: ROUTE.into(),
        method: "PROBE".to_owned(),
        path: "/".to_owned(),
        key: Key { from: KeyKind::Header, parts: vec![hex::encode(bits)] },
        fingerprint: FingerprintDigest::under(ROUTE).finish(),
        mode: RequestMode::Enforce,
    }
}

/// The error of a store whose reply to this call of the probe breaks the contract.
fn unsound(call: &str) -> Error {
    Error::Failed(format!("the store did not answer the {call} of a probe as it promises").into())
}
