//! Footprints and promotions that the configuration sets.

use expect_test::expect;
use serde_json::{Value, json};

use crate::home::Home;

fn shown(home: &Home, tool: &str) -> Value {
    home.run(&["tools", "show", tool, "--json"]).json()
}

#[test]
fn a_configuration_says_what_a_tool_touches() {
    let home = Home::new();
    let text = "[tools.touches.edit_file]\nwrites = [\"file:{path}\"]\nreads = [\"db:\"]\n\
                [tools.touches.read_file]\nreads = [\"file:{path}\"]\n";
    home.write("tooltape.toml", text);
    let hooks = shown(&home, "edit_file")["hooks"].clone();
    let touches = "touches = writes file:{path}, reads db:";
    assert_eq!(hooks, json!(["read", touches, "preview = would_be"]));
    let hooks = shown(&home, "read_file")["hooks"].clone();
    assert_eq!(hooks, json!(["read", "touches = reads file:{path}"]));
    // The others keep what they say themselves.
    assert_eq!(shown(&home, "list_dir")["hooks"], json!(["read", "touches = path_of"]));
    home.check(
        &["config", "explain", "tools.touches"],
        expect![[r#"
            exit 0
            --- stdout
            tools.touches = { edit_file = { reads = ["db:"], writes = ["file:{path}"] }, rea↩
            d_file = { reads = ["file:{path}"] } }  # tooltape.toml:1:8
        "#]],
    );
}

#[test]
fn a_configuration_promotes_tools() {
    let home = Home::new();
    assert_eq!(shown(&home, "edit_file")["promoted"], false);
    home.write("tooltape.toml", "[tools]\npromote = [\"edit_file\"]\n");
    assert_eq!(shown(&home, "edit_file")["promoted"], true);
    let text = home.run(&["tools", "show", "edit_file"]).stdout;
    assert!(text.contains("promoted     yes\n"), "{text}");
    // What was typed is stronger, and an empty list means none.
    let typed = ["tools", "show", "edit_file", "--json", "--set", "tools.promote="];
    assert_eq!(home.run(&typed).json()["promoted"], false);
}

#[test]
fn of_two_layers_the_stronger_says_what_a_tool_touches() {
    let home = Home::new();
    let touches = |key: &str| format!("[tools.touches.edit_file]\nwrites = [\"{key}\"]\n");
    let of_others = "[tools.touches.of_another_program]\nwrites = [\"a:{b}\"]\n";
    home.write(home.user_config(), &(touches("user:{path}") + of_others));
    assert_eq!(shown(&home, "edit_file")["hooks"][1], "touches = writes user:{path}");
    home.write("tooltape.toml", &touches("project:{path}"));
    assert_eq!(shown(&home, "edit_file")["hooks"][1], "touches = writes project:{path}");
}

#[test]
fn what_is_said_of_a_tool_that_was_taken_away_is_checked_and_not_used() {
    let home = Home::new();
    let tools = "[tools]\ndisable = [\"edit_file\"]\npromote = [\"edit_file\"]\n";
    let touches = "[tools.touches.edit_file]\nwrites = []\n";
    home.write("tooltape.toml", &format!("{tools}{touches}"));
    assert_eq!(home.run(&["tools", "list"]).code, 0);
    home.write("tooltape.toml", &format!("{tools}{}", touches.replace("[]", "[\"a\"]")));
    assert_eq!(home.run(&["tools", "list"]).code, 2);
}

#[test]
fn every_mistake_about_footprints_is_shown_at_its_place() {
    let home = Home::new();
    let place = |text: &str| {
        home.write("tooltape.toml", text);
        let ran = home.run(&["tools", "list"]);
        assert_eq!(ran.code, 2, "{text}: {}", ran.transcript());
        let line = ran.stderr.lines().next().unwrap().to_owned();
        line.strip_prefix("error[config.invalid]: tooltape.toml:").unwrap().to_owned()
    };
    let of = |tool: &str, keys: &str| place(&format!("[tools.touches.{tool}]\n{keys}\n"));
    let many = format!("writes = [{}]", "\"a:b\", ".repeat(65));
    let found = [
        of("edit_flie", "writes = []"),
        of("edit_file", "writes = [\"file\"]"),
        of("edit_file", "writes = [\"a:b\", \"file:{pth}\"]"),
        of("edit_file", "writes = [\"file:{path\"]"),
        of("edit_file", "writes = [\"{path}:a\"]"),
        of("edit_file", "writes = [\"file:../{path}\"]"),
        of("edit_file", "writes = \"file:{path}\""),
        of("edit_file", "wirtes = []"),
        of("edit_file", "reads = [\"file:\"]"),
        of("edit_file", &many),
        of("read_file", ""),
        of("read_file", "writes = []"),
        of("hash", "reads = []"),
        place("[tools]\ntouches = [\"edit_file\"]"),
        place("[tools]\npromote = [\"edit_file\", \"edit\"]"),
        place("[tools]\npromote = [\"read_file\"]"),
    ];
    expect![[r#"
        1:16: there is no tool named `edit_flie`
        2:11: `file` has no domain; a resource key is like `file:src/a.rs`
        2:18: found `pth`, expected an argument that `edit_file` has
        2:11: `file:{path` has a brace that is not part of an argument such as `{path}`
        2:11: `{path}:a` has an argument in its domain, which must be written out
        2:11: `file:../{path}` has a segment `..`; no segment may be empty, `.` or `..`
        2:10: invalid type: string "file:{path}", expected a sequence
        2:1: unknown field `wirtes`, expected `writes` or `reads`
        1:16: `edit_file` writes: expected `writes`, which says what
        2:10: found 65 keys, expected at most 64
        1:16: `read_file` reads: expected `reads`, which says what
        2:1: `read_file` only reads, so it writes nothing
        1:16: `hash` is pure, so it touches nothing
        2:11: invalid type: sequence, expected a map
        2:25: there is no tool named `edit`
        2:12: `read_file@0.1.0` declares access `Read`: only a `Write` tool can be promoted"#]]
    .assert_eq(&found.join("\n"));
}

#[test]
fn footprints_stand_in_files_only() {
    let ran = Home::new().run(&["tools", "list", "--set", "tools.touches={}"]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("`tools.touches` stands in files only"), "{}", ran.stderr);
}
