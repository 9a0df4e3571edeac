//! What identifies is what was signed: through the running proxy.

use crate::support::{Event, Onceward, Receiver, event, signing};

const SECRET: &str = "whsec_dGhlIHNlY3JldA==";

/// A sender of one's own that follows Standard Webhooks, keyed by what was signed.
const STANDARD: &str = "provider = \"own\"\nsecrets = [{ env = \"THE_SECRET\" }]\n\
    [providers.own.key]\nheader = []\nevent = { id = \"signature:id\" }\n\
    [providers.own.signature]\nscheme = \"standard-webhooks\"\ntolerance = \"5m\"\n";

fn signed(family: &str, id: &str) -> Event {
    let event = event("evt_1");
    let at = signing::now();
    let signature = signing::standard(SECRET, id, at, &event.body);
    let event = event.header(&format!("{family}-id"), id);
    let event = event.header(&format!("{family}-timestamp"), &at.to_string());
    event.header(&format!("{family}-signature"), &signature)
}

/// A captured request runs under no other id, and no future id can be taken by it.
#[tokio::test]
async fn a_captured_request_has_the_key_that_was_signed() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let builder = Onceward::in_front_of(&receiver).routes(STANDARD);
    let onceward = builder.variable("THE_SECRET", SECRET).start().await;
    onceward.sends(signed("webhook", "msg_1")).await.is_executed(200);
    // The same message in the other family of names is the same operation.
    onceward.sends(signed("svix", "msg_1")).await.is_replayed(200);
    let dressed = signed("svix", "msg_1").header("webhook-id", "msg_2");
    onceward.sends(dressed).await.is_refused(400, "key-invalid");
    onceward.sends(signed("webhook", "msg_2")).await.is_executed(200);
    receiver.was_called(2);
}

/// The start of the URL is ours alone; a query that holds one is a query.
#[tokio::test]
async fn a_url_in_the_query_is_not_taken_for_the_path() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let own = "provider = \"own\"\nsecrets = [{ env = \"THE_SECRET\" }]\n\
        [providers.own.key]\nheader = []\nevent = { id = \"query:id\" }\n\
        [providers.own.signature]\nscheme = \"hmac\"\nheader = \"x-sig\"\n\
        signed = [\"path\", \"body\"]\n";
    let builder = Onceward::in_front_of(&receiver).routes(own);
    let onceward = builder.variable("THE_SECRET", "secret").start().await;
    let captured = event("evt").to("/hooks?id=evt_1");
    let message = [b"/hooks?id=evt_1", captured.body.as_slice()].concat();
    let tag = hex::encode(signing::sha256(b"secret", &message));
    let captured = captured.header("x-sig", &tag);
    onceward.sends(captured.clone()).await.is_executed(200);
    let forged = captured.to("/hooks?id=evt_2&z=://h/hooks?id=evt_1");
    onceward.sends(forged).await.is_refused(401, "signature-invalid");
    receiver.was_called(1);
}
