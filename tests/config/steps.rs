//! Steps: several upstreams of one event.

use std::time::Duration;

use insta::assert_snapshot;
use onceward::operation::state::IfUncertain;

use super::{TYPED, Written};

fn with_steps(of_route: &str, steps: &[&str]) -> Written {
    let steps = steps.iter().map(|step| format!("[[routes.orders.steps]]\n{step}\n"));
    let steps = steps.collect::<Vec<_>>().concat();
    Written::file(&format!("[routes.orders]\npath = \"/orders\"\n{of_route}\n{steps}"))
}

const LEDGER: &str = "name = \"ledger\"\nupstream = \"http://a\"";
const MAIL: &str = "name = \"mail\"\nupstream = \"http://b/in\"";

#[test]
fn a_step_takes_what_it_does_not_say_from_its_route_and_that_from_the_defaults() {
    let own = format!(
        "{MAIL}\nattempt_timeout = \"20s\"\nforward_key = \"x-dedup\"\nwhen_uncertain = \"lookup\"\n\
         keepalive_max = \"7s\"\noutcome = {{ succeeded = [\"202\"] }}\nlookup = {{ url = \"http://b/{{key}}\" }}"
    );
    let route = "attempt_timeout = \"40s\"\nconnect_timeout = \"3s\"\nwhen_uncertain = \"retry\"";
    let config = with_steps(route, &[LEDGER, &own]).config().unwrap();
    let steps = config.routes[0].steps.as_ref().unwrap();
    assert_eq!((&*steps.answer_from, steps.at_once), ("mail", false));
    let [ledger, mail] = &*steps.steps else { panic!("{steps:?}") };
    assert_eq!(ledger.attempt_timeout, Duration::from_secs(40));
    assert_eq!(mail.attempt_timeout, Duration::from_secs(20));
    assert_eq!(mail.upstream.connect_timeout, Duration::from_secs(3));
    assert_eq!(mail.upstream.keepalive, Duration::from_secs(1));
    assert_eq!(ledger.upstream.keepalive_max, Duration::from_secs(30));
    assert_eq!(mail.upstream.keepalive_max, Duration::from_secs(7));
    assert_eq!(ledger.receiver.if_uncertain, IfUncertain::Retry { attempts_max: 10 });
    assert!(matches!(mail.receiver.if_uncertain, IfUncertain::LookUp { attempts_max: 10, .. }));
    assert_eq!(
        (
            ledger.receiver.forward_key.as_ref(),
            mail.receiver.forward_key.as_ref().unwrap().as_str()
        ),
        (None, "x-dedup")
    );
    assert_eq!(
        (ledger.receiver.outcome.succeeded[0].first, mail.receiver.outcome.succeeded[0].first),
        (200, 202)
    );
    // Requests that are not deduplicated go to the step whose answer counts.
    assert_eq!(config.routes[0].upstream.target.path.as_deref(), Some("/in"));
    assert_eq!(
        with_steps(TYPED, &[LEDGER, MAIL]).risks(),
        "routes.orders.provider: signature-unchecked\n"
    );
}

#[test]
fn a_step_can_use_the_look_up_of_its_route() {
    let route =
        "when_uncertain = \"lookup\"\n[routes.orders.lookup]\nurl = \"http://a/{operation}\"\n";
    let config = with_steps(route, &[LEDGER]).config().unwrap();
    let steps = config.routes[0].steps.as_ref().unwrap();
    assert_eq!(
        steps.steps[0].receiver.lookup.as_ref().unwrap().url.to_string(),
        "http://a/{operation}"
    );
}

