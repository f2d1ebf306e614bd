//! A file system for SQLite that does what the usual one does, and tells a `Disk`.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Once, PoisonError};

use rusqlite::ffi;

use crate::disk::{Disk, Failed, Op};

/// Its name.
pub const NAME: &str = "tooltape-faults";

static DISKS: Mutex<BTreeMap<PathBuf, Arc<Disk>>> = Mutex::new(BTreeMap::new());
static REGISTERED: Once = Once::new();
static USUAL: Mutex<Usual> = Mutex::new(Usual(std::ptr::null_mut()));

/// The usual file system.
struct Usual(*mut ffi::sqlite3_vfs);

// SAFETY: SQLite's own file system lives as long as the process, and may be used by any thread.
unsafe impl Send for Usual {}

/// Writes down what is asked of the files in a folder.
pub fn watch(folder: &Path) -> Arc<Disk> {
    REGISTERED.call_once(register);
    let disk = Arc::new(Disk::default());
    disks().insert(folder.to_owned(), disk.clone());
    disk
}

fn disks() -> std::sync::MutexGuard<'static, BTreeMap<PathBuf, Arc<Disk>>> {
    DISKS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn usual() -> *mut ffi::sqlite3_vfs {
    USUAL.lock().unwrap_or_else(PoisonError::into_inner).0
}

fn register() {
    // SAFETY: null asks for the default, which SQLite has on every system we build for.
    let usual = unsafe { ffi::sqlite3_vfs_find(std::ptr::null()) };
    USUAL.lock().unwrap_or_else(PoisonError::into_inner).0 = usual;
    // SAFETY: the default is a valid struct that never changes; its methods take any struct that
    // has the same `pAppData`.
    let mut ours = unsafe { std::ptr::read(usual) };
    let name = Box::leak(Box::new(c"tooltape-faults"));
    ours.zName = name.as_ptr();
    ours.pNext = std::ptr::null_mut();
    ours.szOsFile += c_int::try_from(size_of::<File>()).expect("a file is small");
    ours.xOpen = Some(open);
    ours.xDelete = Some(delete);
    let ours = Box::leak(Box::new(ours));
    // SAFETY: the struct and its name live for ever.
    let done = unsafe { ffi::sqlite3_vfs_register(ours, 0) };
    assert_eq!(done, ffi::SQLITE_OK, "SQLite takes the file system");
}

/// What SQLite holds as a file: ours, with the usual one right behind it.
#[repr(C)]
struct File {
    base: ffi::sqlite3_file,
    real: *mut ffi::sqlite3_file,
    told: *mut Told,
}

/// Whom to tell, where the file is one that is watched.
struct Told {
    disk: Arc<Disk>,
    name: String,
}

/// The disk of a path, and the name of the file on it.
fn told(path: *const c_char) -> Option<Told> {
    if path.is_null() {
        return None;
    }
    // SAFETY: SQLite's paths end with a zero.
    let path = PathBuf::from(unsafe { CStr::from_ptr(path) }.to_str().ok()?);
    let disk = disks().get(path.parent()?)?.clone();
    Some(Told { disk, name: path.file_name()?.to_str()?.to_owned() })
}

unsafe extern "C" fn open(
    _: *mut ffi::sqlite3_vfs,
    path: *const c_char,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    let file = file.cast::<File>();
    // SAFETY: SQLite gives us `szOsFile` bytes: our part, and behind it that of the usual one.
    let real = unsafe { file.add(1) }.cast::<ffi::sqlite3_file>();
    // SAFETY: as above; a file without methods is not closed, whatever happens here.
    unsafe {
        (*file).base.pMethods = std::ptr::null();
        (*real).pMethods = std::ptr::null();
    }
    let told = told(path);
    let usual = usual();
    // SAFETY: the usual file system opens into its own part, with SQLite's own arguments.
    let work =
        || unsafe { ((*usual).xOpen.expect("it opens"))(usual, path, real, flags, out_flags) };
    // SAFETY: `told` has found that the path is a text.
    let is_new = told.is_some()
        && !unsafe { CStr::from_ptr(path) }.to_str().is_ok_and(|path| Path::new(path).exists());
    let code = match &told {
        Some(told) if is_new => {
            answer(told.disk.perform(Op::Create(told.name.clone()), work), ffi::SQLITE_CANTOPEN)
        }
        Some(_) | None => work(),
    };
    if code == ffi::SQLITE_OK {
        // SAFETY: the file is open, and from here on SQLite closes it by our methods.
        unsafe {
            (*file).real = real;
            (*file).told = told.map_or(std::ptr::null_mut(), |told| Box::into_raw(Box::new(told)));
            (*file).base.pMethods = &METHODS;
        }
    }
    code
}

