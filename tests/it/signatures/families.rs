//! What identifies is what was signed: through the running proxy.

use sha2::{Digest as _, Sha256};

use super::verifying;
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

/// One signature, and all the bodies that it fits: in another order, encoded otherwise, with pairs
/// repeated, and divided at other places.
#[tokio::test]
async fn every_body_under_one_signature_of_twilio_is_one_operation() {
    const FORM: &str = "application/x-www-form-urlencoded";
    let receiver = Receiver::that_answers(200, "ok").await;
    let builder = verifying(&receiver, "twilio", "secret");
    let onceward = builder.server("public_url = \"https://h.example\"").start().await;
    let genuine = "AccountSid=AC&MessageSid=SM1";
    let tag = signing::twilio("secret", "https://h.example/hooks", genuine.as_bytes());
    let posts = |body: &str| {
        let event = Event::bytes(body).header("content-type", FORM);
        event.header("x-twilio-signature", &tag)
    };
    let token = "i-twilio-idempotency-token";
    onceward.sends(posts(genuine)).await.is_executed(200);
    onceward.sends(posts(genuine).header(token, "t-1")).await.is_executed(200);
    for body in [
        genuine,
        "MessageSid=SM1&AccountSid=AC",
        "AccountSid=AC&MessageSid=SM1&",
        "AccountSid=AC&&MessageSid=SM1",
        "Account%53id=AC&MessageSid=SM1",
        "AccountSid=AC&MessageSid=SM1&MessageSid=SM1",
        "AccountSid=ACMessageSidSM1",
        "AccountSidACMessageSidSM1",
    ] {
        onceward.sends(posts(body)).await.is_replayed(200);
        onceward.sends(posts(body).header(token, "t-1")).await.is_replayed(200);
    }
    receiver.was_called(2);
}

/// A form that is JSON as well: its type is nobody's, and no part of the key.
#[tokio::test]
async fn a_captured_form_of_braintree_runs_under_no_type_of_anybodys_own() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = verifying(&receiver, "braintree", "private").start().await;
    let key = sha1::Sha1::digest(b"private");
    let tag = hex::encode(signing::sha1(&key, b"PHg+PC94Pg==\n"));
    let form = format!("bt_signature=a%7C{tag}&bt_payload=PHg%2BPC94Pg%3D%3D%0A");
    let posts =
        |body: &str| Event::bytes(body).header("content-type", "application/x-www-form-urlencoded");
    onceward.sends(posts(&form)).await.is_executed(200);
    for kind in ["1", "2"] {
        let dressed = format!("{{\"type\":\"{kind}\",\"z\":\"&{form}&y=\"}}");
        onceward.sends(posts(&dressed)).await.is_replayed(200);
    }
    receiver.was_called(1);
}

/// With its own token, which is right, beside it.
#[tokio::test]
async fn an_empty_signature_of_gitlab_is_not_rescued_by_a_token() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let route = "provider = \"gitlab\"\n\
        secrets = [{ env = \"THE_SECRET\" }, { env = \"THE_TOKEN\" }]\n";
    let builder = Onceward::in_front_of(&receiver).routes(route);
    let builder = builder.variable("THE_SECRET", SECRET).variable("THE_TOKEN", "a token!");
    let onceward = builder.start().await;
    let sends = |id: &str| {
        let event = event("evt").header("x-gitlab-token", "a token!");
        event.header("x-gitlab-event", "Push Hook").header("idempotency-key", id)
    };
    onceward.sends(sends("1")).await.is_executed(200);
    for empty in ["", "  "] {
        let empty = sends("2").header("webhook-signature", empty);
        onceward.sends(empty).await.is_refused(401, "signature-missing");
    }
    receiver.was_called(1);
}

/// An older version, which is right and accepted, beside an empty third one.
#[tokio::test]
async fn an_empty_third_signature_of_hubspot_is_not_rescued_by_an_older_one() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let own = "provider = \"own\"\nsecrets = [{ env = \"THE_SECRET\" }]\n\
        public_url = \"https://h.example\"\n\
        [providers.own.key]\nheader = []\nevent = { id = \"json:/id\" }\n\
        [providers.own.signature]\nscheme = \"hubspot\"\naccept = [\"v1\", \"v2\", \"v3\"]\n";
    let builder = Onceward::in_front_of(&receiver).routes(own);
    let onceward = builder.variable("THE_SECRET", "secret").start().await;
    let signed = |id: &str| {
        let event = event(id);
        let tag = Sha256::digest([b"secret", event.body.as_slice()].concat());
        let event = event.header("x-hubspot-signature-version", "v1");
        event.header("x-hubspot-signature", &hex::encode(tag))
    };
    onceward.sends(signed("1")).await.is_executed(200);
    let empty = signed("2").header("x-hubspot-signature-v3", "");
    onceward.sends(empty).await.is_refused(401, "signature-missing");
    receiver.was_called(1);
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
