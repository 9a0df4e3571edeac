//! Tests of connections that are dealt to threads.

use std::num::NonZeroUsize;
use std::sync::mpsc;
use std::thread;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::sockets::{PATIENCE, Running};
use super::*;

fn two_threads() -> Workers {
    Workers::start(NonZeroUsize::new(2).unwrap()).unwrap()
}

/// The name of the thread that answers a request on a connection that stays open.
async fn thread_of(stream: &mut TcpStream) -> String {
    stream.write_all(GET).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b".") {
        assert_ne!(stream.read_buf(&mut answer).await.unwrap(), 0);
    }
    let answer = String::from_utf8(answer).unwrap();
    answer.rsplit_once("\r\n\r\n").unwrap().1.to_owned()
}

#[tokio::test]
async fn connections_are_dealt_evenly_and_each_stays_on_its_thread() {
    let tells_its_thread = service_fn(|_: Request<Incoming>| async {
        // Elsewhere in the meantime, if it could be.
        tokio::task::yield_now().await;
        let name = thread::current().name().unwrap_or("unnamed").to_owned();
        Ok::<_, Infallible>(Response::new(Full::from(format!("{name}."))))
    });
    let server = Running::start_on(two_threads(), tells_its_thread, limits());
    let mut streams = Vec::new();
    for _ in 0..8 {
        let mut stream = server.connect().await;
        let name = thread_of(&mut stream).await;
        streams.push((name, stream));
    }
    for thread in ["connections-0.", "connections-1."] {
        assert_eq!(streams.iter().filter(|(name, _)| name == thread).count(), 4, "{thread}");
    }
    for (name, mut stream) in streams {
        for _ in 0..10 {
            assert_eq!(thread_of(&mut stream).await, name);
        }
    }
}

#[tokio::test]
async fn a_thread_that_is_busy_does_not_keep_another_from_serving() {
    let (release, released) = mpsc::channel::<()>();
    let (sticks, is_stuck) = oneshot::channel();
    let first = Arc::new(Mutex::new(Some((sticks, released))));
    let first_is_stuck = service_fn(move |_: Request<Incoming>| {
        let first = first.lock().take();
        if let Some((sticks, released)) = first {
            sticks.send(()).unwrap();
            released.recv().unwrap();
        }
        async { Ok::<_, Infallible>(text("ok")) }
    });
    let server = Running::start_on(two_threads(), first_is_stuck, limits());
    let mut stuck = server.connect().await;
    stuck.write_all(b"GET / HTTP/1.0\r\n\r\n").await.unwrap();
    timeout(PATIENCE, is_stuck).await.unwrap().unwrap();
    let answer = timeout(PATIENCE, server.ask()).await.expect("the other thread serves");
    assert!(answer.ends_with("ok"), "{answer}");
    release.send(()).unwrap();
    let mut answer = String::new();
    stuck.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with("ok"), "{answer}");
}
