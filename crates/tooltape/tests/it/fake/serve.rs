//! Just enough of HTTP/1.1 to be asked, to answer, and to break off.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::play::{Part, Play, Said, Then};
use super::{Asked, Refusal, Seen, State, check, events, lock, refusal, whole};

/// The pieces in which answers come: no vendor promises any.
const PIECES: [usize; 8] = [1, 2, 3, 5, 7, 64, 11, 301];
/// How long a slow server rests between two pieces.
const REST: Duration = Duration::from_millis(2);
/// What nobody has heard of.
const STRANGE: &str = ": still here\n\nevent: vendor.unheard\nid: 7\nretry: 5\n\
    data: {\"type\":\"vendor.unheard\",\"vendor\":{\"unheard\":[1]}}\n\n";

/// Takes connections, one after the other.
pub(super) async fn accept(listener: TcpListener, state: Arc<State>) {
    while let Ok((stream, _)) = listener.accept().await {
        stream.set_nodelay(true).ok();
        tokio::spawn(talk(stream, Arc::clone(&state)));
    }
}

/// Answers what is asked on one connection, until an answer ends it.
async fn talk(mut stream: TcpStream, state: Arc<State>) {
    let mut buffer = Vec::new();
    while let Some((line, headers, body)) = read(&mut stream, &mut buffer).await {
        let (at, refused) = (Instant::now(), None);
        let mut seen = Seen { line, headers, body, at, refused };
        let found = judge(&state, &seen);
        seen.refused = found.as_ref().map(|refusal| refusal.told.clone());
        let is_streamed = is_streamed(&seen);
        lock(&state.seen).push(seen);
        state.asked.send_modify(|count| *count += 1);
        let play = match found {
            Some(found) => {
                let body = refusal(state.api, &found).to_string();
                Play::json(found.status, &body)
            }
            None => next(&state),
        };
        if answer(&mut stream, &state, play, is_streamed).await.is_none() {
            return;
        }
    }
}

/// What is wrong with a request.
pub(super) fn judge(state: &State, seen: &Seen) -> Option<Refusal> {
    let mut words = seen.line.split(' ');
    let (method, path) = (words.next().unwrap(), words.next().unwrap());
    // A proxy is told the whole address.
    let path = path.strip_prefix("http://").and_then(|it| it.find('/').map(|at| &it[at..]));
    let path = path.unwrap_or_else(|| seen.line.split(' ').nth(1).unwrap());
    if method != "POST" {
        let told = format!("`{method}` is not allowed");
        return Some(Refusal { status: 405, kind: "invalid_request_error", told });
    }
    let thoughts = lock(&state.thoughts).clone();
    let key = *lock(&state.key);
    check(state.api, &Asked { path, seen, key, thoughts: &thoughts }).err()
}

