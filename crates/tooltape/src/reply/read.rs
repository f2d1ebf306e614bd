//! Reading a reply back from a tape.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::{FaultView, Rendered, Reply};
use crate::artifact::ArtifactId;
use crate::call::{Facts, Remembered};
use crate::canon::{Canon, Domain, Hash};
use crate::fault::Executed;
use crate::id::{CallNo, ToolId};
use crate::spec::Vote;
use crate::tool::{Block, Source};

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
        let remembered = self.tool_id.map(|tool| Box::new(Remembered { tool, definition: None }));
        let facts = Facts {
            call: self.call,
            id: self.call_id,
            name: self.tool,
            arguments: "".into(),
            args_hash: self.args_hash,
            args: None,
            repairs: Vec::new(),
            registered: None,
            remembered,
        };
        Ok(Reply(Arc::new(Rendered {
            facts: Arc::new(facts),
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
            frame: None,
            on_tape: None,
        })))
    }
}
