//! What the commands print.

use serde_json::Value;

use super::{HELD, Typed, before_forgetful, command, ends, forgetful, held, masked, types};
use crate::support::{Act, Answer, Gate, Onceward, Receiver, event};

const YES: [&str; 3] = ["--reason", "seen in the ledger", "--yes"];

#[tokio::test]
async fn a_held_operation_is_listed_shown_and_resolved() {
    let (receiver, onceward) = before_forgetful().await;
    insta::assert_snapshot!(types(&onceward, &["list"]).await.printed(), @"no operations");
    assert_eq!(types(&onceward, &["list", "--json"]).await.printed(), "");
    let id = held(&onceward, "e").await;
    onceward.sends(event("fine")).await.is_executed(200);

    let listed = types(&onceward, &["list", "--state", "uncertain"]).await.printed();
    insta::assert_snapshot!(masked(&onceward, &listed), @"
    OPERATION  ROUTE  STATE  ATTEMPTS  CREATED  KEY
    op_4877c7ed7894b94d2d85dcab8125a873  hooks  uncertain  1  TIME  hooks e payment.paid
    ");
    let json = types(&onceward, &["list", "--state", "uncertain", "--json"]).await.printed();
    let operation = onceward.operation(&id).await.unwrap();
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), operation);
    let shown = types(&onceward, &["show", &id]).await.printed();
    insta::assert_snapshot!(masked(&onceward, &shown), @r#"
    operation  op_4877c7ed7894b94d2d85dcab8125a873
    state  uncertain
    route  hooks
    request  POST /hooks
    key  event: "hooks" "e" "payment.paid"
    fingerprint  1785cfc3bc6ac773-e3b0c44298fc1c149afbf4c8996fb924
    created  TIME
    kept until  TIME

    attempts: 1 in all
    ATTEMPT  STARTED  ENDED  SENT  OUTCOME  REASON  STATUS  HOLDER
    1  TIME  TIME  yes  uncertain  connection-lost  -  HOLDER

    decisions:
    AT  BY  DECISION  REASON  REFERENCE
    TIME  when_uncertain  hold  connection-lost  -
    "#);
    let json = types(&onceward, &["show", &id, "--json"]).await.printed();
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), operation);

    let resolve = ["resolve", &id, "--outcome", "succeeded", "--body", "{\"ok\":1}"];
    let more = ["--status", "201", "--reference", "payment 7"];
    let typed = types(&onceward, &[&resolve[..], &more, &YES].concat()).await.printed();
    insta::assert_snapshot!(typed, @"op_4877c7ed7894b94d2d85dcab8125a873 is resolved as succeeded");
    let copy = onceward.sends(event("e")).await;
    copy.is_replayed(201);
    assert_eq!(copy.text(), "{\"ok\":1}");
    let shown = types(&onceward, &["show", &id]).await.printed();
    insta::assert_snapshot!(masked(&onceward, &shown), @r#"
    operation  op_4877c7ed7894b94d2d85dcab8125a873
    state  succeeded
    route  hooks
    request  POST /hooks
    key  event: "hooks" "e" "payment.paid"
    fingerprint  1785cfc3bc6ac773-e3b0c44298fc1c149afbf4c8996fb924
    created  TIME
    settled  TIME
    kept until  TIME
    answer  201, 8 bytes

    attempts: 1 in all
    ATTEMPT  STARTED  ENDED  SENT  OUTCOME  REASON  STATUS  HOLDER
    1  TIME  TIME  yes  uncertain  connection-lost  -  HOLDER

    decisions:
    AT  BY  DECISION  REASON  REFERENCE
    TIME  when_uncertain  hold  connection-lost  -
    TIME  operator: ann  resolved_succeeded  seen in the ledger  payment 7
    "#);
    receiver.was_called(2);
}

