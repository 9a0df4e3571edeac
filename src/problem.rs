//! Problem documents (RFC 9457): the body of every refusal that Onceward writes, and what the
//! command line reads of it.

use std::borrow::Cow;

use bytes::Bytes;
use http::HeaderValue;
use serde::{Deserialize, Serialize};

/// The media type of a problem document (RFC 9457, section 3).
pub const MEDIA_TYPE: HeaderValue = HeaderValue::from_static("application/problem+json");

/// The part that the `type` of every problem of Onceward begins with. The code follows it.
const TYPE_PREFIX: &str = "urn:onceward:problem:";

/// A problem document. It never contains a body, a secret, a signature or an internal address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document<'a> {
    /// The kind of problem, such as `no-route`. It is written as a URN in the member `type`, and a
    /// document with any other `type` is not read: it comes from another program.
    #[serde(rename = "type", with = "problem_type")]
    pub code: Cow<'a, str>,
    /// The kind of problem in words: the same for every problem of one code.
    pub title: Cow<'a, str>,
    /// The status of the response, repeated.
    pub status: u16,
    /// What is wrong in this case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<Cow<'a, str>>,
    /// The id of the operation that the problem is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// The state of that operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<Cow<'a, str>>,
    /// The number of its latest attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
}

impl Document<'_> {
    /// The document as JSON: the body of a response.
    pub fn to_body(&self) -> Bytes {
        // Serialization cannot fail: the document has only texts and numbers.
        serde_json::to_vec(self).unwrap_or_default().into()
    }
}

/// Writes a code as a URN, and reads it back.
mod problem_type {
    use std::borrow::Cow;

    use serde::{Deserialize as _, Deserializer, Serializer, de};

    use crate::problem::TYPE_PREFIX;

    pub(super) fn serialize<S: Serializer>(code: &str, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{TYPE_PREFIX}{code}"))
    }

    pub(super) fn deserialize<'de, 'a, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Cow<'a, str>, D::Error> {
        let urn = String::deserialize(deserializer)?;
        let code = urn.strip_prefix(TYPE_PREFIX);
        let code = code.ok_or_else(|| de::Error::custom("expected a problem of Onceward"))?;
        Ok(Cow::Owned(code.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> Document<'static> {
        Document {
            code: "no-route".into(),
            title: "no route".into(),
            status: 404,
            detail: None,
            operation: None,
            state: None,
            attempt: Some(2),
        }
    }

    #[test]
    fn a_document_has_only_the_members_that_are_known_and_reads_back() {
        let body = document().to_body();
        let expected = "{\"type\":\"urn:onceward:problem:no-route\",\"title\":\"no route\",\
                        \"status\":404,\"attempt\":2}";
        assert_eq!(body, expected);
        assert_eq!(serde_json::from_slice::<Document<'_>>(&body).unwrap(), document());
    }

    #[test]
    fn a_document_of_another_program_is_not_read() {
        for kind in ["about:blank", "urn:other:problem:no-route", ""] {
            let json = format!("{{\"type\":\"{kind}\",\"title\":\"t\",\"status\":404}}");
            assert!(serde_json::from_str::<Document<'_>>(&json).is_err(), "{kind}");
        }
    }
}
