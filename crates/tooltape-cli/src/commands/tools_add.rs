//! `tooltape tools add`.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Component, Path, PathBuf};
use std::process;
use std::result;

use serde_json::json;
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, value};
use tooltape::Toolbox;
use tooltape_kit::{Executable, ExecutableError, Files, Manifest};

use super::Context;
use crate::components::Looked;
use crate::escape;
use crate::exit::Exit;
use crate::out::{FAINT, Format, STRONG, paint};
use crate::report::{Problem, Result};

/// Where a project's programs are written down, unless it has the other file.
const FILE: &str = "tooltape.toml";
/// The other file that a project may have.
const OTHER_FILE: &str = ".tooltape/config.toml";

/// Makes a program a tool of the project in this folder.
pub(super) async fn add(context: &Context<'_>, program: &Path) -> Result<Exit> {
    let name = below(program)?;
    // What is wrong with the configuration is said before anything is written.
    let file = if Path::new(OTHER_FILE).exists() { OTHER_FILE } else { FILE };
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(err) if err.kind() == io::ErrorKind::NotFound => String::new(),
        Err(err) => return Err(unwritten(file, &err)),
    };
    if program.extension().is_some_and(|extension| extension == "wasm") {
        return add_component(context, program, &name, (file, &text));
    }
    let (executable, is_described) = match Executable::load(program) {
        Err(ExecutableError::NoManifest { .. }) => {
            let sandbox = context.host.sandbox();
            (Executable::describe(program, sandbox).await.map_err(|err| refused(&err))?, true)
        }
        loaded => (loaded.map_err(|err| refused(&err))?, false),
    };
    let (manifest, hash) = (executable.manifest().clone(), executable.hash().to_owned());
    if context.host.has(&manifest.name) {
        return Err(unfit(format!("there is a tool named `{}` already", manifest.name)));
    }
    // Nothing is written down that could not be a tool.
    let checked = Toolbox::new([executable.untrusted().tool()]);
    checked.map_err(|err| unfit(err.to_string()))?;
    let edited = edited((file, &text), ["executable", "program"], &name, &hash)?;
    show(context, &manifest, &name, &hash)?;
    if is_described {
        let path = Manifest::path_of(program);
        let text = manifest.to_toml().map_err(unfit)?;
        let created = File::create_new(&path).and_then(|mut file| file.write_all(text.as_bytes()));
        created.map_err(|err| unwritten(&path.display().to_string(), &err))?;
        context.out.say(&format!("wrote `{}`, as the program describes itself", path.display()));
    }
    replace(Path::new(file), &edited).map_err(|err| unwritten(file, &err))?;
    // What was written must be what is read.
    context.host.toolbox(&context.layers(Path::new("."))?)?;
    context.out.say(&format!("wrote `{name}` into `{file}`; its calls are asked about"));
    Ok(Exit::Done)
}

/// Writes a file anew, itself and nothing that a link leads to.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    if fs::symlink_metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(io::Error::other("it is not a plain file"));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let new = folder.unwrap_or(Path::new(".")).join(format!(".tooltape-new-{}", process::id()));
    File::create_new(&new).and_then(|mut file| file.write_all(text.as_bytes()))?;
    fs::rename(&new, path)
}

/// The program's path from this folder on, as a configuration has it.
fn below(program: &Path) -> Result<String> {
    let refused = |why: &str| {
        let message = format!("`{}` {why}, expected a program below it", program.display());
        Problem::new(Exit::Usage, "tool.elsewhere", message)
            .hint("go to its folder, or copy the program here")
    };
    let is_plain = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    if !program.components().all(is_plain) {
        return Err(refused("leaves this folder"));
    }
    let parts = program.components().filter(|part| *part != Component::CurDir);
    let parts: PathBuf = parts.collect();
    parts.to_str().map(str::to_owned).ok_or_else(|| refused("has a name that is not UTF-8"))
}

