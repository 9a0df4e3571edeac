//! Which headers go to the upstream, come back to the sender, and are kept for replays.

use std::net::IpAddr;

use http::header::{self, Entry};
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, Version};
use ipnet::IpNet;

/// Peers whose `X-Forwarded-*` are believed: `server.trusted_proxies`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedProxies(pub Vec<IpNet>);

impl TrustedProxies {
    fn include(&self, peer: IpAddr) -> bool {
        // An IPv4 peer of a dual-stack listener is still an IPv4 peer.
        let peer = peer.to_canonical();
        self.0.iter().any(|network| network.contains(&peer))
    }

    /// The address that a request comes from: behind trusted peers the last one that they name and
    /// that is none of them.
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        if !self.include(peer) {
            return peer;
        }
        let lines = headers.get_all(FORWARDED_FOR).iter().rev();
        let named = lines.flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b','));
        let addresses = named.map(|name| std::str::from_utf8(name).ok()?.trim().parse().ok());
        // Behind a name that is no address nothing is believed.
        let mut believed = addresses.map_while(|address: Option<IpAddr>| address);
        let mut client = peer;
        while self.include(client)
            && let Some(before) = believed.next()
        {
            client = before;
        }
        client
    }
}

/// What the proxy itself knows of a request that it forwards.
#[derive(Debug, Clone, Copy)]
pub struct Forwarding<'a> {
    /// Who sent it, if that is known.
    pub peer: Option<IpAddr>,
    /// Whose word on the sender counts.
    pub trusted: &'a TrustedProxies,
    /// `Host` as received.
    pub host: &'a HeaderValue,
    /// How senders see the proxy, if that is not as they reached it.
    pub public: Option<&'a Uri>,
    /// The HTTP version of the sender.
    pub version: Version,
    /// The part of the path that was replaced, if any.
    pub prefix: Option<&'a str>,
}

/// Headers that concern one connection only (RFC 9110 section 7.6.1), and those that describe how
/// the message was framed: the message is framed anew.
const HOP_BY_HOP: [HeaderName; 11] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("http2-settings"),
    header::EXPECT,
];

/// Headers that say what a message is, or who has passed it on: the upstream must get them as they
/// are, or as Onceward writes them.
const OF_THE_MESSAGE: [HeaderName; 9] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::CONTENT_ENCODING,
    header::AUTHORIZATION,
    header::COOKIE,
    header::DATE,
    header::FORWARDED,
    header::VIA,
];

/// Whether a header of this name may be added to a request without changing what the request is.
pub fn may_be_added(name: &HeaderName) -> bool {
    let ours = ["onceward-", "x-forwarded-"].iter().any(|prefix| name.as_str().starts_with(prefix));
    !ours && !HOP_BY_HOP.contains(name) && !OF_THE_MESSAGE.contains(name)
}

/// Headers that belong to the first exchange and not to a replay. With `proxy-`, `ratelimit` and
/// `x-ratelimit` as prefixes.
const FIRST_EXCHANGE_ONLY: [HeaderName; 4] =
    [header::SET_COOKIE, header::WWW_AUTHENTICATE, header::DATE, header::AGE];

/// Headers that describe a body that a replay does not have.
const OF_THE_BODY: [HeaderName; 8] = [
    header::CONTENT_LENGTH,
    header::CONTENT_ENCODING,
    header::ETAG,
    HeaderName::from_static("digest"),
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("repr-digest"),
    HeaderName::from_static("content-md5"),
    header::CONTENT_RANGE,
];

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PORT: HeaderName = HeaderName::from_static("x-forwarded-port");
const FORWARDED_PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");
/// Says that an answer is a replay. Only Onceward knows.
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// The headers of a request as the upstream gets them, but for `Host` and those of one attempt.
pub fn request_headers(
    mut headers: HeaderMap,
    (method, body_bytes): (&Method, usize),
    forwarding: Forwarding<'_>,
) -> HeaderMap {
    strip_hop_by_hop(&mut headers);
    headers.remove(header::CONTENT_LENGTH);
    strip_ours(&mut headers);
    if body_bytes > 0 || [Method::POST, Method::PUT, Method::PATCH].contains(method) {
        headers.insert(header::CONTENT_LENGTH, body_bytes.into());
    }
    forwarded(&mut headers, forwarding);
    let via = match forwarding.version {
        Version::HTTP_10 => "1.0 onceward",
        Version::HTTP_2 => "2.0 onceward",
        _ => "1.1 onceward",
    };
    append_to_list(&mut headers, header::VIA, via);
    if forwarding.version == Version::HTTP_2 {
        join_crumbs(&mut headers);
    }
    headers
}

