//! Which route: by host first, then by path (exact before longest prefix), then by method.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use http::request::Parts;
use http::uri::{Authority, PathAndQuery};
use http::{Method, header};

use super::respond::{Malformed, Refusal};
use super::route::{PASSING, PathPattern, Route, RouteSettings};
use crate::upstream;

/// The routes of a proxy, ready to be looked up.
#[derive(Debug)]
pub(super) struct Routes<R> {
    of_host: HashMap<String, Table<R>>,
    of_any_host: Table<R>,
}

#[derive(Debug)]
struct Table<R> {
    exact: HashMap<String, R>,
    /// Longest first.
    prefixes: Vec<(String, R)>,
}

/// A route, at work or merely described.
pub(super) trait Described: Clone {
    fn settings(&self) -> &RouteSettings;
}

impl Described for Arc<Route> {
    fn settings(&self) -> &RouteSettings {
        &self.settings
    }
}

impl Described for &RouteSettings {
    fn settings(&self) -> &RouteSettings {
        self
    }
}

/// The route of a request, and where the request goes from there.
#[derive(Debug)]
pub(super) struct Selected<R> {
    pub(super) route: R,
    /// The host that was asked for.
    pub(super) host: Authority,
    /// What the upstream is asked for.
    pub(super) target: PathAndQuery,
    /// The part of the path that was replaced, if any.
    pub(super) prefix: Option<String>,
}

impl<R: Described> Routes<R> {
    pub(super) fn new(routes: impl IntoIterator<Item = R>) -> Self {
        let mut all = Self { of_host: HashMap::new(), of_any_host: Table::default() };
        for route in routes {
            let table = match &route.settings().host {
                Some(host) => all.of_host.entry(host.clone()).or_default(),
                None => &mut all.of_any_host,
            };
            match route.settings().path.clone() {
                PathPattern::Exact(path) => {
                    table.exact.insert(path, route);
                }
                PathPattern::Prefix(prefix) => table.prefixes.push((prefix, route)),
            }
        }
        for table in all.of_host.values_mut().chain([&mut all.of_any_host]) {
            table.prefixes.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        }
        all
    }

    /// The route of a request with this head.
    pub(super) fn select(&self, head: &Parts) -> Result<Selected<R>, Refusal> {
        let target = head.uri.path_and_query().ok_or(Refusal::Malformed(Malformed::Target))?;
        let (host, path) = (host(head), target.path());
        let of_host = self.of_host.get(&*lower_case(host.host()));
        let found = of_host.and_then(|table| table.find(path));
        let route = found.or_else(|| self.of_any_host.find(path)).ok_or(Refusal::NoRoute)?;
        let settings = route.settings();
        if !settings.methods.contains(&head.method) && !PASSING.contains(&head.method) {
            return Err(Refusal::MethodNotAllowed(allow(&settings.methods)));
        }
        if let PathPattern::Prefix(prefix) = &settings.path
            && climbs(path.get(prefix.len()..).unwrap_or_default())
        {
            return Err(Refusal::Malformed(Malformed::LeavesRoute));
        }
        let (target, prefix) =
            rewrite(&settings.path, settings.upstream.target.path.as_deref(), target)?;
        Ok(Selected { route: route.clone(), host, target, prefix })
    }
}

impl Selected<Arc<Route>> {
    /// The same, to one of several receivers.
    pub(super) fn towards(
        &self,
        head: &Parts,
        upstream: &upstream::Settings,
    ) -> Result<Self, Refusal> {
        let target = head.uri.path_and_query().ok_or(Refusal::Malformed(Malformed::Target))?;
        let (pattern, path) = (&self.route.settings.path, upstream.target.path.as_deref());
        let (target, prefix) = rewrite(pattern, path, target)?;
        Ok(Self { route: Arc::clone(&self.route), host: self.host.clone(), target, prefix })
    }
}

/// The host that was asked for. Only HTTP/1.0 may name none; then a route for every host serves it.
fn host(head: &Parts) -> Authority {
    let named = || Authority::try_from(head.headers.get(header::HOST)?.as_bytes()).ok();
    let host = head.uri.authority().cloned().or_else(named);
    host.unwrap_or_else(|| Authority::from_static("localhost"))
}

