//! Settings that are written as text: addresses, names of headers, selectors, `2xx`.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::path::PathBuf;

use http::{HeaderName, Method};
use ipnet::IpNet;

use super::leaf::FromText;
use crate::idempotency::UrlTemplate;
use crate::json::Pointer;
use crate::proxy::Selector;
use crate::upstream::{StatusRange, may_be_added};

/// `""` stands for "not set". With it a route can undo what `[defaults]` or its provider set.
impl<T: FromText> FromText for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    fn from_text(text: &str) -> Option<Self> {
        if text.is_empty() { Some(None) } else { T::from_text(text).map(Some) }
    }

    fn expected_for(text: &str) -> Cow<'static, str> {
        T::expected_for(text)
    }
}

impl FromText for String {
    const EXPECTED: &'static str = "a text that is not empty";

    fn from_text(text: &str) -> Option<Self> {
        (!text.trim().is_empty()).then(|| text.to_owned())
    }
}

impl FromText for PathBuf {
    const EXPECTED: &'static str = "a path";

    fn from_text(text: &str) -> Option<Self> {
        (!text.is_empty() && !text.contains('\0')).then(|| Self::from(text))
    }
}

/// Reads a type as its own parser does.
macro_rules! parsed {
    ($type:ty, $expected:literal) => {
        impl FromText for $type {
            const EXPECTED: &'static str = $expected;

            fn from_text(text: &str) -> Option<Self> {
                text.parse().ok()
            }
        }
    };
}

parsed!(SocketAddr, "an address and port such as `127.0.0.1:8080` or `[::1]:8080`");
parsed!(IpNet, "a network such as `10.0.0.0/8` or `fd00::/8`");
parsed!(HeaderName, "the name of a header such as `x-idempotency-key`");
parsed!(
    Selector,
    "`header:NAME`, `json:/pointer`, `form:FIELD`, `query:NAME`, `signature:NAME` or `body`, several \
     with `|` between them, with `?` behind it where it may be absent"
);
parsed!(
    UrlTemplate,
    "an `http` or `https` URL such as `http://127.0.0.1:3000/events/{operation}`, without user and \
     fragment, with `{key}`, `{operation}` and `{event_id}` in path and query alone"
);

/// A header that Onceward adds to the request for the upstream. The sender chooses its value, so
/// that it must not be one that frames or routes the request.
#[derive(Debug)]
pub(super) struct AddedHeader(pub(super) HeaderName);

impl FromText for AddedHeader {
    const EXPECTED: &'static str = "the name of a header of its own such as `idempotency-key`, not one \
                                    that says how a request is framed, where it goes or what it is";

    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok().filter(may_be_added).map(Self)
    }
}

impl FromText for Method {
    const EXPECTED: &'static str = "a method in capitals such as `POST`";

    fn from_text(text: &str) -> Option<Self> {
        let method = Self::from_bytes(text.as_bytes()).ok()?;
        let capitals = !text.bytes().any(|byte| byte.is_ascii_lowercase());
        // A tunnel has no body that could be forwarded, and no answer that could be kept.
        (capitals && method != Self::CONNECT).then_some(method)
    }
}

/// A member of a JSON body, written like a selector.
impl FromText for Pointer {
    const EXPECTED: &'static str = "a JSON member such as `json:/pending_webhooks`";

    fn from_text(text: &str) -> Option<Self> {
        text.strip_prefix("json:")?.parse().ok()
    }
}

impl FromText for StatusRange {
    const EXPECTED: &'static str = "a status from 200 to 599 such as `2xx` or `504`";

    fn from_text(text: &str) -> Option<Self> {
        let class = text.strip_suffix("xx").filter(|class| class.len() == 1);
        let (first, last) = match class {
            Some(class) => {
                let hundreds = class.parse::<u16>().ok()? * 100;
                (hundreds, hundreds + 99)
            }
            None if text.len() == 3 => (text.parse().ok()?, text.parse().ok()?),
            None => return None,
        };
        (first >= 200 && last <= 599).then_some(Self { first, last })
    }
}

/// One item of what a fingerprint covers.
#[derive(Debug)]
pub(super) enum FingerprintPart {
    /// What the kind of the key asks for.
    Auto,
    /// The whole body.
    Body,
    /// What a selector finds.
    Selected(Selector),
}

impl FromText for FingerprintPart {
    const EXPECTED: &'static str = "`auto`, `body`, or a selector such as `json:/amount`";

    fn from_text(text: &str) -> Option<Self> {
        match text {
            "auto" => Some(Self::Auto),
            "body" => Some(Self::Body),
            _ => Selector::from_text(text).map(Self::Selected),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_one_or_a_hundred() {
        let read = |text| StatusRange::from_text(text).map(|range| (range.first, range.last));
        assert_eq!(read("2xx"), Some((200, 299)));
        assert_eq!(read("5xx"), Some((500, 599)));
        assert_eq!(read("409"), Some((409, 409)));
        for refused in
            ["", "xx", "1xx", "6xx", "22xx", "2XX", "+20", "40", "4090", "100", "600", "éxx"]
        {
            assert_eq!(read(refused), None, "{refused}");
        }
    }

    #[test]
    fn a_method_is_in_capitals_and_no_tunnel() {
        assert_eq!(Method::from_text("PROPFIND").unwrap(), "PROPFIND");
        for refused in ["", "post", "Post", "PO ST", "CONNECT"] {
            assert_eq!(Method::from_text(refused), None, "{refused}");
        }
    }
}
