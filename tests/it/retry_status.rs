//! A sender that takes some 5xx for the end of an event is told to come back while it is not done.

use std::net::SocketAddr;

use rustix::process::Signal;
use tokio::net::TcpListener;

use crate::shutdown::turns_away;
use crate::store_fails;
use crate::support::{Act, Answer, Event, Gate, Onceward, Receiver, event, free_port};

/// The text of the warning that an uncertain outcome leaves in the log.
const HELD: &str = "nobody knows whether the operation was done";
const UPSTREAM_STATUS: &str = "onceward-upstream-status";

/// Answers with the status that the event's id names.
async fn obedient() -> Receiver {
    Receiver::that(|seen, _| {
        let text = String::from_utf8_lossy(&seen.body).into_owned();
        let status = text.split("evt_").nth(1).and_then(|rest| rest.get(..3)?.parse().ok());
        Answer::new(status.unwrap_or(200), "the receiver's own words").into()
    })
    .await
}

#[tokio::test]
async fn a_5xx_of_the_upstreams_is_replaced_and_its_body_stays() {
    let receiver = obedient().await;
    let onceward = Onceward::in_front_of(&receiver).defaults("retry_status = 503").start().await;
    for status in [500, 501, 502] {
        let reply = onceward.sends(event(&format!("evt_{status}"))).await;
        reply.is_executed(503).comes_back();
        assert_eq!(reply.header(UPSTREAM_STATUS), Some(&*status.to_string()));
        assert_eq!(reply.text(), "the receiver's own words");
    }
    // What is not a 5xx, and the status itself, stay as they are.
    for status in [200, 400, 404, 429, 503] {
        let reply = onceward.sends(event(&format!("evt_{status}"))).await;
        reply.is_executed(status);
        assert_eq!(reply.header(UPSTREAM_STATUS), None);
    }
    // It is free for the next copy all the same.
    onceward.sends(event("evt_500")).await.is_executed(503);
    receiver.was_called(9);
}

#[tokio::test]
async fn a_502_and_a_504_of_onceward_itself_are_replaced_wherever_they_come_from() {
    let gate = Gate::default();
    let receiver = Receiver::that({
        let gate = gate.clone();
        move |seen, _| match String::from_utf8_lossy(&seen.body) {
            body if body.contains("evt_broken") => Act::Raw(b"HTTP/1.1 200 OK\r\n".to_vec()),
            _ => Answer::new(200, "ok").when(&gate),
        }
    })
    .await;
    let nobody =
        format!("[routes.away]\npath = \"/away\"\nupstream = \"http://127.0.0.1:{}\"", free_port());
    let route = |name: &str, setting: &str| {
        let url = receiver.url();
        format!("[routes.{name}]\npath = \"/{name}\"\nupstream = \"{url}\"\n{setting}")
    };
    let slow = route("slow", "attempt_timeout = \"1s\"");
    let patient = route("patient", "answer_within = \"300ms\"");
    let onceward = Onceward::in_front_of(&receiver)
        .defaults("retry_status = 429")
        .routes(&format!("{nobody}\n{slow}\n{patient}"))
        .in_memory()
        .expects_log(HELD)
        .start()
        .await;
    for (sent, code) in [
        (event("evt_1").to("/away"), "upstream-unreachable"),
        (event("evt_broken").to("/hooks"), "upstream-broken"),
        (event("evt_2").to("/slow"), "upstream-timeout"),
    ] {
        let reply = onceward.sends(sent).await;
        reply.is_executed_as(code, 429).comes_back();
        assert_eq!(reply.header(UPSTREAM_STATUS), None);
    }
    // The end of `answer_within`, while the attempt goes on.
    onceward.sends(event("evt_3").to("/patient")).await.is_in_flight(429);
    gate.opens();
}

#[tokio::test]
async fn what_is_final_is_a_fact_of_the_sender() {
    let receiver = obedient().await;
    let facts = "[providers.acme.facts]\nfinal = [\"502\", \"504\"]\n";
    let onceward = Onceward::in_front_of(&receiver)
        .routes(&format!("provider = \"acme\"\nretry_status = 503\n{facts}"))
        .start()
        .await;
    onceward.sends(event("evt_500")).await.is_executed(500);
    onceward.sends(event("evt_502")).await.is_executed(503);
}

