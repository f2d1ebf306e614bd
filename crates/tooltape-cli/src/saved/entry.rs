//! One saved answer: what it is good for, and until when.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use tooltape::rule::Glob;
use tooltape::{Canon, Domain, Hash};

use super::Asking;
use crate::escape;
use crate::exit::Exit;
use crate::members::{joined, members, text_of};
use crate::report::{Problem, Result};
use crate::when;

/// The most bytes of arguments that are saved.
pub(super) const SAVED_ARGS_BYTES_MAX: usize = 16 << 10;
/// How many characters of a hash end an answer's name.
const NAME_HASH_CHARS: usize = 8;

/// Globs by argument. What it does not name must be equal.
pub(crate) type Pattern = BTreeMap<String, String>;

/// An answer that somebody saved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) tool: String,
    pub(crate) definition: Hash,
    /// The arguments that must be equal, in canonical form.
    pub(crate) args: String,
    /// Those that must match.
    pub(crate) pattern: Pattern,
    /// The folder that the tool's files are in.
    pub(crate) workspace: String,
    #[serde(rename = "created", serialize_with = "moment")]
    pub(crate) created_us: u64,
    #[serde(rename = "expires", serialize_with = "moment")]
    pub(crate) expires_us: u64,
}

fn moment<S: serde::Serializer>(us: &u64, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_str(&when::rfc3339(*us))
}

impl Entry {
    /// What is to be saved for a call. The pattern must match it.
    pub(super) fn new(
        asking: &Asking,
        pattern: &Pattern,
        workspace: &str,
        (created_us, lifetime): (u64, Duration),
    ) -> Result<Entry> {
        let Asking { tool, definition, args } = asking;
        let lifetime_us = u64::try_from(lifetime.as_micros()).unwrap_or(u64::MAX);
        // The file keeps seconds, so that is what an answer has.
        let created_us = created_us / 1_000_000 * 1_000_000;
        let mut entry = Entry {
            name: String::new(),
            tool: tool.clone(),
            definition: *definition,
            args: rest(args, pattern),
            pattern: pattern.clone(),
            workspace: workspace.to_owned(),
            created_us,
            expires_us: created_us.saturating_add(lifetime_us),
        };
        entry.name = entry.own_name();
        entry.check_pattern().map_err(|why| unsaved(&why))?;
        let all = members(args);
        for (name, glob) in pattern {
            let text = all.iter().find(|(member, _)| member == name);
            let text = text.and_then(|(_, value)| text_of(value));
            if !text.as_ref().is_some_and(|text| matches(glob, text)) {
                let (name, glob) = (escape::line(name), escape::line(glob));
                return Err(unsaved(&match text {
                    None => format!("`{name}` is no text argument of this call"),
                    Some(_) => format!("`{glob}` does not match this call's own `{name}`"),
                }));
            }
        }
        if entry.args.len() > SAVED_ARGS_BYTES_MAX {
            let bytes = entry.args.len();
            let why = format!("its arguments have {bytes} bytes, of {SAVED_ARGS_BYTES_MAX}");
            return Err(unsaved(&why));
        }
        Ok(entry)
    }

    /// Whether it is good for a call. Whatever is not as it was, it says nothing of.
    pub(super) fn answers(&self, asking: &Asking, workspace: &str, now_us: u64) -> bool {
        let Asking { tool, definition, args } = asking;
        let all = members(args);
        let text = |name: &String| {
            let (_, value) = all.iter().find(|(member, _)| member == name)?;
            text_of(value)
        };
        (self.created_us..self.expires_us).contains(&now_us)
            && (&self.tool, &self.definition) == (tool, definition)
            && self.workspace == workspace
            && self
                .pattern
                .iter()
                .all(|(name, glob)| text(name).is_some_and(|it| matches(glob, &it)))
            && self.args == rest(args, &self.pattern)
    }

    /// What it is called: after its tool, and after all that it is good for.
    pub(super) fn own_name(&self) -> String {
        let Entry { tool, definition, args, pattern, workspace, .. } = self;
        let bound = (tool, definition, args, pattern, workspace);
        let bound = serde_json::to_string(&bound).expect("texts serialise");
        let hash = Hash::of(Domain::Approval, bound.as_bytes()).to_string();
        let tool = tool.split('@').next().unwrap_or(tool);
        format!("{tool}-{}", &hash[..NAME_HASH_CHARS])
    }

    /// Why its pattern is none.
    pub(super) fn check_pattern(&self) -> std::result::Result<(), String> {
        for glob in self.pattern.values() {
            let read = glob.parse::<Glob>();
            read.map_err(|err| {
                format!("`{}`: {}", escape::line(glob), escape::line(&err.to_string()))
            })?;
        }
        Ok(())
    }

    /// What it lets run, in words.
    pub(crate) fn scope(&self) -> String {
        let (tool, args) = (escape::line(&self.tool), escape::json(&self.args));
        let globs = self.pattern.iter().map(|(name, glob)| {
            let any = if glob.contains("**") { ", at any depth" } else { "" };
            format!("`{}` matches `{}`{any}", escape::line(name), escape::line(glob))
        });
        match globs.collect::<Vec<_>>().as_slice() {
            [] => format!("{tool} with exactly {args}"),
            globs => {
                format!("{tool} where {}, and all else is exactly {args}", globs.join(" and "))
            }
        }
    }
}

/// The arguments that a pattern does not name, in canonical form.
fn rest(args: &Canon, pattern: &Pattern) -> String {
    match pattern.is_empty() {
        true => args.as_str().to_owned(),
        false => {
            let all = members(args);
            joined(all.iter().filter(|(name, _)| !pattern.contains_key(name)))
        }
    }
}

/// Whether a text is one that a glob means. A path with detours is none.
fn matches(glob: &str, text: &str) -> bool {
    let is_detour = |part: &str| matches!(part, "" | "." | "..");
    let is_plain = !text.contains(['\\', '\0']) && !text.split('/').any(is_detour);
    is_plain && glob.parse().is_ok_and(|glob: Glob| glob.matches(text) == Some(true))
}

fn unsaved(why: &str) -> Box<Problem> {
    Problem::new(Exit::Usage, "answers.unfit", format!("this answer cannot be saved: {why}"))
        .hint("a pattern is `NAME=GLOB` for a text argument; `*` stays within a folder")
}
