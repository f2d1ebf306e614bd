//! The module order in `lib.rs` is the layer order: a module uses only what is declared above it.

use std::{collections::BTreeMap, ops::ControlFlow};

use super::{
    files,
    rust::{Source, sources},
};
use expect_test::{Expect, expect};

#[test]
fn a_module_uses_only_the_modules_declared_above_it() {
    let sources = sources();
    let mut complaints = Vec::new();
    let libs = sources.iter().filter(|source| source.path.ends_with("/src/lib.rs"));
    for lib in libs {
        let folder = lib.path.strip_suffix("lib.rs").expect("it is a lib.rs");
        let files = sources.iter().filter(|source| source.path.starts_with(folder));
        complaints.extend(files.flat_map(|source| upward_uses(lib, source)));
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn every_source_file_is_declared_by_its_parent() {
    let sources = sources();
    let complaints: Vec<String> = sources
        .iter()
        .filter(|source| !is_declared(source, &sources))
        .map(|source| format!("{}: no `mod` declares it, so it is not compiled", source.path))
        .collect();
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
    assert!(!is_declared(&Source::new("crates/a/src/lost.rs", ""), &sources));
    assert!(files::root().join("crates").is_dir());
}

#[test]
fn every_way_to_reach_down_is_seen() {
    let check = |path: &str, text: &str, expected: Expect| {
        let lib = "mod id;\npub mod tape;\npub(crate) mod run;\npub use run::{Run, Stop as End};\n\
            pub use tape::part::Memory;\npub use other::tool;\nmod __private { mod deep; }\n";
        let lib = Source::new("a/src/lib.rs", lib);
        let source = Source::new(&format!("a/src/{path}"), text);
        expected.assert_eq(&upward_uses(&lib, &source).join("\n"));
    };
    let fine = "use crate::{id::Id, tape, tool};\nuse super::id;\n/// crate::run\npub(crate) fn f(";
    check("tape.rs", fine, expect![""]);
    check("tape/part.rs", "use super::Event; use super::super::id; crate::Memory", expect![""]);
    check("run.rs", "$crate::__private::x(); crate::run::go(); a::Run", expect![""]);
    check("lib.rs", "use crate::run;", expect![""]);
    check(
        "tape.rs",
        "use crate::{\n    id::{self, Id}, run::Run,\n};",
        expect!["a/src/tape.rs:2: `tape` uses `run`, which lib.rs declares below it"],
    );
    check(
        "id.rs",
        "use super::tape::Tape;\nfn f(run: &crate::End) { crate::Memory::new() }\nuse crate::*;",
        expect![[r#"
            a/src/id.rs:1: `id` uses `tape`, which lib.rs declares below it
            a/src/id.rs:2: `id` uses `run`, which lib.rs declares below it
            a/src/id.rs:2: `id` uses `tape`, which lib.rs declares below it
            a/src/id.rs:3: `id` uses `*`, which no module above it declares"#]],
    );
    check(
        "tape/part.rs",
        "use super::super::run;\nuse ::a::Run;\ncrate::__private::x()",
        expect![[r#"
            a/src/tape/part.rs:1: `tape` uses `run`, which lib.rs declares below it
            a/src/tape/part.rs:2: `tape` uses `run`, which lib.rs declares below it
            a/src/tape/part.rs:3: `tape` uses `__private`, which no module above it declares"#]],
    );
}

/// What a file reaches for below its own layer, or in `lib.rs` itself.
fn upward_uses(lib: &Source, source: &Source) -> Vec<String> {
    let below = source.below_src().expect("it is under `src`");
    let layer = below.split(['/', '.']).next().expect("split yields something");
    if ["lib.rs", "main.rs"].contains(&below) {
        return Vec::new();
    }
    let lib_tokens = tokens(&lib.code);
    let (layers, exports) = (declared(&lib_tokens), exported(&lib_tokens));
    let position = |name: &str| layers.iter().position(|layer| *layer == name);
    let own = position(layer);
    let mut complaints = Vec::new();
    for (line, name) in roots(&source.code, below.matches('/').count() + 1, crate_name(source)) {
        let module = exports.get(name).copied().unwrap_or(name);
        let is_foreign = exports.contains_key(name) && position(module).is_none();
        let why = match position(module) {
            Some(used) if Some(used) <= own => continue,
            Some(_) => "lib.rs declares below it",
            None if is_foreign => continue,
            None => "no module above it declares",
        };
        complaints.push(format!("{}:{line}: `{layer}` uses `{module}`, which {why}", source.path));
    }
    complaints
}

fn crate_name(source: &Source) -> String {
    let folder = source.path.split("/src/").next().and_then(|path| path.rsplit('/').next());
    folder.expect("a path has a first part").replace('-', "_")
}

/// Whether the file is the root of a target, or its parent module names it.
fn is_declared(source: &Source, sources: &[Source]) -> bool {
    let (folder, file) = source.path.rsplit_once('/').unwrap_or(("", &source.path));
    let target_folders = ["tests", "examples", "benches", "fuzz_targets", "bin"];
    let is_root = ["lib.rs", "main.rs", "build.rs"].contains(&file)
        || target_folders.contains(&folder.rsplit('/').next().unwrap_or(folder));
    let parents = [format!("{folder}.rs"), format!("{folder}/lib.rs"), format!("{folder}/main.rs")];
    let mut parents = sources.iter().filter(|parent| parents.contains(&parent.path));
    let stem = file.strip_suffix(".rs").expect("it is a Rust file");
    is_root || parents.any(|parent| declared(&tokens(&parent.code)).contains(&stem))
}

/// The modules that a file declares at its top level, in order.
fn declared<'a>(tokens: &[(usize, &'a str)]) -> Vec<&'a str> {
    let mut depth = 0_usize;
    let mut modules = Vec::new();
    for window in tokens.windows(3) {
        match (window[0].1, window[1].1, window[2].1) {
            ("{", ..) => depth += 1,
            ("}", ..) => depth = depth.saturating_sub(1),
            ("mod", module, ";") if depth == 0 => modules.push(module),
            _ => {}
        }
    }
    modules
}

/// The names that `lib.rs` re-exports, each with the module or crate it comes from.
fn exported<'a>(tokens: &[(usize, &'a str)]) -> BTreeMap<&'a str, &'a str> {
    let mut exports = BTreeMap::new();
    let mut root = None;
    for window in tokens.windows(2) {
        let (token, next) = (window[0].1, window[1].1);
        match (token, next) {
            ("use", from) => root = Some(from),
            (";", _) => root = None,
            (name, "," | "}" | ";") if is_name(name) => {
                exports.extend(root.map(|root| (name, root)));
            }
            _ => {}
        }
    }
    exports
}

