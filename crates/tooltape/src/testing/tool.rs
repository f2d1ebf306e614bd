//! What every tool promises.

use std::sync::Arc;

use crate::fault::Executed;
use crate::proposal::Proposal;
use crate::run::Run;
use crate::spec::{Access, Determinism};
use crate::tool::Tool;
use crate::toolbox::Toolbox;

/// Holds a tool to its promises, with examples of arguments that it takes.
///
/// `grant` hands the run what the tool needs. The tool really runs: give it a world to spoil.
pub async fn tool_conforms(tool: Arc<dyn Tool>, grant: impl Fn(Run) -> Run, examples: &[&str]) {
    let name = tool.spec().name.clone();
    assert!(!examples.is_empty(), "`{name}` needs an example to be checked with");
    let toolbox = Toolbox::new([tool.clone()]).expect("the tool is fit to be registered");
    let again = Toolbox::new([tool.clone()]).expect("the tool is fit to be registered again");
    let definition = |toolbox: &Toolbox| toolbox.get(&name).map(|tool| tool.definition());
    assert_eq!(definition(&toolbox), definition(&again), "what `{name}` declares is constant");
    assert!(!tool.spec().description.is_empty(), "`{name}` says what it does");

    let run = || grant(Run::new(&toolbox).policy(|_: &_| crate::Verdict::allow("conformance")));
    refuses_what_is_not_json(&run(), &name).await;
    for example in examples {
        answers(&run(), &name, example).await;
    }
    if repeats(&*tool) {
        for example in examples {
            returns_the_same(&run(), &name, example).await;
        }
    }
}

async fn refuses_what_is_not_json(run: &Run, name: &str) {
    for text in ["{", "[]", "null", r#"{"a":1,"a":2}"#, "\u{0}"] {
        let reply =
            &run.batch(vec![Proposal::new("x", name, text)]).await.expect("it can start")[0];
        assert!(reply.is_error, "`{name}` is not called with `{text}`");
        assert_eq!(reply.executed, Executed::NotExecuted);
    }
}

async fn answers(run: &Run, name: &str, example: &str) {
    let proposal = Proposal::new("example", name, example);
    let reply = &run.batch(vec![proposal]).await.expect("it can start")[0];
    assert_eq!(&*reply.id, "example", "a reply carries its proposal's id");
    if let Some(fault) = &reply.fault {
        panic!("`{name}` failed on its example `{example}`: {}", fault.message);
    }
}

fn repeats(tool: &dyn Tool) -> bool {
    let effects = &tool.spec().effects;
    effects.access == Access::Pure && effects.determinism == Determinism::Deterministic
}

async fn returns_the_same(run: &Run, name: &str, example: &str) {
    let twice = vec![Proposal::new("1", name, example), Proposal::new("2", name, example)];
    let replies = run.batch(twice).await.expect("it can start");
    let hashes = (replies[0].result_hash, replies[1].result_hash);
    assert_eq!(hashes.0, hashes.1, "`{name}` is deterministic on `{example}`, as it says");
}
