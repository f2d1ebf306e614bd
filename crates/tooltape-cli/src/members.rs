//! The members of a canonical JSON object, byte for byte.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use tooltape::Canon;

/// The top-level arguments of a call: each name with its canonical text, in canonical order.
///
/// No number passes through a machine's: what differs in a digit differs here.
pub(crate) fn members(args: &Canon) -> Vec<(String, String)> {
    // Canonical order is by UTF-16, which a map of strings does not keep.
    let order = |name: &str| name.encode_utf16().collect::<Vec<u16>>();
    let members: BTreeMap<String, &RawValue> =
        serde_json::from_str(args.as_str()).unwrap_or_default();
    let mut members: Vec<(String, String)> =
        members.into_iter().map(|(name, value)| (name, value.get().to_owned())).collect();
    members.sort_by_key(|(name, _)| order(name));
    members
}

/// The canonical text of an object that has these members.
pub(crate) fn joined<'a>(members: impl IntoIterator<Item = &'a (String, String)>) -> String {
    let name = |name: &str| {
        let canon = Canon::of(&name).expect("a text has a canonical form");
        canon.as_str().to_owned()
    };
    let members = members.into_iter().map(|(key, value)| format!("{}:{value}", name(key)));
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// The text of a member, where it is one.
pub(crate) fn text_of(value: &str) -> Option<String> {
    if value.starts_with('"') { serde_json::from_str(value).ok() } else { None }
}
