//! A signature table as it is written, and its one crossing into [`Settings`].

use std::time::Duration;

use http::HeaderName;
use serde::Deserialize;

use super::encoding::Encoding;
use super::keys::{Hash, Method, SecretForm};
use super::part::{Part, TimestampSource};
use super::settings::{Detached, Scheme, Settings, Token};
use super::timestamp::TimestampFormat;

/// `[providers.NAME.signature]`, nothing of it looked at yet.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a table such as `{ scheme = \"hmac\", header = \"..\" }`"
)]
pub struct Written {
    /// How it is checked.
    pub scheme: Option<String>,
    /// The header with the signature or token.
    pub header: Option<String>,
    /// What stands before a signature.
    pub prefix: Option<String>,
    /// What separates the entries of a list.
    pub separator: Option<String>,
    /// Whether the header may occur more than once, each with a signature.
    pub repeated: Option<bool>,
    /// How a signature is written.
    pub encoding: Option<String>,
    /// The hash of an HMAC.
    pub hash: Option<String>,
    /// The parts that are signed, in their order.
    pub signed: Option<Vec<String>>,
    /// Where the timestamp stands.
    pub timestamp: Option<String>,
    /// How the timestamp is written.
    pub timestamp_format: Option<String>,
    /// How far the timestamp may be from now.
    pub tolerance: Option<String>,
    /// What the text of a secret means.
    pub secret: Option<String>,
    /// What is checked where the header does not occur.
    pub otherwise: Option<Box<Self>>,
}

/// A value that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{key}`: expected {expected}, found {found}")]
pub struct Mistake {
    /// Below the signature table: `header`, `otherwise.scheme`.
    pub key: String,
    /// What may stand there.
    pub expected: String,
    /// What does.
    pub found: String,
}

const SCHEMES: &str = "`hmac`, `ed25519`, `ecdsa-p256`, `token`, `standard-webhooks`, `twilio`, \
                       `hubspot`, `adyen-items`, `braintree`, `mailgun`, `paypal` or `sns`";
/// A sender changed its scheme once, perhaps twice.
const ALTERNATIVES_MAX: usize = 4;

impl Written {
    /// What the table means.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn settings(self) -> Result<Settings, Vec<Mistake>> {
        let mut reader = Reader { at: String::new(), mistakes: Vec::new() };
        let settings = reader.settings(self, ALTERNATIVES_MAX);
        settings.filter(|_| reader.mistakes.is_empty()).ok_or(reader.mistakes)
    }
}

/// Notes what is wrong and goes on.
struct Reader {
    at: String,
    mistakes: Vec<Mistake>,
}

impl Reader {
    fn settings(&mut self, mut written: Written, depth: usize) -> Option<Settings> {
        let otherwise = written.otherwise.take();
        let scheme = self.scheme(&mut written);
        self.refuse_rest(&written);
        let otherwise = match otherwise {
            Some(_) if depth <= 1 => {
                self.wrong("otherwise", "fewer alternatives", "one more".to_owned());
                None
            }
            Some(otherwise) => {
                self.at.push_str("otherwise.");
                self.settings(*otherwise, depth - 1).map(Box::new)
            }
            None => None,
        };
        Some(Settings { scheme: scheme?, otherwise })
    }

    fn scheme(&mut self, written: &mut Written) -> Option<Scheme> {
        let Some(name) = written.scheme.take() else {
            self.wrong("scheme", SCHEMES, "nothing".to_owned());
            return None;
        };
        match name.as_str() {
            "hmac" => {
                let hash = written.hash.take();
                let hash = self.word("hash", hash, Hash::EXPECTED, Hash::read);
                self.detached(written, Method::Hmac(hash.unwrap_or_default()))
            }
            "ed25519" => self.detached(written, Method::Ed25519),
            "ecdsa-p256" => self.detached(written, Method::EcdsaP256),
            "token" => {
                let header = self.header(written);
                let prefix = written.prefix.take().unwrap_or_default();
                let encoding = self.encoding(written);
                header.map(|header| Scheme::Token(Token { header, prefix, encoding }))
            }
            "standard-webhooks" => {
                Some(Scheme::StandardWebhooks { tolerance: self.tolerance(written) })
            }
            "hubspot" => Some(Scheme::HubSpot { tolerance: self.tolerance(written) }),
            "mailgun" => Some(Scheme::Mailgun { tolerance: self.tolerance(written) }),
            "paypal" => Some(Scheme::PayPal { tolerance: self.tolerance(written) }),
            "sns" => Some(Scheme::Sns { tolerance: self.tolerance(written) }),
            "twilio" => Some(Scheme::Twilio),
            "adyen-items" => Some(Scheme::AdyenItems),
            "braintree" => Some(Scheme::Braintree),
            _ => {
                self.wrong("scheme", SCHEMES, quoted(&name));
                // Whatever else stands there may be right for what was meant.
                *written = Written::default();
                None
            }
        }
    }

