//! Refuses request heads that hyper accepts and that another HTTP server could read differently.
//!
//! A proxy before us or a server behind us may frame or route such a request in another way. A
//! request could then hide in the body of another one (request smuggling), or reach an upstream
//! that it must not reach. The guard repairs nothing, because an honest sender of webhooks never
//! sends such a head.

use http::header::{CONNECTION, CONTENT_LENGTH, EXPECT, HOST, TRANSFER_ENCODING};
use http::request::Parts;
use http::uri::{Authority, Scheme};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, Version};

use super::host::canonical_host;
use super::refusal::{Malformed, Refusal};

/// Headers that `Connection` must not name. A proxy removes the headers that are named there (RFC
/// 9110, 7.6.1), but these headers reach the upstream or decide what reaches it. Every route adds
/// the headers that it reads.
const END_TO_END: &[&str] = &[
    "authorization",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "date",
    "expect",
    "forwarded",
    "host",
    "idempotency-key",
    "transfer-encoding",
    "x-idempotency-key",
];

/// Beginnings of further headers that `Connection` must not name.
const END_TO_END_PREFIXES: &[&str] = &["onceward-", "x-forwarded-"];

/// The framing headers, spelled with an underscore. Servers that pass headers as CGI variables (RFC
/// 3875, 4.1.18) turn both spellings into one name.
const FRAMING_ALIASES: [HeaderName; 2] =
    [HeaderName::from_static("content_length"), HeaderName::from_static("transfer_encoding")];

/// Checks a request's head, and returns the host that it names. The route decides later which
/// methods it takes.
///
/// # Errors
///
/// [`Refusal::Malformed`] or [`Refusal::Expectation`].
pub(super) fn head(parts: &Parts) -> Result<Authority, Refusal> {
    let host = framing(&parts.headers, parts.version)
        .and_then(|()| target(&parts.method, &parts.uri))
        .and_then(|()| host(parts))
        .map_err(Refusal::Malformed)?;
    expectation(&parts.headers)?;
    Ok(host)
}

fn framing(headers: &HeaderMap, version: Version) -> Result<(), Malformed> {
    // An application behind a CGI gateway would take the alias for the length of the body.
    if FRAMING_ALIASES.iter().any(|alias| headers.contains_key(alias)) {
        return Err(Malformed::FramingAlias);
    }
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let Some(coding) = codings.next() else {
        return Ok(());
    };
    let chunked = coding.as_bytes().eq_ignore_ascii_case(b"chunked");
    // HTTP/1.0 has no transfer codings, and HTTP/2 forbids the header (RFC 9113, 8.2.2). A server
    // that knows only one of two codings would end the body elsewhere.
    if !chunked || codings.next().is_some() || version != Version::HTTP_11 {
        return Err(Malformed::TransferEncoding);
    }
    if headers.contains_key(CONTENT_LENGTH) {
        return Err(Malformed::TwoLengths);
    }
    Ok(())
}

fn target(method: &Method, uri: &Uri) -> Result<(), Malformed> {
    // The target of CONNECT is a host and port (RFC 9112, 3.2.3). No route takes that method.
    if method == Method::CONNECT {
        return Ok(());
    }
    if uri.scheme().is_some_and(|scheme| *scheme != Scheme::HTTP && *scheme != Scheme::HTTPS) {
        return Err(Malformed::TargetForm);
    }
    let path = uri.path();
    // `OPTIONS *` asks about the server as a whole (RFC 9112, 3.2.4).
    let asterisk = path == "*" && method == Method::OPTIONS;
    if !path.starts_with('/') && !asterisk {
        return Err(Malformed::TargetForm);
    }
    // The `http` crate accepts raw UTF-8, and a backslash, which some servers read as a slash.
    let query = uri.query().unwrap_or_default();
    let odd = |byte: u8| !byte.is_ascii_graphic() || byte == b'\\';
    if path.bytes().chain(query.bytes()).any(odd) {
        return Err(Malformed::TargetForm);
    }
    Ok(())
}

/// The host that a request names. Only an HTTP/1.0 request may name none. It is then served as a
/// request for `localhost`.
fn host(parts: &Parts) -> Result<Authority, Malformed> {
    let target = parts.uri.authority();
    if target.is_some_and(|target| !is_host(target)) {
        return Err(Malformed::HostInvalid);
    }
    let mut hosts = parts.headers.get_all(HOST).iter();
    let Some(value) = hosts.next() else {
        return match (target, parts.version) {
            (_, Version::HTTP_11) | (None, Version::HTTP_2) => Err(Malformed::HostMissing),
            // HTTP/2 names the host in `:authority` (RFC 9113, 8.3.1).
            (Some(target), _) => Ok(target.clone()),
            // HTTP/1.0 needs no host (RFC 9112, 3.2).
            (None, _) => Ok(Authority::from_static("localhost")),
        };
    };
    if hosts.next().is_some() {
        return Err(Malformed::HostRepeated);
    }
    let host = Authority::try_from(value.as_bytes()).map_err(|_| Malformed::HostInvalid)?;
    if !is_host(&host) {
        return Err(Malformed::HostInvalid);
    }
    match target {
        Some(target) if !agree(target, &host, parts.uri.scheme()) => Err(Malformed::HostDisagrees),
        Some(target) => Ok(target.clone()),
        None => Ok(host),
    }
}

