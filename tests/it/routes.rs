//! Which route takes a request, and what the upstream is asked for.

use crate::support::{Answer, Event, Onceward, Receiver, Reply, event};

#[tokio::test]
async fn a_method_that_the_route_does_not_take_gets_405_with_those_it_takes() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward =
        Onceward::in_front_of(&receiver).defaults("methods = [\"POST\", \"GET\"]").start().await;
    for method in ["PUT", "DELETE", "BREW"] {
        let reply = onceward.sends(event("evt_1").by(method)).await;
        reply.is_refused(405, "method-not-allowed");
        assert_eq!(reply.header("allow"), Some("POST, GET, HEAD, OPTIONS"));
    }
    receiver.was_called(0);
    onceward.sends(event("evt_1").by("OPTIONS")).await.is_passed(200);
    // It was named, so it is deduplicated.
    onceward.sends(event("evt_1").by("GET")).await.is_executed(200);
    onceward.sends(event("evt_1").by("GET")).await.is_replayed(200);
}

/// By host first, then an exact path before the longest prefix.
#[tokio::test]
async fn the_most_exact_route_takes_a_request() {
    let receiver = Receiver::that(|seen, _| Answer::new(200, seen.target.clone()).into()).await;
    let routes = [
        ("exact", "", "/hooks/pay"),
        ("longer", "", "/hooks/pay/*"),
        ("longest", "", "/hooks/pay/card/*"),
        ("hosted", "host = \"pay.example\"", "/hooks/*"),
        ("hosted_exact", "host = \"pay.example\"", "/hooks/card"),
    ]
    .map(|(name, host, path)| {
        let upstream = format!("{}/{name}", receiver.url());
        format!("[routes.{name}]\npath = \"{path}\"\nupstream = \"{upstream}\"\n{host}\n")
    })
    .concat();
    let onceward = Onceward::in_front_of(&receiver).routes(&routes).start().await;
    for (host, path, target) in [
        ("a.example", "/hooks", "/hooks"),
        ("a.example", "/hooks/", "/hooks/"),
        ("a.example", "/hooks/payments", "/hooks/payments"),
        ("a.example", "/hooks/pay", "/exact"),
        ("a.example", "/hooks/pay?a=%20b&&c", "/exact?a=%20b&&c"),
        ("a.example", "/hooks/pay/x/../y", "/longer/x/../y"),
        ("a.example", "/hooks/pay/cards", "/longer/cards"),
        ("a.example", "/hooks/pay/card", "/longest"),
        ("a.example", "/hooks/pay/card/9", "/longest/9"),
        ("PAY.example:8443", "/hooks/pay", "/hosted/pay"),
        ("pay.example", "/hooks/card", "/hosted_exact"),
        ("pay.example.", "/hooks/card", "/hosted_exact"),
        ("Pay.Example.:80", "/hooks/x", "/hosted/x"),
    ] {
        let reply = send_to(&onceward, host, path).await;
        reply.is_executed(200);
        assert_eq!(reply.text(), target, "{host}{path}");
    }
    for path in ["/hook", "/hooksx", "/", "/Hooks", "/%68ooks"] {
        send_to(&onceward, "pay.example", path).await.is_refused(404, "no-route");
    }
}

const GUARDED: &str = "provider = \"stripe\"\nsecrets = [{ env = \"THE_SECRET\" }]\n";

