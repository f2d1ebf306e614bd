//! `tooltape init`.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::json;

use super::Context;
use crate::args::{Init, Template};
use crate::escape;
use crate::exit::Exit;
use crate::out::{Format, STRONG, paint};
use crate::program::{program, quoted};
use crate::report::{Problem, Result};

/// What a project starts from: the names of its files, and their texts.
type Files = &'static [(&'static str, &'static str)];

const AGENT: Files = &[
    ("tooltape.toml", include_str!("../../templates/tooltape.toml")),
    ("session.jsonl", include_str!("../../templates/session.jsonl")),
];

// A folder with a `Cargo.toml` would be left out of the package that is published, and git would
// take a `.gitignore` for ours: so these two, and the lock file, have other names here.
const WASM: Files = &[
    ("Cargo.toml", include_str!("../../templates/wasm/manifest.toml")),
    ("Cargo.lock", include_str!("../../templates/wasm/lock.toml")),
    (".gitignore", include_str!("../../templates/wasm/gitignore")),
    ("README.md", include_str!("../../templates/wasm/README.md")),
    ("src/lib.rs", include_str!("../../templates/wasm/src/lib.rs")),
    ("src/slug.rs", include_str!("../../templates/wasm/src/slug.rs")),
    ("src/component.rs", include_str!("../../templates/wasm/src/component.rs")),
    ("src/input.json", include_str!("../../templates/wasm/src/input.json")),
    ("src/output.json", include_str!("../../templates/wasm/src/output.json")),
    ("tests/slug.rs", include_str!("../../templates/wasm/tests/slug.rs")),
    ("wit/tool.wit", include_str!("../../templates/wasm/wit/tool.wit")),
    ("tooltape.toml", include_str!("../../templates/wasm/tooltape.toml")),
    ("session.jsonl", include_str!("../../templates/wasm/session.jsonl")),
];

/// Writes a project to start from. Nothing is ever overwritten.
pub(super) fn init(context: &Context<'_>, init: &Init) -> Result<Exit> {
    let files = match init.template {
        Template::Agent => AGENT,
        Template::Wasm => WASM,
    };
    let paths: Vec<PathBuf> = files.iter().map(|(name, _)| init.folder.join(name)).collect();
    if let Some(path) = paths.iter().find(|path| path.symlink_metadata().is_ok()) {
        return Err(exists(path));
    }
    for (path, (_, text)) in paths.iter().zip(files) {
        let folder = path.parent().unwrap_or(&init.folder);
        fs::create_dir_all(folder).map_err(|err| unwritten(folder, &err))?;
        write_new(path, text)?;
    }
    let next = next(init);
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

/// The commands to try, in order.
fn next(init: &Init) -> Vec<String> {
    let program = program();
    let folder = quoted(&init.folder.display().to_string());
    match init.template {
        Template::Agent => vec![
            format!("{program} run {folder}"),
            format!("{program} call read_file path=tooltape.toml --workspace {folder}"),
            format!("{program} tools list"),
        ],
        Template::Wasm => vec![
            format!("cd {folder}"),
            "rustup target add wasm32-wasip2".to_owned(),
            "cargo test".to_owned(),
            "cargo build --release --target wasm32-wasip2".to_owned(),
            format!("{program} call slug title='Hello, World!'"),
        ],
    }
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
