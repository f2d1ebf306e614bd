//! Ids that an API would refuse are replaced, the same way each time.

use proptest::prelude::*;
use serde_json::Value;
use tooltape::wire::{Api, Encoder};
use tooltape::{Message, Proposal, Request, Turn};

use super::reader::read;
use super::stage::Stage;

/// The ids of calls as an API is shown them, the calls being in turns of these sizes.
fn shown(api: Api, stage: &Stage, turns: &[Vec<String>]) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let mut messages = vec![Message::User("Go.".into())];
    for ids in turns {
        let turn = Turn::calls(ids.iter().map(|id| Proposal::new(&**id, "succeed", "{}")));
        let replies = runtime.block_on(stage.replies(&turn.proposals));
        messages.extend([Message::Model(turn), Message::Replies(replies)]);
    }
    let body = Encoder::new(api, "m").encode(&Request::new(&messages, &stage.offer), true).unwrap();
    read(api, &body).unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    let mut ids = Vec::new();
    gather(&body, &mut ids);
    ids
}

/// All ids of calls in a body, in their order.
fn gather(value: &Value, ids: &mut Vec<String>) {
    match value {
        Value::Array(list) => list.iter().for_each(|it| gather(it, ids)),
        Value::Object(fields) => {
            let kind = fields.get("type").and_then(Value::as_str).unwrap_or_default();
            let is_call = match kind {
                "function" => fields.contains_key("id"),
                kind => ["tool_use", "function_call"].contains(&kind),
            };
            let id = ["call_id", "id"].iter().find_map(|key| fields.get(*key)?.as_str());
            ids.extend(id.filter(|_| is_call).map(str::to_owned));
            fields.values().for_each(|it| gather(it, ids));
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn whatever_ids_a_provider_gave_another_accepts_its_own_and_the_same_ones_each_time(
        turns in prop::collection::vec(
            prop::collection::vec(
                prop_oneof![
                    Just(String::new()),
                    "[a-c]",
                    "[A-Za-z0-9]{9}",
                    "call_[A-Za-z0-9]{24}",
                    "functions\\.[a-z]{1,5}:[0-9]",
                    "[a-z]{60,70}",
                    "\\PC{1,8}",
                ],
                1..4,
            ),
            1..4,
        ),
    ) {
        let stage = Stage::new([]);
        for api in Api::ALL.into_iter().filter(|api| *api != Api::Gemini) {
            let ids = shown(api, &stage, &turns);
            prop_assert_eq!(ids.len(), turns.iter().map(Vec::len).sum::<usize>());
            let before = shown(api, &stage, &turns[..turns.len() - 1]);
            prop_assert!(ids.starts_with(&before));
        }
    }
}
