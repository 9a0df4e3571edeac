//! A provider as it is written, a preset's and an operator's own.

use std::collections::BTreeMap;
use std::time::Duration;

use http::Method;
use serde::Deserialize;

use super::leaf::{Count, List, ReplacingStatus, RetryStatus, Text, Wanted};
use super::quantity::Size;
use super::raw::{RawFingerprint, RawKey, RawOutcome, RawReplay};
use super::secret_shape::Lengths;
use super::word::{InFlightWord, UncertainWord};
use crate::provider::{Letters, signature};
use crate::proxy::{RefusalBody, WhenKeyMissing};
use crate::upstream::StatusRange;

/// What a sender is, and what a route takes from it that it does not say itself.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
#[expect(dead_code, reason = "a route reads its settings as its own; here only their form counts")]
pub(super) struct RawProvider {
    pub(super) title: Option<Text<String>>,
    pub(super) signature: Option<signature::Written>,
    pub(super) handshakes: Option<Vec<Option<RawHandshake>>>,
    pub(super) facts: Option<RawFacts>,
    methods: Option<List<Method>>,
    tolerance: Option<Text<Option<Duration>>>,
    retention: Option<Text<Duration>>,
    attempt_timeout: Option<Text<Duration>>,
    answer_within: Option<Text<Option<Duration>>>,
    when_in_flight: Option<Text<InFlightWord>>,
    waiters_max: Option<Count>,
    in_flight_status: Option<RetryStatus>,
    when_uncertain: Option<Text<UncertainWord>>,
    uncertain_status: Option<RetryStatus>,
    retry_status: Option<ReplacingStatus>,
    refusal_body: Option<Text<RefusalBody>>,
    attempts_max: Option<Count>,
    when_key_missing: Option<Text<WhenKeyMissing>>,
    request_bytes_max: Option<Text<Size>>,
    replay: Option<RawReplay>,
    key: Option<RawKey>,
    fingerprint: Option<RawFingerprint>,
    outcome: Option<RawOutcome>,
}

impl RawProvider {
    /// What is no setting of a route.
    pub(super) const OF_THE_SENDER: [&str; 4] = ["title", "signature", "handshakes", "facts"];
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawHandshake {
    pub(super) name: Option<Text<String>>,
    pub(super) method: Option<Text<Method>>,
    pub(super) header: Option<BTreeMap<String, Option<Wanted>>>,
    pub(super) query: Option<BTreeMap<String, Option<Wanted>>>,
    pub(super) json: Option<BTreeMap<String, Option<Wanted>>>,
    pub(super) form: Option<BTreeMap<String, Option<Wanted>>>,
    pub(super) empty_body: Option<bool>,
    pub(super) whole_body: Option<bool>,
    pub(super) signed: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawFacts {
    pub(super) success: Option<Text<String>>,
    pub(super) patience: Option<Text<Duration>>,
    pub(super) on_failure: Option<Text<String>>,
    pub(super) retry_window: Option<Text<Duration>>,
    pub(super) signed_anew: Option<bool>,
    pub(super) retried: Option<List<StatusRange>>,
    pub(super) not_retried: Option<List<StatusRange>>,
    #[serde(rename = "final")]
    pub(super) final_statuses: Option<List<StatusRange>>,
    pub(super) resend: Option<Text<String>>,
    pub(super) resend_window: Option<Text<Duration>>,
    pub(super) disabled_after: Option<Text<String>>,
    pub(super) largest_event: Option<Text<Size>>,
    pub(super) batch: Option<Text<String>>,
    pub(super) secret: Option<Text<String>>,
    pub(super) secret_prefix: Option<List<String>>,
    pub(super) secret_length: Option<Text<Lengths>>,
    pub(super) secret_characters: Option<Text<Letters>>,
    pub(super) not_the_event: Option<BTreeMap<String, Option<Text<String>>>>,
    pub(super) notes: Option<List<String>>,
    pub(super) unconfirmed: Option<List<String>>,
}