/// Whether an authority is a host, with or without a port. `Authority` also accepts a user name,
/// any text as port, characters that no name has, and any text between brackets.
fn is_host(authority: &Authority) -> bool {
    let host = authority.host();
    let Some(port) = authority.as_str().strip_prefix(host) else {
        return false;
    };
    let port_fits = match port.strip_prefix(':') {
        Some(digits) => {
            let decimal = digits.bytes().all(|byte| byte.is_ascii_digit());
            decimal && (digits.is_empty() || digits.parse::<u16>().is_ok())
        }
        None => port.is_empty(),
    };
    port_fits && canonical_host(host).is_ok()
}

/// Whether the target and `Host` name the same host and port. The default port of the scheme may be
/// left out.
fn agree(target: &Authority, host: &Authority, scheme: Option<&Scheme>) -> bool {
    let own = if scheme == Some(&Scheme::HTTPS) { 443 } else { 80 };
    let port = |authority: &Authority| authority.port_u16().unwrap_or(own);
    target.host().eq_ignore_ascii_case(host.host()) && port(target) == port(host)
}

/// Refuses a `Connection` that names a header which the upstream must get. Without this check a
/// correctly signed request with `Connection: Stripe-Signature` would reach the upstream without
/// its signature. `is_read` says whether the route reads a header.
pub(super) fn connection(
    headers: &HeaderMap,
    is_read: impl Fn(&HeaderName) -> bool,
) -> Result<(), Refusal> {
    // A list may be split over several lines (RFC 9110, 5.3).
    let named = headers
        .get_all(CONNECTION)
        .iter()
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii));
    for name in named {
        let known = END_TO_END.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()));
        let begins = |prefix: &&str| {
            let begin = name.get(..prefix.len());
            begin.is_some_and(|begin| begin.eq_ignore_ascii_case(prefix.as_bytes()))
        };
        let read = HeaderName::from_bytes(name).is_ok_and(|name| is_read(&name));
        if known || read || END_TO_END_PREFIXES.iter().any(begins) {
            return Err(Refusal::Malformed(Malformed::ConnectionNames));
        }
    }
    Ok(())
}

