//! Which route takes a request, and what the upstream is asked for.

use crate::support::{Answer, Onceward, Receiver, Reply, event};

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
        ("a.example", "/hooks/pay/", "/longer/"),
        ("a.example", "/hooks/pay/x/../y", "/longer/x/../y"),
        ("a.example", "/hooks/pay/cards", "/longer/cards"),
        ("a.example", "/hooks/pay/card", "/longest"),
        ("a.example", "/hooks/pay/card/9", "/longest/9"),
        ("PAY.example:8443", "/hooks/pay", "/hosted/pay"),
        ("pay.example", "/hooks/card", "/hosted_exact"),
    ] {
        let reply = send_to(&onceward, host, path).await;
        reply.is_executed(200);
        assert_eq!(reply.text(), target, "{host}{path}");
    }
    for path in ["/hook", "/hooksx", "/", "/Hooks", "/%68ooks"] {
        send_to(&onceward, "pay.example", path).await.is_refused(404, "no-route");
    }
}

/// C96: what climbs out of its route is refused, in every spelling.
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
