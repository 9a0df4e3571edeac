//! The settings that `[defaults]` and every route have in common. A provider has some of them.

use std::time::Duration;

use http::{HeaderName, Method, StatusCode};

use super::leaf::{Count, ReplacingStatus, RetryStatus};
use super::lookup::LookupUse;
use super::quantity::Size;
use super::reader::Reported;
use super::receiver::{ATTEMPT_MAX, Connection, ReceiverSettings, receiver};
use super::table::Table;
use super::value::FingerprintPart;
use crate::clock;
use crate::idempotency::{Policy, Remember, WhenStoreFails};
use crate::operation::Durations;
use crate::operation::state::IfUncertain;
use crate::proxy::{
    EventRule, FingerprintOver, FingerprintRule, KeyRule, Mode, RefusalBody, WhenKeyMissing,
};

/// The largest body. Each body is held in memory as a whole.
const BODY_MAX: Size = Size(1 << 30);

/// The heartbeat renews at a third of the lease. Below this limit it would do nothing else.
const LEASE_MIN: Duration = Duration::from_millis(300);
const LEASE_MAX: Duration = Duration::from_hours(1);

/// Whose settings are read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Scope {
    /// Those of all routes.
    Defaults,
    /// Those of the routes that name a provider.
    Provider,
    /// Those of one route.
    Route(RouteScope),
}

/// What decides which settings a route may have.
#[derive(Debug, Clone, Copy)]
pub(super) struct RouteScope {
    /// Whether the route has steps instead of one upstream.
    pub(super) has_steps: bool,
    /// Whether the sender has a preset.
    pub(super) has_preset: bool,
    /// The memory for all bodies, in bytes, if it could be read.
    pub(super) bodies_max: Option<usize>,
}

impl Scope {
    const fn has_steps(self) -> bool {
        matches!(self, Self::Route(RouteScope { has_steps: true, .. }))
    }
}

/// The settings of a route that `[defaults]` can have too.
pub(super) struct SharedSettings {
    pub(super) mode: Mode,
    pub(super) methods: Vec<Method>,
    pub(super) tolerance: Option<Duration>,
    pub(super) connection: Connection,
    pub(super) key: KeyRule,
    pub(super) fingerprint: FingerprintRule,
    pub(super) policy: Policy,
    pub(super) steps_at_once: bool,
    pub(super) in_flight_status: StatusCode,
    pub(super) uncertain_status: StatusCode,
    pub(super) retry_status: Option<StatusCode>,
    pub(super) refusal_body: RefusalBody,
    pub(super) request_bytes_max: usize,
    pub(super) when_key_missing: WhenKeyMissing,
}

/// Reads the settings that `[defaults]` and every route have in common.
pub(super) fn shared_settings(
    table: &mut Table<'_, '_>,
    scope: Scope,
) -> Result<SharedSettings, Reported> {
    let mode = table.setting("mode")?;
    let when_key_missing = table.setting("when_key_missing")?;
    // A request that is not deduplicated goes to one upstream, so that the other steps would miss
    // it.
    if scope.has_steps() && mode != Mode::Enforce {
        table.wrong("mode", "`enforce`, where an event has several receivers", "another");
    }
    if scope.has_steps() && when_key_missing == WhenKeyMissing::Forward {
        let expected = "`refuse` or `hash-body`, where an event has several receivers";
        table.wrong("when_key_missing", expected, "`forward`");
    }
    // A sender without a preset may give two events the same id. Its author may not know that.
    let untyped_events = !matches!(scope, Scope::Route(RouteScope { has_preset: true, .. }));
    // A route with steps leaves look-ups to them, and `[defaults]` to the routes, each of which may
    // have a URL of its own.
    let is_looked_up = matches!(scope, Scope::Route(RouteScope { has_steps: false, .. }));
    let lookup_use = if is_looked_up { LookupUse::Used } else { LookupUse::Unused };
    let receiver = receiver(table, lookup_use)?;
    Ok(SharedSettings {
        mode,
        methods: table.some_of("methods")?,
        tolerance: table.optional::<Option<Duration>>("tolerance").flatten(),
        connection: receiver.connection,
        key: table.section("key", key_rule)?,
        fingerprint: table.section("fingerprint", |it| fingerprint_rule(it, untyped_events))?,
        policy: policy(table, scope, receiver)?,
        steps_at_once: table.setting("steps_at_once")?,
        in_flight_status: table.setting::<RetryStatus>("in_flight_status")?.0,
        uncertain_status: table.setting::<RetryStatus>("uncertain_status")?.0,
        retry_status: table.optional::<ReplacingStatus>("retry_status").map(|status| status.0),
        refusal_body: table.setting("refusal_body")?,
        request_bytes_max: request_bytes_max(table, scope)?,
        when_key_missing,
    })
}

