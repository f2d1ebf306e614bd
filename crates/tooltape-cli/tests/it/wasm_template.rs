//! `tooltape init --template wasm`.

use std::fs;
use std::path::Path;
use std::process::Command;

use expect_test::expect;

use crate::home::{Home, root};

/// The most bytes of the component: as for those of `examples/wasm`.
const COMPONENT_BYTES_MAX: usize = 300_000;
/// How a component begins: it is WASM, version 13, and no core module.
const COMPONENT_MAGIC: [u8; 8] = [0, b'a', b's', b'm', 13, 0, 1, 0];

#[test]
fn the_template_has_the_world_of_this_version() {
    let ours = root().join("crates/tooltape-wasm/wit/tool.wit");
    let copy = root().join("crates/tooltape-cli/templates/wasm/wit/tool.wit");
    assert_eq!(fs::read_to_string(ours).unwrap(), fs::read_to_string(copy).unwrap());
}

#[test]
fn the_template_is_a_project_that_builds_and_passes_its_own_test() {
    let home = Home::new();
    home.check(
        &["init", "--template", "wasm", "new"],
        expect![[r#"
            exit 0
            --- stderr
            created new/Cargo.toml
            created new/Cargo.lock
            created new/.gitignore
            created new/README.md
            created new/src/lib.rs
            created new/src/slug.rs
            created new/src/component.rs
            created new/src/input.json
            created new/src/output.json
            created new/tests/slug.rs
            created new/wit/tool.wit
            created new/tooltape.toml
            created new/session.jsonl
            next:
              cd new
              rustup target add wasm32-wasip2
              cargo test
              cargo build --release --target wasm32-wasip2
              tooltape call slug title='Hello, World!'
        "#]],
    );
    let project = home.here().join("new");
    let tested = cargo(&project, &["test", "--locked"]);
    assert!(tested.contains("a_slug_has_the_words_of_the_title ... ok"), "{tested}");
    cargo(&project, &["build", "--locked", "--release", "--target", "wasm32-wasip2"]);
    let component = target().join("wasm32-wasip2/release/slug.wasm");
    let component = fs::read(component).unwrap();
    assert_eq!(component[..8], COMPONENT_MAGIC);
    assert!(component.len() <= COMPONENT_BYTES_MAX, "{} bytes", component.len());
}

#[test]
fn a_file_that_is_there_stops_the_template_before_it_writes() {
    let home = Home::new();
    home.write("src/lib.rs", "mine");
    let ran = home.run(&["init", "--template", "wasm"]);
    assert_eq!(ran.code, 2, "{}", ran.transcript());
    assert!(ran.stderr.starts_with("error[file.exists]: `./src/lib.rs`"), "{}", ran.stderr);
    assert_eq!(fs::read_dir(home.here()).unwrap().count(), 1);
}

#[test]
fn a_template_that_is_not_there_is_refused_with_those_that_are() {
    let ran = Home::new().run(&["init", "--template", "wasi"]);
    assert_eq!(ran.code, 2, "{}", ran.transcript());
    assert!(ran.stderr.contains("[possible values: agent, wasm]"), "{}", ran.stderr);
}

/// Dependencies are built once for all runs, and for the components of `examples/wasm`, too.
fn target() -> &'static Path {
    Path::new(concat!(env!("CARGO_TARGET_TMPDIR"), "/guests"))
}

/// What cargo printed, in a project that is no part of ours.
fn cargo(project: &Path, args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO"));
    command.args(args).current_dir(project).env("CARGO_TARGET_DIR", target());
    // What a build of this repository was told is not meant for another.
    command.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    let output = command.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}\n{printed}\n{told}");
    printed
}
