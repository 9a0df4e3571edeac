//! The server came back without what it was told.

use std::process::{Output, Stdio};

use tokio::join;
use tokio::process::Command;

use super::on_every_server;
use super::server::Server;
use crate::support::{Builder, Gate, Onceward, PostgresServer, Receiver, Reply, event, until};

on_every_server! {
    an_emptied_store_takes_nothing_new_until_that_is_acknowledged_where_it_shall_stop
    an_emptied_store_is_an_error_in_the_log_where_it_shall_go_on
    a_process_makes_no_second_attempt_beside_its_own_after_the_store_was_emptied
    a_copy_waits_for_the_attempt_of_its_process_after_the_store_was_emptied
    nothing_is_forwarded_beside_an_own_attempt_when_the_emptied_store_is_down
}

const CLAIMS: &str = "onceward_store_duration_seconds_count{call=\"claim\"}";
const LOST: &str = "the store came back without what it was told";
const NOTHING: &str = "the store has lost nothing: there is nothing to acknowledge\n";
const LIST_IS_SHORT: &str = "warning: the store came back empty, and what it had before is not \
    shown: see `onceward store acknowledge`\n";
const EMPTY: &str = "not ready: the store came back empty: see `onceward store acknowledge`\n";

fn on<S: Server>(server: &S, receiver: &Receiver, when: &str) -> Builder {
    Onceward::in_front_of(receiver)
        .store(&format!("{}\nwhen_store_emptied = \"{when}\"", server.toml()))
        .defaults("when_store_fails = \"forward\"")
        .expects_log(LOST)
        .expects_log("the store is not safe")
        .expects_log("the store does not work")
        .expects_log("expired records could not be removed yet")
        .expects_log("no claim, so nothing is forwarded")
}

/// What comes of a command.
async fn types(onceward: &Onceward, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onceward"));
    command.args(args).args(["--admin", &format!("http://{}", onceward.admin)]);
    let output = command.stdin(Stdio::null()).output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    output
}

async fn acknowledged(onceward: &Onceward) -> String {
    let output = types(onceward, &["store", "acknowledge", "--yes", "--by", "ops"]).await;
    String::from_utf8(output.stdout).unwrap()
}

/// The first answer but 503: the tables may have to be made anew, which takes a busy server longer
/// than one call.
async fn is_answered(onceward: &Onceward, name: &str) -> Reply {
    onceward.sends_until(&event(name), |reply| reply.status != 503).await
}

/// It has looked: what is so of no store is 0 from then on, and not absent.
async fn says_that_all_is_well(onceward: &Onceward) {
    let line = "\nonceward_store_concerns{concern=\"epoch-changed\"} 0\n";
    let has_line = async || onceward.get_admin("/metrics").await.text().contains(line);
    until("it has looked", has_line).await;
}

/// It has looked and says so.
async fn is_stopped(onceward: &Onceward) {
    let says_so = async || {
        let ready = onceward.get_admin("/readyz").await;
        ready.status == 503 && ready.text() == EMPTY
    };
    until("it has stopped", says_so).await;
    onceward.logs(LOST).await;
}

async fn an_emptied_store_takes_nothing_new_until_that_is_acknowledged_where_it_shall_stop<
    S: Server,
>() {
    let (server, receiver) = (S::start().await, Receiver::that_answers(200, "done\n").await);
    let builder = on(&server, &receiver, "stop");
    let (a, b) = (builder.clone().start().await, builder.clone().start().await);
    for onceward in [&a, &b] {
        onceward.becomes_ready().await;
    }
    assert_eq!(acknowledged(&a).await, NOTHING);
    a.sends(event("evt_1")).await.is_executed(200);
    b.sends(event("evt_1")).await.is_replayed(200);
    says_that_all_is_well(&a).await;
    server.is_emptied().await;
    // neither has looked since, and one that starts now has never seen another store
    let refused = a.sends(event("evt_1")).await;
    refused.is_refused(503, "store-unavailable").comes_back();
    let c = builder.start().await;
    for onceward in [&b, &c] {
        let refused = onceward.sends(event("evt_2")).await;
        refused.is_refused(503, "store-unavailable").comes_back();
    }
    for onceward in [&a, &b, &c] {
        is_stopped(onceward).await;
    }
    receiver.was_called(1);

    assert_eq!(acknowledged(&b).await, "acknowledged: claims are granted again\n");
    is_answered(&b, "evt_2").await.is_executed(200);
    // The first claim of every other process sees that, too.
    a.sends(event("evt_3")).await.is_executed(200);
    c.sends(event("evt_4")).await.is_executed(200);
    for onceward in [&a, &c] {
        onceward.sends(event("evt_2")).await.is_replayed(200);
    }
    // what was done before is lost, and that is known
    is_answered(&a, "evt_1").await.is_executed(200);
    receiver.was_called(5);
    assert_eq!(acknowledged(&a).await, NOTHING);
}

