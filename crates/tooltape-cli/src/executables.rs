//! Programs that the configuration makes tools.

use tooltape::Toolbox;
use tooltape_kit::{Executable, Sandbox};

use crate::config::Layers;
use crate::report::Result;

/// The tools, and behind them the programs that the configuration names. Nothing is run.
pub(crate) fn added(layers: &Layers, mut tools: Toolbox, sandbox: &Sandbox) -> Result<Toolbox> {
    for found in layers.all("tools.executable", |config| config.tools.executable.as_ref()) {
        let wrong = |part: &str, why: String| found.problem(Some(part), why);
        let program = found.part("program").below(&found.value.program)?;
        let executable =
            Executable::load(&program).map_err(|err| wrong("program", err.to_string()))?;
        let (expected, hash) = (&found.value.hash, executable.hash());
        if expected.as_ref().is_some_and(|expected| expected != hash) {
            let name = &found.value.program;
            let why = format!(
                "`{name}` or its manifest was changed, its hash is now `{hash}`: look at it, and \
                 let `tooltape tools add {name}` write it down again"
            );
            return Err(wrong("hash", why));
        }
        // Whoever runs a project need not believe what it says of its programs.
        let executable = match found.layer.is_trusted() {
            true => executable,
            false => executable.untrusted(),
        };
        let name = executable.manifest().name.clone();
        tools.add(executable.tool()).map_err(|err| wrong("program", err.to_string()))?;
        let vouched = sandbox.vouch(&mut tools, &name);
        vouched.map_err(|err| wrong("program", err.to_string()))?;
    }
    Ok(tools)
}
