//! `tooltape record-test`.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;

use serde_json::json;
use tooltape::{Event, Record, RecordTest, RunHead, RunId, TapeWriter, Toolbox};

use super::Context;
use super::export::{Readers, write};
use super::replay::layers_of;
use crate::args::RecordTest as RecordTestArgs;
use crate::escape;
use crate::exit::Exit;
use crate::out::{Format, STRONG, paint};
use crate::program::quoted;
use crate::reel::EXTENSION;
use crate::report::{Problem, Result};

/// How many digits of a run's id name its test: the last ones, which are random.
const DIGITS: usize = 8;

/// Writes an offline test that plays a run again, and the tape that it plays.
pub(super) fn record_test(context: &Context<'_>, args: &RecordTestArgs) -> Result<Exit> {
    let (kept, run) = context.location()?.run(&args.run)?;
    let (records, broken) = kept.records(run);
    if let Some(problem) = broken {
        return Err(problem);
    }
    let name = args.name.clone().unwrap_or_else(|| name(run));
    if !is_name(&name) {
        let message = format!("`{}` cannot name a test", escape::line(&name));
        return Err(Problem::new(Exit::Usage, "test.name", message)
            .hint("a name has small letters, digits and `_`, and begins with a letter"));
    }
    let toolbox = context.host.toolbox(&layers_of(context, &records)?)?;
    let tools = match &args.tools {
        Some(tools) => tools.clone(),
        None => tools(context, &records, &toolbox)?,
    };
    let tape = format!("{name}{EXTENSION}");
    let test = RecordTest { name: &name, tape: &tape, tools: &tools };
    let source = test.source(&records).ok_or_else(|| {
        Problem::new(Exit::Failed, "run.empty", "the run has no records").run(run)
    })?;
    let unwritten = |err: std::io::Error| {
        let shown = args.output.display();
        Problem::new(Exit::Failed, "file.unwritten", format!("`{shown}` cannot be made: {err}"))
            .hint("name a folder that you may write to with `-o DIR`")
    };
    fs::create_dir_all(&args.output).map_err(unwritten)?;
    let (source_path, tape_path) =
        (args.output.join(format!("{name}.rs")), args.output.join(&tape));
    let mut lines = Vec::new();
    let read = kept.each_line(
        run,
        |_, err| err,
        |line| {
            lines.push(line);
            Ok(())
        },
    );
    read.map_err(|err| kept.problem(&err).run(run))?;
    write(&tape_path, Readers::Usual, |file| {
        let mut writer = TapeWriter::new(file)?;
        let written = lines.iter().try_for_each(|line| writer.line(line));
        let ended = written.and_then(|()| writer.end(|_: &mut RunHead| ()).map(drop));
        ended.map_err(std::io::Error::other)
    })?;
    write(&source_path, Readers::Usual, |file| file.write_all(source.as_bytes()))?;
    let paths = [source_path, tape_path].map(|path| path.display().to_string());
    match context.out.format {
        Format::Json => context.out.json(&json!({ "created": paths, "test": name }))?,
        Format::Text => {
            paths
                .iter()
                .for_each(|path| context.out.say(&format!("created {}", escape::line(path))));
            let needs = if tools.contains("tooltape_kit") { ", `tooltape-kit`" } else { "" };
            context.out.say(&format!("it needs `tooltape`{needs} and `tokio` (macros, rt, time)"));
            context.out.say(&paint(STRONG, "next:"));
            context.out.say(&format!("  cargo test {}", quoted(&name)));
        }
    }
    Ok(Exit::Done)
}

fn name(run: RunId) -> String {
    let id = run.to_string();
    format!("recorded_{}", &id[id.len() - DIGITS..])
}

fn is_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(is_part)
}

/// An expression for the tools that the run had, as far as they are in the box.
fn tools(context: &Context<'_>, records: &[Record], toolbox: &Toolbox) -> Result<String> {
    let boxed = |tools: Vec<std::sync::Arc<dyn tooltape::Tool>>| -> BTreeSet<String> {
        tools.iter().map(|tool| tool.spec().name.to_string()).collect()
    };
    let builtin = boxed(tooltape::builtin::tools().into_iter().collect());
    let page = BTreeSet::from(["read_artifact".to_owned()]);
    let kit = boxed(tooltape_kit::tools().into_iter().collect());
    let proposed = records.iter().filter_map(|record| match &record.event {
        Event::Proposed(facts) => Some(facts.name.to_string()),
        _ => None,
    });
    let proposed: BTreeSet<String> = proposed.collect();
    let is_boxed = |name: &String| [&builtin, &page, &kit].iter().any(|it| it.contains(name));
    let own = proposed.iter().find(|name| context.host.has(name) && !is_boxed(name));
    if let Some(own) = own {
        let message = format!("`{own}` is a tool of this program, which a test has to be told of");
        return Err(Problem::new(Exit::Usage, "test.tools", message)
            .hint("give an expression for all tools: `--tools 'my_tools::all()'`"));
    }
    // What is unknown is answered with what there is, so then all of it counts.
    let is_all = proposed.iter().any(|name| !is_boxed(name));
    let mut tools = "tooltape::builtin::tools()".to_owned();
    let mut has: BTreeSet<&String> = builtin.iter().collect();
    for (part, names) in
        [("[tooltape::builtin::read_artifact()]", &page), ("tooltape_kit::tools()", &kit)]
    {
        if is_all || !names.is_disjoint(&proposed) {
            let first = if has.len() == builtin.len() { ".into_iter()" } else { "" };
            tools.push_str(&format!("{first}.chain({part})"));
            has.extend(names);
        }
    }
    let is_bare = has.len() == builtin.len();
    let disabled: Vec<_> = has.into_iter().filter(|name| toolbox.get(name).is_none()).collect();
    if !disabled.is_empty() {
        let first = if is_bare { ".into_iter()" } else { "" };
        let is_left = format!("|tool| !{disabled:?}.contains(&&*tool.spec().name)");
        tools.push_str(&format!("{first}.filter({is_left})"));
    }
    Ok(tools)
}