/// An attempt that ends when the gate opens. The store loses its record.
struct Lost<S> {
    server: S,
    gate: Gate,
    receiver: Receiver,
    onceward: Onceward,
}

impl<S: Server> Lost<S> {
    /// A process that has more settings, or expects more.
    async fn start(more: impl FnOnce(Builder) -> Builder) -> Self {
        let (server, gate) = (S::start().await, Gate::default());
        let receiver = Receiver::behind(&gate, 200, "done\n").await;
        let builder =
            on(&server, &receiver, "continue").expects_log("the store had lost the record");
        let onceward = more(builder.expects_log("lease could not be renewed")).start().await;
        onceward.becomes_ready().await;
        Self { server, gate, receiver, onceward }
    }

    /// Sends the event, and does what comes while its attempt is in flight without a record.
    async fn meanwhile<T>(&self, work: impl Future<Output = T>) -> T {
        let work = async {
            self.receiver.has_counted(1).await;
            self.server.is_emptied().await;
            work.await
        };
        let (first, done) = join!(self.onceward.sends(event("evt_1")), work);
        first.is_executed(200);
        done
    }
}

/// The store knows nothing of the attempt any more, but the process that is making it does.
async fn a_process_makes_no_second_attempt_beside_its_own_after_the_store_was_emptied<S: Server>() {
    let lost = Lost::<S>::start(|builder| builder).await;
    let Lost { gate, receiver, onceward, .. } = &lost;
    lost.meanwhile(async {
        is_answered(onceward, "evt_1").await.is_in_flight(409);
        gate.opens();
    })
    .await;
    onceward.sends(event("evt_1")).await.is_replayed(200);
    receiver.was_called(1);
}

async fn a_copy_waits_for_the_attempt_of_its_process_after_the_store_was_emptied<S: Server>() {
    let lost = Lost::<S>::start(|it| it.defaults("when_in_flight = \"wait\"")).await;
    let Lost { gate, receiver, onceward, .. } = &lost;
    let copy = lost.meanwhile(async {
        let claims = onceward.metric(CLAIMS).await;
        let waits = async {
            // it looks once to claim, and again once it listens
            onceward.comes_to_count(CLAIMS, claims + 2.0).await;
            gate.opens();
        };
        join!(is_answered(onceward, "evt_1"), waits).0
    });
    copy.await.is_replayed(200);
    receiver.was_called(1);
}

/// Without a store the route forwards, but not what the process is attempting. Neither the server
/// nor the process has a record of that attempt.
async fn nothing_is_forwarded_beside_an_own_attempt_when_the_emptied_store_is_down<S: Server>() {
    let mut lost = Lost::<S>::start(|it| it.expects_log("outcome is not recorded yet")).await;
    let Lost { server, gate, receiver, onceward } = &mut lost;
    let meanwhile = async {
        receiver.has_counted(1).await;
        server.is_emptied().await;
        is_answered(onceward, "evt_1").await.is_in_flight(409);
        server.is_killed().await;
        let copy = onceward.sends(event("evt_1")).await;
        copy.is_refused(503, "store-unavailable").comes_back();
        server.starts_again().await;
        gate.opens();
    };
    let (first, ()) = join!(onceward.sends(event("evt_1")), meanwhile);
    first.is_executed(200);
    is_answered(onceward, "evt_1").await.is_replayed(200);
    receiver.was_called(1);
}