#[tokio::test]
async fn a_decision_is_made_by_command_and_audited() {
    let (receiver, onceward) = before_forgetful().await;
    let (first, second) = (held(&onceward, "e1").await, held(&onceward, "e2").await);
    let resolve = ["resolve", &first, "--outcome", "failed", "--by", "bob"];
    let typed = types(&onceward, &[&resolve[..], &YES].concat()).await.printed();
    insta::assert_snapshot!(typed, @"op_9bedf06cc7872aae59467440f0190672 is resolved as failed");
    onceward.sends(event("e1")).await.is_executed(200);
    let typed = types(&onceward, &[&["forget", &second][..], &YES].concat()).await.printed();
    insta::assert_snapshot!(typed, @"op_5f730576c224b94c040f7ea6cb2c11b6 is forgotten");
    onceward.sends(event("e2")).await.is_executed(200);
    let json = [&["forget", &second, "--json"][..], &YES].concat();
    insta::assert_snapshot!(types(&onceward, &json).await.printed(), @r#"
    {
      "operation": "op_5f730576c224b94c040f7ea6cb2c11b6",
      "state": "forgotten"
    }
    "#);

    let audit = types(&onceward, &["audit"]).await.printed();
    insta::assert_snapshot!(masked(&onceward, &audit), @"
    AT  OPERATION  ROUTE  BY  DECISION  REASON  REFERENCE
    TIME  op_5f730576c224b94c040f7ea6cb2c11b6  hooks  operator: ann  forgotten  seen in the ledger  -
    TIME  op_5f730576c224b94c040f7ea6cb2c11b6  hooks  operator: ann  forgotten  seen in the ledger  -
    TIME  op_9bedf06cc7872aae59467440f0190672  hooks  operator: bob  resolved_failed  seen in the ledger  -
    ");
    let audit = types(&onceward, &["audit", "--policies", "--limit", "4"]).await.printed();
    insta::assert_snapshot!(masked(&onceward, &audit), @"
    AT  OPERATION  ROUTE  BY  DECISION  REASON  REFERENCE
    TIME  op_5f730576c224b94c040f7ea6cb2c11b6  hooks  operator: ann  forgotten  seen in the ledger  -
    TIME  op_5f730576c224b94c040f7ea6cb2c11b6  hooks  operator: ann  forgotten  seen in the ledger  -
    TIME  op_9bedf06cc7872aae59467440f0190672  hooks  operator: bob  resolved_failed  seen in the ledger  -
    TIME  op_5f730576c224b94c040f7ea6cb2c11b6  hooks  when_uncertain  hold  connection-lost  -
    ");
    let json = types(&onceward, &["audit", "--json", "--limit", "1"]).await.printed();
    let entry: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&entry["by"], &entry["operation"]), (&"operator: ann".into(), &second.into()));
    let none = types(&onceward, &["audit", "--route", "other"]).await.complained(1);
    assert!(none.contains("no route has this name"), "{none}");
    receiver.was_called(4);
}

#[tokio::test]
async fn what_goes_wrong_is_said_with_what_may_help() {
    let receiver = forgetful().await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let unknown = format!("op_{}", "0".repeat(32));
    insta::assert_snapshot!(types(&onceward, &["show", &unknown]).await.complained(1), @"
    error: nothing is remembered of `op_00000000000000000000000000000000`
      hint: its retention has passed, another store remembers it, or it is the id of a step, which `show` says of the step's event; `onceward operations list` shows what is there
    ");
    let done = onceward.sends(event("fine")).await.operation();
    let resolve = ["resolve", &done, "--outcome", "failed"];
    let refused = types(&onceward, &[&resolve[..], &YES].concat()).await.complained(1);
    insta::assert_snapshot!(refused, @"
    error: nothing was decided: the operation's state is `succeeded`, at attempt 1
      hint: `onceward operations forget` lets the next copy run again
    ");
    let forget = ["forget", &done, "--reason", "why"];
    insta::assert_snapshot!(types(&onceward, &forget).await.complained(2), @"
    error: this changes something, and there is no terminal to ask on
      hint: `--yes` goes on without a question
    ");
    assert_eq!(onceward.state(&done).await, "succeeded");

    let at = async |url: &str| -> Typed {
        let mut command = command(&onceward, &["list"]);
        command.env("ONCEWARD_ADMIN_URL", url);
        ends(command).await
    };
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = free.local_addr().unwrap();
    drop(free);
    let said = at(&format!("http://{nobody}")).await.complained(1);
    insta::assert_snapshot!(said.replace(&nobody.to_string(), "NOBODY"), @"
    error: cannot connect to `http://NOBODY/`
      because: Connection refused (os error 111)
      hint: is `onceward serve` running, with this `admin.listen`? `--admin URL` or `ONCEWARD_ADMIN_URL` names another one
    ");
    let said = at(&format!("http://{}", onceward.address)).await.complained(1);
    insta::assert_snapshot!(said.replace(&onceward.address.to_string(), "PROXY"), @"
    error: `http://PROXY/` is no admin listener of Onceward: it answered with status 404
      hint: `admin.listen` of the proxy says where that is
    ");
    for url in ["", "127.0.0.1:8081", "ftp://a", "http://u:secret@a", "http://a/?b", "http://a/#b"]
    {
        let said = at(url).await.complained(2);
        assert!(said.starts_with("error: `--admin` or `ONCEWARD_ADMIN_URL` is no URL"), "{said}");
        assert!(!said.contains("secret"), "{said}");
    }
}

/// Somebody else's server, and one that answers with more than was asked for.
#[tokio::test]
async fn a_stranger_is_not_believed() {
    for (status, body) in [(200, "hello"), (302, ""), (500, "{}"), (404, "<html>")] {
        let stranger = Receiver::that_answers(status, body).await;
        let receiver = Receiver::that_answers(200, "ok").await;
        let onceward = Onceward::in_front_of(&receiver).start().await;
        let mut command = command(&onceward, &["list"]);
        command.env("ONCEWARD_ADMIN_URL", stranger.url());
        let said = ends(command).await.complained(1);
        let expected =
            format!("is no admin listener of Onceward: it answered with status {status}");
        assert!(said.contains(&expected), "{said}");
    }
}

#[tokio::test]
async fn wrong_usage_exits_with_2_and_calls_nobody() {
    let receiver = Receiver::that_answers(200, "ok").await;
    let onceward = Onceward::in_front_of(&receiver).start().await;
    let id = format!("op_{}", "0".repeat(32));
    let resolve = ["resolve", &id, "--reason", "why", "--yes"];
    for args in [
        &[][..],
        &["lists"],
        &["show"],
        &["show", "evt_1"],
        &["show", "../../metrics"],
        &["list", "--state", "held"],
        &["list", "--before", "yesterday"],
        &["list", "--limit", "5", "--all"],
        &["list", "--limit", "0"],
        &["forget", &id, "--yes"],
        &resolve,
        &[&resolve[..], &["--outcome", "uncertain"]].concat(),
        &[&resolve[..], &["--outcome", "failed", "--dry-run"]].concat(),
        &[&resolve[..], &["--outcome", "failed", "--all-of-route", "hooks"]].concat(),
        &["resolve", "--outcome", "failed", "--reason", "why", "--yes"],
    ] {
        assert!(!types(&onceward, args).await.complained(2).is_empty(), "{args:?}");
    }
    let help = types(&onceward, &["resolve", "--help"]).await.printed();
    assert!(help.contains("onceward operations resolve --all-of-route orders"), "{help}");
}

/// The decision record of an event with several receivers.
#[tokio::test]
async fn an_event_with_steps_is_shown_with_them_and_decided_as_a_whole() {
    let charge = Receiver::that(|_, _| Answer::new(200, r#"{"id":"pay_7"}"#).into()).await;
    let mail =
        Receiver::that(
            |_, copies| {
                if copies == 0 { Act::Close } else { Answer::new(200, "mail").into() }
            },
        )
        .await;
    let charged = "forward_key = \"x-dedup\"\noutcome = { reference = \"json:/id\" }";
    let steps = [("charge", &charge, charged), ("mail", &mail, "")];
    let onceward = Onceward::in_front_of_steps(&steps).expects_log(HELD).start().await;
    let id = held(&onceward, "e").await;
    let shown = types(&onceward, &["show", &id]).await.printed();
    insta::assert_snapshot!(masked(&onceward, &shown), @r#"
    operation  op_4877c7ed7894b94d2d85dcab8125a873
    state  uncertain
    route  hooks
    request  POST /hooks
    key  event: "hooks" "e" "payment.paid"
    fingerprint  1785cfc3bc6ac773-e3b0c44298fc1c149afbf4c8996fb924
    created  TIME
    kept until  TIME

    steps:
    STEP  STATE  ITS OPERATION
    charge  succeeded  op_84edab897a3a1bc737c557b054a4c28f
    mail  uncertain  op_43d857c66f13443d741e94a3de119c8c

    attempts: 2 in all
    ATTEMPT  STARTED  ENDED  SENT  OUTCOME  REASON  STATUS  STEP  REFERENCE  KEY IN  HOLDER
    1  TIME  TIME  yes  succeeded  answered  200  charge  pay_7  x-dedup  HOLDER
    1  TIME  TIME  yes  uncertain  connection-lost  -  mail  -  -  HOLDER

    decisions:
    AT  BY  DECISION  REASON  REFERENCE
    TIME  when_uncertain  hold  mail: connection-lost  -
    "#);
    // Who finds an id in a receiver's log finds the event by it.
    let of_step = mail.seen()[0].header("onceward-operation").unwrap().to_owned();
    assert!(shown.contains(&of_step), "{of_step} is not in {shown}");
    let unknown = types(&onceward, &["show", &of_step]).await.complained(1);
    assert!(unknown.contains("or it is the id of a step"), "{unknown}");
    let resolve = ["resolve", &id, "--outcome", "failed"];
    types(&onceward, &[&resolve[..], &YES].concat()).await.printed();
    assert_eq!(onceward.sends(event("e")).await.is_executed(200).text(), "mail");
    assert_eq!((charge.count(), mail.count()), (1, 2));
}

#[tokio::test]
async fn an_attempt_is_shown_with_what_its_receiver_calls_it() {
    let receiver = Receiver::that_answers(200, "{\"id\":\"payment-7\"}").await;
    let outcome = "[defaults.outcome]\nreference = \"json:/id\"";
    let onceward = Onceward::in_front_of(&receiver).defaults(outcome).start().await;
    let id = onceward.sends(event("fine")).await.operation();
    let shown = masked(&onceward, &types(&onceward, &["show", &id]).await.printed());
    let line = "\n1  TIME  TIME  yes  succeeded  answered  200  payment-7  HOLDER\n";
    assert!(shown.contains(line), "{shown}");
}

/// The process has died: nobody can say whether a byte had left.
#[tokio::test]
async fn of_an_attempt_that_nobody_saw_the_end_of_it_is_unknown_whether_it_was_sent() {
    let gate = Gate::default();
    let receiver = Receiver::behind(&gate, 200, "done").await;
    let abandoned = "operations of an earlier process are uncertain now";
    let mut onceward = Onceward::in_front_of(&receiver).expects_log(abandoned).start().await;
    let mut sender = onceward.connects().await;
    sender.writes(&event("evt_6").raw()).await;
    receiver.has_counted(1).await;
    onceward.is_killed().await;
    onceward.starts_again().await;

    let listed = types(&onceward, &["list", "--key", "evt_6", "--json"]).await.printed();
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed["attempts"][0]["sent"], Value::Null, "{listed}");
    let shown = types(&onceward, &["show", listed["operation"].as_str().unwrap()]).await.printed();
    assert!(shown.contains("unknown  uncertain  holder-ended"), "{shown}");
}
