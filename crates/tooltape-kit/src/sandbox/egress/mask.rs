//! Secrets hidden in an answer, and no answer in which they could not be found.

use super::broker::{Brokered, find};
use crate::web::{HEADER_BYTES_MAX, HEADERS_MAX};

/// What stands where a secret came back.
const HIDDEN: u8 = b'*';

/// Hides secrets in what comes back, wherever it is cut; each byte of them stays one byte.
pub(super) struct Mask {
    secrets: Vec<Vec<u8>>,
    /// Whether the head of the answer is still to be judged.
    is_head: bool,
    held: Vec<u8>,
}

/// Why an answer is not passed on.
pub(super) struct Unmaskable(&'static str);

impl Unmaskable {
    /// What the process is answered instead.
    pub(super) fn answer(&self) -> Vec<u8> {
        let why = format!("tooltape: secret_not_hidden: {}\n", self.0);
        let head = "HTTP/1.1 502 Bad Gateway\r\ncontent-type: text/plain\r\nconnection: close";
        format!("{head}\r\ncontent-length: {}\r\n\r\n{why}", why.len()).into_bytes()
    }
}

impl Mask {
    pub(super) fn none() -> Mask {
        Mask { secrets: Vec::new(), is_head: false, held: Vec::new() }
    }

    pub(super) fn of(secrets: &[&Brokered]) -> Mask {
        let secrets = secrets.iter().map(|secret| secret.bytes().to_vec());
        // What looks hidden is.
        let secrets = secrets.filter(|it| it.iter().any(|byte| *byte != HIDDEN)).collect();
        Mask { secrets, is_head: true, held: Vec::new() }
    }

    /// What can be passed on, now that these bytes came.
    pub(super) fn pass(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Unmaskable> {
        self.held.extend_from_slice(bytes);
        if self.is_head {
            // Only the end of a line can end a head.
            self.is_head = !(bytes.contains(&b'\n') && is_plain(&self.held)?);
            if self.is_head && self.held.len() > HEADER_BYTES_MAX {
                return Err(Unmaskable("expected a shorter head of the answer"));
            }
            if self.is_head {
                return Ok(Vec::new());
            }
        }
        for secret in &self.secrets {
            while let Some(at) = find(&self.held, secret) {
                self.held[at..at + secret.len()].fill(HIDDEN);
            }
        }
        // A secret may go on with the next bytes.
        let begins = |secret: &Vec<u8>| {
            let most = secret.len().saturating_sub(1).min(self.held.len());
            (1..=most).rev().find(|kept| self.held.ends_with(&secret[..*kept])).unwrap_or(0)
        };
        let kept = self.secrets.iter().map(begins).max().unwrap_or(0);
        Ok(self.held.drain(..self.held.len() - kept).collect())
    }

    /// What was kept back, now that the host has said all.
    pub(super) fn rest(&mut self) -> Vec<u8> {
        if self.is_head { Vec::new() } else { std::mem::take(&mut self.held) }
    }
}

/// Whether the head is whole, and what follows it stands on the wire as it is.
fn is_plain(answer: &[u8]) -> Result<bool, Unmaskable> {
    let mut fields = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut fields);
    let unclear = Unmaskable("expected an answer in HTTP/1.1");
    let is_whole = response.parse(answer).map_err(|_| unclear)?.is_complete();
    // Another head would follow, and nobody asked for a part of a page.
    if is_whole && response.code.is_none_or(|code| code < 200 || code == 206) {
        return Err(Unmaskable("expected one whole answer"));
    }
    let is_packed = |field: &httparse::Header<'_>| {
        let name = field.name.to_ascii_lowercase();
        let is_identity = field.value.trim_ascii().eq_ignore_ascii_case(b"identity");
        match name.as_str() {
            "transfer-encoding" | "content-range" => true,
            "content-encoding" => !is_identity,
            _ => false,
        }
    };
    if is_whole && response.headers.iter().any(is_packed) {
        return Err(Unmaskable("expected an answer that is neither packed nor in chunks"));
    }
    Ok(is_whole)
}
