//! Signatures over the URL: the one that the sender knows, never what `Host` says.

use std::fmt::Write as _;

use crate::support::{Event, Onceward, RawSender, Receiver, signing};

const SECRET: &str = "0123456789";
const FORM: &str = "application/x-www-form-urlencoded";

/// An event of this sender for `path`, signed as if it had been sent to `base`.
fn signed(provider: &str, id: &str, base: &str, path: &str) -> Event {
    let url = format!("{base}{path}");
    match provider {
        "square" => {
            let body = format!("{{\"event_id\":\"{id}\",\"type\":\"t\",\"merchant_id\":\"M\"}}");
            let signature = signing::square(SECRET, &url, body.as_bytes());
            Event::bytes(body).to(path).header("x-square-hmacsha256-signature", &signature)
        }
        "twilio" => {
            let body = format!("MessageSid={id}&MessageStatus=sent&AccountSid=AC1&Body=a+b%20c");
            let signature = signing::twilio(SECRET, &url, body.as_bytes());
            let event = Event::bytes(body).to(path).header("content-type", FORM);
            event.header("x-twilio-signature", &signature)
        }
        _ => {
            let body = format!(
                "[{{\"eventId\":\"{id}\",\"subscriptionId\":5,\"portalId\":7,\"occurredAt\":10,\
                 \"subscriptionType\":\"contact.creation\"}}]"
            );
            let millis = signing::now() * 1000;
            let signature = signing::hubspot(SECRET, &url, body.as_bytes(), millis);
            let event = Event::bytes(body).to(path);
            let event = event.header("x-hubspot-request-timestamp", &millis.to_string());
            event.header("x-hubspot-signature-v3", &signature)
        }
    }
}

const PROVIDERS: [&str; 3] = ["square", "twilio", "hubspot"];
const PUBLIC: &str = "https://hooks.example.com";

async fn behind_a_public_url(receiver: &Receiver) -> Onceward {
    let upstream = receiver.url();
    let mut routes = String::new();
    for name in PROVIDERS {
        write!(
            routes,
            "[routes.{name}]\npath = \"/in/{name}\"\nupstream = \"{upstream}/inside\"\n\
             provider = \"{name}\"\nsecrets = [{{ env = \"THE_SECRET\" }}]\n"
        )
        .unwrap();
    }
    let builder = Onceward::in_front_of(receiver).variable("THE_SECRET", SECRET);
    builder.server(&format!("public_url = \"{PUBLIC}\"")).routes(&routes).start().await
}

/// Scheme, host, prefix and query are those that the sender knows.
#[tokio::test]
async fn the_url_is_the_public_one_with_the_path_and_query_as_they_came() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = behind_a_public_url(&receiver).await;
    for provider in PROVIDERS {
        let before = receiver.count();
        let path = format!("/in/{provider}");
        let query = format!("{path}?x=1&y=a%20b+c");
        onceward.sends(signed(provider, "E1", PUBLIC, &path)).await.is_executed(200);
        onceward.sends(signed(provider, "E2", PUBLIC, &query)).await.is_executed(200);
        onceward.sends(signed(provider, "E2", PUBLIC, &query)).await.is_replayed(200);
        receiver.was_called(before + 2);
        let seen = receiver.seen().pop().unwrap();
        assert_eq!(seen.target, "/inside?x=1&y=a%20b+c", "{provider}");
        assert_eq!(seen.header("onceward-verified"), Some(provider));
        // What the upstream's own check needs.
        assert_eq!(seen.header("x-forwarded-proto"), Some("https"), "{provider}");
        assert_eq!(seen.header("x-forwarded-host"), Some("hooks.example.com"), "{provider}");
        assert_eq!(seen.header("x-forwarded-prefix"), Some(&*path), "{provider}");
    }
}

