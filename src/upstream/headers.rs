//! Decides which headers go to the upstream, come back to the sender, and are kept for replays.

use std::net::IpAddr;

use http::header::{self, Entry};
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, Version};
use ipnet::IpNet;

/// The peers whose `X-Forwarded-*` headers are believed: `server.trusted_proxies`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedProxies(pub Vec<IpNet>);

impl TrustedProxies {
    fn include(&self, peer: IpAddr) -> bool {
        // A dual-stack listener sees an IPv4 peer as `::ffff:192.0.2.1`. It is still an IPv4 peer.
        let peer = peer.to_canonical();
        self.0.iter().any(|network| network.contains(&peer))
    }

    /// The address of the client: `peer` itself, or, if that is a trusted proxy, the last address
    /// in `X-Forwarded-For` that is not a trusted proxy.
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        if !self.include(peer) {
            return peer;
        }
        // Each proxy appends at the end, so the list is read backwards. The client may have
        // invented everything before the entry of the last trusted proxy.
        let lines = headers.get_all(FORWARDED_FOR).iter().rev();
        let named = lines.flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b','));
        let addresses = named.map(|name| std::str::from_utf8(name).ok()?.trim().parse().ok());
        // An entry that is not an address, such as `unknown`, ends the list: nobody knows who wrote
        // the entries before it.
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

/// What the proxy itself knows about a request that it forwards.
#[derive(Debug, Clone, Copy)]
pub struct ForwardingContext<'a> {
    /// The address of the peer, if it is known.
    pub peer: Option<IpAddr>,
    /// The peers whose `X-Forwarded-*` headers are believed.
    pub trusted: &'a TrustedProxies,
    /// `Host` as it was received.
    pub host: &'a HeaderValue,
    /// The public URL of the proxy, if it differs from the URL that the proxy sees.
    pub public: Option<&'a Uri>,
    /// The HTTP version of the sender's request.
    pub version: Version,
    /// The prefix of the path that was replaced, if any.
    pub prefix: Option<&'a str>,
    /// The header that carries the key to the upstream, if the route sets one. Only Onceward may set
    /// it.
    pub key_header: Option<&'a HeaderName>,
}

/// Headers that concern one connection only (RFC 9110, 7.6.1), and headers that describe the
/// framing of a message. Every message is framed anew, because its whole body is in memory.
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
    // The listener has answered it with `100 Continue` already (RFC 9110, 10.1.1).
    header::EXPECT,
];

/// Headers that say what a message is, or who passed it on. The upstream must get them as the
/// sender wrote them, or as Onceward writes them.
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

/// Whether the configuration may add a header of this name to a request. A header that would change
/// the meaning of the request, or that only Onceward may set, is refused.
pub fn may_be_added(name: &HeaderName) -> bool {
    let ours = ["onceward-", "x-forwarded-"].iter().any(|prefix| name.as_str().starts_with(prefix));
    !ours && !HOP_BY_HOP.contains(name) && !OF_THE_MESSAGE.contains(name)
}

/// Headers that belong to the first exchange and not to a replay: a cookie or a challenge is for
/// one client, a date and an age are wrong later.
const FIRST_EXCHANGE_ONLY: [HeaderName; 4] =
    [header::SET_COOKIE, header::WWW_AUTHENTICATE, header::DATE, header::AGE];

/// Prefixes of further such headers: a proxy's authentication, and counters of rate limits.
const FIRST_EXCHANGE_ONLY_PREFIXES: [&str; 3] = ["proxy-", "ratelimit", "x-ratelimit"];

/// Headers that describe a body. A replay without the body must not have them: with a
/// `Content-Encoding`, for example, a client would try to decompress nothing.
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
/// Says that an answer is a replay. Only Onceward can know that.
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// The headers of a request as the upstream gets them, except `Host` and the headers that differ
/// from attempt to attempt.
pub fn request_headers(
    mut headers: HeaderMap,
    method: &Method,
    body_bytes: usize,
    forwarding: ForwardingContext<'_>,
) -> HeaderMap {
    strip_hop_by_hop(&mut headers);
    headers.remove(header::CONTENT_LENGTH);
    strip_ours(&mut headers);
    // An upstream that deduplicates would take a key that the sender wrote for one of Onceward's.
    if let Some(key) = forwarding.key_header {
        strip(&mut headers, |name| reads_as(name, key.as_str(), false));
    }
    // Some servers answer 411 to a POST without a length, even to an empty one (RFC 9110, 8.6).
    // Other methods get a length only with a body.
    if body_bytes > 0 || [Method::POST, Method::PUT, Method::PATCH].contains(method) {
        headers.insert(header::CONTENT_LENGTH, body_bytes.into());
    }
    set_forwarded(&mut headers, forwarding);
    let via = match forwarding.version {
        Version::HTTP_10 => "1.0 onceward",
        Version::HTTP_2 => "2.0 onceward",
        _ => "1.1 onceward",
    };
    append_to_list(&mut headers, header::VIA, via);
    if forwarding.version == Version::HTTP_2 {
        join_cookie_lines(&mut headers);
    }
    headers
}

