//! The forms in which a secret is looked for.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use zeroize::Zeroizing;

use super::SECRET_BYTES_MIN;
use crate::canon::Canon;

/// The most bytes that a form of a secret has for each of its own: `\\u001f` stands for one.
pub(super) const FORM_BYTES_MAX: usize = 7;
/// The shortest line of a secret of many lines that is looked for by itself, in bytes.
pub(super) const LINE_BYTES_MIN: usize = 16;

/// A form of a secret, whose memory is overwritten.
pub(super) type Form = Zeroizing<Vec<u8>>;

/// Every form of these secrets, each once.
pub(super) fn all(secrets: &[Form]) -> Vec<Form> {
    let parts = secrets.iter().flat_map(|secret| parts(secret));
    let mut all: Vec<Form> = parts.flat_map(|part| forms(&part)).map(Zeroizing::new).collect();
    all.sort_unstable_by(|one, other| one[..].cmp(&other[..]));
    all.dedup();
    all
}

/// A secret, and what gives it away as well: without the space around it, with the line ends of
/// another system, and each of its lines, such as those of a key.
fn parts(secret: &[u8]) -> Vec<Form> {
    let mut parts = vec![secret.to_vec()];
    let trimmed = secret.trim_ascii();
    if trimmed.len() >= SECRET_BYTES_MIN {
        parts.push(trimmed.to_vec());
    }
    if secret.contains(&b'\n') {
        let unix: Vec<u8> = secret.iter().copied().filter(|byte| *byte != b'\r').collect();
        let dos = unix.iter().flat_map(|byte| match byte {
            b'\n' => vec![b'\r', b'\n'],
            byte => vec![*byte],
        });
        parts.extend([dos.collect(), unix]);
        let lines = secret.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        // `-----BEGIN PRIVATE KEY-----` is no secret.
        let telling = |line: &&[u8]| line.len() >= LINE_BYTES_MIN && !line.starts_with(b"-----");
        parts.extend(lines.filter(telling).map(<[u8]>::to_vec));
    }
    parts.into_iter().map(Zeroizing::new).collect()
}

/// Every form of one text.
fn forms(secret: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = vec![secret.to_vec(), secret.iter().rev().copied().collect()];
    let spelled = |byte: fn(u8) -> String, between: &str| {
        let bytes: Vec<String> = secret.iter().map(|it| byte(*it)).collect();
        bytes.join(between).into_bytes()
    };
    for between in ["", ":", " "] {
        forms.push(spelled(|byte| format!("{byte:02x}"), between));
        forms.push(spelled(|byte| format!("{byte:02X}"), between));
    }
    forms.push(spelled(|byte| format!("\\x{byte:02x}"), ""));
    forms.push(spelled(|byte| byte.to_string(), ","));
    forms.push(spelled(|byte| byte.to_string(), ", "));
    forms.extend((0..3).flat_map(|before| base64_forms(secret, before)));
    forms.extend(url_forms(secret));
    if let Ok(text) = str::from_utf8(secret) {
        forms.push(text.chars().rev().collect::<String>().into_bytes());
        forms.extend(text_forms(text).map(String::into_bytes));
    }
    forms
}

/// The characters that base64 always has for a secret with so many bytes before it, modulo three.
fn base64_forms(secret: &[u8], before: usize) -> [Vec<u8>; 2] {
    let mut bytes = vec![0; before];
    bytes.extend_from_slice(secret);
    // The first and the last character may depend on what stands before and behind.
    let (first, last) = ((8 * before).div_ceil(6), 8 * bytes.len() / 6);
    let standard = STANDARD_NO_PAD.encode(&bytes);
    let url_safe = URL_SAFE_NO_PAD.encode(&bytes);
    [standard, url_safe].map(|text| text.as_bytes()[first..last].to_vec())
}

/// How the many makers of URLs write a secret: each leaves other characters as they are.
fn url_forms(secret: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let kept = ["-._~", "-._~!*'()", "-._~!*'();/?:@&=+$,#", "-._*", "-._~/", ""];
    let plain = move |byte: u8, kept: &str| {
        (byte.is_ascii_alphanumeric() && !kept.is_empty()) || kept.as_bytes().contains(&byte)
    };
    kept.into_iter().flat_map(move |kept| {
        [false, true].into_iter().flat_map(move |upper| {
            [Some(b'+'), None].into_iter().map(move |space| {
                let mut form = Vec::with_capacity(3 * secret.len());
                for byte in secret.iter().copied() {
                    match space {
                        Some(plus) if byte == b' ' => form.push(plus),
                        _ if plain(byte, kept) => form.push(byte),
                        _ if upper => form.extend(format!("%{byte:02X}").bytes()),
                        _ => form.extend(format!("%{byte:02x}").bytes()),
                    }
                }
                form
            })
        })
    })
}

/// A secret with the escapes of JSON, as its many writers make them, of Rust, and of HTML.
fn text_forms(secret: &str) -> impl Iterator<Item = String> {
    let json = Canon::string(secret);
    let json = json.as_str()[1..json.as_str().len() - 1].to_owned();
    let slashes = json.replace('/', "\\/");
    let ascii = |text: &str, upper: bool, also: &str| {
        let mut out = String::with_capacity(text.len());
        for character in text.chars() {
            if character.is_ascii() && !also.contains(character) {
                out.push(character);
                continue;
            }
            for unit in character.encode_utf16(&mut [0; 2]) {
                out += &if upper { format!("\\u{unit:04X}") } else { format!("\\u{unit:04x}") };
            }
        }
        out
    };
    let escaped = [("", false), ("", true), ("<>&", false), ("<>&'", true), ("<>&'\u{7f}", false)];
    let escaped = escaped.map(|(also, upper)| ascii(&json, upper, also));
    let html = [("\"", "'"), ("&quot;", "'"), ("&quot;", "&#39;"), ("&quot;", "&#x27;")];
    let html = html.map(|(quote, apostrophe)| {
        let text = secret.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        text.replace('"', quote).replace('\'', apostrophe)
    });
    let doubled = json.replace('\\', "\\\\").replace('"', "\\\"");
    let debug = secret.escape_debug().to_string();
    [json, slashes, doubled, debug].into_iter().chain(escaped).chain(html)
}
