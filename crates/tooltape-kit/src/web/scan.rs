//! HTML looked through once from front to back, without a tree.

/// The longest name of an entity such as `&nbsp;`.
const ENTITY_BYTES_MAX: usize = 10;

/// Elements whose content is not looked into.
const RAW: [&str; 5] = ["script", "style", "noscript", "iframe", "template"];

/// A piece of HTML.
pub(super) enum Piece<'h> {
    Text(&'h str),
    /// An element begins: its name in lower case, and its attributes as they stand.
    Start(String, &'h str),
    End(String),
}

/// The pieces of HTML. Comments, scripts and styles are left out.
pub(super) struct Pieces<'h> {
    rest: &'h str,
}

impl<'h> Pieces<'h> {
    pub(super) fn of(html: &'h str) -> Pieces<'h> {
        Pieces { rest: html }
    }

    /// The piece that begins with `<`, if it is one.
    fn markup(&mut self) -> Option<Piece<'h>> {
        if let Some(comment) = self.rest.strip_prefix("<!--") {
            self.rest = comment.find("-->").map_or("", |end| &comment[end + 3..]);
            return None;
        }
        let inside = &self.rest[1..];
        if !inside.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?')) {
            self.rest = inside;
            return Some(Piece::Text("<"));
        }
        let end = tag_end(inside);
        self.rest = inside.get(end + 1..).unwrap_or_default();
        let tag = &inside[..end];
        let (tag, is_end) = tag.strip_prefix('/').map_or((tag, false), |tag| (tag, true));
        let name_end = tag.find(|c: char| c.is_ascii_whitespace() || c == '/');
        let (name, attributes) = tag.split_at(name_end.unwrap_or(tag.len()));
        let name = name.to_ascii_lowercase();
        match is_end {
            _ if !name.starts_with(|c: char| c.is_ascii_alphabetic()) => None,
            true => Some(Piece::End(name)),
            false => {
                if RAW.contains(&name.as_str()) {
                    self.skip_to_end_of(&name);
                }
                Some(Piece::Start(name, attributes))
            }
        }
    }

    fn skip_to_end_of(&mut self, name: &str) {
        let is_end = |at: usize| {
            let behind = self.rest.get(at + 2..at + 2 + name.len());
            behind.is_some_and(|behind| behind.eq_ignore_ascii_case(name))
        };
        let end = self.rest.match_indices("</").map(|(at, _)| at).find(|at| is_end(*at));
        self.rest = end.map_or("", |at| &self.rest[at..]);
    }
}

impl<'h> Iterator for Pieces<'h> {
    type Item = Piece<'h>;

    fn next(&mut self) -> Option<Piece<'h>> {
        while !self.rest.is_empty() {
            match self.rest.find('<') {
                Some(0) => match self.markup() {
                    Some(piece) => return Some(piece),
                    None => continue,
                },
                at => {
                    let (text, rest) = self.rest.split_at(at.unwrap_or(self.rest.len()));
                    self.rest = rest;
                    return Some(Piece::Text(text));
                }
            }
        }
        None
    }
}

/// Where a tag ends. A `>` within quotes does not end it, unless the quotes never end.
fn tag_end(inside: &str) -> usize {
    let (mut quote, mut first) = (None, None);
    for (at, byte) in inside.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return at,
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            // Whoever opens a quotation and never ends it is not followed for ever.
            (Some(_), b'<') => return first.unwrap_or(at),
            (Some(_), b'>') => first = first.or(Some(at)),
            (None | Some(_), _) => {}
        }
    }
    first.unwrap_or(inside.len())
}

/// The value of an attribute.
pub(super) fn attribute(attributes: &str, name: &str) -> Option<String> {
    let mut rest = attributes;
    while let Some(equals) = rest.find('=') {
        let key = rest[..equals].trim_end();
        let key = key.rsplit(|c: char| c.is_ascii_whitespace() || c == '/').next();
        let value = rest[equals + 1..].trim_start();
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''));
        let (value, behind) = match quote {
            Some(quote) => value[1..].split_once(quote).unwrap_or((&value[1..], "")),
            None => value.split_at(value.find(char::is_whitespace).unwrap_or(value.len())),
        };
        if key.is_some_and(|key| key.eq_ignore_ascii_case(name)) {
            return Some(decoded(value));
        }
        rest = behind;
    }
    None
}

/// A text in which entities are what they stand for.
pub(super) fn decoded(text: &str) -> String {
    let (mut decoded, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find('&') {
        let (before, behind) = rest.split_at(at);
        let (c, bytes) = entity(behind).unwrap_or(('&', 1));
        decoded.push_str(before);
        decoded.push(c);
        rest = &behind[bytes..];
    }
    decoded.push_str(rest);
    decoded
}

/// The character that an entity stands for at the head of a text, and how long it is.
fn entity(text: &str) -> Option<(char, usize)> {
    let end = text.bytes().take(ENTITY_BYTES_MAX).position(|byte| byte == b';')?;
    let name = &text[1..end];
    let number = |digits: &str, radix| u32::from_str_radix(digits, radix).ok();
    let c = match (name, name.strip_prefix('#')) {
        ("amp", _) => '&',
        ("lt", _) => '<',
        ("gt", _) => '>',
        ("quot", _) => '"',
        ("apos", _) => '\'',
        ("nbsp", _) => '\u{a0}',
        ("copy", _) => '©',
        ("ndash", _) => '–',
        ("mdash", _) => '—',
        ("hellip", _) => '…',
        ("laquo", _) => '«',
        ("raquo", _) => '»',
        ("rsquo", _) => '’',
        ("lsquo", _) => '‘',
        ("rdquo", _) => '”',
        ("ldquo", _) => '“',
        (_, Some(digits)) => {
            let hexadecimal = digits.strip_prefix(['x', 'X']);
            char::from_u32(hexadecimal.map_or(number(digits, 10), |it| number(it, 16))?)?
        }
        (_, None) => return None,
    };
    Some((c, end + 1))
}
