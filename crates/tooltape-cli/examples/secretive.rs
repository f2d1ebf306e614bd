//! A program whose tools take secrets that the configuration names, and say them wherever asked.
//!
//! ```sh
//! printf '[secrets.forge]\nenv = "FORGE_TOKEN"\n' >> ~/.config/tooltape/config.toml
//! FORGE_TOKEN=ghp_0123456789 cargo run -p tooltape-cli --example secretive -- call measure
//! ```
//!
//! Nothing that `spill` says with its secret in it leaves the program. Where `SPILLED` is set, it
//! says that instead, which nobody looks for.

use std::process::ExitCode;

use tooltape::{Empty, Output, Progress, ToolError, input, secret, serde_json, tool, tools};

secret! {
    /// The token of the forge.
    struct ForgeToken(String) = "forge";
}

secret! {
    /// The key that seals letters.
    struct Seal(Vec<u8>) = "seal";
}

/// Tells how long the token is, and nothing else of it.
#[tool(Read)]
async fn measure(_: Empty, token: ForgeToken) -> Result<usize, ToolError> {
    Ok(token.expose().len())
}

/// Tells how long the seal is.
#[tool(Read)]
async fn weigh(_: Empty, seal: Seal) -> Result<usize, ToolError> {
    Ok(seal.expose().len())
}

#[input]
struct Spill {
    /// Where to: `text`, `value`, `error`, `panic`, `progress`, `parts`, `details` or `large`.
    to: String,
    /// How it is written: `plain`, `hex`, `reversed` or `escaped`.
    #[serde(default)]
    way: String,
}

/// Says its secret.
#[tool(Read)]
async fn spill(args: Spill, token: ForgeToken, progress: Progress) -> Result<Output, ToolError> {
    let token = std::env::var("SPILLED").unwrap_or_else(|_| token.expose().clone());
    let said: String = match args.way.as_str() {
        "hex" => token.bytes().map(|byte| format!("{byte:02x}")).collect(),
        "reversed" => token.chars().rev().collect(),
        "escaped" => token.bytes().map(|byte| format!("%{byte:02X}")).collect(),
        _ => token,
    };
    match args.to.as_str() {
        "value" => Output::value(&serde_json::json!({ "said": said })),
        "error" => Err(ToolError::tell(format!("no {said}")).because(said)),
        "panic" => panic!("{said}"),
        "progress" => {
            progress.say(format!("saying {said}"));
            Ok(Output::text("said"))
        }
        "parts" => {
            let (one, two) = said.split_at(said.len() / 2);
            progress.say(one);
            progress.say(two);
            Ok(Output::text("said"))
        }
        "details" => Ok(Output::text("said").detail(serde_json::json!({ "said": said }))),
        "large" => Ok(Output::text(format!("{said} {}", "x".repeat(100_000)))),
        _ => Ok(Output::text(format!("it is {said}"))),
    }
}

fn main() -> ExitCode {
    tooltape_cli::main(tools![measure, weigh, spill])
}
