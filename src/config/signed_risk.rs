//! What a sender of one's own signs in a way that leaves something open.

use super::problem::Key;
use super::risk::Risk;
use crate::provider::Provider;
use crate::proxy::RouteSettings;

/// One captured signature fits more than one request.
pub(super) fn divisible(at: &Key, route: &RouteSettings, sender: &Provider) -> Option<Risk> {
    let signature = sender.signature.as_ref().filter(|_| !route.secrets.is_empty())?;
    let parts = signature.divisible()?;
    let [first, second] = parts.map(|part| format!("`{part}`"));
    Some(Risk {
        code: "signed-without-separator",
        key: at.join("provider"),
        text: format!(
            "{first} and {second} are signed with nothing between them: who has captured one request \
             can move bytes from one to the other under its signature"
        ),
        hint: "name the text that the sender puts between them as `text:…`, or say \
               `body = \"json\"` where every body is a JSON object or array"
            .into(),
    })
}
