//! Bytes are sacred: what the upstream gets, and what it gets beside.

use reqwest::header::HeaderValue;
use tokio::net::TcpListener;

use crate::support::{Act, Answer, Event, Onceward, RawSender, Receiver, Reply, Seen, event};

/// Sends a request as it stands, on a connection of its own, and reads the answer.
async fn sends_raw(onceward: &Onceward, request: impl AsRef<[u8]>) -> Reply {
    let mut sender = onceward.connects().await;
    sender.writes(request.as_ref()).await;
    sender.reads_answer().await
}

/// The last request that the receiver has seen.
fn last(receiver: &Receiver) -> Seen {
    receiver.seen().pop().expect("it has seen one")
}

async fn ok() -> Receiver {
    Receiver::that_answers(200, "ok").await
}

#[tokio::test]
async fn path_and_query_reach_the_upstream_byte_for_byte() {
    let receiver = ok().await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    for target in [
        "/hooks/a%2Fb/%2e%2e/c//d/%252F?x=%2F&x=&y=a+b&&z",
        "/hooks",
        "/hooks/",
        "/hooks?",
        "/hooks//",
        "/hooks/%E2%82%AC/%e2%82%ac;v=1,2",
        "/hooks/a/./b/../c",
        "/hooks/~!$&'()*+,;=:@?/?:@!$&'()*+,;=%00",
        "/hooks?url=http://a.example/b?c=d",
        "/hooks/{id}|\"x\"",
    ] {
        let event = event(target).to(target);
        sends_raw(&onceward, event.raw()).await.is_executed(200);
        assert_eq!(last(&receiver).target, target);
        sends_raw(&onceward, event.raw()).await.is_replayed(200);
    }
    receiver.was_called(10);
}

/// Dot segments, plain or encoded, must not lead out of the route.
#[tokio::test]
async fn a_path_that_leaves_its_route_is_refused() {
    let receiver = ok().await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    for target in ["/hooks/../admin", "/hooks/%2e%2e/admin", "/hooks/a/.%2E/../admin"] {
        sends_raw(&onceward, event("evt_1").to(target).raw()).await.is_refused(400, "malformed");
    }
    for target in ["/admin", "/hooksx", "/"] {
        sends_raw(&onceward, event("evt_1").to(target).raw()).await.is_refused(404, "no-route");
    }
    receiver.was_called(0);
}

/// No request decides where it is forwarded to.
#[tokio::test]
async fn no_target_changes_the_upstream() {
    let receiver = ok().await;
    let onceward = Onceward::in_front_of(&receiver)
        .routes(&format!("[routes.all]\npath = \"/*\"\nupstream = \"{}\"", receiver.url()))
        .start()
        .await;
    for (target, forwarded) in [
        ("//evil.invalid/hook", "//evil.invalid/hook"),
        ("/@evil.invalid/", "/@evil.invalid/"),
        ("http://hooks.example/hooks/a?b", "/hooks/a?b"),
        ("http://hooks.example", "/"),
    ] {
        sends_raw(&onceward, event(target).to(target).raw()).await.is_executed(200);
        let seen = last(&receiver);
        assert_eq!(seen.target, forwarded);
        assert_eq!(seen.values("host"), [b"hooks.example"]);
    }
    for target in ["http://evil.invalid/hook", "/\\evil.invalid/", "http://u@hooks.example/hooks"] {
        let reply = sends_raw(&onceward, event("evt_9").to(target).raw()).await;
        assert_eq!(reply.status, 400, "{target}: {reply:?}");
    }
    receiver.was_called(4);
}