unsafe extern "C" fn delete(
    _: *mut ffi::sqlite3_vfs,
    path: *const c_char,
    sync_folder: c_int,
) -> c_int {
    let usual = usual();
    // SAFETY: SQLite's own arguments.
    let work = || unsafe { ((*usual).xDelete.expect("it deletes"))(usual, path, sync_folder) };
    match told(path) {
        Some(Told { disk, name }) => {
            let op = Op::Delete { file: name, is_synced: sync_folder != 0 };
            answer(disk.perform(op, work), ffi::SQLITE_IOERR_DELETE)
        }
        None => work(),
    }
}

/// What SQLite is told.
fn answer(done: Result<c_int, Failed>, failed: c_int) -> c_int {
    match done {
        Ok(code) => code,
        Err(Failed::Io) => failed,
        Err(Failed::Full) => ffi::SQLITE_FULL,
    }
}

/// Tells the disk, if the file is watched.
unsafe fn perform(
    file: *mut ffi::sqlite3_file,
    op: impl FnOnce(String) -> Op,
    failed: c_int,
    work: impl FnOnce() -> c_int,
) -> c_int {
    // SAFETY: `open` made this file, and nobody has closed it.
    match unsafe { (*file.cast::<File>()).told.as_ref() } {
        Some(told) => answer(told.disk.perform(op(told.name.clone()), work), failed),
        None => work(),
    }
}

/// Calls a method of the usual file.
macro_rules! real {
    ($file:expr, $method:ident $(, $arg:expr)*) => {{
        // SAFETY: `open` made this file, whose usual part is open, with SQLite's own arguments.
        unsafe {
            let real = (*$file.cast::<File>()).real;
            ((*(*real).pMethods).$method.expect("the usual file has it"))(real $(, $arg)*)
        }
    }};
}

/// A method that only passes on.
macro_rules! pass {
    ($name:ident, $method:ident, ($($arg:ident: $type:ty),*) $(-> $out:ty)?) => {
        unsafe extern "C" fn $name(file: *mut ffi::sqlite3_file $(, $arg: $type)*) $(-> $out)? {
            real!(file, $method $(, $arg)*)
        }
    };
}

pass!(read, xRead, (to: *mut c_void, bytes: c_int, at: ffi::sqlite3_int64) -> c_int);
pass!(size, xFileSize, (size: *mut ffi::sqlite3_int64) -> c_int);
pass!(lock, xLock, (level: c_int) -> c_int);
pass!(unlock, xUnlock, (level: c_int) -> c_int);
pass!(is_reserved, xCheckReservedLock, (found: *mut c_int) -> c_int);
pass!(control, xFileControl, (op: c_int, arg: *mut c_void) -> c_int);
pass!(sector_size, xSectorSize, () -> c_int);
pass!(shm_map, xShmMap, (page: c_int, bytes: c_int, extend: c_int, to: *mut *mut c_void) -> c_int);
pass!(shm_lock, xShmLock, (offset: c_int, n: c_int, flags: c_int) -> c_int);
pass!(shm_barrier, xShmBarrier, ());
pass!(shm_unmap, xShmUnmap, (delete: c_int) -> c_int);

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    let code = real!(file, xClose);
    // SAFETY: `open` made it from a box, and SQLite closes a file once.
    unsafe {
        let told = std::mem::replace(&mut (*file.cast::<File>()).told, std::ptr::null_mut());
        if !told.is_null() {
            drop(Box::from_raw(told));
        }
    }
    code
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    from: *const c_void,
    len: c_int,
    at: ffi::sqlite3_int64,
) -> c_int {
    let size = usize::try_from(len).expect("SQLite writes some bytes");
    // SAFETY: SQLite gives as many bytes as it says.
    let bytes = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), size) }.to_vec();
    let place = usize::try_from(at).expect("SQLite writes at some place");
    let op = |file| Op::Write { file, at: place, bytes };
    let work = || real!(file, xWrite, from, len, at);
    // SAFETY: SQLite's own file.
    unsafe { perform(file, op, ffi::SQLITE_IOERR_WRITE, work) }
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, size: ffi::sqlite3_int64) -> c_int {
    let len = usize::try_from(size).expect("SQLite cuts at some place");
    let op = |file| Op::Truncate { file, len };
    let work = || real!(file, xTruncate, size);
    // SAFETY: SQLite's own file.
    unsafe { perform(file, op, ffi::SQLITE_IOERR_TRUNCATE, work) }
}

unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, flags: c_int) -> c_int {
    let work = || real!(file, xSync, flags);
    // SAFETY: SQLite's own file.
    unsafe { perform(file, Op::Sync, ffi::SQLITE_IOERR_FSYNC, work) }
}

unsafe extern "C" fn characteristics(_: *mut ffi::sqlite3_file) -> c_int {
    // What lies beside a write is safe; nothing else is promised.
    ffi::SQLITE_IOCAP_POWERSAFE_OVERWRITE
}

static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(is_reserved),
    xFileControl: Some(control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};