#[test]
fn what_is_wrong_with_steps_is_said() {
    assert_snapshot!(with_steps("steps = []", &[]).problems(), @"
    the configuration has 1 problem
      onceward.toml:3: `routes.orders.steps`: expected 1 to 32 steps, found 0
        hint: `[[routes.NAME.steps]]` with a `name` and an `upstream`, for each receiver
    ");
    assert_snapshot!(with_steps("answer_from = \"mail\"\nupstream = \"http://a\"", &[]).problems(), @"
    the configuration has 1 problem
      onceward.toml:3: `routes.orders.answer_from`: expected `steps` beside it, found none
        hint: add `[[routes.NAME.steps]]`, or take it out: one `upstream` answers itself
    ");
    assert_snapshot!(with_steps("upstream = \"http://a\"", &[LEDGER]).problems(), @"
    the configuration has 1 problem
      onceward.toml:3: `routes.orders.upstream`: expected it in each step, found one beside `steps`
        hint: take it out: each of the `steps` has its own
    ");
    assert_snapshot!(with_steps("answer_from = \"male\"", &[LEDGER, MAIL]).problems(), @"
    the configuration has 1 problem
      onceward.toml:3: `routes.orders.answer_from`: expected the name of one of the steps, found `male`
        hint: it names one of the `[[routes.NAME.steps]]`; left out, it is the last one
    ");
    assert_snapshot!(with_steps("", &[LEDGER, LEDGER]).problems(), @"
    the configuration has 1 problem
      onceward.toml:8: `routes.orders.steps.1.name`: expected a name that no other step of this route has, found `ledger`
        hint: the name is part of the id that the receiver gets: give each its own
    ");
    let forward = "when_store_fails = \"forward\"\nwhen_key_missing = \"forward\"";
    assert_snapshot!(with_steps(forward, &[LEDGER]).problems(), @r#"
    the configuration has 2 problems
      onceward.toml:3: `routes.orders.when_store_fails`: expected `refuse`, where an event has several receivers, found `forward`
        hint: left out, `when_store_fails` is `"refuse"`
      onceward.toml:4: `routes.orders.when_key_missing`: expected `refuse` or `hash-body`, where an event has several receivers, found `forward`
        hint: left out, `when_key_missing` is `"refuse"`
    "#);
    assert_snapshot!(with_steps("mode = \"observe\"", &[LEDGER]).problems(), @r#"
    the configuration has 1 problem
      onceward.toml:3: `routes.orders.mode`: expected `enforce`, where an event has several receivers, found another
        hint: left out, `mode` is `"enforce"`
    "#);
    let wrong = [
        "name = \"A b\"\nupstream = \"a\"",
        "when_uncertain = \"lookup\"\nattempt_timeout = \"0s\"\nretention = \"1h\"",
    ];
    assert_snapshot!(with_steps("", &wrong).problems(), @r#"
    the configuration has 7 problems
      onceward.toml:5: `routes.orders.steps.0.name`: expected a name of 1 to 64 letters a to z, digits, `_` and `-`, found `A b`
        hint: such as `orders` or `shop-eu`
      onceward.toml:6: `routes.orders.steps.0.upstream`: expected an `http` or `https` URL such as `http://127.0.0.1:3000`, without user, query or fragment, found `a`
        hint: `upstream = "http://127.0.0.1:3000"`
      onceward.toml:7: `routes.orders.steps.1.lookup.url`: expected a value, where `when_uncertain` is `lookup`, found none
        hint: `url = "http://127.0.0.1:3000/events/{operation}"`
      onceward.toml:7: `routes.orders.steps.1.name`: expected a value, found none
        hint: `name = "ledger"`
      onceward.toml:7: `routes.orders.steps.1.upstream`: expected a value, found none
        hint: `upstream = "http://127.0.0.1:3000"`
      onceward.toml:9: `routes.orders.steps.1.attempt_timeout`: expected a duration from `1ms` to `1d`, found `0s`
        hint: left out, `attempt_timeout` is `"60s"`
      onceward.toml:10: `routes.orders.steps.1.retention`: expected a known key, found `retention`
        hint: known here: `name`, `upstream`, `attempt_timeout`, `connect_timeout`, `keepalive`, `keepalive_max`, `preserve_host`, `forward_key`, `when_uncertain`, `attempts_max`, `outcome`, `lookup`
    "#);
    let of_all = "[defaults]\nanswer_from = \"a\"\n[[defaults.steps]]\nname = \"a\"";
    assert_snapshot!(Written::beside_a_route(of_all).problems(), @"
    the configuration has 2 problems
      onceward.toml:2: `defaults.answer_from`: expected it in a route, found it for all of them
        hint: move it into each `[routes.NAME]` that it is meant for
      onceward.toml:3: `defaults.steps`: expected it in a route, found it for all of them
        hint: move it into each `[routes.NAME]` that it is meant for
    ");
}

/// Nobody could say later which event a decision is about.
#[test]
fn where_events_have_no_ids_an_uncertain_step_is_free_once_it_must_have_ended() {
    let route = "replay.remember = \"in-flight\"";
    let config = with_steps(route, &[LEDGER, MAIL]).config().unwrap();
    let steps = config.routes[0].steps.as_ref().unwrap();
    let free = IfUncertain::Retry { attempts_max: u32::MAX };
    assert!(steps.steps.iter().all(|step| step.receiver.if_uncertain == free));
}

#[test]
fn a_secret_in_a_step_is_not_shown() {
    let lookup = format!(
        "{LEDGER}\nwhen_uncertain = \"lookup\"\n\
         lookup = {{ url = \"http://a/{{key}}\", headers = {{ authorization = \"s3cret\" }} }}"
    );
    let written = with_steps("", &[&lookup]);
    assert!(!format!("{:?}", written.config().unwrap()).contains("s3cret"));
    let shown = format!("{:?}", written.sources().unwrap().effective());
    assert!(shown.contains("lookup") && !shown.contains("s3cret"), "{shown}");
}

#[test]
fn a_step_takes_what_stands_in_a_variable() {
    let config = with_steps("", &[LEDGER])
        .variable("ONCEWARD_DEFAULTS__ATTEMPTS_MAX", "5")
        .variable("ONCEWARD_DEFAULTS__WHEN_UNCERTAIN", "retry")
        .variable("ONCEWARD_DEFAULTS__PRESERVE_HOST", "false")
        .variable("ONCEWARD_DEFAULTS__OUTCOME__SUCCEEDED", "201,202")
        .variable("ONCEWARD_ROUTES__ORDERS__KEEPALIVE", "3s")
        .config()
        .unwrap();
    let ledger = &config.routes[0].steps.as_ref().unwrap().steps[0];
    assert_eq!(ledger.receiver.if_uncertain, IfUncertain::Retry { attempts_max: 5 });
    assert!(!ledger.upstream.preserve_host);
    assert_eq!(ledger.upstream.keepalive, Duration::from_secs(3));
    let succeeded: Vec<u16> =
        ledger.receiver.outcome.succeeded.iter().map(|range| range.first).collect();
    assert_eq!(succeeded, [201, 202]);
}

/// The variable replaces the steps of the file, and not what steps take from their route.
#[test]
fn steps_in_a_variable_take_what_their_route_says() {
    let steps = "[{ name = \"other\", upstream = \"http://b\" }]";
    let route = "attempt_timeout = \"25s\"\nwhen_uncertain = \"retry\"";
    let written =
        with_steps(route, &[LEDGER, MAIL]).variable("ONCEWARD_ROUTES__ORDERS__STEPS", steps);
    let config = written.config().unwrap();
    let steps = &config.routes[0].steps.as_ref().unwrap().steps;
    assert_eq!(steps.len(), 1);
    assert_eq!(steps[0].attempt_timeout, Duration::from_secs(25));
    assert!(matches!(steps[0].receiver.if_uncertain, IfUncertain::Retry { .. }));
    let effective = written.effective();
    let line = "routes.orders.steps.0.name = \"other\"  # ONCEWARD_ROUTES__ORDERS__STEPS\n";
    assert!(effective.contains(line), "{effective}");
}

#[test]
fn a_mistake_that_steps_inherit_is_one_problem() {
    assert_snapshot!(with_steps("attempt_timeout = \"1 s\"", &[LEDGER, MAIL]).problems(), @r"
    the configuration has 1 problem
      onceward.toml:3: `routes.orders.attempt_timeout`: expected a duration such as `500ms`, `30s`, `5m`, `72h` or `30d`, found `1 s`
        hint: write `1s`
    ");
}