/// The names that a file takes from the root of its crate, each with its line.
fn roots(code: &str, depth: usize, crate_name: String) -> Vec<(usize, &str)> {
    let tokens = tokens(code);
    let text = |at: usize| tokens.get(at).map_or("", |(_, text)| *text);
    let mut roots = Vec::new();
    for at in 0..tokens.len() {
        let before = if at == 0 { "" } else { text(at - 1) };
        let is_path = text(at + 1) == "::";
        match text(at) {
            "crate" if is_path && before != "$" => collect_heads(&tokens, at + 2, &mut roots),
            "super" if is_path && before != "::" => {
                let supers = (at..).step_by(2).take_while(|at| text(*at) == "super").count();
                if supers >= depth {
                    collect_heads(&tokens, at + 2 * supers, &mut roots);
                }
            }
            name if is_path && name == crate_name => collect_heads(&tokens, at + 2, &mut roots),
            _ => {}
        }
    }
    roots
}

/// The first name of each path of the `use` tree at `start`.
fn collect_heads<'a>(tokens: &[(usize, &'a str)], start: usize, heads: &mut Vec<(usize, &'a str)>) {
    let Some((line, first)) = tokens.get(start).copied() else { return };
    if first != "{" {
        heads.push((line, first));
        return;
    }
    let _ = tokens[start..].windows(2).try_fold(0_usize, |depth, window| {
        let depth = match window[0].1 {
            "{" => depth + 1,
            "}" => depth - 1,
            _ => depth,
        };
        let is_head = depth == 1 && ["{", ","].contains(&window[0].1);
        if is_head && window[1].1 != "}" {
            heads.push(window[1]);
        }
        if depth == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(depth) }
    });
}

fn is_name(token: &str) -> bool {
    token.starts_with(|char: char| char.is_alphabetic() || char == '_')
}

/// Words, `::` and single signs, each with its line, counted from one.
fn tokens(code: &str) -> Vec<(usize, &str)> {
    let mut tokens = Vec::new();
    for (index, line) in code.lines().enumerate() {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let word = rest.find(|char: char| !char.is_alphanumeric() && char != '_');
            let len = match word.unwrap_or(rest.len()) {
                0 if rest.starts_with("::") => 2,
                0 => first.len_utf8(),
                len => len,
            };
            tokens.push((index + 1, &rest[..len]));
            rest = rest[len..].trim_start();
        }
    }
    tokens
}