impl<R> Default for Table<R> {
    fn default() -> Self {
        Self { exact: HashMap::new(), prefixes: Vec::new() }
    }
}

impl<R> Table<R> {
    fn find(&self, path: &str) -> Option<&R> {
        self.exact.get(path).or_else(|| {
            let below = |prefix: &str| {
                path.strip_prefix(prefix)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            self.prefixes.iter().find(|(prefix, _)| below(prefix)).map(|(_, route)| route)
        })
    }
}

fn lower_case(host: &str) -> Cow<'_, str> {
    if host.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(host.to_ascii_lowercase())
    } else {
        Cow::Borrowed(host)
    }
}

fn allow(methods: &[Method]) -> String {
    let all: Vec<&str> = methods
        .iter()
        .chain(PASSING.iter().filter(|method| !methods.contains(method)))
        .map(Method::as_str)
        .collect();
    all.join(", ")
}

/// Whether dot segments, resolved by some receiver, lead above the start of `path`: with `%2e`
/// read as a dot, and `%2f`, `%5c` and `\` read as separators or not.
fn climbs(path: &str) -> bool {
    let lower = path.to_ascii_lowercase().replace("%2e", ".");
    let split = lower.replace("%2f", "/").replace("%5c", "/").replace('\\', "/");
    goes_below_zero(&lower) || goes_below_zero(&split)
}

fn goes_below_zero(path: &str) -> bool {
    let mut depth = 0_i32;
    path.split('/').any(|segment| {
        // Some receivers take path parameters off before they look.
        match segment.split(';').next().unwrap_or_default() {
            "" | "." => {}
            ".." => depth -= 1,
            _ => depth += 1,
        }
        depth < 0
    })
}

/// What the upstream is asked for: the request's own target, or its path behind the upstream's.
fn rewrite(
    pattern: &PathPattern,
    upstream_path: Option<&str>,
    target: &PathAndQuery,
) -> Result<(PathAndQuery, Option<String>), Refusal> {
    let Some(base) = upstream_path else { return Ok((target.clone(), None)) };
    let (matched, rest) = match pattern {
        PathPattern::Exact(path) => (path.as_str(), ""),
        PathPattern::Prefix(prefix) => {
            (prefix.as_str(), target.path().get(prefix.len()..).unwrap_or_default())
        }
    };
    let base = if rest.is_empty() { base } else { base.trim_end_matches('/') };
    let path = format!("{base}{rest}");
    let whole = match target.query() {
        Some(query) => format!("{path}?{query}"),
        None => path,
    };
    let target = whole.parse().map_err(|_| Refusal::Malformed(Malformed::Target))?;
    Ok((target, Some(matched.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dot_segments_within_the_route_stay_as_they_are() {
        assert!(!climbs("/a%2Fb/%2e%2e/c//d/%252F"));
        assert!(!climbs("/a/../b/./c"));
    }

    #[test]
    fn no_spelling_of_dot_segments_leaves_the_route() {
        for path in ["/..", "/../admin", "/%2e%2e/admin", "/.%2E/x", "/a/../../x", "/..%2fadmin"] {
            assert!(climbs(path), "{path}");
        }
        assert!(climbs("/..%5cadmin"));
        assert!(climbs("/a/..\\..\\admin"));
        assert!(climbs("/..;/admin"));
    }

    #[test]
    fn a_path_of_the_upstream_replaces_the_matched_part_and_nothing_else() {
        let prefix = PathPattern::Prefix("/in".into());
        let target = "/in/square/?a=%20+b&&c".parse().unwrap();
        let (asked, replaced) = rewrite(&prefix, Some("/hooks/"), &target).unwrap();
        assert_eq!(asked.as_str(), "/hooks/square/?a=%20+b&&c");
        assert_eq!(replaced.as_deref(), Some("/in"));
        let (asked, replaced) = rewrite(&prefix, None, &target).unwrap();
        assert_eq!(asked.as_str(), "/in/square/?a=%20+b&&c");
        assert_eq!(replaced, None);
    }
}
