//! Advice about handshakes that an event could be sent as.
//!
//! A handshake is forwarded without a key, and one that is not signed without a check. So nothing
//! but the handshake may match its description.

use http::HeaderName;

use super::finding::{ExaminedRoute, Finding};
use crate::provider::{Content, Handshake};

/// No signature covers the header, so that anybody can send an event under it.
pub(super) fn handshake_by_header(examined: &ExaminedRoute<'_>) -> Option<Finding> {
    let sender = examined.sender?;
    let covered =
        |name: &HeaderName| sender.signature.as_ref().is_some_and(|it| it.covers_header(name));
    let by_header = |handshake: &&Handshake| {
        let open = handshake.content == Content::Any && !handshake.method.is_safe();
        open && handshake.query.is_empty()
            && !handshake.headers.iter().any(|(name, _)| covered(name))
    };
    let handshake = sender.handshakes.iter().find(by_header)?;
    Some(examined.finding(
        "handshake-by-header",
        "provider",
        format!(
            "an event under the header of the handshake `{}` is forwarded without a key, as often \
             as it comes",
            handshake.name
        ),
        "describe what only its body has: `json`, `form`, `empty_body`",
    ))
}

/// An unsigned handshake whose body may hold more than is described is a way around the signature.
pub(super) fn handshake_open(examined: &ExaminedRoute<'_>) -> Option<Finding> {
    let sender = examined.sender.filter(|_| examined.verifies())?;
    let is_open = |handshake: &&Handshake| {
        let any_event = match &handshake.content {
            // A safe request asks for nothing to be done (RFC 9110, section 9.2.1), so that it is
            // no event.
            Content::Any => !handshake.method.is_safe(),
            Content::Json(json) => !json.whole,
            // A form with another field is not the handshake.
            Content::Empty | Content::Form(_) => false,
        };
        any_event && !handshake.signed
    };
    let handshake = sender.handshakes.iter().find(is_open)?;
    Some(examined.finding(
        "handshake-open",
        "provider",
        format!(
            "what looks like the handshake `{}` is forwarded unverified, whatever else is in it",
            handshake.name
        ),
        "`signed = true`, or describe all of its body: `whole_body`, `form`, `empty_body`",
    ))
}
