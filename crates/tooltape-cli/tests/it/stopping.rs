//! What happens when a run or a call is told to stop.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command};

use serde_json::{Value, json};

use crate::home::Home;
use crate::own_tools::own_home;

/// Presses Ctrl-C.
pub(crate) fn interrupt(child: &Child) {
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

/// Reads events until one of this type has come.
fn until(lines: &mut impl Iterator<Item = std::io::Result<String>>, kind: &str) -> Vec<Value> {
    let mut events = Vec::new();
    for line in lines {
        events.push(serde_json::from_str::<Value>(&line.unwrap()).unwrap());
        if events.last().unwrap()["type"] == kind {
            return events;
        }
    }
    panic!("no `{kind}` in {events:?}");
}

#[test]
fn ctrl_c_ends_a_paced_run_truthfully_with_130() {
    let home = Home::new();
    home.write("s.jsonl", "{\"say\": \"never said\"}\n");
    let mut command = home.command(&["run", "s.jsonl", "--pace", "24h", "--jsonl"]);
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    until(&mut lines, "model.asked");
    interrupt(&child);
    let ended = until(&mut lines, "run.ended").pop().unwrap();
    assert_eq!((&ended["status"], &ended["answer"]), (&json!("cancelled"), &Value::Null));
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let error: Value = serde_json::from_str(&stderr).unwrap();
    assert_eq!(error["error"]["code"], "run.interrupted");
    assert_eq!(error["error"]["executed"], "not_executed");
}

#[test]
fn ctrl_c_during_a_call_says_that_the_outcome_is_unknown() {
    let home = own_home();
    home.write("s.jsonl", "{\"calls\": [{\"tool\": \"rest\", \"args\": {\"ms\": 50000}}]}\n");
    let mut child = home.command(&["run", "s.jsonl", "--jsonl"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    until(&mut lines, "call.started");
    interrupt(&child);
    let events = until(&mut lines, "run.ended");
    assert_eq!(events[0]["type"], "call.settled");
    assert_eq!(events[0]["executed"], "unknown");
    assert_eq!(events[0]["fault"]["kind"], "cancelled");
    assert_eq!(events.last().unwrap()["status"], "cancelled");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn a_second_ctrl_c_abandons_a_call_that_does_not_stop() {
    const PRESSES_MAX: usize = 1_000;
    let home = own_home();
    home.write("s.jsonl", "{\"calls\": [{\"tool\": \"brood\", \"args\": {\"ms\": 3600000}}]}\n");
    let mut child = home.command(&["run", "s.jsonl", "--jsonl"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    until(&mut lines, "call.started");
    // The second is heard only once the first was obeyed, so it is pressed until it is.
    let mut presses = 0;
    while child.try_wait().unwrap().is_none() {
        presses += 1;
        assert!(presses < PRESSES_MAX, "the command does not end");
        interrupt(&child);
    }
    let ran = home.ran(child.wait_with_output().unwrap());
    assert_eq!((ran.code, &ran.error()["executed"]), (130, &json!("unknown")));
}

#[test]
fn a_run_whose_time_is_over_is_cancelled_with_124() {
    let home = Home::new();
    home.write("s.jsonl", "{\"say\": \"never said\"}\n");
    let args = ["run", "s.jsonl", "--pace", "24h", "--timeout", "20ms", "--json"];
    let ran = home.run(&args);
    assert_eq!((ran.code, &ran.json()["status"]), (124, &json!("cancelled")));
    assert_eq!(ran.error()["code"], "run.timeout");
}

#[test]
fn a_call_whose_time_is_over_exits_with_124() {
    let home = own_home();
    let ran = home.run(&["call", "rest", "ms=50000", "--timeout", "20ms", "--json"]);
    assert_eq!(ran.code, 124);
    let fault = &ran.json()["fault"];
    assert_eq!((&fault["bound"], &fault["limit"]), (&json!("wall"), &json!(20)));
    assert_eq!(ran.error()["executed"], "unknown");
}

#[test]
fn a_shorter_time_than_the_tools_own_bound_is_kept() {
    let home = own_home();
    let ran = home.run(&["call", "hibernate", "ms=50000", "--timeout", "20ms", "--json"]);
    assert_eq!(ran.code, 124, "{}", ran.transcript());
    assert_eq!(ran.json()["fault"]["kind"], "cancelled");
    assert_eq!(ran.json()["executed"], "unknown");
}
