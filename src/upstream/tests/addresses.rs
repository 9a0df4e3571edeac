//! Tests of a name with several addresses, and of a name that moves.

use tokio::time::timeout;

use super::*;

/// An address that neither takes nor refuses connections: its queue is full, and the machine drops
/// all packets that ask for a further connection.
async fn swallows() -> (socket2::Socket, Vec<TcpStream>) {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    socket.bind(&any.into()).unwrap();
    socket.listen(0).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    let mut queued = Vec::new();
    while let Ok(stream) = timeout(Duration::from_millis(500), TcpStream::connect(address)).await {
        queued.push(stream.unwrap());
    }
    (socket, queued)
}

#[tokio::test]
async fn an_address_that_swallows_packets_does_not_keep_an_event_from_the_next_one() {
    let (silent, _queued) = swallows().await;
    let silent = silent.local_addr().unwrap().as_socket().unwrap();
    let (address, made) = server().await;
    let clock = Clock::system();
    for addresses in [vec![silent, address], vec![silent, silent, address], vec![address, silent]] {
        let upstream = upstream(&FixedResolver::of(addresses), &clock);
        // Connecting would be given up after 20 s.
        timeout(Duration::from_secs(10), exchanges(&upstream)).await.unwrap();
    }
    assert_eq!(*made.lock().unwrap(), 3);
}

#[tokio::test]
async fn where_no_address_can_be_connected_to_nothing_was_sent() {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let upstream = upstream(&FixedResolver::of([gone, gone]), &Clock::system());
    assert_eq!(upstream.connect().await.unwrap_err(), Reason::ConnectFailed);
}

/// Under load a connection is never idle for so long that it is closed.
#[tokio::test]
async fn a_name_that_moves_is_followed_within_the_greatest_age_of_a_connection() {
    let (old, old_made) = server().await;
    let (new, new_made) = server().await;
    let resolver = FixedResolver::of([old]);
    let clock = Clock::manual(crate::operation::Timestamp(0));
    let upstream = upstream(&resolver, &clock);
    exchanges(&upstream).await;
    resolver.moves_to(new);
    for _second in 1..GREATEST_AGE.as_secs() {
        clock.advance(Duration::from_secs(1));
        exchanges(&upstream).await;
        assert_eq!(*old_made.lock().unwrap(), 1);
        assert_eq!(*new_made.lock().unwrap(), 0);
    }
    clock.advance(Duration::from_secs(1));
    exchanges(&upstream).await;
    assert_eq!(*new_made.lock().unwrap(), 1);
}
