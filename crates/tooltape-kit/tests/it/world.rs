//! A folder with a workspace in it, things beside it that must stay untouched, and a run.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use expect_test::Expect;
use serde_json::Value;
use tempfile::TempDir;
use tooltape::{Proposal, Reply, Rules, Run, Toolbox};
use tooltape_kit::{Workspace, tools};

/// The file tools: a script begins a call with one of these names.
pub(crate) const TOOLS: [&str; 7] =
    ["list_dir", "read_file", "write_file", "edit_file", "apply_patch", "move_file", "delete_file"];

/// What stands in every file outside the workspace.
pub(crate) const CANARY: &str = "CANARY\n";

/// `ws` is the workspace; `ws-evil` and `outside` are none of its business.
pub(crate) struct World {
    folder: TempDir,
    run: Run,
}

impl World {
    pub(crate) fn new() -> World {
        // In memory where there is such a place: an attack is no matter of the disk.
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        for dir in ["ws", "ws-evil", "outside"] {
            fs::create_dir(folder.path().join(dir)).unwrap();
        }
        for canary in ["ws-evil/canary", "outside/canary", "canary"] {
            fs::write(folder.path().join(canary), CANARY).unwrap();
        }
        let run = run_in(&folder.path().join("ws"));
        World { folder, run }
    }

    /// The folder that holds everything.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A path in the workspace.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join("ws").join(path)
    }

    /// Writes a file in the workspace, with the folders above it.
    pub(crate) fn file(&self, path: &str, bytes: impl AsRef<[u8]>) -> &World {
        fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
        fs::write(self.at(path), bytes).unwrap();
        self
    }

    /// Makes a symbolic link in the workspace.
    pub(crate) fn link(&self, target: impl AsRef<Path>, path: &str) -> &World {
        symlink(target, self.at(path)).unwrap();
        self
    }

    pub(crate) fn text(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap()
    }

    /// The names in a folder of the workspace, sorted.
    pub(crate) fn names(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(self.at(path)).unwrap();
        let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        let mut names: Vec<_> = entries.map(|entry| name(entry.unwrap())).collect();
        names.sort();
        names
    }

    /// Everything outside the workspace: each path with its content, inode and mode.
    pub(crate) fn outside(&self) -> BTreeMap<PathBuf, (String, u64, u32)> {
        let mut outside = BTreeMap::new();
        for dir in ["", "ws-evil", "outside"] {
            for entry in fs::read_dir(self.folder.path().join(dir)).unwrap() {
                let (path, metadata) = {
                    let entry = entry.unwrap();
                    (entry.path(), entry.metadata().unwrap())
                };
                let content = match metadata.is_file() {
                    true => fs::read_to_string(&path).unwrap(),
                    false => String::new(),
                };
                outside.insert(path, (content, metadata.ino(), metadata.mode()));
            }
        }
        outside
    }

    /// Makes one call of a tool.
    pub(crate) fn call(&self, tool: &str, args: &str) -> Reply {
        call(&self.run, tool, args)
    }

    /// Plays a script and compares what the model reads.
    ///
    /// A line that begins with a tool's name begins a call.
    pub(crate) fn check(&self, script: &str, expected: Expect) {
        let mut calls: Vec<(&str, String)> = Vec::new();
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            match line.split_once(' ').filter(|(tool, _)| TOOLS.contains(tool)) {
                Some((tool, args)) => calls.push((tool, args.to_owned())),
                None => calls.last_mut().unwrap().1.push_str(line),
            }
        }
        let shown = calls.iter().map(|(tool, args)| shown(&self.call(tool, args)));
        expected.assert_eq(&shown.collect::<String>());
    }
}

/// A reply on lines of its own: a refusal wrapped, a value field by field.
pub(crate) fn shown(reply: &Reply) -> String {
    if let Some(fault) = &reply.fault {
        return wrapped(&format!("[{}] {}", fault.code, reply.text()));
    }
    let Value::Object(fields) = reply.value.as_ref().unwrap().to_value() else {
        panic!("every tool returns an object");
    };
    let field = |(name, value): (&String, &Value)| match value {
        Value::Array(items) => {
            let items = items.iter().map(|item| format!("  {item}\n"));
            format!("{name}:\n{}", items.collect::<String>())
        }
        Value::String(text) if text.starts_with("---") => {
            let lines = text.lines().map(|line| format!("  |{line}\n"));
            format!("{name}:\n{}", lines.collect::<String>())
        }
        value => format!("{name}: {value}\n"),
    };
    format!("ok\n{}", fields.iter().map(field).collect::<String>())
}

/// A text with lines of a width that a source file can hold.
pub(crate) fn wrapped(text: &str) -> String {
    const COLUMNS: usize = 76;
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().unwrap();
        match last.chars().count() + word.chars().count() {
            columns if columns > COLUMNS => lines.push(format!("    {word} ")),
            _ => *last += &format!("{word} "),
        }
    }
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// A run that may use all file tools in a folder.
pub(crate) fn run_in(folder: &Path) -> Run {
    static TOOLBOX: OnceLock<Toolbox> = OnceLock::new();
    let toolbox = TOOLBOX.get_or_init(|| Toolbox::new(tools()).unwrap());
    let rules = TOOLS.iter().fold(Rules::allow_reads(), |rules, tool| rules.allow(*tool));
    Run::new(toolbox).grant(Workspace::open(folder).unwrap()).policy(rules)
}

/// Makes one call of a tool.
pub(crate) fn call(run: &Run, tool: &str, args: &str) -> Reply {
    calls(run, vec![Proposal::new("c", tool, args)]).remove(0)
}

pub(crate) fn calls(run: &Run, proposals: Vec<Proposal>) -> Vec<Reply> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(run.batch(proposals)).unwrap()
}

/// The code of a fault, or `ok`.
pub(crate) fn code(reply: &Reply) -> &str {
    reply.fault.as_ref().map_or("ok", |fault| &fault.code)
}
