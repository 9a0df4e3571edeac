//! The first five scenes: copies of an event are sent, and all of them are answered without a
//! person.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::event::{self, Event};
use super::sender::{Answer, Sender};
use super::transcript::{Count, GivenAnswer, Promise, PromisedAnswer, Transcript};
use super::upstream::SampleUpstream;

/// Copies of one event, and what is promised of them.
#[derive(Debug)]
struct Scene {
    title: &'static str,
    story: &'static str,
    event: Event,
    copies: Copies,
    promise: Promise,
}

/// How the copies are sent.
#[derive(Debug)]
enum Copies {
    /// Each one after the answer to the one before.
    OneByOne(usize),
    /// All of them at the same time.
    AtOnce(usize),
    /// One copy that is given up after this time, and then further ones until the operation has
    /// ended.
    AfterGivingUp(Duration),
}

static DUPLICATE: Scene = Scene {
    title: "1. A duplicate",
    story: "Stripe sends an event again. Its key: id and type in the body.",
    event: event::STRIPE,
    copies: Copies::OneByOne(2),
    promise: Promise {
        answers: &[
            PromisedAnswer::one(Answer::Executed(200)),
            PromisedAnswer::one(Answer::Replayed(200)),
        ],
        forwarded: 1,
    },
};

static REDELIVERY: Scene = Scene {
    title: "2. A redelivery by hand",
    story: "Somebody presses GitHub's button, twice. Its key: header X-GitHub-Delivery.",
    event: event::GITHUB,
    copies: Copies::OneByOne(3),
    promise: Promise {
        answers: &[
            PromisedAnswer::one(Answer::Executed(200)),
            PromisedAnswer::one(Answer::Replayed(200)),
            PromisedAnswer::one(Answer::Replayed(200)),
        ],
        forwarded: 1,
    },
};

static BURST: Scene = Scene {
    title: "3. Eight copies at once",
    story: "One is forwarded; Shopify's route lets the others wait for its outcome.",
    event: event::SHOPIFY,
    copies: Copies::AtOnce(8),
    promise: Promise {
        answers: &[
            PromisedAnswer::one(Answer::Executed(200)),
            PromisedAnswer { copies: Count::Exactly(7), answer: Answer::Replayed(200) },
        ],
        forwarded: 1,
    },
};

static FAILURE: Scene = Scene {
    title: "4. An upstream that fails first",
    story: "A failure is not remembered: PayPal's next copy is a new attempt.",
    event: event::PAYPAL,
    copies: Copies::OneByOne(3),
    promise: Promise {
        answers: &[
            PromisedAnswer::one(Answer::Executed(503)),
            PromisedAnswer::one(Answer::Executed(200)),
            PromisedAnswer::one(Answer::Replayed(200)),
        ],
        forwarded: 2,
    },
};

static SLOWNESS: Scene = Scene {
    title: "5. An upstream that takes longer than the sender waits",
    story: "It takes 12 s; Adyen gives up after 10 s. Then, in this show, a copy comes every 250 ms.\n   \
            It began with scene 1: please wait.",
    event: event::ADYEN,
    copies: Copies::AfterGivingUp(Duration::from_secs(10)),
    promise: Promise {
        answers: &[
            PromisedAnswer::one(Answer::GaveUp(Duration::from_secs(10))),
            PromisedAnswer { copies: Count::AtLeastOne, answer: Answer::InFlight(503) },
            PromisedAnswer::one(Answer::Replayed(200)),
        ],
        forwarded: 1,
    },
};

/// The pause before a sender comes back after it was told to. Real senders wait longer.
const PAUSE: Duration = Duration::from_millis(250);

/// Plays the scenes. The slow one runs beside the others from the beginning. True if everything
/// went as promised.
pub(super) async fn play(sender: &Sender, upstream: &SampleUpstream) -> bool {
    let slowness = SLOWNESS.begin(sender);
    let mut is_as_promised = true;
    for scene in [&DUPLICATE, &REDELIVERY, &BURST, &FAILURE] {
        let answers = scene.begin(sender);
        is_as_promised &= scene.show(answers, upstream).await;
    }
    SLOWNESS.show(slowness, upstream).await && is_as_promised
}

impl Scene {
    /// Begins to send, and gives the answers as they come.
    fn begin(&'static self, sender: &Sender) -> mpsc::UnboundedReceiver<GivenAnswer> {
        let (give, answers) = mpsc::unbounded_channel();
        tokio::spawn(self.send(sender.clone(), give));
        answers
    }

    async fn send(&self, sender: Sender, give: mpsc::UnboundedSender<GivenAnswer>) {
        // Nobody receives any more once the demo has been interrupted.
        let give = |copies, answer| drop(give.send(GivenAnswer { copies, answer }));
        match self.copies {
            Copies::OneByOne(copies) => {
                for _ in 0..copies {
                    give(1, sender.send(&self.event).await.answer);
                }
            }
            Copies::AtOnce(copies) => {
                let replies = join_all((0..copies).map(|_| sender.send(&self.event))).await;
                let mut answers: Vec<_> = replies.into_iter().map(|reply| reply.answer).collect();
                // Which of the copies arrives first is chance.
                answers.sort();
                for same in answers.chunk_by(Answer::eq) {
                    same.first().into_iter().for_each(|one| give(same.len(), one.clone()));
                }
            }
            Copies::AfterGivingUp(patience) => {
                give(1, sender.send_within(patience, &self.event).await);
                let early = sender.send(&self.event).await.answer;
                let mut last = early.clone();
                let mut in_flight = 0;
                while last == early && matches!(last, Answer::InFlight(_)) {
                    in_flight += 1;
                    sleep(PAUSE).await;
                    last = sender.send(&self.event).await.answer;
                }
                if in_flight > 0 {
                    give(in_flight, early);
                }
                give(1, last);
            }
        }
    }

    /// Prints the answers as they come, and what the upstream counted. True if everything went as
    /// promised.
    async fn show(
        &self,
        mut answers: mpsc::UnboundedReceiver<GivenAnswer>,
        upstream: &SampleUpstream,
    ) -> bool {
        let mut transcript = Transcript::begin(self.title, self.story);
        while let Some(given) = answers.recv().await {
            transcript.add(given);
        }
        transcript.end(&self.event, &self.promise, upstream)
    }
}
