//! What it costs to read what a model says.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::hint::black_box;

use eventsource_stream::Eventsource as _;
use futures_util::{StreamExt as _, stream};
use serde_json::Value;
use tokio::runtime::Builder;
use tooltape::wire::{Api, Decoder};
use tooltape::{Delta, Turn};

use crate::race::{Effort, Lane, Measured, Racer, race};

/// The bytes that come at once, as they do from a network.
const PIECE_BYTES: usize = 1_400;
/// The events of the stream that is decoded.
const EVENTS: usize = 7_000;
/// The bytes of the smaller event, and of the smaller argument. The larger has 16 times as many.
const SMALL_BYTES: [usize; 2] = [100_000, 65_536];

/// `sse.decode`: a streamed answer, decoded as the usual crate and a `Value` an event do it,
/// against our own time.
pub fn decode(effort: Effort) -> Measured {
    let delta = |at: usize| format!("{{\"content\":\"{:>5}\"}}", at % 100_000);
    let events = EVENTS / effort.shrink;
    let stream: String = (0..events).map(|at| chunk(&delta(at), "null")).collect();
    let stream = stream + &chunk("{}", "\"stop\"") + "data: [DONE]\n\n";
    let runtime = Builder::new_current_thread().build().expect("a thread can have a runtime");
    let named = |what: &str| format!("{what}, {} bytes", stream.len());
    let lanes = race(
        effort,
        [
            Racer::new(named("tooltape: decoder"), || {
                let turn = decoded(Api::OpenAi, black_box(&stream));
                assert_eq!(turn.text.map(|text| text.len()), Some(5 * events));
            }),
            Racer::new(named("eventsource-stream and `Value`"), || {
                let text = runtime.block_on(usual(black_box(&stream)));
                assert_eq!(text.len(), 5 * events);
            }),
        ],
    );
    Measured::of(lanes[1].ratio, &lanes)
}

/// `sse.growth`: an event 16 times as large.
pub fn growth(effort: Effort) -> Measured {
    let large = |bytes: usize| chunk(&format!("{{\"content\":\"{}\"}}", "x".repeat(bytes)), "null");
    grown(effort, "an event", SMALL_BYTES[0], large)
}

/// `sse.argument`: arguments 16 times as large, in pieces of five bytes.
pub fn argument(effort: Effort) -> Measured {
    grown(effort, "arguments", SMALL_BYTES[1], |bytes| {
        let call = |more: &str| format!("{{\"tool_calls\":[{{\"index\":0,{more}}}]}}");
        let begin = r#""id":"a","function":{"name":"write","arguments":""}"#;
        let mut stream = chunk(&call(begin), "null");
        for _ in 0..bytes / 5 {
            let more = call(r#""function":{"arguments":"[1,2,"}"#);
            write!(stream, "{}", chunk(&more, "null")).expect("a string takes everything");
        }
        stream
    })
}

/// What something takes that is 16 times as large, through what the smaller takes.
fn grown(effort: Effort, what: &str, bytes: usize, of: impl Fn(usize) -> String) -> Measured {
    let bytes = bytes / effort.shrink;
    let streams = [of(bytes), of(16 * bytes)];
    let racer = |at: usize| {
        let name =
            format!("tooltape: {what} of {} bytes", if at == 0 { bytes } else { 16 * bytes });
        let stream = &streams[at];
        Racer::new(name, move || {
            black_box(decoded(Api::OpenAi, black_box(stream)));
        })
    };
    let lanes: [Lane; 2] = race(effort, [racer(0), racer(1)]);
    Measured::of(lanes[1].ratio, &lanes)
}

/// An event of Chat Completions, with what stands around it there.
fn chunk(delta: &str, finish_reason: &str) -> String {
    format!(
        "data: {{\"id\":\"chatcmpl-BQ6fH8wvxBb1dTJGlwD3bYjKq4OhR\",\
         \"object\":\"chat.completion.chunk\",\"created\":1746000000,\
         \"model\":\"gpt-4.1-mini-2025-04-14\",\"service_tier\":\"default\",\
         \"system_fingerprint\":\"fp_1234567890\",\"choices\":[{{\"index\":0,\
         \"delta\":{delta},\"logprobs\":null,\"finish_reason\":{finish_reason}}}]}}\n\n"
    )
}

fn decoded(api: Api, stream: &str) -> Turn {
    let mut decoder = Decoder::new(api);
    for piece in stream.as_bytes().chunks(PIECE_BYTES) {
        let mut told = |delta: Delta<'_>| {
            black_box(delta);
        };
        decoder.feed(piece, &mut told).expect("it is a stream");
    }
    decoder.finish().expect("it is a stream")
}

/// What is said, as most read it.
async fn usual(stream: &str) -> String {
    let pieces = stream.as_bytes().chunks(PIECE_BYTES).map(Ok::<_, Infallible>);
    let mut events = stream::iter(pieces).eventsource();
    let mut text = String::new();
    while let Some(event) = events.next().await {
        let event = event.expect("it is a stream");
        if let Ok(value) = serde_json::from_str::<Value>(&event.data) {
            text.push_str(value["choices"][0]["delta"]["content"].as_str().unwrap_or_default());
        }
    }
    text
}
