//! Numbers of catalogues that a reader of the repository does not have.

/// The letters of such catalogues, in front of a number of two or three digits.
const LETTERS: [char; 3] = ['C', 'F', 'T'];
/// Words that make a number behind them one of a catalogue.
const WORDS: [&str; 3] = ["trap", "traps", "fault"];

/// The first such number in a comment or in a text.
pub(crate) fn catalogue_number(text: &str) -> Option<&str> {
    let words = || text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let numbered = words().zip(words().skip(1)).find_map(|(word, number)| {
        let is_one = WORDS.contains(&word.to_ascii_lowercase().as_str()) && is_number(number);
        is_one.then_some(number)
    });
    numbered.or_else(|| words().find(|word| is_catalogued(word)))
}

/// The number at the end of a function's name: `…_c59`.
pub(crate) fn number_in_name(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("fn ")?;
    let name = rest.split('(').next()?;
    let end = name.rsplit('_').next()?;
    (end != name && is_catalogued(&end.to_ascii_uppercase())).then_some(end)
}

fn is_catalogued(word: &str) -> bool {
    let Some(number) = word.strip_prefix(LETTERS) else { return false };
    (2..=3).contains(&number.len()) && is_number(number)
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_catalogues_are_found() {
        // In pieces, so that this file is not found itself.
        let case = concat!("C", "59");
        let fault = concat!("F", "34");
        let trap = concat!("tr", "ap 7");
        assert_eq!(catalogue_number(&format!("/// {case}: it is held.")), Some(case));
        assert_eq!(catalogue_number(&format!("//! An empty store ({fault}).")), Some(fault));
        assert_eq!(catalogue_number(&format!("/// See {trap}.")), Some("7"));
        let name = format!("async fn it_is_held_c{}() {{", 59);
        assert_eq!(number_in_name(&name), Some("c59"));
    }

    #[test]
    fn other_numbers_are_none() {
        for text in
            ["RFC 9110, 7.6.1", "TLS 1.3", "C1", "SHA-256", "a trap for 2", "HTTP2", "T1000"]
        {
            assert_eq!(catalogue_number(text), None, "{text}");
        }
        for line in ["fn sha256(a: A)", "fn of_http_2()", "let c59 = 1;"] {
            assert_eq!(number_in_name(line), None, "{line}");
        }
    }
}
