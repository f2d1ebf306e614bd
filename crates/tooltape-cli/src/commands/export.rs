//! `tooltape export` and `tooltape import`.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::{Path, PathBuf};

use serde_json::json;
use tooltape::{RunHead, RunId, RunStatus, Script, SignKey, TapeError, TapeWriter};

use super::Context;
use super::runs::{counted, with_nested};
use super::show;
use crate::args::{Export, ExportFormat};
use crate::escape;
use crate::exit::Exit;
use crate::host::new_id;
use crate::kept::Kept;
use crate::out::{FAINT, Format, paint};
use crate::progress::Progress;
use crate::reel::{EXTENSION, Reel, read_lines};
use crate::report::{Problem, Result};

/// The digits of a secret key.
const KEY_DIGITS: usize = 64;

/// Writes a run, and the runs that it started, to a file.
pub(super) fn export(context: &Context<'_>, args: &Export) -> Result<Exit> {
    let format = format(args)?;
    let key = args.sign.as_deref().map(secret).transpose()?;
    let (kept, run) = context.location()?.run(&args.run)?;
    let is_tombstone = || kept.tape.lines(run, 0, 1).is_ok_and(|lines| lines.is_empty());
    if args.output.is_some() && is_tombstone() {
        let message = "the run was erased, and only its head is left";
        return Err(Problem::new(Exit::Failed, "run.erased", message)
            .hint("`tooltape export RUN --head FILE` writes the head")
            .run(run));
    }
    let wants_tape = args.output.is_some() || args.head.is_none();
    match (wants_tape, format) {
        (false, _) => {}
        (true, ExportFormat::Json) => text(context, args, run, |reel| {
            let text = serde_json::to_string_pretty(&show::document(reel));
            text.expect("records serialise") + "\n"
        })?,
        (true, ExportFormat::Script) => {
            text(context, args, run, |reel| Script::recorded(&reel.records).to_string())?;
        }
        (true, ExportFormat::Tape) => tape(context, args, &kept, run, key.as_ref())?,
    }
    if let Some(path) = &args.head {
        let head = kept.tape.head(run).map_err(|err| kept.problem(&err))?;
        let mut head = RunHead::new(run, head);
        key.iter().for_each(|key| key.sign(&mut head));
        write(path, Readers::Owner, |file| writeln!(file, "{}", head.text()))?;
    }
    for path in args.output.iter().chain(&args.head) {
        context.out.say(&format!("wrote {}", escape::line(&path.display().to_string())));
    }
    if let Some(key) = &key {
        context.out.say(&paint(FAINT, format!("signed; the public key is {}", key.public())));
    }
    Ok(Exit::Done)
}

/// Writes what is made of a whole run as one text.
fn text(
    context: &Context<'_>,
    args: &Export,
    run: RunId,
    made: impl FnOnce(&Reel) -> String,
) -> Result {
    let reel = Reel::read(&context.location()?, &run.to_string())?;
    let text = made(&reel);
    match &args.output {
        Some(path) => write(path, Readers::Owner, |file| file.write_all(text.as_bytes()))?,
        None => context.out.data(text.trim_end())?,
    }
    reel.whole().map(drop)
}

fn format(args: &Export) -> Result<ExportFormat> {
    let name = args.output.as_ref().map(|path| path.to_string_lossy().into_owned());
    match (args.format, name.as_deref()) {
        (Some(format), _) => Ok(format),
        (None, None) => Ok(ExportFormat::Tape),
        (None, Some(name)) if name.ends_with(".script.jsonl") => Ok(ExportFormat::Script),
        (None, Some(name)) if name.ends_with(".jsonl") => Ok(ExportFormat::Tape),
        (None, Some(name)) if name.ends_with(".json") => Ok(ExportFormat::Json),
        (None, Some(name)) => {
            let message = format!("`{}` does not say in which form", escape::line(name));
            Err(Problem::new(Exit::Usage, "export.format", message)
                .hint(format!("end it with `{EXTENSION}` or `.json`, or give `--format`")))
        }
    }
}

fn tape(
    context: &Context<'_>,
    args: &Export,
    kept: &Kept,
    run: RunId,
    key: Option<&SignKey>,
) -> Result {
    let runs = with_nested(kept, run)?;
    let mut progress = Progress::new(context.out);
    let mut failed = None;
    let mut write_all = |out: &mut dyn Write| -> io::Result<()> {
        let mut writer = TapeWriter::new(out)?;
        for run in &runs {
            let written = kept.each_line(
                *run,
                |_, err| err,
                |line| {
                    progress.step(|records| format!("exporting {records} records"));
                    writer.line(&line)
                },
            );
            if let Err(err) = written {
                failed = Some(kept.problem(&err).run(*run));
                return Err(io::Error::other("the run cannot be read"));
            }
        }
        let seal = |head: &mut RunHead| key.iter().for_each(|key| key.sign(head));
        writer.end(seal).map(drop).map_err(io::Error::other)
    };
    let written = match &args.output {
        Some(path) => write(path, Readers::Owner, |file| write_all(file)),
        None => {
            let stdout = io::stdout();
            // A tape holds whatever others wrote, and a person is not to be drawn upon.
            let done = match stdout.is_terminal() {
                true => write_all(&mut Visible { out: stdout.lock(), line: Vec::new() }),
                false => write_all(&mut BufWriter::new(stdout.lock())),
            };
            match done {
                Err(err) if err.kind() != io::ErrorKind::BrokenPipe => {
                    let message = format!("stdout could not be written: {err}");
                    Err(Problem::new(Exit::Unexpected, "output.failed", message))
                }
                Ok(()) | Err(_) => Ok(()),
            }
        }
    };
    drop(progress);
    match failed {
        Some(problem) => Err(problem),
        None => written,
    }
}

