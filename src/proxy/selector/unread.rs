//! Why a selector read nothing that can be used. No sentence here repeats anything of the request.
//! Each sentence continues after the name of a selector.

/// Why a part of an identity could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// 400 `key-missing`.
    #[error("{0}")]
    Missing(MissingReason),
    /// 400 `key-invalid`.
    #[error("{0}")]
    Invalid(InvalidReason),
}

/// Why there is no key, or only a part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum MissingReason {
    /// The request has nothing where the selector looks.
    #[error("is absent")]
    Absent,
    /// The value is null, empty, or only whitespace.
    #[error("is null, empty or blank")]
    Blank,
    /// Some items of the array have the value and others do not. A key made of the present values
    /// could be the key of another event.
    #[error("is absent in some of the items")]
    AbsentInSomeItems,
    /// The selector reads JSON, and the body is something else.
    #[error("is absent: the body is not JSON in UTF-8")]
    NotJson,
    /// The selector reads a form, and the request does not say that its body is one.
    #[error("is absent: the body is not `application/x-www-form-urlencoded`")]
    NotAForm,
    /// The key would be the digest of the body. All empty bodies have the same digest.
    #[error("is absent: the body is empty")]
    EmptyBody,
}

/// Why a value that is present cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum InvalidReason {
    /// The value is an object or an array, but one value is needed.
    #[error("is an object or an array")]
    NotAValue,
    /// The value of a key header is too long, counted without its quotes and escapes.
    #[error("is longer than 255 bytes")]
    KeyTooLong,
    /// Any other part is too long, counted after quotes and escapes are decoded.
    #[error("is longer than 4096 bytes")]
    TooLong,
    /// All parts together are too long. The parts of a batch are not counted.
    #[error("all parts together are longer than 65536 bytes")]
    AllTooLong,
    /// A JSON member occurs twice. JSON readers differ in which of the two they take.
    #[error("or a JSON member on the way to it occurs twice")]
    MemberTwice,
    /// Lines of a header, fields of a form or parameters of a query have different values.
    #[error("is given twice, with different values")]
    PartsDiffer,
    /// The selector reads a form, and `Content-Type` names a form and another kind of body.
    #[error("cannot be read: `Content-Type` names two kinds of body")]
    KindsDiffer,
    /// Bytes or escapes stand for no character.
    #[error("is not text")]
    NotText,
    /// The array has more items than a key may have parts.
    #[error("has more than 8192 items")]
    TooManyParts,
    /// Two key headers have different values.
    #[error("is given twice, with different values")]
    KeysDiffer,
    /// One header line holds the same value twice. Some proxies join two lines into one.
    #[error("repeats its value on one line")]
    KeyRepeated,
    /// The key holds whitespace, a control byte, or a byte beyond ASCII.
    #[error("is not visible ASCII")]
    KeyNotVisible,
    /// The key begins with a quote and is not a string of RFC 9651.
    #[error("is quoted and not a string of RFC 9651")]
    KeyQuoting,
}

impl MissingReason {
    /// Whether an optional part may be missing for this reason.
    pub(in crate::proxy) const fn is_allowed_if_optional(self) -> bool {
        match self {
            Self::Absent | Self::Blank | Self::NotJson | Self::NotAForm | Self::EmptyBody => true,
            Self::AbsentInSomeItems => false,
        }
    }
}

impl From<MissingReason> for Unread {
    fn from(reason: MissingReason) -> Self {
        Self::Missing(reason)
    }
}

impl From<InvalidReason> for Unread {
    fn from(reason: InvalidReason) -> Self {
        Self::Invalid(reason)
    }
}
