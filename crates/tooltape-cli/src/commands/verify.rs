//! `tooltape verify`.

mod heads;

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use serde::Serialize;
use tooltape::{ArtifactId, Audit, Damage, InDoubt, Line, RunId, Verified};

use heads::Heads;

use super::Context;
use super::runs::counted;
use crate::args::Verify as VerifyArgs;
use crate::escape;
use crate::exit::Exit;
use crate::kept::{Kept, Location};
use crate::out::{BAD, FAINT, Format, GOOD, paint};
use crate::progress::Progress;
use crate::reel::{is_file, read_lines};
use crate::report::{Problem, Result};

/// How many damaged places people are shown.
const DAMAGES_SHOWN: usize = 20;

/// What was checked, and what was found.
#[derive(Serialize)]
struct Findings {
    what: String,
    sound: bool,
    #[serde(flatten)]
    verified: Verified,
    /// How many artifacts it refers to.
    artifacts: usize,
    missing_artifacts: Vec<ArtifactId>,
    /// Runs of which only a tombstone is left.
    tombstones: Vec<RunId>,
    damage: Vec<Damaged>,
    /// How many bytes of the file's end were cut off, where it was.
    torn: Option<u64>,
    /// How many heads it was compared with, and who signed them.
    heads: usize,
    signed_by: Option<String>,
}

/// Something that is wrong: with a run, or with the file.
#[derive(Serialize)]
struct Damaged {
    run: Option<RunId>,
    seq: u64,
    line: Option<u64>,
    why: String,
    /// How many records before it are sound.
    sound: u64,
}

impl From<Damage> for Damaged {
    fn from(damage: Damage) -> Damaged {
        let Damage { run, seq, line, why, sound, .. } = damage;
        Damaged { run, seq, line, why, sound }
    }
}

/// Checks a run, a tape or an exported tape.
pub(super) fn verify(context: &Context<'_>, args: &VerifyArgs) -> Result<Exit> {
    let heads = Heads::read(args.head.as_deref(), args.key.as_deref())?;
    let location = context.location()?;
    let file = args.what.as_deref().filter(|text| Path::new(text).is_file() || is_file(text));
    let file = file.map(Path::new);
    let has_heads = args.head.is_some() || file.is_some_and(is_exported);
    if args.key.is_some() && !has_heads {
        let message = "a key was given, and no head that it could have signed";
        return Err(Problem::new(Exit::Usage, "key.unused", message)
            .hint("give the signed head with `--head FILE`, or an exported tape that was signed"));
    }
    let findings = match (file, args.what.as_deref()) {
        (Some(file), _) if is_exported(file) => exported(context, file, heads)?,
        (Some(file), _) => whole(context, &Location::named(file), heads)?,
        (None, None) => whole(context, &location, heads)?,
        (None, Some(text)) => {
            let (kept, run) = location.run(text)?;
            checked(context, &kept, format!("run {run}"), Some(run), heads)?
        }
    };
    tell(context, &findings)?;
    match findings.sound {
        true => Ok(Exit::Done),
        false => Err(unsound(&findings)),
    }
}

fn is_exported(path: &Path) -> bool {
    let mut first = [0];
    let read = File::open(path).and_then(|mut file| file.read(&mut first));
    path.to_string_lossy().ends_with(".jsonl") || (read.is_ok() && first == *b"{")
}

/// Checks every run of a tape.
fn whole(context: &Context<'_>, location: &Location, heads: Heads) -> Result<Findings> {
    let opened = location.open_to_read().map_err(|problem| match &*problem.code {
        // What is no tape is no sound tape.
        "tape.foreign" => problem.exit(Exit::Differs),
        _ => problem,
    })?;
    let Some(kept) = opened else {
        let message = format!("there is no tape at `{}` yet", location.path.display());
        return Err(Problem::new(Exit::Failed, "tape.missing", message)
            .hint("`tooltape run` and `tooltape call` make one"));
    };
    let what = kept.path.display().to_string();
    checked(context, &kept, what, None, heads)
}

/// Checks the one run, or all.
fn checked(
    context: &Context<'_>,
    kept: &Kept,
    what: String,
    run: Option<RunId>,
    mut heads: Heads,
) -> Result<Findings> {
    let mut progress = Progress::new(context.out);
    let mut each = |run: RunId, len: u64, line: &Line| {
        progress.step(|records| format!("verifying run {run}, {records} records"));
        heads.meet(run, len, line.hash())
    };
    let audit = match run {
        None => kept.tape.audit(&mut each),
        Some(run) => kept.tape.audit_run(run, &mut each),
    };
    drop(progress);
    let Audit { verified, damage, tombstones, .. } = audit.map_err(|err| kept.problem(&err))?;
    let mut damage: Vec<Damaged> = damage.into_iter().map(Damaged::from).collect();
    for (run, head) in &tombstones {
        // What is left of it is its head.
        let met = heads.meet(*run, head.len, head.hash);
        damage.extend(met.err().map(|why| Damaged::at(*run, head.len, why)));
    }
    damage.extend(heads.unmet().map(|(run, len)| {
        Damaged::at(run, len, format!("its head says {len} records, and they are not there"))
    }));
    let missing_artifacts = missing(kept, &verified)?;
    let sound = damage.is_empty() && missing_artifacts.is_empty();
    let artifacts = verified.artifacts.len();
    let (heads, signed_by) = heads.told();
    Ok(Findings {
        what,
        sound,
        verified,
        artifacts,
        missing_artifacts,
        tombstones: tombstones.into_keys().collect(),
        damage,
        torn: None,
        heads,
        signed_by,
    })
}

