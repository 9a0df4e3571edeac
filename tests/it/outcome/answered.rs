//! A complete answer came: its status decides.

use super::{HELD, answered, is_held, standing};
use crate::support::{Act, Answer, Onceward, Receiver, event};

/// The status table without configuration.
#[tokio::test]
async fn any_status_but_a_2xx_is_a_failure_and_the_next_copy_is_a_new_attempt() {
    let receiver = Receiver::that(|seen, copies| {
        let status = seen.header("x-status").unwrap().parse().unwrap();
        Answer::new(if copies == 0 { status } else { 200 }, "in its own words").into()
    })
    .await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let statuses = [
        300, 304, 400, 401, 402, 403, 404, 405, 408, 409, 410, 413, 415, 421, 422, 423, 425, 429,
        451, 499, 500, 501, 502, 503, 505, 507, 511, 599, 600, 999,
    ];
    for (before, status) in statuses.into_iter().enumerate() {
        let event = event(&format!("evt_{status}")).header("x-status", &status.to_string());
        let first = onceward.sends(event.clone()).await;
        first.is_executed(status);
        let body = if status == 304 { "" } else { "in its own words" };
        assert_eq!(first.text(), body, "{status}");
        assert_eq!(first.header("retry-after"), None, "nothing is added to it");
        assert_eq!(standing(&onceward, &first).await, answered(1, "failed", status));
        receiver.was_called(2 * before + 1);
        let second = onceward.sends(event.clone()).await;
        second.is_executed(200);
        assert_eq!(second.operation(), first.operation());
        assert_eq!(standing(&onceward, &first).await, answered(2, "succeeded", 200));
        onceward.sends(event).await.is_replayed(200);
        receiver.was_called(2 * before + 2);
    }
}

#[tokio::test]
async fn any_2xx_is_a_success_and_is_replayed_as_it_was() {
    let receiver = Receiver::that(|seen, _| {
        Answer::new(seen.header("x-status").unwrap().parse().unwrap(), "words").into()
    })
    .await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    for status in [200, 201, 202, 203, 206, 207, 226, 299] {
        let event = event(&format!("evt_{status}")).header("x-status", &status.to_string());
        let first = onceward.sends(event.clone()).await;
        first.is_executed(status);
        assert_eq!(standing(&onceward, &first).await, answered(1, "succeeded", status));
        let second = onceward.sends(event).await;
        second.is_replayed(status);
        assert_eq!(second.body, first.body);
    }
    receiver.was_called(8);
}

#[tokio::test]
async fn a_503_is_passed_on_with_its_retry_after_and_frees_the_operation() {
    let receiver = Receiver::that(|_, copies| match copies {
        0 => Answer::new(503, "later").header("retry-after", "7").into(),
        _ => Answer::new(200, "A").into(),
    })
    .await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let first = onceward.sends(event("evt_70")).await;
    first.is_executed(503);
    assert_eq!((first.header("retry-after"), first.text().as_str()), (Some("7"), "later"));
    assert_eq!(standing(&onceward, &first).await, answered(1, "failed", 503));
    let second = onceward.sends(event("evt_70")).await;
    second.is_executed(200);
    assert_eq!(second.text(), "A");
    let third = onceward.sends(event("evt_70")).await;
    third.is_replayed(200);
    assert_eq!((third.text().as_str(), third.header("retry-after")), ("A", None));
    receiver.was_called(2);
}

#[tokio::test]
async fn a_redirect_is_passed_on_and_never_followed() {
    let elsewhere = Receiver::that_answers(200, "followed").await;
    let other_host = format!("{}/login", elsewhere.url());
    let locations = ["/login".to_owned(), other_host];
    let targets = locations.clone();
    let receiver = Receiver::that(move |seen, _| {
        let status = seen.header("x-status").unwrap().parse().unwrap();
        let target: usize = seen.header("x-target").unwrap().parse().unwrap();
        Answer::new(status, "moved").header("location", &targets[target]).into()
    })
    .await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    for status in [301, 302, 303, 307, 308] {
        for (target, location) in locations.iter().enumerate() {
            let event = event(&format!("evt_{status}_{target}"))
                .header("x-status", &status.to_string())
                .header("x-target", &target.to_string());
            for attempt in [1, 2] {
                let reply = onceward.sends(event.clone()).await;
                reply.is_executed(status);
                assert_eq!(reply.header("location"), Some(location.as_str()));
                assert_eq!(reply.text(), "moved");
                assert_eq!(standing(&onceward, &reply).await, answered(attempt, "failed", status));
            }
        }
    }
    receiver.was_called(20);
    assert!(receiver.seen().iter().all(|seen| seen.target == "/hooks"));
    elsewhere.was_called(0);
}

/// A gateway behind us does not know either.
#[tokio::test]
async fn a_504_is_the_upstreams_own_answer_and_uncertain() {
    let receiver = Receiver::that_answers(504, "a gateway gave up").await;
    let onceward = Onceward::in_front_of(&receiver).expects_log(HELD).start().await;
    let reply = onceward.sends(event("evt_1")).await;
    reply.is_executed(504);
    assert_eq!(reply.text(), "a gateway gave up");
    assert_eq!(standing(&onceward, &reply).await, answered(1, "uncertain", 504));
    let operation = onceward.operation(&reply.operation()).await.unwrap();
    assert_eq!(operation["answer"]["status"], 504);
    assert_eq!(operation["answer"]["body_bytes"], 17);
    is_held(&onceward, event("evt_1")).await;
    receiver.was_called(1);
}

