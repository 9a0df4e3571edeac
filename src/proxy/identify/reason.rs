//! Why a request has no identity. No sentence here holds anything of the request.

/// Why a request has no identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IdentifyError {
    /// 400 `key-missing`.
    #[error("no idempotency key: {0}")]
    Missing(MissingReason),
    /// 400 `key-invalid`.
    #[error("unusable idempotency key: {0}")]
    Invalid(InvalidReason),
}

/// Why there is no key, or not all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum MissingReason {
    /// What a selector names is not in the request.
    #[error("a part of it is absent")]
    Absent,
    /// It is there and says nothing: null, empty, or nothing but whitespace.
    #[error("a part of it is null, empty or blank")]
    Blank,
    /// Not every item of the array has it. A key made of the others could be that of another event.
    #[error("a part of it is absent in some of the items")]
    AbsentInSomeItems,
    /// A selector reads JSON, the body is something else.
    #[error("the body is not JSON in UTF-8")]
    NotJson,
    /// A selector reads a form, the request does not say that the body is one.
    #[error("the body is not `application/x-www-form-urlencoded`")]
    NotAForm,
    /// The key would be the body's digest. All empty bodies have the same.
    #[error("the body is empty")]
    EmptyBody,
}

/// Why what is there cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum InvalidReason {
    /// An object or an array where one value is needed.
    #[error("a part of it is an object or an array")]
    NotAValue,
    /// More than 255 bytes, counted after quotes and escapes are decoded.
    #[error("it or a part of it is longer than 255 bytes")]
    TooLong,
    /// Readers disagree about which member is meant.
    #[error("a JSON member on the way to a part of it occurs twice")]
    MemberTwice,
    /// Lines of a header, fields of a form or parameters of a query that differ.
    #[error("a part of it is given twice, with different values")]
    PartsDiffer,
    /// Bytes or escapes that stand for no character.
    #[error("a part of it is not text")]
    NotText,
    /// More items than a key may have parts.
    #[error("it has too many parts")]
    TooManyParts,
    /// Two key headers that differ.
    #[error("two key headers differ")]
    KeysDiffer,
    /// One header line with the same value again, as some proxies join two lines into one.
    #[error("a key header repeats its value on one line")]
    KeyRepeated,
    /// Whitespace within, a control byte, or a byte beyond ASCII.
    #[error("a key header is not visible ASCII")]
    KeyNotVisible,
    /// It begins with a quote and is no string of RFC 9651.
    #[error("a quoted key header is not a string of RFC 9651")]
    KeyQuoting,
}

impl IdentifyError {
    /// The code of the refusal.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Missing(_) => "key-missing",
            Self::Invalid(_) => "key-invalid",
        }
    }
}

impl MissingReason {
    /// Whether a part that may be absent may be missing for this reason.
    pub(in crate::proxy) const fn is_excused(self) -> bool {
        match self {
            Self::Absent | Self::Blank | Self::NotJson | Self::NotAForm => true,
            Self::AbsentInSomeItems | Self::EmptyBody => false,
        }
    }
}

impl From<MissingReason> for IdentifyError {
    fn from(reason: MissingReason) -> Self {
        Self::Missing(reason)
    }
}

impl From<InvalidReason> for IdentifyError {
    fn from(reason: InvalidReason) -> Self {
        Self::Invalid(reason)
    }
}
