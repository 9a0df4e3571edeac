//! The one crossing from a [`Written`] table into [`Settings`].

use std::time::Duration;

use http::HeaderName;

use super::encoding::Encoding;
use super::hubspot::Version;
use super::keys::{Hash, Method, SecretForm};
use super::part::{Item, Part, Source, TimestampSource};
use super::prefix::Prefix;
use super::settings::{Detached, Scheme, Settings, SignatureAt, Token, Way};
use super::timestamp::TimestampFormat;
use super::written::{Mistake, OneOrMany, Written};
use super::{mailgun, plaid};
use crate::clock;

const SCHEMES: &str = "`hmac`, `ed25519`, `ecdsa-p256`, `rsa`, `token`, `standard-webhooks`, \
                       `twilio`, `hubspot`, `adyen-items`, `braintree`, `mailgun`, `paypal`, \
                       `plaid` or `sns`";
/// A sender changed its scheme once, perhaps twice.
const ALTERNATIVES_MAX: usize = 4;
const SEPARATORS_MAX: usize = 4;

/// A scheme that a word stands for.
struct Named {
    /// Where one word stands for several; else the table's own name.
    name: Option<&'static str>,
    /// Whether it counts where `accept` is not given.
    counts: bool,
    scheme: Scheme,
}

/// Notes what is wrong and goes on.
#[derive(Debug, Default)]
pub(super) struct Reader {
    at: String,
    mistakes: Vec<Mistake>,
}

impl Reader {
    pub(super) fn settings(&mut self, mut written: Written) -> Option<Settings> {
        let accept = written.accept.take();
        let mut ways = self.ways(written, ALTERNATIVES_MAX);
        self.at.clear();
        if let Some(accept) = accept {
            let known: Vec<String> = ways.iter().map(|way| format!("`{}`", way.name)).collect();
            let known = format!("names among {}", known.join(", "));
            if accept.is_empty() {
                self.wrong("accept", &known, "none".to_owned());
            }
            for name in &accept {
                if !ways.iter().any(|way| way.name == *name) && !ways.is_empty() {
                    self.wrong("accept", &known, quoted(name));
                }
            }
            for way in &mut ways {
                way.accepted = accept.contains(&way.name);
            }
        }
        (!ways.is_empty()).then_some(Settings { ways })
    }

    pub(super) fn into_mistakes(self) -> Vec<Mistake> {
        self.mistakes
    }

    fn ways(&mut self, mut written: Written, depth: usize) -> Vec<Way> {
        let otherwise = written.otherwise.take();
        let name = written.name.take().or_else(|| written.scheme.clone()).unwrap_or_default();
        let carries = self.carries(&mut written);
        let schemes = self.schemes(&mut written);
        self.refuse_rest(&written);
        let way = |named: Named| Way {
            name: named.name.map_or_else(|| name.clone(), str::to_owned),
            scheme: named.scheme,
            carries: carries.clone(),
            accepted: named.counts,
        };
        let mut ways: Vec<Way> = schemes.into_iter().map(way).collect();
        match otherwise {
            Some(_) if depth <= 1 => {
                self.wrong("otherwise", "fewer alternatives", "one more".to_owned());
            }
            Some(otherwise) => {
                self.at.push_str("otherwise.");
                ways.extend(self.ways(*otherwise, depth - 1));
            }
            None => {}
        }
        ways
    }

    fn schemes(&mut self, written: &mut Written) -> Vec<Named> {
        let Some(name) = written.scheme.take() else {
            self.wrong("scheme", SCHEMES, "nothing".to_owned());
            return Vec::new();
        };
        match name.as_str() {
            "hubspot" => {
                let tolerance = self.tolerance(written);
                // The older ones say nothing of the time: who has seen a request could leave out
                // the newer signature.
                let way = |name, version, counts| Named {
                    name: Some(name),
                    counts,
                    scheme: Scheme::HubSpot { version, tolerance },
                };
                vec![
                    way("v3", Version::Third, true),
                    way("v2", Version::Second, false),
                    way("v1", Version::First, false),
                ]
            }
            "mailgun" => {
                let tolerance = self.tolerance(written);
                let way = |name, prefix: &str| {
                    let scheme = mailgun::scheme(prefix, tolerance)?;
                    Some(Named { name: Some(name), counts: true, scheme })
                };
                [way("json", "json:/signature/"), way("form", "form:")]
                    .into_iter()
                    .flatten()
                    .collect()
            }
            _ => {
                let scheme = self.scheme(&name, written);
                scheme
                    .map(|scheme| Named { name: None, counts: true, scheme })
                    .into_iter()
                    .collect()
            }
        }
    }

