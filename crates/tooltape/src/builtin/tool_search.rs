//! A tool that finds tools: for programs that have more of them than a model should read about.

use std::collections::HashMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fault::ToolError;
use crate::spec::{Determinism, Effects, Spec};
use crate::tool::{Input, Tool, schema_of, tool_fn};

/// The name of the tool that finds tools.
pub const TOOL_SEARCH: &str = "tool_search";
/// How many tools a search finds, unless it says otherwise.
pub const HITS_DEFAULT: usize = 5;
/// The most tools that a search finds.
pub const HITS_MAX: usize = 20;

/// How soon more of the same word counts no more, as BM25 has it.
const SATURATION: f64 = 1.2;
/// How much a long text weighs less, as BM25 has it.
const LENGTH: f64 = 0.75;
/// How often a word of a name counts.
const NAME_WEIGHT: usize = 3;

/// Finds tools by what they do. What it finds, an [`Agent`](crate::Agent) offers from then on.
///
/// It knows the tools that it is given, and ranks them by BM25 over their names, descriptions and
/// arguments. [`Toolbox::searchable`](crate::Toolbox::searchable) gives it those that are
/// [deferred](Spec::deferred).
///
/// ```
/// use tooltape::{Spec, builtin};
///
/// let specs = [Spec::new("send_mail", "Sends a mail."), Spec::new("now", "Tells the time.")];
/// assert_eq!(&*builtin::tool_search(&specs).spec().name, "tool_search");
/// ```
pub fn tool_search<'s>(specs: impl IntoIterator<Item = &'s Spec>) -> Arc<dyn Tool> {
    let index = Arc::new(Index::of(specs));
    let count = index.tools.len();
    let description = format!(
        "Finds tools by what they do. {count} more tools can be called once they were found. \
         Search in a few words, such as `send mail`."
    );
    let effects = Effects { determinism: Determinism::Deterministic, ..Effects::pure() };
    let spec = Spec::new(TOOL_SEARCH, description)
        .version("1.0.0")
        .effects(effects)
        .output(schema_of::<Vec<Hit>>());
    tool_fn(spec, move |search: Search| {
        let index = index.clone();
        async move {
            let hits = search.limit.map_or(HITS_DEFAULT, usize::from);
            Ok::<_, ToolError>(index.search(&search.query, hits))
        }
    })
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Search {
    /// What the tool should do, in a few words; or its name.
    query: String,
    /// How many tools to find: 1 to 20, and 5 unless it is given.
    #[serde(default)]
    #[schemars(range(min = 1, max = 20))]
    limit: Option<u8>,
}

impl Input for Search {
    fn check(&self) -> Result<(), String> {
        match words(&self.query).next() {
            Some(_) => Ok(()),
            None => Err("/query: expected at least one word".to_owned()),
        }
    }
}

/// A tool that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Hit {
    /// Its name.
    pub(crate) name: String,
    /// What it does.
    pub(crate) description: String,
}

/// What is known of all tools, by the words that speak of them.
struct Index {
    tools: Vec<Hit>,
    /// How many words speak of each tool.
    lengths: Vec<usize>,
    /// Which tools a word speaks of, and how often.
    postings: HashMap<String, Vec<(usize, usize)>>,
}

impl Index {
    fn of<'s>(specs: impl IntoIterator<Item = &'s Spec>) -> Index {
        let mut index = Index { tools: Vec::new(), lengths: Vec::new(), postings: HashMap::new() };
        for spec in specs {
            let at = index.tools.len();
            let mut counts: HashMap<String, usize> = HashMap::new();
            for word in words(&spec.name) {
                *counts.entry(word).or_default() += NAME_WEIGHT;
            }
            let arguments = spec.input.get("properties").and_then(|it| it.as_object());
            let arguments = arguments.into_iter().flat_map(|it| it.keys());
            for word in words(&spec.description).chain(arguments.flat_map(|it| words(it))) {
                *counts.entry(word).or_default() += 1;
            }
            index.lengths.push(counts.values().sum());
            for (word, count) in counts {
                index.postings.entry(word).or_default().push((at, count));
            }
            let (name, description) = (spec.name.to_string(), spec.description.to_string());
            index.tools.push(Hit { name, description });
        }
        index
    }

    /// The tools that a query speaks of, the best first; of equals, the first.
    fn search(&self, query: &str, hits: usize) -> Vec<Hit> {
        let tools = self.tools.len() as f64;
        let average = self.lengths.iter().sum::<usize>() as f64 / tools.max(1.0);
        let mut scores = vec![0.0; self.tools.len()];
        for word in words(query) {
            let Some(postings) = self.postings.get(&word) else { continue };
            let having = postings.len() as f64;
            let rarity = (1.0 + (tools - having + 0.5) / (having + 0.5)).ln();
            for (at, count) in postings {
                let (count, length) = (*count as f64, self.lengths[*at] as f64);
                let norm = SATURATION * (1.0 - LENGTH + LENGTH * length / average.max(1.0));
                scores[*at] += rarity * count * (SATURATION + 1.0) / (count + norm);
            }
        }
        let mut found: Vec<usize> = (0..self.tools.len()).filter(|at| scores[*at] > 0.0).collect();
        found.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b)));
        let found = found.into_iter().take(hits.clamp(1, HITS_MAX));
        found.map(|at| self.tools[at].clone()).collect()
    }
}

/// The words of a text, in lower case; `sendMail` and `send_mail` are two each.
fn words(text: &str) -> impl Iterator<Item = String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut was_lower = false;
    for c in text.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && was_lower) {
            words.push(std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase() || c.is_numeric();
    }
    words.push(word);
    words.into_iter().filter(|word| !word.is_empty()).map(stem)
}

/// A word without the ending that most plurals and third persons have.
fn stem(word: String) -> String {
    match word.strip_suffix('s') {
        Some(stem) if stem.len() > 2 && !stem.ends_with('s') => stem.to_owned(),
        Some(_) | None => word,
    }
}
