//! Compares what was recorded with what happens now, stamps aside.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::proposal::Facts;
use crate::reply::Reply;
use crate::tape::{Event, STAMPS};

/// What a reader wants to know first where several members differ.
const TOLD_FIRST: [&str; 12] = [
    "type",
    "tool",
    "tool_id",
    "definition",
    "args",
    "verdict",
    "rule",
    "executed",
    "is_error",
    "fault",
    "value",
    "content",
];

/// Whether two events are the same but for their stamps.
pub(super) fn is_same(recorded: &Event, now: &Event) -> bool {
    match (recorded, now) {
        (Event::Proposed(then), Event::Proposed(now)) => {
            (then.call, &then.id, &then.name, &then.arguments)
                == (now.call, &now.id, &now.name, &now.arguments)
        }
        (
            Event::Judged { facts: then, verdict: decided, rule: by },
            Event::Judged { facts, verdict, rule },
        ) => is_same_call(then, facts) && (decided, by) == (verdict, rule),
        (Event::Settled(then), Event::Settled(now)) => is_same_reply(then, now),
        (then, now) => read(then) == read(now),
    }
}

fn is_same_call(then: &Facts, now: &Facts) -> bool {
    (then.call, then.tool(), then.definition(), then.args_hash)
        == (now.call, now.tool(), now.definition(), now.args_hash)
        && then.args == now.args
        && then.repairs() == now.repairs()
}

fn is_same_reply(then: &Reply, now: &Reply) -> bool {
    let of_call = (then.call, &then.id, &then.name, then.tool(), then.args_hash, then.vote)
        == (now.call, &now.id, &now.name, now.tool(), now.args_hash, now.vote);
    let of_result = (then.executed, then.is_error, then.source, then.stop, then.result_hash)
        == (now.executed, now.is_error, now.source, now.stop, now.result_hash);
    of_call
        && of_result
        && then.content[..] == now.content[..]
        && then.value == now.value
        && then.fault == now.fault
        && then.artifacts == now.artifacts
        && then.details == now.details
        && then.metadata == now.metadata
}

/// An event as programs read it, without its stamps.
pub(super) fn read(event: &Event) -> Value {
    let mut value = serde_json::to_value(event).unwrap_or_default();
    if let Some(members) = value.as_object_mut() {
        STAMPS.iter().for_each(|stamp| drop(members.remove(*stamp)));
    }
    value
}

/// The first place where two values differ, and what stands there.
pub(super) struct Place {
    pub(super) pointer: String,
    pub(super) recorded: Option<Value>,
    pub(super) now: Option<Value>,
}

impl Place {
    /// The place where two events differ that a reader wants to know first.
    pub(super) fn of(recorded: &Event, now: &Event) -> Place {
        let (recorded, now) = (read(recorded), read(now));
        if recorded.get("type") != now.get("type") {
            // What happened and what happens have nothing in common: both are told whole.
            return Place { pointer: String::new(), recorded: Some(recorded), now: Some(now) };
        }
        Place::within(String::new(), Some(&recorded), Some(&now))
    }

    /// All places where two values differ, up to so many.
    pub(super) fn all(recorded: &Value, now: &Value, most: usize, mut tell: impl FnMut(Place)) {
        let mut left = vec![(String::new(), Some(recorded), Some(now))];
        let mut told = 0;
        while let Some((pointer, recorded, now)) = left.pop() {
            if recorded == now || told >= most {
                continue;
            }
            match (recorded, now) {
                (Some(Value::Object(then)), Some(Value::Object(now))) => {
                    let names: BTreeSet<_> = then.keys().chain(now.keys()).collect();
                    left.extend(names.into_iter().rev().map(|name| {
                        let pointer = format!("{pointer}/{}", escaped(name));
                        (pointer, then.get(name), now.get(name))
                    }));
                }
                (Some(Value::Array(then)), Some(Value::Array(now))) => {
                    let places = (0..then.len().max(now.len())).rev();
                    left.extend(
                        places.map(|at| (format!("{pointer}/{at}"), then.get(at), now.get(at))),
                    );
                }
                (recorded, now) => {
                    told += 1;
                    tell(Place { pointer, recorded: recorded.cloned(), now: now.cloned() });
                }
            }
        }
    }

    fn within(pointer: String, recorded: Option<&Value>, now: Option<&Value>) -> Place {
        match (recorded, now) {
            (Some(Value::Object(then)), Some(Value::Object(now))) => {
                let named = TOLD_FIRST.iter().copied();
                let named =
                    named.filter(|name| then.contains_key(*name) || now.contains_key(*name));
                let rest = then.keys().chain(now.keys()).map(String::as_str);
                let different = named.chain(rest).find(|name| then.get(*name) != now.get(*name));
                if let Some(name) = different {
                    let pointer = format!("{pointer}/{}", escaped(name));
                    return Place::within(pointer, then.get(name), now.get(name));
                }
            }
            (Some(Value::Array(then)), Some(Value::Array(now))) => {
                let most = then.len().max(now.len());
                if let Some(at) = (0..most).find(|at| then.get(*at) != now.get(*at)) {
                    return Place::within(format!("{pointer}/{at}"), then.get(at), now.get(at));
                }
            }
            _ => {}
        }
        Place { pointer, recorded: recorded.cloned(), now: now.cloned() }
    }
}

/// The name of a member as a part of a JSON pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