/// On some routes a refusal is the durable outcome.
#[tokio::test]
async fn the_statuses_of_a_route_decide() {
    let receiver = Receiver::that(|seen, _| {
        Answer::new(seen.header("x-status").unwrap().parse().unwrap(), "{\"taken\":true}").into()
    })
    .await;
    let onceward = Onceward::in_front_of(&receiver)
        .defaults(
            "[defaults.outcome]\nsucceeded = [\"2xx\", \"409\", \"422\"]\n\
             uncertain = [\"500\", \"207\"]",
        )
        .expects_log(HELD)
        .start()
        .await;
    for (status, outcome) in [
        (200, "succeeded"),
        (409, "succeeded"),
        (422, "succeeded"),
        (500, "uncertain"),
        // In both lists: nobody knows.
        (207, "uncertain"),
        // Named by no list.
        (410, "failed"),
        // The route's own list stands instead of the built-in one.
        (504, "failed"),
    ] {
        let event = event(&format!("evt_{status}")).header("x-status", &status.to_string());
        let first = onceward.sends(event.clone()).await;
        first.is_executed(status);
        assert_eq!(standing(&onceward, &first).await, answered(1, outcome, status));
        let second = onceward.sends(event).await;
        match outcome {
            "succeeded" => second.is_replayed(status),
            "uncertain" => second.is_uncertain(),
            _ => second.is_executed(status),
        };
        if outcome != "uncertain" {
            assert_eq!(second.text(), "{\"taken\":true}");
            assert_eq!(second.header("content-type"), None, "the upstream's own, not a problem");
        }
    }
    receiver.was_called(9);
}

#[tokio::test]
async fn interim_answers_are_not_the_answer() {
    let receiver = Receiver::that(|_, _| {
        Act::RawThenStay(
            b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n\
              HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
                .into(),
        )
    })
    .await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    for id in ["evt_1", "evt_2"] {
        let reply = onceward.sends(event(id)).await;
        reply.is_executed(200);
        assert_eq!((reply.text().as_str(), reply.header("link")), ("ok", None));
        assert_eq!(standing(&onceward, &reply).await, answered(1, "succeeded", 200));
    }
    receiver.was_called(2);
}

#[tokio::test]
async fn an_answer_that_ends_with_its_connection_is_complete() {
    for head in ["HTTP/1.0 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n"] {
        let bytes = format!("{head}to the end");
        let receiver = Receiver::that(move |_, _| Act::Raw(bytes.clone().into())).await;
        let onceward = Onceward::in_front_of(&receiver).start().await;
        let reply = onceward.sends(event("evt_1")).await;
        reply.is_executed(200);
        assert_eq!(reply.text(), "to the end");
        assert_eq!(standing(&onceward, &reply).await, answered(1, "succeeded", 200));
        let second = onceward.sends(event("evt_1")).await;
        second.is_replayed(200);
        assert_eq!(second.text(), "to the end");
        onceward.sends(event("evt_2")).await.is_executed(200);
        receiver.was_called(2);
    }
}

#[tokio::test]
async fn a_chunked_answer_is_complete_with_its_last_chunk_and_its_trailers_end_there() {
    let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\
        keep-alive: timeout=600\r\n\r\n\
        3;ext=1\r\nabc\r\n2\r\nde\r\n0\r\nx-sum: 5\r\n\r\n";
    let receiver = Receiver::that(|_, _| Act::RawThenStay(chunked.into())).await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let first = onceward.sends(event("evt_1")).await;
    first.is_executed(200);
    let second = onceward.sends(event("evt_1")).await;
    second.is_replayed(200);
    for reply in [first, second] {
        assert_eq!(reply.text(), "abcde");
        assert_eq!(reply.header("content-length"), Some("5"));
        assert_eq!(reply.header("trailer"), None);
        assert_eq!(reply.header("x-sum"), None);
    }
    onceward.sends(event("evt_2")).await.is_executed(200);
    let seen = receiver.seen();
    assert_eq!(seen[0].connection, seen[1].connection, "it could be used again");
    receiver.was_called(2);
}

/// RFC 9112, 6.3: the chunks decide, and a length beside them is nobody's.
#[tokio::test]
async fn of_an_answer_with_chunks_and_a_length_the_chunks_count() {
    let both = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n\
                 8\r\nall of i\r\n1\r\nt\r\n0\r\n\r\n";
    let receiver = Receiver::that(move |_, _| Act::Raw(both.to_vec())).await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let (first, copy) =
        (onceward.sends(event("evt_1")).await, onceward.sends(event("evt_1")).await);
    assert_eq!(first.is_executed(200).text(), "all of it");
    assert_eq!(copy.is_replayed(200).text(), "all of it");
    receiver.was_called(1);
}