/// The headers of an answer as the sender gets them.
///
/// `keep_length`: whether `Content-Length` stays. It stays if the body is streamed, and in an
/// answer to HEAD. Otherwise hyper counts the body anew.
pub fn answer_headers(mut headers: HeaderMap, keep_length: bool) -> HeaderMap {
    strip_hop_by_hop(&mut headers);
    strip_ours(&mut headers);
    headers.remove(REPLAYED);
    if !keep_length {
        headers.remove(header::CONTENT_LENGTH);
    }
    headers
}

/// The headers of a stored answer. `headers` are the headers that the first sender got. `drop` are
/// the headers that the operator excludes.
pub fn stored_headers(
    headers: &HeaderMap,
    drop: &[HeaderName],
    body_kept: bool,
) -> Vec<(HeaderName, HeaderValue)> {
    let kept = headers.iter().filter(|(name, _)| {
        let text = name.as_str();
        !(FIRST_EXCHANGE_ONLY.contains(name)
            || FIRST_EXCHANGE_ONLY_PREFIXES.iter().any(|prefix| text.starts_with(prefix))
            || drop.contains(name)
            || **name == header::CONTENT_LENGTH
            || !body_kept && OF_THE_BODY.contains(name))
    });
    // hyper's values are slices of its read buffer. A stored value would keep the whole buffer in
    // memory for the retention, so its bytes are copied.
    kept.filter_map(|(name, value)| {
        Some((name.clone(), HeaderValue::from_bytes(value.as_bytes()).ok()?))
    })
    .collect()
}

/// Removes the headers that concern one connection only, and those that `Connection` names.
fn strip_hop_by_hop(headers: &mut HeaderMap) {
    if headers.contains_key(header::CONNECTION) {
        let named: Vec<HeaderName> = headers
            .get_all(header::CONNECTION)
            .iter()
            // The line is split as bytes, so the other items are removed even if one is not a
            // header name.
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

/// Removes headers that only Onceward may set.
fn strip_ours(headers: &mut HeaderMap) {
    strip(headers, |name| reads_as(name, "onceward-", true));
}

/// Removes all headers for whose name `is_removed` is true. Most requests have no such header, so
/// nothing is allocated before one is found.
fn strip(headers: &mut HeaderMap, is_removed: impl Fn(&str) -> bool) {
    if headers.keys().any(|name| is_removed(name.as_str())) {
        let removed: Vec<HeaderName> =
            headers.keys().filter(|name| is_removed(name.as_str())).cloned().collect();
        for name in removed {
            headers.remove(name);
        }
    }
}

/// Whether an upstream could take a name for `known`. CGI and its heirs turn `-` into `_` in
/// variable names (RFC 3875, 4.1.18), so `x_forwarded_for` and `x-forwarded-for` become one
/// variable there.
fn reads_as(name: &str, known: &str, as_prefix: bool) -> bool {
    let name = name.as_bytes();
    let known = known.as_bytes();
    let same = |(a, b): (&u8, &u8)| a == b || *a == b'_' && *b == b'-';
    let fits = if as_prefix { name.len() >= known.len() } else { name.len() == known.len() };
    fits && name.iter().zip(known).all(same)
}

/// Sets the `X-Forwarded-*` headers. Values from an untrusted peer are removed first: a sender
/// could otherwise choose the address and the URL that the upstream sees.
fn set_forwarded(headers: &mut HeaderMap, forwarding: ForwardingContext<'_>) {
    let ForwardingContext { peer, trusted, host, public, prefix, .. } = forwarding;
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
    // A trusted proxy in front may have removed a prefix as well: the prefixes are joined.
    let public_path = public.map_or("", |public| public.path().trim_end_matches('/'));
    let received = headers.get(FORWARDED_PREFIX).and_then(|value| value.to_str().ok());
    let joined = format!("{}{}", received.unwrap_or(public_path), prefix.unwrap_or_default());
    if !joined.is_empty()
        && let Ok(value) = HeaderValue::from_str(&joined)
    {
        headers.insert(FORWARDED_PREFIX, value);
    }
}

/// The port that the sender used: the one in `X-Forwarded-Host`, or the scheme's default.
fn port(headers: &HeaderMap) -> Option<u16> {
    let host: Authority = headers.get(FORWARDED_HOST)?.to_str().ok()?.parse().ok()?;
    let is_https = headers.get(FORWARDED_PROTO).is_some_and(|scheme| scheme == "https");
    Some(host.port_u16().unwrap_or(if is_https { 443 } else { 80 }))
}

/// Sets a header if it is absent. The value is made only in that case.
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

/// Appends an item to a list header, and joins its lines into one. Some upstreams read only the
/// first line of a header and would miss the item.
fn append_to_list(headers: &mut HeaderMap, name: HeaderName, item: &str) {
    let items = headers.get_all(&name).iter().map(HeaderValue::as_bytes);
    let line = items.chain([item.as_bytes()]).collect::<Vec<_>>().join(&b", "[..]);
    if let Ok(value) = HeaderValue::from_bytes(&line) {
        headers.insert(name, value);
    }
}

/// Joins the lines of `Cookie`. HTTP/2 may split it into several, and they must be joined before an
/// HTTP/1.1 server gets them (RFC 9113, 8.2.3).
fn join_cookie_lines(headers: &mut HeaderMap) {
    let lines: Vec<_> = headers.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if lines.len() > 1
        && let Ok(cookie) = HeaderValue::from_bytes(&lines.join(&b"; "[..]))
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
