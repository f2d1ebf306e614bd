//! A page as a model reads it: its charset, and HTML as Markdown.

use encoding_rs::{Encoding, UTF_8};
use htmd::element_handler::{HandlerResult, Handlers};
use htmd::{Element, HtmlToMarkdown};

use super::scan::attribute;
use super::tidy;

/// The most bytes of HTML that are made Markdown.
pub const HTML_BYTES_MAX: usize = 2 << 20;
/// How far into a page its charset may be named, as browsers look for it.
const CHARSET_BYTES_MAX: usize = 1_024;
/// How far into a page is looked for what no text has.
const SNIFFED_BYTES_MAX: usize = 4_096;

/// Ends a cell of a table's head until its row is whole: a character that nobody may use.
const HEADING_END: char = '\u{e000}';

/// What a page is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Html,
    Text,
    /// Nothing to read.
    Binary,
}

impl Form {
    /// What a page says that it is, or, where it does not say, what it looks like.
    pub(super) fn of(content_type: Option<&str>, bytes: &[u8]) -> Form {
        let head = &bytes[..bytes.len().min(SNIFFED_BYTES_MAX)];
        let media = content_type.unwrap_or_default().split(';').next().unwrap_or_default();
        let media = media.trim().to_ascii_lowercase();
        let is_readable = ["application/javascript", "application/toml", "application/yaml"];
        match media.as_str() {
            "text/html" | "application/xhtml+xml" => Form::Html,
            "" if head.contains(&0) => Form::Binary,
            "" if has_markup(head) => Form::Html,
            "" => Form::Text,
            "application/json" | "application/xml" | "application/x-ndjson" => Form::Text,
            media if media.ends_with("+json") || media.ends_with("+xml") => Form::Text,
            media if media.starts_with("text/") || is_readable.contains(&media) => Form::Text,
            _ => Form::Binary,
        }
    }
}

fn has_markup(head: &[u8]) -> bool {
    let head = String::from_utf8_lossy(head).trim_start().to_ascii_lowercase();
    head.starts_with("<!doctype html") || head.starts_with("<html")
}

/// The text of a page in its charset; what is no text in it is `U+FFFD`.
pub(super) fn text(content_type: Option<&str>, bytes: &[u8], form: Form) -> String {
    let named = content_type.and_then(|it| attribute(&it.replace(';', " "), "charset"));
    let named = named.or_else(|| {
        let head = String::from_utf8_lossy(&bytes[..bytes.len().min(CHARSET_BYTES_MAX)]);
        let meta = head.to_ascii_lowercase();
        let meta = meta.get(meta.find("charset=")?..).filter(|_| form == Form::Html)?;
        let value = meta["charset=".len()..].trim_start_matches(['"', '\'', ' ']);
        let end = value.find(['"', '\'', ' ', ';', '>', '/']).unwrap_or(value.len());
        Some(value[..end].to_owned())
    });
    let charset = named.and_then(|label| Encoding::for_label(label.trim().as_bytes()));
    // A mark at the beginning knows better than anybody.
    charset.unwrap_or(UTF_8).decode(bytes).0.into_owned()
}

/// HTML as Markdown.
pub(super) fn markdown(html: &str) -> String {
    let html = &html[..html.floor_char_boundary(HTML_BYTES_MAX)];
    let cell = |end: char| {
        move |handlers: &dyn Handlers, element: Element<'_>| {
            let content = handlers.walk_children(element.node).content.replace(HEADING_END, "");
            let words: Vec<&str> = content.split_whitespace().collect();
            Some(HandlerResult::from(format!(" {} {end}", words.join(" "))))
        }
    };
    let row = |handlers: &dyn Handlers, element: Element<'_>| {
        let content = handlers.walk_children(element.node).content;
        let headings = content.matches(HEADING_END).count();
        let rule =
            if headings > 0 { format!("|{}\n", " --- |".repeat(headings)) } else { String::new() };
        let cells = content.trim_matches('\n').replace(HEADING_END, "|");
        Some(HandlerResult::from(format!("|{cells}\n{rule}")))
    };
    let block = |handlers: &dyn Handlers, element: Element<'_>| {
        let content = handlers.walk_children(element.node).content;
        Some(HandlerResult::from(format!("\n\n{}\n\n", content.trim_matches('\n'))))
    };
    // Its own tables are as wide as their widest cell in every row, which has no limit.
    let converter = HtmlToMarkdown::builder()
        .add_handler(vec!["table"], block)
        .add_handler(vec!["tr"], row)
        .add_handler(vec!["td"], cell('|'))
        .add_handler(vec!["th"], cell(HEADING_END))
        .build();
    let tidied = tidy::tidied(html);
    // It fails only where it cannot read, and it reads a text.
    let markdown = converter.convert(&tidied).unwrap_or_else(|_| tidy::text(html));
    markdown.trim().to_owned()
}
