//! Our own implementations of the seams keep the promises that the public suites check.

use tooltape::testing::{
    Spy, durable_tape_conforms, perform_conforms, policy_conforms, tape_conforms, tool_conforms,
};
use tooltape::{Access, Call, Live, MemoryTape, Rules, SqliteTape, Verdict, builtin};

#[tokio::test]
async fn our_tools_conform() {
    for tool in builtin::tools() {
        tool_conforms(tool, |run| run, &[r#"{"text":"a"}"#, r#"{"base64":"AP8="}"#]).await;
    }
    tool_conforms(Spy::new("spy", Access::Write).tool(), |run| run, &["{}"]).await;
}

#[tokio::test]
async fn our_policies_conform() {
    policy_conforms(Rules::deny_all()).await;
    policy_conforms(Rules::allow_reads()).await;
    policy_conforms(Rules::allow_reads().ask_before_writes()).await;
    policy_conforms(Rules::deny_all().allow("spy")).await;
    policy_conforms(Rules::allow_reads().deny("spy", "not today")).await;
    policy_conforms(|_: &Call| Verdict::allow("a closure")).await;
}

#[tokio::test]
async fn our_performers_conform() {
    perform_conforms(|| Live).await;
}

#[tokio::test]
async fn our_tapes_conform() {
    tape_conforms(MemoryTape::default).await;
    let folder = tempfile::tempdir().unwrap();
    let open = |no| SqliteTape::open(folder.path().join(format!("{no}.db"))).unwrap();
    durable_tape_conforms(open).await;
    let lax = |no: usize| {
        let path = folder.path().join(format!("{no}.lax.db"));
        SqliteTape::options().not_durable().open(path).unwrap()
    };
    durable_tape_conforms(lax).await;
}