/// Makes a WASM component a tool of the project in this folder.
fn add_component(
    context: &Context<'_>,
    path: &Path,
    name: &str,
    (file, text): (&str, &str),
) -> Result<Exit> {
    let layers = context.layers(Path::new("."))?;
    let Looked { tools, hash, shown } = context.host.components().look(path, &layers)?;
    for tool in &tools {
        let name = &tool.spec().name;
        if context.host.has(name) {
            return Err(unfit(format!("there is a tool named `{name}` already")));
        }
    }
    let edited = edited((file, text), ["wasm", "component"], name, &hash)?;
    let names: Vec<&str> = tools.iter().map(|tool| &*tool.spec().name).collect();
    match context.out.format {
        Format::Json => {
            let document = json!({ "component": name, "hash": hash, "tools": names, "is": shown });
            context.out.json(&document)?;
        }
        Format::Text => {
            let imports = shown["imports"].as_array().into_iter().flatten();
            let imports: Vec<&str> = imports.filter_map(|it| it["name"].as_str()).collect();
            for tool in &tools {
                let spec = tool.spec();
                let id = format!("{}@{}", spec.name, spec.version);
                let description = escape::text(&spec.description);
                context.out.table(&format!("{}\n  {description}", paint(STRONG, id)))?;
                let needs = spec.capabilities.join(", ");
                let lines = [
                    ("imports", imports.join(", ")),
                    ("needs", if needs.is_empty() { "nothing".to_owned() } else { needs }),
                    ("hash", hash.clone()),
                ];
                for (name, value) in lines {
                    let name = paint(FAINT, format!("{name:12}"));
                    context.out.table(&format!("  {name} {}", escape::line(&value)))?;
                }
            }
        }
    }
    replace(Path::new(file), &edited).map_err(|err| unwritten(file, &err))?;
    // What was written must be what is read.
    context.host.toolbox(&context.layers(Path::new("."))?)?;
    context.out.say(&format!("wrote `{name}` into `{file}`"));
    Ok(Exit::Done)
}

/// The configuration with a program or a component in it, and all else as it was.
fn edited((file, text): (&str, &str), keys: [&str; 2], name: &str, hash: &str) -> Result<String> {
    let [list, key] = keys;
    put(text, keys, name, hash).map_err(|why| {
        let message = format!("`{file}` cannot be changed: {why}");
        Problem::new(Exit::Usage, "config.invalid", message)
            .hint(format!("write this into it: [[tools.{list}]] {key} = \"{name}\""))
    })
}

fn put(
    text: &str,
    [list, key]: [&str; 2],
    program: &str,
    hash: &str,
) -> result::Result<String, String> {
    let mut document: DocumentMut = text.parse().map_err(|err| format!("{err}"))?;
    let tools = document.entry("tools").or_insert_with(|| {
        let mut table = Table::new();
        // It needs no line of its own.
        table.set_implicit(true);
        Item::Table(table)
    });
    let tools = tools.as_table_mut().ok_or("`tools` is no table of its own")?;
    let all = tools.entry(list).or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
    let all = all.as_array_of_tables_mut();
    let all = all.ok_or_else(|| format!("`tools.{list}` is no array of tables"))?;
    let named = |table: &Table| {
        table.get(key).and_then(Item::as_str).is_some_and(|named| same(named, program))
    };
    let at = all.iter().position(named);
    match at.and_then(|at| all.get_mut(at)) {
        Some(table) => table["hash"] = value(hash),
        None => {
            let mut table = Table::new();
            table[key] = value(program);
            table["hash"] = value(hash);
            all.push(table);
        }
    }
    Ok(document.to_string())
}

fn same(named: &str, program: &str) -> bool {
    named.trim_start_matches("./") == program
}

/// Shows what the program asks for.
fn show(context: &Context<'_>, manifest: &Manifest, program: &str, hash: &str) -> Result {
    if context.out.format == Format::Json {
        let shown = json!({ "program": program, "hash": hash, "manifest": manifest });
        return context.out.json(&shown);
    }
    let files = match manifest.files {
        Files::None => "none of the workspace",
        Files::Read => "the workspace, to read it",
        Files::Write => "the workspace, to read and write it",
    };
    let needs = match manifest.needs.as_slice() {
        [] => "nothing else".to_owned(),
        needs => needs.join(", "),
    };
    let started = match manifest.argv.as_slice() {
        [] => program.to_owned(),
        argv => argv.join(" "),
    };
    let id = format!("{}@{}", manifest.name, manifest.version);
    let mut text = format!("{}\n  {}\n", paint(STRONG, id), escape::text(&manifest.description));
    for (name, value) in
        [("runs", started), ("sees", files.to_owned()), ("needs", needs), ("hash", hash.to_owned())]
    {
        text += &format!("  {} {}\n", paint(FAINT, format!("{name:12}")), escape::line(&value));
    }
    context.out.table(&text)
}

fn refused(err: &ExecutableError) -> Box<Problem> {
    Problem::new(Exit::Failed, "tool.refused", err.to_string())
        .hint("`docs/kit-search.md` says what a program and its manifest look like")
}

fn unfit(why: String) -> Box<Problem> {
    Problem::new(Exit::Failed, "tool.refused", why).hint("mend the manifest")
}

fn unwritten(file: &str, err: &io::Error) -> Box<Problem> {
    Problem::new(Exit::Failed, "config.unwritten", format!("`{file}` cannot be written: {err}"))
        .hint("the program is no tool yet")
}