/// Some upstreams choose by `Host` what they serve, and some check a signature over it.
#[tokio::test]
async fn the_upstream_sees_the_senders_host_or_its_own_name() {
    let receiver = ok().await;
    let six = TcpListener::bind("[::1]:0").await.unwrap();
    let six = Receiver::on(six, |_, _| Answer::new(200, "ok").into());
    for receiver in [&receiver, &six] {
        let own = receiver.address.to_string();
        for (preserve, host) in [(true, "Hooks.example.com:8443"), (false, own.as_str())] {
            let onceward = Onceward::in_front_of(receiver)
                .defaults(&format!("preserve_host = {preserve}"))
                .start()
                .await;
            let request = "POST /hooks HTTP/1.1\r\nHost: Hooks.example.com:8443\r\n\
                x-idempotency-key: k\r\ncontent-length: 0\r\n\r\n";
            sends_raw(&onceward, request).await.is_executed(200);
            let seen = last(receiver);
            assert_eq!(seen.values("host"), [host.as_bytes()]);
            assert_eq!(seen.values("x-forwarded-host"), [b"Hooks.example.com:8443"]);
            assert_eq!(seen.values("x-forwarded-port"), [b"8443"]);
        }
    }
}

const CLAIMS: &str = "X-Forwarded-For: 10.0.0.1\r\nX-Forwarded-For: 10.0.0.2\r\n\
    X-Forwarded-Proto: https\r\nX-Forwarded-Host: real.example\r\nX-Forwarded-Port: 444\r\n\
    X-Forwarded-Prefix: /front\r\nForwarded: for=1.1.1.1\r\nX-Real-IP: 9.9.9.9\r\n\
    Via: 1.0 first\r\nVia: 1.1 second\r\n";

fn claiming() -> String {
    format!(
        "POST /hooks HTTP/1.1\r\nHost: hooks.example\r\n{CLAIMS}\
         x-idempotency-key: k\r\ncontent-length: 0\r\n\r\n"
    )
}

/// Anybody can write `X-Forwarded-For`.
#[tokio::test]
async fn what_a_stranger_says_of_itself_is_replaced() {
    let receiver = ok().await;
    // A network, but not that of the sender.
    let onceward = Onceward::in_front_of(&receiver)
        .server("trusted_proxies = [\"10.0.0.0/8\", \"fd00::/8\"]")
        .start()
        .await;
    sends_raw(&onceward, claiming()).await.is_executed(200);
    let seen = last(&receiver);
    assert_eq!(seen.values("x-forwarded-for"), [b"127.0.0.1"]);
    assert_eq!(seen.values("x-forwarded-proto"), [b"http"]);
    assert_eq!(seen.values("x-forwarded-host"), [b"hooks.example"]);
    assert_eq!(seen.values("x-forwarded-port"), [b"80"]);
    for name in ["x-forwarded-prefix", "forwarded", "x-real-ip"] {
        assert_eq!(seen.header(name), None, "{name}");
    }
    assert_eq!(seen.values("via"), [b"1.0 first, 1.1 second, 1.1 onceward"]);
}

#[tokio::test]
async fn what_a_trusted_proxy_says_is_kept_and_added_to_in_one_line() {
    let receiver = ok().await;
    let onceward = Onceward::in_front_of(&receiver)
        .server("trusted_proxies = [\"127.0.0.0/8\"]")
        .start()
        .await;
    sends_raw(&onceward, claiming()).await.is_executed(200);
    let seen = last(&receiver);
    assert_eq!(seen.values("x-forwarded-for"), [b"10.0.0.1, 10.0.0.2, 127.0.0.1"]);
    assert_eq!(seen.values("x-forwarded-proto"), [b"https"]);
    assert_eq!(seen.values("x-forwarded-host"), [b"real.example"]);
    assert_eq!(seen.values("x-forwarded-port"), [b"444"]);
    assert_eq!(seen.values("x-forwarded-prefix"), [b"/front"]);
    assert_eq!(seen.values("x-real-ip"), [b"9.9.9.9"]);
    assert_eq!(seen.values("via"), [b"1.0 first, 1.1 second, 1.1 onceward"]);
}

