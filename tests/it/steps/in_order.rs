//! One after the other.

use super::{NAMES, Three, attempts, standing};
use crate::support::{Answer, Event, Onceward, Receiver, event};

fn failing_once(
    failing: &'static str,
) -> impl Fn(&str, &crate::support::Seen, usize) -> Option<crate::support::Act> {
    move |name, _, copies| {
        (name == failing && copies == 0).then(|| Answer::new(500, "not now").into())
    }
}

#[tokio::test]
async fn charge_account_mail_when_mail_fails_only_mail_runs_again() {
    let three = Three::that(failing_once("mail")).await;
    let onceward = three.with("").start().await;
    let first = onceward.sends(event("evt_120")).await;
    assert_eq!(first.is_executed(500).text(), "not now");
    assert_eq!(three.counts(), [1, 1, 1]);
    let id = first.operation();
    assert_eq!(standing(&onceward, &id).await, ["succeeded", "succeeded", "failed"]);
    let copy = onceward.sends(event("evt_120")).await;
    assert_eq!(copy.is_executed(200).text(), "mail");
    assert_eq!(copy.operation(), id);
    let replay = onceward.sends(event("evt_120")).await;
    assert_eq!(replay.is_replayed(200).text(), "mail");
    assert_eq!(three.counts(), [1, 1, 2]);
    let lines = [
        (1, "charge", "succeeded"),
        (1, "account", "succeeded"),
        (1, "mail", "failed"),
        (2, "mail", "succeeded"),
    ];
    let lines = lines.map(|(number, step, outcome)| (number, step.to_owned(), outcome.to_owned()));
    assert_eq!(attempts(&onceward, &id).await, lines);
    let succeeded = "onceward_attempts_total{route=\"hooks\",outcome=\"succeeded\"}";
    assert_eq!(onceward.metric(succeeded).await, 3.0);
}

/// The failure is in each place once.
#[tokio::test]
async fn the_steps_behind_one_that_fails_do_not_run() {
    for (place, failing) in NAMES.into_iter().enumerate() {
        let three = Three::that(failing_once(failing)).await;
        let onceward = three.with("").start().await;
        onceward.sends(event("evt_1")).await.is_executed(500);
        let up_to = |place: usize| [0, 1, 2].map(|index| usize::from(index <= place));
        assert_eq!(three.counts(), up_to(place), "{failing}");
        onceward.sends(event("evt_1")).await.is_executed(200);
        let mut counts = [1; 3];
        counts[place] = 2;
        assert_eq!(three.counts(), counts, "{failing}");
        onceward.sends(event("evt_1")).await.is_replayed(200);
        assert_eq!(three.counts(), counts, "{failing}");
    }
}

/// "Nothing was sent" would be wrong of the event: an earlier step was done.
#[tokio::test]
async fn a_step_that_fails_is_named_to_the_sender_and_in_the_log() {
    let charge = Receiver::that_answers(200, "charged").await;
    let onceward = Onceward::in_front_of_steps(&[("charge", &charge, "")])
        .routes("[[routes.hooks.steps]]\nname = \"mail\"\nupstream = \"http://127.0.0.1:1\"")
        .start()
        .await;
    let reply = onceward.sends(event("evt_1")).await;
    reply.is_executed_as("upstream-unreachable", 502);
    let detail = "step `mail`: nothing was sent: the upstream accepted no connection";
    assert_eq!(reply.problem()["detail"], detail);
    onceward.logs("\"answered\"").await;
    let line = onceward.log().into_iter().find(|line| line["message"] == "answered").unwrap();
    assert_eq!((&line["step"], &line["upstream"]), (&"mail".into(), &"127.0.0.1:1".into()));
    charge.was_called(1);
}

/// A failure that a receiver answers with has its step in the log, too; a success has none.
#[tokio::test]
async fn the_log_names_the_step_whose_failure_was_answered() {
    let three = Three::that(failing_once("account")).await;
    let onceward = three.with("").start().await;
    onceward.sends(event("evt_1")).await.is_executed(500);
    onceward.sends(event("evt_1")).await.is_executed(200);
    onceward.logs("\"status\":200").await;
    let steps = onceward.log().into_iter().filter(|line| line["message"] == "answered");
    let steps: Vec<_> = steps.map(|mut line| line["step"].take()).collect();
    assert_eq!(steps, ["account".into(), serde_json::Value::Null]);
}

#[tokio::test]
async fn each_receiver_gets_the_request_its_name_and_an_id_of_its_own() {
    let three = Three::that(failing_once("mail")).await;
    let [charge, account, mail] = &three.receivers;
    let onceward = Onceward::in_front_of_steps(&[
        ("charge", charge, "forward_key = \"x-dedup\"\npreserve_host = false"),
        ("account", account, ""),
        ("mail", mail, ""),
    ])
    .start()
    .await;
    let sent = event("evt_1").to("/hooks/a%2Fb?c=%20d").header("x-sig", "s=1");
    let id = onceward.sends(sent.clone()).await.is_executed(500).operation();
    onceward.sends(sent.clone()).await.is_executed(200);
    assert_eq!(charge.seen()[0].header("x-dedup"), charge.seen()[0].header("onceward-operation"));
    let mut ids = vec![id];
    for (receiver, name) in three.receivers.iter().zip(NAMES) {
        let seen = &receiver.seen()[0];
        assert_eq!((&seen.target, &seen.body), (&sent.path, &sent.body));
        assert_eq!(seen.header("x-sig"), Some("s=1"));
        assert_eq!(seen.header("onceward-step"), Some(name));
        assert_eq!(seen.header("onceward-attempt"), Some("1"));
        ids.push(seen.header("onceward-operation").unwrap().to_owned());
    }
    let again = &mail.seen()[1];
    assert_eq!(again.header("onceward-operation"), Some(&*ids[3]));
    assert_eq!(again.header("onceward-attempt"), Some("2"));
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 4, "{ids:?}");
    assert_eq!(account.seen()[0].header("x-dedup"), None);
    assert_eq!(charge.seen()[0].header("host"), Some(&*charge.address.to_string()));
    assert_eq!(account.seen()[0].header("host"), Some(&*onceward.address.to_string()));
}

