//! The scenes: what is sent, what is promised, and whether the promise was kept.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::event::{self, Event};
use super::receiver::Receiver;
use super::sender::{Answer, Sender};
use crate::cli::output::say;

/// Copies of one event, and what is promised of them.
#[derive(Debug)]
pub(super) struct Scene {
    title: &'static str,
    story: &'static str,
    event: Event,
    copies: Copies,
    promised: &'static [(Count, Answer)],
    /// How often the receiver gets the event.
    forwarded: usize,
}

/// So many copies got this answer.
type Told = (usize, Answer);

/// How many copies are promised an answer.
#[derive(Debug, Clone, Copy)]
enum Count {
    Exactly(usize),
    /// As many as there is time for.
    AtLeastOne,
}

impl Count {
    const fn holds_for(self, copies: usize) -> bool {
        match self {
            Self::Exactly(count) => copies == count,
            Self::AtLeastOne => copies > 0,
        }
    }
}

const ONE: Count = Count::Exactly(1);

#[derive(Debug)]
enum Copies {
    /// Each after the answer to the one before.
    OneByOne(usize),
    /// All at once.
    AtOnce(usize),
    /// One, after this time another, and more of them until one is answered.
    AfterGivingUp(Duration),
}

static DUPLICATE: Scene = Scene {
    title: "1. A duplicate",
    story: "Stripe sends an event again. Its key: id and type in the body.",
    event: event::STRIPE,
    copies: Copies::OneByOne(2),
    promised: &[(ONE, Answer::Executed(200)), (ONE, Answer::Replayed(200))],
    forwarded: 1,
};

static REDELIVERY: Scene = Scene {
    title: "2. A redelivery by hand",
    story: "Somebody presses GitHub's button, twice. Its key: header X-GitHub-Delivery.",
    event: event::GITHUB,
    copies: Copies::OneByOne(3),
    promised: &[
        (ONE, Answer::Executed(200)),
        (ONE, Answer::Replayed(200)),
        (ONE, Answer::Replayed(200)),
    ],
    forwarded: 1,
};

static BURST: Scene = Scene {
    title: "3. Eight copies at once",
    story: "One is forwarded; Shopify's route lets the others wait for its outcome.",
    event: event::SHOPIFY,
    copies: Copies::AtOnce(8),
    promised: &[(ONE, Answer::Executed(200)), (Count::Exactly(7), Answer::Replayed(200))],
    forwarded: 1,
};

static FAILURE: Scene = Scene {
    title: "4. A receiver that fails first",
    story: "A failure is not remembered: PayPal's next copy is a new attempt.",
    event: event::PAYPAL,
    copies: Copies::OneByOne(3),
    promised: &[
        (ONE, Answer::Executed(503)),
        (ONE, Answer::Executed(200)),
        (ONE, Answer::Replayed(200)),
    ],
    forwarded: 2,
};

static SLOWNESS: Scene = Scene {
    title: "5. A receiver that takes longer than the sender waits",
    story: "It takes 12 s; Adyen gives up after 10 s. Then, in this show, a copy comes every 250 ms.\n   \
            It began with scene 1: please wait.",
    event: event::ADYEN,
    copies: Copies::AfterGivingUp(Duration::from_secs(10)),
    promised: &[
        (ONE, Answer::GaveUp(Duration::from_secs(10))),
        (Count::AtLeastOne, Answer::InFlight(503)),
        (ONE, Answer::Replayed(200)),
    ],
    forwarded: 1,
};

/// How long a sender waits that was told to come back. Real ones wait for longer.
const PAUSE: Duration = Duration::from_millis(250);

/// Plays all scenes, the slow one beside the others. Whether every promise was kept.
pub(super) async fn play(sender: &Sender, receiver: &Receiver) -> bool {
    let slowness = SLOWNESS.begin(sender);
    let mut kept = true;
    for scene in [&DUPLICATE, &REDELIVERY, &BURST, &FAILURE] {
        let told = scene.begin(sender);
        kept &= scene.show(told, receiver).await;
    }
    SLOWNESS.show(slowness, receiver).await && kept
}

impl Scene {
    /// Begins to send. What the sender is told comes as it is told.
    fn begin(&'static self, sender: &Sender) -> mpsc::UnboundedReceiver<Told> {
        let (tell, told) = mpsc::unbounded_channel();
        tokio::spawn(self.send(sender.clone(), tell));
        told
    }

    async fn send(&self, sender: Sender, tell: mpsc::UnboundedSender<Told>) {
        // Nobody listens any more when the demo has been interrupted.
        let tell = |copies, answer| drop(tell.send((copies, answer)));
        match self.copies {
            Copies::OneByOne(copies) => {
                for _ in 0..copies {
                    tell(1, sender.send(&self.event).await);
                }
            }
            Copies::AtOnce(copies) => {
                let mut answers = join_all((0..copies).map(|_| sender.send(&self.event))).await;
                answers.sort();
                for same in answers.chunk_by(Answer::eq) {
                    same.first().into_iter().for_each(|one| tell(same.len(), one.clone()));
                }
            }
            Copies::AfterGivingUp(patience) => {
                tell(1, sender.send_within(patience, &self.event).await);
                let early = sender.send(&self.event).await;
                let mut last = early.clone();
                let mut told_to_come_back = 0;
                while last == early && matches!(last, Answer::InFlight(_)) {
                    told_to_come_back += 1;
                    sleep(PAUSE).await;
                    last = sender.send(&self.event).await;
                }
                if told_to_come_back > 0 {
                    tell(told_to_come_back, early);
                }
                tell(1, last);
            }
        }
    }

    /// Prints what comes, and what the receiver counted. Whether that is what was promised.
    async fn show(&self, mut told: mpsc::UnboundedReceiver<Told>, receiver: &Receiver) -> bool {
        say(&format!("\n{}\n   {}\n", self.title, self.story));
        let mut sent = 0;
        let mut all = Vec::new();
        while let Some((copies, answer)) = told.recv().await {
            let first = sent + 1;
            sent += copies;
            let which = match copies {
                1 => format!("copy {first}"),
                _ => format!("copies {first} to {sent}"),
            };
            say(&format!("   {which:<14}  {answer}\n"));
            all.push((copies, answer));
        }
        let forwarded = receiver.received(self.event.id);
        let as_promised = |((copies, answer), (count, promised)): (&Told, &(Count, Answer))| {
            count.holds_for(*copies) && answer == promised
        };
        let kept = all.len() == self.promised.len()
            && all.iter().zip(self.promised).all(as_promised)
            && forwarded == self.forwarded;
        let verdict = if kept { "as promised" } else { "NOT AS PROMISED" };
        say(&format!("   {sent} copies sent, the receiver counted {forwarded}: {verdict}\n"));
        kept
    }
}
