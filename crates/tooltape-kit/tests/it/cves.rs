//! What went wrong elsewhere, by its public number: done to our tools, and to the usual ones.

use std::fs;

use serde_json::json;

use crate::naive;
use crate::users::as_each;
use crate::world::{CANARY, World};

/// An attack that worked somewhere.
struct Incident {
    family: &'static str,
    id: &'static str,
    /// What the workspace holds before.
    prepare: fn(&World),
    /// What a model that obeys the attacker calls.
    attack: fn(&World) -> Vec<String>,
    /// The same against tools as they are usually written.
    control: fn(&World) -> Vec<String>,
}

fn call(world: &World, tool: &str, args: serde_json::Value) -> Vec<String> {
    vec![world.call(tool, &args.to_string()).text()]
}

fn write(world: &World, path: &str) -> Vec<String> {
    let args =
        json!({ "path": path, "content": "OWNED\n", "create_dirs": true, "overwrite": true });
    call(world, "write_file", args)
}

fn patch(world: &World, paths: &[&str], patch: &str) -> Vec<String> {
    call(world, "apply_patch", json!({ "paths": paths, "patch": patch }))
}

/// The usual tool writes.
fn naive_write(world: &World, path: &str) -> Vec<String> {
    let _ = naive::write_file(&root(world), path, "OWNED\n");
    Vec::new()
}

fn naive_read(world: &World, path: &str) -> Vec<String> {
    naive::read_file(&root(world), path).into_iter().collect()
}

/// The workspace's path without a slash at its end.
fn root(world: &World) -> std::path::PathBuf {
    world.folder().join("ws")
}

fn nothing(_: &World) {}

/// A change of the canary outside, as a patch.
const OVER: &str =
    "--- a/../outside/canary\n+++ b/../outside/canary\n@@ -1 +1 @@\n-CANARY\n+OWNED\n";
const THROUGH: &str = "--- a/link/canary\n+++ b/link/canary\n@@ -1 +1 @@\n-CANARY\n+OWNED\n";
const NEW: &str = "--- /dev/null\n+++ b/link/new\n@@ -0,0 +1 @@\n+OWNED\n";
const LINK: &str = "diff --git a/way b/way\nnew file mode 120000\n--- /dev/null\n+++ b/way\n\
                    @@ -0,0 +1 @@\n+../outside\n\\ No newline at end of file\n";
const RENAME: &str = "diff --git a/a b/b\nrename from a.txt\nrename to ../outside/new\n";