#[tokio::test]
async fn a_sender_cannot_name_a_step() {
    let three = Three::that(|_, _, _| None).await;
    let onceward = three.with("").start().await;
    let forged = event("evt_1").header("onceward-step", "forged");
    onceward.sends(forged).await.is_executed(200);
    for (receiver, name) in three.receivers.iter().zip(NAMES) {
        assert_eq!(receiver.seen()[0].values("onceward-step"), [name.as_bytes()]);
    }
}

#[tokio::test]
async fn the_answer_is_that_of_the_step_that_is_named() {
    let three = Three::that(failing_once("mail")).await;
    let [charge, account, mail] = &three.receivers;
    let builder = Onceward::in_front_of_steps(&[
        ("charge", charge, ""),
        ("account", account, ""),
        ("mail", mail, ""),
    ]);
    let onceward = builder.variable("ONCEWARD_ROUTES__HOOKS__ANSWER_FROM", "charge").start().await;
    onceward.sends(event("evt_1")).await.is_executed(500);
    // charge was answered in the first attempt
    assert_eq!(onceward.sends(event("evt_1")).await.is_executed(200).text(), "charge");
    assert_eq!(onceward.sends(event("evt_1")).await.is_replayed(200).text(), "charge");
}

#[tokio::test]
async fn an_answer_that_is_too_long_to_keep_is_answered_without_its_body() {
    let three = Three::that(|_, _, copies| {
        let status = if copies == 0 { 500 } else { 200 };
        Some(Answer::new(status, vec![b'x'; 70_000]).header("x-kept", "v").into())
    })
    .await;
    let builder = three.with("").defaults("[defaults.replay]\nbody_bytes_max = \"64KiB\"");
    let onceward = builder.start().await;
    for expected in [[1, 0, 0], [2, 1, 0], [2, 2, 1]] {
        let failed = onceward.sends(event("evt_1")).await;
        assert_eq!(failed.is_executed(500).text(), "");
        assert_eq!(failed.header("onceward-body"), Some("omitted"));
        assert_eq!(three.counts(), expected);
    }
    let done = onceward.sends(event("evt_1")).await;
    assert_eq!(
        (done.is_executed(200).header("x-kept"), done.header("onceward-body")),
        (Some("v"), Some("omitted"))
    );
    onceward.sends(event("evt_1")).await.is_replayed(200);
    assert_eq!(three.counts(), [2, 2, 2]);
}

#[tokio::test]
async fn of_many_copies_one_runs_the_steps() {
    let three = Three::that(|_, _, _| None).await;
    let onceward =
        three.with("").defaults("when_in_flight = \"wait\"\nwaiters_max = 64").start().await;
    let copy = event("evt_1");
    let replies = onceward.sends_copies(&copy, 50).await;
    assert!(replies.iter().all(|reply| reply.status == 200 && reply.text() == "mail"));
    assert_eq!(three.counts(), [1; 3]);
}

/// A step whose receiver cannot be reached was not sent.
#[tokio::test]
async fn a_receiver_that_is_away_is_free_at_once() {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let away = socket.local_addr().unwrap();
    let charge = Receiver::that_answers(200, "charge").await;
    let onceward = Onceward::in_front_of_steps(&[("charge", &charge, "")])
        .routes(&format!("[[routes.hooks.steps]]\nname = \"mail\"\nupstream = \"http://{away}\""))
        .start()
        .await;
    onceward.sends(event("evt_1")).await.is_executed_as("upstream-unreachable", 502);
    let mail = Receiver::on(socket.listen(64).unwrap(), |_, _| Answer::new(200, "mail").into());
    onceward.sends(event("evt_1")).await.is_executed(200);
    assert_eq!((charge.count(), mail.count()), (1, 1));
}

/// What is not deduplicated goes where the answers come from.
#[tokio::test]
async fn a_get_goes_to_the_receiver_that_is_answered_from() {
    let three = Three::that(|_, _, _| None).await;
    let onceward = three.with("").start().await;
    let reply = onceward.sends(Event::bytes("").by("GET")).await;
    assert_eq!(reply.is_passed(200).text(), "mail");
    assert_eq!(three.counts(), [0, 0, 1]);
}

#[tokio::test]
async fn another_request_under_the_key_is_mismatched() {
    let three = Three::that(failing_once("mail")).await;
    let onceward = three.with("").start().await;
    onceward.sends(Event::bytes("a").keyed("k")).await.is_executed(500);
    onceward.sends(Event::bytes("a").keyed("k")).await.is_executed(200);
    onceward.sends(Event::bytes("b").keyed("k")).await.is_mismatched();
}
