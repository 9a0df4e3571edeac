//! Reads a [`SignatureTable`] into [`Settings`], and collects every mistake in it.

use std::time::Duration;

use http::HeaderName;

use super::encoding::Encoding;
use super::hubspot::Version;
use super::keys::{Algorithm, Hash, SecretForm};
use super::part::{Item, Part, Selector, TimestampSelector};
use super::prefix::Prefix;
use super::scheme::{BuiltIn, Detached, Scheme, SignatureAt, Token};
use super::settings::{Settings, SigningMethod};
use super::table::{Mistake, OneOrMany, SignatureTable};
use super::timestamp_format::TimestampFormat;
use super::{mailgun, plaid};
use crate::clock;

const SCHEMES: &str = "`hmac`, `ed25519`, `ecdsa-p256`, `rsa`, `token`, `standard-webhooks`, \
                       `twilio`, `hubspot`, `adyen-items`, `braintree`, `mailgun`, `paypal`, \
                       `plaid` or `sns`";
/// A sender has changed its scheme once, perhaps twice.
const ALTERNATIVES_MAX: usize = 4;
const SEPARATORS_MAX: usize = 4;

/// A scheme that the word in `scheme` stands for.
struct NamedScheme {
    /// Its name where one word stands for several schemes. None: the table's own name.
    name: Option<&'static str>,
    /// Whether it counts where `accept` is not given.
    counts: bool,
    scheme: Scheme,
}

impl SignatureTable {
    /// The settings that the table describes.
    ///
    /// # Errors
    /// All mistakes in the table.
    pub fn settings(self) -> Result<Settings, Vec<Mistake>> {
        let mut reader = TableReader::default();
        let settings = reader.settings(self);
        let mistakes = reader.into_mistakes();
        settings.filter(|_| mistakes.is_empty()).ok_or(mistakes)
    }
}

/// Reads tables. A mistake is noted, and reading goes on, so that an operator sees all of them at
/// once.
#[derive(Debug, Default)]
pub(super) struct TableReader {
    at: String,
    mistakes: Vec<Mistake>,
}

impl TableReader {
    pub(super) fn settings(&mut self, mut written: SignatureTable) -> Option<Settings> {
        let accept = written.accept.take();
        let mut methods = self.methods(written, ALTERNATIVES_MAX);
        self.at.clear();
        if let Some(accept) = accept {
            let known: Vec<String> =
                methods.iter().map(|method| format!("`{}`", method.name)).collect();
            let known = format!("names among {}", known.join(", "));
            if accept.is_empty() {
                self.wrong("accept", &known, "none".to_owned());
            }
            for name in &accept {
                if !methods.iter().any(|method| method.name == *name) && !methods.is_empty() {
                    self.wrong("accept", &known, quoted(name));
                }
            }
            for method in &mut methods {
                method.accepted = accept.contains(&method.name);
            }
        }
        (!methods.is_empty()).then_some(Settings { methods })
    }

    pub(super) fn into_mistakes(self) -> Vec<Mistake> {
        self.mistakes
    }

    fn methods(&mut self, mut written: SignatureTable, depth: usize) -> Vec<SigningMethod> {
        let otherwise = written.otherwise.take();
        let name = written.name.take().or_else(|| written.scheme.clone()).unwrap_or_default();
        let carries = self.carries(&mut written);
        let schemes = self.schemes(&mut written);
        self.refuse_rest(&written);
        let method_of = |named: NamedScheme| SigningMethod {
            name: named.name.map_or_else(|| name.clone(), str::to_owned),
            scheme: named.scheme,
            carries: carries.clone(),
            accepted: named.counts,
        };
        let mut methods: Vec<SigningMethod> = schemes.into_iter().map(method_of).collect();
        match otherwise {
            Some(_) if depth <= 1 => {
                self.wrong("otherwise", "fewer alternatives", "one more".to_owned());
            }
            Some(otherwise) => {
                self.at.push_str("otherwise.");
                methods.extend(self.methods(*otherwise, depth - 1));
            }
            None => {}
        }
        methods
    }

