//! What a tool returned, before anything is done to it.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::artifact::ArtifactId;
use crate::canon::{Canon, Limits, Uncanonical, Unreadable};
use crate::fault::{BoundKind, Exceeded, Executed, ToolError};
use crate::label::{Label, joined};
use crate::spec::Errors;

/// A piece of content, as the model reads it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Block {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// A JSON value, shown as its canonical text.
    Json {
        /// The value.
        value: Canon,
    },
    /// An image.
    Image {
        /// Its media type, such as `image/png`.
        media_type: String,
        /// Its bytes in base64.
        data: String,
    },
    /// A link to a resource.
    ResourceLink {
        /// Where it is.
        uri: String,
        /// What it is called.
        title: Option<String>,
        /// Its media type.
        media_type: Option<String>,
    },
    /// Stands where output was left out because it was too long. Only the runtime makes one.
    #[non_exhaustive]
    LeftOut {
        /// How many bytes were left out.
        bytes: u64,
        /// Of how many.
        of: u64,
        /// Where all of them are, unless they could not be kept.
        artifact: Option<ArtifactId>,
    },
}

impl Block {
    /// A block of plain text.
    pub fn text(text: impl Into<String>) -> Block {
        Block::Text { text: text.into() }
    }
}

/// Blocks of content, in their order. One block alone, as most replies have it, needs no list.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Content {
    /// One block.
    One([Block; 1]),
    /// None, or several.
    Many(Vec<Block>),
}

impl Deref for Content {
    type Target = [Block];

    fn deref(&self) -> &[Block] {
        match self {
            Content::One(block) => block,
            Content::Many(blocks) => blocks,
        }
    }
}

// One block is one block, with a list or without.
impl PartialEq for Content {
    fn eq(&self, other: &Content) -> bool {
        **self == **other
    }
}

impl FromIterator<Block> for Content {
    fn from_iter<I: IntoIterator<Item = Block>>(blocks: I) -> Content {
        let blocks: Vec<Block> = blocks.into_iter().collect();
        <[Block; 1]>::try_from(blocks).map_or_else(Content::Many, Content::One)
    }
}

impl Content {
    /// The blocks as a list.
    pub(crate) fn into_vec(self) -> Vec<Block> {
        match self {
            Content::One(block) => block.into(),
            Content::Many(blocks) => blocks,
        }
    }
}

/// What a tool returned: a value for the application, content for the model, details for the host.
///
/// Most tools return a type that serialises, and never meet this one.
///
/// ```
/// use tooltape::{Block, Output};
/// let output = Output::text("two files changed").detail(serde_json::json!({ "files": 2 }));
/// assert_eq!(output.content(), [Block::text("two files changed")]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Output {
    pub(crate) value: Option<Canon>,
    pub(crate) content: Vec<Block>,
    pub(crate) details: Option<Box<Value>>,
    pub(crate) metadata: Option<Box<Value>>,
    pub(crate) stop: bool,
    pub(crate) source: Source,
    pub(crate) label: Option<Arc<Label>>,
}

/// Where a result came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The tool ran.
    #[default]
    Tool,
    /// An earlier result of the same call was used.
    Cache,
    /// A recording or a stand-in answered.
    Mock,
    /// There is no result.
    Error,
}

impl Output {
    /// Text for the model, which is also the value.
    pub fn text(text: impl Into<String>) -> Output {
        let text = text.into();
        Output { value: Some(Canon::string(&text)), ..Output::of(Block::text(text)) }
    }

    /// A value that serialises. The model reads its canonical text.
    pub fn value(value: &impl Serialize) -> Result<Output, ToolError> {
        let value = Canon::within(value, &Limits::RESULT).map_err(unserialisable)?;
        Ok(Output { value: Some(value), ..Output::default() })
    }

    /// One block of content, and no value.
    pub fn of(block: Block) -> Output {
        Output { content: vec![block], ..Output::default() }
    }

    /// Adds a block of content. Where there is any, the model reads it instead of the value.
    #[must_use]
    pub fn block(mut self, block: Block) -> Output {
        self.content.push(block);
        self
    }

    /// Adds details that only the host reads.
    #[must_use]
    pub fn detail(mut self, details: Value) -> Output {
        self.details = Some(details.into());
        self
    }