    fn scheme(&mut self, name: &str, written: &mut Written) -> Option<Scheme> {
        match name {
            "hmac" => {
                let hash = written.hash.take();
                let hash = self.word("hash", hash, Hash::EXPECTED, Hash::read);
                self.detached(written, Method::Hmac(hash.unwrap_or_default()))
            }
            "ed25519" => self.detached(written, Method::Ed25519),
            "ecdsa-p256" => self.detached(written, Method::EcdsaP256),
            "rsa" => {
                let hash = written.hash.take();
                let hash = self.word("hash", hash, Hash::OF_RSA, Hash::read_of_rsa);
                self.detached(written, Method::Rsa(hash.unwrap_or_default()))
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
                Some(Scheme::StandardWebhooks { tolerance, prefixed })
            }
            "paypal" => Some(Scheme::PayPal { tolerance: self.tolerance(written) }),
            "plaid" => {
                let url =
                    self.word("url", written.url.take(), plaid::URL_EXPECTED, plaid::read_url);
                let url = url.unwrap_or_else(|| plaid::PRODUCTION.to_owned());
                Some(Scheme::Plaid { url, tolerance: self.tolerance(written) })
            }
            "sns" => Some(Scheme::Sns { tolerance: self.tolerance(written) }),
            "twilio" => Some(Scheme::Twilio),
            "adyen-items" => Some(Scheme::AdyenItems),
            "braintree" => Some(Scheme::Braintree),
            _ => {
                self.wrong("scheme", SCHEMES, quoted(name));
                // Whatever else stands there may be right for what was meant.
                *written = Written::default();
                None
            }
        }
    }

    fn detached(&mut self, written: &mut Written, method: Method) -> Option<Scheme> {
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
            self.word("timestamp", timestamp, TimestampSource::EXPECTED, TimestampSource::read);
        let format = written.timestamp_format.take();
        let format =
            self.word("timestamp_format", format, TimestampFormat::EXPECTED, TimestampFormat::read);
        let tolerance = self.tolerance(written);
        let secret = written.secret.take();
        let secret = self.word("secret", secret, SecretForm::EXPECTED, SecretForm::read);
        let known = written.covers_body.take() == Some(false);
        let detached = Detached {
            method,
            at: at?,
            prefix: prefix.unwrap_or_default(),
            separators: separators.unwrap_or_default(),
            repeated,
            encoding: encoding.unwrap_or(method.usual_encoding()),
            signed,
            document,
            json_body: json_body.unwrap_or(false),
            timestamp,
            timestamp_format: format.unwrap_or_default(),
            tolerance,
            secret: secret.unwrap_or(method.usual_secret()),
        };
        self.check_detached(&detached, known);
        Some(Scheme::Detached(detached))
    }

