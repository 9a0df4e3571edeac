//! Nobody knows whether it was done: the receiver is asked, one look-up at a time, and is believed
//! no more than it says.

mod answers;
mod copies;
mod hostile;
mod training;

use serde_json::Value;

use crate::support::{Act, Onceward, Receiver, Reply, Seen};

/// The text of the warning that an uncertain outcome leaves in the log.
const HELD: &str = "nobody knows whether the operation was done";

/// A receiver of events that also answers look-ups, which are its GETs. Each script gets the
/// request and how many of its kind came before.
struct Asked {
    receiver: Receiver,
}

impl Asked {
    async fn that(
        event: impl Fn(&Seen, usize) -> Act + Send + Sync + 'static,
        lookup: impl Fn(&Seen, usize) -> Act + Send + Sync + 'static,
    ) -> Self {
        let receiver = Receiver::that(move |seen, copies| match &*seen.method {
            "GET" => lookup(seen, copies),
            _ => event(seen, copies),
        });
        Self { receiver: receiver.await }
    }

    fn of(&self, method: &str) -> Vec<Seen> {
        self.receiver.seen().into_iter().filter(|seen| seen.method == method).collect()
    }

    /// How often the event itself came.
    fn attempts(&self) -> usize {
        self.of("POST").len()
    }

    /// What was asked.
    fn lookups(&self) -> Vec<Seen> {
        self.of("GET")
    }

    /// A proxy that asks this receiver. `lookup`: further settings of the route's look-up.
    fn with(&self, defaults: &str, lookup: &str) -> crate::support::Builder {
        let url = format!("{}/internal/events/{{key}}", self.receiver.url());
        Onceward::in_front_of(&self.receiver)
            .defaults(&format!("when_uncertain = \"lookup\"\n{defaults}"))
            .routes(&format!("[routes.hooks.lookup]\nurl = \"{url}\"\n{lookup}"))
            .expects_log(HELD)
    }
}

/// The latest decision about the operation of an answer.
async fn decision(onceward: &Onceward, reply: &Reply) -> Value {
    let operation = onceward.operation(&reply.operation()).await.expect("it is remembered");
    operation["decisions"].as_array().unwrap().last().expect("a decision").clone()
}

/// The operation of an answer is held, because this was found.
async fn is_held(onceward: &Onceward, reply: &Reply, found: &str) {
    reply.is_uncertain();
    let decision = decision(onceward, reply).await;
    assert_eq!((&decision["by"], &decision["decision"]), (&"lookup".into(), &"looked_up".into()));
    assert_eq!(decision["reason"], found);
}
