//! What the tools say about themselves.

use expect_test::{Expect, expect};
use serde_json::Value;
use tooltape::{Run, Toolbox};
use tooltape_kit::{Workspace, tools};

use crate::world::wrapped;

/// What a model reads of each argument.
const ARGUMENTS: Expect = expect![[r##"
    list_dir.depth: {"format":"uint","minimum":0,"type":["integer","null"]}
        How many levels to list, 1 to 8: with 2, also what the directories in it
        hold.
    list_dir.path: {"type":["string","null"]}
        The directory, relative to the workspace. The workspace itself where
        none is given.
    read_file.encoding: {"type":["string","null"]}
        Such as `windows-1252` or `shift_jis`, where it is not UTF-8, or UTF-16
        that says so.
    read_file.lines: {"format":"uint64","minimum":1,"type":["integer","null"]}
        How many lines to read. All where none is given.
    read_file.numbered: {"default":false,"type":"boolean"}
        Whether to put its number and a tab before each line. They are no part
        of the file.
    read_file.path: {"type":"string"} required
        The file, relative to the workspace.
    read_file.start: {"format":"uint64","minimum":1,"type":["integer","null"]}
        The first line to read, counted from 1. The first of the file where none
        is given.
    glob.hidden: {"default":false,"type":"boolean"}
        Whether to look at names that begin with a dot, too.
    glob.ignored: {"default":false,"type":"boolean"}
        Whether to look at what `.gitignore` and `.ignore` name, too.
    glob.limit: {"format":"uint64","minimum":0,"type":["integer","null"]}
        How many files to list: 1000 where none is given.
    glob.path: {"type":["string","null"]}
        The directory to look in, relative to the workspace: all of it where
        none is given.
    glob.pattern: {"type":"string"} required
        Such as `*.rs` for names at any depth, or `src/**/*.{ts,tsx}` for paths
        from `path` on.
    grep.after: {"default":0,"format":"uint64","minimum":0,"type":"integer"}
        How many lines to show after each match.
    grep.before: {"default":0,"format":"uint64","minimum":0,"type":"integer"}
        How many lines to show before each match.
    grep.fixed: {"default":false,"type":"boolean"}
        Whether `pattern` is plain text.
    grep.glob: {"type":["string","null"]}
        Only files whose paths match, such as `*.rs` or `src/**/*.ts`; with `!`
        in front all others.
    grep.hidden: {"default":false,"type":"boolean"}
        Whether to look at names that begin with a dot, too.
    grep.ignore_case: {"default":false,"type":"boolean"}
        Whether upper and lower case are the same.
    grep.ignored: {"default":false,"type":"boolean"}
        Whether to look at what `.gitignore` and `.ignore` name, too.
    grep.limit: {"format":"uint64","minimum":0,"type":["integer","null"]}
        How many matches, or files, to show: 200 where none is given.
    grep.multiline: {"default":false,"type":"boolean"}
        Whether a match may go over several lines.
    grep.path: {"type":["string","null"]}
        The directory or file to search, relative to the workspace: all of it
        where none is given.
    grep.pattern: {"type":"string"} required
        A regular expression in Rust's syntax: no look-around, no
        back-references.
    grep.show: {"enum":["lines","files","counts",null],"type":["string","null"]}
        The matching `lines` where nothing is given, or the `files` alone, or
        `counts` of lines.
    write_file.content: {"type":"string"} required
        The whole content, written byte for byte.
    write_file.create_dirs: {"type":["boolean","null"]}
        Whether to create the folders above the file that are missing.
    write_file.expect_hash: {"type":["string","null"]}
        The hash that `read_file` returned, to replace the file only if it still
        has it.
    write_file.overwrite: {"type":["boolean","null"]}
        Whether to replace a file whatever it holds.
    write_file.path: {"type":"string"} required
        The file, relative to the workspace.
    edit_file.edits: {"items":{"$ref":"#/$defs/Edit"},"type":"array"} required
        The replacements, made one after the other: all of them or none.
    edit_file.expect_hash: {"type":["string","null"]}
        The hash that `read_file` returned. The file is left alone if it has
        another one by now.
    edit_file.path: {"type":"string"} required
        The file, relative to the workspace.
    Edit.new: {"type":"string"} required
        The text to put in its place.
    Edit.old: {"type":"string"} required
        The text to replace, exactly as it stands in the file. It must occur
        exactly once.
    Edit.replace_all: {"type":["boolean","null"]}
        Whether to replace every occurrence, of which there must be at least
        one.
    apply_patch.patch: {"type":"string"} required
        A unified diff; `/dev/null` stands for a file that is not there.
    apply_patch.paths: {"items":{"type":"string"},"type":"array"} required
        Every path in the patch, old and new, relative to the workspace.
    move_file.from: {"type":"string"} required
        The file, relative to the workspace.
    move_file.overwrite: {"type":["boolean","null"]}
        Whether to replace a file that is there.
    move_file.to: {"type":"string"} required
        Where it is to be, relative to the workspace.
    delete_file.expect_hash: {"type":["string","null"]}
        The hash that `read_file` returned. The file is left alone if it has
        another one by now.
    delete_file.path: {"type":"string"} required
        The file or the empty folder, relative to the workspace.
"##]];

#[test]
fn every_tool_declares_what_it_does_and_no_more() {
    let specs = tools().map(|tool| {
        let spec = tool.spec();
        let effects = serde_json::to_value(&spec.effects).unwrap();
        let said = |(field, value): (&String, &Value)| match value {
            Value::Bool(true) => Some(field.clone()),
            Value::String(word) => Some(word.clone()),
            _ => None,
        };
        let said: Vec<_> = effects.as_object().unwrap().iter().filter_map(said).collect();
        let (capabilities, needs) = (spec.capabilities.join(" "), &spec.needs);
        let id = format!("{}@{}", spec.name, spec.version);
        wrapped(&format!("{id}: {}; {capabilities}; {needs:?}", said.join(" ")))
    });
    expect![[r#"
        list_dir@0.1.0: read counted non_deterministic filesystem local idempotent
            counting; fs:read:{path}; [`Workspace`, `Clock`, `Cancel`]
        read_file@0.1.0: read counted non_deterministic filesystem local idempotent
            counting; fs:read:{path}; [`Workspace`]
        glob@0.1.0: read counted non_deterministic filesystem local idempotent
            counting; fs:read:{path}; [`Workspace`, `Clock`, `Cancel`]
        grep@0.1.0: read counted non_deterministic filesystem local idempotent
            counting; fs:read:{path}; [`Workspace`, `Clock`, `Cancel`]
        write_file@0.1.0: write counted non_deterministic filesystem local once
            counting; fs:read:{path} fs:write:{path}; [`Workspace`, `Random`]
        edit_file@0.1.0: write counted non_deterministic filesystem local once
            counting; fs:read:{path} fs:write:{path}; [`Workspace`, `Random`]
        apply_patch@0.1.0: write counted non_deterministic filesystem local once
            counting; fs:read:{paths} fs:write:{paths}; [`Workspace`, `Random`]
        move_file@0.1.0: write counted non_deterministic filesystem local once
            counting; fs:read:{from} fs:write:{from} fs:write:{to}; [`Workspace`]
        delete_file@0.1.0: write counted non_deterministic filesystem local once
            counting; fs:read:{path} fs:write:{path}; [`Workspace`, `Random`]
    "#]]
    .assert_eq(&specs.concat());
}

#[test]
fn a_model_sees_these_arguments() {
    let tools = tools();
    let objects = tools.iter().flat_map(|tool| {
        let (name, input) = (tool.spec().name.to_string(), &tool.spec().input);
        let parts = input["$defs"].as_object().into_iter().flatten();
        let parts = parts.map(|(part, schema)| (part.clone(), schema));
        [(name, input)].into_iter().chain(parts)
    });
    let fields = objects.flat_map(|(name, object)| {
        assert_eq!(object["additionalProperties"], false, "{name}");
        let fields = object["properties"].as_object().unwrap().iter();
        fields.map(move |(field, schema)| {
            let mut schema = schema.clone();
            let description = schema.as_object_mut().unwrap().remove("description").unwrap();
            let is_required = object["required"]
                .as_array()
                .is_some_and(|required| required.iter().any(|required| required == field));
            let required = if is_required { " required" } else { "" };
            let said = format!("{name}.{field}: {schema}{required}\n");
            said + &wrapped(&format!("    {}", description.as_str().unwrap()))
        })
    });
    ARGUMENTS.assert_eq(&fields.collect::<String>());
}

#[test]
fn every_result_has_a_schema() {
    for tool in tools() {
        let output = tool.spec().output.as_ref().unwrap();
        assert_eq!(output["type"], "object", "{}", tool.spec().name);
        let parts = output["$defs"].as_object().into_iter().flatten().map(|(_, part)| part);
        let objects = [output].into_iter().chain(parts);
        let fields = objects.filter_map(|object| object["properties"].as_object()).flatten();
        let has_description = |(_, field): (&String, &Value)| field.get("description").is_some();
        assert!(fields.clone().count() > 0, "{output}");
        assert!(fields.clone().all(has_description), "{output}");
    }
}

#[test]
fn no_tool_runs_without_a_workspace() {
    let toolbox = Toolbox::new(tools()).unwrap();
    let missing = Run::new(&toolbox).missing_grants();
    let missing: Vec<_> = missing.iter().map(ToString::to_string).collect();
    let needs = |tool: &str| format!("`{tool}` needs `Workspace`");
    assert_eq!(missing, tools().map(|tool| needs(&tool.spec().name)));
}

#[test]
fn a_folder_that_is_not_there_is_no_workspace() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gone");
    let refusal = Workspace::open(&path).unwrap_err();
    assert_eq!(refusal.code(), "workspace_unavailable");
    let expected =
        format!("the workspace `{}` could not be opened: entity not found", path.display());
    assert_eq!(refusal.to_string(), expected);
    std::fs::write(&path, "").unwrap();
    let told = Workspace::open(&path).unwrap_err().to_string();
    assert!(told.ends_with("could not be opened: not a directory"), "{told}");
}
