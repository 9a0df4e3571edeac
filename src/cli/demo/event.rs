//! Events in the documented shape of five senders, and one of a sender of your own. Names, ids and
//! amounts are invented.

/// One event, of which copies are sent.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) path: &'static str,
    pub(super) headers: &'static [(&'static str, &'static str)],
    pub(super) body: &'static str,
    /// The id that the sample upstream counts it by.
    pub(super) id: &'static str,
}

pub(super) const STRIPE: Event = Event {
    path: "/webhooks/stripe",
    headers: &[],
    body: include_str!("../../../tests/fixtures/events/stripe.json"),
    id: "evt_1Qonce4Hd0Zk2xWm7Yt3Lp9a",
};

pub(super) const GITHUB: Event = Event {
    path: "/webhooks/github",
    headers: &[
        ("x-github-event", "push"),
        ("x-github-hook-id", "480100200"),
        ("x-github-delivery", "0c8f2b7e-2dc4-11f1-9a55-7f1d3e9b6c20"),
    ],
    body: include_str!("../../../tests/fixtures/events/github.json"),
    id: "0c8f2b7e-2dc4-11f1-9a55-7f1d3e9b6c20",
};

pub(super) const SHOPIFY: Event = Event {
    path: "/webhooks/shopify",
    headers: &[
        ("x-shopify-topic", "orders/paid"),
        ("x-shopify-shop-domain", "example-shop.myshopify.com"),
        ("x-shopify-webhook-id", "6f0a1d3c-8b57-4e2f-a9c4-d1e5b7082f36"),
        ("x-shopify-event-id", "b3e9c8f4-17d2-4a60-8e5b-90c7a2d6f158"),
        ("x-shopify-api-version", "2026-01"),
        ("x-shopify-triggered-at", "2026-04-01T12:21:41.907Z"),
    ],
    body: include_str!("../../../tests/fixtures/events/shopify.json"),
    id: "6f0a1d3c-8b57-4e2f-a9c4-d1e5b7082f36",
};

pub(super) const PAYPAL: Event = Event {
    path: "/webhooks/paypal",
    headers: &[("paypal-transmission-id", "a1f3c7d0-2dc4-11f1-b2e6-5d9c04e87a13")],
    body: include_str!("../../../tests/fixtures/events/paypal.json"),
    id: "WH-7XN04512KD883350T-4BS91746RY052811M",
};

pub(super) const ADYEN: Event = Event {
    path: "/webhooks/adyen",
    headers: &[],
    body: include_str!("../../../tests/fixtures/events/adyen.json"),
    id: "NC6HT9CRT65ZGN82",
};

pub(super) const TRANSFER: Event = Event {
    path: "/webhooks/transfers",
    headers: &[],
    body: "{\"id\":\"transfer_7\",\"type\":\"transfer.requested\",\"amount\":4200}",
    id: "transfer_7",
};
