//! Connects to one of a name's addresses.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long an address has before the next one is tried beside it: the delay that RFC 8305,
/// section 5 recommends.
const NEXT_AFTER: Duration = Duration::from_millis(250);

/// The first connection that is made. An address that swallows packets keeps nobody waiting for
/// longer than [`NEXT_AFTER`]; one that refuses, not at all. Connections that come later are closed
/// without a byte.
pub(super) async fn connect(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut untried = in_turn(addresses).into_iter();
    let mut trying = FuturesUnordered::new();
    let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
    loop {
        match untried.next() {
            Some(address) => trying.push(TcpStream::connect(address)),
            None if trying.is_empty() => return Err(failure),
            None => {}
        }
        let ended = if untried.len() == 0 {
            trying.next().await
        } else {
            timeout(NEXT_AFTER, trying.next()).await.ok().flatten()
        };
        match ended {
            Some(Ok(stream)) => return Ok(stream),
            Some(Err(error)) => failure = error,
            None => {}
        }
    }
}

/// The addresses with the two families in turn, as RFC 8305, section 4 says: one that does not work
/// here costs one try.
fn in_turn(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let first = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (one, other): (Vec<_>, Vec<_>) =
        addresses.iter().partition(|address| address.is_ipv6() == first);
    (0..addresses.len())
        .flat_map(|index| [one.get(index), other.get(index)])
        .flatten()
        .copied()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn families_take_turns_and_the_resolvers_order_stays_within_each() {
        let mixed = ["[::1]:1", "[::2]:1", "[::3]:1", "1.1.1.1:1"].map(address);
        let expected = ["[::1]:1", "1.1.1.1:1", "[::2]:1", "[::3]:1"].map(address);
        assert_eq!(in_turn(&mixed), expected);
        assert_eq!(in_turn(&[]), []);
    }

    #[tokio::test]
    async fn without_an_address_or_where_all_refuse_there_is_no_connection() {
        assert!(connect(&[]).await.is_err());
        let refuses = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let nobody = refuses.local_addr().unwrap();
        drop(refuses);
        let failed = connect(&[nobody, nobody]).await.unwrap_err();
        assert_eq!(failed.kind(), io::ErrorKind::ConnectionRefused);
    }
}
