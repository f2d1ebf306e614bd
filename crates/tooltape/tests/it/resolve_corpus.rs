//! What holds for any arguments at all: the body of the fuzz target `resolve`, run on its corpus.

use std::sync::Arc;

use serde_json::{Value, json};
use tooltape::{
    Access, Args, BoxFuture, Executed, Grants, Output, Proposal, Repairs, Run, Spec, Tool,
    ToolError, Toolbox, Verdict,
};

/// A tool that returns its arguments, which is how the body sees what was executed.
struct Mirror(Spec);

impl Tool for Mirror {
    fn spec(&self) -> &Spec {
        &self.0
    }

    fn call<'a>(&'a self, args: Args, _: &'a Grants) -> BoxFuture<'a, Result<Output, ToolError>> {
        let output = Output::value(args.canon());
        Box::pin(async move { output })
    }
}

fn mirror() -> Arc<dyn Tool> {
    let spec = Spec::new("mirror", "Returns its arguments.").access(Access::Write).input(json!({
        "type": "object",
        "properties": {
            "path": { "type": "string" },
            "n": { "type": "integer", "minimum": 0 },
            "tags": { "type": "array", "items": { "enum": ["a", "b"] } },
        },
        "required": ["path"],
        "additionalProperties": false,
    }));
    Arc::new(Mirror(spec))
}

/// Checks all that must hold of some bytes as arguments, with and without repairs.
pub(crate) fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let all = Repairs { fence: true, double_encoding: true, numeric_string: true, empty: true };
    for repairs in [Repairs::default(), all] {
        let toolbox = Toolbox::new([mirror()]).expect("the mirror is fit for a toolbox");
        let run = Run::new(&toolbox).policy(|_: &_| Verdict::allow("fuzz")).repairs(repairs);
        let proposals = vec![Proposal::new("id", "mirror", &*text)];
        let replies = ready(run.batch(proposals)).expect("nothing is missing");
        assert_eq!(replies.len(), 1);
        assert_eq!(&*replies[0].id, "id");
        match &replies[0].value {
            None => assert_eq!(replies[0].executed, Executed::NotExecuted),
            Some(value) => assert_fits(&value.to_value()),
        }
        if repairs == Repairs::default() && replies[0].value.is_some() {
            let meant: Value = serde_json::from_str(&text).expect("what is executed is JSON");
            assert_eq!(
                meant["path"],
                replies[0].value.as_ref().expect("it is there").to_value()["path"]
            );
        }
    }
}

/// The schema once more, by hand: what is executed fits it.
fn assert_fits(value: &Value) {
    let fields = value.as_object().expect("arguments are an object");
    assert!(fields["path"].is_string());
    for (name, value) in fields {
        match name.as_str() {
            "path" => {}
            "n" => assert!(value.is_number() && !value.to_string().starts_with('-')),
            "tags" => assert!(
                value
                    .as_array()
                    .is_some_and(|tags| { tags.iter().all(|tag| tag == "a" || tag == "b") })
            ),
            other => panic!("`{other}` was let through"),
        }
    }
}

/// Everything here is ready at once, so no runtime is needed.
fn ready<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut context) {
        std::task::Poll::Ready(ready) => ready,
        std::task::Poll::Pending => panic!("the mirror waits for nothing"),
    }
}

#[test]
fn every_file_of_the_corpus_is_executed_only_if_it_fits() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/resolve");
    let files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() >= 16, "the corpus has {} files", files.len());
    for file in files {
        let bytes = std::fs::read(&file).unwrap();
        check(&bytes);
        for at in 0..bytes.len().min(100) {
            check(&bytes[..at]);
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            check(&changed);
        }
    }
}