/// Who may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readers {
    /// Its owner: what a run read and wrote is in it.
    Owner,
    /// Whoever the system lets.
    Usual,
}

/// Writes a file as a whole, or not at all.
pub(super) fn write(
    path: &Path,
    readers: Readers,
    fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result {
    let mut partial = path.as_os_str().to_owned();
    // Nobody can have put a link there, because nobody knows the name.
    partial.push(format!(".{}.partial", new_id()));
    let partial = PathBuf::from(partial);
    let mut options = File::options();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if readers == Readers::Owner {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    let written = options.open(&partial).and_then(|file| {
        let mut file = BufWriter::new(file);
        fill(&mut file)?;
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        fs::rename(&partial, path)?;
        sync_folder(path)
    });
    written.map_err(|err| {
        // Gone already, or never there.
        let _ = fs::remove_file(&partial);
        let shown = escape::line(&path.display().to_string()).into_owned();
        Problem::new(Exit::Failed, "file.unwritten", format!("`{shown}` cannot be written: {err}"))
            .hint("name a file in a folder that you may write to")
    })
}

/// Waits until a file's name is as durable as what it holds.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match cfg!(unix) {
        true => File::open(folder.unwrap_or(Path::new(".")))?.sync_all(),
        false => Ok(()),
    }
}

/// A key that signs.
fn secret(path: &Path) -> Result<SignKey> {
    let text = path.metadata().and_then(|metadata| match metadata.len() {
        0..=1_024 => fs::read_to_string(path),
        _ => Err(io::Error::other("it is too long")),
    });
    let unusable = |why: String| {
        let shown = escape::line(&path.display().to_string()).into_owned();
        Problem::new(Exit::Usage, "key.invalid", format!("`{shown}` is no secret key: {why}"))
            .hint("`openssl rand -hex 32` makes one: 64 hexadecimal digits")
    };
    let text = text.map_err(|err| unusable(err.to_string()))?;
    let digits = text.trim();
    let seed: Option<Vec<u8>> = (0..digits.len() / 2)
        .map(|at| u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok())
        .collect();
    let seed = seed.filter(|_| digits.len() == KEY_DIGITS).and_then(|seed| seed.try_into().ok());
    let found = format!("expected {KEY_DIGITS} hexadecimal digits");
    seed.map(SignKey::from_seed).ok_or_else(|| unusable(found))
}

/// Why an exported tape was not taken in.
fn untaken(kept: &Kept, runs: &BTreeSet<RunId>, err: &TapeError) -> Box<Problem> {
    let is_erased =
        |run: &&RunId| kept.summary(**run).is_ok_and(|here| here.status == RunStatus::Erased);
    let erased = match err {
        TapeError::Conflict { .. } | TapeError::Erased { .. } => runs.iter().find(is_erased),
        _ => None,
    };
    match erased {
        None => kept.problem(err),
        Some(run) => {
            let message = format!("the run `{run}` was erased here, and does not come back");
            Problem::new(Exit::Failed, "run.erased", message)
                .hint("nothing was taken in; `tooltape show FILE` reads it all the same")
                .run(*run)
        }
    }
}

/// Takes in an exported tape: all of it, or nothing.
pub(super) fn import(context: &Context<'_>, path: &Path) -> Result<Exit> {
    let (mut lines, mut runs) = (Vec::new(), BTreeSet::new());
    let mut progress = Progress::new(context.out);
    let read = read_lines(path, |line| -> std::result::Result<(), TapeError> {
        progress.step(|records| format!("importing {records} records"));
        runs.insert(line.place()?.0);
        lines.push(line);
        Ok(())
    });
    drop(progress);
    let read = read?;
    let kept = context.location()?.open(context.out)?;
    let total = lines.len();
    let new = kept.tape.import(lines).map_err(|err| untaken(&kept, &runs, &err))?;
    match context.out.format {
        Format::Json => {
            let document = json!({
                "runs": runs, "records": total, "new": new, "torn": read.torn,
                "artifacts_elsewhere": read.verified.artifacts.len(),
            });
            context.out.json(&document)?;
        }
        Format::Text => {
            runs.iter().try_for_each(|run| context.out.table(&run.to_string()))?;
            context.out.say(&format!("{}, {new} of them new", counted(total, "record")));
        }
    }
    if let Some(bytes) = read.torn {
        let line = "the file was cut off at its end: what is whole was taken in";
        context.out.say(&paint(FAINT, format!("{line}; {bytes} bytes were not")));
    }
    Ok(Exit::Done)
}

/// Lines of JSON for a person to look at.
struct Visible<W> {
    out: W,
    line: Vec<u8>,
}

impl<W: Write> Write for Visible<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        while let Some(end) = self.line.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.line.drain(..=end).collect();
            self.out.write_all(escape::json(&String::from_utf8_lossy(&line)).as_bytes())?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