/// `TRUNCATE` leaves the tables and takes the row that says which ones they are.
#[tokio::test]
async fn a_database_that_was_truncated_goes_on_once_that_is_acknowledged() {
    let server = PostgresServer::start();
    let receiver = Receiver::that_answers(200, "done\n").await;
    let builder = on(&server, &receiver, "stop");
    let a = builder.clone().start().await;
    a.becomes_ready().await;
    a.sends(event("evt_1")).await.is_executed(200);
    server.execute("TRUNCATE onceward.operations, onceward.epoch").await;
    let b = builder.start().await;
    for onceward in [&a, &b] {
        onceward.sends(event("evt_2")).await.is_refused(503, "store-unavailable");
        is_stopped(onceward).await;
    }
    assert_eq!(acknowledged(&b).await, "acknowledged: claims are granted again\n");
    is_answered(&b, "evt_2").await.is_executed(200);
    is_answered(&a, "evt_2").await.is_replayed(200);
    receiver.was_called(2);
}

/// The list of the tables says that they are all there, and their epoch has not changed.
#[tokio::test]
async fn a_database_that_lost_one_table_takes_nothing_new_where_it_shall_stop() {
    for table in ["operations", "epoch"] {
        let server = PostgresServer::start();
        let receiver = Receiver::that_answers(200, "done\n").await;
        let stops = on(&server, &receiver, "stop").start().await;
        let goes_on = on(&server, &receiver, "continue").expects_log("forwarded unprotected");
        let goes_on = goes_on.start().await;
        for onceward in [&stops, &goes_on] {
            onceward.becomes_ready().await;
        }
        stops.sends(event("evt_1")).await.is_executed(200);
        server.execute(&format!("DROP TABLE onceward.{table}")).await;
        stops.sends(event("evt_2")).await.is_refused(503, "store-unavailable").comes_back();
        receiver.was_called(1);
        if table == "operations" {
            let gone = "not ready: the store is unavailable: the store's tables are gone\n";
            until("it says so", async || stops.get_admin("/readyz").await.text() == gone).await;
            goes_on.sends(event("evt_2")).await.is_passed(200);
            // The store has answered, so nobody is told that it did not.
            let listed = stops.get_admin("/api/operations").await;
            assert_eq!(listed.status, 503);
            let problem = listed.problem();
            assert_eq!(problem["title"], "the store cannot be used now");
            assert_eq!(problem["detail"], "the store is unavailable: the store's tables are gone");
        }
        server.execute("DROP SCHEMA onceward CASCADE").await;
        is_stopped(&stops).await;
        assert_eq!(acknowledged(&stops).await, "acknowledged: claims are granted again\n");
        is_answered(&stops, "evt_3").await.is_executed(200);
    }
}

async fn an_emptied_store_is_an_error_in_the_log_where_it_shall_go_on<S: Server>() {
    let (server, receiver) = (S::start().await, Receiver::that_answers(200, "done\n").await);
    let onceward = on(&server, &receiver, "continue").start().await;
    onceward.becomes_ready().await;
    onceward.sends(event("evt_1")).await.is_executed(200);
    // for that it looks at what the store has
    assert_eq!(acknowledged(&onceward).await, NOTHING);
    server.is_emptied().await;
    is_answered(&onceward, "evt_1").await.is_executed(200);
    onceward.logs(LOST).await;
    onceward.logs_times("\"answered\"", 2).await;
    let log = onceward.log();
    let lost = log.iter().position(|line| line.to_string().contains(LOST)).unwrap();
    assert_eq!(log[lost]["level"], "ERROR");
    let second = log.iter().rposition(|line| line["message"] == "answered").unwrap();
    assert!(lost < second, "the call that saw it says so: {log:#?}");
    let warns =
        async || onceward.get_admin("/readyz").await.text().contains("warning: epoch-changed");
    until("it warns", warns).await;
    // What is listed and shown is not all that there was, and says so.
    let id = onceward.sends(event("evt_1")).await.operation();
    for path in ["/api/operations", &format!("/api/operations/{id}"), "/api/operations/op_0"] {
        let listed = onceward.get_admin(path).await;
        assert_eq!(listed.header("onceward-store"), Some("emptied"), "{path}");
    }
    let typed = types(&onceward, &["operations", "list"]).await;
    assert_eq!(String::from_utf8(typed.stderr).unwrap(), LIST_IS_SHORT);
    assert_eq!(acknowledged(&onceward).await, "acknowledged: claims are granted again\n");
    receiver.was_called(2);
}
