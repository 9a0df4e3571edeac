//! Parts that are signed one after the other with nothing between them.
//!
//! Bytes could then be moved from the end of one part to the start of the next, and one captured
//! signature would fit another request. A timestamp cannot take part in it, since it has as many
//! digits as it has. A URL can, where the route takes more than one path or any query.
//!
//! Where every body is a JSON object or array there is one division only. A URL holds none of their
//! brackets: RFC 3986 has them escaped in a path and in a query. So the body begins with the first
//! bracket of the text, or ends with the last. Whether it is JSON in between is for who reads it.

use super::part::Part;
use super::settings::{Detached, Scheme, Settings};
use super::verdict::{Place, Reason};

/// RFC 8259, section 2. They may stand around a body, and not in a URL.
const BLANKS: [char; 4] = [' ', '\t', '\n', '\r'];
const BRACKETS: [char; 4] = ['[', ']', '{', '}'];

/// Refuses a body that does not begin and end as a JSON object or array. There may be none.
pub(super) fn require_enclosed(body: &[u8]) -> Result<(), Reason> {
    let text = std::str::from_utf8(body).map(|text| text.trim_matches(BLANKS));
    let is_enclosed =
        text.is_ok_and(|text| text.starts_with(['{', '[']) && text.ends_with(['}', ']']));
    let is_right = body.is_empty() || is_enclosed;
    is_right.then_some(()).ok_or(Reason::Body("a JSON object or array"))
}

/// Refuses a URL that could be divided from a body at another place as well.
pub(super) fn require_plain(target: &str) -> Result<(), Reason> {
    let bracket = target.chars().find(|c| BRACKETS.contains(c));
    bracket.map_or(Ok(()), |bracket| Err(Reason::Ambiguous(Place::Url, bracket)))
}

/// Refuses a part that could be divided from a body at another place as well.
pub(super) fn require_apart(part: &Part, piece: &[u8], target: &str) -> Result<(), Reason> {
    match part {
        Part::Url | Part::Path => require_plain(target),
        Part::Value(source) => {
            let bracket = BRACKETS.into_iter().find(|c| piece.contains(&(*c as u8)));
            let outer = [piece.first(), piece.last()].into_iter().flatten();
            let blank = BLANKS.into_iter().find(|c| outer.clone().any(|byte| *byte == *c as u8));
            let found = bracket.or(blank);
            found.map_or(Ok(()), |found| Err(Reason::Ambiguous(source.place(), found)))
        }
        Part::Body | Part::Timestamp | Part::Method | Part::Text(_) => Ok(()),
    }
}

impl Settings {
    /// Two parts that are signed side by side and can be divided in several ways, as they are
    /// written.
    pub fn divisible(&self) -> Option<[String; 2]> {
        self.accepted().find_map(|way| match &way.scheme {
            Scheme::Detached(detached) => detached.divisible(),
            Scheme::Token(_)
            | Scheme::StandardWebhooks { .. }
            | Scheme::HubSpot { .. }
            | Scheme::PayPal { .. }
            | Scheme::Sns { .. }
            | Scheme::Plaid { .. }
            | Scheme::Twilio
            | Scheme::AdyenItems
            | Scheme::Braintree => None,
        })
    }
}

impl Detached {
    fn divisible(&self) -> Option<[String; 2]> {
        // A group may be left out, so that what stands before it stands before what follows it.
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
        let is_settled = self.json_body && [first, second].contains(&&Part::Body);
        self.is_open(first) && self.is_open(second) && !is_settled
    }

    /// Whether nothing says where it ends.
    fn is_open(&self, part: &Part) -> bool {
        match part {
            Part::Body | Part::Url | Part::Path => true,
            Part::Value(source) => !self.is_timestamp(source),
            // A method is one that the route takes.
            Part::Timestamp | Part::Method | Part::Text(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Written;

    fn divisible(more: &str) -> Option<String> {
        let table = format!("scheme = \"hmac\"\nheader = \"x-signature\"\n{more}");
        let settings = toml::from_str::<Written>(&table).unwrap().settings().unwrap();
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
