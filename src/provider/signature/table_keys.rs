//! The keys of a signature table that each scheme takes, for messages.

/// The keys that every scheme takes.
const ALL: [&str; 5] = ["scheme", "name", "accept", "carries", "otherwise"];

/// The keys of a signature over parts of the request.
const DETACHED: [&str; 14] = [
    "header",
    "at",
    "prefix",
    "separator",
    "repeated",
    "encoding",
    "signed",
    "covers_body",
    "body",
    "document",
    "timestamp",
    "timestamp_format",
    "tolerance",
    "secret",
];

/// The keys that a table of this scheme may have. None: there is no such scheme.
pub fn keys_of(scheme: &str) -> Option<Vec<&'static str>> {
    let own: &[&str] = match scheme {
        "hmac" | "rsa" => &["hash"],
        "token" => &["header", "prefix", "encoding"],
        "standard-webhooks" => &["tolerance", "secret"],
        "paypal" | "sns" | "hubspot" | "mailgun" => &["tolerance"],
        "plaid" => &["url", "tolerance"],
        "ed25519" | "ecdsa-p256" | "twilio" | "adyen-items" | "braintree" => &[],
        _ => return None,
    };
    let is_detached = matches!(scheme, "hmac" | "rsa" | "ed25519" | "ecdsa-p256");
    let detached: &[&str] = if is_detached { &DETACHED } else { &[] };
    Some([&ALL, detached, own].concat())
}
