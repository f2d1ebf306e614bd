//! The repository's files, as the tests about the repository read them.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The repository's root folder.
pub(crate) fn root() -> PathBuf {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_folder.ancestors().nth(2).expect("crates live in `crates/NAME`").to_owned()
}

/// Every file that git tracks or would track, relative to the root, in order.
pub(crate) fn files() -> Vec<String> {
    // Command-line scope is the one place where git accepts `safe.directory` for a single command,
    // and a clone made by another user is still ours to read.
    let args = ["-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others"];
    let output = Command::new("git")
        .args(args)
        .arg("--exclude-standard")
        .current_dir(root())
        .output()
        .expect("git is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let listed = String::from_utf8(output.stdout).expect("our paths are UTF-8");
    let mut files: Vec<String> = listed
        .split('\0')
        .filter(|path| !path.is_empty() && root().join(path).is_file())
        .map(str::to_owned)
        .collect();
    files.sort_unstable();
    files.dedup();
    assert!(files.iter().any(|path| path == "Cargo.toml"), "git listed no `Cargo.toml`");
    files
}

/// The text of a file of the repository.
pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|err| panic!("`{path}`: {err}"))
}

/// The files that are text, with their text.
pub(crate) fn texts() -> impl Iterator<Item = (String, String)> {
    files().into_iter().filter_map(|path| {
        let text = String::from_utf8(fs::read(root().join(&path)).ok()?).ok()?;
        Some((path, text))
    })
}

/// Inputs of tests and examples are not ours to tidy: some are wrong on purpose.
pub(crate) fn is_fixture(path: &str) -> bool {
    let folders = ["ui", "project", "corpus", "fixtures"];
    Path::new(path).parent().is_some_and(|parent| {
        parent.iter().any(|part| folders.iter().any(|folder| part.eq_ignore_ascii_case(folder)))
    })
}

/// What `cargo metadata` says about the package or workspace of a manifest.
///
/// Packages that are in the lock file and not on this machine are downloaded; nothing else is.
pub(crate) fn metadata(manifest: &str, more: &[&str]) -> serde_json::Value {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--locked", "--format-version", "1", "--manifest-path"])
        .arg(root().join(manifest))
        .args(more)
        .current_dir(root())
        .output()
        .expect("cargo runs this test");
    assert!(
        output.status.success(),
        "`cargo metadata` of `{manifest}` failed:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).expect("cargo prints JSON")
}