fn expectation(headers: &HeaderMap) -> Result<(), Refusal> {
    let known = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"100-continue");
    if headers.get_all(EXPECT).iter().all(known) { Ok(()) } else { Err(Refusal::Expectation) }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn check(
        method: &str,
        target: &str,
        version: Version,
        headers: &[(&str, &str)],
    ) -> Result<(), Refusal> {
        let mut request = Request::builder().method(method).uri(target).version(version);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let parts = request.body(()).unwrap().into_parts().0;
        head(&parts)?;
        connection(&parts.headers, |name| name == "stripe-signature")
    }

    fn with(headers: &[(&str, &str)]) -> Result<(), Refusal> {
        check("POST", "/hook", Version::HTTP_11, &[&[("host", "h")], headers].concat())
    }

    fn at(target: &str) -> Result<(), Refusal> {
        check("POST", target, Version::HTTP_11, &[("host", "h")])
    }

    fn to(host: &str) -> Result<(), Refusal> {
        check("POST", "/hook", Version::HTTP_11, &[("host", host)])
    }

    fn malformed(reason: Malformed) -> Result<(), Refusal> {
        Err(Refusal::Malformed(reason))
    }

    #[test]
    fn an_ordinary_head_passes() {
        assert_eq!(with(&[("content-length", "5"), ("connection", "keep-alive, x-hop")]), Ok(()));
        assert_eq!(with(&[("connection", "Upgrade, close"), ("upgrade", "websocket")]), Ok(()));
    }

    #[test]
    fn only_one_chunked_is_a_transfer_encoding() {
        assert_eq!(with(&[("transfer-encoding", "cHuNkEd")]), Ok(()));
        for coding in [
            "gzip, chunked",
            "chunked, chunked",
            ",chunked",
            "chunked,",
            "identity",
            "",
            "\"chunked\"",
        ] {
            let refused = with(&[("transfer-encoding", coding)]);
            assert_eq!(refused, malformed(Malformed::TransferEncoding), "{coding}");
        }
        let twice = [("transfer-encoding", "chunked"), ("transfer-encoding", "chunked")];
        assert_eq!(with(&twice), malformed(Malformed::TransferEncoding));
        let both = [("transfer-encoding", "chunked"), ("content-length", "4")];
        assert_eq!(with(&both), malformed(Malformed::TwoLengths));
        for version in [Version::HTTP_10, Version::HTTP_2] {
            let refused = check("POST", "http://h/", version, &[("transfer-encoding", "chunked")]);
            assert_eq!(refused, malformed(Malformed::TransferEncoding));
        }
    }

    #[test]
    fn an_underscore_makes_no_second_length() {
        assert_eq!(with(&[("content_length", "5")]), malformed(Malformed::FramingAlias));
        assert_eq!(with(&[("transfer_encoding", "chunked")]), malformed(Malformed::FramingAlias));
        assert_eq!(with(&[("x_other", "5")]), Ok(()));
    }

    #[test]
    fn one_host_is_named() {
        for host in ["h", "H.example:8080", "h.example.", "127.0.0.1:1", "[::1]:80", "h:"] {
            assert_eq!(to(host), Ok(()), "{host}");
        }
        for host in ["", "user@h", "h/path", "h x", "h:port", "h:99999", "h:80:80", ":80", "h,h"] {
            assert_eq!(to(host), malformed(Malformed::HostInvalid), "{host}");
        }
        for host in ["[anything]", "[::g]:80", "[fe80::1%25lo]", "1.2.3", "a..b", ".a"] {
            assert_eq!(to(host), malformed(Malformed::HostInvalid), "{host}");
        }
        assert_eq!(with(&[("host", "h")]), malformed(Malformed::HostRepeated));
        let missing = check("POST", "/", Version::HTTP_11, &[]);
        assert_eq!(missing, malformed(Malformed::HostMissing));
        assert_eq!(check("POST", "/", Version::HTTP_2, &[]), malformed(Malformed::HostMissing));
        assert_eq!(check("POST", "/", Version::HTTP_10, &[]), Ok(()));
        assert_eq!(check("POST", "http://h/", Version::HTTP_2, &[]), Ok(()));
    }

    #[test]
    fn target_and_host_agree() {
        for target in ["http://h/x", "http://H:80/x", "https://h:443/x"] {
            assert_eq!(at(target), Ok(()), "{target}");
        }
        for target in ["http://evil.test/x", "http://h:81/x", "https://h:80/x"] {
            assert_eq!(at(target), malformed(Malformed::HostDisagrees), "{target}");
        }
        assert_eq!(at("http://u@h/x"), malformed(Malformed::HostInvalid));
        let disagree = check("POST", "http://h/", Version::HTTP_2, &[("host", "evil.test")]);
        assert_eq!(disagree, malformed(Malformed::HostDisagrees));
    }

    #[test]
    fn a_target_is_a_path_or_a_url() {
        for target in ["hook", "*", "/\\evil/hook", "/hook?x=\\", "/h\u{fc}k", "ftp://h/hook"] {
            assert_eq!(at(target), malformed(Malformed::TargetForm), "{target}");
        }
        for target in ["/hook?x=%0d%0a", "/a%2fb", "//h/hook", "/a;b=c", "/hook?x=../.."] {
            assert_eq!(at(target), Ok(()), "{target}");
        }
    }

    #[test]
    fn methods_are_left_to_the_route() {
        assert_eq!(check("CONNECT", "h:443", Version::HTTP_11, &[("host", "h:443")]), Ok(()));
        assert_eq!(check("TRACE", "/", Version::HTTP_11, &[("host", "h")]), Ok(()));
        assert_eq!(check("BREW", "/", Version::HTTP_11, &[("host", "h")]), Ok(()));
        assert_eq!(check("OPTIONS", "*", Version::HTTP_11, &[("host", "h")]), Ok(()));
    }

    #[test]
    fn connection_takes_away_nothing_that_counts() {
        for names in [
            "Host",
            "close, Content-Length",
            "Transfer-Encoding",
            "x-idempotency-key",
            "Onceward-X",
            "Stripe-Signature",
            "close, stripe-signature",
        ] {
            let refused = with(&[("connection", names)]);
            assert_eq!(refused, malformed(Malformed::ConnectionNames), "{names}");
        }
        let second = with(&[("connection", "close"), ("connection", "X-Forwarded-For")]);
        assert_eq!(second, malformed(Malformed::ConnectionNames));
    }

    #[test]
    fn an_unknown_expectation_is_not_met() {
        assert_eq!(with(&[("expect", "100-Continue")]), Ok(()));
        assert_eq!(with(&[("expect", "foo")]), Err(Refusal::Expectation));
        let second = with(&[("expect", "100-continue"), ("expect", "foo")]);
        assert_eq!(second, Err(Refusal::Expectation));
    }
}
