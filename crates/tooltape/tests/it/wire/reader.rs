//! Reads a request as the API would, by rules of its own, back into a transcript.

use std::borrow::Cow;

use serde_json::Value;
use tooltape::testing::{CallEntry, Entry, ReplyEntry, TranscriptRules, check_entries};
use tooltape::wire::Api;

/// A transcript, and the arguments of its calls as the API is shown them.
#[derive(Debug, Default)]
pub(crate) struct Read {
    pub(crate) entries: Vec<Entry<'static>>,
    pub(crate) arguments: Vec<Value>,
}

/// Reads a request, and checks it by the rules of the API.
pub(crate) fn read(api: Api, body: &[u8]) -> Result<Read, String> {
    let body: Value = serde_json::from_slice(body).map_err(|err| err.to_string())?;
    let mut read = Read::default();
    match api {
        Api::OpenAi | Api::Mistral | Api::Compatible => read.chat(api, &body)?,
        Api::Responses => read.responses(&body)?,
        Api::Anthropic => read.anthropic(&body)?,
        Api::Gemini => read.gemini(&body)?,
    }
    let providers: &[&str] = match api {
        Api::OpenAi => &["OpenAI Chat"],
        Api::Responses => &["OpenAI Responses"],
        Api::Anthropic => &["Anthropic", "Bedrock"],
        Api::Gemini => &["Gemini"],
        Api::Mistral => &["Mistral"],
        Api::Compatible => &["Ollama", "OpenAI Chat", "Bedrock"],
    };
    for rules in TranscriptRules::ALL.iter().filter(|it| providers.contains(&it.provider)) {
        check_entries(&read.entries, rules).map_err(|err| err.to_string())?;
    }
    let names = read.entries.iter().filter_map(|entry| match entry {
        Entry::Model { calls, .. } => Some(calls),
        Entry::User | Entry::Replies(_) => None,
    });
    for name in names.flatten().map(|call| &call.name) {
        let is_safe = tooltape::Name::new(name).is_ok();
        ensure(is_safe, || format!("the name `{name}` is none that it accepts"))?;
    }
    Ok(read)
}

fn ensure(is_kept: bool, why: impl Fn() -> String) -> Result<(), String> {
    if is_kept { Ok(()) } else { Err(why()) }
}

fn list(value: &Value) -> Result<&Vec<Value>, String> {
    value.as_array().ok_or_else(|| format!("no list: {value}"))
}

fn text(value: &Value) -> Result<String, String> {
    value.as_str().map(str::to_owned).ok_or_else(|| format!("no text: {value}"))
}

/// A text that says something.
fn said(value: &Value) -> Result<String, String> {
    let text = text(value)?;
    ensure(!text.trim().is_empty(), || "a blank text".to_owned())?;
    Ok(text)
}

impl Read {
    fn user(&mut self) {
        self.entries.push(Entry::User);
    }

    fn call(&mut self, id: &Value, name: &Value, arguments: Value) -> Result<(), String> {
        let id = if id.is_null() { String::new() } else { text(id)? };
        let call = CallEntry { id: Cow::Owned(id), name: Cow::Owned(text(name)?) };
        match self.entries.last_mut() {
            Some(Entry::Model { calls, .. }) => calls.push(call),
            _ => self.entries.push(Entry::Model { speaks: false, calls: vec![call] }),
        }
        self.arguments.push(arguments);
        Ok(())
    }

    fn speak(&mut self) {
        match self.entries.last_mut() {
            Some(Entry::Model { speaks, .. }) => *speaks = true,
            _ => self.entries.push(Entry::Model { speaks: true, calls: Vec::new() }),
        }
    }

