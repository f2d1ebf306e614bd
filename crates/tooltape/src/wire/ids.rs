//! Ids of calls that an API accepts.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::Api;

/// The letters and digits of ids that we make.
const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// The characters of such an id, where an API does not say how many it wants.
const MADE_CHARS: usize = 24;

/// What an API asks of the ids of calls.
struct Rule {
    chars_min: usize,
    chars_max: usize,
    /// What is allowed beside letters and digits.
    besides: &'static str,
    /// What an id begins with that we make.
    prefix: &'static str,
}

/// The ids of one conversation, in its order.
///
/// An id that the API accepts stays. One that is empty, was used before, or looks wrong is replaced
/// by one that follows from it and from how often it came before: the same beginning of a
/// conversation always has the same ids, and no two calls share one.
pub(super) struct Ids {
    rule: Rule,
    taken: HashSet<Arc<str>>,
    seen: HashMap<Arc<str>, u64>,
}

impl Ids {
    /// No ids yet.
    pub(super) fn new(api: Api) -> Ids {
        let rule = match api {
            Api::OpenAi => Rule { chars_max: 40, ..Rule::USUAL },
            Api::Responses | Api::Anthropic => Rule::USUAL,
            // Some models want to see the ids again that they made up.
            Api::Gemini | Api::Compatible => Rule { besides: "_-.:", ..Rule::USUAL },
            Api::Mistral => Rule { chars_min: 9, chars_max: 9, besides: "", prefix: "" },
        };
        Ids { rule, taken: HashSet::new(), seen: HashMap::new() }
    }

    /// The id of the next call, which its provider called by this one.
    pub(super) fn next(&mut self, id: &Arc<str>) -> Arc<str> {
        let times = self.seen.entry(id.clone()).or_insert(0);
        *times += 1;
        let times = *times;
        let kept = Some(id.clone()).filter(|id| self.rule.accepts(id));
        let made = (0_u64..).map(|attempt| self.rule.make(id, times, attempt));
        let mut ids = kept.into_iter().chain(made);
        let free = ids.find(|id| !self.taken.contains(id));
        let free = free.expect("there are more ids than calls in a conversation");
        self.taken.insert(free.clone());
        free
    }
}

impl Rule {
    const USUAL: Rule = Rule { chars_min: 1, chars_max: 64, besides: "_-", prefix: "call_" };

    fn accepts(&self, id: &str) -> bool {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || self.besides.contains(c);
        (self.chars_min..=self.chars_max).contains(&id.len()) && id.chars().all(is_allowed)
    }

    fn make(&self, id: &str, times: u64, attempt: u64) -> Arc<str> {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&times.to_le_bytes()).update(&attempt.to_le_bytes()).update(id.as_bytes());
        let hash = hasher.finalize();
        let chars = MADE_CHARS.min(self.chars_max);
        let letters = hash.as_bytes().iter().take(chars);
        let letters = letters.map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()]));
        self.prefix.chars().chain(letters).collect::<String>().into()
    }
}
