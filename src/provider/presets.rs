//! The built-in presets. Each is a table in the form of an operator's own `[providers.NAME]`.

/// A built-in table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// The name by which a route takes it.
    pub name: &'static str,
    /// The table, as `[providers.NAME]` would have it.
    pub toml: &'static str,
}

impl Preset {
    /// Whether the table has a signature.
    pub fn signs(&self) -> bool {
        let table: Result<toml::Table, _> = toml::from_str(self.toml);
        table.is_ok_and(|table| table.contains_key("signature"))
    }
}

/// The preset of this name, if there is one.
pub fn preset(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

/// All presets, sorted by name.
pub const fn presets() -> &'static [Preset] {
    PRESETS
}

const PRESETS: &[Preset] = &[
    Preset { name: "adyen", toml: include_str!("presets/adyen.toml") },
    Preset { name: "adyen-platform", toml: include_str!("presets/adyen-platform.toml") },
    Preset { name: "aftership", toml: include_str!("presets/aftership.toml") },
    Preset { name: "airwallex", toml: include_str!("presets/airwallex.toml") },
    Preset { name: "alchemy", toml: include_str!("presets/alchemy.toml") },
    Preset { name: "auth0", toml: include_str!("presets/auth0.toml") },
    Preset { name: "authorize-net", toml: include_str!("presets/authorize-net.toml") },
    Preset { name: "bigcommerce", toml: include_str!("presets/bigcommerce.toml") },
    Preset { name: "bitbucket", toml: include_str!("presets/bitbucket.toml") },
    Preset { name: "bitbucket-server", toml: include_str!("presets/bitbucket-server.toml") },
    Preset { name: "braintree", toml: include_str!("presets/braintree.toml") },
    Preset { name: "brevo", toml: include_str!("presets/brevo.toml") },
    Preset { name: "calendly", toml: include_str!("presets/calendly.toml") },
    Preset { name: "cashfree", toml: include_str!("presets/cashfree.toml") },
    Preset { name: "chargebee", toml: include_str!("presets/chargebee.toml") },
    Preset { name: "checkout", toml: include_str!("presets/checkout.toml") },
    Preset { name: "clickup", toml: include_str!("presets/clickup.toml") },
    Preset { name: "cloudevents", toml: include_str!("presets/cloudevents.toml") },
    Preset { name: "coinbase-commerce", toml: include_str!("presets/coinbase-commerce.toml") },
    Preset { name: "customerio", toml: include_str!("presets/customerio.toml") },
    Preset { name: "discord", toml: include_str!("presets/discord.toml") },
    Preset { name: "docusign", toml: include_str!("presets/docusign.toml") },
    Preset { name: "dropbox-sign", toml: include_str!("presets/dropbox-sign.toml") },
    Preset { name: "easypost", toml: include_str!("presets/easypost.toml") },
    Preset { name: "eventgrid", toml: include_str!("presets/eventgrid.toml") },
    Preset { name: "flutterwave", toml: include_str!("presets/flutterwave.toml") },
    Preset { name: "github", toml: include_str!("presets/github.toml") },
    Preset { name: "gitlab", toml: include_str!("presets/gitlab.toml") },
    Preset { name: "gocardless", toml: include_str!("presets/gocardless.toml") },
    Preset { name: "hubspot", toml: include_str!("presets/hubspot.toml") },
    Preset { name: "intercom", toml: include_str!("presets/intercom.toml") },
    Preset { name: "jira", toml: include_str!("presets/jira.toml") },
    Preset { name: "klarna", toml: include_str!("presets/klarna.toml") },
    Preset { name: "klaviyo", toml: include_str!("presets/klaviyo.toml") },
    Preset { name: "lemonsqueezy", toml: include_str!("presets/lemonsqueezy.toml") },
    Preset { name: "linear", toml: include_str!("presets/linear.toml") },
    Preset { name: "mailgun", toml: include_str!("presets/mailgun.toml") },
    Preset { name: "mailgun-form", toml: include_str!("presets/mailgun-form.toml") },
    Preset { name: "mercadopago", toml: include_str!("presets/mercadopago.toml") },
    Preset { name: "meta", toml: include_str!("presets/meta.toml") },
    Preset { name: "mollie", toml: include_str!("presets/mollie.toml") },
    Preset { name: "mollie-classic", toml: include_str!("presets/mollie-classic.toml") },
    Preset { name: "monday", toml: include_str!("presets/monday.toml") },
    Preset { name: "msgraph", toml: include_str!("presets/msgraph.toml") },
    Preset { name: "mux", toml: include_str!("presets/mux.toml") },
    Preset { name: "nmi", toml: include_str!("presets/nmi.toml") },
    Preset { name: "notion", toml: include_str!("presets/notion.toml") },
    Preset { name: "paddle", toml: include_str!("presets/paddle.toml") },
    Preset { name: "pagerduty", toml: include_str!("presets/pagerduty.toml") },
    Preset { name: "pandadoc", toml: include_str!("presets/pandadoc.toml") },
    Preset { name: "paypal", toml: include_str!("presets/paypal.toml") },
    Preset { name: "paystack", toml: include_str!("presets/paystack.toml") },
    Preset { name: "persona", toml: include_str!("presets/persona.toml") },
    Preset { name: "phonepe", toml: include_str!("presets/phonepe.toml") },
    Preset { name: "plaid", toml: include_str!("presets/plaid.toml") },
    Preset { name: "postmark", toml: include_str!("presets/postmark.toml") },
    Preset { name: "pubsub", toml: include_str!("presets/pubsub.toml") },
    Preset { name: "pubsub-unwrapped", toml: include_str!("presets/pubsub-unwrapped.toml") },
    Preset { name: "quickbooks", toml: include_str!("presets/quickbooks.toml") },
    Preset { name: "razorpay", toml: include_str!("presets/razorpay.toml") },
    Preset { name: "recurly", toml: include_str!("presets/recurly.toml") },
    Preset { name: "revenuecat", toml: include_str!("presets/revenuecat.toml") },
    Preset { name: "revolut", toml: include_str!("presets/revolut.toml") },
    Preset { name: "sendgrid", toml: include_str!("presets/sendgrid.toml") },
    Preset { name: "shopify", toml: include_str!("presets/shopify.toml") },
    Preset { name: "slack", toml: include_str!("presets/slack.toml") },
    Preset { name: "sns", toml: include_str!("presets/sns.toml") },
    Preset { name: "sns-raw", toml: include_str!("presets/sns-raw.toml") },
    Preset { name: "square", toml: include_str!("presets/square.toml") },
    Preset { name: "squarespace", toml: include_str!("presets/squarespace.toml") },
    Preset { name: "standard-webhooks", toml: include_str!("presets/standard-webhooks.toml") },
    Preset { name: "stripe", toml: include_str!("presets/stripe.toml") },
    Preset { name: "stripe-thin", toml: include_str!("presets/stripe-thin.toml") },
    Preset { name: "sumup", toml: include_str!("presets/sumup.toml") },
    Preset { name: "sumup-checkout", toml: include_str!("presets/sumup-checkout.toml") },
    Preset { name: "svix", toml: include_str!("presets/svix.toml") },
    Preset { name: "telegram", toml: include_str!("presets/telegram.toml") },
    Preset { name: "trello", toml: include_str!("presets/trello.toml") },
    Preset { name: "twilio", toml: include_str!("presets/twilio.toml") },
    Preset { name: "twitch", toml: include_str!("presets/twitch.toml") },
    Preset { name: "typeform", toml: include_str!("presets/typeform.toml") },
    Preset { name: "vercel", toml: include_str!("presets/vercel.toml") },
    Preset { name: "viva", toml: include_str!("presets/viva.toml") },
    Preset { name: "wise", toml: include_str!("presets/wise.toml") },
    Preset { name: "woocommerce", toml: include_str!("presets/woocommerce.toml") },
    Preset { name: "workos", toml: include_str!("presets/workos.toml") },
    Preset { name: "worldpay", toml: include_str!("presets/worldpay.toml") },
    Preset { name: "xendit", toml: include_str!("presets/xendit.toml") },
    Preset { name: "xero", toml: include_str!("presets/xero.toml") },
    Preset { name: "zendesk", toml: include_str!("presets/zendesk.toml") },
    Preset { name: "zendesk-trigger", toml: include_str!("presets/zendesk-trigger.toml") },
    Preset { name: "zoom", toml: include_str!("presets/zoom.toml") },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_sorted_and_each_file_is_one() {
        assert!(PRESETS.is_sorted_by(|one, next| one.name < next.name));
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/provider/presets");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        let mut named: Vec<String> =
            PRESETS.iter().map(|preset| format!("{}.toml", preset.name)).collect();
        named.sort();
        assert_eq!(files, named);
    }

    #[test]
    fn whether_a_preset_signs_is_in_its_table() {
        assert!(preset("stripe").unwrap().signs());
        assert!(!preset("cloudevents").unwrap().signs());
        assert!(Preset { name: "a", toml: "signature.scheme = \"hmac\"" }.signs());
        assert!(!Preset { name: "a", toml: "notes = \"\"\"\n[signature]\n\"\"\"" }.signs());
    }

    #[test]
    fn a_preset_is_found_by_its_exact_name() {
        assert_eq!(preset("stripe").unwrap().name, "stripe");
        assert_eq!(preset("Stripe"), None);
        assert_eq!(preset(""), None);
    }
}
