//! Rules on files that hold even where a mount would not.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetError, RulesetStatus, Scope, path_beneath_rules,
};

use crate::sandbox::command::Files;
use crate::sandbox::protocol::WORKSPACE;

/// What all processes read and run.
const READ: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/etc", "/proc", "/run"];
/// What all processes write.
const WRITTEN: [&str; 2] = ["/tmp", "/dev"];

/// The versions that are known, the newest first. Each of them is used as a whole or not at all.
const ABIS: [ABI; 6] = [ABI::V6, ABI::V5, ABI::V4, ABI::V3, ABI::V2, ABI::V1];

/// Restricts this process and all that it will start, and says by which version.
pub(in crate::sandbox) fn restrict(files: Files, exposed: &[PathBuf]) -> Result<u32, String> {
    let mut last = String::new();
    for abi in ABIS {
        match restrict_by(abi, files, exposed) {
            Ok(()) => return Ok(abi as u32),
            Err(err) => last = err,
        }
    }
    Err(last)
}

fn restrict_by(abi: ABI, files: Files, exposed: &[PathBuf]) -> Result<(), String> {
    let told = |err: RulesetError| err.to_string();
    let (all, read) = (AccessFs::from_all(abi), AccessFs::from_read(abi));
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(all)
        .map_err(told)?;
    let scopes = Scope::from_all(abi);
    if !scopes.is_empty() {
        ruleset = ruleset.scope(scopes).map_err(told)?;
    }
    let workspace = match files {
        Files::None => None,
        Files::Read => Some(read),
        Files::Write => Some(all),
    };
    let exposed = exposed.iter().map(PathBuf::as_path);
    let ruleset = ruleset
        .create()
        .map_err(told)?
        .add_rules(path_beneath_rules(READ.map(Path::new).into_iter().chain(exposed), read))
        .map_err(told)?
        .add_rules(path_beneath_rules(WRITTEN, all))
        .map_err(told)?;
    let ruleset = match workspace {
        None => ruleset,
        Some(access) => ruleset.add_rules(path_beneath_rules([WORKSPACE], access)).map_err(told)?,
    };
    match ruleset.restrict_self().map_err(told)?.ruleset {
        RulesetStatus::FullyEnforced => Ok(()),
        RulesetStatus::PartiallyEnforced | RulesetStatus::NotEnforced => {
            Err("the kernel does not enforce all of it".to_owned())
        }
    }
}
