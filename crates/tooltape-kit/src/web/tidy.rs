//! HTML made plain: few elements, each closed where it belongs, none deeper than a limit.

// Whoever makes a tree of what is left has to do no work that grows faster than the page, and
// reads it no other way than we did.

use super::scan::{Piece, Pieces, attribute, decoded};

/// The most elements within each other; what is deeper is text.
pub const HTML_DEPTH_MAX: usize = 48;
/// The most lists and quotations within each other: each of them indents every line within.
const INDENTS_MAX: usize = 12;

/// How an element gets on with others.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Within a line: it ends where a block begins.
    Inline,
    Block,
    Indenting,
    /// It has no end.
    Void,
}

/// The elements that are kept.
fn role(name: &str) -> Option<Role> {
    Some(match name {
        "a" | "b" | "strong" | "i" | "em" | "code" | "kbd" | "samp" | "del" => Role::Inline,
        "p" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "pre" | "div" | "li" | "table" | "tr"
        | "td" | "th" => Role::Block,
        "ul" | "ol" | "blockquote" => Role::Indenting,
        "br" | "hr" | "img" => Role::Void,
        _ => return None,
    })
}

/// Elements around whose text there are line ends, whether they are kept or not.
fn is_block(name: &str) -> bool {
    let others = ["section", "article", "header", "footer", "main", "nav", "dd", "dt", "title"];
    others.contains(&name) || role(name).is_some_and(|role| role != Role::Inline)
}

/// What an element ends that is open when it begins, and within what that has to be.
fn ends(name: &str) -> Option<(&'static [&'static str], &'static [&'static str])> {
    Some(match name {
        "li" => (&["li"], &["ul", "ol"]),
        "tr" => (&["tr"], &["table"]),
        "td" | "th" => (&["td", "th"], &["table", "tr"]),
        "a" => (&["a"], &[]),
        _ if is_block(name) => (&["p"], &["td", "th", "li", "blockquote"]),
        _ => return None,
    })
}

/// HTML that holds only what is kept.
pub(super) fn tidied(html: &str) -> String {
    let mut tidy = Tidy { html: String::with_capacity(html.len()), open: Vec::new() };
    for piece in Pieces::of(html) {
        match piece {
            Piece::Text(text) => tidy.html.push_str(&escaped(&decoded(text))),
            Piece::Start(name, attributes) => tidy.start(&name, attributes),
            Piece::End(name) => tidy.end(&name),
        }
    }
    tidy.close(0);
    tidy.html
}

struct Tidy {
    html: String,
    open: Vec<(String, Role)>,
}

impl Tidy {
    fn start(&mut self, name: &str, attributes: &str) {
        if let Some((names, within)) = ends(name) {
            let above = |name: &str| within.contains(&name);
            let from = self.open.iter().rposition(|(open, _)| above(open)).map_or(0, |at| at + 1);
            let named = |(open, _): &(String, Role)| names.contains(&open.as_str());
            if let Some(at) = self.open[from..].iter().position(named) {
                self.close(from + at);
            }
        }
        let Some(role) = role(name) else {
            if is_block(name) {
                self.close_inline();
                self.html.push_str("<div></div>");
            }
            return;
        };
        if role != Role::Inline && name != "br" && name != "img" {
            self.close_inline();
        }
        let indents = self.open.iter().filter(|(_, role)| *role == Role::Indenting).count();
        let is_deep = self.open.len() >= HTML_DEPTH_MAX
            || (role == Role::Indenting && indents >= INDENTS_MAX);
        if is_deep {
            return;
        }
        self.html.push('<');
        self.html.push_str(name);
        for key in ["href", "src", "alt"] {
            let is_kept = matches!((name, key), ("a", "href") | ("img", "src" | "alt"));
            if let Some(value) = is_kept.then(|| attribute(attributes, key)).flatten() {
                self.html.push_str(&format!(" {key}=\"{}\"", escaped(&value)));
            }
        }
        self.html.push('>');
        if role != Role::Void {
            self.open.push((name.to_owned(), role));
        }
    }

    fn end(&mut self, name: &str) {
        if let Some(at) = self.open.iter().rposition(|(open, _)| open == name) {
            self.close(at);
        }
    }

    /// Ends what is open within a line.
    fn close_inline(&mut self) {
        let inline = |(_, role): &(String, Role)| *role == Role::Inline;
        let block = self.open.iter().rposition(|open| !inline(open)).map_or(0, |at| at + 1);
        self.close(block);
    }

    /// Ends all but the first so many elements.
    fn close(&mut self, kept: usize) {
        for (name, _) in self.open.drain(kept..).rev() {
            self.html.push_str(&format!("</{name}>"));
        }
    }
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c => escaped.push(c),
        }
    }
    escaped
}

/// The text of HTML, a line for each block.
pub(super) fn text(html: &str) -> String {
    let mut text = String::new();
    for piece in Pieces::of(html) {
        match piece {
            Piece::Text(piece) => {
                for c in decoded(piece).chars() {
                    match c.is_whitespace() {
                        true if text.is_empty() || text.ends_with([' ', '\n']) => {}
                        true => text.push(' '),
                        false => text.push(c),
                    }
                }
            }
            Piece::Start(name, _) | Piece::End(name) => {
                if is_block(&name) && !text.ends_with('\n') {
                    text.truncate(text.trim_end().len());
                    text.push('\n');
                }
            }
        }
    }
    text.trim().to_owned()
}
