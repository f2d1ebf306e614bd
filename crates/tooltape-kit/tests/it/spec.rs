//! What the tools say about themselves.

use expect_test::expect;
use serde_json::Value;
use tooltape::{Run, Toolbox};
use tooltape_kit::{Workspace, tools};

use crate::world::wrapped;

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
            counting; fs:read:{path}; [`Workspace`]
        read_file@0.1.0: read counted non_deterministic filesystem local idempotent
            counting; fs:read:{path}; [`Workspace`]
        edit_file@0.1.0: write counted non_deterministic filesystem local once
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
    expect![[r##"
        list_dir.path: {"type":["string","null"]}
            The directory, relative to the workspace. The workspace itself where
            none is given.
        read_file.lines: {"format":"uint64","minimum":1,"type":["integer","null"]}
            How many lines to read. All where none is given.
        read_file.path: {"type":"string"} required
            The file, relative to the workspace.
        read_file.start: {"format":"uint64","minimum":1,"type":["integer","null"]}
            The first line to read, counted from 1. The first of the file where none
            is given.
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
    "##]]
    .assert_eq(&fields.collect::<String>());
}

#[test]
fn every_result_has_a_schema() {
    for tool in tools() {
        let output = tool.spec().output.as_ref().unwrap();
        assert_eq!(output["type"], "object", "{}", tool.spec().name);
        let fields = output["properties"].as_object().unwrap();
        assert!(fields.values().all(|field| field.get("description").is_some()), "{output}");
    }
}

#[test]
fn no_tool_runs_without_a_workspace() {
    let toolbox = Toolbox::new(tools()).unwrap();
    let missing = Run::new(&toolbox).missing_grants();
    let missing: Vec<_> = missing.iter().map(ToString::to_string).collect();
    let needs = |tool: &str| format!("`{tool}` needs `Workspace`");
    assert_eq!(missing, ["list_dir", "read_file", "edit_file"].map(needs));
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
