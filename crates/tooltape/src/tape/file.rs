//! The portable form of a tape: a file of lines, of which every byte is held by a hash.

use std::io::{self, BufRead, Read as _, Write};

use super::{Damage, Head, Line, RunHead, TapeError, Verified, Verify};
use crate::id::RunId;

/// The first line of every portable tape.
pub const TAPE_FILE_HEADER: &str = r#"{"format":"tooltape.tape/1"}"#;
/// The longest line that is read, in bytes.
pub const TAPE_LINE_BYTES_MAX: usize = 256 << 20;

/// Writes a portable tape: a header, the lines of its runs, and at the end the head of each.
///
/// The same runs always make the same bytes.
pub struct TapeWriter<W> {
    out: W,
    heads: Vec<(RunId, Head)>,
}

impl<W: Write> TapeWriter<W> {
    /// Begins a file.
    pub fn new(mut out: W) -> io::Result<TapeWriter<W>> {
        writeln!(out, "{TAPE_FILE_HEADER}")?;
        Ok(TapeWriter { out, heads: Vec::new() })
    }

    /// Writes the next line of a run. Runs come one after the other.
    pub fn line(&mut self, line: &Line) -> Result<(), TapeError> {
        let (run, seq) = line.place()?;
        match self.heads.last_mut() {
            Some((last, head)) if *last == run => *head = head.then_line(line)?,
            Some(_) | None if seq == 0 => self.heads.push((run, Head::empty().then_line(line)?)),
            Some(_) | None => {
                let why = format!("the file has records of run {run} from {seq} on only");
                return Err(TapeError::Corrupt { seq, why });
            }
        }
        writeln!(self.out, "{}", line.text()).map_err(|err| unwritten(&err))
    }

    /// Ends the file with the heads of its runs, each as `seal` leaves it: signed, for example.
    pub fn end(mut self, seal: impl Fn(&mut RunHead)) -> Result<W, TapeError> {
        for (run, head) in &self.heads {
            let mut head = RunHead::new(*run, *head);
            seal(&mut head);
            writeln!(self.out, "{}", head.text()).map_err(|err| unwritten(&err))?;
        }
        self.out.flush().map_err(|err| unwritten(&err))?;
        Ok(self.out)
    }
}

fn unwritten(err: &io::Error) -> TapeError {
    TapeError::Io { why: format!("the portable tape could not be written: {err}") }
}

/// What a portable tape turned out to be.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct TapeRead {
    /// What its sound lines amount to.
    pub verified: Verified,
    /// The heads that it ends with.
    pub heads: Vec<RunHead>,
    /// How many bytes at its end were cut off in the middle, or that its heads are missing.
    pub torn: Option<u64>,
}

/// Reads a portable tape, checks all of it, and hands over each sound line.
///
/// A last line that is not whole, or an end without heads, is a torn tail: left out, and told.
/// Anything else that is wrong is [`Damage`] with its place. `take` may stop the reading.
pub fn read_tape(
    input: impl BufRead,
    mut take: impl FnMut(Line) -> Result<(), TapeError>,
) -> Result<TapeRead, Damage> {
    let (mut input, mut verify, mut heads) = (input, Verify::default(), Vec::new());
    let (mut no, mut torn, mut text) = (0, None, Vec::new());
    loop {
        text.clear();
        let most = TAPE_LINE_BYTES_MAX as u64 + 1;
        let bytes = input.by_ref().take(most).read_until(b'\n', &mut text);
        let at = |verify: &Verify, err: TapeError| Damage {
            line: Some(no + 1),
            seq: verify.records(),
            ..verify.damage(None, &err)
        };
        let bytes = bytes.map_err(|err| at(&verify, TapeError::Io { why: err.to_string() }))?;
        if bytes == 0 {
            break;
        }
        let Some(whole) = text.strip_suffix(b"\n") else {
            if bytes > TAPE_LINE_BYTES_MAX {
                let why = format!("the line has more than {TAPE_LINE_BYTES_MAX} bytes");
                return Err(at(&verify, TapeError::Corrupt { seq: 0, why }));
            }
            torn = Some(bytes as u64);
            break;
        };
        let whole = str::from_utf8(whole).map_err(|err| {
            at(&verify, TapeError::Corrupt { seq: 0, why: format!("not UTF-8: {err}") })
        })?;
        match (no, whole) {
            (0, TAPE_FILE_HEADER) => {}
            (0, other) => return Err(at(&verify, not_a_tape(other))),
            (_, whole) if whole.starts_with(r#"{"head":"#) => {
                heads.push(RunHead::parse(whole).map_err(|err| at(&verify, err))?);
            }
            (_, whole) => {
                if !heads.is_empty() {
                    let why = "a record stands behind the heads".to_owned();
                    return Err(at(&verify, TapeError::Corrupt { seq: 0, why }));
                }
                let line = Line::parse(whole).map_err(|err| at(&verify, err))?;
                let checked = verify.line(&line);
                checked.map_err(|damage| Damage { line: Some(no + 1), ..damage })?;
                take(line).map_err(|err| at(&verify, err))?;
            }
        }
        no += 1;
    }
    ended(verify, heads, no, torn)
}

fn ended(
    verify: Verify,
    heads: Vec<RunHead>,
    lines: u64,
    torn: Option<u64>,
) -> Result<TapeRead, Damage> {
    if lines == 0 && torn.is_none() {
        let err = TapeError::Foreign { why: "the file is empty".to_owned() };
        return Err(verify.damage(None, &err));
    }
    let ends: Vec<(RunId, Head)> = heads.iter().map(|it| (it.head.run, it.head.head())).collect();
    let damage = |why: &str| {
        let err = TapeError::Corrupt { seq: verify.records(), why: why.to_owned() };
        Damage { line: Some(lines), ..verify.damage(None, &err) }
    };
    let twice = ends.iter().enumerate().any(|(at, end)| ends[..at].iter().any(|it| it.0 == end.0));
    let beyond = damage("the heads are not those of its runs");
    let verified = verify.end(&ends).map_err(|damage| Damage { line: Some(lines), ..damage })?;
    let sealed = ends.iter().all(|(run, head)| verified.heads.get(run) == Some(head));
    if twice || (!sealed && torn.is_none()) {
        return Err(beyond);
    }
    let missing = verified.heads.keys().any(|run| !ends.iter().any(|(ended, _)| ended == run));
    let torn = torn.or((missing || ends.is_empty()).then_some(0));
    Ok(TapeRead { verified, heads, torn })
}

fn not_a_tape(text: &str) -> TapeError {
    let shown: String = text.chars().take(80).collect();
    match text.starts_with(r#"{"format":"tooltape.tape/"#) {
        true => TapeError::Foreign { why: format!("`{shown}` is of a later version") },
        false => TapeError::Foreign { why: format!("it begins with `{shown}`") },
    }
}