fn next(state: &State) -> Play {
    let over = Play::json(418, r#"{"error":{"message":"the play is over"}}"#);
    let play = lock(&state.plays).pop_front().unwrap_or(over);
    if let Play::Turn(said) | Play::Slowly(said) | Play::Strangely(said) = &play {
        // What leads to an answer is of no use to anybody once it is given.
        let thoughts = said.parts.iter().filter_map(|part| match part {
            Part::Thought(text) if said.calls() => super::sealed(state.api, text),
            Part::Thought(_) | Part::Text(_) | Part::Call(..) => None,
        });
        lock(&state.thoughts).extend(thoughts);
    }
    play
}

fn is_streamed(seen: &Seen) -> bool {
    seen.body["stream"] == true || seen.line.contains(":streamGenerateContent?alt=sse")
}

/// Plays. Nothing is returned where the connection is over.
async fn answer(stream: &mut TcpStream, state: &State, play: Play, streamed: bool) -> Option<()> {
    match play {
        Play::Turn(said) => tell(stream, state, &told(state, &said, streamed), None).await,
        Play::Slowly(said) => tell(stream, state, &told(state, &said, streamed), Some(REST)).await,
        Play::Strangely(said) => {
            let strange: String = match streamed {
                true => events(state.api, &said).iter().flat_map(|it| [STRANGE, it]).collect(),
                false => return tell(stream, state, &told(state, &said, streamed), None).await,
            };
            tell(stream, state, &(kind(streamed), strange.into_bytes()), None).await
        }
        Play::Leaving(said) => {
            tell(stream, state, &told(state, &said, streamed), None).await?;
            // It closes just when something more comes.
            stream.read_u8().await.ok();
            None
        }
        Play::Until(said, mark, then) => {
            let (kind, body) = told(state, &said, streamed);
            let text = String::from_utf8(body).unwrap();
            let mut end = text.find(mark).expect("the mark is in the answer") + mark.len();
            if then == Then::CutBehind {
                end = text[end..].find("\n\n").map_or(end, |more| end + more + 2);
            }
            head(stream, 200, &kind).await?;
            pieces(stream, &text.as_bytes()[..end], None).await?;
            match then {
                Then::Cut | Then::CutBehind => None,
                Then::Hang => hang(stream, state).await,
            }
        }
        Play::Answer(status, headers, body) => {
            head(stream, status, &headers).await?;
            pieces(stream, &body, None).await?;
            write(stream, b"0\r\n\r\n").await
        }
        Play::Endlessly(status, headers, body) => {
            head(stream, status, &headers).await?;
            while chunk(stream, &body).await.is_some() {}
            state.closed.send_modify(|count| *count += 1);
            None
        }
        Play::Hang => hang(stream, state).await,
        Play::Close => None,
    }
}

type Told = (Vec<(&'static str, String)>, Vec<u8>);

fn kind(streamed: bool) -> Vec<(&'static str, String)> {
    let kind = if streamed { "text/event-stream; charset=utf-8" } else { "application/json" };
    vec![("content-type", kind.to_owned())]
}

fn told(state: &State, said: &Said, streamed: bool) -> Told {
    let body = match streamed {
        true => events(state.api, said).concat(),
        false => whole(state.api, said).to_string(),
    };
    (kind(streamed), body.into_bytes())
}

async fn tell(
    stream: &mut TcpStream,
    state: &State,
    (headers, body): &Told,
    rest: Option<Duration>,
) -> Option<()> {
    let sent = async {
        head(stream, 200, headers).await?;
        pieces(stream, body, rest).await?;
        write(stream, b"0\r\n\r\n").await
    };
    let sent = sent.await;
    if sent.is_none() {
        state.closed.send_modify(|count| *count += 1);
    }
    sent
}

/// Waits until the other side closes.
async fn hang(stream: &mut TcpStream, state: &State) -> Option<()> {
    let mut byte = [0];
    let read = stream.read(&mut byte).await;
    assert!(matches!(read, Ok(0) | Err(_)), "nobody speaks before they are answered");
    state.closed.send_modify(|count| *count += 1);
    None
}

async fn head(
    stream: &mut TcpStream,
    status: u16,
    headers: &[(&'static str, String)],
) -> Option<()> {
    let mut head = format!("HTTP/1.1 {status} Said\r\ntransfer-encoding: chunked\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    write(stream, head.as_bytes()).await
}

async fn pieces(stream: &mut TcpStream, body: &[u8], rest: Option<Duration>) -> Option<()> {
    let (mut left, mut sizes) = (body, PIECES.iter().cycle());
    while !left.is_empty() {
        // What is long is not cut more often for it.
        let size = sizes.next().unwrap().max(&(body.len() / 1_000)).min(&left.len()).to_owned();
        let (piece, more) = left.split_at(size);
        chunk(stream, piece).await?;
        if let Some(rest) = rest {
            tokio::time::sleep(rest).await;
        }
        left = more;
    }
    Some(())
}

async fn chunk(stream: &mut TcpStream, piece: &[u8]) -> Option<()> {
    let mut frame = format!("{:x}\r\n", piece.len()).into_bytes();
    frame.extend_from_slice(piece);
    frame.extend_from_slice(b"\r\n");
    write(stream, &frame).await
}

async fn write(stream: &mut TcpStream, bytes: &[u8]) -> Option<()> {
    stream.write_all(bytes).await.ok()
}

type Read = (String, Vec<(String, String)>, Value);

/// The next request: its first line, its headers and its body.
async fn read(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Read> {
    let end = loop {
        match buffer.windows(4).position(|it| it == b"\r\n\r\n") {
            Some(end) => break end,
            None if stream.read_buf(buffer).await.ok()? == 0 => return None,
            None => {}
        }
    };
    let head = String::from_utf8(buffer[..end].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let line = lines.next().unwrap().to_owned();
    let headers = lines.filter_map(|line| line.split_once(':'));
    let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()));
    let headers: Vec<_> = headers.collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.map_or(0, |(_, value)| value.parse().unwrap());
    let whole = end + 4 + length;
    while buffer.len() < whole {
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
    let body = serde_json::from_slice(&buffer[end + 4..whole]).unwrap_or(Value::Null);
    buffer.drain(..whole);
    Some((line, headers, body))
}
