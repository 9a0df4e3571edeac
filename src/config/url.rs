//! Hosts, paths of routes and URLs.

use std::borrow::Cow;

use http::Uri;
use http::uri::{Authority, PathAndQuery};

use super::leaf::FromText;
use crate::proxy::{self, HostError, PathPattern};
use crate::upstream::{Scheme, Target};

/// A host name or an IP address in canonical form, without a port.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Host(pub(super) String);

impl FromText for Host {
    const EXPECTED: &'static str = "a host without a port such as `hooks.example.com`";

    fn from_text(text: &str) -> Option<Self> {
        // The host of a request is compared without its trailing dot, so that one here would never
        // match.
        let host = proxy::canonical_host(text).ok().filter(|_| !text.ends_with('.'));
        host.map(|host| Self(host.into_owned()))
    }

    fn expected_for(text: &str) -> Cow<'static, str> {
        expected_host(Self::EXPECTED, text)
    }
}

/// What may be written instead of this host. Of a host that was meant as an IP address it says how
/// one is written.
fn expected_host(expected: &'static str, host: &str) -> Cow<'static, str> {
    match proxy::canonical_host(host) {
        Err(why @ (HostError::NotIpv4 | HostError::NotIpv6 | HostError::Zone)) => {
            format!("{expected}, with {why}").into()
        }
        Err(HostError::NotAName) | Ok(_) => expected.into(),
    }
}

/// What may be written instead of this URL, whose host may be the mistake.
fn expected_url(expected: &'static str, text: &str) -> Cow<'static, str> {
    let uri = text.parse::<Uri>().ok();
    match uri.as_ref().and_then(Uri::host) {
        Some(host) => expected_host(expected, host),
        None => expected.into(),
    }
}

/// What may be written instead of a path that some server reads as another one.
pub(super) const READ_ALIKE: &str = "a path that every receiver reads alike";

impl FromText for PathPattern {
    const EXPECTED: &'static str = "a path such as `/webhooks/orders`, or a prefix such as \
                                    `/webhooks/*`, without query or fragment";

    fn from_text(text: &str) -> Option<Self> {
        Self::plainest(text).filter(|pattern| pattern.to_string() == text)
    }

    fn expected_for(text: &str) -> Cow<'static, str> {
        // It is a path, and only its form is the mistake.
        let is_path = Self::plainest(text).is_some();
        if is_path { READ_ALIKE.into() } else { Self::EXPECTED.into() }
    }
}

impl FromText for Target {
    const EXPECTED: &'static str = "an `http` or `https` URL such as `http://127.0.0.1:3000`, \
                                    without user, query or fragment";

    fn from_text(text: &str) -> Option<Self> {
        let (scheme, authority, path) = parts(text)?;
        // A URL without a path has the path `/`, too. Then the path of the request is kept.
        let path = (path != "/").then_some(path);
        Some(Self { scheme, authority, path })
    }

    fn expected_for(text: &str) -> Cow<'static, str> {
        expected_url(Self::EXPECTED, text)
    }
}

/// How senders see the proxy.
#[derive(Debug)]
pub(super) struct PublicUrl(pub(super) Uri);

impl FromText for PublicUrl {
    const EXPECTED: &'static str = "an `http` or `https` URL such as `https://hooks.example.com`, \
                                    without user, query or fragment";

    fn from_text(text: &str) -> Option<Self> {
        parts(text)?;
        text.parse().ok().map(Self)
    }

    fn expected_for(text: &str) -> Cow<'static, str> {
        expected_url(Self::EXPECTED, text)
    }
}

fn parts(text: &str) -> Option<(Scheme, Authority, String)> {
    // `Uri` drops a fragment without an error.
    let uri: Uri = Some(text).filter(|text| !text.contains('#'))?.parse().ok()?;
    let scheme = match uri.scheme_str()? {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        _ => return None,
    };
    let authority = uri.authority()?.clone();
    let whole = uri.query().is_none() && is_reachable(&authority) && is_plain_path(uri.path());
    whole.then(|| (scheme, authority, uri.path().to_owned()))
}

/// Whether the authority is a host, or a host and a port that exists. `Authority` also takes
/// `host:` and `host:99999`.
fn is_reachable(authority: &Authority) -> bool {
    let host = authority.host();
    let port = authority.as_str().strip_prefix(host);
    let port_exists = match port.and_then(|port| port.strip_prefix(':')) {
        Some(number) => number.parse::<u16>().is_ok_and(|number| number > 0),
        None => port == Some(""),
    };
    proxy::canonical_host(host).is_ok() && port_exists
}

