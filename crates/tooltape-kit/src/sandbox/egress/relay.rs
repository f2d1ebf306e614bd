//! Bytes in both directions, as many as there may be, without the secrets in what comes back.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::EGRESS_IDLE;
use super::ledger::Line;
use super::mask::Mask;
use crate::web::Wire;

/// How many bytes are passed on at a time.
const PIECE_BYTES: usize = 16 << 10;

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
    /// Where it is written down.
    pub(super) line: Line<'l>,
}

impl Relay<'_> {
    /// Passes bytes until one side ends, is silent, or may say no more.
    pub(super) async fn run(
        mut self,
        stream: &mut TcpStream,
        mut wire: Box<dyn Wire>,
        begun: &[u8],
    ) {
        if !self.take(begun.len()) || wire.write_all(begun).await.is_err() {
            return;
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
            if !self.take(read) {
                break;
            }
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
                (false, 0) => {
                    let _ = stream.write_all(&self.mask.rest()).await;
                    break;
                }
                (false, read) => match self.mask.pass(&back[..read]) {
                    Ok(passed) => stream.write_all(&passed).await,
                    Err(why) => {
                        let _ = stream.write_all(&why.answer()).await;
                        break;
                    }
                },
            };
            if written.and(wire.flush().await).is_err() {
                break;
            }
        }
        let _ = stream.shutdown().await;
    }

    /// Takes so many bytes, if as many may still pass, and writes them down.
    fn take(&self, bytes: usize) -> bool {
        let is_left = self.left.take(bytes);
        if is_left {
            self.line.add(bytes);
        }
        is_left
    }
}
