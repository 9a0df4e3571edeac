//! Adyen's standard webhooks: every item of the body carries a signature over eight of its members.
//! All items are checked (Adyen's own Python library looks at the first one only).

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::encoding::Encoding;
use super::keys::{Hash, Keyring, Method, Numbered, SecretForm};
use super::verdict::{Place, Reason, Refused, Verified};
use super::{SecretError, Signed};

/// Checks `additionalData.hmacSignature` of each item.
#[derive(Debug)]
pub(super) struct Check(Keyring);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(borrow)]
    notification_items: Vec<Envelope<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Envelope<'a> {
    #[serde(borrow)]
    notification_request_item: Item<'a>,
}

/// The members that are signed. One that occurs twice is refused by serde.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Item<'a> {
    #[serde(borrow)]
    psp_reference: Option<&'a RawValue>,
    #[serde(borrow)]
    original_reference: Option<&'a RawValue>,
    #[serde(borrow)]
    merchant_account_code: Option<&'a RawValue>,
    #[serde(borrow)]
    merchant_reference: Option<&'a RawValue>,
    #[serde(borrow)]
    amount: Option<Amount<'a>>,
    #[serde(borrow)]
    event_code: Option<&'a RawValue>,
    #[serde(borrow)]
    success: Option<&'a RawValue>,
    additional_data: Option<AdditionalData>,
}

#[derive(Deserialize)]
struct Amount<'a> {
    #[serde(borrow)]
    value: Option<&'a RawValue>,
    #[serde(borrow)]
    currency: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AdditionalData {
    hmac_signature: Option<String>,
}

/// No notification has as many.
const ITEMS_MAX: usize = 1000;

impl Check {
    pub(super) fn new(secrets: &[Numbered<'_>]) -> Result<Self, SecretError> {
        Keyring::new(Method::Hmac(Hash::Sha256), SecretForm::Hex, secrets).map(Self)
    }

    pub(super) fn verify(&self, signed: &Signed<'_>) -> Result<Verified, Refused> {
        let body: Body<'_> = serde_json::from_slice(signed.body)
            .map_err(|_| Reason::Body("JSON with `notificationItems` as Adyen writes it"))?;
        let items = body.notification_items;
        if items.is_empty() || items.len() > ITEMS_MAX {
            return Err(Reason::Body("a notification with 1 to 1000 items").into());
        }
        let mut verified = Verified { secret: 0 };
        for (index, Envelope { notification_request_item: item }) in items.iter().enumerate() {
            verified = self.verify_item(index, item)?;
        }
        Ok(verified)
    }

    fn verify_item(&self, index: usize, item: &Item<'_>) -> Result<Verified, Refused> {
        let place = Place::Member(format!(
            "/notificationItems/{index}/NotificationRequestItem/additionalData/hmacSignature"
        ));
        let written = item.additional_data.as_ref().and_then(|data| data.hmac_signature.as_ref());
        let written = written.filter(|text| !text.is_empty());
        let written = written.ok_or_else(|| Refused::Missing(place.clone()))?;
        let decoded = Encoding::Base64.decode(written.as_bytes());
        let signatures =
            [decoded.ok_or_else(|| Reason::Undecodable(place.clone(), Encoding::Base64))?];
        let message = item.message().ok_or(Reason::Body("one with plain values to sign"))?;
        let found = self.0.find(&[message.as_bytes()], &signatures);
        Ok(found.ok_or(Reason::Mismatch(place))?)
    }
}

impl Item<'_> {
    /// The eight values with `:` between them. What is missing is empty, nothing is escaped.
    fn message(&self) -> Option<String> {
        let amount = self.amount.as_ref();
        let values = [
            self.psp_reference,
            self.original_reference,
            self.merchant_account_code,
            self.merchant_reference,
            amount.and_then(|amount| amount.value),
            amount.and_then(|amount| amount.currency),
            self.event_code,
            self.success,
        ];
        let texts = values.into_iter().map(|raw| raw.map_or(Some(String::new()), plain));
        texts.collect::<Option<Vec<_>>>().map(|texts| texts.join(":"))
    }
}

/// The text of a string, or a number or a word as it is written. None for tables and lists.
fn plain(raw: &RawValue) -> Option<String> {
    match raw.get().as_bytes().first()? {
        b'"' => serde_json::from_str(raw.get()).ok(),
        b'{' | b'[' => None,
        b'n' => Some(String::new()),
        _ => serde_json::from_str::<IgnoredAny>(raw.get()).is_ok().then(|| raw.get().to_owned()),
    }
}
