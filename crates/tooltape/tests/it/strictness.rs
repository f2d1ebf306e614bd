//! What tools declare is enforced, and what they do not declare counts against them.

use serde_json::json;
use tooltape::layer::Layered;
use tooltape::rule::{Effect, Side, Walls};
use tooltape::testing::{Spy, play, proposals};
use tooltape::{
    Access, Answer, Attempt, Call, Effects, Enforced, Event, Footprint, FootprintOf, Grants, Live,
    MemoryTape, Policy, Proposal, Reach, Replay, Reply, Rule, Rules, Run, Spec, ToolError, Toolbox,
    Verdict, layer::Next,
};

fn allow_all() -> impl Policy + 'static {
    |_: &Call| Verdict::allow("all")
}

/// A tool that declares these effects and needs these rights.
fn tool(name: &str, effects: Effects, needs: &[&'static str]) -> Spy {
    Spy::new(name, effects.access).declaring(|spec| {
        needs.iter().fold(spec.effects(effects), |spec, needs| spec.needs(*needs))
    })
}

fn near(access: Access) -> Effects {
    Effects { access, ..Effects::read() }
}

/// What a strict run does with a call of a tool, under a policy, where nobody can be asked.
async fn strictly(spy: &Spy, policy: impl Policy + 'static) -> Result<(), String> {
    let toolbox = Toolbox::new([spy.tool()]).unwrap();
    let rights = "fs:read:.\nfs:write:.\nnet:any:api.example.com\nprocess:shell:plain\nspend:usd:9";
    let run = Run::new(&toolbox).rights(rights.parse().unwrap()).policy(policy).strict();
    let name = spy.tool().spec().name.clone();
    let reply = run.batch(vec![Proposal::new("c1", name, "{}")]).await.unwrap().remove(0);
    match &reply.fault {
        None => Ok(()),
        Some(fault) => {
            assert!(fault.unasked, "it would be asked about: {}", reply.text());
            assert_eq!(spy.calls(), 0);
            Err(fault.rule.as_deref().unwrap().to_owned())
        }
    }
}

#[tokio::test]
async fn a_strict_run_asks_about_a_tool_that_declares_nothing_unless_a_rule_names_it() {
    let quiet = || {
        let spec = |spec: Spec| Spec::new("quiet", "Says nothing of itself.").input(spec.input);
        Spy::new("quiet", Access::Write).declaring(spec)
    };
    let asked = Err("strict: the tool declares nothing".to_owned());
    assert_eq!(strictly(&quiet(), allow_all()).await, asked);
    let by_access = Rules::deny_all().rule(Rule::allow("writes").access(Access::Write));
    assert_eq!(strictly(&quiet(), by_access).await, asked);
    let project = Rule::allow("named").tool("quiet").side(Side::Project);
    assert_eq!(strictly(&quiet(), Rules::deny_all().rule(project)).await, asked);
    assert_eq!(strictly(&quiet(), Rules::deny_all().allow("quiet")).await, Ok(()));
    assert_eq!(strictly(&quiet(), |_: &Call| Verdict::allow_tool("by hand")).await, Ok(()));

    // One that says what it is runs unasked, and so does the other where nobody is strict.
    let clear = tool("clear", near(Access::Write), &[]);
    assert_eq!(strictly(&clear, allow_all()).await, Ok(()));
    let toolbox = Toolbox::new([quiet().tool()]).unwrap();
    let lenient = Run::new(&toolbox).policy(allow_all());
    assert_eq!(play(&lenient, "quiet {}").await, "c1 {}\n");
    let strict = Run::new(&toolbox).policy(allow_all()).strict();
    let strict = strict.approver(|_| Box::pin(async { Answer::Once }));
    assert_eq!(play(&strict, "quiet {}").await, "c1 {}\n");
}

#[tokio::test]
async fn a_strict_run_asks_about_what_a_tool_does_and_names_no_right_for() {
    let far = Effects { reach: Reach::Network, ..near(Access::Read) };
    let files = Effects { filesystem: true, ..near(Access::Read) };
    let starts = Effects { process: true, ..near(Access::Write) };
    let spends = Effects { spend: true, ..near(Access::Write) };
    for (effects, right, domain) in [
        (far, "net:get:api.example.com", "`net:`"),
        (files, "fs:read:.", "`fs:`"),
        (starts, "process:shell:plain", "`process:`"),
        (spends, "spend:usd:5", "`spend:`"),
    ] {
        let why = strictly(&tool("it", effects.clone(), &[]), allow_all()).await.unwrap_err();
        assert!(why.starts_with("strict: ") && why.contains(domain), "{why}");
        assert_eq!(strictly(&tool("it", effects.clone(), &[right]), allow_all()).await, Ok(()));
        assert_eq!(
            strictly(&tool("it", effects, &[]), Rules::deny_all().allow("it")).await,
            Ok(())
        );
    }
    let confirm = Effects { confirm: true, ..near(Access::Write) };
    let why = strictly(&tool("it", confirm, &[]), allow_all()).await.unwrap_err();
    assert_eq!(why, "strict: the tool wants a confirmation");
}

#[tokio::test]
async fn to_be_strict_is_another_version_of_a_policy() {
    let toolbox = Toolbox::new([Spy::new("spy", Access::Read).tool()]).unwrap();
    let mut versions = Vec::new();
    for strict in [false, true] {
        let tape = MemoryTape::default();
        let run = Run::new(&toolbox).tape(tape.clone()).policy(Rules::allow_reads());
        let run = if strict { run.strict() } else { run };
        run.batch(proposals("spy {}")).await.unwrap();
        let policy = tape.records(run.id()).into_iter().find_map(|record| match record.event {
            Event::RunStarted { policy, .. } => policy,
            _ => None,
        });
        versions.push(policy.unwrap());
    }
    assert_ne!(versions[0], versions[1]);
}

#[tokio::test]
async fn a_tool_works_in_its_workspace_root_and_nowhere_else() {
    let effects =
        Effects { workspace_root: Some("src".into()), filesystem: true, ..near(Access::Write) };
    let spy = tool("put", effects.clone(), &["fs:write:{path}"]);
    let toolbox = Toolbox::new([spy.tool()]).unwrap();
    let run = Run::new(&toolbox).rights("fs:write:.".parse().unwrap()).policy(allow_all());
    let put = async |run: &Run, path: &str| -> Reply {
        let text = json!({ "path": path }).to_string();
        run.batch(vec![Proposal::new("c1", "put", text)]).await.unwrap().remove(0)
    };
    let mut ran = Vec::new();
    let paths =
        ["src/a", "src", "./src/b", "srcs/a", "a", ".", "src/../a", "/src/a", "", "lib/src"];
    for path in paths {
        let reply = put(&run, path).await;
        match &reply.fault {
            None => ran.push(path),
            Some(fault) => {
                assert_eq!(fault.rule.as_deref(), Some("workspace root"), "{path}");
                assert!(reply.text().contains("`put` works in `src`"), "{}", reply.text());
            }
        }
    }
    assert_eq!((ran, spy.calls()), (vec!["src/a", "src", "./src/b"], 3));

    // Where a tool says by its footprint what it touches, that counts, too.
    let touches = FootprintOf::args("path_of", |args| {
        let path = args.to_value()["path"].as_str().unwrap_or_default().to_owned();
        Footprint::writes(format!("file:{path}"))
    });
    let spy = tool("put", effects.clone(), &[]).declaring(|spec| spec.touches(touches));
    let run = Run::new(&Toolbox::new([spy.tool()]).unwrap()).policy(allow_all());
    assert!(!put(&run, "src/a").await.is_error);
    assert!(put(&run, "tests/a").await.is_error);
    let nowhere = Effects { workspace_root: Some("../x".into()), ..effects };
    let run = Run::new(&Toolbox::new([tool("put", nowhere, &[]).tool()]).unwrap());
    assert!(put(&run.policy(allow_all()), "src/a").await.is_error, "its root is no path");
}

/// Lets nothing run that is not in a sandbox at least.
async fn sandboxed_only(
    attempt: Attempt<'_>,
    grants: &Grants<'_>,
    next: Next<'_>,
) -> Result<tooltape::Output, ToolError> {
    match attempt.call().enforced_by() >= Enforced::Sandbox {
        true => next.perform(attempt, grants).await,
        false => Err(ToolError::not_done("it needs a sandbox")),
    }
}

#[tokio::test]
async fn rules_and_layers_require_that_a_tool_is_held_to_what_it_declares() {
    let starts = Effects { process: true, ..near(Access::Write) };
    let spies = ["loose", "boxed"].map(|name| tool(name, starts.clone(), &[]));
    let mut toolbox = Toolbox::new(spies.each_ref().map(Spy::tool)).unwrap();
    toolbox.enforced("boxed", Enforced::Sandbox).unwrap();
    let below = Rule::deny("walls", "it needs a sandbox").effect(Effect::Process);
    let rules = Rules::deny_all()
        .rule(below.walls(Walls::Below(Enforced::Sandbox)))
        .rule(Rule::allow("all"));
    let run = Run::new(&toolbox).policy(rules);
    let told = "c1 not executed: denied: it needs a sandbox\nc2 {}\n";
    assert_eq!(play(&run, "loose {}\nboxed {}").await, told);
    let layered = Layered::new(Live).with(sandboxed_only);
    let run = Run::new(&toolbox).policy(allow_all()).performer(layered);
    let told = "c1 not executed: it needs a sandbox\nc2 {}\n";
    assert_eq!(play(&run, "loose {}\nboxed {}").await, told);
    assert_eq!((spies[0].calls(), spies[1].calls()), (0, 2));
}

#[tokio::test]
async fn a_reply_says_what_enforced_its_tool_and_the_tape_keeps_it() {
    let spies = ["native", "remote", "wasm"].map(|name| Spy::new(name, Access::Read));
    let mut toolbox = Toolbox::new(spies.each_ref().map(Spy::tool)).unwrap();
    toolbox.enforced("remote", Enforced::Declaration).unwrap();
    toolbox.enforced("wasm", Enforced::Wasm).unwrap();
    assert!(toolbox.enforced("nobody", Enforced::Wasm).is_err());
    let tape = MemoryTape::default();
    let run = Run::new(&toolbox).tape(tape.clone());
    let replies = run.batch(proposals("native {}\nremote {}\nwasm {}")).await.unwrap();
    let by: Vec<_> = replies.iter().map(|reply| reply.enforced_by).collect();
    assert_eq!(by, [Enforced::Host, Enforced::Declaration, Enforced::Wasm]);
    // What every native tool has is not written, so that tapes are what they were.
    let written = replies.iter().map(|reply| json!(reply)["enforced_by"].clone());
    assert_eq!(json!(written.collect::<Vec<_>>()), json!([null, "declaration", "wasm"]));
    assert!(replies.iter().all(|reply| !reply.text().contains("wasm")), "no model reads it");
    let records = tape.records(run.id());
    let replay = Replay::of_records(records).with(&toolbox).policy(Rules::allow_reads());
    assert!(replay.check().await.unwrap().divergences.is_empty());
    assert!(replies.iter().all(|reply| !reply.proven && json!(reply)["determinism"].is_null()));
    // The host may know better what a tool touches, or let it overlap, and that stays.
    toolbox.touching("wasm", FootprintOf::args("none", |_| Footprint::none())).unwrap();
    assert_eq!(toolbox.get("wasm").unwrap().enforced_by(), Enforced::Wasm);
}