    fn schemes(&mut self, written: &mut SignatureTable) -> Vec<NamedScheme> {
        let Some(name) = written.scheme.take() else {
            self.wrong("scheme", SCHEMES, "nothing".to_owned());
            return Vec::new();
        };
        match name.as_str() {
            "hubspot" => {
                let tolerance = self.tolerance(written);
                // The older versions sign no time. Whoever has seen one request could leave out its
                // newer signature, and send it again for ever.
                let named = |name, version, counts| NamedScheme {
                    name: Some(name),
                    counts,
                    scheme: Scheme::BuiltIn(BuiltIn::HubSpot { version, tolerance }),
                };
                vec![
                    named("v3", Version::Third, true),
                    named("v2", Version::Second, false),
                    named("v1", Version::First, false),
                ]
            }
            "mailgun" => {
                let tolerance = self.tolerance(written);
                let named = |name, prefix: &str| {
                    let scheme = mailgun::scheme(prefix, tolerance)?;
                    Some(NamedScheme { name: Some(name), counts: true, scheme })
                };
                [named("json", "json:/signature/"), named("form", "form:")]
                    .into_iter()
                    .flatten()
                    .collect()
            }
            _ => {
                let scheme = self.scheme(&name, written);
                scheme
                    .map(|scheme| NamedScheme { name: None, counts: true, scheme })
                    .into_iter()
                    .collect()
            }
        }
    }

    fn scheme(&mut self, name: &str, written: &mut SignatureTable) -> Option<Scheme> {
        match name {
            "hmac" => {
                let hash = written.hash.take();
                let hash = self.word("hash", hash, Hash::EXPECTED, Hash::read);
                self.detached(written, Algorithm::Hmac(hash.unwrap_or_default()))
            }
            "ed25519" => self.detached(written, Algorithm::Ed25519),
            "ecdsa-p256" => self.detached(written, Algorithm::EcdsaP256),
            "rsa" => {
                let hash = written.hash.take();
                let hash = self.word("hash", hash, Hash::OF_RSA, Hash::read_of_rsa);
                self.detached(written, Algorithm::Rsa(hash.unwrap_or_default()))
            }
            "token" => {
                let headers = self.headers(written);
                let prefix = written.prefix.take().unwrap_or_default();
                let encoding = self.encoding(written);
                headers.map(|headers| Scheme::Token(Token { headers, prefix, encoding }))
            }
            "standard-webhooks" => {
                let tolerance = self.tolerance(written);
                let secret = written.secret.take();
                let prefixed = self.word("secret", secret, "`prefixed`", |text| {
                    (text == "prefixed").then_some(true)
                });
                let prefixed = prefixed.unwrap_or(false);
                Some(Scheme::BuiltIn(BuiltIn::StandardWebhooks { tolerance, prefixed }))
            }
            "paypal" => {
                Some(Scheme::BuiltIn(BuiltIn::PayPal { tolerance: self.tolerance(written) }))
            }
            "plaid" => {
                let url =
                    self.word("url", written.url.take(), plaid::URL_EXPECTED, plaid::read_url);
                let url = url.unwrap_or_else(|| plaid::PRODUCTION.to_owned());
                Some(Scheme::BuiltIn(BuiltIn::Plaid { url, tolerance: self.tolerance(written) }))
            }
            "sns" => Some(Scheme::BuiltIn(BuiltIn::Sns { tolerance: self.tolerance(written) })),
            "twilio" => Some(Scheme::BuiltIn(BuiltIn::Twilio)),
            "adyen-items" => Some(Scheme::BuiltIn(BuiltIn::AdyenItems)),
            "braintree" => Some(Scheme::BuiltIn(BuiltIn::Braintree)),
            _ => {
                self.wrong("scheme", SCHEMES, quoted(name));
                // The rest of the table may be right for the scheme that was meant.
                *written = SignatureTable::default();
                None
            }
        }
    }

