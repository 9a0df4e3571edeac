//! Tests of which connections are used again.

use tokio::time::timeout;

use super::*;

/// Makes an exchange, and returns the upstream's side of its connection.
async fn exchanged(upstream: &Upstream, listener: &TcpListener, head: &str) -> TcpStream {
    let answered = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        answers(&mut stream, head).await;
        stream
    };
    tokio::join!(answered, exchanges(upstream)).0
}

const PROMISE: &str = "keep-alive: timeout=600\r\n";

fn upstream_at(listener: &TcpListener) -> Upstream {
    let clock = Clock::manual(crate::operation::Timestamp(0));
    upstream(&FixedResolver::of([listener.local_addr().unwrap()]), &clock)
}

/// Whether the connection of the next exchange is kept for reuse.
async fn reuses(upstream: &Upstream, listener: &TcpListener) -> bool {
    let _open = exchanged(upstream, listener, PROMISE).await;
    upstream.connect().await.unwrap().is_reused()
}

/// A server may close an idle connection between the check of the connection and its use.
#[tokio::test]
async fn a_connection_that_is_closed_after_it_was_taken_hands_the_request_back_at_once() {
    for resets in [false, true] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let upstream = upstream_at(&listener);
        let stream = exchanged(&upstream, &listener, PROMISE).await;
        let taken = upstream.connect().await.unwrap();
        assert!(taken.is_reused());
        if resets {
            stream.set_zero_linger().unwrap();
        }
        drop(stream);
        // The runtime learns of the close here. Otherwise the request would be written to a closed
        // connection.
        tokio::task::yield_now().await;
        let sending = tokio::spawn(async move {
            let progress = Progress::default();
            (taken.send(request(), &progress).await, progress.byte_written())
        });
        let ended = timeout(Duration::from_secs(20), sending).await;
        let (sent, written) = ended.expect("it does not wait for anything").unwrap();
        assert!(matches!(sent, SendResult::HandedBack(_)), "{sent:?}");
        assert!(!written);
        assert!(!reuses(&upstream, &listener).await, "the address was seen to close");
    }
}

#[tokio::test]
async fn an_address_that_closes_instead_of_an_answer_is_not_used_again_for_a_while() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let upstream = upstream_at(&listener);
    let mut stream = exchanged(&upstream, &listener, PROMISE).await;
    let taken = upstream.connect().await.unwrap();
    assert!(taken.is_reused());
    let progress = Progress::default();
    let closes = async move {
        let _request = stream.read(&mut [0; 1024]).await.unwrap();
        drop(stream);
    };
    let sent = tokio::join!(closes, taken.send(request(), &progress)).1;
    assert!(matches!(sent, SendResult::Unanswered(Reason::ConnectionLost)), "{sent:?}");
    assert!(!reuses(&upstream, &listener).await);
}

/// The server promised to keep the connection open, but closed it together with the answer.
#[tokio::test]
async fn an_address_that_closes_behind_an_answer_is_not_used_again_for_a_while() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let upstream = upstream_at(&listener);
    let closes = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        answers(&mut stream, PROMISE).await;
    };
    tokio::join!(closes, exchanges(&upstream));
    assert!(!reuses(&upstream, &listener).await);
}

#[tokio::test]
async fn a_close_that_is_found_between_two_exchanges_counts() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let upstream = upstream_at(&listener);
    drop(exchanged(&upstream, &listener, PROMISE).await);
    upstream.close_idle();
    assert!(!reuses(&upstream, &listener).await);
}

#[tokio::test]
async fn an_address_that_says_nothing_is_used_again_once_a_connection_has_stayed_open() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let upstream = upstream(&FixedResolver::of([listener.local_addr().unwrap()]), &Clock::system());
    let _open = exchanged(&upstream, &listener, "").await;
    let early = upstream.connect().await.unwrap();
    assert!(!early.is_reused(), "the address is on probation");
    drop((early, listener.accept().await.unwrap()));
    let reused = async {
        while !upstream.connect().await.unwrap().is_reused() {
            let _unused = listener.accept().await.unwrap();
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(20), reused).await.expect("it proves itself");
}

/// Nothing is on its way at that time, so each close is seen before anything is written.
#[tokio::test]
async fn an_address_that_was_seen_to_close_is_not_used_again_for_a_while() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let clock = Clock::manual(crate::operation::Timestamp(0));
    let upstream = upstream(&FixedResolver::of([listener.local_addr().unwrap()]), &clock);
    for pause in [1, 2, 4] {
        drop(exchanged(&upstream, &listener, PROMISE).await);
        // The connection was idle, and is found closed.
        let instead = upstream.connect().await.unwrap();
        assert!(!instead.is_reused());
        drop((instead, listener.accept().await.unwrap()));
        for _second in 0..pause {
            let _open = exchanged(&upstream, &listener, PROMISE).await;
            let next = upstream.connect().await.unwrap();
            assert!(!next.is_reused(), "after a close, for {pause} s");
            drop((next, listener.accept().await.unwrap()));
            clock.advance(Duration::from_secs(1));
        }
        let _open = exchanged(&upstream, &listener, PROMISE).await;
        assert!(upstream.connect().await.unwrap().is_reused(), "after {pause} s");
    }
}

/// The next answer does not say how long its connection stays open.
#[tokio::test]
async fn a_server_that_keeps_nothing_open_promises_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let upstream = upstream(&FixedResolver::of([listener.local_addr().unwrap()]), &Clock::system());
    let _first = exchanged(&upstream, &listener, "keep-alive: timeout=0\r\n").await;
    let _second = exchanged(&upstream, &listener, "").await;
    assert!(!upstream.connect().await.unwrap().is_reused());
}

#[tokio::test]
async fn a_connection_is_used_for_half_the_time_that_the_server_promised() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let clock = Clock::manual(crate::operation::Timestamp(0));
    let upstream = upstream(&FixedResolver::of([listener.local_addr().unwrap()]), &clock);
    for (millis, reused) in [(4_999, true), (5_000, false)] {
        let _open = exchanged(&upstream, &listener, "keep-alive: timeout=10\r\n").await;
        clock.advance(Duration::from_millis(millis));
        assert_eq!(upstream.connect().await.unwrap().is_reused(), reused, "{millis} ms");
    }
}

/// hyper believes that the request was written, and that the connection goes on.
#[tokio::test]
async fn a_connection_on_which_a_write_failed_is_not_used_again() {
    for fails in [false, true] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let upstream = upstream_at(&listener);
        let connection = upstream.connect().await.unwrap();
        let observations = connection.observations();
        let answered = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            // The request has arrived.
            stream.peek(&mut [0]).await.unwrap();
            if fails {
                observations.record_write_failure();
            }
            answers(&mut stream, PROMISE).await;
            stream
        };
        let exchanged = async {
            let sent = connection.send(request(), &Progress::default()).await;
            let SendResult::Answered(mut answer) = sent else { panic!("{sent:?}") };
            assert!(matches!(answer.stream.chunk().await, Ok(None)));
        };
        let _open = tokio::join!(answered, exchanged).0;
        assert_eq!(upstream.connect().await.unwrap().is_reused(), !fails);
    }
}
