//! An answer is passed on as it is, whatever its bytes look like.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::reached;
use crate::support::{BareReceiver, Event, Onceward, RawSender};

/// A piece of a body that begins as a refusal does that hyper would write by itself.
const PIECE: &[u8] = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n";
const PIECES: usize = 4;

/// A receiver whose body comes in such pieces, one for each permit.
async fn in_pieces(go: &Arc<Semaphore>, is_chunked: bool) -> BareReceiver {
    let go = Arc::clone(go);
    BareReceiver::that(move |mut bare| {
        let go = Arc::clone(&go);
        let length = PIECE.len();
        async move {
            while bare.reads_request().await.is_some() {
                let framing = if is_chunked {
                    "transfer-encoding: chunked".to_owned()
                } else {
                    format!("content-length: {}", PIECES * length)
                };
                bare.writes(format!("HTTP/1.1 200 OK\r\n{framing}\r\n\r\n").as_bytes()).await;
                for _ in 0..PIECES {
                    go.acquire().await.unwrap().forget();
                    let before = if is_chunked { format!("{length:x}\r\n") } else { String::new() };
                    let behind: &[u8] = if is_chunked { b"\r\n" } else { b"" };
                    bare.writes(&[before.as_bytes(), PIECE, behind].concat()).await;
                }
                if is_chunked {
                    bare.writes(b"0\r\n\r\n").await;
                }
            }
        }
    })
    .await
}

/// Lets the next piece come when the one before was read.
async fn reads_pieces(sender: &mut RawSender, go: &Semaphore) {
    assert_eq!(sender.reads_head().await.status, 200);
    for number in 0..PIECES {
        go.add_permits(1);
        assert_eq!(sender.reads_exactly(PIECE.len()).await, PIECE, "piece {number}");
    }
}

#[tokio::test]
async fn a_piece_of_an_answer_that_looks_like_a_refusal_is_passed_on_as_it_is() {
    let go = Arc::new(Semaphore::new(0));
    let receiver = in_pieces(&go, false).await;
    let onceward = Onceward::in_front_of_url(&receiver.url()).start().await;
    let mut sender = onceward.connects().await;
    let get = Event::bytes("").by("GET").raw();
    // The second request is there before the first is answered.
    sender.writes(&[get.clone(), get].concat()).await;
    reads_pieces(&mut sender, &go).await;
    reads_pieces(&mut sender, &go).await;
    // Behind all this a refusal of hyper's own is still told from an answer.
    sender.writes(b"GET /hooks HTTP/3.1\r\nhost: h\r\n\r\n").await;
    sender.reads_answer().await.is_refused(400, "malformed");
    assert_eq!(sender.reads_to_the_end().await, b"");
    receiver.was_called(2);
    assert_eq!(onceward.metric(&reached("header_lines_max")).await, 0.0);
}

/// To a sender in HTTP/1.0 such a body goes without chunks, and ends with the connection.
#[tokio::test]
async fn so_is_a_piece_of_an_answer_whose_length_nobody_knows() {
    let go = Arc::new(Semaphore::new(0));
    let receiver = in_pieces(&go, true).await;
    let onceward = Onceward::in_front_of_url(&receiver.url()).start().await;
    let mut sender = onceward.connects().await;
    sender.writes(b"GET /hooks HTTP/1.0\r\nhost: h\r\n\r\n").await;
    reads_pieces(&mut sender, &go).await;
    assert_eq!(sender.reads_to_the_end().await, b"");
    receiver.was_called(1);
}
