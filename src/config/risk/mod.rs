//! What `check` finds in a configuration that can be read.
//!
//! A risk is allowed, but an operator should have decided it. A note is worth knowing, and nothing
//! has to be done about it. The lists below name every rule in the order in which its finding is
//! printed. Each rule has the name of its code, and each file holds one kind of advice.

mod captured;
mod finding;
mod handshake;
mod key;
mod located;
mod lookup;
mod process;
mod proposal;
mod secret;
mod sender;
mod signature;
mod timing;

pub use captured::captured;
pub use finding::Finding;
pub(super) use secret::misshapen;

use finding::ExaminedRoute;

use super::settings::Config;

/// A rule about one route.
type Rule = fn(&ExaminedRoute<'_>) -> Option<Finding>;

/// The risks of a route, except those of single look-ups.
static ROUTE_RISKS: [Rule; 23] = [
    timing::wait_without_limit,
    timing::unfit_lease,
    timing::answer_after_attempt,
    timing::hold_below_attempt,
    process::forwards_without_store,
    key::forwards_without_key,
    key::event_without_type,
    signature::unchecked_by_default,
    signature::secret_of_a_simulator,
    key::key_never_found,
    handshake::handshake_open,
    signature::signed_without_separator,
    handshake::handshake_by_header,
    sender::retention_below_retries,
    sender::answer_after_patience,
    sender::in_flight_status_not_retried,
    sender::uncertain_status_not_retried,
    sender::final_statuses,
    sender::refusals_count_as_failures,
    sender::event_too_large,
    key::key_not_the_event,
    key::events_shared,
    sender::tolerance_below_retries,
];

/// The notes of a route.
static ROUTE_NOTES: [Rule; 10] = [
    signature::observing,
    signature::unchecked_by_choice,
    signature::methods_unverified,
    signature::sender_does_not_sign,
    signature::captured_request,
    key::nothing_remembered,
    key::events_without_key,
    sender::retention_below_resends,
    sender::sender_never_retries,
    sender::facts_unconfirmed,
];

/// All risks of a configuration.
pub(super) fn risks(config: &Config) -> Vec<Finding> {
    let mut risks = process::risks(config);
    for route in &config.routes {
        let examined = ExaminedRoute::new(config, route);
        // A route that only passes requests on has no operations, no keys and no signature check,
        // so that none of the rules is about it.
        if !examined.is_pass() {
            risks.extend(ROUTE_RISKS.iter().filter_map(|rule| rule(&examined)));
            risks.extend(lookup::risks(&examined));
        }
    }
    risks
}

/// All notes of a configuration.
pub(super) fn notes(config: &Config) -> Vec<Finding> {
    let notes = |route| {
        let examined = ExaminedRoute::new(config, route);
        ROUTE_NOTES.iter().filter_map(move |rule| rule(&examined))
    };
    config.routes.iter().flat_map(notes).collect()
}
