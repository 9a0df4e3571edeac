//! The part of an answer that is stored and replayed.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An upstream's answer as copies get it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredAnswer {
    /// The status of the first answer.
    #[serde(with = "status")]
    pub status: StatusCode,
    /// The end-to-end headers that may be replayed. The values of one name keep their order.
    #[serde(with = "headers")]
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The body, if it was kept.
    pub body: AnswerBody,
}

/// The body of a stored answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum AnswerBody {
    /// The bytes of the first answer.
    Kept(Bytes),
    /// The body was too long for the route to keep. A replay has no body, and says so in a header.
    Omitted,
}

impl StoredAnswer {
    /// An answer without headers or body.
    pub fn empty(status: StatusCode) -> Self {
        Self { status, headers: Vec::new(), body: AnswerBody::Kept(Bytes::new()) }
    }

    /// The answer for copies of an operation that turned out to be done. It is the answer of the
    /// uncertain attempt if its status is a success and its whole body was kept. Otherwise it is an
    /// empty 200. An error is not replayed, because it does not say that the operation was done.
    pub(super) fn for_copies(uncertain: Option<&Arc<Self>>) -> Arc<Self> {
        let is_whole_success = |answer: &&Arc<Self>| {
            answer.status.is_success() && matches!(answer.body, AnswerBody::Kept(_))
        };
        let answer = uncertain.filter(is_whole_success).cloned();
        answer.unwrap_or_else(|| Arc::new(Self::empty(StatusCode::OK)))
    }

    /// About how many bytes the answer takes in memory.
    pub fn weight(&self) -> usize {
        let headers: usize = self.headers.iter().map(|(n, v)| n.as_str().len() + v.len()).sum();
        match &self.body {
            AnswerBody::Kept(body) => headers + body.len(),
            AnswerBody::Omitted => headers,
        }
    }
}

mod status {
    use super::{D, Deserialize, Deserializer, S, Serializer, StatusCode};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
    pub(super) fn serialize<T: Serializer>(status: &StatusCode, to: T) -> S<T> {
        to.serialize_u16(status.as_u16())
    }

    pub(super) fn deserialize<'de, T: Deserializer<'de>>(from: T) -> D<'de, T, StatusCode> {
        StatusCode::from_u16(u16::deserialize(from)?).map_err(serde::de::Error::custom)
    }
}

/// Header values are bytes, not text: they need not be UTF-8.
mod headers {
    use super::{Bytes, D, Deserialize, Deserializer, HeaderName, HeaderValue, S, Serializer};
    use serde::de::Error as _;

    pub(super) fn serialize<T: Serializer>(headers: &[(HeaderName, HeaderValue)], to: T) -> S<T> {
        to.collect_seq(headers.iter().map(|(name, value)| (name.as_str(), Raw(value.as_bytes()))))
    }

    pub(super) fn deserialize<'de, T: Deserializer<'de>>(
        from: T,
    ) -> D<'de, T, Vec<(HeaderName, HeaderValue)>> {
        let pairs = Vec::<(String, Bytes)>::deserialize(from)?;
        let parsed = pairs.into_iter().map(|(name, value)| {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(T::Error::custom)?;
            let value = HeaderValue::from_maybe_shared(value).map_err(T::Error::custom)?;
            Ok((name, value))
        });
        parsed.collect()
    }

    struct Raw<'a>(&'a [u8]);

    impl serde::Serialize for Raw<'_> {
        fn serialize<T: Serializer>(&self, to: T) -> S<T> {
            to.serialize_bytes(self.0)
        }
    }
}

type S<T> = Result<<T as Serializer>::Ok, <T as Serializer>::Error>;
type D<'de, T, V> = Result<V, <T as Deserializer<'de>>::Error>;