/// What stands in a trailer was not signed, and must not become a header.
#[tokio::test]
async fn a_chunked_body_goes_on_with_its_length_and_without_its_trailers() {
    let receiver = ok().await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let request = "POST /hooks HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\
        Trailer: X-T\r\nx-idempotency-key: k1\r\n\r\n3;a=b\r\nabc\r\n2;q=\"x\"\r\nde\r\n1\r\nf\r\n0\r\n\
        X-T: 1\r\nX-Idempotency-Key: other\r\nX-Forwarded-For: 1.2.3.4\r\nContent-Length: 0\r\n\r\n";
    sends_raw(&onceward, request).await.is_executed(200);
    let seen = last(&receiver);
    assert_eq!(seen.body, b"abcdef");
    assert_eq!(seen.values("content-length"), [b"6"]);
    assert_eq!(seen.values("x-idempotency-key"), [b"k1"]);
    assert_eq!(seen.values("x-forwarded-for"), [b"127.0.0.1"]);
    for name in ["transfer-encoding", "trailer", "x-t"] {
        assert_eq!(seen.header(name), None, "{name}");
    }
}

#[tokio::test]
async fn a_request_without_a_body_has_a_length_only_where_one_is_expected() {
    let receiver = ok().await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    for (method, length) in
        [("DELETE", None), ("POST", Some("0")), ("PUT", Some("0")), ("PATCH", Some("0"))]
    {
        let request =
            format!("{method} /hooks HTTP/1.1\r\nHost: h\r\nx-idempotency-key: k\r\n\r\n");
        sends_raw(&onceward, request).await.is_executed(200);
        let seen = last(&receiver);
        assert_eq!((seen.method.as_str(), seen.header("content-length")), (method, length));
        assert_eq!(seen.header("transfer-encoding"), None);
    }
    let request = "DELETE /hooks HTTP/1.1\r\nHost: h\r\nx-idempotency-key: k2\r\n\
        content-length: 2\r\n\r\n{}";
    sends_raw(&onceward, request).await.is_executed(200);
    assert_eq!(last(&receiver).values("content-length"), [b"2"]);
    assert_eq!(last(&receiver).body, b"{}");
    receiver.was_called(5);
}

/// The key is read from a copy: the upstream can check a signature over the same bytes.
#[tokio::test]
async fn the_body_reaches_the_upstream_byte_for_byte() {
    let receiver = ok().await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let odd = "{\"id\": \"v\",  \"n\": 1.0, \"u\": \"\\u2028\", \"s\": \"a\\/b\", \"e\": 1E5, \
        \"n\": 1.00}\n";
    let bodies: [Vec<u8>; 5] = [
        odd.into(),
        "{\r\n\t\"id\" : \"crlf\"\r\n}\r\n".into(),
        "\u{feff}{\"id\": \"bom\"}".into(),
        b"\x00\x01\xfe\xff not text at all \x00".to_vec(),
        (0..=255).cycle().take(1_000_000).collect(),
    ];
    for (n, body) in bodies.into_iter().enumerate() {
        let event = Event::bytes(body.clone());
        let event = if n < 2 { event } else { event.keyed(&format!("k{n}")) };
        onceward.sends(event.clone()).await.is_executed(200);
        let seen = last(&receiver);
        assert!(seen.body == body, "body {n}");
        assert_eq!(seen.header("content-length"), Some(body.len().to_string().as_str()));
        onceward.sends(event).await.is_replayed(200);
    }
    receiver.was_called(5);
}

