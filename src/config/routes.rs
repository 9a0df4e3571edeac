//! `[routes]` and `[defaults]`. What a route takes from elsewhere is already in its table.

use std::sync::Arc;
use std::time::Duration;

use http::Uri;

use super::inherit::OF_A_ROUTE_ALONE;
use super::providers::Providers;
use super::reader::Reported;
use super::same_place::{Address, check_addresses, check_readings};
use super::sender::{Sender, sender};
use super::shared_settings::{RouteScope, Scope, shared_settings};
use super::steps::receivers;
use super::table::{A_TABLE, Table};
use super::url::{Host, PublicUrl};
use crate::idempotency::{Remember, StepsPolicy};
use crate::proxy::{PathPattern, RouteSettings};

/// What the other tables say that counts for every route.
pub(super) struct Surroundings {
    /// The memory for all bodies, in bytes, if it could be read.
    pub(super) bodies_max: Option<usize>,
    /// How senders see the proxy, unless a route says something else.
    pub(super) public_url: Result<Option<Uri>, Reported>,
    pub(super) providers: Providers,
}

/// Reads `[defaults]`, and gives the retention that they set.
pub(super) fn defaults(table: &mut Table<'_, '_>) -> Result<Duration, Reported> {
    for name in OF_A_ROUTE_ALONE {
        if table.take(name).is_some() {
            let hint = "move it into each `[routes.NAME]` that it is meant for";
            let key = table.key(name);
            table.reader.report(&key, "it in a route", "it for all of them", Some(hint));
        }
    }
    table.optional::<Option<PublicUrl>>("public_url");
    let shared = shared_settings(table, Scope::Defaults)?;
    Ok(shared.policy.durations.retention)
}

/// Reads `[routes]`.
pub(super) fn routes(
    table: &mut Table<'_, '_>,
    surroundings: &Surroundings,
) -> Result<Vec<RouteSettings>, Reported> {
    let form = table.form(A_TABLE);
    let routes = table.entries("routes", |reader, key, entry| {
        let named = reader.check_name(key, &entry.name);
        let route = reader.table(key, entry.value, form, |table| {
            let mut route = route(table, &entry.name, surroundings);
            route.settings = named.and(route.settings);
            Ok(route)
        });
        // `Ok`, since a route without settings must not stop the comparison of all addresses.
        Ok(route)
    });
    let Some(routes) = routes?.filter(|routes| !routes.is_empty()) else {
        let hint = "`[routes.orders]` with a `path` and an `upstream`";
        return Err(table.missing("routes", "at least one route", Some(hint)));
    };
    let addresses = routes.iter().filter_map(|route| route.as_ref().ok()?.address.as_ref().ok());
    let twins = check_addresses(table, addresses);
    let settings = routes.into_iter().map(|route| route?.settings);
    let settings: Vec<RouteSettings> = settings.collect::<Result<_, _>>()?;
    check_readings(table, &settings, &twins);
    Ok(settings)
}

/// What was read of a route. Its address stands apart, so that another mistake does not hide that
/// two routes have the same one.
struct RouteTable {
    address: Result<Address, Reported>,
    settings: Result<RouteSettings, Reported>,
}

fn route(table: &mut Table<'_, '_>, name: &str, surroundings: &Surroundings) -> RouteTable {
    let host = table.written::<Option<Host>>("host");
    let path = table.needed::<PathPattern>("path", Some("`path = \"/webhooks/orders\"`"));
    let address = host.and_then(|host| {
        let host = host.flatten().map(|host| host.0);
        Ok(Address { name: name.to_owned(), host, path: path? })
    });
    let settings = settings(table, surroundings, address.clone());
    RouteTable { address, settings }
}

fn settings(
    table: &mut Table<'_, '_>,
    surroundings: &Surroundings,
    address: Result<Address, Reported>,
) -> Result<RouteSettings, Reported> {
    let has_steps = table.has("steps");
    let receivers = receivers(table);
    let public_url = match table.written::<Option<PublicUrl>>("public_url") {
        Ok(Some(Some(url))) => Ok(Some(url.0)),
        Ok(Some(None) | None) => surroundings.public_url.clone(),
        Err(reported) => Err(reported),
    };
    let sender = sender(table, &surroundings.providers, &public_url);
    let scope = Scope::Route(RouteScope {
        has_steps,
        has_preset: sender.as_ref().is_ok_and(Sender::has_preset),
        bodies_max: surroundings.bodies_max,
    });
    let shared = shared_settings(table, scope);
    let address = address?;
    let receivers = receivers?;
    let sender = sender?;
    let shared = shared?;
    let steps = receivers.steps.map(|steps| steps.policy(shared.steps_at_once));
    let steps = match shared.policy.remember {
        // Nobody could say later which event is meant, so that no step waits for a decision.
        Remember::InFlight => steps.map(StepsPolicy::retried),
        Remember::Retention => steps,
    };
    Ok(RouteSettings {
        name: Arc::from(address.name),
        host: address.host,
        path: address.path,
        public_url: public_url?,
        methods: shared.methods,
        upstream: shared.connection.to(receivers.target),
        steps,
        mode: shared.mode,
        provider: sender.provider,
        secrets: sender.secrets,
        verify: sender.verify,
        tolerance: shared.tolerance,
        key: shared.key,
        fingerprint: shared.fingerprint,
        policy: shared.policy,
        in_flight_status: shared.in_flight_status,
        uncertain_status: shared.uncertain_status,
        retry_status: shared.retry_status,
        refusal_body: shared.refusal_body,
        request_bytes_max: shared.request_bytes_max,
        when_key_missing: shared.when_key_missing,
    })
}
