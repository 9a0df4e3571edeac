//! Tests of the protocols, and of how a listener ends its connections.

use super::*;
use crate::listener::Peer;

#[tokio::test(start_paused = true)]
async fn pipelined_requests_are_answered_in_order() {
    let server = Server::default();
    let echo = service_fn(|request: Request<Incoming>| async move {
        Ok::<_, Infallible>(Response::new(Full::from(request.uri().path().to_owned())))
    });
    let mut io = server.open(echo, 1024);
    io.write_all(b"GET /1 HTTP/1.1\r\nhost: h\r\n\r\nGET /2 HTTP/1.1\r\nhost: h\r\n\r\n")
        .await
        .unwrap();
    read_answer(&mut io, "/1").await;
    read_answer(&mut io, "/2").await;
}

#[tokio::test(start_paused = true)]
async fn the_protocol_is_known_however_its_first_bytes_are_cut() {
    let server = Server::default();
    for pieces in [["P", "OST / HTTP/1.0\r\n\r\n"], ["PR", "OPFIND / HTTP/1.0\r\n\r\n"]] {
        let mut io = server.open(quick(), 1024);
        for piece in pieces {
            io.write_all(piece.as_bytes()).await.unwrap();
            sleep(SECOND).await;
        }
        read_answer(&mut io, "ok").await;
    }
    let mut io = server.open(quick(), 1024);
    for byte in b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" {
        io.write_all(&[*byte]).await.unwrap();
        tokio::task::yield_now().await;
    }
    io.write_all(b"\x00\x00\x00\x04\x00\x00\x00\x00\x00").await.unwrap();
    let mut frame = [0; 9];
    io.read_exact(&mut frame).await.unwrap();
    assert_eq!(frame[3], 4, "the answer to the preface is a SETTINGS frame");
}

#[tokio::test(start_paused = true)]
async fn a_large_answer_is_whole_on_both_protocols() {
    let server = Server::default();
    let mut io = server.open(large(500_000), 1024);
    io.write_all(b"GET / HTTP/1.0\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    io.read_to_end(&mut answer).await.unwrap();
    assert!(answer.ends_with(&vec![b'x'; 500_000]));
    let mut client = server.open_http2(large(500_000)).await;
    let answer = client.send_request(get()).await.unwrap();
    assert_eq!(answer.headers()["content-length"], "500000");
    assert_eq!(answer.collect().await.unwrap().to_bytes().len(), 500_000);
}

#[tokio::test(start_paused = true)]
async fn a_router_is_served_and_knows_its_peer() {
    use axum::extract::Extension;
    use hyper_util::service::TowerToHyperService;

    let handler = |Extension(Peer(peer)): Extension<Peer>| async move { peer.to_string() };
    let router = axum::Router::new().route("/", axum::routing::get(handler));
    let server = Server::default();
    let mut io = server.open(TowerToHyperService::new(router), 1024);
    io.write_all(GET).await.unwrap();
    read_answer(&mut io, "192.0.2.1:1").await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_with_connection_close_is_the_last() {
    let server = Server::default();
    let service = service_fn(|_: Request<Incoming>| async move {
        let mut response = text("bye");
        response.headers_mut().insert("connection", "close".parse().unwrap());
        Ok::<_, Infallible>(response)
    });
    let mut io = server.open(service, 1024);
    io.write_all(&[GET, GET].concat()).await.unwrap();
    let mut answers = String::new();
    io.read_to_string(&mut answers).await.unwrap();
    assert_eq!(answers.matches("bye").count(), 1, "{answers}");
}

#[tokio::test(start_paused = true)]
async fn while_draining_the_answer_in_flight_is_given_and_is_the_last() {
    let server = Server::default();
    let mut busy = server.open(slow(5 * SECOND), 1024);
    busy.write_all(GET).await.unwrap();
    let mut idle = server.open(quick(), 1024);
    idle.write_all(GET).await.unwrap();
    read_answer(&mut idle, "ok").await;
    sleep(SECOND).await;
    server.shutdown.drain();
    let mut late = server.open(quick(), 1024);
    sleep(SECOND).await;
    // One request was on its way when the drain began, and another one comes on a new connection.
    for io in [&mut idle, &mut late] {
        io.write_all(GET).await.unwrap();
        let answer = read_answer(io, "ok").await;
        assert!(answer.contains("connection: close"), "{answer}");
        io.shutdown().await.unwrap();
        assert_close(closed_after(io).await, Duration::ZERO);
    }
    let answer = read_answer(&mut busy, "at last").await;
    assert!(answer.contains("connection: close"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn while_draining_http2_answers_what_it_has_and_takes_no_more() {
    let server = Server::default();
    let mut client = server.open_http2(slow(5 * SECOND)).await;
    let in_flight = client.send_request(get());
    sleep(SECOND).await;
    server.shutdown.drain();
    let mut late = server.open_http2(slow(5 * SECOND)).await;
    sleep(SECOND).await;
    assert!(client.send_request(get()).await.is_err());
    let first = late.send_request(get());
    assert_eq!(in_flight.await.unwrap().collect().await.unwrap().to_bytes(), "at last");
    assert_eq!(first.await.unwrap().collect().await.unwrap().to_bytes(), "at last");
}

#[tokio::test(start_paused = true)]
async fn stopping_closes_what_is_idle_at_once() {
    let server = Server::default();
    let mut silent = server.open(quick(), 1024);
    let mut idle = server.open(quick(), 1024);
    idle.write_all(GET).await.unwrap();
    read_answer(&mut idle, "ok").await;
    let mut busy = server.open(slow(5 * SECOND), 1024);
    busy.write_all(GET).await.unwrap();
    sleep(SECOND).await;
    server.shutdown.stop(SECOND);
    assert_close(closed_after(&mut silent).await, Duration::ZERO);
    assert_close(closed_after(&mut idle).await, Duration::ZERO);
    // The connection is closed in both directions. The listener does not read and discard what is
    // sent now.
    let gone = until(async || idle.write_all(b"G").await.is_err()).await;
    assert_close(gone, Duration::ZERO);
    assert!(read_answer(&mut busy, "at last").await.contains("connection: close"));
}