/// Zendesk tries again after a 503, and gives an event up after a 500, 502 or 504.
#[tokio::test]
async fn zendesk_is_told_503_while_the_application_is_away() {
    let upstream = format!("http://127.0.0.1:{}", free_port());
    let onceward = Onceward::in_front_of_url(&upstream)
        .routes("provider = \"zendesk\"\nverify = false\nkey.header = [\"x-key\"]\nkey.scope = []")
        .start()
        .await;
    let sent = Event::bytes("{\"id\":\"1\",\"type\":\"t\",\"account_id\":\"1\"}");
    let sent = sent.header("x-key", "1").header("x-zendesk-webhook-id", "1").to("/hooks");
    onceward.sends(sent).await.is_executed_as("upstream-unreachable", 503).comes_back();
}

/// Brevo tries again after a 429 alone: every 503 of Onceward's own would end an event.
const BREVO: &str = "provider = \"brevo\"\nverify = false\n";

#[tokio::test]
async fn brevo_is_told_429_where_there_is_too_much_to_do_and_while_the_process_ends() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "done\n").await;
    let plain = format!(
        "[routes.app]\npath = \"/app\"\nupstream = \"{}\"\nmode = \"pass\"",
        receiver.url()
    );
    let onceward = Onceward::in_front_of(&receiver)
        .defaults("in_flight_max = 1\nretry_status = 429")
        .routes(&format!("{BREVO}{plain}"))
        .start()
        .await;
    let meanwhile = async {
        receiver.has_counted(1).await;
        onceward.sends(event("evt_2")).await.is_refused(429, "overloaded").comes_back();
        onceward.signal(Signal::TERM);
        turns_away(&onceward).await.is_refused(503, "draining");
        let turned_away = onceward.sends(event("evt_3")).await;
        turned_away.is_refused(429, "draining").comes_back();
        // A sender that is not known is told what it always was.
        onceward.sends(event("evt_3").to("/app")).await.is_refused(503, "draining");
        gate.opens();
    };
    let (first, ()) = tokio::join!(onceward.sends(event("evt_1")), meanwhile);
    first.is_executed(200);
    receiver.was_called(1);
}

#[tokio::test]
async fn brevo_is_told_429_while_the_store_is_away() {
    let receiver = Receiver::that_answers(200, "done\n").await;
    let mut builder = Onceward::in_front_of(&receiver).routes(BREVO);
    for text in store_fails::LOGS {
        builder = builder.expects_log(text);
    }
    let onceward = builder.start().await;
    let fault = onceward.has_a_broken_disk().await;
    onceward.sends(event("evt_1")).await.is_refused(429, "store-unavailable").comes_back();
    fault.ends().await;
    receiver.was_called(0);
}

/// By the rules of a route a 5xx may mean that the event is done: then nothing is replaced.
#[tokio::test]
async fn a_success_is_never_replaced() {
    let receiver = obedient().await;
    let onceward = Onceward::in_front_of(&receiver)
        .defaults("retry_status = 503\noutcome.succeeded = [\"2xx\", \"500\"]")
        .start()
        .await;
    onceward.sends(event("evt_500")).await.is_executed(500);
    onceward.sends(event("evt_500")).await.is_replayed(500);
}

#[tokio::test]
async fn steps_inherit_it_and_a_plain_proxy_does_not_have_it() {
    let receiver = obedient().await;
    let plain = format!(
        "[routes.app]\npath = \"/app/*\"\nupstream = \"{}\"\nmode = \"pass\"",
        receiver.url()
    );
    let onceward =
        Onceward::in_front_of_steps(&[("ledger", &receiver, ""), ("mail", &receiver, "")])
            .defaults("retry_status = 503")
            .routes(&plain)
            .start()
            .await;
    let reply = onceward.sends(event("evt_500")).await;
    reply.is_executed(503);
    assert_eq!(reply.header(UPSTREAM_STATUS), Some("500"));
    onceward.sends(event("evt_500").to("/app/page")).await.is_passed(500);
}

/// The same status may mean success to another step.
#[tokio::test]
async fn the_step_that_was_not_done_decides_whether_a_status_is_replaced() {
    let receiver = obedient().await;
    let takes_500 = "outcome.succeeded = [\"2xx\", \"500\"]";
    let steps = [("ledger", &receiver, ""), ("mail", &receiver, takes_500)];
    let onceward = Onceward::in_front_of_steps(&steps).defaults("retry_status = 503").start().await;
    onceward.sends(event("evt_500")).await.is_executed(503);
    receiver.was_called(1);

    let receiver = obedient().await;
    let steps = [("ledger", &receiver, takes_500), ("mail", &receiver, takes_500)];
    let onceward = Onceward::in_front_of_steps(&steps).defaults("retry_status = 503").start().await;
    onceward.sends(event("evt_500")).await.is_executed(500);
    receiver.was_called(2);
}

