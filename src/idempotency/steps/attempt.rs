//! An attempt at an event with several receivers.

use crate::idempotency::claim::Claim;
use crate::idempotency::executor::Context;
use crate::idempotency::receiver::Steps;
use crate::idempotency::request::KeyedRequest;

/// An attempt at an event with several receivers.
pub(in crate::idempotency) struct StepsAttempt<'a> {
    pub(in crate::idempotency) context: Context<'a>,
    pub(in crate::idempotency) steps: &'a Steps,
    pub(in crate::idempotency) claim: Claim,
    pub(in crate::idempotency) keyed: KeyedRequest,
}
