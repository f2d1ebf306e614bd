//! A Rust file with its code and its comments told apart.

use super::files;

/// One Rust file of the repository.
pub(crate) struct Source {
    /// Where it is, relative to the root.
    pub(crate) path: String,
    /// All of it.
    pub(crate) text: String,
    /// Its code: comments and literals are spaces, lines stay lines.
    pub(crate) code: String,
    /// Its comments: all else is spaces, lines stay lines.
    pub(crate) comments: String,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Source {
        let (code, comments) = split(text);
        Source { path: path.to_owned(), text: text.to_owned(), code, comments }
    }

    /// The part of the path below the crate's `src`, if the file is there.
    pub(crate) fn below_src(&self) -> Option<&str> {
        self.path.split_once("/src/").map(|(_, below)| below)
    }

    /// Whether the file is compiled for tests, benchmarks or fuzzing only.
    pub(crate) fn is_test(&self) -> bool {
        let mut folders = self.path.split('/');
        folders.any(|folder| ["tests", "benches", "fuzz"].contains(&folder))
    }

    /// The lines of the code on which `needle` stands as a whole word, counted from one.
    pub(crate) fn lines_with(&self, needle: &str) -> Vec<usize> {
        lines_with(&self.code, needle)
    }
}

/// Every Rust file of the repository that is not a fixture.
pub(crate) fn sources() -> Vec<Source> {
    let rust = files::texts().filter(|(path, _)| path.ends_with(".rs") && !files::is_fixture(path));
    let sources: Vec<Source> = rust.map(|(path, text)| Source::new(&path, &text)).collect();
    assert!(sources.len() >= 4, "found only {} Rust files", sources.len());
    sources
}

/// The lines of `text` on which `needle` stands as a whole word, counted from one.
pub(crate) fn lines_with(text: &str, needle: &str) -> Vec<usize> {
    let lines = text.lines().enumerate();
    lines.filter(|(_, line)| has_word(line, needle)).map(|(index, _)| index + 1).collect()
}

fn has_word(line: &str, needle: &str) -> bool {
    line.match_indices(needle).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + needle.len()..].chars().next();
        let goes_on_left = needle.starts_with(is_word) && before.is_some_and(is_word);
        let goes_on_right = needle.ends_with(is_word) && after.is_some_and(is_word);
        !goes_on_left && !goes_on_right
    })
}

fn is_word(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

fn split(text: &str) -> (String, String) {
    let (mut code, mut comments) = (String::new(), String::new());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let inside_word = code.ends_with(is_word);
        let comment = comment_len(rest);
        let literal = if comment == 0 { literal_len(rest, inside_word) } else { 0 };
        let (piece, after) = rest.split_at((comment + literal).max(first.len_utf8()));
        let blank: String =
            piece.chars().map(|char| if char == '\n' { '\n' } else { ' ' }).collect();
        code.push_str(if comment + literal > 0 { &blank } else { piece });
        comments.push_str(if comment > 0 { piece } else { &blank });
        rest = after;
    }
    (code, comments)
}

/// How long the comment at the start of `rest` is; zero if there is none.
fn comment_len(rest: &str) -> usize {
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    if !rest.starts_with("/*") {
        return 0;
    }
    let (mut depth, mut at) = (0, 0);
    loop {
        match &rest.as_bytes()[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            [] => return at,
            [_, ..] => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
}

/// How long the string or character at the start of `rest` is; zero if there is none.
fn literal_len(rest: &str, inside_word: bool) -> usize {
    let prefixes: &[&str] = if inside_word { &[""] } else { &["br", "cr", "r", "b", "c", ""] };
    for prefix in prefixes {
        let Some(body) = rest.strip_prefix(prefix) else { continue };
        let hashes = body.len() - body.trim_start_matches('#').len();
        let is_raw = prefix.ends_with('r');
        if body[hashes..].starts_with('"') && (is_raw || hashes == 0) {
            let inner = &body[hashes + 1..];
            let inner_len = if is_raw {
                let close = format!("\"{}", "#".repeat(hashes));
                inner.find(&close).map(|end| end + close.len())
            } else {
                closed_len(inner, '"')
            };
            return prefix.len() + hashes + 1 + inner_len.unwrap_or(inner.len());
        }
        if let Some(inner) = body.strip_prefix('\'')
            && (*prefix == "b" || prefix.is_empty())
            && is_char(inner)
        {
            return prefix.len() + 1 + closed_len(inner, '\'').unwrap_or(inner.len());
        }
    }
    0
}

/// Whether a character literal, rather than a lifetime, follows an opening quote.
fn is_char(inner: &str) -> bool {
    let mut chars = inner.chars();
    match (chars.next(), chars.next()) {
        (Some('\\'), _) => true,
        (Some(first), Some('\'')) => first != '\'',
        _ => false,
    }
}

/// The length up to and with the first `close` that no backslash escapes.
fn closed_len(inner: &str, close: char) -> Option<usize> {
    let mut escaped = false;
    for (at, char) in inner.char_indices() {
        match char {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if char == close => return Some(at + char.len_utf8()),
            _ => {}
        }
    }
    None
}

#[test]
fn comments_and_literals_are_told_from_code() {
    let text = concat!(
        "a/* x /* y */ z */b // c\n",
        "r#\"un\"safe\"# 'q' '\\'' &'a str b'\\\\' \"\\\"/*\" r#type\n",
        "bar\"s\" '{' é\n",
    );
    let source = Source::new("x.rs", text);
    let words: Vec<&str> = source.code.split_whitespace().collect();
    assert_eq!(words, ["a", "b", "&'a", "str", "r#type", "bar", "é"]);
    assert_eq!(source.code.chars().count(), text.chars().count(), "columns stay columns");
    assert_eq!(source.comments.lines().next(), Some(" /* x /* y */ z */  // c"));
    assert_eq!(source.text.lines().count(), source.comments.lines().count());
    assert_eq!(lines_with("an unsafe_code\nunsafe {", "unsafe"), [2]);
}
