//! A store in a directory: one file for each artifact, named for its hash.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Arc, PoisonError};
use std::time::SystemTime;

use super::{ARTIFACT_BYTES_MAX, Artifact, ArtifactError, ArtifactId, ArtifactPart};
use crate::canon::{Domain, Hash, Hashing};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};

/// The bytes of a chunk, the least that is read and checked.
const CHUNK_BYTES: usize = 64 << 10;
/// The most artifacts whose chunks are known by their hashes; then all are forgotten.
const KNOWN_MAX: usize = 64;
/// How often another name is tried for a file that is being written.
const NAMES_TRIED_MAX: u32 = 100;

pub(super) struct Directory {
    root: PathBuf,
    bytes_max: u64,
    /// The bytes of all files, once they were counted.
    bytes: Mutex<Option<u64>>,
    /// The chunks of artifacts that were read from end to end, so that a page costs a page.
    known: Mutex<HashMap<ArtifactId, Arc<Chunks>>>,
}

/// What an artifact's file held when it was checked against its name.
struct Chunks {
    total: u64,
    hashes: Vec<Hash>,
}

impl Directory {
    pub(super) fn open(path: &Path, bytes_max: u64) -> Result<Directory, ArtifactError> {
        private(DirBuilder::new().recursive(true)).create(path)?;
        // From here on a link that replaces the path leads nowhere else.
        let root = path.canonicalize()?;
        Ok(Directory { root, bytes_max, bytes: Mutex::default(), known: Mutex::default() })
    }

    /// Where the labels of artifacts are.
    pub(super) fn labels(&self) -> PathBuf {
        self.root.join("labels")
    }

    pub(super) fn put(&self, id: ArtifactId, bytes: &[u8]) -> Result<(), ArtifactError> {
        let folder = self.folder(id);
        match private(&mut DirBuilder::new()).create(&folder) {
            Ok(()) => sync(&self.root)?,
            Err(err) if err.kind() == ErrorKind::AlreadyExists => {}
            Err(err) => return Err(err.into()),
        }
        if !fs::symlink_metadata(&folder)?.is_dir() {
            return Err(corrupt(id, "its folder is not a folder"));
        }
        let _shared = self.lock()?.shared()?;
        match self.check(id) {
            Ok(found) => return Ok(self.renew(id, found.total)?),
            // What is damaged is put right.
            Err(ArtifactError::Unknown { .. } | ArtifactError::Corrupt { .. }) => {}
            Err(err) => return Err(err),
        }
        self.reserve(bytes.len() as u64)?;
        let placed = self.place(id, &folder, bytes);
        if placed.is_err() {
            self.recount();
        }
        Ok(placed?)
    }

    fn place(&self, id: ArtifactId, folder: &Path, bytes: &[u8]) -> io::Result<()> {
        let (mut file, name) = new_file(folder)?;
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        let placed = written.and_then(|()| fs::rename(&name, self.path(id)));
        if let Err(err) = placed {
            // The first failure is the one to report.
            let _ = fs::remove_file(&name);
            return Err(err);
        }
        sync(folder)
    }

    /// Makes what is there young again: setting a length that a file has already does.
    fn renew(&self, id: ArtifactId, bytes: u64) -> io::Result<()> {
        OpenOptions::new().write(true).open(self.path(id))?.set_len(bytes)
    }

    /// Keeps everybody else from putting something here, in whatever process.
    pub(super) fn alone(&self) -> Result<Locked, ArtifactError> {
        Ok(self.lock()?.alone()?)
    }

    /// The folder itself is what is locked, where the system can; elsewhere, a file in it.
    fn lock(&self) -> io::Result<Locked> {
        if cfg!(unix) {
            return File::open(&self.root).map(Locked);
        }
        let lock = self.root.join(".lock");
        OpenOptions::new().write(true).create(true).truncate(false).open(lock).map(Locked)
    }

    /// Every artifact that was last put before this moment.
    pub(super) fn older(&self, before: SystemTime) -> Result<Vec<Artifact>, ArtifactError> {
        let mut old = Vec::new();
        for folder in fs::read_dir(&self.root)? {
            let folder = folder?;
            if !folder.file_type()?.is_dir() {
                continue;
            }
            for file in unless_gone(fs::read_dir(folder.path()))?.into_iter().flatten() {
                let file = file?;
                let Some(found) = unless_gone(file.metadata())? else { continue };
                let name = file.file_name();
                let Some(Ok(hash)) = name.to_str().map(str::parse) else { continue };
                if found.is_file() && found.modified()? < before {
                    old.push(Artifact { id: ArtifactId(hash), bytes: found.len() });
                }
            }
        }
        Ok(old)
    }

