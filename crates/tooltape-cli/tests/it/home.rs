//! A home of its own for each test, and the command run in it.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use expect_test::Expect;
use serde_json::Value;
use tempfile::TempDir;

/// A folder that is the user's home, and a folder `here` in it where commands are started.
pub(crate) struct Home {
    folder: TempDir,
    program: PathBuf,
    variables: Vec<(String, String)>,
}

/// How a command ended.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Home {
    pub(crate) fn new() -> Home {
        Home::of(PathBuf::from(env!("CARGO_BIN_EXE_tooltape")))
    }

    /// A home for another program with the same command line.
    pub(crate) fn of(program: PathBuf) -> Home {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("here")).unwrap();
        Home { folder, program, variables: Vec::new() }
    }

    /// Sets a variable for every command.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Home {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Where commands are started.
    pub(crate) fn here(&self) -> PathBuf {
        self.folder.path().join("here")
    }

    /// Where the user's configuration is.
    pub(crate) fn user_config(&self) -> &'static str {
        "../config/tooltape/config.toml"
    }

    /// Where copies of workspaces are.
    pub(crate) fn copies(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.folder.path().join("state/tooltape/work"));
        entries.into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
    }

    /// Writes a file below `here`.
    pub(crate) fn write(&self, path: &str, text: &str) -> &Home {
        let path = self.here().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.here().join(path)).unwrap()
    }

    /// The command, with no variable of the outside world but the path to programs.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let home = self.folder.path();
        let mut command = Command::new(&self.program);
        command.args(args).current_dir(self.here()).env_clear();
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        command.env("HOME", home).envs(self.variables.iter().cloned());
        for (name, folder) in [("CONFIG", "config"), ("STATE", "state"), ("DATA", "data")] {
            command.env(format!("XDG_{name}_HOME"), home.join(folder));
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        self.ran(self.command(args).output().unwrap())
    }

    /// Runs the command, and returns what it printed as it is.
    pub(crate) fn run_raw(&self, args: &[&str]) -> String {
        String::from_utf8(self.command(args).output().unwrap().stdout).unwrap()
    }

    /// Runs the command with a text on stdin.
    pub(crate) fn feed(&self, args: &[&str], stdin: &[u8]) -> Ran {
        let mut command = self.command(args);
        let mut child: Child = command.stdin(Stdio::piped()).spawn().unwrap();
        // A command that refuses early does not read to the end.
        let _closed_early = child.stdin.take().unwrap().write_all(stdin);
        self.ran(child.wait_with_output().unwrap())
    }

    /// Runs the command and compares all that it printed.
    pub(crate) fn check(&self, args: &[&str], expected: Expect) {
        expected.assert_eq(&self.run(args).transcript());
    }

    pub(crate) fn ran(&self, output: Output) -> Ran {
        let text = |bytes| self.normal(&String::from_utf8(bytes).unwrap());
        let code = output.status.code().expect("no signal ended the command");
        Ran { code, stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// What is the same from run to run, with the names of what is not.
    fn normal(&self, text: &str) -> String {
        let real = self.folder.path().canonicalize().unwrap();
        let text = text.replace(&*self.program.to_string_lossy(), "tooltape");
        let text = text.replace(&*real.to_string_lossy(), "HOME");
        let text = text.replace(&*self.folder.path().to_string_lossy(), "HOME");
        let lines = text.split_inclusive('\n').map(|line| times(&ids(line)));
        in_call_order(lines.collect()).concat()
    }
}

impl Ran {
    /// The one JSON document on stdout.
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.stdout.trim_end().lines().count(), 1, "{}", self.stdout);
        serde_json::from_str(&self.stdout).unwrap()
    }

    /// The one JSON line on stderr.
    pub(crate) fn error(&self) -> Value {
        assert_eq!(self.stderr.lines().count(), 1, "{}", self.stderr);
        let line: Value = serde_json::from_str(&self.stderr).unwrap();
        line["error"].clone()
    }

    pub(crate) fn transcript(&self) -> String {
        let Ran { code, stdout, stderr } = self;
        let stdout =
            if stdout.is_empty() { String::new() } else { format!("--- stdout\n{stdout}") };
        let stderr =
            if stderr.is_empty() { String::new() } else { format!("--- stderr\n{stderr}") };
        folded(&format!("exit {code}\n{stdout}{stderr}"))
    }
}

/// The text with long lines cut, each cut marked by `↩` and the rest on the next line.
pub(crate) fn folded(text: &str) -> String {
    const COLUMNS_MAX: usize = 80;
    let fold = |line: &str| {
        let chars: Vec<char> = line.chars().collect();
        let pieces = chars.chunks(COLUMNS_MAX).map(|piece| piece.iter().collect::<String>());
        pieces.collect::<Vec<_>>().join("↩\n")
    };
    text.split_inclusive('\n').map(fold).collect()
}

/// Calls of one batch may overlap, so their lines come in any order.
fn in_call_order(mut lines: Vec<String>) -> Vec<String> {
    let call = |line: &String| -> Option<u32> {
        let rest = line.strip_prefix("  ✓ #").or(line.strip_prefix("  ✗ #"))?;
        rest.split(' ').next()?.parse().ok()
    };
    let batches = lines.chunk_by_mut(|a, b| call(a).is_some() && call(b).is_some());
    batches.for_each(|batch| batch.sort_by_key(call));
    lines
}

/// Puts `RUN` for each run's id.
fn ids(line: &str) -> String {
    const LENGTH: usize = 36;
    let is_id = |word: &str| {
        word.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
    };
    let mut normal = String::new();
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        match rest.get(..LENGTH) {
            Some(word) if is_id(word) => {
                normal.push_str("RUN");
                rest = &rest[LENGTH..];
            }
            _ => {
                normal.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
    }
    normal
}

/// Puts `TIME` for each time that a call took.
fn times(line: &str) -> String {
    let is_number = |word: &str| word.chars().all(|c| c.is_ascii_digit() || c == '.');
    let is_time = |part: &str| {
        let words: Vec<&str> = part.split(' ').collect();
        matches!(words[..], [number, "µs" | "ms" | "s"] if is_number(number))
    };
    let parts = line.split(" · ").map(|part| if is_time(part) { "TIME" } else { part });
    let line = parts.collect::<Vec<_>>().join(" · ");
    let Some((before, after)) = line.split_once(r#""elapsed_us":"#) else { return line };
    let after = after.trim_start_matches(|c: char| c.is_ascii_digit());
    format!(r#"{before}"elapsed_us":0{after}"#)
}

/// The repository's root folder.
pub(crate) fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}