/// Values of one name stay apart, and need not be text.
#[tokio::test]
async fn header_values_reach_the_upstream_as_they_came_and_in_order() {
    let receiver = ok().await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let request = b"POST /hooks HTTP/1.1\r\nHost: h\r\nX-Many: b\r\nX-Signature: t=1,v1=AbC==\r\n\
        X-Latin: caf\xe9\r\nx-many: a\r\nX-Bytes: \x80\xff\r\nX-MANY: b\r\nX-Empty:\r\n\
        X-Inner: a \t b,  c\r\nCookie: a=1\r\nAuthorization: Basic eDp5\r\nDate: yesterday\r\n\
        Content-Type: text/x; q=\"\xc3\xa9\"\r\nUser-Agent: Sender/1.0 (+http://x)\r\n\
        Accept: */*\r\nx-idempotency-key:  k1 \r\ncontent-length: 2\r\n\r\n{}";
    sends_raw(&onceward, request).await.is_executed(200);
    let seen = last(&receiver);
    assert_eq!(seen.values("x-many"), [b"b", b"a", b"b"]);
    for (name, value) in [
        ("x-signature", b"t=1,v1=AbC==".as_slice()),
        ("x-latin", b"caf\xe9"),
        ("x-bytes", b"\x80\xff"),
        ("x-empty", b""),
        ("x-inner", b"a \t b,  c"),
        ("cookie", b"a=1"),
        ("authorization", b"Basic eDp5"),
        ("date", b"yesterday"),
        ("content-type", b"text/x; q=\"\xc3\xa9\""),
        ("user-agent", b"Sender/1.0 (+http://x)"),
        ("accept", b"*/*"),
        ("x-idempotency-key", b"k1"),
    ] {
        assert_eq!(seen.values(name), [value], "{name}");
    }
}

/// What is not there is not made up.
#[tokio::test]
async fn nothing_is_added_but_what_the_contract_names() {
    let receiver = ok().await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let request = "POST /hooks HTTP/1.1\r\nHost: h\r\nx-idempotency-key: k\r\n\r\n";
    sends_raw(&onceward, request).await.is_executed(200);
    let mut names: Vec<_> =
        last(&receiver).headers.iter().map(|(name, _)| name.to_ascii_lowercase()).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "content-length",
            "host",
            "onceward-attempt",
            "onceward-operation",
            "via",
            "x-forwarded-for",
            "x-forwarded-host",
            "x-forwarded-port",
            "x-forwarded-proto",
            "x-idempotency-key",
        ]
    );
}

/// RFC 9110, 7.6.1: `Connection` names what is about one connection alone.
#[tokio::test]
async fn headers_of_one_connection_end_with_it_in_both_directions() {
    let receiver = Receiver::that(|_, _| {
        Act::RawThenStay(
            b"HTTP/1.1 200 OK\r\nConnection: X-Up, keep-alive\r\nConnection: \xff, X-Up-Two\r\n\
              X-Up: 1\r\nX-Up-Two: 2\r\nKeep-Alive: timeout=5\r\nUpgrade: h2c\r\nTE: trailers\r\n\
              Trailer: X-Sum\r\nProxy-Authenticate: Basic\r\nProxy-Connection: keep-alive\r\n\
              X-Kept: 1\r\ncontent-length: 2\r\n\r\nok"
                .into(),
        )
    })
    .await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let request = b"POST /hooks HTTP/1.1\r\nHost: h\r\nConnection: X-Hop, keep-alive\r\n\
        Connection: \xff,x-hop-two\r\nX-Hop: 1\r\nX-Hop-Two: 2\r\nKeep-Alive: timeout=5\r\n\
        TE: trailers\r\nProxy-Authorization: Basic eDp5\r\nProxy-Connection: keep-alive\r\n\
        Upgrade: websocket\r\nHTTP2-Settings: AAMAAABk\r\nX-Kept: 1\r\nx-idempotency-key: k\r\n\
        content-length: 2\r\n\r\n{}";
    let first = sends_raw(&onceward, request).await;
    first.is_executed(200);
    let seen = last(&receiver);
    assert_eq!(seen.header("x-kept"), Some("1"));
    for name in [
        "connection",
        "x-hop",
        "x-hop-two",
        "keep-alive",
        "te",
        "proxy-authorization",
        "proxy-connection",
        "upgrade",
        "http2-settings",
    ] {
        assert_eq!(seen.values(name), Vec::<&[u8]>::new(), "{name}");
    }
    let copy = sends_raw(&onceward, request).await;
    copy.is_replayed(200);
    for reply in [first, copy] {
        assert_eq!(reply.header("x-kept"), Some("1"));
        for name in [
            "connection",
            "x-up",
            "x-up-two",
            "keep-alive",
            "upgrade",
            "te",
            "trailer",
            "proxy-authenticate",
            "proxy-connection",
        ] {
            assert_eq!(reply.values(name), Vec::<&[u8]>::new(), "{name}");
        }
    }
}