    /// A reply. One that does not say of which tool it is takes the name of its call.
    fn reply(&mut self, id: &str, name: Option<String>, is_error: bool, text: String) {
        let called = self.entries.iter().rev().find_map(|entry| match entry {
            Entry::Model { calls, .. } => Some(calls),
            Entry::User | Entry::Replies(_) => None,
        });
        let called = called.and_then(|calls| calls.iter().find(|call| call.id == id));
        let name = name.or_else(|| called.map(|call| call.name.to_string())).unwrap_or_default();
        let (id, name, text) = (Cow::Owned(id.to_owned()), Cow::Owned(name), Cow::Owned(text));
        let reply = ReplyEntry { id, name, is_error, text };
        match self.entries.last_mut() {
            Some(Entry::Replies(replies)) => replies.push(reply),
            _ => self.entries.push(Entry::Replies(vec![reply])),
        }
    }

    fn chat(&mut self, api: Api, body: &Value) -> Result<(), String> {
        let mut before = "";
        for (at, message) in list(&body["messages"])?.iter().enumerate() {
            let (role, content) =
                (message["role"].as_str().unwrap_or_default(), &message["content"]);
            match role {
                "system" => ensure(at == 0, || "a system message in the midst".to_owned())?,
                "user" => {
                    let is_late = api == Api::Mistral && before == "tool";
                    ensure(!is_late, || "a user right behind a tool".to_owned())?;
                    match content {
                        Value::Array(parts) => parts.iter().try_for_each(|part| {
                            let is_text = part["type"] == "text";
                            if is_text { said(&part["text"]) } else { url(api, part) }.map(drop)
                        })?,
                        content => drop(said(content)?),
                    }
                    self.user();
                }
                "assistant" => {
                    let is_new = before != "assistant";
                    ensure(is_new, || "the model speaks twice".to_owned())?;
                    if content.as_str().is_some_and(|text| !text.is_empty()) || content.is_array() {
                        self.speak();
                    }
                    for call in message["tool_calls"].as_array().into_iter().flatten() {
                        let arguments = text(&call["function"]["arguments"])?;
                        let parsed = serde_json::from_str(&arguments);
                        let parsed = match api {
                            Api::OpenAi => parsed.unwrap_or_else(|_| arguments.into()),
                            _ => parsed.map_err(|err| format!("{arguments}: {err}"))?,
                        };
                        self.call(&call["id"], &call["function"]["name"], parsed)?;
                    }
                }
                "tool" => {
                    let told = match content {
                        Value::Array(parts) => {
                            ensure(api == Api::Mistral, || "parts of a result".to_owned())?;
                            parts[1..].iter().try_for_each(|part| url(api, part).map(drop))?;
                            text(&parts[0]["text"])?
                        }
                        content => text(content)?,
                    };
                    let name = message["name"].as_str().map(str::to_owned);
                    // Nothing but the text says that it failed.
                    let is_error = told.starts_with("not executed") || told.starts_with("failed");
                    self.reply(&text(&message["tool_call_id"])?, name, is_error, told);
                }
                role => return Err(format!("the role `{role}`")),
            }
            before = role;
        }
        Ok(())
    }

    fn responses(&mut self, body: &Value) -> Result<(), String> {
        ensure(body["store"] == false, || "the provider keeps it".to_owned())?;
        let mut thought = false;
        for item in list(&body["input"])? {
            match (item["type"].as_str().unwrap_or_default(), item["role"].as_str()) {
                ("message", Some("user")) => {
                    said(&item["content"])?;
                    self.user();
                }
                ("message", Some("assistant")) => {
                    said(&item["content"])?;
                    self.speak();
                }
                ("function_call", _) => {
                    let arguments = text(&item["arguments"])?;
                    let parsed = serde_json::from_str(&arguments);
                    let parsed = parsed.unwrap_or_else(|_| arguments.into());
                    self.call(&item["call_id"], &item["name"], parsed)?;
                }
                ("function_call_output", _) => {
                    let told = match &item["output"] {
                        Value::Array(parts) => {
                            let texts = parts.iter().filter(|it| it["type"] == "input_text");
                            let texts = texts.filter_map(|it| it["text"].as_str());
                            texts.collect::<Vec<_>>().join("\n")
                        }
                        output => text(output)?,
                    };
                    let is_error = told.starts_with("not executed") || told.starts_with("failed");
                    self.reply(&text(&item["call_id"])?, None, is_error, told);
                }
                ("reasoning", _) => {
                    let is_readable = item["encrypted_content"].is_string();
                    ensure(is_readable, || "a thought that the provider forgot".to_owned())?;
                    thought = true;
                    continue;
                }
                _ => continue,
            }
            thought = false;
        }
        ensure(!thought, || "a thought without what follows from it".to_owned())
    }

