//! Names in rights: of roots, profiles, secrets, servers, tools and variables.

use std::fmt;
use std::str::FromStr;

use super::error::{ScopeError, escaped};
use crate::canon::Hash;

/// The most bytes of a name in a right.
pub const WORD_BYTES_MAX: usize = 128;

/// A name in a right: `^[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127}$`, matched exactly.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Word(Box<str>);

impl Word {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reads a name that is this part of a right.
    pub(super) fn parse(part: &'static str, text: &str) -> Result<Word, ScopeError> {
        ScopeError::unless_sized(part, text, WORD_BYTES_MAX, "a name")?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        ScopeError::unless_all(part, text, "only `a-z A-Z 0-9 _ . -`", is_plain)?;
        if text.starts_with(['.', '-']) {
            return Err(ScopeError::form(part, text, "a letter, a digit or `_` first"));
        }
        Ok(Word(text.into()))
    }
}

impl FromStr for Word {
    type Err = ScopeError;

    fn from_str(text: &str) -> Result<Word, ScopeError> {
        Word::parse("name", text)
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}

/// The name of a variable of the environment: `^[a-zA-Z_][a-zA-Z0-9_]{0,127}$`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Variable(Word);

impl FromStr for Variable {
    type Err = ScopeError;

    fn from_str(text: &str) -> Result<Variable, ScopeError> {
        const PART: &str = "variable";
        let word = Word::parse(PART, text)?;
        if text.contains(['.', '-']) || text.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(ScopeError::form(PART, text, "only `a-z A-Z 0-9 _`, and no digit first"));
        }
        Ok(Variable(word))
    }
}

impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A tool of an MCP server, as it was when its definition had this hash; written
/// `server/tool@hash`.
///
/// A server that changes what the tool says it is has another tool.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct McpTool {
    /// The server's name.
    pub server: Word,
    /// The tool's name there.
    pub tool: Word,
    /// The hash of its definition.
    pub definition: Hash,
}

impl FromStr for McpTool {
    type Err = ScopeError;

    fn from_str(text: &str) -> Result<McpTool, ScopeError> {
        let parts = text.split_once('/').and_then(|(server, rest)| {
            let (tool, hash) = rest.split_once('@')?;
            Some((server, tool, hash))
        });
        let (server, tool, hash) =
            parts.ok_or_else(|| ScopeError::form("tool", text, "`server/tool@hash`"))?;
        let definition = hash.parse().map_err(|_| ScopeError::Form {
            part: "hash",
            found: escaped(hash),
            expected: "64 lower-case hexadecimal digits".to_owned(),
        })?;
        let (server, tool) = (Word::parse("server", server)?, Word::parse("tool", tool)?);
        Ok(McpTool { server, tool, definition })
    }
}

impl fmt::Display for McpTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}@{}", self.server, self.tool, self.definition)
    }
}