    fn detached(&mut self, written: &mut SignatureTable, algorithm: Algorithm) -> Option<Scheme> {
        let at = self.signature_at(written);
        let prefix = written.prefix.take();
        let prefix = self.word("prefix", prefix, Prefix::EXPECTED, Prefix::read);
        let separators = written.separator.take().map(|text| self.separators(&text));
        let repeated = written.repeated.take().unwrap_or(false);
        let encoding = self.encoding(written);
        let signed = written.signed.take();
        let signed = signed.map_or_else(|| vec![Item::One(Part::Body)], |it| self.items(it));
        let document = self.document(written);
        let json_body = self
            .word("body", written.body.take(), "`json`", |text| (text == "json").then_some(true));
        let timestamp = written.timestamp.take();
        let timestamp =
            self.word("timestamp", timestamp, TimestampSelector::EXPECTED, TimestampSelector::read);
        let format = written.timestamp_format.take();
        let format =
            self.word("timestamp_format", format, TimestampFormat::EXPECTED, TimestampFormat::read);
        let tolerance = self.tolerance(written);
        let secret = written.secret.take();
        let secret = self.word("secret", secret, SecretForm::EXPECTED, SecretForm::read);
        let known = written.covers_body.take() == Some(false);
        let detached = Detached {
            algorithm,
            at: at?,
            prefix: prefix.unwrap_or_default(),
            separators: separators.unwrap_or_default(),
            repeated,
            encoding: encoding.unwrap_or(algorithm.usual_encoding()),
            signed,
            document,
            json_body: json_body.unwrap_or(false),
            timestamp,
            timestamp_format: format.unwrap_or_default(),
            tolerance,
            secret: secret.unwrap_or(algorithm.usual_secret()),
        };
        self.check_detached(&detached, known);
        Some(Scheme::Detached(detached))
    }

    /// Notes settings that contradict each other.
    fn check_detached(&mut self, detached: &Detached, body_known_unsigned: bool) {
        // Without the body in it, a signature says nothing of the event. An operator has to say
        // that this is known.
        let covers_body = detached.signs(&Part::Body);
        if !covers_body && !body_known_unsigned {
            let expected = "a list with `body`, or `covers_body = false` beside it";
            self.wrong("signed", expected, "one without".to_owned());
        }
        if covers_body && body_known_unsigned {
            self.wrong("covers_body", "a list without `body`", "one with it".to_owned());
        }
        let no_timestamp = detached.timestamp.is_none();
        let stamped = detached.signed.iter().any(|item| item.parts().contains(&Part::Timestamp));
        if no_timestamp && stamped {
            self.wrong("timestamp", TimestampSelector::EXPECTED, "nothing".to_owned());
        }
        if no_timestamp && detached.tolerance.is_some() {
            self.wrong("tolerance", "a `timestamp` beside it", "none".to_owned());
        }
        // An entry is one of several, so something has to separate them.
        let entry = matches!(detached.timestamp, Some(TimestampSelector::Entry(_)));
        if entry && detached.separators.is_empty() {
            self.wrong("separator", "a character between the entries", "nothing".to_owned());
        }
        // Anybody could write a new time into a captured request where the time is not signed.
        let signed = match &detached.timestamp {
            None => true,
            Some(TimestampSelector::Entry(_)) => false,
            Some(TimestampSelector::Value(
                selector @ (Selector::Member(_) | Selector::Field(_)),
            )) => covers_body || detached.signs(&Part::Value(selector.clone())),
            Some(TimestampSelector::Value(selector)) => {
                detached.signs(&Part::Value(selector.clone()))
            }
        };
        if !signed && !detached.signs(&Part::Timestamp) {
            let expected = "a list with `timestamp`: one that is not signed says nothing";
            self.wrong("signed", expected, "one without".to_owned());
        }
    }

