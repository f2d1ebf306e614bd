//! Writes a recorded run down as a test that needs nothing but its tape.

use std::fmt::Write as _;

use super::{Replay, ReplayError};
use crate::id::RunId;
use crate::tape::{Record, read_tape};

/// The most bytes of a reply that a recorded test holds in its source.
const REPLY_BYTES_MAX: usize = 2_000;

/// What a recorded test is called, and what it needs to compile.
#[derive(Clone, Copy, Debug)]
pub struct RecordTest<'a> {
    /// The name of the test function.
    pub name: &'a str,
    /// The portable tape, by its path from the file of the test.
    pub tape: &'a str,
    /// An expression for the tools, such as `my_tools::tools()`.
    pub tools: &'a str,
}

impl RecordTest<'_> {
    /// The source of a test which plays the run again and expects nothing to differ, and every call
    /// to end as it did. `records` are those of the run, from the first on.
    ///
    /// It needs the crates `tooltape`, and `tokio` with `macros`, `rt` and `time`. No effect
    /// happens in it, and nothing outside its tape is read.
    pub fn source(&self, records: &[Record]) -> Option<String> {
        let RecordTest { name, tape, tools } = self;
        let run = records.first()?.run;
        let settled: Vec<_> = records.iter().filter_map(Record::settled).collect();
        let calls = settled.len();
        let mut source = format!(
            "//! Plays a recorded run again: offline, with no effect.\n\n\
             use tooltape::{{Replay, Toolbox}};\n\n\
             #[tokio::test]\nasync fn {name}() {{\n    \
             let toolbox = Toolbox::new({tools}).unwrap();\n    \
             let run = \"{run}\";\n    \
             let replay = Replay::from_lines(include_str!({tape:?}), Some(run)).unwrap();\n    \
             let report = replay.with(&toolbox).check().await.unwrap();\n    \
             assert!(report.is_same(), \"{{report}}\");\n    \
             let replies = report.replies();\n    \
             assert_eq!(replies.len(), {calls});\n"
        );
        for (at, reply) in settled.into_iter().enumerate() {
            let (tool, executed, text) = (&*reply.name, reply.executed.to_string(), reply.text());
            let lines = match text.len() <= REPLY_BYTES_MAX {
                true => format!("assert_eq!(replies[{at}].text(), {text:?});"),
                false => {
                    let hash = reply.result_hash;
                    format!("assert_eq!(replies[{at}].result_hash.to_string(), \"{hash}\");")
                }
            };
            let _ = write!(
                source,
                "    assert_eq!(&*replies[{at}].name, {tool:?});\n    \
                 assert_eq!(replies[{at}].executed.to_string(), {executed:?});\n    {lines}\n",
            );
        }
        source.push_str("}\n");
        Some(source)
    }
}

impl Replay<'static> {
    /// A run of a portable tape: the one of this id, or else the first.
    ///
    /// The tape is verified first. One that was cut off is played as far as it goes.
    pub fn from_lines(text: &str, run: Option<&str>) -> Result<Replay<'static>, ReplayError> {
        let mut records: Vec<Record> = Vec::new();
        let wanted = |id: RunId| run.is_none_or(|run| id.to_string() == run);
        read_tape(text.as_bytes(), |line| {
            let (id, _) = line.place()?;
            if wanted(id) && records.first().is_none_or(|first| first.run == id) {
                records.push(line.record()?);
            }
            Ok(())
        })
        .map_err(ReplayError::Damaged)?;
        Ok(Replay::of_records(records))
    }
}
