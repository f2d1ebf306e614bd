//! Heads that were kept elsewhere, and must be met on the way through a tape.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use tooltape::{Hash, RunHead, RunId, TapeError};

use crate::escape;
use crate::exit::Exit;
use crate::report::{Problem, Result};

/// The most bytes of a file of heads or of a key.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// What must be met.
pub(super) struct Heads {
    /// By run: how many records, and the hash of the last of them.
    open: BTreeMap<(RunId, u64), Hash>,
    met: usize,
    /// Who must have signed.
    key: Option<String>,
    is_signed: bool,
}

impl Heads {
    /// Reads a file of heads, and checks who signed them.
    pub(super) fn read(path: Option<&Path>, key: Option<&str>) -> Result<Heads> {
        let key = key.map(public).transpose()?;
        let mut heads = Heads { open: BTreeMap::new(), met: 0, key, is_signed: false };
        let Some(path) = path else { return Ok(heads) };
        let unusable = |why: String| {
            let shown = escape::line(&path.display().to_string()).into_owned();
            Problem::new(Exit::Failed, "head.unusable", format!("`{shown}`: {why}"))
                .hint("`tooltape export RUN --head FILE` writes a head")
        };
        let text = text(path).map_err(unusable)?;
        let lines = text.lines().filter(|line| line.starts_with(r#"{"head":"#));
        let found: Vec<RunHead> = lines
            .map(|line| RunHead::parse(line).map_err(|err| unusable(err.to_string())))
            .collect::<Result<_>>()?;
        if found.is_empty() {
            return Err(unusable("it holds no head".to_owned()));
        }
        heads.check_signed(&found)?;
        let ends = found.iter().map(|head| ((head.head.run, head.head.len), head.head.hash));
        heads.open = ends.collect();
        Ok(heads)
    }

    /// So many records of a run lead to this hash.
    pub(super) fn meet(
        &mut self,
        run: RunId,
        len: u64,
        hash: Hash,
    ) -> std::result::Result<(), String> {
        match self.open.remove(&(run, len)) {
            None => Ok(()),
            Some(expected) if expected == hash => {
                self.met += 1;
                Ok(())
            }
            Some(expected) => {
                Err(format!("its first {len} records lead to `{hash}`, its head says `{expected}`"))
            }
        }
    }

    /// The heads that were not met.
    pub(super) fn unmet(&self) -> impl Iterator<Item = (RunId, u64)> {
        self.open.keys().copied()
    }

    /// How many heads were met, and who signed them.
    pub(super) fn told(self) -> (usize, Option<String>) {
        let signed_by = self.key.filter(|_| self.is_signed);
        (self.met, signed_by)
    }

    /// The same, with those at the end of an exported tape.
    pub(super) fn with_signed(mut self, heads: &[RunHead]) -> Result<(usize, Option<String>)> {
        if !self.is_signed {
            self.check_signed(heads)?;
        }
        Ok(self.told())
    }

    fn check_signed(&mut self, heads: &[RunHead]) -> Result {
        let Some(key) = &self.key else { return Ok(()) };
        for head in heads {
            head.signed_by(key).map_err(|err| {
                // That it is no tape is not the point.
                let why = match err {
                    TapeError::Foreign { why } => why,
                    err => err.to_string(),
                };
                let message = format!("run {}: {why}", head.head.run);
                Problem::new(Exit::Differs, "head.unsigned", message)
                    .hint("`tooltape export RUN --head FILE --sign KEYFILE` signs a head")
                    .run(head.head.run)
            })?;
        }
        self.is_signed = !heads.is_empty();
        Ok(())
    }
}

/// A public key, or the text of the file that holds one.
fn public(text: &str) -> Result<String> {
    let is_key = |text: &str| text.len() == 64 && text.bytes().all(|it| it.is_ascii_hexdigit());
    let found = match is_key(text) {
        true => text.to_owned(),
        false => self::text(Path::new(text)).unwrap_or_default().trim().to_owned(),
    };
    match is_key(&found) {
        true => Ok(found.to_ascii_lowercase()),
        false => {
            let message = format!("`{}` is no public key", escape::line(text));
            Err(Problem::new(Exit::Usage, "key.invalid", message)
                .hint("give 64 hexadecimal digits, or a file that holds them"))
        }
    }
}

fn text(path: &Path) -> std::result::Result<String, String> {
    let len = path.metadata().map_err(|err| err.to_string())?.len();
    if len > FILE_BYTES_MAX {
        return Err(format!("it has {len} bytes, expected at most {FILE_BYTES_MAX}"));
    }
    fs::read_to_string(path).map_err(|err| err.to_string())
}
