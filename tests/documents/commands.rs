//! Every command that a page shows exists, with its options.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use crate::page::{Page, pages, read, root};

/// What `onceward --help` and the like print, each asked for once.
#[derive(Default)]
struct Help(BTreeMap<Vec<String>, String>);

impl Help {
    /// The help of a command; nothing if there is no such command.
    fn of(&mut self, command: &[String]) -> &str {
        self.0.entry(command.to_vec()).or_insert_with(|| {
            let mut program = Command::new(env!("CARGO_BIN_EXE_onceward"));
            let output = program.args(command).arg("--help").env_clear().output().unwrap();
            if !output.status.success() {
                return String::new();
            }
            String::from_utf8(output.stdout).unwrap()
        })
    }

    /// What is wrong with a command line, without the name of the program.
    fn problem(&mut self, words: &[String]) -> Option<String> {
        let mut command: Vec<String> = Vec::new();
        for word in words.iter().take_while(|word| is_name(word)) {
            if !names_a_command(self.of(&command), word) {
                break;
            }
            command.push(word.clone());
        }
        if command.is_empty() {
            return Some(format!("no command in `{}`", words.join(" ")));
        }
        let known = options(self.of(&command));
        let used = words.iter().filter(|word| word.starts_with('-') && *word != "-");
        let used = used.map(|word| word.split('=').next().unwrap().to_owned());
        let unknown: Vec<String> = used.filter(|word| !known.contains(word)).collect();
        (!unknown.is_empty()).then(|| format!("`{}` has no {unknown:?}", command.join(" ")))
    }
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_lowercase())
}

/// Whether a command is in the list of a help: `  serve        Run the proxy`.
fn names_a_command(help: &str, word: &str) -> bool {
    let (_, list) = help.split_once("Commands:\n").unwrap_or_default();
    let list = list.lines().take_while(|line| !line.is_empty());
    list.into_iter().any(|line| line.split_whitespace().next() == Some(word))
}

/// The options in a help: `-c, --config <FILE>`.
fn options(help: &str) -> BTreeSet<String> {
    let words = help.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    let options = words.filter(|word| word.starts_with('-'));
    options.map(str::to_owned).collect()
}

/// The words of a command line of a shell, without its comment.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            (None, ' ') => words.push(String::new()),
            (None | Some(_), _) => words.last_mut().unwrap().push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    let comment = words.iter().position(|word| word == "#").unwrap_or(words.len());
    words.truncate(comment);
    words
}

/// The command lines of a page: those of its blocks for a shell, and those in its sentences.
fn lines(page: &Page) -> Vec<String> {
    let blocks = page.blocks().into_iter().filter(|block| block.language == "sh");
    let text: String = blocks.map(|block| block.text.replace("\\\n", " ")).collect();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let inline = page.inline_code().into_iter();
    let inline = inline.filter(|span| span.starts_with("onceward ") || span.starts_with("tests/"));
    lines.map(str::to_owned).chain(inline).collect()
}

#[test]
fn every_command_of_onceward_exists_with_its_options() {
    let mut help = Help::default();
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for page in pages() {
        for line in lines(&page) {
            let words = words(&line);
            for command in commands(&words, &mut help) {
                checked += 1;
                let problem = help.problem(command);
                wrong.extend(problem.map(|problem| format!("{}: {problem}", page.file)));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(checked > 50, "{checked}");
}

/// The arguments of `onceward` in a command line: it is the first word, or stands behind another
/// program with a command of its own.
fn commands<'w>(words: &'w [String], help: &mut Help) -> Vec<&'w [String]> {
    let mut commands = Vec::new();
    for (index, word) in words.iter().enumerate() {
        let rest = &words[index + 1..];
        let is_onceward = word == "onceward" || word.ends_with("/onceward");
        let follows = rest.first().is_some_and(|next| names_a_command(help.of(&[]), next));
        if is_onceward && (index == 0 || follows) {
            commands.push(rest);
        }
        let is_run = words.starts_with(&["cargo".to_owned(), "run".to_owned()]);
        if is_run && word == "--" && !words.contains(&"--example".to_owned()) {
            commands.push(rest);
        }
    }
    commands
}

/// `in_flight::` or `in_flight::fifty_copies_that_wait_get_one_answer`, in `tests/it` or in `src`.
fn has_test(filter: &str) -> bool {
    let (module, test) = filter.split_once("::").unwrap();
    let places = ["tests/it", "src"].map(|folder| root().join(folder).join(module));
    places.iter().any(|place| {
        let file = place.with_extension("rs");
        let has =
            || std::fs::read_to_string(&file).is_ok_and(|it| it.contains(&format!("fn {test}(")));
        (test.is_empty() && (place.is_dir() || file.is_file())) || has()
    })
}

/// `tests/run`, `cargo test --test documents`, `cargo run --example receiver`.
#[test]
fn every_script_test_and_example_exists_with_its_options() {
    let mut checked = 0;
    for page in pages() {
        for words in lines(&page).iter().map(|line| words(line)) {
            for (index, word) in words.iter().enumerate() {
                let is_there = |folder: &str, name: &str| {
                    let file = root().join(folder).join(format!("{name}.rs"));
                    file.is_file() || root().join(folder).join(name).join("main.rs").is_file()
                };
                let next = words.get(index + 1).map(String::as_str);
                let is_right = match (word.as_str(), next) {
                    ("--test", Some(name)) => is_there("tests", name),
                    ("--example", Some(name)) => is_there("examples", name),
                    (filter, _) if filter.contains("::") => has_test(filter),
                    (script, _) if script.starts_with("tests/") && script.ends_with("run") => {
                        let text = read(script);
                        let options = words[index..].iter().filter(|word| word.starts_with("--"));
                        options.into_iter().all(|option| text.contains(option.as_str()))
                    }
                    _ => continue,
                };
                checked += 1;
                assert!(is_right, "{}: {}", page.file, words.join(" "));
            }
        }
    }
    assert!(checked > 5, "{checked}");
}

/// A unit of systemd starts the program as a shell would.
#[test]
fn the_unit_of_systemd_starts_a_command_that_exists() {
    let page = Page { file: "docs/deployment.md".to_owned(), text: read("docs/deployment.md") };
    let mut blocks = page.blocks().into_iter().filter(|block| block.language == "ini");
    let unit = blocks.next().unwrap().text;
    let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let mut help = Help::default();
    assert_eq!(help.problem(&words(line)[1..]), None);
    assert_eq!(blocks.next().map(|block| block.text), None);
}

#[test]
fn a_command_that_does_not_exist_is_found() {
    let mut help = Help::default();
    let mut problem = |line: &str| help.problem(&words(line)[1..]);
    assert_eq!(problem("onceward operations list --state uncertain  # those that wait"), None);
    assert_eq!(problem("onceward check --config 'a b.toml' --probe"), None);
    assert_eq!(problem("onceward chck"), Some("no command in `chck`".to_owned()));
    let unknown = "`operations list` has no [\"--stat\"]";
    assert_eq!(problem("onceward operations list --stat uncertain"), Some(unknown.to_owned()));
}
