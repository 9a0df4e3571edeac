//! Events as five senders send them, each keyed as its sender says.

use serde_json::{Value, json};

use crate::support::{Event, Onceward, Receiver, Reply};

/// An event as its sender sends it, and how its route finds its key.
struct Sender {
    name: &'static str,
    file: &'static str,
    headers: &'static [(&'static str, &'static str)],
    route: &'static str,
    /// What makes a sibling of it: an event that shares much with it and is another one.
    sibling: fn(&mut Value, &mut Vec<(String, String)>),
}

const SENDERS: [Sender; 5] = [
    Sender {
        name: "stripe",
        file: include_str!("../fixtures/events/stripe.json"),
        headers: &[("stripe-signature", "t=1775044812,v1=00")],
        route: "",
        // Both come from one request to Stripe's API.
        sibling: |event, _| {
            event["id"] = json!("evt_1Qonce4Hd0Zk2xWm7Yt3Lp9b");
            event["type"] = json!("customer.updated");
        },
    },
    Sender {
        name: "github",
        file: include_str!("../fixtures/events/github.json"),
        headers: &[
            ("x-github-delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958"),
            ("x-github-event", "push"),
            ("x-github-hook-id", "11"),
        ],
        route: "key.header = [\"x-github-delivery\"]\n\
                key.scope = [\"header:x-github-hook-id\", \"header:x-github-event\"]\n",
        // GitHub sends one delivery id to all hooks of an event.
        sibling: |event, headers| {
            event["installation"] = json!({ "id": 2 });
            headers[2].1 = "22".into();
        },
    },
    Sender {
        name: "shopify",
        file: include_str!("../fixtures/events/shopify.json"),
        headers: &[
            ("x-shopify-webhook-id", "b54557e4-bdd9-4b37-8a5f-bf7d70bcd043"),
            ("x-shopify-event-id", "98880550-7158-44d4-b7cd-2c97c8a091b5"),
            ("x-shopify-shop-domain", "example-shop.example"),
            ("x-shopify-topic", "orders/create"),
        ],
        route: "key.header = [\"x-shopify-webhook-id\"]\n\
                key.scope = [\"header:x-shopify-shop-domain\"]\n",
        // One event of the shop causes two webhooks.
        sibling: |_, headers| {
            headers[0].1 = "c65668f5-cee0-4c48-9b6a-ca8e81cde154".into();
            headers[3].1 = "orders/paid".into();
        },
    },
    Sender {
        name: "paypal",
        file: include_str!("../fixtures/events/paypal.json"),
        headers: &[("paypal-transmission-id", "103e3700-8b0c-11f0-8695-6b62a8a99ac4")],
        route: "key.event = { id = \"json:/id\", type = \"json:/event_type\" }\n",
        sibling: |event, _| {
            event["id"] = json!("WH-8YP15623LE994461U-5CT02857SZ163922N");
            event["event_type"] = json!("PAYMENT.CAPTURE.REFUNDED");
        },
    },
    Sender {
        name: "adyen",
        file: include_str!("../fixtures/events/adyen.json"),
        headers: &[],
        route: "[routes.adyen.key]\n\
                event.id = \"json:/notificationItems/*/NotificationRequestItem/pspReference\"\n\
                event.type = \"json:/notificationItems/*/NotificationRequestItem/eventCode\"\n\
                scope = [\"json:/notificationItems/*/NotificationRequestItem/merchantAccountCode\", \
                \"json:/notificationItems/*/NotificationRequestItem/success\"]\n",
        // One payment has two events under one reference.
        sibling: |event, _| {
            event["notificationItems"][0]["NotificationRequestItem"]["eventCode"] =
                json!("CAPTURE");
        },
    },
];

#[tokio::test]
async fn events_of_five_senders_are_each_forwarded_once_and_their_siblings_too() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let routes = SENDERS.each_ref().map(|Sender { name, route, .. }| {
        let upstream = receiver.url();
        format!("[routes.{name}]\npath = \"/{name}\"\nupstream = \"{upstream}\"\n{route}")
    });
    let routes = routes.concat();
    let onceward = Onceward::in_front_of(&receiver).routes(&routes).start().await;
    for sender in &SENDERS {
        let sends = async |body: &str, headers: &[(String, String)]| -> Reply {
            let mut event = Event::bytes(body).to(&format!("/{}", sender.name));
            event.headers.extend_from_slice(headers);
            onceward.sends(event).await
        };
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let mut headers: Vec<_> = sender.headers.iter().map(own).collect();
        let (before, file) = (receiver.count(), sender.file);
        sends(file, &headers).await.is_executed(200);
        sends(file, &headers).await.is_replayed(200);
        let original = headers.clone();
        let mut event: Value = serde_json::from_str(file).unwrap();
        (sender.sibling)(&mut event, &mut headers);
        let sibling = event.to_string();
        sends(&sibling, &headers).await.is_executed(200);
        sends(&sibling, &headers).await.is_replayed(200);
        sends(file, &original).await.is_replayed(200);
        receiver.was_called(before + 2);
        assert_eq!(receiver.seen()[before].body, file.as_bytes(), "{}", sender.name);
    }
}