    /// What contradicts itself.
    fn check_detached(&mut self, detached: &Detached, body_known_unsigned: bool) {
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
            self.wrong("timestamp", TimestampSource::EXPECTED, "nothing".to_owned());
        }
        if no_timestamp && detached.tolerance.is_some() {
            self.wrong("tolerance", "a `timestamp` beside it", "none".to_owned());
        }
        let entry = matches!(detached.timestamp, Some(TimestampSource::Entry(_)));
        if entry && detached.separators.is_empty() {
            self.wrong("separator", "a character between the entries", "nothing".to_owned());
        }
        let signed = match &detached.timestamp {
            None => true,
            Some(TimestampSource::Entry(_)) => false,
            Some(TimestampSource::Value(source @ (Source::Member(_) | Source::Field(_)))) => {
                covers_body || detached.signs(&Part::Value(source.clone()))
            }
            Some(TimestampSource::Value(source)) => detached.signs(&Part::Value(source.clone())),
        };
        if !signed && !detached.signs(&Part::Timestamp) {
            let expected = "a list with `timestamp`: one that is not signed says nothing";
            self.wrong("signed", expected, "one without".to_owned());
        }
    }

    fn items(&mut self, written: Vec<OneOrMany>) -> Vec<Item> {
        let mut part = |text: String| {
            // One that cannot be read has been reported.
            self.word("signed", Some(text), Part::EXPECTED, Part::read).unwrap_or(Part::Body)
        };
        let mut item = |written: OneOrMany| match written {
            OneOrMany::One(text) => Item::One(part(text)),
            OneOrMany::Many(texts) => Item::Together(texts.into_iter().map(&mut part).collect()),
        };
        written.into_iter().map(&mut item).collect()
    }

    fn signature_at(&mut self, written: &mut Written) -> Option<SignatureAt> {
        match (written.at.take(), &written.header) {
            (Some(text), None) => {
                let source = self.word("at", Some(text), Source::EXPECTED, Source::read);
                source.map(SignatureAt::Value)
            }
            (Some(_), Some(_)) => {
                written.header = None;
                self.wrong("at", "nothing beside `header`", "both".to_owned());
                None
            }
            (None, _) => self.headers(written).map(SignatureAt::Headers),
        }
    }

    fn headers(&mut self, written: &mut Written) -> Option<Vec<HeaderName>> {
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

    fn carries(&mut self, written: &mut Written) -> Vec<(String, Vec<Source>)> {
        let mut read = |(name, sources): (String, OneOrMany)| {
            let read = |text| self.word("carries", Some(text), Source::EXPECTED, Source::read);
            (name, sources.into_all().into_iter().filter_map(read).collect())
        };
        written.carries.take().unwrap_or_default().into_iter().map(&mut read).collect()
    }

    fn document(&mut self, written: &mut Written) -> Option<String> {
        let text = written.document.take().filter(|text| text != "body");
        self.word("document", text, "`body` or `form:FIELD`", |text| {
            text.strip_prefix("form:").filter(|name| !name.is_empty()).map(str::to_owned)
        })
    }

    fn encoding(&mut self, written: &mut Written) -> Option<Encoding> {
        self.word("encoding", written.encoding.take(), Encoding::EXPECTED, Encoding::read)
    }

    fn separators(&mut self, text: &str) -> Vec<u8> {
        let is_one = |byte: u8| byte.is_ascii_punctuation() || byte == b' ';
        if text.is_empty() || text.len() > SEPARATORS_MAX || !text.bytes().all(is_one) {
            self.wrong("separator", "one character such as `,`, or a few", quoted(text));
        }
        text.as_bytes().to_vec()
    }

    fn tolerance(&mut self, written: &mut Written) -> Option<Duration> {
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
            // People paste a secret where the word `secret` stands.
            let found = if key == "secret" { "another text".to_owned() } else { quoted(&text) };
            self.wrong(key, expected, found);
        }
        value
    }

    /// What was not taken has no meaning for the scheme.
    fn refuse_rest(&mut self, written: &Written) {
        let left = [
            ("accept", written.accept.is_some()),
            ("header", written.header.is_some()),
            ("at", written.at.is_some()),
            ("prefix", written.prefix.is_some()),
            ("separator", written.separator.is_some()),
            ("repeated", written.repeated.is_some()),
            ("encoding", written.encoding.is_some()),
            ("hash", written.hash.is_some()),
            ("signed", written.signed.is_some()),
            ("covers_body", written.covers_body.is_some()),
            ("body", written.body.is_some()),
            ("document", written.document.is_some()),
            ("timestamp", written.timestamp.is_some()),
            ("timestamp_format", written.timestamp_format.is_some()),
            ("tolerance", written.tolerance.is_some()),
            ("url", written.url.is_some()),
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

fn quoted(text: &str) -> String {
    const CHARS_MAX: usize = 60;
    let mut shown: String = text.chars().take(CHARS_MAX).flat_map(char::escape_debug).collect();
    if text.chars().count() > CHARS_MAX {
        shown.push('…');
    }
    format!("`{shown}`")
}
