//! The transcript of a scene: prints the answers to the copies of one event, and compares them with
//! what is promised.

use super::event::Event;
use super::sender::Answer;
use super::upstream::SampleUpstream;
use crate::cli::output::say;

/// What is promised of the copies of one event.
#[derive(Debug)]
pub(super) struct Promise {
    /// The answers, in their order.
    pub(super) answers: &'static [PromisedAnswer],
    /// How often the upstream gets the event.
    pub(super) forwarded: usize,
}

/// An answer, and how many copies get it one after the other.
#[derive(Debug)]
pub(super) struct PromisedAnswer {
    pub(super) copies: Count,
    pub(super) answer: Answer,
}

impl PromisedAnswer {
    /// An answer that one copy gets.
    pub(super) const fn one(answer: Answer) -> Self {
        Self { copies: Count::Exactly(1), answer }
    }
}

/// How many copies get an answer.
#[derive(Debug, Clone, Copy)]
pub(super) enum Count {
    Exactly(usize),
    /// As many as there is time for, but at least one.
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

/// An answer that was given to several copies one after the other.
#[derive(Debug)]
pub(super) struct GivenAnswer {
    pub(super) copies: usize,
    pub(super) answer: Answer,
}

/// The answers that were given so far.
#[derive(Debug, Default)]
pub(super) struct Transcript {
    sent: usize,
    given: Vec<GivenAnswer>,
}

impl Transcript {
    /// Prints the title of a scene and what happens in it.
    pub(super) fn begin(title: &str, story: &str) -> Self {
        say(&format!("\n{title}\n   {story}\n"));
        Self::default()
    }

    /// Prints an answer, with the numbers of the copies that got it.
    pub(super) fn add(&mut self, given: GivenAnswer) {
        let GivenAnswer { copies, answer } = &given;
        let first = self.sent + 1;
        self.sent += copies;
        let which = match copies {
            1 => format!("copy {first}"),
            _ => format!("copies {first} to {}", self.sent),
        };
        say(&format!("   {which:<14}  {answer}\n"));
        self.given.push(given);
    }

    /// Prints how often the upstream got the event. True if everything went as promised.
    pub(super) fn end(self, event: &Event, promise: &Promise, upstream: &SampleUpstream) -> bool {
        let sent = self.sent;
        let received = upstream.received(event.id);
        let is_as_promised = received == promise.forwarded
            && self.given.len() == promise.answers.len()
            && self.given.iter().zip(promise.answers).all(|(given, promised)| {
                promised.copies.holds_for(given.copies) && given.answer == promised.answer
            });
        let verdict = if is_as_promised { "as promised" } else { "NOT AS PROMISED" };
        say(&format!("   {sent} copies sent, the upstream counted {received}: {verdict}\n"));
        is_as_promised
    }
}
