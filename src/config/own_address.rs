//! An upstream that is Onceward itself: every request would come back until all places are taken.

use std::net::{IpAddr, SocketAddr};

use super::key::Key;
use super::reader::Reader;
use super::shown::quoted;
use crate::proxy::RouteSettings;
use crate::upstream::Target;

/// Reports each upstream that names one of the listeners of Onceward.
pub(super) fn check(reader: &mut Reader<'_>, listeners: &[SocketAddr], routes: &[RouteSettings]) {
    for route in routes {
        let at = Key::of(&["routes", &route.name]);
        match &route.steps {
            None => report(reader, &at.join("upstream"), listeners, &route.upstream.target),
            Some(steps) => {
                for (index, step) in steps.steps.iter().enumerate() {
                    let key = at.join("steps").join(index.to_string()).join("upstream");
                    report(reader, &key, listeners, &step.upstream.target);
                }
            }
        }
    }
}

fn report(reader: &mut Reader<'_>, key: &Key, listeners: &[SocketAddr], target: &Target) {
    if listeners.iter().any(|listener| is_there(target, *listener)) {
        let expected = "the address of your application";
        let found = quoted(target.authority.as_str());
        let hint = "that is where Onceward itself listens: give the application another port";
        reader.report(key, expected, found, Some(hint));
    }
}

/// Whether the target is the listener, as far as its text tells. No name is resolved, since the
/// answer may be another one at run time.
fn is_there(target: &Target, listener: SocketAddr) -> bool {
    let port = target.authority.port_u16().unwrap_or(target.scheme.default_port());
    let host = target.authority.host().trim_start_matches('[').trim_end_matches(']');
    let own = listener.ip().to_canonical();
    let same = match host.parse::<IpAddr>().map(|address| address.to_canonical()) {
        // A listener on 0.0.0.0 is reached at every address of the machine, and a connection to
        // 0.0.0.0 reaches the machine itself.
        Ok(address) => {
            address == own
                || own.is_unspecified() && address.is_loopback()
                || address.is_unspecified() && own.is_loopback()
        }
        Err(_) => {
            host.eq_ignore_ascii_case("localhost") && (own.is_loopback() || own.is_unspecified())
        }
    };
    same && port == listener.port() && port != 0
}