/// Who writes `Host` does not choose what is checked.
#[tokio::test]
async fn a_signature_over_any_other_url_is_invalid_whatever_host_says() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = behind_a_public_url(&receiver).await;
    let here = format!("http://{}", onceward.address);
    for provider in PROVIDERS {
        let path = format!("/in/{provider}");
        let of = |base: &str| signed(provider, "E1", base, &path);
        let other = "https://evil.example.com";
        let events = [
            of(&here),
            of("http://hooks.example.com"),
            of("https://hooks.example.com:8443"),
            of(other),
            of(other).header("host", "evil.example.com"),
            of(other).header("x-forwarded-host", "evil.example.com"),
            of(other).header("forwarded", "host=evil.example.com;proto=https"),
            // Another path or query than the one that was signed.
            of(PUBLIC).to(&format!("{path}?x=1")),
            signed(provider, "E1", PUBLIC, &format!("{path}/")).to(&path),
            signed(provider, "E1", PUBLIC, &format!("{path}?x=1")).to(&path),
            signed(provider, "E1", PUBLIC, "/inside").to(&path),
        ];
        for (number, event) in events.into_iter().enumerate() {
            let reply = onceward.sends(event).await;
            assert_eq!(reply.status, 401, "{provider}, {number}: {reply:?}");
        }
        // And one that is right is so under any `Host`.
        let event = of(PUBLIC).header("host", "evil.example.com");
        onceward.sends(event).await.is_executed(200);
    }
    receiver.was_called(PROVIDERS.len());
}

/// URL and body are signed with nothing between them, and one route takes many URLs. Not even a
/// route that forwards what has no key forwards what the sender did not send.
#[tokio::test]
async fn bytes_that_are_moved_between_url_and_body_are_refused() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let mut routes = String::new();
    for provider in ["hubspot", "square"] {
        write!(
            routes,
            "[routes.{provider}]\npath = \"/in/{provider}/*\"\nupstream = \"{}\"\n\
             provider = \"{provider}\"\nsecrets = [{{ env = \"THE_SECRET\" }}]\n\
             when_key_missing = \"forward\"\n",
            receiver.url()
        )
        .unwrap();
    }
    let builder = Onceward::in_front_of(&receiver).variable("THE_SECRET", SECRET);
    let builder = builder.server(&format!("public_url = \"{PUBLIC}\"")).routes(&routes);
    let onceward = builder.start().await;
    for provider in ["hubspot", "square"] {
        let path = format!("/in/{provider}/a?b=c");
        let genuine = signed(provider, "E1", PUBLIC, &path);
        onceward.sends(genuine.clone()).await.is_executed(200);
        let text = [path.as_bytes(), genuine.body.as_slice()].concat();
        // Up to the first quotation mark, which clients escape in a URL, and all of the body.
        for at in (path.len() - 2..path.len() + 2).filter(|at| *at != path.len()) {
            let (target, body) = text.split_at(at);
            let target = String::from_utf8(target.to_vec()).unwrap();
            let moved = Event { body: body.to_vec(), ..genuine.clone() }.to(&target);
            let bytes = moved.header("connection", "close").raw();
            let mut sender = RawSender::connect(onceward.address).await;
            sender.writes(&bytes).await;
            sender.reads_reply().await.is_refused(401, "signature-invalid");
        }
    }
    receiver.was_called(2);
}

/// What stands in for `Host` in HTTP/2 chooses nothing either.
#[tokio::test]
async fn over_http2_the_url_is_the_public_one_too() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = behind_a_public_url(&receiver).await;
    let http2 = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().unwrap();
    let here = format!("http://{}", onceward.address);
    for provider in PROVIDERS {
        let path = format!("/in/{provider}?x=1&y=a%20b+c");
        for (base, status) in [(here.as_str(), 401), (PUBLIC, 200)] {
            let event = signed(provider, "E1", base, &path);
            let request = http2.post(format!("{here}{path}")).body(event.body);
            let headers = event.headers.iter();
            let request =
                headers.fold(request, |request, (name, value)| request.header(name, value));
            assert_eq!(request.send().await.unwrap().status(), status, "{provider}");
        }
    }
    receiver.was_called(PROVIDERS.len());
}