    fn anthropic(&mut self, body: &Value) -> Result<(), String> {
        ensure(body["max_tokens"].is_u64(), || "no limit of tokens".to_owned())?;
        let marks = body.to_string().matches("\"cache_control\"").count();
        ensure(marks <= 4, || format!("{marks} marks for the cache"))?;
        let mut before = "";
        for message in list(&body["messages"])? {
            let role = message["role"].as_str().unwrap_or_default();
            ensure(role != before, || format!("`{role}` twice"))?;
            before = role;
            let blocks = list(&message["content"])?;
            ensure(!blocks.is_empty(), || "an empty message".to_owned())?;
            for (at, block) in blocks.iter().enumerate() {
                match (role, block["type"].as_str().unwrap_or_default()) {
                    ("user", "text") => {
                        said(&block["text"])?;
                        self.user();
                    }
                    ("user", "tool_result") => {
                        let is_first = blocks[..at].iter().all(|it| it["type"] == "tool_result");
                        ensure(is_first, || "a reply behind a text".to_owned())?;
                        let content = list(&block["content"])?.iter();
                        let texts = content.filter(|it| it["type"] == "text");
                        let texts = texts.map(|it| said(&it["text"]));
                        let told = texts.collect::<Result<Vec<_>, _>>()?.join("\n");
                        let is_error = block["is_error"] == true;
                        self.reply(&text(&block["tool_use_id"])?, None, is_error, told);
                    }
                    ("assistant", "text") => {
                        said(&block["text"])?;
                        self.speak();
                    }
                    ("assistant", "tool_use") => {
                        ensure(block["input"].is_object(), || {
                            "input that is no object".to_owned()
                        })?;
                        self.call(&block["id"], &block["name"], block["input"].clone())?;
                    }
                    ("assistant", _) => {}
                    other => return Err(format!("a block that is none: {other:?}")),
                }
            }
        }
        Ok(())
    }

    fn gemini(&mut self, body: &Value) -> Result<(), String> {
        let mut before = "";
        for content in list(&body["contents"])? {
            let role = content["role"].as_str().unwrap_or_default();
            ensure(role != before, || format!("`{role}` twice"))?;
            before = role;
            let parts = list(&content["parts"])?;
            let kind = |part: &Value, kind: &str| part.get(kind).is_some();
            for part in parts {
                if let Some(call) = part.get("functionCall") {
                    ensure(call["args"].is_object(), || "arguments that are no object".to_owned())?;
                    self.call(&call["id"], &call["name"], call["args"].clone())?;
                } else if let Some(reply) = part.get("functionResponse") {
                    let (output, error) =
                        (&reply["response"]["output"], &reply["response"]["error"]);
                    let told = if error.is_null() { text(output)? } else { text(error)? };
                    let id = reply["id"].as_str().unwrap_or_default();
                    self.reply(id, Some(text(&reply["name"])?), !error.is_null(), told);
                } else if role == "model" && kind(part, "text") && part["thought"] != true {
                    self.speak();
                }
            }
            // Images and what the user says stand behind the replies, in the same content.
            if role == "user" && parts.iter().any(|it| kind(it, "text")) {
                self.user();
            }
        }
        Ok(())
    }
}

/// The image of a part.
fn url(api: Api, part: &Value) -> Result<String, String> {
    let url = if api == Api::Mistral { &part["image_url"] } else { &part["image_url"]["url"] };
    text(url).and_then(|url| {
        ensure(url.starts_with("data:image/png;base64,"), || url.clone())?;
        Ok(url)
    })
}
