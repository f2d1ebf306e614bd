//! FS-09: names that others run or obey are written by no tool, under any spelling, there or not.

use std::fs;

use serde_json::json;
use tooltape::Executed;

use crate::forms::{FORMS, MOVED};
use crate::naive;
use crate::users::as_each;
use crate::world::{CANARY, World, code};

/// Protected names in every spelling that some file system takes for them.
const PROTECTED: [&str; 44] = [
    ".git/config",
    ".git/hooks/pre-commit",
    ".git/info/attributes",
    "sub/.git/config",
    ".GIT/config",
    ".Git/config",
    ".git",
    ".g\u{200c}it/config",
    ".git./config",
    ".git /config",
    ".git::$DATA/config",
    ".git::$INDEX_ALLOCATION/config",
    "GIT~1/config",
    "git~2/config",
    "VSCODE~1/tasks.json",
    ".gitattributes",
    ".gitmodules",
    "sub/.gitmodules",
    ".husky/pre-commit",
    ".tooltape/tape.db",
    "tooltape.toml",
    "TOOLTAPE.TOML",
    "TOOLTA~1.TOM",
    "sub/tooltape.toml",
    ".mcp.json",
    ".MCP.json",
    ".claude/settings.json",
    ".cursor/mcp.json",
    ".codex/config.toml",
    ".vscode/tasks.json",
    ".VSCode/tasks.json",
    ".v\u{17f}code/x",
    "a.code-workspace",
    ".idea/workspace.xml",
    ".devcontainer/devcontainer.json",
    ".envrc",
    ".ENVRC",
    "sub/.envrc",
    ".bashrc",
    ".profile",
    ".zshenv",
    ".ssh/authorized_keys",
    ".cargo/config.toml",
    "HEAD",
];

#[test]
fn protected_names_are_never_written_under_any_name() {
    as_each("protected::protected_names_are_never_written_under_any_name", |user| {
        let (mut cases, mut controls) = (0, 0);
        for path in PROTECTED {
            for form in FORMS.iter().filter(|form| form.is_change()) {
                for exists in [true, false] {
                    let world = World::new();
                    world.file(MOVED, "moved\n").file("dir/inside.txt", "inside\n");
                    if exists {
                        world.file(path, CANARY);
                    }
                    let reply = world.call(form.tool, &form.args(&json!(path).to_string()));
                    let name = form.name;
                    assert_eq!(code(&reply), "protected", "{name} {path}: {}", reply.text());
                    assert_eq!(reply.executed, Executed::NotExecuted);
                    assert_eq!(world.at(path).exists(), exists, "{name} {path}");
                    assert!(!exists || world.text(path) == CANARY, "{name} {path}");
                    assert_eq!(world.text(MOVED), "moved\n");
                    cases += 1;
                }
            }
            let world = World::new();
            world.file(path, CANARY);
            naive::edit_file(&world.at(""), path, "CANARY", "OWNED").unwrap();
            controls += usize::from(world.text(path) != CANARY);
        }
        eprintln!("fs-09: {cases} cases as {user}, 0 escapes, control {controls} escapes");
        assert_eq!(controls, PROTECTED.len(), "the control writes all of them");
    });
}

#[test]
fn a_folder_is_not_made_a_repository_and_one_that_is_stays_as_it_is() {
    for (file, made) in [
        ("x/HEAD", ""),
        ("x/head", ""),
        // The hook of a repository that was there before.
        ("x/hooks/post-checkout", "x/HEAD"),
        ("x/config", "x/HEAD"),
        ("x/objects/a", "x/HEAD"),
        ("x/deep/er/a", "x/HEAD"),
        ("a", "HEAD"),
    ] {
        for form in FORMS.iter().filter(|form| form.is_change()) {
            let world = World::new();
            world.file(MOVED, "moved\n").file("x/config", CANARY);
            if !made.is_empty() {
                world.file(made, "ref: refs/heads/main\n");
            }
            let reply = world.call(form.tool, &form.args(&json!(file).to_string()));
            assert_eq!(code(&reply), "protected", "{} {file}: {}", form.name, reply.text());
            assert_eq!(world.text("x/config"), CANARY);
        }
    }
    // A folder of that name is none.
    let world = World::new();
    let args = r#"{"path":"components/Head/index.tsx","content":"","create_dirs":true}"#;
    assert_eq!(code(&world.call("write_file", args)), "ok");
    fs::create_dir(world.at("HEAD")).unwrap();
    assert_eq!(code(&world.call("write_file", r#"{"path":"a","content":""}"#)), "ok");
}

#[test]
fn names_that_are_nobody_elses_are_written() {
    let world = World::new();
    for path in [
        ".gitignore",
        "git/config",
        ".github/workflows/ci.yml",
        "AGENTS.md",
        ".env",
        ".editorconfig",
        "gitx~1",
        "a~1",
        "b~",
        "HEAD.md",
        ".gitkeep",
        "vscode",
    ] {
        let args = json!({ "path": path, "content": "a", "create_dirs": true }).to_string();
        let reply = world.call("write_file", &args);
        assert_eq!(code(&reply), "ok", "{path}: {}", reply.text());
    }
}
