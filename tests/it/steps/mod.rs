//! One event goes to several upstreams, to each once: charge, account, mail.

mod at_once;
mod crash;
mod in_order;
mod stops;
mod uncertain;

use serde_json::Value;

use crate::support::{Act, Answer, Builder, Onceward, Receiver, Seen};

/// The text of the warning that an uncertain outcome leaves in the log.
const HELD: &str = "nobody knows whether the operation was done";
const ABANDONED: &str = "operations of an earlier process are uncertain now";
const NAMES: [&str; 3] = ["charge", "account", "mail"];

/// Three receivers; each does what its script says.
struct Three {
    receivers: [Receiver; 3],
}

impl Three {
    /// All answer 200 with their names, but the ones that `but` says something else of.
    async fn that(but: impl Fn(&str, &Seen, usize) -> Option<Act> + Send + Sync + 'static) -> Self {
        let but = std::sync::Arc::new(but);
        let one = |name: &'static str| {
            let but = std::sync::Arc::clone(&but);
            Receiver::that(move |seen, copies| {
                but(name, seen, copies).unwrap_or_else(|| Answer::new(200, name).into())
            })
        };
        let [charge, account, mail] = NAMES.map(one);
        Self { receivers: [charge.await, account.await, mail.await] }
    }

    /// A route to them. `more`: further settings of each step.
    fn with(&self, more: &str) -> Builder {
        let [charge, account, mail] = &self.receivers;
        Onceward::in_front_of_steps(&[
            ("charge", charge, more),
            ("account", account, more),
            ("mail", mail, more),
        ])
    }

    /// How often each was called.
    fn counts(&self) -> [usize; 3] {
        self.receivers.each_ref().map(Receiver::count)
    }
}

/// How it stands with each step of an operation.
async fn standing(onceward: &Onceward, id: &str) -> [String; 3] {
    let operation = onceward.operation(id).await.expect("it is remembered");
    let steps = operation["steps"].as_array().unwrap();
    let state = |index: usize| {
        assert_eq!(steps[index]["name"], NAMES[index]);
        steps[index]["state"].as_str().unwrap().to_owned()
    };
    [state(0), state(1), state(2)]
}

/// The log of attempts: number, step, outcome.
async fn attempts(onceward: &Onceward, id: &str) -> Vec<(u64, String, String)> {
    let operation = onceward.operation(id).await.expect("it is remembered");
    let text = |value: &Value| value.as_str().unwrap_or("none").to_owned();
    let line = |line: &Value| {
        (line["number"].as_u64().unwrap(), text(&line["step"]), text(&line["outcome"]))
    };
    operation["attempts"].as_array().unwrap().iter().map(line).collect()
}
