//! Tables by which a signed text could be divided into its parts in several ways, so that one
//! captured signature would fit other requests too (see `division.rs`). `onceward check` names
//! them.

use super::part::Part;
use super::scheme::{Detached, Scheme};
use super::settings::Settings;

impl Settings {
    /// The first two parts, as the table writes them, that are signed side by side and can be
    /// divided in several ways. None: every signed text can be divided in one way only.
    pub fn divisible(&self) -> Option<[String; 2]> {
        self.accepted().find_map(|method| match &method.scheme {
            Scheme::Detached(detached) => detached.divisible(),
            // A token signs nothing, and the other schemes have their parts divided by themselves.
            Scheme::Token(_) | Scheme::BuiltIn(_) => None,
        })
    }
}

impl Detached {
    fn divisible(&self) -> Option<[String; 2]> {
        // The parts that may stand directly before the next item: a group may be left out, and then
        // the part before the group stands before the item after it.
        let mut before: Vec<&Part> = Vec::new();
        for item in &self.signed {
            let mut last = before.clone();
            for part in item.parts() {
                if let Some(first) = last.iter().find(|first| self.run_together(first, part)) {
                    return Some([first.to_string(), part.to_string()]);
                }
                last = vec![part];
            }
            if item.parts().len() > 1 {
                before.append(&mut last);
            } else {
                before = last;
            }
        }
        None
    }

    fn run_together(&self, first: &Part, second: &Part) -> bool {
        // The brackets of JSON say where the body begins and ends.
        let is_settled = self.json_body && [first, second].contains(&&Part::Body);
        self.is_open(first) && self.is_open(second) && !is_settled
    }

    /// Whether nothing in the part says where it ends.
    fn is_open(&self, part: &Part) -> bool {
        match part {
            Part::Body | Part::Url | Part::Path => true,
            Part::Value(selector) => !self.is_timestamp(selector),
            // A method is one that the route takes.
            Part::Timestamp | Part::Method | Part::Text(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::SignatureTable;

    fn divisible(more: &str) -> Option<String> {
        let table = format!("scheme = \"hmac\"\nheader = \"x-signature\"\n{more}");
        let settings = toml::from_str::<SignatureTable>(&table).unwrap().settings().unwrap();
        settings.divisible().map(|parts| parts.join(" "))
    }

    #[test]
    fn parts_of_any_length_side_by_side_can_be_divided_in_several_ways() {
        for (signed, found) in [
            (r#"["url", "body"]"#, "url body"),
            (r#"["body", "path"]"#, "body path"),
            (r#"["method", "header:x-id", "body"]"#, "header:x-id body"),
            (r#"["json:/a/b", "query:q", "text:.", "body"]"#, "json:/a/b query:q"),
            (r#"["header:x-a", ["text:.", "header:x-b"], "body"]"#, "header:x-a body"),
            (r#"["text:a", ["form:b", "text:."], ["form:c"], "body"]"#, "form:c body"),
        ] {
            assert_eq!(divisible(&format!("signed = {signed}")).as_deref(), Some(found));
        }
    }

    #[test]
    fn text_a_timestamp_or_a_method_says_where_a_part_ends() {
        for signed in [
            r#"["body"]"#,
            r#"["body", "text:.", "method", "url"]"#,
            r#"["method", "path", "text:\n", "body"]"#,
            r#"["header:x-id", "text:.", "body"]"#,
            r#"["body", ["text:id:", "query:id", "text:;"], ["text:x:", "header:x"]]"#,
        ] {
            assert_eq!(divisible(&format!("signed = {signed}")), None, "{signed}");
        }
        for signed in [
            r#"["header:x-id", "timestamp", "body"]"#,
            r#"["header:x-id", "header:x-time", "body"]"#,
            r#"["body", "header:x-time"]"#,
        ] {
            let more = format!("signed = {signed}\ntimestamp = \"header:x-time\"");
            assert_eq!(divisible(&more), None, "{signed}");
        }
    }

    #[test]
    fn a_body_that_is_json_says_itself_where_it_ends() {
        for signed in [r#"["url", "body"]"#, r#"["body", "path"]"#, r#"["header:x-id", "body"]"#] {
            assert_eq!(divisible(&format!("signed = {signed}\nbody = \"json\"")), None);
        }
        let values = "signed = [\"header:x-a\", \"header:x-b\", \"body\"]\nbody = \"json\"";
        assert_eq!(divisible(values).as_deref(), Some("header:x-a header:x-b"));
    }
}
