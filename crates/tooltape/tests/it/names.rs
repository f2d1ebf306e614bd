//! Names, toolboxes and offers: acceptance 1 to 12 and 24.

use std::sync::Arc;

use tooltape::dialect::{Advert, Dialect, export};
use tooltape::limits::NAME_BYTES_MAX;
use tooltape::testing::{Spy, play};
use tooltape::{
    Access, Event, MemoryTape, Name, Proposal, RegisterError, Run, Tool, ToolId, Toolbox, builtin,
};

fn spy(name: &str) -> Arc<dyn Tool> {
    Spy::new(name, Access::Read).tool()
}

fn refusal(name: &str) -> String {
    Toolbox::new([spy(name)]).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn a_registered_tool_is_found_by_its_exact_name() {
    let toolbox = Toolbox::new(builtin::tools()).unwrap();
    assert_eq!(toolbox.get("echo").unwrap().id().to_string(), "echo@1.0.0");
    assert!(toolbox.get("Echo").is_none());
    assert!(toolbox.get("ech").is_none());
}

#[test]
fn an_empty_name_is_refused() {
    assert_eq!(refusal(""), "tool name is empty, expected 1 to 64 characters");
}

#[test]
fn a_second_tool_of_a_name_is_refused_and_the_first_stays() {
    let first = Spy::new("push", Access::Read).declaring(|spec| spec.version("1.0.0"));
    let second = Spy::new("push", Access::Read).declaring(|spec| spec.version("2.0.0"));
    let mut toolbox = Toolbox::new([first.tool()]).unwrap();
    let err = toolbox.add(second.tool()).unwrap_err();
    assert_eq!(
        err.to_string(),
        "two tools are named `push`: `push@1.0.0` is registered, `push@2.0.0` is refused"
    );
    assert_eq!(toolbox.get("push").unwrap().id().version(), "1.0.0");
    assert_eq!(toolbox.names().count(), 1);
}

#[test]
fn a_name_with_a_space_is_refused() {
    let message = "tool name `read file` has ` ` at byte 4, expected only `a-z A-Z 0-9 _ -`; \
                   did you mean `read_file`?";
    assert_eq!(refusal("read file"), message);
}

#[test]
fn an_over_long_name_is_refused_and_the_limit_itself_is_accepted() {
    assert!(Toolbox::new([spy(&"a".repeat(NAME_BYTES_MAX))]).is_ok());
    let message = refusal(&"a".repeat(NAME_BYTES_MAX + 1));
    assert!(message.starts_with("tool name has 65 bytes, expected at most 64"), "{message}");
}

#[test]
fn a_name_that_needs_escaping_is_refused_and_snake_case_is_accepted() {
    for name in ["a.b", "a/b", "a\"b", "a\\b", "naïve", "工具", "a\nb", "1st", "-a", "a:b", "a b"]
    {
        let suggestion = refusal(name);
        let suggestion = suggestion.rsplit('`').nth(1).unwrap();
        assert!(Name::new(suggestion).is_ok(), "`{name}` is refused with a name that would do");
    }
    for name in ["read_file", "_private", "x", "a-b", "v2"] {
        assert!(Toolbox::new([spy(name)]).is_ok(), "`{name}` is accepted");
    }
}

#[tokio::test]
async fn events_and_replies_carry_the_canonical_name_of_an_aliased_tool() {
    let mut toolbox = Toolbox::new([spy("read_file")]).unwrap();
    toolbox.alias("openai", "read_file", "fs_read").unwrap();
    assert_eq!(toolbox.offer_all().name_for("openai", "read_file"), "fs_read");
    assert_eq!(toolbox.offer_all().name_for("gemini", "read_file"), "read_file");

    let tape = MemoryTape::default();
    let run = Run::new(&toolbox).tape(tape.clone());
    let replies = run.batch(vec![Proposal::new("c1", "fs_read", "{}")]).await.unwrap();
    assert!(!replies[0].is_error);
    assert_eq!(&*replies[0].name, "read_file");
    let records = serde_json::to_string(&tape.records(run.id())).unwrap();
    assert!(records.contains("read_file") && !records.contains("fs_read"));
}

#[test]
fn an_alias_never_shadows_another_tool() {
    let mut toolbox = Toolbox::new([spy("read"), spy("write")]).unwrap();
    let taken = toolbox.alias("openai", "read", "write");
    assert!(matches!(taken, Err(RegisterError::AliasTaken { .. })));
    toolbox.alias("openai", "read", "fetch").unwrap();
    assert!(matches!(toolbox.add(spy("fetch")), Err(RegisterError::AliasTaken { .. })));
    assert!(matches!(toolbox.alias("x", "none", "n"), Err(RegisterError::Unknown { .. })));
}

#[test]
fn tools_are_listed_in_the_order_of_registration_whatever_is_added_or_removed() {
    let mut toolbox = Toolbox::new(["c", "a", "b"].map(spy)).unwrap();
    assert!(toolbox.remove("a"));
    assert!(!toolbox.remove("a"));
    toolbox.add(spy("_0")).unwrap();
    assert_eq!(toolbox.names().collect::<Vec<_>>(), ["c", "b", "_0"]);
    assert!(toolbox.get("b").is_some() && toolbox.get("_0").is_some());
}

#[test]
fn names_lists_every_registered_tool() {
    let toolbox = Toolbox::new(builtin::tools()).unwrap();
    assert_eq!(toolbox.names().collect::<Vec<_>>(), ["echo", "hash"]);
    assert_eq!(toolbox.tools().count(), 2);
}

#[tokio::test]
async fn a_tool_added_between_steps_is_callable_on_the_next() {
    let run = Run::new(&Toolbox::new(builtin::tools()).unwrap());
    let shown_before = run.offer_all();
    assert_eq!(play(&run, "late {}").await, "c1 not executed: unknown tool `late`\n");
    run.add(spy("late")).unwrap();
    assert_eq!(play(&run, "late {}").await, "c1 {}\n");

    let late = run.answer(&shown_before, vec![Proposal::new("c2", "late", "{}")]).await.unwrap();
    assert_eq!(late[0].fault.as_ref().unwrap().code.as_ref(), "tool.unknown");
}

#[tokio::test]
async fn a_late_call_resolves_against_the_offer_that_advertised_it() {
    let run = Run::new(&Toolbox::new([spy("soon_gone")]).unwrap());
    let shown = run.offer_all();
    assert!(run.remove("soon_gone").unwrap());
    let replies = run.answer(&shown, vec![Proposal::new("c1", "soon_gone", "{}")]).await.unwrap();
    assert!(!replies[0].is_error);
    assert_eq!(play(&run, "soon_gone {}").await, "c1 not executed: unknown tool `soon_gone`\n");
}

#[tokio::test]
async fn a_tool_that_is_not_offered_this_turn_is_not_executed() {
    let spy = Spy::new("hidden", Access::Read);
    let run = Run::new(&Toolbox::new([spy.tool()]).unwrap());
    let offer = run.offer(|spec| &*spec.name != "hidden");
    assert_eq!(offer.tools().count(), 0, "an empty offer offers nothing");
    let replies = run.answer(&offer, vec![Proposal::new("c1", "hidden", "{}")]).await.unwrap();
    assert_eq!(replies[0].text(), "not executed: tool `hidden` is not offered this turn");
    assert_eq!(spy.calls(), 0);
}

#[tokio::test]
async fn versions_are_distinct_on_tape_and_in_the_definition() {
    let definition = |version: &'static str| {
        let spy = Spy::new("push", Access::Read).declaring(|spec| spec.version(version));
        let toolbox = Toolbox::new([spy.tool()]).unwrap();
        let push = toolbox.get("push").unwrap().clone();
        (toolbox, push.id().clone(), push.definition())
    };
    let (toolbox, one, first) = definition("1.0.0");
    let (_, two, second) = definition("2.0.0");
    assert_ne!((&one, first), (&two, second));
    assert_eq!(one.to_string(), "push@1.0.0");

    let tape = MemoryTape::default();
    let run = Run::new(&toolbox).tape(tape.clone());
    run.batch(vec![Proposal::new("c1", "push", "{}")]).await.unwrap();
    let judged = tape.records(run.id()).into_iter().find_map(|record| match record.event {
        Event::Judged { facts, .. } => facts.tool().cloned().zip(facts.definition()),
        _ => None,
    });
    assert_eq!(judged, Some((one, first)));
}

#[test]
fn a_version_is_short_and_starts_with_a_digit() {
    let name = Name::new("push").unwrap();
    for version in ["", "v1", "1 0", &"1".repeat(33)] {
        assert!(ToolId::new(name.clone(), version).is_err(), "`{version}` is refused");
    }
    assert!(ToolId::new(name, "1.0.0-rc.1+build").is_ok());
}

#[test]
fn the_openai_export_is_a_list_of_functions_with_the_schemas_as_they_are() {
    let toolbox = Toolbox::new(builtin::tools()).unwrap();
    let export = |tool: &Arc<tooltape::Registered>| {
        let spec = tool.spec();
        let advert =
            Advert { name: &spec.name, description: &spec.description, input: &spec.input };
        export(Dialect::OpenAi, &advert).unwrap().tool
    };
    let exported: Vec<_> = toolbox.tools().map(export).collect();
    assert_eq!(exported.len(), 2);
    for (tool, exported) in toolbox.tools().zip(exported) {
        assert_eq!(exported["type"], "function");
        assert_eq!(exported["function"]["name"], *tool.spec().name);
        assert_eq!(exported["function"]["description"], *tool.spec().description);
        assert_eq!(exported["function"]["parameters"], tool.spec().input);
    }
}
