//! A folder with a workspace in it, and a run that may start processes there.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::{Value, json};
use tempfile::TempDir;
use tooltape::{Call, Event, MemoryTape, Proposal, Reply, Rights, Run, Toolbox, Verdict};
use tooltape_kit::{Helper, Sandbox, Workspace, process_tools};

/// The helper that comes with the kit.
pub(crate) fn helper() -> Helper {
    // A test that runs as somebody else has a copy that this user can read.
    let copied = std::env::var("TOOLTAPE_TEST_HELPER");
    let built = || env!("CARGO_BIN_EXE_tooltape-sandbox").to_owned();
    Helper::new(copied.unwrap_or_else(|_| built()), [""; 0])
}

/// The one sandbox of these tests.
pub(crate) fn sandbox() -> Sandbox {
    static SANDBOX: OnceLock<Sandbox> = OnceLock::new();
    SANDBOX.get_or_init(|| Sandbox::new(helper()).expect("the sandbox works here")).clone()
}

/// `ws` is the workspace; `outside` is none of its business.
pub(crate) struct Lab {
    folder: TempDir,
    run: Run,
    tape: MemoryTape,
}

impl Lab {
    pub(crate) fn new() -> Lab {
        Lab::with(sandbox())
    }

    /// A run that holds these rights only.
    pub(crate) fn holding(rights: &str) -> Lab {
        let rights = Rights::of(rights.split(' ').map(|right| right.parse().unwrap()));
        let Lab { folder, run, tape } = Lab::new();
        Lab { folder, run: run.rights(rights), tape }
    }

    pub(crate) fn with(sandbox: Sandbox) -> Lab {
        let folder = tempfile::tempdir().unwrap();
        for dir in ["ws", "outside"] {
            fs::create_dir(folder.path().join(dir)).unwrap();
        }
        let mut toolbox = Toolbox::new(process_tools()).unwrap();
        for tool in ["shell", "exec"] {
            sandbox.vouch(&mut toolbox, tool).unwrap();
        }
        let tape = MemoryTape::default();
        let run = Run::new(&toolbox)
            .grant(Workspace::open(folder.path().join("ws")).unwrap())
            .grant(sandbox)
            .tape(tape.clone())
            .policy(|_: &Call| Verdict::allow_despite_label("these tests"));
        Lab { folder, run, tape }
    }

    /// The same, whose run may do only this.
    pub(crate) fn narrowed(self, rights: &str) -> Lab {
        Lab { run: self.run.rights(rights.parse().unwrap()), ..self }
    }

    /// The folder that holds everything.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A path in the workspace.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join("ws").join(path)
    }

    pub(crate) fn run(&self) -> &Run {
        &self.run
    }

    /// What calls have said while they ran.
    pub(crate) fn progress(&self) -> Vec<String> {
        let records = self.tape.records(self.run.id());
        let texts = records.into_iter().filter_map(|record| match record.event {
            Event::Progress { text, .. } => Some(text),
            _ => None,
        });
        texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
    }

    pub(crate) fn call(&self, tool: &str, args: &Value) -> Reply {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let proposal = Proposal::new("c", tool, args.to_string());
        runtime.block_on(self.run.batch(vec![proposal])).unwrap().remove(0)
    }

    /// Runs a command line, which must not be refused.
    pub(crate) fn shell(&self, command: &str) -> Value {
        value(&self.call("shell", &json!({ "command": command })))
    }

    /// Runs a program, which must not be refused.
    pub(crate) fn exec(&self, argv: &[&str]) -> Value {
        value(&self.call("exec", &json!({ "argv": argv })))
    }
}

/// What a tool returned.
pub(crate) fn value(reply: &Reply) -> Value {
    reply.value.as_ref().unwrap_or_else(|| panic!("{}", reply.text())).to_value()
}
