//! What a server answers: a stream, a whole turn, or why there is none.

use std::time::Duration;

use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, HeaderMap};

use super::{BODY_BYTES_MAX, unreachable};
use crate::model::{ModelError, Request, Turn, TurnStop};
use crate::wire::{Api, Decoder, REFUSAL_BYTES_MAX, decode, refusal};

/// What a try came to.
pub(super) enum Tried {
    /// A turn.
    Turn(Turn),
    /// A turn that the connection cut off.
    Cut(Turn),
}

/// The answer of a server, whose body is still to come.
pub(super) struct Answer {
    api: Api,
    /// Whether a stream was asked for.
    streams: bool,
    response: Response,
}

/// Why there is no turn, and how long the server wants to be left alone, where it says so.
type Failure = (ModelError, Option<Duration>);

impl Answer {
    pub(super) fn new(api: Api, streams: bool, response: Response) -> Answer {
        Answer { api, streams, response }
    }

    /// Reads it to its end.
    pub(super) async fn read(self, request: &Request<'_>) -> Result<Tried, Failure> {
        let (status, api) = (self.response.status().as_u16(), self.api);
        if !self.response.status().is_success() {
            let wait = wait(self.response.headers());
            return Err((refusal(api, status, &self.excuse().await), wait));
        }
        let streams = match media_type(self.response.headers()).as_deref() {
            Some("text/event-stream") => true,
            Some("application/json") => false,
            // Where nothing is said of it, what was asked for is believed.
            Some(_) | None => self.streams,
        };
        let tried = match streams {
            true => self.stream(request).await,
            false => self.body().await.and_then(|body| decode(api, &body)).map(Tried::Turn),
        };
        tried.map_err(|err| (err, None))
    }

    async fn stream(mut self, request: &Request<'_>) -> Result<Tried, ModelError> {
        let mut decoder = Decoder::new(self.api);
        let is_broken = loop {
            match self.response.chunk().await {
                Ok(Some(bytes)) => decoder.feed(&bytes, &mut |delta| request.tell(delta))?,
                Ok(None) => break false,
                Err(_) => break true,
            }
        };
        // A model that stopped for a reason which nobody knows would do so again.
        let is_told = decoder.stop_reason().is_some() && !is_broken;
        let turn = decoder.finish()?;
        Ok(match turn.stop == TurnStop::Cut && !is_told {
            true => Tried::Cut(turn),
            false => Tried::Turn(turn),
        })
    }

    /// The whole body, as long as it is not too long.
    async fn body(mut self) -> Result<Vec<u8>, ModelError> {
        let too_long = || ModelError::Garbled(format!("more than {BODY_BYTES_MAX} bytes"));
        let known = self.response.content_length().unwrap_or(0);
        if usize::try_from(known).is_ok_and(|bytes| bytes > BODY_BYTES_MAX) {
            return Err(too_long());
        }
        let mut body = Vec::new();
        while let Some(bytes) = self.response.chunk().await.map_err(unreachable)? {
            if body.len() + bytes.len() > BODY_BYTES_MAX {
                return Err(too_long());
            }
            body.extend_from_slice(&bytes);
        }
        Ok(body)
    }

    /// What a server says about an error: the beginning of it, however it ends.
    async fn excuse(mut self) -> Vec<u8> {
        let mut excuse = Vec::new();
        while let Ok(Some(bytes)) = self.response.chunk().await {
            let room = REFUSAL_BYTES_MAX - excuse.len();
            excuse.extend_from_slice(&bytes[..bytes.len().min(room)]);
            if excuse.len() == REFUSAL_BYTES_MAX {
                break;
            }
        }
        excuse
    }
}

/// The media type, without its parameters.
fn media_type(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    Some(value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}

/// How long the server wants to be left alone. A date is not read: no clock here is its clock.
fn wait(headers: &HeaderMap) -> Option<Duration> {
    let number = |name| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let ms = number("retry-after-ms").map(|ms| ms / 1_000.0);
    let seconds = ms.or_else(|| number("retry-after"))?;
    Duration::try_from_secs_f64(seconds).ok()
}