/// Nobody else speaks in Onceward's name.
#[tokio::test]
async fn headers_that_only_onceward_may_say_are_dropped() {
    let receiver = Receiver::that(|_, _| {
        Answer::new(200, "ok")
            .header("onceward-operation", "op_forged")
            .header("Onceward-Disposition", "replayed")
            .header("onceward-verified", "stripe")
            .header("idempotent-replayed", "true")
            .into()
    })
    .await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let forged = event("evt_1")
        .header("onceward-operation", "op_forged")
        .header("Onceward-Attempt", "9")
        .header("onceward-verified", "stripe")
        .header("onceward-anything", "1")
        .header("idempotent-replayed", "true");
    let reply = onceward.sends(forged).await;
    reply.is_executed(200);
    assert_eq!(reply.values("onceward-operation").len(), 1);
    assert_eq!(reply.values("onceward-disposition").len(), 1);
    assert_eq!(reply.header("onceward-verified"), None);
    let seen = last(&receiver);
    assert_eq!(seen.values("onceward-operation"), [reply.operation().as_bytes()]);
    assert_eq!(seen.values("onceward-attempt"), [b"1"]);
    for name in ["onceward-verified", "onceward-anything"] {
        assert_eq!(seen.header(name), None, "{name}");
    }

    let passed = onceward.sends(event("evt_1").by("GET").header("onceward-verified", "x")).await;
    passed.is_passed(200);
    for name in ["idempotent-replayed", "onceward-verified"] {
        assert_eq!(passed.header(name), None, "{name}");
    }
    let seen = last(&receiver);
    for name in ["onceward-operation", "onceward-attempt", "onceward-verified"] {
        assert_eq!(seen.header(name), None, "{name}");
    }
}

#[tokio::test]
async fn each_attempt_tells_the_upstream_its_operation_and_its_number() {
    let receiver = Receiver::that(|_, copies| {
        Answer::new(if copies < 3 { 500 } else { 200 }, "answer").into()
    })
    .await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let mut operation = String::new();
    for status in [500, 500, 500, 200] {
        let reply = onceward.sends(event("evt_1")).await;
        reply.is_executed(status);
        operation = reply.operation();
    }
    onceward.sends(event("evt_1")).await.is_replayed(200);
    let seen = receiver.seen();
    let attempts: Vec<_> = seen.iter().map(|seen| seen.header("onceward-attempt")).collect();
    assert_eq!(attempts, [Some("1"), Some("2"), Some("3"), Some("4")]);
    assert!(seen.iter().all(|seen| seen.header("onceward-operation") == Some(&*operation)));
    let hex = operation.strip_prefix("op_").unwrap();
    assert!(hex.len() == 32 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()), "{operation}");
}

