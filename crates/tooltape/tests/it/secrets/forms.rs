//! Secrets, and how a hostile tool writes them down; made here, not by what is tested.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

/// One secret, written down in one way.
pub(super) struct Written {
    /// What a tool says.
    pub(super) said: String,
    /// What must not be found again. It is a part of that.
    pub(super) needle: String,
}

fn all(said: String) -> Written {
    Written { needle: said.clone(), said }
}

fn escaped(bytes: &[u8], kept: &str, digits: fn(u8) -> String) -> String {
    let escape = |byte: &u8| match char::from(*byte) {
        c if c.is_ascii_alphanumeric() || kept.contains(c) => c.to_string(),
        _ => format!("%{}", digits(*byte)),
    };
    bytes.iter().map(escape).collect()
}

fn lower(byte: u8) -> String {
    format!("{byte:02x}")
}

fn upper(byte: u8) -> String {
    format!("{byte:02X}")
}

fn base64(secret: &[u8], before: usize, encode: impl Fn(&[u8]) -> String) -> Written {
    let bytes = [&b"xyz"[..before], secret, b"end"].concat();
    let said = encode(&bytes);
    // Only these characters are of the secret alone.
    let (first, last) = ((8 * before).div_ceil(6), 8 * (before + secret.len()) / 6);
    Written { needle: said[first..last].to_owned(), said }
}

/// Every way in which bytes can be written down and found.
pub(super) fn of_bytes(secret: &[u8]) -> Vec<(&'static str, Written)> {
    let hex = |digits: fn(u8) -> String, between: &str| {
        all(secret.iter().map(|byte| digits(*byte)).collect::<Vec<_>>().join(between))
    };
    vec![
        ("hex", hex(lower, "")),
        ("hex in capitals", hex(upper, "")),
        ("hex with colons", hex(lower, ":")),
        ("hex with spaces", hex(upper, " ")),
        ("base64", base64(secret, 0, |bytes| STANDARD.encode(bytes))),
        ("base64 one behind", base64(secret, 1, |bytes| STANDARD.encode(bytes))),
        ("base64 two behind", base64(secret, 2, |bytes| STANDARD.encode(bytes))),
        ("base64 for URLs", base64(secret, 0, |bytes| URL_SAFE.encode(bytes))),
        ("base64 for URLs one behind", base64(secret, 1, |bytes| URL_SAFE.encode(bytes))),
        ("base64 for URLs two behind", base64(secret, 2, |bytes| URL_SAFE.encode(bytes))),
        ("URL", all(escaped(secret, "-._~", upper))),
        ("URL in small letters", all(escaped(secret, "-._~", lower))),
        ("URL as scripts write it", all(escaped(secret, "-._~!*'()", upper))),
        ("URL of a form", all(escaped(secret, "-._*", upper).replace("%20", "+"))),
        ("URL, all of it", all(secret.iter().map(|byte| format!("%{byte:02X}")).collect())),
        ("list of bytes", all(format!("{secret:?}"))),
        ("JSON list of bytes", all(serde_json::to_string(secret).unwrap())),
    ]
}

/// Every way in which a text can be.
pub(super) fn of_text(secret: &str) -> Vec<(&'static str, Written)> {
    let json = serde_json::to_string(secret).unwrap();
    let json = &json[1..json.len() - 1];
    let ascii = |text: &str| -> String {
        let mut out = String::new();
        for c in text.chars() {
            match c.is_ascii() {
                true => out.push(c),
                false => {
                    let units = c.encode_utf16(&mut [0; 2]).to_vec();
                    units.iter().for_each(|unit| out += &format!("\\u{unit:04x}"));
                }
            }
        }
        out
    };
    let html = secret.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let mut forms = of_bytes(secret.as_bytes());
    forms.extend([
        ("plain", all(secret.to_owned())),
        ("reversed", all(secret.chars().rev().collect())),
        ("JSON", all(json.to_owned())),
        ("JSON in ASCII", all(ascii(json))),
        ("JSON with slashes", all(json.replace('/', "\\/"))),
        ("HTML", all(html.replace('"', "&quot;").replace('\'', "&#39;"))),
        ("debugged", all(secret.escape_debug().to_string())),
    ]);
    forms
}

/// The texts of this suite.
pub(super) const TEXTS: [&str; 4] = [
    "sk-Canary7h9x2kLmQv4",
    "pässwörd-€uro-𝄞-Kanarienvogel",
    "correct \"horse\" & <battery> 'staple'/100%",
    "-----BEGIN PRIVATE KEY-----\nMIGEAgEAMBAGByqGSM49AgEGBSu\nBG0wawIBAQQgCanary5uXz\n-----END",
];

/// The bytes of this suite, which are no text.
pub(super) const BYTES: [u8; 24] = [
    0xff, 0x00, 0x9b, 0x41, 0x42, 0xfe, 0x0a, 0x80, 0xc3, 0x28, 0x7f, 0x1b, 0xe2, 0x82, 0x01, 0x02,
    0x99, 0xaa, 0xbb, 0xcc, 0x5c, 0x22, 0x27, 0xf0,
];