fn request_bytes_max(table: &mut Table<'_, '_>, scope: Scope) -> Result<usize, Reported> {
    let range = Size(1)..=BODY_MAX;
    let size = table.within("request_bytes_max", &range, "a size from `1B` to `1GiB`")?;
    if let Scope::Route(RouteScope { bodies_max: Some(all), .. }) = scope
        && size.0 > all
    {
        let expected = "at most `server.limits.buffered_bytes_max`";
        let found = "more, so that no such body could ever be read";
        let hint = "raise `buffered_bytes_max` in `[server.limits]`, or take less here";
        let key = table.key("request_bytes_max");
        table.reader.report(&key, expected, found, Some(hint));
    }
    Ok(size.0)
}

fn policy(
    table: &mut Table<'_, '_>,
    scope: Scope,
    receiver: ReceiverSettings,
) -> Result<Policy, Reported> {
    let ReceiverSettings { attempt_timeout, policy: mut receiver, .. } = receiver;
    let leases = LEASE_MIN..=LEASE_MAX;
    let lease = table.within("lease", &leases, "a duration from `300ms` to `1h`")?;
    let retention = table.above_zero("retention", clock::LONGEST)?;
    let hold_for = table.above_zero("hold_for", clock::LONGEST)?;
    let answer_within = table.optional_above_zero("answer_within", ATTEMPT_MAX);
    let waiters_max = table.setting::<Count>("waiters_max")?.as_usize();
    let if_in_flight = table.setting("when_in_flight")?;
    let when_store_fails = table.setting("when_store_fails")?;
    // Without a store nobody would know which steps an event has passed.
    if scope.has_steps() && when_store_fails == WhenStoreFails::Forward {
        let expected = "`refuse`, where an event has several receivers";
        table.wrong("when_store_fails", expected, "`forward`");
    }
    let in_flight_max = table.setting::<Count>("in_flight_max")?.as_usize();
    let Replay { body_bytes_max, remember, drop_headers } = table.section("replay", replay)?;
    if remember == Remember::InFlight {
        // Nobody could say later which event an operator or an upstream speaks of. The operation is
        // free as soon as its attempt must have ended.
        receiver.if_uncertain = IfUncertain::Retry { attempts_max: u32::MAX };
    }
    Ok(Policy {
        durations: Durations { lease, attempt_timeout, retention, hold_for },
        answer_within,
        if_in_flight,
        waiters_max,
        receiver,
        remember,
        when_store_fails,
        in_flight_max,
        body_bytes_max,
        drop_headers,
    })
}

struct Replay {
    body_bytes_max: usize,
    remember: Remember,
    drop_headers: Vec<HeaderName>,
}

fn replay(table: &mut Table<'_, '_>) -> Result<Replay, Reported> {
    let range = Size(0)..=BODY_MAX;
    Ok(Replay {
        body_bytes_max: table.within("body_bytes_max", &range, "a size of at most `1GiB`")?.0,
        remember: table.setting("remember")?,
        drop_headers: table.setting_list("drop_headers")?,
    })
}

fn key_rule(table: &mut Table<'_, '_>) -> Result<KeyRule, Reported> {
    Ok(KeyRule {
        headers: table.setting_list("header")?,
        event: table.section("event", event_rule)?,
        scope: table.setting_list("scope")?,
    })
}

fn event_rule(table: &mut Table<'_, '_>) -> Result<EventRule, Reported> {
    Ok(EventRule {
        // `[defaults]` have no source, since that of a route is its own name.
        source: table.optional("source").unwrap_or_default(),
        id: table.setting("id")?,
        kind: table.setting("type")?,
    })
}

fn fingerprint_rule(
    table: &mut Table<'_, '_>,
    untyped_events: bool,
) -> Result<FingerprintRule, Reported> {
    let parts = table.setting_list("over")?;
    let ignore = table.setting_list("ignore")?;
    let over = match parts.as_slice() {
        // `auto` chooses by the kind of the key, so that nothing can be added to it.
        [FingerprintPart::Auto] => FingerprintOver::Auto { untyped_events },
        [FingerprintPart::Body] => FingerprintOver::Body,
        parts => {
            let selector = |part: &FingerprintPart| match part {
                FingerprintPart::Selected(selector) => Some(selector.clone()),
                FingerprintPart::Auto | FingerprintPart::Body => None,
            };
            let selectors: Option<Vec<_>> = parts.iter().map(selector).collect();
            if selectors.is_none() {
                let expected = "`auto` or `body` alone, or selectors";
                table.wrong("over", expected, "one of them among others");
            }
            FingerprintOver::Parts(selectors.unwrap_or_default())
        }
    };
    Ok(FingerprintRule { over, ignore })
}
