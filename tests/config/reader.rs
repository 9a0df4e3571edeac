//! Nothing that can be written breaks the reader.

use proptest::prelude::*;

use super::Written;

/// A recursive function reads tables within tables. A deep file must not overflow the stack.
#[test]
fn depth_is_no_way_to_break_the_reader() {
    let deep = format!("{}a = 1", "a.".repeat(100_000));
    let arrays = format!("a = {}{}", "[".repeat(100_000), "]".repeat(100_000));
    let tables = format!("[{}a]", "a.".repeat(100_000));
    for text in [&deep, &arrays, &tables] {
        assert!(Written::file(text).config().is_err());
        let written = Written::beside_a_route("").variable("ONCEWARD_A__B", text);
        assert!(written.config().is_err());
    }
    let written = Written::beside_a_route("");
    let written = written.variable(format!("ONCEWARD_{}A", "A__".repeat(100_000)), "1");
    assert!(written.config().is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any text in any place gives a configuration or a list of problems, and never a panic.
    #[test]
    fn no_value_breaks_the_reader(key in 0..6_usize, value in "\\PC{0,12}|-?[0-9]{1,40}|\\[[0-9,\"a]*\\]|\\{\\}|(a\\.){0,50}a *= *1") {
        let key = ["routes.a.lease", "routes.a", "admin.token", "server.trusted_proxies", "routes", "store"][key];
        let written = Written::file(&format!("{key} = {value}\n"));
        let _ = written.config().map_err(|problems| problems.to_string());
        let variable = key.replace('.', "__").to_uppercase();
        let written = Written::beside_a_route("").variable(format!("ONCEWARD_{variable}"), &value);
        let _ = written.config().map_err(|problems| problems.to_string());
    }
}
