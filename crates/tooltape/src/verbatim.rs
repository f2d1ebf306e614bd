//! What only a model's provider can read of its turn, kept word for word to be shown to it again.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The bytes of a turn that are kept for its provider. What has more is not kept at all.
pub const VERBATIM_BYTES_MAX: usize = 4 << 20;

/// A turn as its provider wrote it: reasoning, signatures and items of its own, among what was
/// said and proposed.
///
/// The parts stand in the order of the turn. What was said and proposed is in the turn itself, so
/// that a part only says that it came here.
///
/// ```
/// use tooltape::{Part, Verbatim};
///
/// let thought = Part::Opaque(r#"{"type":"thinking","signature":"…"}"#.into());
/// let verbatim = Verbatim::new("anthropic", vec![thought, Part::Text(5)]).unwrap();
/// let verbatim = verbatim.written_by("claude-opus-4-5");
/// assert!(verbatim.is_of("anthropic", "claude-opus-4-5"));
/// assert!(!verbatim.is_of("anthropic", "claude-haiku-4-5"));
/// assert!(verbatim.fits(Some("hello"), 0));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verbatim {
    api: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<Arc<str>>,
    parts: Vec<Part>,
}

/// A part of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The next bytes of what was said.
    Text(usize),
    /// The next proposal, with what its provider wants to see beside it, as JSON.
    Call(Option<Arc<str>>),
    /// Something that only the provider can read, as JSON.
    Opaque(Arc<str>),
}

impl Verbatim {
    /// Keeps these parts for an API. `None` where there is nothing that a plain turn would not say
    /// as well, or more than [`VERBATIM_BYTES_MAX`].
    pub fn new(api: impl Into<Arc<str>>, parts: Vec<Part>) -> Option<Verbatim> {
        let verbatim = Verbatim { api: api.into(), model: None, parts };
        (1..=VERBATIM_BYTES_MAX).contains(&verbatim.bytes()).then_some(verbatim)
    }

    /// The same, written by this model, which alone can read it.
    pub fn written_by(self, model: impl Into<Arc<str>>) -> Verbatim {
        Verbatim { model: Some(model.into()), ..self }
    }

    /// The API that wrote it.
    pub fn api(&self) -> &str {
        &self.api
    }

    /// The model that wrote it, where that was kept.
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// The bytes of what only the provider can read.
    pub fn bytes(&self) -> usize {
        self.opaque().map(str::len).sum()
    }

    /// The parts, in the order of the turn.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// What only the provider can read, each as JSON.
    pub fn opaque(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text(_) | Part::Call(None) => None,
            Part::Call(Some(json)) | Part::Opaque(json) => Some(&**json),
        })
    }

    /// Whether this model of this API can read it. One that does not say which model wrote it is
    /// read by all of its API.
    pub fn is_of(&self, api: &str, model: &str) -> bool {
        *self.api == *api && self.model().is_none_or(|writer| writer == model)
    }

    /// Whether it can stand for a turn that said this and proposed so many calls.
    pub fn fits(&self, text: Option<&str>, proposals: usize) -> bool {
        let text = text.unwrap_or_default();
        let mut calls = 0;
        let mut said = Some(0_usize);
        for part in &self.parts {
            match part {
                Part::Text(bytes) => {
                    said = said.and_then(|at| at.checked_add(*bytes));
                    said = said.filter(|at| text.is_char_boundary(*at));
                }
                Part::Call(_) => calls += 1,
                Part::Opaque(_) => {}
            }
        }
        calls == proposals && said == Some(text.len())
    }
}