/// Whether every server reads the path alike. It begins with `/`, and has no dot segment (plain or
/// percent-encoded), no empty segment inside, and no `%` that escapes nothing.
fn is_plain_path(path: &str) -> bool {
    let dotted = path.split('/').any(|segment| {
        let segment = segment.to_ascii_lowercase().replace("%2e", ".");
        segment == "." || segment == ".."
    });
    let escapes = path.split('%').skip(1).all(|rest| {
        rest.get(..2).is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
    });
    let parsed = path.parse::<PathAndQuery>();
    let plain = path.starts_with('/') && !path.contains("//") && !dotted && escapes;
    plain && parsed.is_ok_and(|parsed| parsed.path() == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_exact_or_a_prefix_or_refused() {
        let exact = |path: &str| Some(PathPattern::Exact(path.to_owned()));
        let prefix = |path: &str| Some(PathPattern::Prefix(path.to_owned()));
        assert_eq!(PathPattern::from_text("/webhooks/stripe"), exact("/webhooks/stripe"));
        assert_eq!(PathPattern::from_text("/webhooks/*"), prefix("/webhooks"));
        assert_eq!(PathPattern::from_text("/"), exact("/"));
        assert_eq!(PathPattern::from_text("/*"), prefix(""));
        assert_eq!(PathPattern::from_text("/a%20b/caf%C3%A9/"), exact("/a%20b/caf%C3%A9/"));
        for refused in [
            "",
            "*",
            "webhooks",
            "/a*",
            "/*/b",
            "/a/*/*",
            "/a?b",
            "/a#b",
            "/a%",
            "/a%2",
            "/a%zz",
            "/a b",
            "/\u{e9}\n",
            "/%AA",
            "http://host/",
        ] {
            assert_eq!(PathPattern::from_text(refused), None, "{refused}");
        }
    }

    /// Its route would take nothing that comes in the usual form, or what another one should.
    #[test]
    fn a_path_with_another_reading_is_refused_and_has_that_reading() {
        for (written, meant) in [
            ("/w/..%2f/*", "/*"),
            ("/a/../b", "/b"),
            ("/a/.", "/a/"),
            ("/a/./b", "/a/b"),
            ("/a/%2E%2e/b", "/b"),
            ("//a", "/a"),
            ("/a//b", "/a/b"),
            ("/a//*", "/a/*"),
            ("//*", "/*"),
            ("/a%2Fb", "/a/b"),
            ("/a%252Fb", "/a/b"),
            ("/a\\b", "/a/b"),
            ("/a%5cb", "/a/b"),
            ("/a;v=1", "/a"),
            ("/a;/*", "/a/*"),
            ("/a%3Bx", "/a"),
            ("/%61", "/a"),
            ("/a%2Cb", "/a,b"),
            ("/caf%c3%a9", "/caf%C3%A9"),
            ("/caf\u{e9}", "/caf%C3%A9"),
            ("/a b", "/a%20b"),
        ] {
            assert_eq!(PathPattern::from_text(written), None, "{written}");
            assert_eq!(PathPattern::expected_for(written), READ_ALIKE, "{written}");
            assert_eq!(PathPattern::plainest(written).unwrap().to_string(), meant, "{written}");
            assert!(PathPattern::from_text(meant).is_some(), "{meant}");
        }
    }

    #[test]
    fn an_upstream_is_a_scheme_an_authority_and_a_path() {
        let target = Target::from_text("https://[::1]:8443/internal").unwrap();
        assert_eq!(target.scheme, Scheme::Https);
        assert_eq!(target.authority, "[::1]:8443");
        assert_eq!(target.path.as_deref(), Some("/internal"));
        for whole in ["http://host", "http://host/"] {
            assert_eq!(Target::from_text(whole).unwrap().path, None, "{whole}");
        }
        for refused in [
            "",
            "host",
            "host:80",
            "/path",
            "ftp://host",
            "http://",
            "http://:80",
            "http://host:",
            "http://host:0",
            "http://host:99999",
            "http://user@host",
            "http://user:pass@host",
            "http://host/?a=b",
            "http://host?a",
            "http://host/#f",
            "http://host#f",
            "http://host/a/../b",
            "http://host/%zz",
            "http://host//a",
            "http://ho st",
            "http://[fe80::1%25lo]:9",
            "http://[::g]:9",
            "http://[anything]",
            "http://1.2.3:9",
            "http://a..b",
        ] {
            assert_eq!(Target::from_text(refused), None, "{refused}");
        }
    }

    #[test]
    fn a_host_is_a_name_or_an_address_alone() {
        assert_eq!(Host::from_text("Hooks.Example.com").unwrap().0, "hooks.example.com");
        assert_eq!(Host::from_text("[0::1]").unwrap().0, "[::1]");
        for refused in
            ["", "host:80", "user@host", "*.host", "a..b", "host.", "a/b", "a b", "1.2", "[a]"]
        {
            assert!(Host::from_text(refused).is_none(), "{refused}");
        }
    }

    #[test]
    fn what_was_meant_as_an_address_says_how_it_would_be_one() {
        let zone = Target::expected_for("http://[fe80::1%25lo]:9");
        assert!(zone.ends_with("without a zone, which means something on one machine alone"));
        assert!(
            Target::expected_for("http://1.2.3:9")
                .ends_with("an IPv4 address in four decimal parts")
        );
        assert!(Host::expected_for("[::g]").ends_with("an IPv6 address between the brackets"));
        assert_eq!(Target::expected_for("host:80"), Target::EXPECTED);
    }
}