/// Beside a route that forwards the rest of an app, no spelling of a guarded path gets past the
/// guard.
#[tokio::test]
async fn a_path_that_can_be_read_as_another_routes_is_refused() {
    let receiver = Receiver::that(|seen, _| Answer::new(200, seen.target.clone()).into()).await;
    let routes = format!(
        "[routes.stripe]\npath = \"/webhooks/stripe\"\nhost = \"pay.example\"\n\
         upstream = \"{0}\"\n{GUARDED}[routes.mixed]\npath = \"/Webhooks/Mixed/*\"\n\
         upstream = \"{0}\"\n{GUARDED}[routes.app]\npath = \"/*\"\nupstream = \"{0}\"\n\
         mode = \"pass\"\n",
        receiver.url()
    );
    let builder = Onceward::in_front_of(&receiver).variable("THE_SECRET", "whsec_x");
    let onceward = builder.routes(&routes).start().await;
    for path in [
        "/webhooks/%73tripe",
        "/webhooks/%2573tripe",
        "/webhooks%2Fstripe",
        "/webhooks%252fstripe",
        "/webhooks%5cstripe",
        "//webhooks/stripe",
        "/webhooks//stripe",
        "/webhooks/stripe/",
        "/webhooks/./stripe",
        "/webhooks/stripe/.",
        "/x/../webhooks/stripe",
        "/x/%2e%2e/webhooks/stripe",
        "/x/%252e%252e%252fwebhooks/stripe",
        "/webhooks/stripe;x",
        "/webhooks;a=b/stripe",
        "/WEBHOOKS/Stripe",
        "/x/..;/Webhooks//%73tripe;v=1/",
        "/webhooks/mixed",
        "/webhooks/mixed/1",
        "/webhooks/MIXED/%31/",
    ] {
        send_to(&onceward, "pay.example", path).await.is_refused(400, "malformed");
        send_to(&onceward, "pay.example.", path).await.is_refused(400, "malformed");
    }
    let nasty = "/%5c%253b/%2e/.%252e%3b%3b%2e/.%2f/.%255c/.%252e%3b;x%5cx";
    send_to(&onceward, "h", nasty).await.is_refused(400, "malformed");
    receiver.was_called(0);
    for host in ["pay.example", "PAY.example.", "pay.example.:8443"] {
        send_to(&onceward, host, "/webhooks/stripe").await.is_refused(401, "signature-missing");
    }
    receiver.was_called(0);
    // Of the rest of the app nothing is refused, whatever stands in its paths.
    for path in ["/", "/users/a%20b;v=1//c/./d/", "/webhooks/stripes", "/Webhooks", "/a/%2e%2e%2f"]
    {
        let reply = send_to(&onceward, "pay.example", path).await;
        reply.is_passed(200);
        assert_eq!(reply.text(), path);
    }
    // On another host that path is the app's.
    send_to(&onceward, "h", "/webhooks/%73tripe").await.is_passed(200);
}

/// A method that asks for nothing to be done may not carry an event past the guard.
#[tokio::test]
async fn on_a_route_that_verifies_a_probe_with_content_is_unsigned() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let builder = Onceward::in_front_of(&receiver).variable("THE_SECRET", "whsec_x");
    let open = format!("[routes.open]\npath = \"/open\"\nupstream = \"{}\"\n", receiver.url());
    let onceward = builder.routes(&format!("{GUARDED}{open}")).start().await;
    let sends = async |start: &str, rest: &str| {
        let mut sender = onceward.connects().await;
        sender.writes(format!("{start} HTTP/1.1\r\nhost: h\r\n{rest}").as_bytes()).await;
        sender.reads_reply().await
    };
    let chunked = "transfer-encoding: chunked\r\n\r\n";
    for method in ["GET", "OPTIONS"] {
        let start = format!("{method} /hooks");
        let lengthy = sends(&start, "content-length: 2\r\n\r\n{}").await;
        lengthy.is_refused(401, "signature-missing");
        let in_chunks = sends(&start, &format!("{chunked}2\r\n{{}}\r\n0\r\n\r\n")).await;
        in_chunks.is_refused(401, "signature-missing");
    }
    receiver.was_called(0);
    sends("GET /hooks", "\r\n").await.is_passed(200);
    sends("GET /hooks", "content-length: 0\r\n\r\n").await.is_passed(200);
    sends("OPTIONS /hooks", &format!("{chunked}0\r\n\r\n")).await.is_passed(200);
    sends("GET /open", "content-length: 2\r\n\r\n{}").await.is_passed(200);
    receiver.was_called(4);
}

/// Twilio sends what it has to tell by GET too, if it is asked to.
#[tokio::test]
async fn an_event_by_get_has_its_key_in_the_query() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let twilio = "provider = \"twilio\"\nverify = false\nmethods = [\"GET\", \"POST\"]\n";
    let onceward = Onceward::in_front_of(&receiver).routes(twilio).start().await;
    let status = |status: &str| {
        let target = format!("/hooks?AccountSid=AC1&MessageSid=SM1&MessageStatus={status}");
        Event::bytes("").by("GET").to(&target)
    };
    for event in ["sent", "delivered"] {
        onceward.sends(status(event)).await.is_executed(200);
        onceward.sends(status(event)).await.is_replayed(200);
    }
    let posted = Event::bytes("AccountSid=AC1&MessageSid=SM1&MessageStatus=sent");
    let posted = posted.header("content-type", "application/x-www-form-urlencoded");
    onceward.sends(posted.clone()).await.is_executed(200);
    onceward.sends(posted).await.is_replayed(200);
    receiver.was_called(3);
}

