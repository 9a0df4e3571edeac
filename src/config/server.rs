//! `[server]`: the data plane as a whole.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::time::Duration;

use http::Uri;

use super::leaf::Count;
use super::quantity::Size;
use super::reader::Reported;
use super::receiver::ATTEMPT_MAX;
use super::settings::Server;
use super::table::Table;
use super::url::PublicUrl;
use crate::listener;
use crate::proxy;
use crate::upstream::AnswerHeadLimits;

/// A thread for each processor is enough, and few machines have more of them than this.
const THREADS: RangeInclusive<Count> = Count(1)..=Count(1024);

/// The limits of a head. hyper takes no smaller buffer than the lower one.
const HEAD_BYTES: RangeInclusive<Size> = Size(8 << 10)..=Size(16 << 20);
const HEAD_BYTES_EXPECTED: &str = "a size from `8KiB` to `16MiB`";

/// hyper makes room for the greatest number of lines with each head that it reads.
const REQUEST_LINES: RangeInclusive<Count> = Count(16)..=Count(10_000);

/// Room for the greatest number of lines is made for each answer, and a map of headers takes not
/// many more.
const ANSWER_LINES: RangeInclusive<Count> = Count(1)..=Count(10_000);

/// The least memory for bodies is that of one request of the built-in greatest size.
const BODIES: RangeInclusive<Size> = Size(1 << 20)..=Size(usize::MAX);

/// How long a peer may take at most to send or to read. Until then it holds one of a limited number
/// of places.
const PEER_MAX: Duration = Duration::from_hours(1);

/// How long a connection may be idle at most. Load balancers may keep theirs open for over an hour.
const IDLE_MAX: Duration = Duration::from_hours(24);

/// How long a process that is to end may go on serving at most.
const DRAIN_MAX: Duration = Duration::from_hours(1);

/// What was read of `[server]`.
pub(super) struct ServerTable {
    pub(super) settings: Result<Server, Reported>,
    /// The address as it was written: a stand-in would be compared with other addresses.
    pub(super) listen: Result<SocketAddr, Reported>,
    /// How senders see the proxy, as it was written: a stand-in would count as not set.
    pub(super) public_url: Result<Option<Uri>, Reported>,
    /// The memory for all bodies, in bytes, if it could be read.
    pub(super) bodies_max: Option<usize>,
}

/// Reads `[server]`.
pub(super) fn server(table: &mut Table<'_, '_>) -> Result<ServerTable, Reported> {
    let listen = table.needed("listen", None);
    let public_url = table.written::<Option<PublicUrl>>("public_url");
    let public_url = public_url.map(|url| url.flatten().map(|url| url.0));
    let trusted_proxies = table.setting_list("trusted_proxies")?;
    let threads = table.written_within("threads", &THREADS, "a whole number from 1 to 1024");
    let drain_delay = table.up_to("drain_delay", DRAIN_MAX)?;
    let shutdown_timeout = table.up_to("shutdown_timeout", ATTEMPT_MAX)?;
    let Limits { mut listener, proxy, bodies_max } = table.section("limits", limits)?;
    // The connections of such a proxy are those of many senders, so that none of the shares of one
    // peer applies to it.
    listener.trusted_proxies.clone_from(&trusted_proxies);
    // An address or a URL that could not be read ends the settings only here, after everything else
    // has been read.
    let settings = listen.and_then(|listen| {
        Ok(Server {
            listen,
            public_url: public_url.clone()?,
            trusted_proxies,
            threads: threads?.and_then(|threads| NonZeroUsize::new(threads.as_usize())),
            drain_delay,
            shutdown_timeout,
            listener,
            limits: proxy,
        })
    });
    Ok(ServerTable { settings, listen, public_url, bodies_max })
}

struct Limits {
    listener: listener::Limits,
    proxy: proxy::Limits,
    bodies_max: Option<usize>,
}

fn limits(table: &mut Table<'_, '_>) -> Result<Limits, Reported> {
    let per_peer_max = table.setting("per_peer_max")?;
    let bodies = table.written_within("buffered_bytes_max", &BODIES, "a size of `1MiB` or more");
    let lines_expected = "a whole number from 16 to 10000";
    let answer_lines_expected = "a number from `1` to `10000`";
    let listener = listener::Limits {
        connections_max: table.setting::<Count>("connections_max")?.as_usize(),
        per_peer_max,
        trusted_proxies: Vec::new(),
        header_bytes_max: table.within("header_bytes_max", &HEAD_BYTES, HEAD_BYTES_EXPECTED)?.0,
        header_lines_max: table
            .within("header_lines_max", &REQUEST_LINES, lines_expected)?
            .as_usize(),
        header_timeout: table.above_zero("header_timeout", PEER_MAX)?,
        idle_timeout: table.above_zero("idle_timeout", IDLE_MAX)?,
        write_timeout: table.above_zero("write_timeout", PEER_MAX)?,
    };
    let answer_head = AnswerHeadLimits {
        bytes_max: table.within("answer_header_bytes_max", &HEAD_BYTES, HEAD_BYTES_EXPECTED)?.0,
        lines_max: table
            .within("answer_header_lines_max", &ANSWER_LINES, answer_lines_expected)?
            .as_usize(),
    };
    let proxy = proxy::Limits {
        requests_in_flight_max: table.setting::<Count>("requests_in_flight_max")?.as_usize(),
        bodies_pending_max: table.setting::<Count>("bodies_pending_max")?.as_usize(),
        per_peer_max,
        buffered_bytes_max: table.or_built_in("buffered_bytes_max", bodies)?.0,
        body_timeout: table.above_zero("body_timeout", PEER_MAX)?,
        answer_head,
        body_rate_min: table.setting::<Size>("body_rate_min")?.0,
    };
    let bodies_max = bodies.unwrap_or(None).map(|size| size.0);
    Ok(Limits { listener, proxy, bodies_max })
}
