//! One decoder for what a model says, streamed or whole.

use super::anthropic::decode::Messages;
use super::draft::{Draft, TURN_BYTES_MAX, Told};
use super::failure::{garbled, told as failed};
use super::gemini::decode::Gemini;
use super::openai::decode::Chat;
use super::responses::decode::Responses;
use super::{Api, Sse, SseEvent};
use crate::model::{Delta, ModelError, Turn};

/// Reads a turn from a streamed answer.
///
/// A stream that ends before the model does makes a turn that was [cut
/// off](crate::TurnStop::Cut), with all that was said and proposed until then, and so does a reason
/// to stop that nobody knows: nothing of such a turn is executed. Clones go on by themselves.
///
/// ```
/// use tooltape::TurnStop;
/// use tooltape::wire::{Api, Decoder};
///
/// let mut decoder = Decoder::new(Api::OpenAi);
/// let mut heard = String::new();
/// for said in [r#"{"content":"Hel"}"#, r#"{"content":"lo"}"#] {
///     let event = format!("data: {{\"choices\":[{{\"delta\":{said}}}]}}\n\n");
///     decoder.feed(event.as_bytes(), &mut |delta| heard += &format!("{delta:?} "))?;
/// }
/// assert_eq!(heard, "Text(\"Hel\") Text(\"lo\") ");
/// assert_eq!(decoder.clone().finish()?.stop, TurnStop::Cut);
/// let end = b"data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
/// decoder.feed(end, &mut |_| {})?;
/// assert_eq!(decoder.finish()?.text.as_deref(), Some("Hello"));
/// # Ok::<(), tooltape::ModelError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Decoder {
    sse: Sse,
    reader: Reader,
    /// What ended it, and ends it again.
    failed: Option<ModelError>,
}

/// What an API says, and the turn that it makes.
#[derive(Clone, Debug)]
struct Reader {
    api: Api,
    dialect: Dialect,
    draft: Draft,
    /// Whether any event has come.
    heard: bool,
}

#[derive(Clone, Debug)]
enum Dialect {
    Chat(Chat),
    Responses(Responses),
    Messages(Messages),
    Gemini(Gemini),
}

impl Decoder {
    /// A decoder of one turn.
    pub fn new(api: Api) -> Decoder {
        Decoder { sse: Sse::default(), reader: Reader::new(api), failed: None }
    }

    /// Takes the next bytes of a stream, and tells what the model says in them.
    ///
    /// An error, also one that the provider tells in its stream, is the end of the turn.
    pub fn feed(
        &mut self,
        bytes: &[u8],
        told: &mut dyn FnMut(Delta<'_>),
    ) -> Result<(), ModelError> {
        let Decoder { sse, reader, failed } = self;
        if let Some(err) = failed {
            return Err(err.clone());
        }
        let fed = sse.feed(bytes, |event| reader.take(event, told));
        *failed = fed.as_ref().err().cloned();
        fed
    }

    /// The provider's own word for why the model stopped, once it has said so.
    pub fn stop_reason(&self) -> Option<&str> {
        self.reader.draft.stop_word()
    }

    /// The turn, now that nothing more comes.
    ///
    /// An end that lacks no more than the blank line behind it counts. What is no stream of events
    /// at all, such as a page of HTML, is an error.
    pub fn finish(self) -> Result<Turn, ModelError> {
        let Decoder { sse, mut reader, failed } = self;
        if let Some(err) = failed {
            return Err(err);
        }
        if let Some(data) = sse.undispatched() {
            let event = SseEvent { name: "", data: &data, id: "" };
            let (mut ended, mut is_heard) = (reader.clone(), false);
            if ended.take(event, &mut |_| is_heard = true).is_ok() && !is_heard {
                reader = ended;
            }
        }
        match sse.strange().filter(|_| !reader.heard) {
            Some(line) => Err(garbled(&"no stream of events", &line)),
            None => reader.finish(),
        }
    }
}

/// Reads a turn from an answer that came whole.
///
/// ```
/// use tooltape::wire::{Api, decode};
///
/// let body = br#"{"content":[{"type":"text","text":"Hello"}],"stop_reason":"end_turn"}"#;
/// assert_eq!(decode(Api::Anthropic, body)?.text.as_deref(), Some("Hello"));
/// # Ok::<(), tooltape::ModelError>(())
/// ```
pub fn decode(api: Api, body: &[u8]) -> Result<Turn, ModelError> {
    if body.len() > TURN_BYTES_MAX {
        let why = format!("an answer with more than {TURN_BYTES_MAX} bytes");
        return Err(ModelError::Garbled(why));
    }
    let body = String::from_utf8_lossy(body);
    let mut reader = Reader::new(api);
    reader.take_whole(&body, &mut |_| {})?;
    match reader.draft.has_begun() || reader.draft.stop_word().is_some_and(|word| !word.is_empty())
    {
        true => reader.finish(),
        false => Err(garbled(&"no turn of a model", &body)),
    }
}

impl Reader {
    fn new(api: Api) -> Reader {
        let dialect = match api {
            Api::OpenAi | Api::Mistral | Api::Compatible => Dialect::Chat(Chat::default()),
            Api::Responses => Dialect::Responses(Responses::default()),
            Api::Anthropic => Dialect::Messages(Messages::default()),
            Api::Gemini => Dialect::Gemini(Gemini::default()),
        };
        Reader { api, dialect, draft: Draft::default(), heard: false }
    }

    fn take(&mut self, event: SseEvent<'_>, told: Told<'_>) -> Result<(), ModelError> {
        let SseEvent { name, data, .. } = event;
        // Some servers keep a connection awake with events that say nothing.
        if data.trim().is_empty() {
            return Ok(());
        }
        self.heard = true;
        if name == "error" {
            return Err(failed(data));
        }
        match &mut self.dialect {
            Dialect::Chat(chat) => chat.take(&mut self.draft, data, told),
            Dialect::Responses(responses) => responses.take(&mut self.draft, data, told),
            Dialect::Messages(messages) => messages.take(&mut self.draft, data, told),
            Dialect::Gemini(gemini) => gemini.take(&mut self.draft, data, told),
        }
    }

    fn take_whole(&mut self, body: &str, told: Told<'_>) -> Result<(), ModelError> {
        match &mut self.dialect {
            Dialect::Chat(chat) => chat.take_whole(&mut self.draft, body, told),
            Dialect::Responses(responses) => responses.take_whole(&mut self.draft, body, told),
            Dialect::Messages(messages) => messages.take_whole(&mut self.draft, body, told),
            Dialect::Gemini(gemini) => gemini.take(&mut self.draft, body, told),
        }
    }

    fn finish(mut self) -> Result<Turn, ModelError> {
        match &mut self.dialect {
            Dialect::Chat(chat) => chat.close(&mut self.draft)?,
            Dialect::Gemini(gemini) => gemini.close(&mut self.draft, &mut |_| {})?,
            Dialect::Responses(_) | Dialect::Messages(_) => {}
        }
        Ok(self.draft.finish(self.api.name()))
    }
}
