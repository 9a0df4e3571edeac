//! Tuples as parameters: values without names, which a signature cannot explain.

/// The functions with a tuple among their parameters, each with its line.
pub(crate) fn with_tuples(code: &str) -> Vec<(usize, &str)> {
    let starts = code.match_indices("fn ").filter(|(at, _)| !continues_a_word(&code[..*at]));
    starts
        .filter_map(|(at, _)| {
            let rest = &code[at + "fn ".len()..];
            let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
            let parameters = parameters(&rest[name.len()..])?;
            let is_one = parameters.iter().any(|parameter| is_tuple(parameter));
            (is_one && !name.is_empty()).then(|| (code[..at].matches('\n').count() + 1, name))
        })
        .collect()
}

fn continues_a_word(before: &str) -> bool {
    before.chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_')
}

/// What stands between the parentheses behind a function's name and its generics.
fn parameters(behind: &str) -> Option<Vec<&str>> {
    let generics = if behind.starts_with('<') { closed(behind)? } else { 0 };
    let list = behind[generics..].strip_prefix('(')?;
    let end = closed(&behind[generics..])?;
    Some(divided(&list[..end - 2]))
}

/// Where the bracket is closed with which the text begins: behind its end.
fn closed(text: &str) -> Option<usize> {
    let mut depth = 0_i32;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        depth += change(before, c);
        if depth == 0 {
            return Some(at + c.len_utf8());
        }
        before = c;
    }
    None
}

/// The parts between the commas that stand in no bracket.
fn divided(list: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut begin, mut depth, mut before) = (0, 0_i32, ' ');
    for (at, c) in list.char_indices() {
        depth += change(before, c);
        if c == ',' && depth == 0 {
            parts.push(&list[begin..at]);
            begin = at + 1;
        }
        before = c;
    }
    parts.push(&list[begin..]);
    parts
}

/// The `>` of an arrow closes nothing.
const fn change(before: char, c: char) -> i32 {
    match c {
        '(' | '[' | '{' | '<' => 1,
        ')' | ']' | '}' => -1,
        '>' if before != '-' => -1,
        _ => 0,
    }
}

/// `(a, b): (A, B)`, `pair: (A, B)` and `pair: &(A, B)`, but not `error: &(dyn Error + Send)`.
fn is_tuple(parameter: &str) -> bool {
    let parameter = parameter.trim();
    let own = if parameter.starts_with('(') { closed(parameter).unwrap_or(0) } else { 0 };
    let Some((_, kind)) = parameter[own..].split_once(':') else { return false };
    let kind = kind.trim_start().trim_start_matches('&').trim_start();
    let kind = kind.strip_prefix("mut ").unwrap_or(kind);
    let Some(inside) = kind.strip_prefix('(') else { return false };
    let end = closed(kind).unwrap_or(1);
    divided(&inside[..end.saturating_sub(2)]).len() > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tuple_among_the_parameters_is_found_wherever_it_stands() {
        let code = "pub fn one((a, b): (A, B)) {}\n\n\
                    fn two<T: Fn(A) -> B>(\n    a: A,\n    pair: &(Option<A>, [B; 2]),\n) {}\n\
                    async fn three(self, pair: &mut (A, B)) {}\n";
        assert_eq!(with_tuples(code), [(1, "one"), (3, "two"), (7, "three")]);
    }

    #[test]
    fn what_only_looks_like_one_is_none() {
        let code = "fn one(&self, error: &(dyn Error + Send), nothing: ()) -> (A, B) {}\n\
                    fn two(run: impl Fn((A, B)) -> C, all: &[(A, B)], f: fn(A, B)) {}\n\
                    fn three() { all.map(|(a, b)| a + b); }\n";
        assert_eq!(with_tuples(code), []);
    }
}
