//! How senders write bytes as text.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::{
    GeneralPurpose, GeneralPurposeConfig, STANDARD, STANDARD_NO_PAD,
};
use base64::{alphabet, engine::DecodePaddingMode};

/// How a signature is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Encoding {
    /// Hexadecimal digits, of either case.
    #[default]
    Hex,
    /// Base64 with padding.
    Base64,
    /// Base64 with `-` and `_`, with or without padding.
    Base64Url,
    /// Hexadecimal digits if the text is that, else base64: for senders that do not say which.
    HexOrBase64,
}

/// Senders write it with padding and without.
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(
    &alphabet::URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

impl Encoding {
    pub(super) const EXPECTED: &'static str = "`hex`, `base64`, `base64url` or `hex-or-base64`";

    pub(super) fn read(text: &str) -> Option<Self> {
        match text {
            "hex" => Some(Self::Hex),
            "base64" => Some(Self::Base64),
            "base64url" => Some(Self::Base64Url),
            "hex-or-base64" => Some(Self::HexOrBase64),
            _ => None,
        }
    }

    /// The bytes. None if the text is not in this encoding.
    pub(super) fn decode(self, text: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Hex => hex::decode(text).ok(),
            Self::Base64 => STANDARD.decode(text).ok(),
            Self::Base64Url => URL_SAFE.decode(text).ok(),
            // Hexadecimal digits are digits of base64 too, so hexadecimal is tried first.
            Self::HexOrBase64 => Self::Hex.decode(text).or_else(|| Self::Base64.decode(text)),
        }
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Hex => "hexadecimal",
            Self::Base64 => "base64",
            Self::Base64Url => "base64url",
            Self::HexOrBase64 => "hexadecimal or base64",
        })
    }
}

/// The bytes of a key in base64, with or without padding: keys are copied by hand, and the padding
/// is easily lost.
pub(super) fn base64_key(text: &str) -> Option<Vec<u8>> {
    STANDARD_NO_PAD.decode(text.trim_end_matches('=')).ok()
}