    pub(super) fn remove(&self, id: ArtifactId) -> io::Result<()> {
        self.forget(id);
        self.recount();
        unless_gone(fs::remove_file(self.path(id))).map(drop)
    }

    /// Takes room for more bytes, if there is any.
    fn reserve(&self, more: u64) -> Result<(), ArtifactError> {
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |bytes: u64| bytes.saturating_add(more) <= self.bytes_max;
        let counted = match *bytes {
            Some(counted) if fits(counted) => counted,
            // Before it is full, what others removed or replaced is noticed.
            Some(_) | None => self.count()?,
        };
        *bytes = Some(counted);
        if !fits(counted) {
            return Err(ArtifactError::Full { limit: self.bytes_max, unit: "bytes" });
        }
        *bytes = Some(counted + more);
        Ok(())
    }

    /// The next who needs room counts the files again.
    fn recount(&self) {
        *self.bytes.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// The bytes of all files, those that are being written included.
    fn count(&self) -> io::Result<u64> {
        let mut bytes = 0_u64;
        for folder in fs::read_dir(&self.root)? {
            let folder = folder?;
            if !folder.file_type()?.is_dir() {
                continue;
            }
            for file in unless_gone(fs::read_dir(folder.path()))?.into_iter().flatten() {
                let file = unless_gone(file?.metadata())?;
                bytes = bytes.saturating_add(file.map_or(0, |file| file.len()));
            }
        }
        Ok(bytes)
    }

    pub(super) fn get(&self, id: ArtifactId) -> Result<Vec<u8>, ArtifactError> {
        let (file, bytes) = self.file(id)?;
        let mut whole = Vec::with_capacity(usize::try_from(bytes).unwrap_or(0));
        file.take(ARTIFACT_BYTES_MAX + 1).read_to_end(&mut whole)?;
        match ArtifactId(Hash::of(Domain::Content, &whole)) == id {
            true => Ok(whole),
            false => Err(corrupt(id, "its bytes have another hash")),
        }
    }

    pub(super) fn read(
        &self,
        id: ArtifactId,
        offset: u64,
        length: u64,
    ) -> Result<ArtifactPart, ArtifactError> {
        let chunks = self.chunks(id)?;
        let total = chunks.total;
        let (start, end) = (offset.min(total), offset.saturating_add(length).min(total));
        let (mut file, _) = self.file(id)?;
        let first = start / CHUNK_BYTES as u64;
        file.seek(SeekFrom::Start(first * CHUNK_BYTES as u64))?;
        let mut bytes = Vec::new();
        let mut at = usize::try_from(first).unwrap_or(usize::MAX);
        while (at as u64) * (CHUNK_BYTES as u64) < end {
            let chunk = read_chunk(&mut file)?;
            if chunks.hashes.get(at) != Some(&Hash::of(Domain::Plain, &chunk)) {
                self.forget(id);
                return Err(corrupt(id, "its file changed"));
            }
            bytes.extend(chunk);
            at += 1;
        }
        let skipped = usize::try_from(start % CHUNK_BYTES as u64).expect("less than a chunk");
        bytes.truncate(skipped + usize::try_from(end - start).expect("it was read into memory"));
        bytes.drain(..skipped.min(bytes.len()));
        Ok(ArtifactPart { bytes, total })
    }

    /// The chunks of an artifact, which is read and checked the first time.
    fn chunks(&self, id: ArtifactId) -> Result<Arc<Chunks>, ArtifactError> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned();
        if let Some(chunks) = known {
            return Ok(chunks);
        }
        let chunks = Arc::new(self.check(id)?);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(id, chunks.clone());
        Ok(chunks)
    }