const INCIDENTS: [Incident; 23] = [
    Incident {
        family: "FS-01",
        id: "CVE-2025-53110",
        prepare: nothing,
        attack: |world| call(world, "read_file", json!({ "path": "../ws-evil/canary" })),
        control: |world| naive_read(world, &format!("{}-evil/canary", root(world).display())),
    },
    Incident {
        family: "FS-02",
        id: "CVE-2025-53109",
        prepare: |world| _ = world.link(world.folder().join("outside/canary"), "link"),
        attack: |world| {
            [write(world, "link"), call(world, "read_file", json!({ "path": "link" }))].concat()
        },
        control: |world| naive_write(world, "link"),
    },
    Incident {
        family: "FS-02",
        id: "CVE-2025-55345",
        prepare: |world| _ = world.link("../outside", "link"),
        attack: |world| write(world, "link/new"),
        control: |world| naive_write(world, "link/new"),
    },
    Incident {
        family: "FS-02",
        id: "CVE-2026-39861",
        prepare: |world| _ = world.link("../outside/new", "dangling"),
        attack: |world| write(world, "dangling"),
        control: |world| naive_write(world, "dangling"),
    },
    Incident {
        family: "FS-03",
        id: "CVE-2026-25724",
        prepare: |world| _ = world.file(".git/config", "core").link(".git", "docs"),
        attack: |world| write(world, "docs/config"),
        control: |world| naive_write(world, "docs/config"),
    },
    Incident {
        family: "FS-04",
        id: "CVE-2007-4559",
        prepare: nothing,
        attack: |world| write(world, "../outside/new"),
        control: |world| naive_write(world, "../outside/new"),
    },
    Incident {
        family: "FS-06",
        id: "CVE-2024-34346",
        prepare: |world| _ = world.link("/proc/self/root", "proc"),
        attack: |world| write(world, &format!("proc{}/outside/new", world.folder().display())),
        control: |world| {
            naive_write(world, &format!("proc{}/outside/new", world.folder().display()))
        },
    },
    Incident {
        family: "FS-08",
        id: "CVE-2025-59532",
        prepare: nothing,
        attack: |world| {
            call(world, "read_file", json!({ "path": "canary", "cwd": "../outside", "root": "/" }))
        },
        control: |world| {
            naive_read(&World::new(), "")
                .into_iter()
                .chain(naive::read_file(&world.folder().join("outside"), "canary"))
                .collect()
        },
    },
    Incident {
        family: "FS-08",
        id: "Overpatch",
        prepare: nothing,
        attack: |world| patch(world, &["../outside/canary"], OVER),
        control: |world| {
            _ = naive::edit_file(&root(world), "../outside/canary", "CANARY", "OWNED");
            Vec::new()
        },
    },
    Incident {
        family: "FS-09",
        id: "CVE-2026-25725",
        prepare: nothing,
        attack: |world| write(world, ".claude/settings.json"),
        control: |world| naive_write(world, ".claude/settings.json"),
    },
    Incident {
        family: "FS-09",
        id: "CVE-2026-26268",
        prepare: |world| {
            _ = world
                .file("x/HEAD", "ref: refs/heads/main\n")
                .file("x/refs/a", "")
                .file("x/objects/a", "")
        },
        attack: |world| [write(world, "x/config"), write(world, ".git/hooks/pre-commit")].concat(),
        control: |world| naive_write(world, "x/config"),
    },
    Incident {
        family: "FS-09",
        id: "CVE-2026-45033",
        prepare: |world| _ = world.file("a.txt", "OWNED\n"),
        attack: |world| call(world, "move_file", json!({ "from": "a.txt", "to": ".envrc" })),
        control: |world| {
            _ = naive::move_file(&root(world), "a.txt", ".envrc");
            Vec::new()
        },
    },
    Incident {
        family: "FS-09",
        id: "CVE-2014-9390",
        prepare: nothing,
        attack: |world| [write(world, ".GIT/config"), write(world, ".g\u{200c}it/config")].concat(),
        control: |world| naive_write(world, ".GIT/config"),
    },
    Incident {
        family: "FS-09",
        id: "CVE-2019-1352",
        prepare: nothing,
        attack: |world| write(world, ".git::$INDEX_ALLOCATION/config"),
        control: |world| naive_write(world, ".git::$INDEX_ALLOCATION/config"),
    },
    Incident {
        family: "FS-09",
        id: "CVE-2019-1353",
        prepare: nothing,
        attack: |world| write(world, "git~1/config"),
        control: |world| naive_write(world, "git~1/config"),
    },
    Incident {
        family: "FS-09",
        id: "CVE-2025-48384",
        prepare: nothing,
        attack: |world| write(world, ".gitmodules"),
        control: |world| naive_write(world, ".gitmodules"),
    },
    Incident {
        family: "FS-10",
        id: "CVE-2026-46406",
        prepare: |world| _ = world.file("a.txt", "a\n").link("../outside/canary", "a.tmp"),
        attack: |world| write(world, "a.txt"),
        control: |world| naive_write(world, "a.txt"),
    },
    Incident {
        family: "FS-02",
        id: "CVE-2010-4651",
        prepare: nothing,
        attack: |world| patch(world, &["a/../../outside/canary"], &OVER.replace("../", "a/../../")),
        control: |world| {
            _ = naive::edit_file(&root(world), "../outside/canary", "CANARY", "OWNED");
            Vec::new()
        },
    },
    Incident {
        family: "FS-02",
        id: "CVE-2015-1196",
        prepare: nothing,
        attack: |world| [patch(world, &["way"], LINK), write(world, "way/new")].concat(),
        control: |world| {
            world.link("../outside", "way");
            naive_write(world, "way/new")
        },
    },
    Incident {
        family: "FS-02",
        id: "CVE-2015-1395",
        prepare: |world| _ = world.file("a.txt", "OWNED\n"),
        attack: |world| patch(world, &["a.txt", "../outside/new"], RENAME),
        control: |world| {
            _ = naive::move_file(&root(world), "a.txt", "../outside/new");
            Vec::new()
        },
    },
    Incident {
        family: "FS-02",
        id: "CVE-2019-13636",
        prepare: |world| _ = world.link("../outside", "link"),
        attack: |world| patch(world, &["link/canary"], THROUGH),
        control: |world| {
            _ = naive::edit_file(&root(world), "link/canary", "CANARY", "OWNED");
            Vec::new()
        },
    },
    Incident {
        family: "FS-02",
        id: "CVE-2023-23946",
        prepare: |world| _ = world.link("../outside", "link"),
        attack: |world| patch(world, &["link/new"], NEW),
        control: |world| naive_write(world, "link/new"),
    },
    Incident {
        family: "FS-12",
        id: "CWE-62",
        prepare: |world| {
            fs::hard_link(world.folder().join("outside/canary"), world.at("a.txt")).unwrap()
        },
        attack: |world| write(world, "a.txt"),
        control: |world| naive_write(world, "a.txt"),
    },
];

/// What an attacker wants: to read or change what is outside, or to write what others obey.
fn is_harmed(world: &World, shown: &[String], before: &Before) -> bool {
    // What stands in a diff was inside before, by whatever other name it has.
    let reads = shown.iter().any(|text| text.contains(CANARY.trim()) && !text.contains("diff"));
    reads || Before::of(world) != *before
}

#[derive(PartialEq)]
struct Before {
    outside: std::collections::BTreeMap<std::path::PathBuf, (String, u64, u32)>,
    obeyed: Vec<Option<String>>,
}

impl Before {
    fn of(world: &World) -> Before {
        let obeyed = [
            ".git/config",
            ".git/hooks/pre-commit",
            ".claude/settings.json",
            "x/config",
            ".envrc",
            ".GIT/config",
            ".g\u{200c}it/config",
            ".git::$INDEX_ALLOCATION/config",
            "git~1/config",
            ".gitmodules",
        ];
        let obeyed = obeyed.map(|path| fs::read_to_string(world.at(path)).ok()).into();
        Before { outside: world.outside(), obeyed }
    }
}

#[test]
fn what_went_wrong_elsewhere_does_not_go_wrong_here() {
    as_each("cves::what_went_wrong_elsewhere_does_not_go_wrong_here", |user| {
        for Incident { family, id, prepare, attack, control } in INCIDENTS {
            let world = World::new();
            prepare(&world);
            let before = Before::of(&world);
            let shown = attack(&world);
            assert!(!is_harmed(&world, &shown, &before), "{family} {id}: {shown:?}");

            let world = World::new();
            prepare(&world);
            let before = Before::of(&world);
            let shown = control(&world);
            assert!(is_harmed(&world, &shown, &before), "{family} {id}: the control held");
        }
        let named = INCIDENTS.iter().filter(|incident| incident.id.starts_with("CVE-")).count();
        eprintln!(
            "fs: {named} incidents by number as {user}, none works, each does on the control"
        );
        assert!(named >= 20);
    });
}