/// The headers of an answer as the sender gets them. `keep_length` where the body is not in memory
/// or there is none by definition; else the body's length is counted anew.
pub fn answer_headers(mut headers: HeaderMap, keep_length: bool) -> HeaderMap {
    strip_hop_by_hop(&mut headers);
    strip_ours(&mut headers);
    headers.remove(REPLAYED);
    if !keep_length {
        headers.remove(header::CONTENT_LENGTH);
    }
    headers
}

/// The headers of an answer that a replay carries. `headers` are those that the sender got.
pub fn stored_headers(
    headers: &HeaderMap,
    drop: &[HeaderName],
    body_kept: bool,
) -> Vec<(HeaderName, HeaderValue)> {
    let kept = headers.iter().filter(|(name, _)| {
        let text = name.as_str();
        !(FIRST_EXCHANGE_ONLY.contains(name)
            || ["proxy-", "ratelimit", "x-ratelimit"].iter().any(|start| text.starts_with(start))
            || drop.contains(name)
            || **name == header::CONTENT_LENGTH
            || !body_kept && OF_THE_BODY.contains(name))
    });
    // Copies of their own: what is kept for long must not keep a read buffer.
    kept.filter_map(|(name, value)| {
        Some((name.clone(), HeaderValue::from_bytes(value.as_bytes()).ok()?))
    })
    .collect()
}

/// Removes what concerns one connection only, and what `Connection` names.
fn strip_hop_by_hop(headers: &mut HeaderMap) {
    if headers.contains_key(header::CONNECTION) {
        let named: Vec<HeaderName> = headers
            .get_all(header::CONNECTION)
            .iter()
            // By bytes: what is no name in a line does not hide the names beside it.
            .flat_map(|line| line.as_bytes().split(|byte| *byte == b','))
            .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
            .collect();
        for name in named {
            headers.remove(name);
        }
    }
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
}

/// Removes headers that only Onceward may say.
fn strip_ours(headers: &mut HeaderMap) {
    strip(headers, |name| reads_as(name, "onceward-", true));
}

/// Removes all headers with such a name.
fn strip(headers: &mut HeaderMap, such: impl Fn(&str) -> bool) {
    if headers.keys().any(|name| such(name.as_str())) {
        let named: Vec<HeaderName> =
            headers.keys().filter(|name| such(name.as_str())).cloned().collect();
        for name in named {
            headers.remove(name);
        }
    }
}

/// Whether a receiver may take a name for `known`: in the manner of CGI, `_` reads as `-`.
fn reads_as(name: &str, known: &str, as_prefix: bool) -> bool {
    let name = name.as_bytes();
    let known = known.as_bytes();
    let same = |(a, b): (&u8, &u8)| a == b || *a == b'_' && *b == b'-';
    let fits = if as_prefix { name.len() >= known.len() } else { name.len() == known.len() };
    fits && name.iter().zip(known).all(same)
}

/// Says who sent it. What an untrusted peer says of itself is replaced.
fn forwarded(headers: &mut HeaderMap, forwarding: Forwarding<'_>) {
    let Forwarding { peer, trusted, host, public, prefix, .. } = forwarding;
    let believed = peer.is_some_and(|peer| trusted.include(peer));
    if !believed {
        strip(headers, |name| {
            reads_as(name, "x-forwarded-", true)
                || reads_as(name, "x-real-ip", false)
                || name == "forwarded"
        });
    }
    if let Some(peer) = peer {
        append_to_list(headers, FORWARDED_FOR, &peer.to_canonical().to_string());
    }
    let scheme = public.and_then(Uri::scheme_str).unwrap_or("http");
    if_absent(headers, FORWARDED_PROTO, || HeaderValue::from_str(scheme).ok());
    let authority = public.and_then(Uri::authority);
    if_absent(headers, FORWARDED_HOST, || match authority {
        Some(authority) => HeaderValue::from_str(authority.as_str()).ok(),
        None => Some(host.clone()),
    });
    if let Some(port) = port(headers) {
        if_absent(headers, FORWARDED_PORT, || Some(port.into()));
    }
    let above = public.map_or("", |public| public.path().trim_end_matches('/'));
    let before = headers.get(FORWARDED_PREFIX).and_then(|value| value.to_str().ok());
    let whole = format!("{}{}", before.unwrap_or(above), prefix.unwrap_or_default());
    if !whole.is_empty()
        && let Ok(value) = HeaderValue::from_str(&whole)
    {
        headers.insert(FORWARDED_PREFIX, value);
    }
}

