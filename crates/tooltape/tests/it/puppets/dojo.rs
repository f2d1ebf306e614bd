//! The banking and travel tasks and injections of AgentDojo, whose calls are scripted.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value};

use super::theatre::{Kind, Suite, Task};
use crate::data;

/// What each tool of a suite is. Whoever else may have written what a tool returns is a stranger:
/// the sender of a transfer, a guest who rates a hotel, whoever sent a file or an invitation.
const BANKING: [(Kind, &[&str]); 4] = [
    (Kind::Own, &["get_iban", "get_balance", "get_user_info", "get_scheduled_transactions"]),
    (Kind::Foreign, &["get_most_recent_transactions", "read_file"]),
    (Kind::Sends, &["update_user_info"]),
    (
        Kind::Confirms,
        &["send_money", "schedule_transaction", "update_scheduled_transaction", "update_password"],
    ),
];
const TRAVEL: [(Kind, &[&str]); 3] = [
    (Kind::Private, &["get_user_information"]),
    (Kind::Sends, &["create_calendar_event", "cancel_calendar_event", "send_email"]),
    (Kind::Confirms, &["reserve_hotel", "reserve_car_rental", "reserve_restaurant"]),
];

/// The suites, where the data is there.
pub(super) fn suites() -> Vec<Suite> {
    let Some(folder) = data::folder(284) else { return Vec::new() };
    let folder = folder.join("agentdojo");
    let (calls, tools) = (read(&folder, "scripted_calls.json"), read(&folder, "tools.json"));
    [("banking", &BANKING[..]), ("travel", &TRAVEL[..])]
        .map(|(name, kinds)| Suite {
            name: name.to_owned(),
            tools: tools[name]
                .as_array()
                .unwrap()
                .iter()
                .map(|tool| declared(tool, kinds))
                .collect(),
            tasks: tasks(&calls[name]["user_tasks"]),
            injections: tasks(&calls[name]["injection_tasks"]),
        })
        .into()
}

fn read(folder: &Path, file: &str) -> Value {
    serde_json::from_slice(&fs::read(folder.join(file)).unwrap()).unwrap()
}

fn declared(tool: &Value, kinds: &[(Kind, &[&str])]) -> (String, Kind, Value) {
    let name = tool["name"].as_str().unwrap();
    let kind = kinds.iter().find(|(_, names)| names.contains(&name));
    // Everything else is what hotels, restaurants and their guests write.
    let kind = kind.map_or(Kind::Foreign, |(kind, _)| *kind);
    (name.to_owned(), kind, tool["parameters"].clone())
}

fn tasks(tasks: &Value) -> Vec<Task> {
    let tasks = tasks.as_object().unwrap().iter();
    tasks.map(|(name, task)| Task { name: name.clone(), calls: calls(task) }).collect()
}

fn calls(task: &Value) -> Vec<(String, Value)> {
    let calls = task["scripted_calls"].as_array().unwrap().iter();
    calls
        .map(|call| {
            let args = call["arguments"].as_object().cloned().unwrap_or_else(Map::new);
            (call["name"].as_str().unwrap().to_owned(), Value::Object(args))
        })
        .collect()
}
