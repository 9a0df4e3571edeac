//! The pages of the repository, and what stands on them.

use std::path::{Path, PathBuf};

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn read(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// A page in Markdown.
#[derive(Debug)]
pub(crate) struct Page {
    /// From the root of the repository.
    pub(crate) file: String,
    pub(crate) text: String,
}

/// A fenced block of a page.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) language: String,
    pub(crate) text: String,
}

/// Every page that people read: the README, the changelog, and the pages in `docs` and `.github`.
pub(crate) fn pages() -> Vec<Page> {
    let mut files = vec!["README.md".to_owned(), "CHANGELOG.md".to_owned()];
    for folder in [".github", "docs", "docs/providers"] {
        let entries = std::fs::read_dir(root().join(folder)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let is_page = |name: &String| Path::new(name).extension() == Some("md".as_ref());
        files.extend(names.filter(is_page).map(|name| format!("{folder}/{name}")));
    }
    files.sort();
    files.into_iter().map(|file| Page { text: read(&file), file }).collect()
}

/// A page for each sender is generated from its preset.
pub(crate) fn is_generated(page: &Page) -> bool {
    page.file.starts_with("docs/providers/")
}

impl Page {
    /// Its fenced blocks, in their order.
    pub(crate) fn blocks(&self) -> Vec<Block> {
        let mut blocks: Vec<Block> = Vec::new();
        let mut is_open = false;
        for line in self.text.lines() {
            match (line.strip_prefix("```"), is_open) {
                (Some(_), true) => is_open = false,
                (Some(language), false) => {
                    let (language, text) = (language.to_owned(), String::new());
                    blocks.push(Block { language, text });
                    is_open = true;
                }
                (None, true) => {
                    let block = blocks.last_mut().unwrap();
                    block.text += line;
                    block.text += "\n";
                }
                (None, false) => {}
            }
        }
        assert!(!is_open, "{}: a block is not closed", self.file);
        blocks
    }

    /// Its lines outside of fenced blocks.
    fn prose(&self) -> impl Iterator<Item = &str> {
        let mut is_open = false;
        self.text.lines().filter(move |line| {
            let is_fence = line.starts_with("```");
            is_open ^= is_fence;
            !is_open && !is_fence
        })
    }

    /// What stands between backticks in its prose, each on one line.
    pub(crate) fn inline_code(&self) -> Vec<String> {
        // A span may go on in the next line.
        let prose: String = self.prose().collect::<Vec<_>>().join("\n");
        let paragraphs = prose.split("\n\n");
        let spans = paragraphs.flat_map(|paragraph| paragraph.split('`').skip(1).step_by(2));
        spans.map(|span| span.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    }

    /// The targets of its links.
    pub(crate) fn links(&self) -> Vec<String> {
        let prose: String = self.prose().collect::<Vec<_>>().join("\n");
        let targets = prose.split("](").skip(1).map(|rest| rest.split_once(')').unwrap().0);
        targets.map(str::to_owned).collect()
    }

    /// The file that a link leads to, and the heading in it.
    pub(crate) fn target(&self, link: &str) -> (PathBuf, Option<String>) {
        let (file, heading) = match link.split_once('#') {
            Some((file, heading)) => (file, Some(heading.to_owned())),
            None => (link, None),
        };
        let own = Path::new(&self.file);
        let target = if file.is_empty() { own.into() } else { own.parent().unwrap().join(file) };
        let mut plain = PathBuf::new();
        for part in target.components() {
            if part.as_os_str() == ".." {
                assert!(plain.pop(), "{}: `{link}` leads out of the repository", self.file);
            } else {
                plain.push(part);
            }
        }
        (plain, heading)
    }

    /// By what links name its headings: in lower case, with hyphens for blanks, without
    /// punctuation.
    pub(crate) fn anchors(&self) -> Vec<String> {
        let headings = self.prose().filter(|line| line.starts_with('#'));
        headings.map(|line| anchor(line.trim_start_matches('#').trim())).collect()
    }
}

fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}
