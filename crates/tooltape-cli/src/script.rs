//! The files that scripts are.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use tooltape::{Script, ScriptError};

use crate::exit::Exit;
use crate::report::{Excerpt, Problem, Result};

/// The most bytes of a script.
const SCRIPT_BYTES_MAX: u64 = 16 << 20;

/// A script that was read.
pub(crate) struct ScriptFile {
    name: String,
    text: String,
}

impl ScriptFile {
    /// Reads a script.
    pub(crate) fn read(path: &Path) -> Result<ScriptFile> {
        let name = path.display().to_string();
        let metadata = path.metadata().map_err(|err| missing(path, &err))?;
        // To open a pipe is to wait for whoever writes to it.
        if !metadata.is_file() {
            return Err(Problem::new(
                Exit::Usage,
                "script.unreadable",
                format!("`{name}` is not a file"),
            )
            .hint("name a plain file, or `-` for a script on stdin"));
        }
        let mut file = File::open(path).map_err(|err| missing(path, &err))?;
        Ok(ScriptFile { text: text(&mut file, &name)?, name })
    }

    /// A script that comes from stdin.
    pub(crate) fn stdin() -> Result<ScriptFile> {
        let name = "stdin".to_owned();
        let text = text(&mut io::stdin().lock(), &name)?;
        Ok(ScriptFile { name, text })
    }

    /// The turns that it has.
    pub(crate) fn parse(&self) -> Result<Script> {
        Script::parse(&self.text).map_err(|err| unplayable(self, &err))
    }
}

pub(crate) fn missing(path: &Path, err: &io::Error) -> Box<Problem> {
    let message = format!("`{}` cannot be read: {err}", path.display());
    Problem::new(Exit::Failed, "file.missing", message)
        .hint("name a folder with a `tooltape.toml`, or a script; `tooltape init DIR` makes both")
}

fn text(from: &mut dyn Read, name: &str) -> Result<String> {
    let mut text = String::new();
    let unreadable = |why: String| {
        Problem::new(Exit::Usage, "script.unreadable", format!("`{name}` {why}"))
            .hint("a script is text, one JSON object a line: see docs/script-format.md")
    };
    match from.take(SCRIPT_BYTES_MAX + 1).read_to_string(&mut text) {
        Err(err) => Err(unreadable(format!("cannot be read: {err}"))),
        Ok(_) if text.len() as u64 > SCRIPT_BYTES_MAX => {
            Err(unreadable(format!("has more than {SCRIPT_BYTES_MAX} bytes")))
        }
        Ok(_) => Ok(text),
    }
}

fn unplayable(file: &ScriptFile, err: &ScriptError) -> Box<Problem> {
    let ScriptFile { name, text } = file;
    let start: usize = text.split_inclusive('\n').take(err.line - 1).map(str::len).sum();
    let at = text.floor_char_boundary((start + err.column.saturating_sub(1)).min(text.len()));
    let span = at..text.ceil_char_boundary((at + 1).min(text.len()));
    let label = err.message.clone();
    let excerpt = Excerpt { name: name.clone(), text: text.clone(), span, label };
    Problem::new(Exit::Usage, "script.invalid", format!("{name}: {err}"))
        .hint("one JSON object a line: see docs/script-format.md")
        .excerpt(Some(excerpt))
}
