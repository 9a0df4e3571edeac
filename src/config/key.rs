//! The names of settings.

use std::fmt;

use super::origin::Origin;
use crate::provider::looks_like_a_secret;

/// The name of a setting: `routes.orders.key.header`, as its parts.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(Vec<String>);

impl Key {
    /// The number of parts up to which a configuration is read. No setting has more.
    pub(super) const DEPTH_MAX: usize = 8;

    /// The setting with these names.
    pub fn of(parts: &[&str]) -> Self {
        Self(parts.iter().map(|&part| part.to_owned()).collect())
    }

    pub(super) const fn from_parts(parts: Vec<String>) -> Self {
        Self(parts)
    }

    pub(super) fn join(&self, part: impl Into<String>) -> Self {
        let mut parts = self.0.clone();
        parts.push(part.into());
        Self(parts)
    }

    pub(super) fn parts(&self) -> &[String] {
        &self.0
    }

    /// This key, and then those of the tables around it, from the inside out.
    pub(super) fn and_around(&self) -> impl Iterator<Item = Self> + '_ {
        (1..=self.0.len())
            .rev()
            .filter_map(|length| self.0.get(..length))
            .map(|parts| Self(parts.to_vec()))
    }

    /// Whether this is `table` itself, or the key of something in it.
    pub(super) fn is_in(&self, table: &Self) -> bool {
        self.0.starts_with(&table.0)
    }

    /// The names under which the setting may have been written, the one that wins first.
    ///
    /// A setting of a step may stand at the step or at its route, and a setting of a route at the
    /// route, at its provider, or in `[defaults]`.
    pub(super) fn levels(&self, provider: Option<&str>) -> [Option<Self>; 6] {
        let of_provider = |key: &Self| key.in_provider(provider?);
        let route = self.in_route_of_step();
        [
            Some(self.clone()),
            route.clone(),
            of_provider(self),
            self.in_defaults(),
            route.as_ref().and_then(of_provider),
            route.as_ref().and_then(Self::in_defaults),
        ]
    }

    /// The setting of `[defaults]` from which a route takes this one.
    pub(super) fn in_defaults(&self) -> Option<Self> {
        self.of_a_route().map(|rest| Self([&["defaults".to_owned()], rest].concat()))
    }

    /// The setting of its route from which a step takes this one. The index of the step may be left
    /// out.
    pub(super) fn in_route_of_step(&self) -> Option<Self> {
        let rest = match self.of_a_route()? {
            [steps, index, rest @ ..] if steps == "steps" && is_index(index) => rest,
            [steps, rest @ ..] if steps == "steps" => rest,
            _ => return None,
        };
        let route = self.0.get(..2).filter(|_| !rest.is_empty())?;
        Some(Self([route, rest].concat()))
    }

    /// The setting of a provider from which a route takes this one.
    pub(super) fn in_provider(&self, provider: &str) -> Option<Self> {
        let table = ["providers".to_owned(), provider.to_owned()];
        self.of_a_route().map(|rest| Self([&table, rest].concat()))
    }

    fn of_a_route(&self) -> Option<&[String]> {
        match self.0.as_slice() {
            [routes, _, rest @ ..] if routes == "routes" && !rest.is_empty() => Some(rest),
            _ => None,
        }
    }

    /// The part of the key that may be shown for a value of this origin.
    ///
    /// The name of a variable says a part of the key. The rest stands in the value of the variable,
    /// which is never shown: a secret may have been put into the wrong variable.
    pub(super) fn shown_for(self, origin: &Origin) -> Self {
        let Origin::Variable(name) = origin else { return self };
        let named = name.split("__").count();
        let known = |part: &&String| is_index(part) || matches!(part.as_str(), "env" | "file");
        let below = self.0.iter().skip(named).take_while(known).count();
        Self(self.0.into_iter().take(named + below).collect())
    }

    /// Whether the setting holds a secret, or may hold one that somebody wrote in the wrong shape.
    pub fn is_secret(&self) -> bool {
        const SECRETS: [&[&str]; 7] = [
            &["admin", "token"],
            &["routes", "*", "secrets"],
            &["defaults", "secrets"],
            &["store", "redis", "urls"],
            &["store", "redis", "password"],
            &["store", "postgres", "url"],
            &["store", "postgres", "listen_url"],
        ];
        SECRETS.iter().any(|secret| {
            self.0.len() >= secret.len()
                && self.0.iter().zip(*secret).all(|(own, part)| *part == "*" || own == part)
        }) || self.0.windows(2).any(|pair| *pair == ["lookup", "headers"])
    }
}

/// Whether a part of a key is the index of an item in a list.
pub(super) fn is_index(part: &str) -> bool {
    part.bytes().all(|byte| byte.is_ascii_digit())
}

/// Shows a part that looks like a secret as `***`. People paste a secret where a name belongs.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, part) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "." };
            let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            if looks_like_a_secret(part) {
                write!(f, "{separator}***")?;
            } else if !part.is_empty() && part.chars().all(bare) {
                write!(f, "{separator}{part}")?;
            } else {
                // TOML quotes such a name too.
                write!(f, "{separator}\"{}\"", part.escape_debug())?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
