//! Connects to one of the addresses of a name, in the manner of Happy Eyeballs (RFC 8305).

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long one address is tried alone before the next one is tried beside it: the "Connection
/// Attempt Delay" that RFC 8305, section 5 recommends.
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// Connects to the address that answers first. Returns the last failure if no address answers.
///
/// An address that drops packets delays the next one by [`ATTEMPT_DELAY`]. An address that refuses
/// causes no delay. Connections that lose the race are closed before a byte is sent.
pub(super) async fn connect(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut untried = interleaved(addresses).into_iter();
    let mut attempts = FuturesUnordered::new();
    let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
    loop {
        match untried.next() {
            Some(address) => attempts.push(TcpStream::connect(address)),
            None if attempts.is_empty() => return Err(failure),
            None => {}
        }
        let ended = if untried.len() == 0 {
            // The caller's `connect_timeout` bounds this wait.
            attempts.next().await
        } else {
            timeout(ATTEMPT_DELAY, attempts.next()).await.ok().flatten()
        };
        match ended {
            Some(Ok(stream)) => return Ok(stream),
            Some(Err(error)) => failure = error,
            // The delay has passed. The connections that are being made go on beside the next one.
            None => {}
        }
    }
}

/// The addresses with IPv6 and IPv4 in turn, beginning with the family of the first address
/// (RFC 8305, section 4). A family that does not work on this network then costs one delay.
fn interleaved(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let ipv6_first = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (preferred, other): (Vec<_>, Vec<_>) =
        addresses.iter().partition(|address| address.is_ipv6() == ipv6_first);
    (0..addresses.len())
        .flat_map(|index| [preferred.get(index), other.get(index)])
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
        assert_eq!(interleaved(&mixed), expected);
        assert_eq!(interleaved(&[]), []);
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
