//! What every policy promises.

use std::sync::Arc;

use super::Spy;
use crate::call::Call;
use crate::canon::Hash;
use crate::policy::{Policy, Verdict};
use crate::proposal::Proposal;
use crate::run::Run;
use crate::spec::Access;
use crate::sync::Mutex;
use crate::toolbox::Toolbox;

/// Holds a policy to its promises, on calls of tools of every access.
///
/// A verdict is the same for the same call, names its rule, and is obeyed.
pub async fn policy_conforms(policy: impl Policy + 'static) {
    let policy = Arc::new(policy);
    assert_eq!(policy.version(), policy.version(), "a policy has one version");
    let texts = ["{}", r#"{"path":"a"}"#, r#"{"path":"../../etc/passwd","n":9007199254740993}"#];
    for access in [Access::Pure, Access::Read, Access::Write] {
        for text in texts {
            obeys(policy.clone(), access, text).await;
        }
    }
}

async fn obeys(policy: Arc<impl Policy + 'static>, access: Access, text: &str) {
    let spy = Spy::new("spy", access);
    let toolbox = Toolbox::new([spy.tool()]).expect("a spy can be registered");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let watched = Watched { policy, seen: seen.clone() };
    let run = Run::new(&toolbox).policy(watched);
    let proposals = vec![Proposal::new("1", "spy", text), Proposal::new("2", "spy", text)];
    let replies = run.batch(proposals).await.expect("a spy needs nothing");
    let seen = seen.lock().expect("no panics under this lock");
    assert_eq!(seen.len(), 2, "each call is judged once");
    assert_eq!(seen[0], seen[1], "the same call gets the same verdict");
    assert!(!seen[0].rule().is_empty(), "a verdict names its rule");
    let allowed = matches!(seen[0], Verdict::Allow { .. });
    assert_eq!(spy.calls(), if allowed { 2 } else { 0 }, "a verdict is obeyed");
    assert!(replies.iter().all(|reply| reply.is_error != allowed), "a denial is answered");
}

/// A policy that remembers its verdicts.
struct Watched<P> {
    policy: Arc<P>,
    seen: Arc<Mutex<Vec<Verdict>>>,
}

impl<P: Policy> Policy for Watched<P> {
    fn judge(&self, call: &Call) -> Verdict {
        let verdict = self.policy.judge(call);
        self.seen.lock().expect("no panics under this lock").push(verdict.clone());
        verdict
    }

    fn version(&self) -> Hash {
        self.policy.version()
    }
}
