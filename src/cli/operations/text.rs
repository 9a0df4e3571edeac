//! Text for people. Keys, paths and reasons are written by strangers, who could put control
//! sequences for a terminal into them. Every such character is escaped.

use std::fmt::Write as _;
use std::io::IsTerminal as _;

use comfy_table::{Attribute, Cell, ColumnConstraint, ContentArrangement, Table, presets};
use serde::Serialize;

/// A table is not fitted to a terminal that is narrower than this: its columns would be unreadable.
const WIDTH_MIN: u16 = 60;
/// How much of a text is shown: more than the longest reason.
const CHARS_MAX: usize = 1100;

/// Escapes every character that could do more than show itself: control characters, those that
/// change the direction of writing, and those without a width. Long text is cut.
pub(super) fn plain(text: &str) -> String {
    let mut shown = String::new();
    for (index, found) in text.chars().enumerate() {
        if index == CHARS_MAX {
            shown.push_str("...");
            break;
        }
        match found {
            // `escape_debug` would escape quotes, which do no harm.
            '"' | '\'' => shown.push(found),
            found => shown.extend(found.escape_debug()),
        }
    }
    shown
}

/// Writes a table with aligned columns. On a terminal it is as wide as the terminal.
pub(super) fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = bare();
    table.set_header(header.iter().map(|name| Cell::new(name).add_attribute(Attribute::Bold)));
    fill(table, rows)
}

/// Writes further rows of a table, without a header.
pub(super) fn more_rows(rows: impl IntoIterator<Item = Vec<String>>) -> String {
    fill(bare(), rows)
}

fn bare() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    // A terminal that does not know its width, such as one in a container, says 0 or very little.
    let is_wide = table.width().is_some_and(|width| width >= WIDTH_MIN);
    if std::io::stdout().is_terminal() && is_wide {
        table.set_content_arrangement(ContentArrangement::Dynamic);
    } else {
        table.force_no_tty().set_content_arrangement(ContentArrangement::Disabled);
    }
    table
}

fn fill(mut table: Table, rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let cell = |text: &String| if text.is_empty() { "-".to_owned() } else { plain(text) };
    for row in rows {
        table.add_row(row.iter().map(cell).collect::<Vec<_>>());
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    // The first column has an id or a time. People copy it, so it is not broken into lines.
    if let Some(first) = table.column_mut(0) {
        first.set_constraint(ColumnConstraint::ContentWidth);
    }
    if table.row_count() == 0 && table.header().is_none() {
        return String::new();
    }
    format!("{}\n", table.trim_fmt())
}

/// Writes JSON. Characters that a terminal could take for a command are escaped, which does not
/// change what the JSON means (RFC 8259, section 7).
pub(in crate::cli) fn json(value: &impl Serialize, pretty: bool) -> String {
    let written =
        if pretty { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) };
    let mut text = String::new();
    for found in written.unwrap_or_default().chars() {
        let is_shown = found.is_ascii() && found != '\u{7f}'
            || !found.is_ascii() && found.escape_debug().next() == Some(found);
        if is_shown {
            text.push(found);
        } else {
            let units = &mut [0; 2];
            for unit in found.encode_utf16(units).iter() {
                // Writing to a string does not fail.
                let _written = write!(text, "\\u{unit:04x}");
            }
        }
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str =
        "a\u{1b}[31m\r\n\t\u{0}\u{7f}\u{9b}2J\u{202e}\u{2028}\u{200b}\u{feff}é\\u";

    #[test]
    fn no_control_sequence_reaches_a_terminal() {
        let shown = plain(HOSTILE);
        assert_eq!(shown, r"a\u{1b}[31m\r\n\t\0\u{7f}\u{9b}2J\u{202e}\u{2028}\u{200b}\u{feff}é\\u");
        assert_eq!(plain("it's \"so\""), "it's \"so\"");
        assert_eq!(plain(&"x".repeat(10_000)), format!("{}...", "x".repeat(CHARS_MAX)));
    }

    #[test]
    fn escaped_json_means_the_same_and_has_no_control_sequence() {
        let text = json(&[HOSTILE, "😀"], false);
        let printable = |found: char| found == 'é' || found == '😀' || (' '..='~').contains(&found);
        assert!(text.trim_end().chars().all(printable), "{text:?}");
        let read: Vec<String> = serde_json::from_str(&text).unwrap();
        assert_eq!(read, [HOSTILE, "😀"]);
    }

    #[test]
    fn a_table_is_aligned_and_shows_a_dash_for_an_empty_cell() {
        let rows = [vec!["long name".to_owned(), "b".to_owned()], vec![String::new(), "c".into()]];
        insta::assert_snapshot!(table(&["NAME", "OTHER"], rows), @"
        NAME       OTHER
        long name  b
        -          c
        ");
        assert_eq!(more_rows([]), "");
    }
}