    fn forget(&self, id: ArtifactId) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }

    /// Reads an artifact from end to end, and checks that it is what its name says.
    fn check(&self, id: ArtifactId) -> Result<Chunks, ArtifactError> {
        let (mut file, _) = self.file(id)?;
        let (mut hashing, mut chunks) =
            (Hashing::new(Domain::Content), Chunks { total: 0, hashes: Vec::new() });
        loop {
            let chunk = read_chunk(&mut file)?;
            hashing.update(&chunk);
            chunks.total += chunk.len() as u64;
            if chunks.total > ARTIFACT_BYTES_MAX {
                return Err(corrupt(id, "its file has more bytes than any artifact"));
            }
            if chunk.is_empty() {
                break;
            }
            chunks.hashes.push(Hash::of(Domain::Plain, &chunk));
        }
        match ArtifactId(hashing.end()) == id {
            true => Ok(chunks),
            false => Err(corrupt(id, "its bytes have another hash")),
        }
    }

    /// The open file of an artifact and its length. A link, or anything else that is not a plain
    /// file, is not it.
    fn file(&self, id: ArtifactId) -> Result<(File, u64), ArtifactError> {
        let path = self.path(id);
        let named = match fs::symlink_metadata(&path) {
            Ok(named) => named,
            Err(err) if err.kind() == ErrorKind::NotFound => {
                return Err(ArtifactError::Unknown { id });
            }
            Err(err) => return Err(err.into()),
        };
        if !named.is_file() || !fs::symlink_metadata(self.folder(id))?.is_dir() {
            return Err(corrupt(id, "it is not a plain file"));
        }
        let file = File::open(&path)?;
        let opened = file.metadata()?;
        if !is_same(&named, &opened) {
            return Err(corrupt(id, "its file was exchanged while it was opened"));
        }
        if opened.len() > ARTIFACT_BYTES_MAX {
            return Err(corrupt(id, "its file has more bytes than any artifact"));
        }
        Ok((file, opened.len()))
    }

    /// Folders hold a share each: one of them with a million files is slow everywhere.
    fn folder(&self, id: ArtifactId) -> PathBuf {
        self.root.join(&id.0.to_string()[..2])
    }

    fn path(&self, id: ArtifactId) -> PathBuf {
        self.folder(id).join(id.0.to_string())
    }
}

/// What is locked; what is taken is given back when it is dropped, even by a crash.
pub(super) struct Locked(File);

impl Locked {
    fn shared(self) -> io::Result<Locked> {
        self.0.lock_shared().map(|()| self)
    }

    fn alone(self) -> io::Result<Locked> {
        self.0.lock().map(|()| self)
    }
}

/// What was found, unless somebody removed it meanwhile.
fn unless_gone<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Err(err) if err.kind() == ErrorKind::NotFound => Ok(None),
        found => found.map(Some),
    }
}

fn corrupt(id: ArtifactId, why: &str) -> ArtifactError {
    ArtifactError::Corrupt { id, why: why.to_owned() }
}

/// The next chunk of a file: a whole one, unless the file ends in it.
fn read_chunk(file: &mut File) -> io::Result<Vec<u8>> {
    let mut chunk = Vec::with_capacity(CHUNK_BYTES);
    file.take(CHUNK_BYTES as u64).read_to_end(&mut chunk)?;
    Ok(chunk)
}

/// A new file that only its owner can read, under a name that is no artifact's.
fn new_file(folder: &Path) -> io::Result<(File, PathBuf)> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut options = OpenOptions::new();
    // Never one that is there already, be it a file or a link.
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut tried = 0;
    loop {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = folder.join(format!(".{}-{count}", process::id()));
        match options.open(&name) {
            Ok(file) => return Ok((file, name)),
            // Left behind by a process that ended while it wrote.
            Err(err) if err.kind() == ErrorKind::AlreadyExists && tried < NAMES_TRIED_MAX => {
                tried += 1;
            }
            Err(err) => return Err(err),
        }
    }
}

/// Folders that only their owner can enter, where the system knows owners.
fn private(builder: &mut DirBuilder) -> &mut DirBuilder {
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(builder, 0o700);
    builder
}

/// Makes what was done in a folder durable, where the system can.
fn sync(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// Whether two looks saw the same file.
#[cfg(unix)]
fn is_same(named: &Metadata, opened: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (named.dev(), named.ino()) == (opened.dev(), opened.ino())
}

/// Whether two looks saw the same file, as far as can be told.
#[cfg(not(unix))]
fn is_same(named: &Metadata, opened: &Metadata) -> bool {
    opened.is_file() && named.len() == opened.len()
}
