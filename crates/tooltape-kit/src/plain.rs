//! Small tools that an agent's day needs: the time, hashes, a plan, and a question to its user.

mod ask_user;
mod hash_file;
mod now;
mod todo;

use std::sync::Arc;

use tooltape::Tool;

pub use ask_user::{ANSWER_BYTES_MAX, AskUser, CHOICES_MAX, QUESTION_BYTES_MAX, Question};
pub use hash_file::HASH_BYTES_MAX;
pub use todo::{Plan, Progressed, STEP_BYTES_MAX, STEPS_MAX, Step};

/// The small tools: `now`, `hash_file`, `todo` and `ask_user`.
///
/// They need a [`Workspace`](crate::Workspace), the run's [`Plan`] as a
/// [`State`](tooltape::State), and somebody to [ask](AskUser).
///
/// ```
/// use tooltape::{Run, State, Toolbox};
/// use tooltape_kit::{AskUser, Plan, Workspace, plain_tools};
///
/// let folder = tempfile::tempdir().unwrap();
/// let run = Run::new(&Toolbox::new(plain_tools()).unwrap())
///     .grant(Workspace::open(folder.path()).unwrap())
///     .grant(State::new(Plan::default()))
///     .grant(AskUser::nobody());
/// assert!(run.missing_grants().is_empty());
/// ```
pub fn tools() -> [Arc<dyn Tool>; 4] {
    tooltape::tools![now::now, hash_file::hash_file, todo::todo, ask_user::ask_user]
}
