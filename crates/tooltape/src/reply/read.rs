//! Reading a reply back from a tape.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::{FaultView, More, Rendered, Reply};
use crate::artifact::ArtifactId;
use crate::canon::{Canon, Doc, Domain, Hash, Kind, Limits, Node, Sets};
use crate::fault::Executed;
use crate::grant::REDACTED;
use crate::id::{CallNo, ToolId};
use crate::label::Label;
use crate::proposal::{Facts, MoreFacts, Remembered};
use crate::right::SpendScope;
use crate::spec::{Enforced, Vote};
use crate::tool::{Block, Content, Source};

/// A reply as a tape keeps it.
#[derive(Deserialize)]
pub(crate) struct Settled {
    call: CallNo,
    call_id: Arc<str>,
    tool: Arc<str>,
    tool_id: Option<ToolId>,
    executed: Executed,
    is_error: bool,
    content: Vec<Part>,
    value: Option<Canon>,
    fault: Option<Box<FaultView>>,
    source: Source,
    stop: bool,
    vote: Vote,
    artifacts: Vec<Hash>,
    args_hash: Hash,
    result_hash: Hash,
    details: Option<Box<Value>>,
    metadata: Option<Box<Value>>,
    elapsed_us: u64,
    #[serde(default)]
    label: Option<Arc<Label>>,
    #[serde(default)]
    endorsed: Option<Arc<str>>,
    #[serde(default)]
    spent: Option<Box<[SpendScope]>>,
    #[serde(default)]
    enforced_by: Enforced,
    #[serde(default)]
    determinism: Option<Proof>,
}

/// How much is known of what a result depends on.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Proof {
    Proven,
}

/// A content block, with the fields of all kinds: a tagged type would lose large integers.
#[derive(Deserialize)]
struct Part {
    r#type: PartKind,
    text: Option<String>,
    value: Option<Canon>,
    media_type: Option<String>,
    data: Option<String>,
    uri: Option<String>,
    title: Option<String>,
    bytes: Option<u64>,
    of: Option<u64>,
    artifact: Option<ArtifactId>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum PartKind {
    Text,
    Json,
    Image,
    ResourceLink,
    LeftOut,
}

impl Part {
    fn block(self) -> Option<Block> {
        let Part { media_type, title, artifact, .. } = self;
        Some(match self.r#type {
            PartKind::Text => Block::Text { text: self.text? },
            // A `null` is a value too, which an option cannot tell from none.
            PartKind::Json => Block::Json { value: self.value.unwrap_or_else(Canon::null) },
            PartKind::Image => Block::Image { media_type: media_type?, data: self.data? },
            PartKind::ResourceLink => Block::ResourceLink { uri: self.uri?, title, media_type },
            PartKind::LeftOut => Block::LeftOut { bytes: self.bytes?, of: self.of?, artifact },
        })
    }
}

impl Settled {
    /// The reply, or the number of the first content block that lacks something.
    pub(crate) fn reply(self) -> Result<Reply, usize> {
        let blocks = self.content.into_iter().enumerate();
        let content = blocks.map(|(no, part)| part.block().ok_or(no)).collect::<Result<_, _>>()?;
        // A tool may return `null`, which an option cannot tell from none; its hash can.
        let null = || Hash::of(Domain::Result, b"null") == self.result_hash;
        let value = self.value.or_else(|| null().then(Canon::null));
        let remembered = self.tool_id.map(|tool| Remembered { tool, definition: None });
        let facts = Facts {
            call: self.call,
            id: self.call_id,
            name: self.tool,
            arguments: "".into(),
            args_hash: self.args_hash,
            args: None,
            registered: None,
            more: MoreFacts { remembered, ..MoreFacts::default() }.kept(),
        };
        let (label, endorsed, spent) = (self.label, self.endorsed, self.spent);
        Ok(Reply(Arc::new(Rendered {
            facts,
            executed: self.executed,
            is_error: self.is_error,
            content,
            value,
            fault: self.fault,
            source: self.source,
            stop: self.stop,
            vote: self.vote,
            artifacts: self.artifacts,
            result_hash: self.result_hash,
            details: self.details,
            metadata: self.metadata,
            elapsed_us: self.elapsed_us,
            enforced_by: self.enforced_by,
            proven: matches!(self.determinism, Some(Proof::Proven)),
            more: More { label, endorsed, spent, ..More::default() }.kept(),
        })))
    }
}

impl Reply {
    /// A reply of a conversation that took place elsewhere, as its model read it. Nothing is known
    /// of its call but that.
    pub fn recalled(id: Arc<str>, name: Arc<str>, text: Arc<str>, is_error: bool) -> Reply {
        let null = Hash::of(Domain::Result, b"null");
        let executed = if is_error { Executed::Unknown } else { Executed::Executed };
        let facts = Facts {
            call: CallNo(0),
            id,
            name,
            arguments: "".into(),
            args_hash: null,
            args: None,
            registered: None,
            more: None,
        };
        Reply(Arc::new(Rendered {
            facts,
            executed,
            is_error,
            content: Content::One([Block::text(&*text)]),
            value: None,
            fault: None,
            source: Source::Mock,
            stop: false,
            vote: Vote::Advisory,
            artifacts: Vec::new(),
            result_hash: null,
            details: None,
            metadata: None,
            elapsed_us: 0,
            enforced_by: Enforced::Host,
            proven: false,
            more: None,
        }))
    }

    /// Whether the result hash is that of the result, as far as a tape can tell.
    ///
    /// Arrays that are sets were hashed in order, and which ones are is in the tool's schema alone:
    /// of several arrays, or of items that a secret was taken from, nobody can tell.
    pub(crate) fn is_result_hashed(&self) -> bool {
        let is_hash = |text: &str| Hash::of(Domain::Result, text.as_bytes()) == self.result_hash;
        let Some(value) = self.value.as_ref().filter(|_| self.fault.is_none()) else {
            return Canon::of(&self.content).is_ok_and(|content| is_hash(content.as_str()));
        };
        if is_hash(value.as_str()) {
            return true;
        }
        let Ok(doc) = Doc::read(value.as_str(), &Limits::OWN) else { return false };
        match arrays(doc.root()) {
            0 => false,
            1 => {
                let sets = the_array(doc.root()).unwrap_or_default();
                value.as_str().contains(REDACTED) || is_hash(doc.canonical_with(&sets).as_str())
            }
            2.. => true,
        }
    }
}

/// How many arrays of a value can be in another order.
fn arrays(node: Node<'_>) -> usize {
    let inner: usize = node.items().map(arrays).sum();
    let fields: usize = node.fields().map(|(_, field)| arrays(field)).sum();
    usize::from(node.kind() == Kind::Array && node.len() > 1) + inner + fields
}

/// Where the only such array is.
fn the_array(node: Node<'_>) -> Option<Sets> {
    if node.kind() == Kind::Array && node.len() > 1 {
        return Some(Sets { here: true, ..Sets::default() });
    }
    let item = node.items().find_map(the_array);
    let field = node.fields().find_map(|(name, field)| Some((name.into(), the_array(field)?)));
    match (item, field) {
        (Some(item), _) => Some(Sets { items: Some(Box::new(item)), ..Sets::default() }),
        (None, field) => Some(Sets { fields: [field?].into(), ..Sets::default() }),
    }
}
