//! `ask_user`: a question to the person for whom the agent works.

use std::sync::Arc;

use serde::Serialize;
use tooltape::schemars::JsonSchema;
use tooltape::{BoxFuture, Grant, ToolError, input, tool};

use crate::workspace::shown;

/// The longest question, in bytes.
pub const QUESTION_BYTES_MAX: usize = 4_096;
/// The most answers to choose from.
pub const CHOICES_MAX: usize = 10;
/// The longest answer, in bytes; what is beyond is cut.
pub const ANSWER_BYTES_MAX: usize = 16 << 10;

/// A question to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Question {
    /// What a model asks, as it wrote it.
    pub text: String,
    /// Answers to choose from. None where any will do.
    pub choices: Vec<String>,
}

/// Who answers; nobody, where there is nothing.
type Ask = Arc<dyn Fn(Question) -> BoxFuture<'static, Option<String>> + Send + Sync>;

/// The way to the person for whom an agent works, as the host has it: a terminal, a chat, a form.
///
/// ```
/// use tooltape_kit::AskUser;
///
/// let ask = AskUser::by(|question| {
///     Box::pin(async move { question.choices.first().cloned() })
/// });
/// # let _ = ask;
/// ```
#[derive(Clone)]
pub struct AskUser(Option<Ask>);

impl AskUser {
    /// Asks by this function, which returns nothing where there is no answer. What a model wrote
    /// must not be shown without care: it may hold whatever steers a terminal.
    pub fn by(
        ask: impl Fn(Question) -> BoxFuture<'static, Option<String>> + Send + Sync + 'static,
    ) -> AskUser {
        AskUser(Some(Arc::new(ask)))
    }

    /// There is nobody to ask.
    pub fn nobody() -> AskUser {
        AskUser(None)
    }
}

impl Grant for AskUser {}

// A doc comment here would reach the model, which reads the tool's already.
#[input(check)]
pub(super) struct Asked {
    /// The question, with all that the user needs to know to answer it.
    question: String,
    /// Answers to choose from, at most 10. The user may still answer otherwise.
    #[serde(default)]
    choices: Vec<String>,
}

impl Asked {
    fn check(&self) -> Result<(), String> {
        let is_fit = |text: &String| !text.trim().is_empty() && text.len() <= QUESTION_BYTES_MAX;
        if !is_fit(&self.question) {
            let expected = format!("expected a text of 1 to {QUESTION_BYTES_MAX} bytes");
            return Err(format!("/question: {expected}"));
        }
        match self.choices.len() <= CHOICES_MAX && self.choices.iter().all(is_fit) {
            true => Ok(()),
            false => Err(format!("/choices: expected at most {CHOICES_MAX}, none of them empty")),
        }
    }
}

/// What `ask_user` returns.
#[derive(Serialize, JsonSchema)]
#[schemars(crate = "tooltape::schemars")]
pub(super) struct Answered {
    /// What the user said.
    answer: String,
}

/// Asks the user a question, and waits for the answer. Use it only for what you cannot find out
/// yourself. Where nobody is there to be asked it fails, and you must decide yourself.
#[tool(
    Read,
    exclusive,
    trusted,
    version = "0.1.0",
    output = Answered,
    wall_ms = 3_600_000,
    idle_ms = 3_600_000
)]
pub(super) async fn ask_user(args: Asked, user: AskUser) -> Result<Answered, ToolError> {
    let nobody = || {
        ToolError::not_done("nobody is there to be asked: decide yourself, or say what is missing")
            .code("nobody_to_ask")
    };
    let ask = user.0.ok_or_else(nobody)?;
    let question = Question { text: args.question, choices: args.choices };
    let answer = ask(question).await.ok_or_else(nobody)?;
    let answer = match answer.len() > ANSWER_BYTES_MAX {
        true => shown(&answer, ANSWER_BYTES_MAX),
        false => answer,
    };
    Ok(Answered { answer })
}
