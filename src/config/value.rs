//! Values as they are written: texts, addresses, names of headers, `2xx`.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::path::PathBuf;

use http::{HeaderName, Method};
use ipnet::IpNet;

use super::leaf::Written;
use crate::json::Pointer;
use crate::proxy::Selector;
use crate::upstream::{StatusRange, may_be_added};

/// `""` stands for "not set" where a setting may be switched off again.
impl<T: Written> Written for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    fn read(text: &str) -> Option<Self> {
        if text.is_empty() { Some(None) } else { T::read(text).map(Some) }
    }

    fn expected(text: &str) -> Cow<'static, str> {
        T::expected(text)
    }
}

impl Written for String {
    const EXPECTED: &'static str = "a text that is not empty";

    fn read(text: &str) -> Option<Self> {
        (!text.trim().is_empty()).then(|| text.to_owned())
    }
}

impl Written for PathBuf {
    const EXPECTED: &'static str = "a path";

    fn read(text: &str) -> Option<Self> {
        (!text.is_empty() && !text.contains('\0')).then(|| Self::from(text))
    }
}

impl Written for SocketAddr {
    const EXPECTED: &'static str = "an address and port such as `127.0.0.1:8080` or `[::1]:8080`";

    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

impl Written for IpNet {
    const EXPECTED: &'static str = "a network such as `10.0.0.0/8` or `fd00::/8`";

    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

impl Written for HeaderName {
    const EXPECTED: &'static str = "the name of a header such as `x-idempotency-key`";

    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

/// A header that is added to the upstream's request.
#[derive(Debug)]
pub(super) struct AddedHeader(pub(super) HeaderName);

impl Written for AddedHeader {
    const EXPECTED: &'static str = "the name of a header of its own such as `idempotency-key`, not one \
                                    that says how a request is framed, where it goes or what it is";

    fn read(text: &str) -> Option<Self> {
        text.parse().ok().filter(may_be_added).map(Self)
    }
}

impl Written for Method {
    const EXPECTED: &'static str = "a method in capitals such as `POST`";

    fn read(text: &str) -> Option<Self> {
        let method = Self::from_bytes(text.as_bytes()).ok()?;
        let capitals = !text.bytes().any(|byte| byte.is_ascii_lowercase());
        (capitals && method != Self::CONNECT).then_some(method)
    }
}

impl Written for Selector {
    const EXPECTED: &'static str = "`header:NAME`, `json:/pointer`, `form:FIELD`, `query:NAME`, \
                                    `signature:NAME` or `body`, several with `|` between them, \
                                    with `?` behind it where it may be absent";

    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

/// A member of a JSON body, written as a selector is.
impl Written for Pointer {
    const EXPECTED: &'static str = "a JSON member such as `json:/pending_webhooks`";

    fn read(text: &str) -> Option<Self> {
        text.strip_prefix("json:")?.parse().ok()
    }
}

impl Written for StatusRange {
    const EXPECTED: &'static str = "a status from 200 to 599 such as `2xx` or `504`";

    fn read(text: &str) -> Option<Self> {
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

/// What a fingerprint is over, one item of it.
#[derive(Debug)]
pub(super) enum Over {
    Auto,
    Body,
    Part(Selector),
}

impl Written for Over {
    const EXPECTED: &'static str = "`auto`, `body`, or a selector such as `json:/amount`";

    fn read(text: &str) -> Option<Self> {
        match text {
            "auto" => Some(Self::Auto),
            "body" => Some(Self::Body),
            _ => Selector::read(text).map(Self::Part),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_one_or_a_hundred() {
        let read = |text| StatusRange::read(text).map(|range| (range.first, range.last));
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
        assert_eq!(Method::read("PROPFIND").unwrap(), "PROPFIND");
        for refused in ["", "post", "Post", "PO ST", "CONNECT"] {
            assert_eq!(Method::read(refused), None, "{refused}");
        }
    }
}