impl Damaged {
    fn at(run: RunId, seq: u64, why: String) -> Damaged {
        Damaged { run: Some(run), seq, line: None, why, sound: seq }
    }
}

/// What the runs refer to and is not there, or is not what it was.
fn missing(kept: &Kept, verified: &Verified) -> Result<Vec<ArtifactId>> {
    if verified.artifacts.is_empty() {
        return Ok(Vec::new());
    }
    if !kept.artifacts_folder().is_dir() {
        return Ok(verified.artifacts.iter().map(|hash| ArtifactId(*hash)).collect());
    }
    let artifacts = kept.artifacts()?;
    let ids = verified.artifacts.iter().map(|hash| ArtifactId(*hash));
    Ok(ids.filter(|id| artifacts.get_blocking(*id).is_err()).collect())
}

/// Checks an exported tape. It holds no artifacts.
fn exported(context: &Context<'_>, path: &Path, mut heads: Heads) -> Result<Findings> {
    let mut progress = Progress::new(context.out);
    let (mut damage, mut unlike) = (Vec::new(), Vec::new());
    let read = read_lines(path, |line| {
        progress.step(|records| format!("verifying {records} records"));
        let (run, seq) = line.place()?;
        if let Err(why) = heads.meet(run, seq + 1, line.hash()) {
            unlike.push(Damaged::at(run, seq, why));
        }
        Ok(())
    });
    drop(progress);
    let read = read?;
    damage.extend(unlike);
    damage.extend(heads.unmet().map(|(run, len)| {
        Damaged::at(run, len, format!("its head says {len} records, and they are not there"))
    }));
    let (known, signed_by) = heads.with_signed(&read.heads)?;
    let artifacts = read.verified.artifacts.len();
    Ok(Findings {
        what: path.display().to_string(),
        sound: damage.is_empty() && read.torn.is_none(),
        verified: read.verified,
        artifacts,
        missing_artifacts: Vec::new(),
        tombstones: Vec::new(),
        damage,
        torn: read.torn,
        heads: known,
        signed_by,
    })
}

fn tell(context: &Context<'_>, findings: &Findings) -> Result {
    let out = context.out;
    if out.format == Format::Json {
        return out.json(findings);
    }
    let Findings { what, verified, artifacts, .. } = findings;
    let word = if findings.sound { paint(GOOD, "sound") } else { paint(BAD, "damaged") };
    let mut lines = vec![format!(
        "{word} {}: {}, {}, {}, {}",
        escape::line(what),
        counted(verified.runs as usize, "run"),
        counted(verified.records as usize, "record"),
        counted(verified.calls as usize, "call"),
        counted(*artifacts, "artifact"),
    )];
    let mut note = |count: usize, text: String| {
        if count > 0 {
            lines.push(paint(FAINT, format!("  {text}")));
        }
    };
    note(findings.heads, format!("leads to {}", counted(findings.heads, "exported head")));
    if let Some(key) = &findings.signed_by {
        note(1, format!("signed by {}", escape::line(key)));
    }
    let erased = verified.erased as usize;
    note(erased, format!("{} erased to their hashes", counted(erased, "record")));
    let tombstones = findings.tombstones.len();
    note(
        tombstones,
        format!("{} erased, of which a tombstone is left", counted(tombstones, "run")),
    );
    for InDoubt { run, call } in &verified.in_doubt {
        note(1, format!("in doubt: call {call} of run {run} started and did not settle"));
    }
    for tool in &verified.redefined {
        let tool = escape::line(tool);
        note(1, format!("`{tool}` was declared differently under one name and version"));
    }
    for Damaged { run, seq, line, why, sound } in findings.damage.iter().take(DAMAGES_SHOWN) {
        let why = escape::line(why);
        if run.is_none() && line.is_none() {
            lines.push(format!("  {why}"));
            continue;
        }
        let line = line.map_or(String::new(), |line| format!("line {line}, "));
        let run = run.map_or(String::new(), |run| format!("run {run}, "));
        lines.push(format!("  {line}{run}record {seq}: {why} ({sound} before it are sound)"));
    }
    let more = findings.damage.len().saturating_sub(DAMAGES_SHOWN);
    if more > 0 {
        lines.push(format!("  and {more} more damaged places"));
    }
    for id in &findings.missing_artifacts {
        lines.push(format!("  {id} is missing or damaged"));
    }
    if let Some(bytes) = findings.torn {
        lines.push(format!("  its end is cut off: {bytes} bytes of a last line, or its heads"));
    }
    out.table(&lines.join("\n"))
}

fn unsound(findings: &Findings) -> Box<Problem> {
    let (code, message) = match (findings.damage.first(), findings.torn) {
        (Some(Damaged { run: None, line: None, why, .. }), _) => ("tape.corrupt", why.clone()),
        (Some(first), _) => ("tape.corrupt", format!("record {}: {}", first.seq, first.why)),
        (None, Some(_)) => ("tape.torn", "the file is cut off at its end".to_owned()),
        (None, None) => {
            let count = counted(findings.missing_artifacts.len(), "artifact");
            ("artifacts.missing", format!("{count} missing or damaged"))
        }
    };
    let hint = "what is sound can still be read with `tooltape show`; nothing was changed";
    let problem = Problem::new(Exit::Differs, code, message).hint(hint);
    match findings.damage.first().and_then(|first| first.run) {
        Some(run) => problem.run(run),
        None => problem,
    }
}