/// The port that the sender used: as it wrote it, else the scheme's own.
fn port(headers: &HeaderMap) -> Option<u16> {
    let host: Authority = headers.get(FORWARDED_HOST)?.to_str().ok()?.parse().ok()?;
    let secure = headers.get(FORWARDED_PROTO).is_some_and(|scheme| scheme == "https");
    Some(host.port_u16().unwrap_or(if secure { 443 } else { 80 }))
}

fn if_absent(
    headers: &mut HeaderMap,
    name: HeaderName,
    value: impl FnOnce() -> Option<HeaderValue>,
) {
    if let Entry::Vacant(vacant) = headers.entry(name)
        && let Some(value) = value()
    {
        vacant.insert(value);
    }
}

/// Adds an item to a list header, in one line.
fn append_to_list(headers: &mut HeaderMap, name: HeaderName, item: &str) {
    let before = headers.get_all(&name).iter().map(HeaderValue::as_bytes);
    let line = before.chain([item.as_bytes()]).collect::<Vec<_>>().join(&b", "[..]);
    if let Ok(value) = HeaderValue::from_bytes(&line) {
        headers.insert(name, value);
    }
}

/// Makes one line of the crumbs into which HTTP/2 may break a cookie (RFC 9113, 8.2.3).
fn join_crumbs(headers: &mut HeaderMap) {
    let crumbs: Vec<_> =
        headers.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if crumbs.len() > 1
        && let Ok(cookie) = HeaderValue::from_bytes(&crumbs.join(&b"; "[..]))
    {
        headers.insert(header::COOKIE, cookie);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    #[test]
    fn what_is_kept_does_not_keep_the_buffer_that_it_was_read_into() {
        let buffer = Bytes::from(vec![b'v'; 8192]);
        let value = HeaderValue::from_maybe_shared(buffer.slice(..4)).unwrap();
        let headers = HeaderMap::from_iter([(header::SERVER, value)]);
        let kept = stored_headers(&headers, &[], true);
        let [(_, kept)] = kept.as_slice() else { panic!("{kept:?}") };
        assert_eq!(kept, "vvvv");
        assert!(!buffer.as_ptr_range().contains(&kept.as_bytes().as_ptr()));
    }

    #[test]
    fn the_client_is_the_last_address_that_no_trusted_peer_has() {
        let trusted = TrustedProxies(vec!["10.0.0.0/8".parse().unwrap()]);
        let client = |peer: &str, lines: &[&'static str]| {
            let lines = lines.iter().map(|line| (FORWARDED_FOR, HeaderValue::from_static(line)));
            trusted.client(peer.parse().unwrap(), &lines.collect()).to_string()
        };
        assert_eq!(client("192.0.2.1", &["192.0.2.9"]), "192.0.2.1");
        assert_eq!(client("10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(client("10.0.0.1", &["192.0.2.8, 192.0.2.9"]), "192.0.2.9");
        assert_eq!(client("10.0.0.1", &["192.0.2.9, 10.0.0.2"]), "192.0.2.9");
        assert_eq!(client("10.0.0.1", &["192.0.2.8", "192.0.2.9"]), "192.0.2.9");
        assert_eq!(client("10.0.0.1", &["192.0.2.9, unknown, 10.0.0.2"]), "10.0.0.2");
        assert_eq!(client("10.0.0.1", &["2001:db8::1"]), "2001:db8::1");
    }

    #[test]
    fn no_spelling_of_our_own_headers_is_passed_on() {
        let names = ["onceward-verified", "onceward_verified", "onceward-operation", "once-ward"];
        let headers = names.map(|name| (name.parse::<HeaderName>().unwrap(), "x".parse().unwrap()));
        let mut headers = HeaderMap::from_iter(headers);
        strip_ours(&mut headers);
        assert_eq!(headers.keys().collect::<Vec<_>>(), ["once-ward"]);
    }

    #[test]
    fn names_are_read_as_a_cgi_receiver_reads_them() {
        assert!(reads_as("x_forwarded_for", "x-forwarded-", true));
        assert!(reads_as("x_real-ip", "x-real-ip", false));
        assert!(!reads_as("x-real-ip-2", "x-real-ip", false));
        assert!(!reads_as("x-forwarded", "x-forwarded-", true));
    }
}
