//! The sixth scene: nobody knows whether the upstream did what an event asks for, so the operation
//! is held until a person decides.

use std::net::SocketAddr;

use clap::Parser as _;

use super::event;
use super::sender::{Answer, Reply, Sender};
use super::transcript::{GivenAnswer, Promise, PromisedAnswer, Transcript};
use super::upstream::SampleUpstream;
use crate::cli::operations;
use crate::cli::output::{Exit, say};

static PROMISE: Promise = Promise {
    answers: &[
        PromisedAnswer::one(Answer::Unanswered(504)),
        PromisedAnswer::one(Answer::Uncertain(503)),
        PromisedAnswer::one(Answer::Replayed(200)),
    ],
    forwarded: 1,
};

/// Plays the scene. True if everything went as promised.
pub(super) async fn play(sender: &Sender, upstream: &SampleUpstream, admin: SocketAddr) -> bool {
    let mut transcript = Transcript::begin(
        "6. An upstream that takes an event and never answers",
        "Was the transfer made? Nobody knows, so it is held: not sent again until a person decides.",
    );
    let mut operation = None;
    for _ in 0..2 {
        let reply = sender.send(&event::TRANSFER).await;
        transcript.add(GivenAnswer { copies: 1, answer: reply.answer });
        operation = reply.operation;
    }
    // Without an operation nothing is held, and the verdict below says that the promise is broken.
    if let Some(operation) = operation {
        resolve(&operation, admin).await;
    }
    let Reply { answer, .. } = sender.send(&event::TRANSFER).await;
    transcript.add(GivenAnswer { copies: 1, answer });
    transcript.end(&event::TRANSFER, &PROMISE, upstream)
}

/// Prints the command that a person would type, runs it, and prints what it says.
async fn resolve(operation: &str, admin: SocketAddr) {
    let admin = format!("http://{admin}");
    let words = ["operations", "resolve", operation, "--outcome", "succeeded"];
    let more = ["--reason", "found in the ledger", "--admin", &admin];
    let words = words.into_iter().chain(more).map(str::to_owned).collect::<Vec<_>>();
    let typed = words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    say(&format!(
        "\n   A person finds the transfer in the ledger, and types:\n   onceward {typed}\n"
    ));
    // The command opens a runtime of its own and blocks until it is done.
    let exit = tokio::task::spawn_blocking(move || run(words)).await;
    if let Ok(Exit { stdout, stderr, .. }) = exit {
        say(&format!("   {}\n\n", format!("{stdout}{stderr}").trim_end()));
    }
}

/// The arguments of `onceward operations`.
#[derive(Debug, clap::Parser)]
struct Operations {
    #[command(flatten)]
    args: operations::Args,
}

/// Runs the command as it is printed, but for the question whether to go on: nobody is there to
/// answer it.
fn run(words: Vec<String>) -> Exit {
    match Operations::try_parse_from(words.into_iter().chain(["--yes".to_owned()])) {
        Ok(Operations { args }) => operations::run(&args),
        Err(error) => Exit::misused(error.to_string()),
    }
}

/// A word as it is typed into a shell.
fn quoted(word: &str) -> String {
    if word.contains(' ') { format!("'{word}'") } else { word.to_owned() }
}
