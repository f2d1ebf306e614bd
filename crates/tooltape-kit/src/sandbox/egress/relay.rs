//! Bytes in both directions, as many as there may be, without the secrets in what comes back.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::EGRESS_IDLE;
use super::broker::{Brokered, find};
use crate::web::Wire;

/// How many bytes are passed on at a time.
const PIECE_BYTES: usize = 16 << 10;
/// What stands where a secret came back.
const HIDDEN: u8 = b'*';

/// How many bytes may still pass.
pub(super) struct Left(AtomicU64);

impl Left {
    pub(super) fn new(bytes: u64) -> Left {
        Left(AtomicU64::new(bytes))
    }

    /// Takes so many, if there are as many left.
    fn take(&self, bytes: usize) -> bool {
        let taken = |left: u64| left.checked_sub(bytes as u64);
        self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, taken).is_ok()
    }
}

/// What may pass on one connection.
pub(super) struct Relay<'l> {
    pub(super) left: &'l Left,
    /// How many more bytes may go out; any number where none is given.
    pub(super) out: Option<u64>,
    pub(super) mask: Mask,
}

impl Relay<'_> {
    /// Passes bytes until one side ends, is silent, or may say no more. Returns how many passed.
    pub(super) async fn run(
        mut self,
        stream: &mut TcpStream,
        mut wire: Box<dyn Wire>,
        begun: &[u8],
    ) -> u64 {
        let mut passed = begun.len() as u64;
        if !self.left.take(begun.len()) || wire.write_all(begun).await.is_err() {
            return 0;
        }
        let (mut out, mut back) = ([0; PIECE_BYTES], [0; PIECE_BYTES]);
        let (mut is_open, mut out_left) = (true, self.out.unwrap_or(u64::MAX));
        loop {
            let room = usize::try_from(out_left).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
            let step = async {
                tokio::select! {
                    read = stream.read(&mut out[..room]), if is_open && room > 0 => (true, read),
                    read = wire.read(&mut back) => (false, read),
                }
            };
            let Ok((is_out, Ok(read))) = tokio::time::timeout(EGRESS_IDLE, step).await else {
                break;
            };
            if !self.left.take(read) {
                break;
            }
            passed += read as u64;
            let written = match (is_out, read) {
                (true, 0) => {
                    is_open = false;
                    // Whoever has said all may still want to hear the answer.
                    if self.out.is_none() { wire.shutdown().await } else { Ok(()) }
                }
                (true, read) => {
                    out_left -= read as u64;
                    wire.write_all(&out[..read]).await
                }
                (false, 0) => break,
                (false, read) => stream.write_all(&self.mask.pass(&back[..read])).await,
            };
            if written.and(wire.flush().await).is_err() {
                break;
            }
        }
        let _ = stream.write_all(&self.mask.rest()).await;
        let _ = stream.shutdown().await;
        passed
    }
}

/// Hides secrets in what comes back, wherever it is cut; each byte of them stays one byte.
pub(super) struct Mask {
    secrets: Vec<Vec<u8>>,
    held: Vec<u8>,
}

impl Mask {
    pub(super) fn none() -> Mask {
        Mask { secrets: Vec::new(), held: Vec::new() }
    }

    pub(super) fn of(secrets: &[&Brokered]) -> Mask {
        let secrets = secrets.iter().map(|secret| secret.bytes().to_vec());
        // What looks hidden is.
        let secrets = secrets.filter(|it| it.iter().any(|byte| *byte != HIDDEN)).collect();
        Mask { secrets, held: Vec::new() }
    }

    /// What can be passed on, now that these bytes came.
    fn pass(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(bytes);
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
        self.held.drain(..self.held.len() - kept).collect()
    }

    /// What was kept back, now that nothing more comes.
    fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.held)
    }
}
