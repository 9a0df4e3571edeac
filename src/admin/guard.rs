//! Decides who may call: whoever has the token, and no web page in the operator's browser.
//!
//! Without a token the listener is on loopback only. That keeps out other machines but not the
//! operator's browser, which runs pages of strangers on the same machine. Two checks keep those
//! out: a call that changes something must not come from another site, and `Host` must name this
//! machine.

use std::net::IpAddr;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Version, header};
use http_body::Body as _;

use super::control::Admin;
use super::failures::Denied;
use super::problem::Problem;
use crate::listener::Peer;
use crate::secret::Secret;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Lets a call through, or answers it with a problem.
pub(super) async fn check(State(admin): State<Admin>, request: Request, next: Next) -> Response {
    let may_be_left_unread =
        !request.body().is_end_stream() && request.version() <= Version::HTTP_11;
    let mut response = match check_call(&admin, &request) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    let success = response.status().is_success();
    let headers = response.headers_mut();
    // Whoever has refused a call has not read its body. On a kept connection the rest of the body
    // would be read as the next request (RFC 9112, section 9.3).
    if may_be_left_unread && !success {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    // Keys, paths and reasons are written by strangers, so no browser may guess that an answer is
    // HTML; and every answer is out of date a moment later.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

fn check_call(admin: &Admin, request: &Request) -> Result<(), Problem> {
    if !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS)
        && !is_of_this_site(request)
    {
        return Err(Problem::CrossSite);
    }
    match &admin.0.token {
        Some(token) => check_token(admin, token, request),
        None if names_this_machine(request) => Ok(()),
        None => Err(Problem::UnknownHost),
    }
}

fn check_token(admin: &Admin, token: &Secret, request: &Request) -> Result<(), Problem> {
    // A call without credentials is no guess at the token, so it is not counted.
    let Some(given) = request.headers().get(header::AUTHORIZATION) else {
        return Err(Problem::Unauthorized);
    };
    // The right token is accepted however many wrong ones came before it: see `failures.rs`.
    if bearer(given.as_bytes()).is_some_and(|given| token.is(given)) {
        return Ok(());
    }
    let peer = request.extensions().get::<Peer>().map(|Peer(peer)| *peer);
    Err(match admin.0.failures.wrong(peer) {
        Denied::Wrong => {
            let peer = peer.map(tracing::field::display);
            tracing::info!(peer, "refused a call to the control plane: its token is wrong");
            Problem::Unauthorized
        }
        Denied::TooMany(wait) => Problem::TooManyFailures(wait),
    })
}

/// The token in `Bearer TOKEN`. The case of the scheme does not count (RFC 9110, section 11.1).
fn bearer(credentials: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = credentials.split_at_checked(b"Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then_some(token)
}

/// Whether the request does not come from a page of another site in the operator's browser.
///
/// A browser says with `Sec-Fetch-Site` or `Origin` which site a request comes from, and a page
/// cannot change that: both are forbidden request headers (Fetch Standard). Clients that are no
/// browsers send neither.
fn is_of_this_site(request: &Request) -> bool {
    let headers = request.headers();
    if headers.contains_key(SEC_FETCH_SITE) {
        let ours = |value: &HeaderValue| matches!(value.as_bytes(), b"same-origin" | b"none");
        return all(headers, &SEC_FETCH_SITE, ours);
    }
    // Browsers that do not know `Sec-Fetch-Site` send `Origin` with every request that no form
    // could make, and a form cannot send JSON: see `body.rs`.
    let host = request.uri().authority().map(|host| host.as_str().as_bytes());
    let host = host.or_else(|| headers.get(header::HOST).map(HeaderValue::as_bytes));
    let ours = |origin: &HeaderValue| host.is_some_and(|host| is_origin(origin.as_bytes(), host));
    all(headers, &header::ORIGIN, ours)
}

fn is_origin(origin: &[u8], host: &[u8]) -> bool {
    let of_scheme = [&b"http://"[..], b"https://"].into_iter();
    of_scheme
        .filter_map(|scheme| origin.strip_prefix(scheme))
        .any(|found| found.eq_ignore_ascii_case(host))
}

/// Whether the request names this machine by an address or by `localhost`.
///
/// A stranger can point a name of their own at 127.0.0.1 after their page has loaded (DNS
/// rebinding). The browser then takes this listener for the page's own site and lets the page read
/// every answer. An address and `localhost` are the names that no stranger controls.
fn names_this_machine(request: &Request) -> bool {
    let named = |value: &HeaderValue| {
        Authority::try_from(value.as_bytes()).is_ok_and(|host| is_this_machine(host.host()))
    };
    let authority = request.uri().authority();
    authority.is_none_or(|host| is_this_machine(host.host()))
        && all(request.headers(), &header::HOST, named)
}

fn is_this_machine(host: &str) -> bool {
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let name = host.to_ascii_lowercase();
    address.parse::<IpAddr>().is_ok() || name == "localhost" || name.ends_with(".localhost")
}

fn all(headers: &HeaderMap, name: &HeaderName, holds: impl Fn(&HeaderValue) -> bool) -> bool {
    headers.get_all(name).iter().all(holds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(headers: &[(&str, &str)]) -> Request {
        let mut request = http::Request::post("/api/operations/resolve");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(axum::body::Body::empty()).unwrap()
    }

    #[test]
    fn only_names_that_nobody_else_can_give_are_this_machine() {
        for host in
            ["127.0.0.1", "127.0.0.1:8081", "[::1]:8081", "10.0.0.7", "localhost:1", "a.LOCALHOST"]
        {
            assert!(names_this_machine(&request(&[("host", host)])), "{host}");
        }
        for host in
            ["evil.example", "127.0.0.1.evil.example:8081", "localhost.evil.example", "", "[::1"]
        {
            assert!(!names_this_machine(&request(&[("host", host)])), "{host}");
        }
        assert!(!names_this_machine(&request(&[("host", "localhost"), ("host", "evil.example")])));
        assert!(names_this_machine(&request(&[])), "no browser");
    }

    #[test]
    fn what_a_page_of_another_site_sends_is_told_from_the_rest() {
        let host = ("host", "127.0.0.1:8081");
        for ours in [
            &[host][..],
            &[host, ("origin", "http://127.0.0.1:8081")],
            &[host, ("origin", "https://127.0.0.1:8081")],
            &[host, ("origin", "https://behind.a.proxy"), ("sec-fetch-site", "same-origin")],
            &[host, ("sec-fetch-site", "none")],
        ] {
            assert!(is_of_this_site(&request(ours)), "{ours:?}");
        }
        for theirs in [
            ("origin", "http://127.0.0.1:3000"),
            ("origin", "http://evil.example"),
            ("origin", "null"),
            ("origin", "127.0.0.1:8081"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ] {
            assert!(!is_of_this_site(&request(&[host, theirs])), "{theirs:?}");
        }
        assert!(!is_of_this_site(&request(&[("origin", "http://")])));
        let both = [host, ("origin", "http://127.0.0.1:8081"), ("sec-fetch-site", "cross-site")];
        assert!(!is_of_this_site(&request(&both)));
        let twice = [host, ("sec-fetch-site", "same-origin"), ("sec-fetch-site", "cross-site")];
        assert!(!is_of_this_site(&request(&twice)));
    }
}