#[tokio::test]
async fn a_route_that_only_observes_changes_no_status_of_the_upstream() {
    let receiver = obedient().await;
    let observe = "mode = \"observe\"\nretry_status = 503";
    let onceward = Onceward::in_front_of(&receiver).defaults(observe).start().await;
    for _ in 0..2 {
        let reply = onceward.sends(event("evt_500")).await;
        reply.is_passed(500);
        assert_eq!(reply.header(UPSTREAM_STATUS), None);
    }
    receiver.was_called(2);
}

/// Xero: "your endpoint must return a 401 with no body" for a wrong signature.
#[tokio::test]
async fn a_refusal_without_a_body_is_for_the_route_that_asks_for_it() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let signed = |name: &str, more: &str| {
        let url = receiver.url();
        format!(
            "[routes.{name}]\npath = \"/{name}\"\nupstream = \"{url}\"\nprovider = \"acme\"\n\
             secrets = [{{ env = \"THE_SECRET\" }}]\n{more}\n"
        )
    };
    let acme = "[providers.acme]\nsignature = { scheme = \"hmac\", header = \"x-acme\" }\n";
    let routes = [signed("bare", "refusal_body = \"none\""), signed("told", ""), acme.to_owned()];
    let onceward = Onceward::in_front_of(&receiver)
        .variable("THE_SECRET", "secret")
        .routes(&routes.concat())
        .start()
        .await;
    let bare = onceward.sends(event("evt_1").to("/bare").header("x-acme", "00")).await;
    assert_eq!((bare.status, bare.body.len()), (401, 0), "{bare:?}");
    assert_eq!(bare.header("content-type"), None);
    assert_eq!(bare.header("content-length"), Some("0"));
    assert_eq!(bare.disposition(), "refused");
    let told = onceward.sends(event("evt_1").to("/told").header("x-acme", "00")).await;
    told.is_refused(401, "signature-invalid");
    // Whatever it is refused for.
    let connection = event("evt_1").header("connection", "x-acme");
    let sends = async |event: Event| {
        let mut sender = onceward.connects().await;
        sender.writes(&event.raw()).await;
        sender.reads_reply().await
    };
    for (refused, status) in [(event("evt_1").by("TRACE"), 405), (connection, 400)] {
        let bare = sends(refused.clone().to("/bare")).await;
        assert_eq!((bare.status, bare.body.len()), (status, 0), "{bare:?}");
        assert_eq!(bare.header("content-type"), None);
        let told = sends(refused.to("/told")).await;
        assert_eq!((told.status, told.problem()["status"].as_u64()), (status, Some(status.into())));
    }
    let counted = |code| format!("onceward_refusals_total{{route=\"bare\",code=\"{code}\"}}");
    assert_eq!(onceward.metric(&counted("method-not-allowed")).await, 1.0);
    assert_eq!(onceward.metric(&counted("malformed")).await, 1.0);
}

/// A server that knows nothing of TLS.
async fn closes_at_once() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { while listener.accept().await.is_ok() {} });
    address
}

/// What failed is named to the sender, and where to the operator alone.
#[tokio::test]
async fn a_502_says_what_failed_and_the_log_names_the_upstream() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let closed = format!("127.0.0.1:{}", free_port());
    let route = |name: &str, upstream: &str| {
        format!("[routes.{name}]\npath = \"/{name}\"\nupstream = \"{upstream}\"\n")
    };
    let routes = [
        route("name", "http://nobody.invalid"),
        route("connection", &format!("http://{closed}")),
        route("tls", &format!("https://{}", closes_at_once().await)),
    ];
    let onceward = Onceward::in_front_of(&receiver).routes(&routes.concat()).start().await;
    for (path, said, reason) in [
        ("/name", "name could not be resolved", "name-not-found"),
        ("/connection", "accepted no connection", "connect-failed"),
        ("/tls", "the TLS handshake with the upstream failed", "tls-failed"),
    ] {
        let reply = onceward.sends(event("evt_1").to(path)).await;
        reply.is_executed_as("upstream-unreachable", 502);
        let detail = reply.problem()["detail"].as_str().unwrap().to_owned();
        assert!(detail.starts_with("nothing was sent: ") && detail.contains(said), "{detail}");
        assert!(!detail.contains("127.0.0.1") && !detail.contains("invalid"), "{detail}");
        onceward.logs(&format!("\"reason\":\"{reason}\"")).await;
    }
    onceward.logs(&format!("\"upstream\":\"{closed}\"")).await;
    onceward.logs("\"upstream\":\"nobody.invalid\"").await;
}
