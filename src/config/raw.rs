//! The configuration as it is written.
//!
//! No `flatten`, no untagged or tagged enums: with them serde loses the place of a mistake. Every
//! field may be missing, so that reading can go on behind a mistake and find the next one.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderName, Method};
use ipnet::IpNet;
use serde::Deserialize;

use super::leaf::{Count, List, Portion, ReplacingStatus, RetryStatus, Text};
use super::lookup::RawLookup;
use super::quantity::Size;
use super::raw_provider::RawProvider;
use super::steps::RawSteps;
use super::stores::{RawPostgres, RawRedis};
use super::url::{Host, PublicUrl};
use super::value::{AddedHeader, Over};
use super::word::{InFlightWord, UncertainWord};
use crate::idempotency::{Reference, Remember, WhenStoreFails};
use crate::json::Pointer;
use crate::proxy::{Mode, PathPattern, RefusalBody, Selector, WhenKeyMissing};
use crate::store::embedded::Durability;
use crate::upstream::{StatusRange, Target};

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, expecting = "tables such as `[server]`")]
pub(super) struct Raw {
    pub(super) server: Option<RawServer>,
    pub(super) admin: Option<RawAdmin>,
    pub(super) store: Option<RawStore>,
    pub(super) defaults: Option<RawRoute>,
    pub(super) providers: Option<BTreeMap<String, Option<RawProvider>>>,
    pub(super) routes: Option<BTreeMap<String, Option<RawRoute>>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawServer {
    pub(super) listen: Option<Text<SocketAddr>>,
    pub(super) public_url: Option<Text<Option<PublicUrl>>>,
    pub(super) trusted_proxies: Option<List<IpNet>>,
    pub(super) drain_delay: Option<Text<Duration>>,
    pub(super) shutdown_timeout: Option<Text<Duration>>,
    pub(super) limits: Option<RawLimits>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawLimits {
    pub(super) connections_max: Option<Count>,
    pub(super) requests_in_flight_max: Option<Count>,
    pub(super) bodies_pending_max: Option<Count>,
    pub(super) per_peer_max: Option<Portion>,
    pub(super) buffered_bytes_max: Option<Text<Size>>,
    pub(super) header_bytes_max: Option<Text<Size>>,
    pub(super) header_lines_max: Option<Count>,
    pub(super) answer_header_bytes_max: Option<Text<Size>>,
    pub(super) answer_header_lines_max: Option<Count>,
    pub(super) header_timeout: Option<Text<Duration>>,
    pub(super) body_timeout: Option<Text<Duration>>,
    pub(super) body_rate_min: Option<Text<Size>>,
    pub(super) idle_timeout: Option<Text<Duration>>,
    pub(super) write_timeout: Option<Text<Duration>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawAdmin {
    pub(super) listen: Option<Text<SocketAddr>>,
    pub(super) token: Option<RawSecret>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "`{ env = \"NAME\" }` or `{ file = \"path\" }`")]
pub(super) struct RawSecret {
    pub(super) env: Option<Text<String>>,
    pub(super) file: Option<Text<PathBuf>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as `[store.embedded]`")]
pub(super) struct RawStore {
    pub(super) embedded: Option<RawEmbedded>,
    pub(super) redis: Option<RawRedis>,
    pub(super) postgres: Option<RawPostgres>,
    pub(super) memory: Option<RawMemory>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawEmbedded {
    pub(super) path: Option<Text<PathBuf>>,
    pub(super) durability: Option<Text<Durability>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an empty table")]
pub(super) struct RawMemory {}

/// A route, and `[defaults]`, which may not have the first six.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawRoute {
    pub(super) host: Option<Text<Option<Host>>>,
    pub(super) path: Option<Text<PathPattern>>,
    pub(super) upstream: Option<Text<Target>>,
    pub(super) steps: Option<RawSteps>,
    pub(super) steps_at_once: Option<bool>,
    pub(super) answer_from: Option<Text<String>>,
    pub(super) provider: Option<Text<String>>,
    pub(super) secrets: Option<Vec<Option<RawSecret>>>,
    pub(super) verify: Option<bool>,
    pub(super) tolerance: Option<Text<Option<Duration>>>,
    pub(super) mode: Option<Text<Mode>>,
    pub(super) public_url: Option<Text<Option<PublicUrl>>>,
    pub(super) methods: Option<List<Method>>,
    pub(super) retention: Option<Text<Duration>>,
    pub(super) hold_for: Option<Text<Duration>>,
    pub(super) lease: Option<Text<Duration>>,
    pub(super) attempt_timeout: Option<Text<Duration>>,
    pub(super) answer_within: Option<Text<Option<Duration>>>,
    pub(super) when_in_flight: Option<Text<InFlightWord>>,
    pub(super) waiters_max: Option<Count>,
    pub(super) in_flight_status: Option<RetryStatus>,
    pub(super) when_uncertain: Option<Text<UncertainWord>>,
    pub(super) uncertain_status: Option<RetryStatus>,
    pub(super) retry_status: Option<ReplacingStatus>,
    pub(super) refusal_body: Option<Text<RefusalBody>>,
    pub(super) attempts_max: Option<Count>,
    pub(super) when_key_missing: Option<Text<WhenKeyMissing>>,
    pub(super) when_store_fails: Option<Text<WhenStoreFails>>,
    pub(super) request_bytes_max: Option<Text<Size>>,
    pub(super) in_flight_max: Option<Count>,
    pub(super) connect_timeout: Option<Text<Duration>>,
    pub(super) keepalive: Option<Text<Duration>>,
    pub(super) keepalive_max: Option<Text<Duration>>,
    pub(super) preserve_host: Option<bool>,
    pub(super) forward_key: Option<Text<Option<AddedHeader>>>,
    pub(super) replay: Option<RawReplay>,
    pub(super) key: Option<RawKey>,
    pub(super) fingerprint: Option<RawFingerprint>,
    pub(super) outcome: Option<RawOutcome>,
    pub(super) lookup: Option<RawLookup>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawReplay {
    pub(super) body_bytes_max: Option<Text<Size>>,
    pub(super) remember: Option<Text<Remember>>,
    pub(super) drop_headers: Option<List<HeaderName>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawKey {
    pub(super) header: Option<List<HeaderName>>,
    pub(super) event: Option<RawEvent>,
    pub(super) scope: Option<List<Selector>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as `{ id = \"json:/id\" }`")]
pub(super) struct RawEvent {
    pub(super) source: Option<Text<String>>,
    pub(super) id: Option<Text<Selector>>,
    #[serde(rename = "type")]
    pub(super) kind: Option<Text<Selector>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawFingerprint {
    pub(super) over: Option<List<Over>>,
    pub(super) ignore: Option<List<Pointer>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RawOutcome {
    pub(super) succeeded: Option<List<StatusRange>>,
    pub(super) uncertain: Option<List<StatusRange>>,
    pub(super) reference: Option<Text<Reference>>,
}
