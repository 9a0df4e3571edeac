//! Raw -> `Config`, collecting every problem.
//!
//! A value that is none has been reported already. Each function looks at all its parts before it
//! gives up, so that no problem hides another.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use figment::value::Value;

use super::leaf::{Count, List, Portion, Text};
use super::problem::{Found, Key, Place, Problem, Problems, quoted};
use super::quantity::Size;
use super::raw::{Raw, RawAdmin, RawEmbedded, RawLimits, RawServer, RawStore};
use super::sender::SeenAs;
use super::source::Sources;
use super::{Config, Server, hint, own_address, providers, read, routes, secrets, stores};
use crate::admin;
use crate::listener;
use crate::proxy;
use crate::store;
use crate::store::embedded::{self, IfDamaged};
use crate::upstream::AnswerHead;

/// Room for as many lines is made for each answer, and no map of headers takes many more.
const ANSWER_LINES: usize = 10_000;

/// The least memory for bodies.
const BODIES_MIN: Size = Size(1 << 20);

/// The sources, and what was found wrong with them so far.
pub(super) struct Check<'a> {
    pub(super) sources: &'a Sources,
    pub(super) problems: Problems,
}

/// Checks everything.
pub(super) fn check(sources: &Sources) -> Result<Config, Problems> {
    let mut check = Check { sources, problems: sources.problems.clone() };
    let (raw, _) = read::read(sources, &mut check.problems);
    let config = check.config(raw);
    match (config, check.problems.is_empty()) {
        (Some(config), true) => Ok(config),
        (Some(_) | None, false) => Err(check.problems),
        // A test proves that the built-in values are complete.
        (None, true) => Err(Problem {
            place: Place::BuiltIn,
            key: Key::default(),
            expected: "a value for every setting".to_owned(),
            found: "one without".to_owned(),
            hint: "this is a fault of Onceward and not of yours: please report it".to_owned(),
        }
        .into()),
    }
}

