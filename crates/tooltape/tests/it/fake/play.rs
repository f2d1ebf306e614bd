//! What a server has to say, request by request, and how it goes wrong.

use tooltape::wire::Api;

/// What the model says in one turn.
#[derive(Clone, Debug, Default)]
pub(crate) struct Said {
    pub(crate) parts: Vec<Part>,
    pub(crate) end: End,
}

/// Why the model stops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum End {
    /// It is done.
    #[default]
    Done,
    /// It ran out of room.
    TooLong,
    /// For a reason that nobody has heard of.
    Odd,
}

/// A part of what the model says.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    /// What it thinks.
    Thought(String),
    Text(String),
    /// A call: its id, its tool and its arguments. A server that has none leaves it out.
    Call(String, String, String),
}

/// What a server does with one request.
#[derive(Clone, Debug)]
pub(crate) enum Play {
    /// It tells the turn.
    Turn(Said),
    /// It tells the turn a few bytes at a time, and rests in between.
    Slowly(Said),
    /// It tells the turn, among events that nobody has heard of.
    Strangely(Said),
    /// It tells the turn, and closes the connection without having said that it would.
    Leaving(Said),
    /// It tells the turn up to the first place behind this text, and then this happens.
    Until(Said, &'static str, Then),
    /// It tells this under a status, with these headers, to its end.
    Answer(u16, Vec<(&'static str, String)>, Vec<u8>),
    /// It never stops telling this, under a status.
    Endlessly(u16, Vec<(&'static str, String)>, Vec<u8>),
    /// It says nothing at all.
    Hang,
    /// It closes the connection before it says anything.
    Close,
}

/// What happens in the midst of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// The connection is lost.
    Cut,
    /// The connection is lost behind the event that this stands in.
    CutBehind,
    /// Nothing more comes.
    Hang,
}

/// The model says this.
pub(crate) fn said(parts: impl IntoIterator<Item = Part>) -> Said {
    Said { parts: parts.into_iter().collect(), end: End::Done }
}

/// A call, with an id as this API makes them.
pub(crate) fn call(api: Api, no: u32, name: &str, arguments: &str) -> Part {
    let id = match api {
        Api::OpenAi | Api::Responses | Api::Compatible => format!("call_{no:024}"),
        Api::Anthropic => format!("toolu_{no:022}"),
        Api::Mistral => format!("m{no:08}"),
        // Its models seldom name their calls.
        Api::Gemini => String::new(),
    };
    Part::Call(id, name.to_owned(), arguments.to_owned())
}

/// A thought.
pub(crate) fn thought(text: &str) -> Part {
    Part::Thought(text.to_owned())
}

impl From<&str> for Part {
    fn from(text: &str) -> Part {
        Part::Text(text.to_owned())
    }
}

impl Said {
    /// It stops for this reason.
    pub(crate) fn ending(mut self, end: End) -> Said {
        self.end = end;
        self
    }

    /// Whether it proposes something.
    pub(super) fn calls(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Call(..)))
    }
}

impl Play {
    /// An answer of JSON.
    pub(crate) fn json(status: u16, body: &str) -> Play {
        let kind = ("content-type", "application/json".to_owned());
        Play::Answer(status, vec![kind], body.as_bytes().to_vec())
    }

    /// A stream of these bytes.
    pub(crate) fn stream(body: impl Into<Vec<u8>>) -> Play {
        let kind = ("content-type", "text/event-stream".to_owned());
        Play::Answer(200, vec![kind], body.into())
    }

    /// A page of HTML.
    pub(crate) fn html(status: u16) -> Play {
        let kind = ("content-type", "text/html; charset=utf-8".to_owned());
        let page = "<!DOCTYPE html>\n<html><body><h1>Bad gateway</h1></body></html>\n";
        Play::Answer(status, vec![kind], page.into())
    }
}
