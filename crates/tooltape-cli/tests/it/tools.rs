//! `tooltape tools`.

use expect_test::expect;
use serde_json::{Value, json};

use crate::home::{Home, folded};
use crate::own_tools::own_home;

/// The tools that come with the command.
const IN_THE_BOX: [&str; 19] = [
    "echo",
    "hash",
    "read_artifact",
    "list_dir",
    "read_file",
    "glob",
    "grep",
    "write_file",
    "edit_file",
    "apply_patch",
    "move_file",
    "delete_file",
    "shell",
    "exec",
    "now",
    "hash_file",
    "todo",
    "ask_user",
    "web_fetch",
];

/// Providers that take all of them in one request: a strict Anthropic takes few optional arguments.
const ROOMY: [&str; 8] = [
    "--provider",
    "openai",
    "--provider",
    "openai-strict",
    "--provider",
    "anthropic",
    "--provider",
    "gemini",
];

#[test]
fn tools_are_listed_for_people() {
    let ran = Home::new().run(&["tools", "list", "--set", "tools.allow=echo,hash,edit_file"]);
    expect![[r#"
        TOOL             ACCESS        REPEAT      DEFINITION    DESCRIPTION
        echo@1.0.0       pure          idempotent  HASH  Returns its input bytes unchang↩
        ed.
        hash@1.0.0       pure          idempotent  HASH  Returns the BLAKE3 hash of its ↩
        input bytes, as lower-case hexadecimal.
        edit_file@0.1.0  write: files  once        HASH  Replaces exact pieces of text i↩
        n an existing text file of the workspace…
    "#]]
    .assert_eq(&folded(&without_hashes(&ran.stdout)));
}

/// The text with `HASH` for each word that could be one: definitions change with their tools.
fn without_hashes(text: &str) -> String {
    let is_hash = |word: &str| word.len() >= 12 && word.chars().all(|c| c.is_ascii_hexdigit());
    let words = text.split_inclusive([' ', '\n']).map(|word| match is_hash(word.trim_end()) {
        true => word.replace(word.trim_end(), "HASH"),
        false => word.to_owned(),
    });
    words.collect()
}

#[test]
fn tools_are_listed_with_all_that_they_declare() {
    let listed = Home::new().run(&["tools", "list", "--json"]).json();
    let tools = listed.as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, IN_THE_BOX);
    for tool in tools {
        for key in [
            "name",
            "version",
            "description",
            "input_schema",
            "output_schema",
            "effects",
            "bounds",
            "needs",
            "capabilities",
            "definition",
            "id",
        ] {
            assert!(tool.get(key).is_some(), "`{key}` is missing in {tool}");
        }
    }
    assert_eq!(tools[0]["id"], "echo@1.0.0");
    assert_eq!(tools[1]["effects"]["access"], "pure");
    assert_eq!(tools[1]["effects"]["determinism"], "deterministic");
    assert_eq!(tools[8]["capabilities"], json!(["fs:read:{path}", "fs:write:{path}"]));
    assert!(tools[8]["needs"].as_array().unwrap().contains(&json!("Workspace")));
}

#[test]
fn a_tool_is_shown_with_all_that_it_declares() {
    let home = Home::new();
    let shown = home.run(&["tools", "show", "hash"]).stdout;
    let shown: Vec<&str> = shown.lines().filter(|line| !line.contains("effects ")).collect();
    expect![[r#"
        hash@1.0.0
          Returns the BLAKE3 hash of its input bytes, as lower-case hexadecimal.
          access       pure
          bounds       {"concurrency":"default","fuel":"default","idle_ms":"default","me↩
        mory":"default","output_bytes":"default","wall_ms":"default"}
          retry        {"attempts":1,"pause_ms":100,"pause_ms_max":10000}
          history      {"compact":false,"dedupe_by":null,"pin":false,"summarise_by":null↩
        }
          errors       structured
          needs        none
          capabilities none
          hooks        read
          promoted     no
          definition   HASH
          input        {
            "additionalProperties": false,
            "description": "Bytes, given as text or as base64.",
            "properties": {
              "base64": {
                "description": "The bytes in base64, with padding.",
                "type": [
                  "string",
                  "null"
                ]
              },
              "text": {
                "description": "The bytes as UTF-8 text.",
                "type": [
                  "string",
                  "null"
                ]
              }
            },
            "type": "object"
          }
          output       {
            "pattern": "^[0-9a-f]{64}$",
            "type": "string"
          }"#]]
    .assert_eq(&folded(&without_hashes(&shown.join("\n"))));
    let listed = home.run(&["tools", "list", "--json"]).json();
    assert_eq!(home.run(&["tools", "show", "hash", "--json"]).json(), listed[1]);
}

#[test]
fn what_computes_a_footprint_is_shown_by_its_name() {
    let home = Home::new();
    let shown = home.run(&["tools", "show", "edit_file"]).stdout;
    assert!(
        shown.contains("hooks        read, touches = path_of, preview = would_be\n"),
        "{shown}"
    );
    let shown = home.run(&["tools", "show", "edit_file", "--json"]).json();
    assert_eq!(shown["hooks"], json!(["read", "touches = path_of", "preview = would_be"]));
}

#[test]
fn the_configuration_takes_tools_away() {
    let home = Home::new();
    let names = |args: &[&str]| -> Vec<Value> {
        let listed = home.run(&[&["tools", "list", "--json"], args].concat()).json();
        listed.as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect()
    };
    assert_eq!(names(&["--set", "tools.allow=hash,echo"]), ["echo", "hash"]);
    assert_eq!(names(&["--set", "tools.allow="]), Vec::<Value>::new());
    home.write("tooltape.toml", "[tools]\ndisable = [\"echo\"]\n");
    home.write(home.user_config(), "[tools]\ndisable = [\"list_dir\", \"of_another_program\"]\n");
    let left = |without: &[&str]| -> Vec<&str> {
        IN_THE_BOX.into_iter().filter(|name| !without.contains(name)).collect()
    };
    assert_eq!(names(&[]), left(&["echo", "list_dir"]));
    assert_eq!(names(&["--set", "tools.disable=hash"]), left(&["echo", "list_dir", "hash"]));
}

#[test]
fn a_tool_that_is_not_there_cannot_be_disabled() {
    let home = Home::new();
    home.write("tooltape.toml", "[tools]\ndisable = [\"echo\", \"hsah\"]\n");
    home.check(
        &["tools", "list"],
        expect![[r#"
            exit 2
            --- stderr
            error[config.invalid]: tooltape.toml:2:20: there is no tool named `hsah`
               ╭─[tooltape.toml:2:20]
             1 │ [tools]
             2 │ disable = ["echo", "hsah"]
               ·                    ───┬──
               ·                       ╰── there is no tool named `hsah`
               ╰────
              help: `tooltape config schema` prints what a configuration may hold; not execu↩
            ted
        "#]],
    );
}

#[test]
fn an_export_is_what_each_providers_api_takes() {
    let home = Home::new();
    let export = |provider| home.run(&["tools", "export", "--provider", provider, "--json"]).json();
    for provider in ["openai", "openai-strict"] {
        let tools = export(provider);
        for tool in tools.as_array().unwrap() {
            assert_eq!(tool["type"], "function");
            for key in ["name", "description", "parameters"] {
                assert!(tool["function"].get(key).is_some(), "{provider}: {tool}");
            }
            assert_eq!(tool["function"]["strict"] == true, provider == "openai-strict");
        }
    }
    for provider in ["anthropic", "anthropic-strict", "plain"] {
        let tools = export(provider);
        assert_eq!(tools.as_array().unwrap().len(), IN_THE_BOX.len());
        assert!(tools[0]["input_schema"].is_object());
    }
    let gemini = export("gemini");
    assert_eq!(gemini.as_array().unwrap().len(), 1);
    let declared = gemini[0]["functionDeclarations"].as_array().unwrap();
    assert_eq!(declared.len(), IN_THE_BOX.len());
    assert!(declared[0].get("parameters").is_some());
}

#[test]
fn an_export_names_on_stderr_what_the_dialect_could_not_say() {
    let ran = Home::new().run(&["tools", "export", "--provider", "gemini"]);
    assert_eq!(ran.code, 0);
    assert!(ran.stderr.contains("note: `edit_file`: "), "{}", ran.stderr);
    assert!(serde_json::from_str::<Value>(&ran.stdout).is_ok());
}

#[test]
fn lint_findings_have_a_code_a_tool_a_message_and_a_hint() {
    let ran = Home::new().run(&[&["tools", "lint", "--json"], &ROOMY[..]].concat());
    assert_eq!(ran.code, 0);
    let findings = ran.json();
    let findings = findings.as_array().unwrap();
    assert!(!findings.is_empty());
    let mut ids = Vec::new();
    for finding in findings {
        for key in ["id", "code", "severity", "tool", "message", "hint"] {
            assert!(finding[key].is_string(), "`{key}` is missing in {finding}");
        }
        ids.push(&finding["id"]);
    }
    let count = ids.len();
    ids.sort_by_key(|id| id.to_string());
    ids.dedup();
    assert_eq!(ids.len(), count, "each finding has an id of its own");
}

#[test]
fn lint_tells_providers_apart() {
    let home = Home::new();
    let lint = |args: &[&str]| home.run(&[&["tools", "lint", "--json"], args].concat()).json();
    let plain = lint(&["--provider", "plain"]);
    let gemini = lint(&["--provider", "gemini"]);
    let about = |findings: &Value, provider: &str| {
        findings
            .as_array()
            .unwrap()
            .iter()
            .any(|finding| finding["providers"].as_array().unwrap().contains(&json!(provider)))
    };
    assert!(about(&gemini, "gemini") && !about(&plain, "gemini"));
    assert!(about(&lint(&[]), "gemini"));
}

#[test]
fn findings_fail_only_where_they_are_denied() {
    let home = own_home();
    let code =
        |args: &[&str]| home.run(&[&["tools", "lint", "-q"], &ROOMY[..], args].concat()).code;
    assert_eq!(code(&[]), 0);
    assert_eq!(code(&["--deny"]), 5);
    assert_eq!(code(&["--deny", "note"]), 5);
    assert_eq!(code(&["--deny", "error"]), 0);
}

#[test]
fn the_tools_in_the_box_have_no_warnings() {
    let ran = Home::new().run(&[&["tools", "lint", "--deny", "warning"], &ROOMY[..]].concat());
    assert_eq!(ran.code, 0, "{}", ran.transcript());
}

#[test]
fn completions_are_printed_for_each_shell() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let ran = home.run(&["completions", shell]);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
        assert!(ran.stdout.contains("tooltape") && ran.stdout.contains("export"), "{shell}");
    }
}