impl Check<'_> {
    fn config(&mut self, raw: Raw) -> Option<Config> {
        // Of what is written, so that another mistake in `[server]` does not hide it.
        let written = raw.server.as_ref();
        let limits = written.and_then(|server| server.limits.as_ref());
        let bodies_max = limits.and_then(|limits| limits.buffered_bytes_max.as_ref());
        let bodies_max = bodies_max.map(|Text(size)| *size).filter(|size| *size >= BODIES_MIN);
        let seen = match written.and_then(|server| server.public_url.as_ref()) {
            Some(Text(Some(url))) => SeenAs::Url(url.0.clone()),
            Some(Text(None)) => SeenAs::Unset,
            None => SeenAs::Reported,
        };
        let server = self.server(raw.server);
        let retention = raw.defaults.as_ref().and_then(|shared| shared.retention.as_ref());
        let retention = retention.map(|Text(retention)| *retention);
        let admin = self.admin(raw.admin, retention);
        if let (Some(server), Some(admin)) = (&server, &admin) {
            self.two_listeners(server.listen, admin.listen);
        }
        let store = self.store(raw.store);
        routes::defaults(self, raw.defaults);
        let shared = routes::Shared {
            bodies_max,
            seen,
            providers: providers::providers(self, raw.providers),
        };
        let routes = routes::routes(self, raw.routes, &shared);
        if let (Some(server), Some(admin), Some(routes)) = (&server, &admin, &routes) {
            own_address::check(self, &[server.listen, admin.listen], routes);
        }
        Some(Config { server: server?, admin: admin?, store: store?, routes: routes? })
    }

    fn server(&mut self, raw: Option<RawServer>) -> Option<Server> {
        let raw = raw?;
        let limits = self.limits(raw.limits);
        let listen = text(raw.listen);
        let trusted_proxies = raw.trusted_proxies.and_then(List::complete);
        let (mut listener, limits) = limits?;
        listener.trusted_proxies = trusted_proxies.clone()?;
        Some(Server {
            listen: listen?,
            public_url: text(raw.public_url)?.map(|url| url.0),
            trusted_proxies: trusted_proxies?,
            drain_delay: text(raw.drain_delay)?,
            shutdown_timeout: text(raw.shutdown_timeout)?,
            listener,
            limits,
        })
    }

    fn limits(&mut self, raw: Option<RawLimits>) -> Option<(listener::Limits, proxy::Limits)> {
        let raw = raw?;
        let at = Key::of(&["server", "limits"]);
        // hyper takes no smaller buffer for a head than 8 KiB.
        let heads = Size(8 << 10)..=Size(16 << 20);
        let head = self.within(
            &at.join("header_bytes_max"),
            text(raw.header_bytes_max),
            &heads,
            "a size from `8KiB` to `16MiB`",
        );
        let answer_head = self.within(
            &at.join("answer_header_bytes_max"),
            text(raw.answer_header_bytes_max),
            &heads,
            "a size from `8KiB` to `16MiB`",
        );
        let answer_lines = self.within(
            &at.join("answer_header_lines_max"),
            count(raw.answer_header_lines_max),
            &(1..=ANSWER_LINES),
            "a number from `1` to `10000`",
        );
        let bodies = BODIES_MIN..=Size(usize::MAX);
        let bodies = self.within(
            &at.join("buffered_bytes_max"),
            text(raw.buffered_bytes_max),
            &bodies,
            "a size of `1MiB` or more",
        );
        // hyper makes room for all of them with each head that it reads.
        let lines = self.within(
            &at.join("header_lines_max"),
            count(raw.header_lines_max),
            &(16..=10_000),
            "a whole number from 16 to 10000",
        );
        let header = self.above_zero(&at.join("header_timeout"), text(raw.header_timeout));
        let body = self.above_zero(&at.join("body_timeout"), text(raw.body_timeout));
        let idle = self.above_zero(&at.join("idle_timeout"), text(raw.idle_timeout));
        let write = self.above_zero(&at.join("write_timeout"), text(raw.write_timeout));
        let Portion(per_peer_max) = raw.per_peer_max?;
        let listener = listener::Limits {
            connections_max: count(raw.connections_max)?,
            per_peer_max,
            trusted_proxies: Vec::new(),
            header_bytes_max: head?.0,
            header_lines_max: lines?,
            header_timeout: header?,
            idle_timeout: idle?,
            write_timeout: write?,
        };
        let proxy = proxy::Limits {
            requests_in_flight_max: count(raw.requests_in_flight_max)?,
            bodies_pending_max: count(raw.bodies_pending_max)?,
            per_peer_max,
            buffered_bytes_max: bodies?.0,
            body_timeout: body?,
            answer_head: AnswerHead { bytes_max: answer_head?.0, lines_max: answer_lines? },
            body_rate_min: text(raw.body_rate_min)?.0,
        };
        Some((listener, proxy))
    }

    fn admin(
        &mut self,
        raw: Option<RawAdmin>,
        retention: Option<Duration>,
    ) -> Option<admin::Settings> {
        let raw = raw?;
        let listen = text(raw.listen);
        let at = Key::of(&["admin"]);
        let key = at.join("token");
        let token = raw.token.map(|token| secrets::read(self, &key, token));
        // A token that was reported was at least meant.
        let meant = self.sources.value(&key).is_some();
        let listen = listen?;
        if !listen.ip().to_canonical().is_loopback() && !meant {
            let hint =
                "`token = { env = \"ONCEWARD_ADMIN_TOKEN\" }` in `[admin]` opens it to others";
            let expected = "a loopback address where there is no `admin.token`";
            let found = quoted(&listen.to_string());
            self.report(&at.join("listen"), expected, found, Some(hint));
            return None;
        }
        let (token, retention) = match token {
            None if meant => return None,
            None => (None, retention?),
            Some(token) => (Some(token?), retention?),
        };
        Some(admin::Settings { listen, token, retention })
    }

    /// The sources have kept one.
    fn store(&mut self, raw: Option<RawStore>) -> Option<store::Settings> {
        let RawStore { embedded, redis, postgres, memory } = raw?;
        match (redis, postgres, memory) {
            (Some(raw), _, _) => stores::redis(self, raw),
            (None, Some(raw), _) => stores::postgres(self, raw),
            (None, None, Some(_)) => Some(store::Settings::Memory),
            (None, None, None) => embedded_settings(embedded?),
        }
    }

    fn two_listeners(&mut self, server: SocketAddr, admin: SocketAddr) {
        if server == admin && server.port() != 0 {
            let expected = "another address than `server.listen`";
            let key = Key::of(&["admin", "listen"]);
            let hint = "give one of them another port";
            self.report(&key, expected, quoted(&admin.to_string()), Some(hint));
        }
    }

    /// Reports what stands at `key`.
    pub(super) fn wrong(&mut self, key: &Key, expected: &str, found: impl Into<Found>) {
        self.report(key, expected, found, None);
    }

    /// The same, with something that may help.
    pub(super) fn report(
        &mut self,
        named: &Key,
        expected: &str,
        found: impl Into<Found>,
        hint: Option<&str>,
    ) {
        let (place, key) = self.sources.origin(named);
        let (found, key) = (found.into().at(&place), key.named_by(&place));
        let hint = hint.map_or_else(|| hint::usual(self.sources, named), str::to_owned);
        let expected = expected.to_owned();
        self.problems.push(Problem { place, key, expected, found, hint });
    }

    /// Whether the table at `key` has a `name` that it can be known by.
    pub(super) fn named(&mut self, key: &Key, name: &str) -> bool {
        let letter =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
        let good = (1..=64).contains(&name.len()) && name.bytes().all(letter);
        if !good {
            let expected = "a name of 1 to 64 letters a to z, digits, `_` and `-`";
            let hint = "such as `orders` or `shop-eu`";
            self.report(key, expected, quoted(name), Some(hint));
        }
        good
    }

    pub(super) fn within<T: PartialOrd>(
        &mut self,
        key: &Key,
        value: Option<T>,
        range: &RangeInclusive<T>,
        expected: &str,
    ) -> Option<T> {
        let value = value?;
        if range.contains(&value) {
            return Some(value);
        }
        let found = self.written(key);
        self.wrong(key, expected, found);
        None
    }

    pub(super) fn above_zero(&mut self, key: &Key, value: Option<Duration>) -> Option<Duration> {
        self.within(
            key,
            value,
            &(Duration::from_millis(1)..=Duration::MAX),
            "a duration above zero",
        )
    }

    /// A number or text as it was written, of a setting that holds no secret.
    fn written(&self, key: &Key) -> Found {
        match self.sources.value(key) {
            Some(Value::String(_, text)) => quoted(text),
            Some(Value::Num(_, number)) => read::number_text(*number),
            Some(_) | None => "something else".into(),
        }
    }
}

fn embedded_settings(raw: RawEmbedded) -> Option<store::Settings> {
    let RawEmbedded { path, durability } = raw;
    let (path, durability) = (text(path)?, text(durability)?);
    let if_damaged = IfDamaged::Refuse;
    Some(store::Settings::Embedded(embedded::Settings { path, durability, if_damaged }))
}

pub(super) fn text<T>(value: Option<Text<T>>) -> Option<T> {
    value.map(|Text(value)| value)
}

pub(super) fn count(value: Option<Count>) -> Option<usize> {
    value.and_then(|Count(number)| usize::try_from(number).ok())
}
