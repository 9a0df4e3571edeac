//! The environment variables of this process.

/// All variables whose name and value are text. The names of Onceward's variables are ASCII, and
/// the settings in them are text, so a variable that is neither is of another program.
pub(super) fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}