#[tokio::test]
async fn what_tells_operations_apart_is_forwarded_where_the_upstream_wants_it() {
    let receiver = ok().await;
    let onceward = Onceward::in_front_of(&receiver)
        .defaults("forward_key = \"X-Dedup\"\nwhen_key_missing = \"hash-body\"")
        .start()
        .await;
    onceward.sends(Event::bytes("x").keyed("\"quoted\"")).await.is_executed(200);
    assert_eq!(last(&receiver).values("x-dedup"), [b"quoted"]);
    // One id, and two things to be done.
    let of = |kind: &str| format!(r#"{{"id":"evt_1","type":"{kind}"}}"#);
    let events = [of("created"), of("paid"), r#"{"id":"zwölf"}"#.to_owned(), "hashed".to_owned()];
    for sent in events {
        let reply = onceward.sends(Event::bytes(sent).header("x-dedup", "forged")).await;
        reply.is_executed(200);
        assert_eq!(last(&receiver).values("x-dedup"), [reply.operation().as_bytes()]);
    }
    receiver.was_called(5);
}

/// An upstream that deduplicates by the header would otherwise drop a later event, whose key somebody
/// else has written.
#[tokio::test]
async fn a_key_that_its_sender_wrote_is_forwarded_with_no_request() {
    let receiver = ok().await;
    let url = receiver.url();
    let onceward = Onceward::in_front_of(&receiver)
        .defaults("forward_key = \"X-Dedup\"\nwhen_key_missing = \"forward\"")
        .routes(&format!(
            "[routes.passes]\npath = \"/passes\"\nupstream = \"{url}\"\nmode = \"pass\"\n\
             [routes.observes]\npath = \"/observes\"\nupstream = \"{url}\"\nmode = \"observe\"\n\
             provider = \"stripe\"\nsecrets = [{{ env = \"THE_SECRET\" }}]\n"
        ))
        .variable("THE_SECRET", "whsec_x")
        .start()
        .await;
    let passing = [
        Event::bytes("").by("GET"),
        Event::bytes("no event"),
        event("evt_1").to("/passes"),
        // It is forged.
        event("evt_1").to("/observes"),
    ];
    for sent in passing {
        let sent = sent.header("x-dedup", "theirs").header("x_dedup", "theirs");
        onceward.sends(sent).await.is_passed(200);
        let seen = last(&receiver);
        assert_eq!((seen.header("x-dedup"), seen.header("x_dedup")), (None, None), "{seen:?}");
    }
    let sent = event("evt_1").header("x-dedup", "theirs").header("x_dedup", "theirs");
    let reply = onceward.sends(sent).await;
    let seen = last(&receiver);
    assert_eq!(seen.values("x-dedup"), [reply.operation().as_bytes()]);
    assert_eq!(seen.header("x_dedup"), None);
    receiver.was_called(5);
}

#[tokio::test]
async fn an_upstream_with_a_path_gets_its_own_path_and_learns_of_the_prefix() {
    let receiver = ok().await;
    let url = receiver.url();
    let onceward = Onceward::in_front_of_url(&format!("{url}/internal/in"))
        .routes(&format!(
            "[routes.exact]\npath = \"/one\"\nupstream = \"{url}/other\"\n\
             [routes.kept]\npath = \"/kept/*\"\nupstream = \"{url}/\""
        ))
        .start()
        .await;
    for (target, forwarded, prefix) in [
        ("/hooks", "/internal/in", Some("/hooks")),
        ("/hooks/", "/internal/in/", Some("/hooks")),
        ("/hooks/a%2Fb//c?d=%20&e", "/internal/in/a%2Fb//c?d=%20&e", Some("/hooks")),
        ("/hooks?q", "/internal/in?q", Some("/hooks")),
        ("/one?q=1", "/other?q=1", None),
        ("/kept/a/b?c", "/kept/a/b?c", None),
    ] {
        sends_raw(&onceward, event(target).to(target).raw()).await.is_executed(200);
        let seen = last(&receiver);
        assert_eq!(seen.target, forwarded);
        // On an exact route there is no prefix that the upstream could put before its links.
        if target != "/one?q=1" {
            assert_eq!(seen.header("x-forwarded-prefix"), prefix, "{target}");
        }
    }
    receiver.was_called(6);
}

/// Senders check that an endpoint is theirs by a GET that must be answered with its own challenge.
#[tokio::test]
async fn a_challenge_is_passed_on_each_time_and_never_cached() {
    let receiver = Receiver::that(|seen, _| {
        let challenge = seen.target.split("challenge=").nth(1).unwrap_or("none");
        let challenge = challenge.split('&').next().unwrap();
        Answer::new(200, challenge).into()
    })
    .await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    for challenge in ["111", "222", "111"] {
        let target =
            format!("/hooks/fb?hub.mode=subscribe&hub.challenge={challenge}&hub.verify_token=t");
        let event = Event::bytes("").by("GET").to(&target).keyed("same");
        let reply = onceward.sends(event).await;
        assert_eq!(reply.is_passed(200).text(), challenge);
        let seen = last(&receiver);
        assert_eq!((seen.method.as_str(), &*seen.target), ("GET", &*target));
        assert_eq!(seen.header("onceward-attempt"), None);
        assert_eq!(seen.header("x-idempotency-key"), Some("same"));
    }
    onceward.sends(Event::bytes("").by("OPTIONS")).await.is_passed(200);
    assert_eq!(last(&receiver).method, "OPTIONS");
    receiver.was_called(4);
    // Nor do they burn the key for an event.
    onceward.sends(Event::bytes("{}").keyed("same")).await.is_executed(200);
}

/// Trello asks with HEAD whether the endpoint is there.
#[tokio::test]
async fn a_probe_with_head_gets_no_body_and_the_connection_goes_on() {
    let receiver = Receiver::that(|seen, _| match seen.method.as_str() {
        "HEAD" => {
            Act::RawThenStay(b"HTTP/1.1 200 OK\r\nx-app: 7\r\ncontent-length: 5\r\n\r\n".into())
        }
        _ => Answer::new(200, "after").into(),
    })
    .await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let mut sender = onceward.connects().await;
    for round in ["1", "2"] {
        sender.writes(b"HEAD /hooks/trello HTTP/1.1\r\nhost: h\r\n\r\n").await;
        let head = sender.reads_head().await;
        head.is_passed(200);
        assert_eq!((head.header("content-length"), head.header("x-app")), (Some("5"), Some("7")));
        sender.writes(&event(round).raw()).await;
        assert_eq!(sender.reads_answer().await.is_executed(200).text(), "after");
    }
    receiver.was_called(4);
}

#[tokio::test]
async fn a_method_that_the_route_does_not_take_is_refused_with_those_it_does() {
    let receiver = ok().await;
    let onceward = Onceward::in_front_of(&receiver).defaults("methods = [\"POST\"]").start().await;
    let reply = onceward.sends(event("evt_1").by("PUT")).await;
    reply.is_refused(405, "method-not-allowed");
    let allow = reply.header("allow").unwrap();
    for method in ["POST", "GET", "HEAD", "OPTIONS"] {
        assert!(allow.split(", ").any(|allowed| allowed == method), "{allow}");
    }
    assert!(!allow.contains("PUT"), "{allow}");
    receiver.was_called(0);
}

async fn expecting(onceward: &Onceward, expectation: &str, length: usize) -> RawSender {
    let mut sender = onceward.connects().await;
    let head = format!(
        "POST /hooks HTTP/1.1\r\nHost: h\r\nExpect: {expectation}\r\nx-idempotency-key: k\r\n\
         Content-Length: {length}\r\n\r\n"
    );
    sender.writes(head.as_bytes()).await;
    sender
}

#[tokio::test]
async fn a_sender_that_waits_for_100_continue_is_told_to_go_on() {
    let receiver = ok().await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let mut sender = expecting(&onceward, "100-continue", 2048).await;
    let interim = sender.reads_until(b"\r\n\r\n").await;
    assert_eq!(String::from_utf8(interim).unwrap(), "HTTP/1.1 100 Continue\r\n\r\n");
    receiver.was_called(0);
    sender.writes(&[b'x'; 2048]).await;
    sender.reads_answer().await.is_executed(200);
    let seen = last(&receiver);
    assert_eq!((seen.body.len(), seen.header("expect")), (2048, None));

    let mut sender = expecting(&onceward, "100-continue", 2 << 20).await;
    let refused = sender.reads_until(b"\r\n\r\n").await;
    assert!(refused.starts_with(b"HTTP/1.1 413 "), "no 100 before a refusal");
    let mut sender = expecting(&onceward, "foo", 5).await;
    assert!(sender.reads_until(b"\r\n\r\n").await.starts_with(b"HTTP/1.1 417 "));
    receiver.was_called(1);
}

fn http2() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().unwrap()
}

/// What came over HTTP/2 is forwarded as if it had come over HTTP/1.1.
#[tokio::test]
async fn a_sender_of_http_2_is_served_alike() {
    let receiver = Receiver::that(|_, _| {
        Answer::new(200, "ok").header("link", "</b>").header("link", "</a>").into()
    })
    .await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let url = format!("http://{}/hooks/a%2Fb?x=%2F", onceward.address);
    let sends = || {
        let request = http2().post(&url).body("{\"id\": \"evt_1\"}").header("x-many", "b");
        let latin = HeaderValue::from_bytes(b"caf\xe9").unwrap();
        request.header("x-many", "a").header("x-latin", latin).header("te", "trailers").send()
    };
    let response = sends().await.unwrap();
    assert_eq!(response.version(), reqwest::Version::HTTP_2);
    let first = Reply::of(response).await;
    first.is_executed(200);
    let seen = last(&receiver);
    assert_eq!((seen.method.as_str(), seen.target.as_str()), ("POST", "/hooks/a%2Fb?x=%2F"));
    assert_eq!(seen.body, b"{\"id\": \"evt_1\"}");
    assert_eq!(seen.values("x-many"), [b"b", b"a"]);
    assert_eq!(seen.values("x-latin"), [b"caf\xe9"]);
    assert_eq!(seen.values("content-length"), [b"15"]);
    let host = onceward.address.to_string();
    assert_eq!(seen.values("host"), [host.as_bytes()]);
    assert_eq!(seen.values("x-forwarded-host"), [host.as_bytes()]);
    assert_eq!(seen.values("via"), [b"2.0 onceward"]);
    assert_eq!(seen.header("te"), None);

    let copy = Reply::of(sends().await.unwrap()).await;
    copy.is_replayed(200);
    assert_eq!(copy.operation(), first.operation());
    for reply in [first, copy] {
        assert_eq!(reply.text(), "ok");
        assert_eq!(reply.values("link"), [b"</b>", b"</a>"]);
    }
    receiver.was_called(1);
}

/// RFC 9113, 8.2.3: crumbs of a cookie become one line before they leave HTTP/2.
#[tokio::test]
async fn the_crumbs_of_an_http_2_cookie_become_one_line() {
    let receiver = ok().await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let url = format!("http://{}/hooks", onceward.address);
    let request = http2().post(url).body("{\"id\": \"evt_1\"}");
    let request = request.header("cookie", "a=1").header("cookie", "b=2");
    Reply::of(request.send().await.unwrap()).await.is_executed(200);
    assert_eq!(last(&receiver).values("cookie"), [b"a=1; b=2"]);
}

/// RFC 9110, 7.6.3: `Via` names the version in which the request came.
#[tokio::test]
async fn a_sender_of_http_1_0_is_served_alike() {
    let receiver = ok().await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let request = "POST /hooks HTTP/1.0\r\nHost: old.example\r\nContent-Length: 14\r\n\r\n\
        {\"id\":\"evt_1\"}";
    let reply = sends_raw(&onceward, request).await;
    reply.is_executed(200);
    let seen = last(&receiver);
    assert_eq!(seen.body, b"{\"id\":\"evt_1\"}");
    assert_eq!(seen.values("host"), [b"old.example"]);
    assert_eq!(seen.values("via"), [b"1.0 onceward"]);
}