    /// Says whom the result may come from and whom it is not for, beyond what the tool's
    /// [declaration](crate::Spec::labelled) says of all its results. It only ever adds to that.
    #[must_use]
    pub fn labelled(mut self, label: Label) -> Output {
        self.label = joined(self.label.as_ref(), label.kept().as_ref());
        self
    }

    /// Adds metadata that a provider understands.
    #[must_use]
    pub fn metadata(mut self, metadata: Value) -> Output {
        self.metadata = Some(metadata.into());
        self
    }

    /// Says that this did not come from the tool itself. For performers.
    #[must_use]
    pub fn from_source(mut self, source: Source) -> Output {
        self.source = source;
        self
    }

    /// The same output with another value, which the model reads instead of any content.
    pub fn with_value(self, value: &impl Serialize) -> Result<Output, ToolError> {
        let Output { value, .. } = Output::value(value)?;
        Ok(Output { value, content: Vec::new(), ..self })
    }

    /// The value, where there is one.
    pub fn canon(&self) -> Option<&Canon> {
        self.value.as_ref()
    }

    /// The content given so far.
    pub fn content(&self) -> &[Block] {
        &self.content
    }
}

fn unserialisable(err: Uncanonical) -> ToolError {
    if let Uncanonical::Unreadable(Unreadable::TooLong { limit, found }) = err {
        return ToolError::beyond(Exceeded {
            bound: BoundKind::OutputBytes,
            limit: limit as u64,
            used: Some(found as u64),
            executed: Executed::Executed,
        });
    }
    ToolError::tell("the tool's output could not be serialised")
        .code("output.unserialisable")
        .because(err)
}

/// A result that votes to end the run: `Ok(Stop(value))`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop<T>(pub T);

/// A type that a tool may return.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a tool's output",
    label = "a tool returns `Result<T, E>` where `T` serialises",
    note = "derive `serde::Serialize` for `{Self}`, or return `tooltape::Output`"
)]
pub trait IntoOutput: Send {
    /// Converts it, or says why it cannot be serialised.
    fn into_output(self) -> Result<Output, ToolError>;
}

#[diagnostic::do_not_recommend]
impl<T: Serialize + Send> IntoOutput for T {
    fn into_output(self) -> Result<Output, ToolError> {
        Output::value(&self)
    }
}

impl IntoOutput for Output {
    fn into_output(self) -> Result<Output, ToolError> {
        Ok(self)
    }
}

impl<T: IntoOutput> IntoOutput for Stop<T> {
    fn into_output(self) -> Result<Output, ToolError> {
        Ok(Output { stop: true, ..self.0.into_output()? })
    }
}

/// A type that a tool may fail with: a [`ToolError`], or anything that can be displayed.
///
/// The host always reads a plain error's text; the model reads only that the tool failed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a tool's error",
    label = "a tool fails with `ToolError`, or with anything that has a text",
    note = "write `impl std::fmt::Display for {Self}`, or turn it into a `tooltape::ToolError`"
)]
pub trait IntoToolError: Send {
    /// What such errors look like.
    #[doc(hidden)]
    const ERRORS: Errors;

    /// Converts it.
    fn into_tool_error(self) -> ToolError;
}

#[diagnostic::do_not_recommend]
impl<E: fmt::Display + Send> IntoToolError for E {
    const ERRORS: Errors = Errors::Text;

    fn into_tool_error(self) -> ToolError {
        // The alternate form is where errors with a chain of causes show all of it.
        ToolError::hidden(format!("{self:#}").into())
    }
}

impl IntoToolError for ToolError {
    const ERRORS: Errors = Errors::Structured;

    fn into_tool_error(self) -> ToolError {
        self
    }
}

/// What a tool returns: an output, or an error.
#[diagnostic::on_unimplemented(
    message = "a tool returns a `Result`, found `{Self}`",
    label = "expected `Result<output, error>`",
    note = "a tool that cannot fail returns `Result<{Self}, tooltape::ToolError>` all the same"
)]
pub trait IntoResult {
    /// What its errors look like.
    #[doc(hidden)]
    const ERRORS: Errors;

    /// Converts both sides.
    fn into_result(self) -> Result<Output, ToolError>;
}

impl<O: IntoOutput, E: IntoToolError> IntoResult for Result<O, E> {
    const ERRORS: Errors = E::ERRORS;

    fn into_result(self) -> Result<Output, ToolError> {
        self.map_err(IntoToolError::into_tool_error)?.into_output()
    }
}
