//! What one call does wrong stays with that call, and what a host fills stays with the host.

use tooltape::testing::{Spy, play};
use tooltape::{Access, Executed, Secret, Spec, ToolError, bind, input, tool_fn};

use crate::declaring::{over, reply};

#[input(check)]
struct Initial {
    text: String,
}

impl Initial {
    /// Wrong on purpose: the first character may have more than one byte.
    fn check(&self) -> Result<(), String> {
        let _ = &self.text[..1];
        Ok(())
    }
}

#[tokio::test]
async fn a_check_that_panics_refuses_its_call_and_the_others_go_on() {
    let spec = Spec::new("initial", "Takes the first letter.").access(Access::Read);
    let initial = tool_fn(spec, async |_: Initial| Ok::<_, ToolError>("done"));
    let run = over([initial, Spy::new("spy", Access::Read).tool()]);
    let told = play(&run, "initial {\"text\":\"é\"}\nspy {}\ninitial {\"text\":\"e\"}").await;
    let expected = "c1 not executed: the tool failed to check these arguments\nc2 {}\nc3 done\n";
    assert_eq!(told, expected);
}

#[input]
enum Region {
    Eu,
    Us,
}

#[input]
struct Call {
    region: Region,
}

#[tokio::test]
async fn a_filled_value_that_does_not_fit_is_shown_to_nobody() {
    let spec = Spec::new("call", "Calls a region.").access(Access::Read);
    let call = tool_fn(spec, async |call: Call| match call.region {
        Region::Eu | Region::Us => Ok::<_, ToolError>(()),
    });
    let bound = bind(call, "region", |key: &Secret<String>| key.expose().clone().into()).unwrap();
    let run = over([bound]).grant(Secret::new("hunter2".to_owned()));
    let reply = reply(&run, "call", "{}").await;
    assert_eq!(reply.executed, Executed::NotExecuted);
    assert_eq!(reply.text(), "not executed: the filled arguments do not fit the tool");
    assert!(!serde_json::to_string(&reply).unwrap().contains("hunter2"));
}
