//! `tooltape init`.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::json;

use super::Context;
use crate::escape;
use crate::exit::Exit;
use crate::out::{Format, STRONG, paint};
use crate::program::{program, quoted};
use crate::report::{Problem, Result};

/// What is written, and under which name.
const FILES: [(&str, &str); 2] = [
    ("tooltape.toml", include_str!("../../templates/tooltape.toml")),
    ("session.jsonl", include_str!("../../templates/session.jsonl")),
];

/// Writes a configuration and a script to start from. Nothing is ever overwritten.
pub(super) fn init(context: &Context<'_>, folder: &Path) -> Result<Exit> {
    let paths: Vec<PathBuf> = FILES.iter().map(|(name, _)| folder.join(name)).collect();
    if let Some(path) = paths.iter().find(|path| path.symlink_metadata().is_ok()) {
        return Err(exists(path));
    }
    fs::create_dir_all(folder).map_err(|err| unwritten(folder, &err))?;
    for (path, (_, text)) in paths.iter().zip(FILES) {
        write_new(path, text)?;
    }
    let program = program();
    let folder = quoted(&folder.display().to_string());
    let next = [
        format!("{program} run {folder}"),
        format!("{program} call read_file path=tooltape.toml --workspace {folder}"),
        format!("{program} tools list"),
    ];
    match context.out.format {
        Format::Json => {
            let created: Vec<String> =
                paths.iter().map(|path| path.display().to_string()).collect();
            context.out.json(&json!({ "created": created, "next": next }))?;
        }
        Format::Text => {
            for path in &paths {
                let path = path.display().to_string();
                context.out.say(&format!("created {}", escape::line(&path)));
            }
            context.out.say(&paint(STRONG, "next:"));
            next.iter().for_each(|command| context.out.say(&format!("  {command}")));
        }
    }
    Ok(Exit::Done)
}

fn write_new(path: &Path, text: &str) -> Result {
    let file = OpenOptions::new().write(true).create_new(true).open(path);
    match file.and_then(|mut file| file.write_all(text.as_bytes())) {
        Ok(()) => Ok(()),
        Err(err) if err.kind() == io::ErrorKind::AlreadyExists => Err(exists(path)),
        Err(err) => Err(unwritten(path, &err)),
    }
}

fn exists(path: &Path) -> Box<Problem> {
    let message = format!("`{}` is there already, and nothing is overwritten", path.display());
    Problem::new(Exit::Usage, "file.exists", message)
        .hint("name another folder, or move the file away")
}

fn unwritten(path: &Path, err: &io::Error) -> Box<Problem> {
    let message = format!("`{}` cannot be written: {err}", path.display());
    Problem::new(Exit::Failed, "file.unwritten", message)
        .hint("name a folder that you may write to")
}
