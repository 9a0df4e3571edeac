//! An upstream that is Onceward itself: every request would come back until all places are taken.

use std::net::{IpAddr, SocketAddr};

use super::check::Check;
use super::problem::{Key, quoted};
use crate::proxy::RouteSettings;
use crate::upstream::Target;

/// Reports each upstream that names one of our own listeners.
pub(super) fn check(check: &mut Check<'_>, listeners: &[SocketAddr], routes: &[RouteSettings]) {
    for route in routes {
        let at = Key::of(&["routes", &route.name]);
        match &route.steps {
            None => report(check, &at.join("upstream"), listeners, &route.upstream.target),
            Some(steps) => {
                for (index, step) in steps.steps.iter().enumerate() {
                    let key = at.join("steps").join(index.to_string()).join("upstream");
                    report(check, &key, listeners, &step.upstream.target);
                }
            }
        }
    }
}

fn report(check: &mut Check<'_>, key: &Key, listeners: &[SocketAddr], target: &Target) {
    if listeners.iter().any(|listener| is_there(target, *listener)) {
        let expected = "the address of your application";
        let found = quoted(target.authority.as_str());
        let hint = "that is where Onceward itself listens: give the application another port";
        check.report(key, expected, found, Some(hint));
    }
}

/// By what is written alone: no name is resolved.
fn is_there(target: &Target, listener: SocketAddr) -> bool {
    let port = target.authority.port_u16().unwrap_or(target.scheme.default_port());
    let host = target.authority.host().trim_start_matches('[').trim_end_matches(']');
    let own = listener.ip().to_canonical();
    let same = match host.parse::<IpAddr>().map(|address| address.to_canonical()) {
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