/// Which of two routes takes it is of no matter where they are alike.
#[tokio::test]
async fn between_routes_that_are_alike_every_reading_is_fine() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let routes =
        format!("[routes.pay]\npath = \"/hooks/pay\"\nupstream = \"{}\"\n", receiver.url());
    let onceward = Onceward::in_front_of(&receiver).routes(&routes).start().await;
    for path in ["/hooks/pay", "/hooks/pay/", "/hooks//pay", "/hooks/%70ay", "/hooks/Pay"] {
        send_to(&onceward, "h", path).await.is_executed(200);
    }
    receiver.was_called(5);
}

#[tokio::test]
async fn every_spelling_of_a_path_is_one_operation() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    onceward.sends(event("evt_1").to("/hooks/acct")).await.is_executed(200);
    for path in ["/hooks/%61cct", "/hooks//acct", "/hooks/./acct", "/hooks/x/../acct"] {
        let mut sender = onceward.connects().await;
        sender.writes(&event("evt_1").to(path).raw()).await;
        sender.reads_reply().await.is_replayed(200);
    }
    receiver.was_called(1);
}

#[tokio::test]
async fn a_host_is_a_name_or_an_address() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    for host in ["[anything]", "[::g]:80", "[fe80::1%25lo]", "1.2.3", "a..b"] {
        send_to(&onceward, host, "/hooks").await.is_refused(400, "malformed");
    }
    for host in ["[::1]:80", "127.0.0.1", "a_b.example."] {
        send_to(&onceward, host, "/hooks").await.is_executed(200);
    }
    receiver.was_called(3);
}

/// What the receiver needs to check the sender itself may not vanish on the way.
#[tokio::test]
async fn connection_takes_away_nothing_that_a_route_reads() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let routes = format!(
        "key.scope = [\"header:x-tenant?\"]\nkey.event.type = \"json:/type|header:x-kind?\"\n\
         fingerprint.over = [\"header:x-version?\"]\n\
         [routes.stripe]\npath = \"/stripe\"\nprovider = \"stripe\"\nverify = false\n\
         upstream = \"{}\"\n",
        receiver.url()
    );
    let onceward = Onceward::in_front_of(&receiver).routes(&routes).start().await;
    let sends = async |path: &str, names: &str| {
        let mut sender = onceward.connects().await;
        let event = event(names).to(path).header("connection", names);
        sender.writes(&event.raw()).await;
        sender.reads_reply().await
    };
    for (path, names) in [
        ("/stripe", "Stripe-Signature"),
        ("/stripe", "close, stripe-signature"),
        ("/hooks", "X-Tenant"),
        ("/hooks", "x-kind"),
        ("/hooks", "keep-alive,X-Version"),
        ("/hooks", "idempotency-key"),
    ] {
        sends(path, names).await.is_refused(400, "malformed");
    }
    receiver.was_called(0);
    sends("/hooks", "Stripe-Signature").await.is_executed(200);
    sends("/stripe", "x-tenant, x-hop").await.is_executed(200);
}

/// What climbs out of its route is refused, in every spelling.
#[tokio::test]
async fn dot_segments_do_not_lead_out_of_a_route_and_stay_as_they_are_within() {
    let receiver = Receiver::that(|seen, _| Answer::new(200, seen.target.clone()).into()).await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    for path in [
        "/hooks/a%2Fb/%2e%2e/c//d/%252F?x=%2F&x=&y=a+b&&z",
        "/hooks/./a/..",
        "/hooks/a/%2E./b",
        "/hooks//a",
    ] {
        let reply = send_to(&onceward, "h", path).await;
        reply.is_executed(200);
        assert_eq!(reply.text(), path);
    }
    let inside = receiver.count();
    for path in [
        "/hooks/../admin",
        "/hooks/%2e%2e/admin",
        "/hooks/.%2E/admin",
        "/hooks/a/../../admin",
        "/hooks/a/..%2f..%2fadmin",
        "/hooks/..;/admin",
        "/hooks/..%5cadmin",
        "/hooks/..",
        "/hooks/a%2fb/%2e%2e/%2e%2e/admin",
        "/hooks/a%5cb/../../admin",
        "/hooks/a%252fb/../../admin",
    ] {
        send_to(&onceward, "h", path).await.is_refused(400, "malformed");
    }
    receiver.was_called(inside);
}

/// Sends without a client that would tidy the target.
async fn send_to(onceward: &Onceward, host: &str, path: &str) -> Reply {
    let mut sender = onceward.connects().await;
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {host}\r\nx-idempotency-key: {host}{path}\r\n\
         content-length: 0\r\n\r\n"
    );
    sender.writes(head.as_bytes()).await;
    sender.reads_reply().await
}