    fn items(&mut self, written: Vec<OneOrMany>) -> Vec<Item> {
        let mut part = |text: String| {
            // A part that cannot be read has been noted as a mistake, so what stands for it is
            // never used.
            self.word("signed", Some(text), Part::EXPECTED, Part::read).unwrap_or(Part::Body)
        };
        let mut item = |written: OneOrMany| match written {
            OneOrMany::One(text) => Item::One(part(text)),
            OneOrMany::Many(texts) => Item::Together(texts.into_iter().map(&mut part).collect()),
        };
        written.into_iter().map(&mut item).collect()
    }

    fn signature_at(&mut self, written: &mut SignatureTable) -> Option<SignatureAt> {
        match (written.at.take(), &written.header) {
            (Some(text), None) => {
                let selector = self.word("at", Some(text), Selector::EXPECTED, Selector::read);
                selector.map(SignatureAt::Value)
            }
            (Some(_), Some(_)) => {
                written.header = None;
                self.wrong("at", "nothing beside `header`", "both".to_owned());
                None
            }
            (None, _) => self.headers(written).map(SignatureAt::Headers),
        }
    }

    fn headers(&mut self, written: &mut SignatureTable) -> Option<Vec<HeaderName>> {
        let expected = "the name of a header";
        let names = written.header.take().map(OneOrMany::into_all).unwrap_or_default();
        if names.is_empty() {
            self.wrong("header", expected, "nothing".to_owned());
            return None;
        }
        let mut read =
            |name: String| self.word("header", Some(name), expected, |text| text.parse().ok());
        names.into_iter().map(&mut read).collect()
    }

    fn carries(&mut self, written: &mut SignatureTable) -> Vec<(String, Vec<Selector>)> {
        let mut read = |(name, selectors): (String, OneOrMany)| {
            let read = |text| self.word("carries", Some(text), Selector::EXPECTED, Selector::read);
            (name, selectors.into_all().into_iter().filter_map(read).collect())
        };
        written.carries.take().unwrap_or_default().into_iter().map(&mut read).collect()
    }

    fn document(&mut self, written: &mut SignatureTable) -> Option<String> {
        let text = written.document.take().filter(|text| text != "body");
        self.word("document", text, "`body` or `form:FIELD`", |text| {
            text.strip_prefix("form:").filter(|name| !name.is_empty()).map(str::to_owned)
        })
    }

    fn encoding(&mut self, written: &mut SignatureTable) -> Option<Encoding> {
        self.word("encoding", written.encoding.take(), Encoding::EXPECTED, Encoding::read)
    }

    fn separators(&mut self, text: &str) -> Vec<u8> {
        let is_one = |byte: u8| byte.is_ascii_punctuation() || byte == b' ';
        if text.is_empty() || text.len() > SEPARATORS_MAX || !text.bytes().all(is_one) {
            self.wrong("separator", "one character such as `,`, or a few", quoted(text));
        }
        text.as_bytes().to_vec()
    }

    fn tolerance(&mut self, written: &mut SignatureTable) -> Option<Duration> {
        let expected = "a duration such as `30s`, `5m` or `2d`";
        self.word("tolerance", written.tolerance.take(), expected, clock::parse_duration)
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
            // People paste the secret itself behind `secret`. It must not be repeated in a message.
            let found = if key == "secret" { "another text".to_owned() } else { quoted(&text) };
            self.wrong(key, expected, found);
        }
        value
    }

    /// Notes what was not taken from the table: it has no meaning for the scheme.
    fn refuse_rest(&mut self, written: &SignatureTable) {
        for key in written.remaining_keys() {
            self.wrong(key, "nothing: this scheme has no such setting", "one".to_owned());
        }
    }

    fn wrong(&mut self, key: &str, expected: &str, found: String) {
        let key = format!("{}{key}", self.at);
        self.mistakes.push(Mistake { key, expected: expected.to_owned(), found });
    }
}

fn quoted(text: &str) -> String {
    const CHARS_MAX: usize = 60;
    let mut shown: String = text.chars().take(CHARS_MAX).flat_map(char::escape_debug).collect();
    if text.chars().count() > CHARS_MAX {
        shown.push('…');
    }
    format!("`{shown}`")
}
