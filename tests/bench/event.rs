//! One event with a key of its own, as the proxy hands it to a store.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use onceward::operation::state::{ClaimReply, ClaimRequest, Ending, Grant, Settlement};
use onceward::operation::{
    AnswerBody, ClaimId, Durations, FingerprintDigest, Key, KeyKind, OperationId, OperationIdParts,
    RequestMode, StoredAnswer, Subject,
};
use onceward::store::{Store, StoreExt as _};

/// Claims an operation and settles it with an answer of 300 bytes.
pub(crate) async fn remember(store: &dyn Store, key: &str) {
    let request = request(key);
    let ClaimReply::Granted(Grant { attempt, .. }) = store.apply(request.clone()).await.unwrap()
    else {
        unreachable!("every key is new");
    };
    let body = format!("{key:#>300}").into();
    store.apply(settlement(request, attempt, success(body))).await.unwrap();
}

pub(crate) fn request(key: &str) -> ClaimRequest {
    let id = OperationId::derive(OperationIdParts {
        route: "orders",
        method: "POST",
        path: None,
        scope: &[],
        from: KeyKind::Header,
        key: &[&[key.into()]],
    });
    let subject = Subject {
        id,
        route: "orders".into(),
        method: "POST".to_owned(),
        path: "/webhooks/orders".to_owned(),
        key: Key { from: KeyKind::Header, parts: vec![key.to_owned()] },
        fingerprint: FingerprintDigest::under("body").finish(),
        mode: RequestMode::Enforce,
    };
    let durations = Durations {
        lease: Duration::from_secs(15),
        attempt_timeout: Duration::from_mins(1),
        retention: Duration::from_hours(24),
        hold_for: Duration::from_hours(24),
    };
    let claim_id = ClaimId::from_random(*id.as_bytes());
    ClaimRequest::new(Arc::new(subject), claim_id, "bench".into(), durations)
}

/// The upstream answered 200 with this body.
pub(crate) fn success(body: Bytes) -> Ending {
    let answer =
        StoredAnswer { status: StatusCode::OK, headers: Vec::new(), body: AnswerBody::Kept(body) };
    Ending::Succeeded { answer: Arc::new(answer), reference: None }
}

pub(crate) fn settlement(request: ClaimRequest, attempt: u32, ending: Ending) -> Settlement {
    let ClaimRequest { subject, claim_id, holder, durations, .. } = request;
    Settlement { subject, claim_id, attempt, holder, durations, ending }
}
