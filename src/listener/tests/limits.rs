//! Tests of which connections are closed, and exactly when.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_silent_connection_is_closed_at_header_timeout() {
    let server = Server::default();
    let mut io = server.open(quick(), 1024);
    assert_close(closed_after(&mut io).await, 10 * SECOND);
    assert!(server.reached(Limit::HeaderTimeout));
}

#[tokio::test(start_paused = true)]
async fn a_head_that_comes_byte_by_byte_is_closed_at_header_timeout() {
    for begin in [&b"GET / HTTP/1.1\r\nx: "[..], b"PRI * HTTP/2", b"\r\n"] {
        let server = Server::default();
        let (mut reader, mut writer) = tokio::io::split(server.open(quick(), 1024));
        writer.write_all(begin).await.unwrap();
        let start = Instant::now();
        let drip = async {
            loop {
                sleep(SECOND).await;
                writer.write_all(b"1").await.ok();
            }
        };
        let end = async {
            reader.read_to_end(&mut Vec::new()).await.unwrap();
            start.elapsed()
        };
        tokio::select! {
            () = drip => unreachable!(),
            elapsed = end => if begin.starts_with(b"GET") {
                assert_close(elapsed, 10 * SECOND);
            } else {
                assert!(elapsed <= 11 * SECOND, "{elapsed:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_later_head_has_header_timeout_from_its_first_byte() {
    let server = Server::default();
    let mut io = server.open(quick(), 1024);
    io.write_all(GET).await.unwrap();
    read_answer(&mut io, "ok").await;
    sleep(30 * SECOND).await;
    io.write_all(b"G").await.unwrap();
    assert_close(closed_after(&mut io).await, 10 * SECOND);
    assert!(server.reached(Limit::HeaderTimeout));
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_closed_at_idle_timeout_and_not_before() {
    let server = Server::default();
    let mut io = server.open(quick(), 1024);
    for _ in 0..3 {
        io.write_all(GET).await.unwrap();
        read_answer(&mut io, "ok").await;
        sleep(74 * SECOND).await;
    }
    assert_close(closed_after(&mut io).await, SECOND);
    assert!(server.reached(Limit::IdleTimeout));
}

#[tokio::test(start_paused = true)]
async fn the_time_a_request_is_served_never_counts() {
    let server = Server::default();
    let mut io = server.open(slow(3600 * SECOND), 1024);
    let mut other = server.open_http2(slow(3600 * SECOND)).await;
    for _ in 0..2 {
        io.write_all(GET).await.unwrap();
        let answer = other.send_request(get());
        read_answer(&mut io, "at last").await;
        assert_eq!(answer.await.unwrap().collect().await.unwrap().to_bytes(), "at last");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_stalls_is_closed_at_write_timeout() {
    let server = Server::default();
    let mut io = server.open(large(100_000), 1024);
    io.write_all(GET).await.unwrap();
    // A reader may be slow, as long as it takes something in time.
    for _ in 0..10 {
        sleep(29 * SECOND).await;
        io.read_exact(&mut [0; 600]).await.unwrap();
    }
    sleep(29 * SECOND).await;
    let stalled = until(async || server.reached(Limit::WriteTimeout)).await;
    assert_close(stalled, SECOND);
    let mut rest = Vec::new();
    io.read_to_end(&mut rest).await.unwrap();
    assert!(rest.len() < 100_000 - 6000);
}

#[tokio::test(start_paused = true)]
async fn an_http2_reader_that_gives_no_room_is_closed_at_write_timeout() {
    let server = Server::default();
    let mut client = server.open_http2(large(100_000)).await;
    let stalled = client.send_request(get()).await.unwrap();
    // Neither pings nor other answers that the peer reads hide that it does not read this answer.
    tokio::spawn(async move {
        while let Ok(other) = client.send_request(get()).await {
            other.collect().await.ok();
            sleep(SECOND).await;
        }
    });
    sleep(29 * SECOND).await;
    let closed = until(async || server.reached(Limit::WriteTimeout)).await;
    assert_close(closed, SECOND);
    assert!(stalled.collect().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn an_http2_connection_without_streams_is_closed_at_idle_timeout_in_spite_of_its_pings() {
    let server = Server::default();
    let mut client = server.open_http2(quick()).await;
    client.send_request(get()).await.unwrap().collect().await.unwrap();
    sleep(74 * SECOND).await;
    let closed = until(async || client.ready().await.is_err()).await;
    assert_close(closed, SECOND);
    assert!(server.reached(Limit::IdleTimeout));
}

#[tokio::test(start_paused = true)]
async fn an_http2_connection_that_asks_nothing_is_closed_at_header_timeout() {
    let server = Server::default();
    let mut client = server.open_http2(quick()).await;
    sleep(9 * SECOND).await;
    let closed = until(async || client.ready().await.is_err()).await;
    assert_close(closed, SECOND);
    assert!(server.reached(Limit::HeaderTimeout));
}

#[tokio::test(start_paused = true)]
async fn limits_beyond_reason_are_no_panic_and_no_spin() {
    for timeout in [Duration::ZERO, Duration::MAX] {
        let limits = Limits {
            header_timeout: timeout,
            idle_timeout: timeout,
            write_timeout: timeout,
            ..limits()
        };
        let context = ServerContext::new(&limits, Shutdown::default(), &resources(&Arc::default()));
        let (mut here, there) = duplex(1024);
        let peer = "192.0.2.1:1".parse().unwrap();
        let served = connection::serve(Arc::new(context), there, peer, slow(SECOND));
        tokio::spawn(served);
        here.write_all(GET).await.unwrap();
        read_answer(&mut here, "at last").await;
    }
}