    fn detached(&mut self, written: &mut Written, method: Method) -> Option<Scheme> {
        let header = self.header(written);
        let prefix = written.prefix.take().unwrap_or_default();
        let separator = written.separator.take().and_then(|text| self.separator(&text));
        let repeated = written.repeated.take().unwrap_or(false);
        let encoding = self.encoding(written).unwrap_or_default();
        let signed = written.signed.take().map_or_else(|| vec![Part::Body], |s| self.parts(s));
        let timestamp = written.timestamp.take();
        let timestamp =
            self.word("timestamp", timestamp, TimestampSource::EXPECTED, TimestampSource::read);
        let format = written.timestamp_format.take();
        let format =
            self.word("timestamp_format", format, TimestampFormat::EXPECTED, TimestampFormat::read);
        let tolerance = self.tolerance(written);
        let secret = written.secret.take();
        let secret = self.word("secret", secret, SecretForm::EXPECTED, SecretForm::read);
        let detached = Detached {
            method,
            header: header?,
            prefix,
            separator,
            repeated,
            encoding,
            signed,
            timestamp,
            timestamp_format: format.unwrap_or_default(),
            tolerance,
            secret: secret.unwrap_or(method.usual_secret()),
        };
        self.check_detached(&detached);
        Some(Scheme::Detached(detached))
    }

    /// What contradicts itself.
    fn check_detached(&mut self, detached: &Detached) {
        let covers_body = detached.signed.contains(&Part::Body);
        if !covers_body {
            self.wrong("signed", "a list with `body`", "one without".to_owned());
        }
        let no_timestamp = detached.timestamp.is_none();
        if no_timestamp && detached.signed.contains(&Part::Timestamp) {
            self.wrong("timestamp", TimestampSource::EXPECTED, "nothing".to_owned());
        }
        if no_timestamp && detached.tolerance.is_some() {
            self.wrong("tolerance", "a `timestamp` beside it", "none".to_owned());
        }
        if detached.separator.is_none()
            && matches!(detached.timestamp, Some(TimestampSource::Entry(_)))
        {
            self.wrong("separator", "a character between the entries", "nothing".to_owned());
        }
        let outside = match detached.timestamp {
            Some(TimestampSource::Header(_) | TimestampSource::Entry(_)) => true,
            Some(TimestampSource::Member(_)) | None => false,
        };
        if outside && !detached.signed.contains(&Part::Timestamp) {
            let expected = "a list with `timestamp`: one that is not signed says nothing";
            self.wrong("signed", expected, "one without".to_owned());
        }
    }

    fn parts(&mut self, written: Vec<String>) -> Vec<Part> {
        let parts = written
            .into_iter()
            .map(|text| self.word("signed", Some(text), Part::EXPECTED, Part::read));
        // One that cannot be read has been reported.
        parts.map(|part| part.unwrap_or(Part::Body)).collect()
    }

    fn header(&mut self, written: &mut Written) -> Option<HeaderName> {
        let Some(text) = written.header.take() else {
            self.wrong("header", "the name of a header", "nothing".to_owned());
            return None;
        };
        self.word("header", Some(text), "the name of a header", |text| text.parse().ok())
    }

    fn encoding(&mut self, written: &mut Written) -> Option<Encoding> {
        self.word("encoding", written.encoding.take(), Encoding::EXPECTED, Encoding::read)
    }

    fn separator(&mut self, text: &str) -> Option<u8> {
        match text.as_bytes() {
            [byte] if byte.is_ascii_punctuation() || *byte == b' ' => Some(*byte),
            _ => {
                self.wrong("separator", "one character such as `,`", quoted(text));
                None
            }
        }
    }

    fn tolerance(&mut self, written: &mut Written) -> Option<Duration> {
        let expected = "a duration such as `30s` or `5m`";
        self.word("tolerance", written.tolerance.take(), expected, duration)
    }

    fn word<T>(
        &mut self,
        key: &str,
        text: Option<String>,
        expected: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let text = text?;
        let value = read(&text);
        if value.is_none() {
            // People paste a secret where the word `secret` stands.
            let found = if key == "secret" { "another text".to_owned() } else { quoted(&text) };
            self.wrong(key, expected, found);
        }
        value
    }

    /// What was not taken has no meaning for the scheme.
    fn refuse_rest(&mut self, written: &Written) {
        let left = [
            ("header", written.header.is_some()),
            ("prefix", written.prefix.is_some()),
            ("separator", written.separator.is_some()),
            ("repeated", written.repeated.is_some()),
            ("encoding", written.encoding.is_some()),
            ("hash", written.hash.is_some()),
            ("signed", written.signed.is_some()),
            ("timestamp", written.timestamp.is_some()),
            ("timestamp_format", written.timestamp_format.is_some()),
            ("tolerance", written.tolerance.is_some()),
            ("secret", written.secret.is_some()),
        ];
        for (key, _) in left.into_iter().filter(|(_, is_left)| *is_left) {
            self.wrong(key, "nothing: this scheme has no such setting", "one".to_owned());
        }
    }

    fn wrong(&mut self, key: &str, expected: &str, found: String) {
        let key = format!("{}{key}", self.at);
        self.mistakes.push(Mistake { key, expected: expected.to_owned(), found });
    }
}

/// Whole seconds, minutes or hours.
fn duration(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_lowercase());
    let seconds = match text.get(digits.len()..)? {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return None,
    };
    let number: u32 = digits.parse().ok().filter(|_| !digits.starts_with('+'))?;
    Some(Duration::from_secs(u64::from(number) * seconds))
}

fn quoted(text: &str) -> String {
    const CHARS_MAX: usize = 60;
    let mut shown: String = text.chars().take(CHARS_MAX).flat_map(char::escape_debug).collect();
    if text.chars().count() > CHARS_MAX {
        shown.push('…');
    }
    format!("`{shown}`")
}
