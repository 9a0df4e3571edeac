//! Text for people. Keys, paths and reasons are written by strangers: nothing of theirs reaches a
//! terminal as anything but letters.

use std::fmt::Write as _;
use std::io::IsTerminal as _;

use comfy_table::{Attribute, Cell, ColumnConstraint, ContentArrangement, Table, presets};
use serde::Serialize;

/// Below it a table is not fitted to the terminal.
const WIDTH_MIN: u16 = 60;
/// More than the longest reason.
const CHARS_MAX: usize = 1100;

/// Text with everything escaped that is not a letter, digit, mark or space: control characters,
/// what turns the direction of writing, what has no width. Long text is cut.
pub(super) fn plain(text: &str) -> String {
    let mut shown = String::new();
    for (place, found) in text.chars().enumerate() {
        if place == CHARS_MAX {
            shown.push_str("...");
            break;
        }
        match found {
            '"' | '\'' => shown.push(found),
            found => shown.extend(found.escape_debug()),
        }
    }
    shown
}

/// A table: aligned, and on a terminal as wide as that.
pub(super) fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut table = bare();
    table.set_header(header.iter().map(|name| Cell::new(name).add_attribute(Attribute::Bold)));
    fill(table, rows)
}

/// The same without a header: a list that goes on.
pub(super) fn more_rows(rows: impl IntoIterator<Item = Vec<String>>) -> String {
    fill(bare(), rows)
}

fn bare() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    // none or hardly any width is that of a terminal which does not know it
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
    // who, or when: it is copied, so it stays in one piece
    if let Some(first) = table.column_mut(0) {
        first.set_constraint(ColumnConstraint::ContentWidth);
    }
    if table.row_count() == 0 && table.header().is_none() {
        return String::new();
    }
    format!("{}\n", table.trim_fmt())
}

/// JSON in which nothing is left that a terminal could take for a command. It stands for the same.
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
    fn nothing_but_letters_reaches_a_terminal() {
        let shown = plain(HOSTILE);
        assert_eq!(shown, r"a\u{1b}[31m\r\n\t\0\u{7f}\u{9b}2J\u{202e}\u{2028}\u{200b}\u{feff}é\\u");
        assert_eq!(plain("it's \"so\""), "it's \"so\"");
        assert_eq!(plain(&"x".repeat(10_000)), format!("{}...", "x".repeat(CHARS_MAX)));
    }

    #[test]
    fn json_stands_for_the_same_and_holds_no_command() {
        let text = json(&[HOSTILE, "😀"], false);
        let printable = |found: char| found == 'é' || found == '😀' || (' '..='~').contains(&found);
        assert!(text.trim_end().chars().all(printable), "{text:?}");
        let read: Vec<String> = serde_json::from_str(&text).unwrap();
        assert_eq!(read, [HOSTILE, "😀"]);
    }

    #[test]
    fn a_table_is_aligned_and_shows_what_is_not_there() {
        let rows = [vec!["long name".to_owned(), "b".to_owned()], vec![String::new(), "c".into()]];
        insta::assert_snapshot!(table(&["NAME", "OTHER"], rows), @"
        NAME       OTHER
        long name  b
        -          c
        ");
        assert_eq!(more_rows([]), "");
    }
}
