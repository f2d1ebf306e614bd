//! Compiling happens elsewhere and within bounds, and what was compiled is believed only if it is
//! ours.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use tooltape_wasm::limits::{CACHE_BYTES_MAX, CACHE_ENTRIES_MAX};
use tooltape_wasm::{Compiler, Component, Helper, Wasm, WasmError, WasmLimits};

use crate::guest::Guest;
use crate::world::{block, helper};

/// An engine with a cache in a folder.
fn caching(folder: &Path) -> Wasm {
    Wasm::new(Compiler::InProcess, WasmLimits::default()).unwrap().caching(folder).unwrap()
}

fn load(wasm: &Wasm, guest: &Guest) -> Component {
    block(wasm.read(guest.name, &guest.wasm())).unwrap()
}

/// The one artifact of a cache.
fn artifact(folder: &Path) -> PathBuf {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut artifacts: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|it| it == "cwasm")).collect();
    assert_eq!(artifacts.len(), 1, "{artifacts:?}");
    artifacts.remove(0)
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// What was compiled once is compiled again after this was done to it, and then is kept again.
#[track_caller]
fn poisoned(what: &str, poison: impl FnOnce(&Path)) {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let (wasm, guest) = (caching(&cache), Guest::new("kept"));
    assert!(!load(&wasm, &guest).is_from_cache());
    assert!(load(&caching(&cache), &guest).is_from_cache(), "{what}");
    poison(&artifact(&cache));
    assert!(!load(&caching(&cache), &guest).is_from_cache(), "{what}");
    assert!(load(&caching(&cache), &guest).is_from_cache(), "{what}");
}

#[test]
fn what_was_compiled_is_not_compiled_again() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("a/b");
    let nobody = Compiler::Helper(Helper::new("/nonexistent/compiler", [""; 0]));
    let guest = Guest::new("kept");
    load(&caching(&cache), &guest);
    let wasm = Wasm::new(nobody, WasmLimits::default()).unwrap().caching(&cache).unwrap();
    assert!(load(&wasm, &guest).is_from_cache());
    let other = block(wasm.read("other", &Guest::new("other").wasm())).map(drop).unwrap_err();
    assert!(matches!(other, WasmError::Compile { .. }), "{other}");
    assert_eq!(fs::metadata(&cache).unwrap().permissions().mode() & 0o777, 0o700);
    let key = fs::metadata(cache.join("key")).unwrap();
    assert_eq!((key.permissions().mode() & 0o777, key.len()), (0o600, 32));
}

#[test]
fn many_may_open_one_cache_at_once() {
    for _ in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let (cache, guest) = (folder.path().join("cache"), Guest::new("kept"));
        let engine = Wasm::new(Compiler::InProcess, WasmLimits::default()).unwrap();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| load(&engine.clone().caching(&cache).unwrap(), &guest));
            }
        });
        assert!(load(&caching(&cache), &guest).is_from_cache());
    }
}

#[test]
fn old_artifacts_make_room_for_new_ones() {
    let folder = tempfile::tempdir().unwrap();
    let (cache, guest) = (folder.path().join("cache"), Guest::new("kept"));
    load(&caching(&cache), &guest);
    for no in 0..2 * CACHE_ENTRIES_MAX {
        fs::write(cache.join(format!("{no}.cwasm")), "older").unwrap();
    }
    load(&caching(&cache), &Guest::new("new"));
    // All of them, and the key.
    assert_eq!(fs::read_dir(&cache).unwrap().count(), CACHE_ENTRIES_MAX + 1);
    assert!(load(&caching(&cache), &Guest::new("new")).is_from_cache());
}

#[test]
fn large_artifacts_make_room_for_new_ones() {
    let folder = tempfile::tempdir().unwrap();
    let (cache, guest) = (folder.path().join("cache"), Guest::new("kept"));
    load(&caching(&cache), &guest);
    // It has all of the bytes, and none on the disk.
    let large = cache.join("large.cwasm");
    fs::File::create(&large).unwrap().set_len(CACHE_BYTES_MAX).unwrap();
    load(&caching(&cache), &Guest::new("new"));
    assert!(!large.exists());
    assert!(load(&caching(&cache), &Guest::new("new")).is_from_cache());
}

#[test]
fn an_artifact_larger_than_any_may_be_is_compiled_again() {
    poisoned("a file of a terabyte", |path| {
        fs::OpenOptions::new().write(true).open(path).unwrap().set_len(1 << 40).unwrap();
    });
}

#[test]
fn a_changed_artifact_is_compiled_again() {
    let flip = |at: fn(usize) -> usize| {
        move |path: &Path| {
            let mut bytes = fs::read(path).unwrap();
            let at = at(bytes.len());
            bytes[at] ^= 1;
            fs::write(path, bytes).unwrap();
        }
    };
    poisoned("the first byte", flip(|_| 0));
    poisoned("the MAC", flip(|_| 20));
    poisoned("the code", flip(|length| length / 2));
    poisoned("the last byte", flip(|length| length - 1));
    poisoned("cut", |path| {
        let bytes = fs::read(path).unwrap();
        fs::write(path, &bytes[..bytes.len() - 1]).unwrap();
    });
    poisoned("longer", |path| {
        let bytes = fs::read(path).unwrap();
        fs::write(path, [&bytes[..], b"x"].concat()).unwrap();
    });
    poisoned("empty", |path| fs::write(path, "").unwrap());
}

#[test]
fn an_artifact_of_another_key_is_compiled_again() {
    let elsewhere = tempfile::tempdir().unwrap();
    load(&caching(&elsewhere.path().join("cache")), &Guest::new("kept"));
    let foreign = artifact(&elsewhere.path().join("cache"));
    poisoned("another key", |path| {
        // It has the very same name, and is an artifact of the very same component.
        assert_eq!(path.file_name(), foreign.file_name());
        fs::copy(&foreign, path).unwrap();
        mode(path, 0o600);
    });
}

#[test]
fn an_artifact_of_another_component_is_compiled_again() {
    poisoned("another component", |path| {
        let folder = path.parent().unwrap();
        let name = fs::read(path).unwrap();
        fs::remove_file(path).unwrap();
        load(&caching(folder), &Guest::new("other"));
        let other = artifact(folder);
        fs::rename(&other, path).unwrap();
        assert_ne!(fs::read(path).unwrap(), name);
    });
}

#[test]
fn an_artifact_that_others_could_change_is_compiled_again() {
    poisoned("open to others", |path| mode(path, 0o666));
    poisoned("open to readers", |path| mode(path, 0o644));
    poisoned("a symbolic link", |path| {
        let moved = path.with_extension("moved");
        fs::rename(path, &moved).unwrap();
        symlink(&moved, path).unwrap();
    });
    poisoned("a hard link", |path| {
        fs::hard_link(path, path.parent().unwrap().parent().unwrap().join("more")).unwrap();
    });
    poisoned("a folder", |path| {
        fs::remove_file(path).unwrap();
        fs::create_dir(path).unwrap();
        // Nobody can replace a folder by a file, so it must be gone before it is kept again.
        fs::remove_dir(path).unwrap();
    });
}

#[test]
fn a_key_that_others_could_read_is_no_key() {
    poisoned("a key open to others", |path| mode(&path.with_file_name("key"), 0o644));
    poisoned("a key of another length", |path| {
        fs::write(path.with_file_name("key"), [7; 31]).unwrap();
    });
    poisoned("another key", |path| fs::write(path.with_file_name("key"), [7; 32]).unwrap());
    poisoned("a link to a key", |path| {
        let (key, known) = (path.with_file_name("key"), path.with_file_name("known"));
        fs::write(&known, [7; 32]).unwrap();
        mode(&known, 0o600);
        fs::remove_file(&key).unwrap();
        symlink(&known, &key).unwrap();
    });
    poisoned("no key", |path| fs::remove_file(path.with_file_name("key")).unwrap());
}

#[test]
fn a_folder_that_is_not_ours_alone_is_no_cache() {
    let folder = tempfile::tempdir().unwrap();
    let wasm = || Wasm::new(Compiler::InProcess, WasmLimits::default()).unwrap();
    let refused = |path: &Path| wasm().caching(path).map(drop).unwrap_err().to_string();
    let open = folder.path().join("open");
    fs::create_dir(&open).unwrap();
    mode(&open, 0o755);
    assert_eq!(
        refused(&open),
        format!(
            "`{}` is no place to keep compiled components: others may use it: its mode is 755, \
             expected 700",
            open.display()
        )
    );
    mode(&open, 0o700);
    let link = folder.path().join("link");
    symlink(&open, &link).unwrap();
    assert!(refused(&link).contains("it cannot be opened"), "{}", refused(&link));
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(refused(&file).contains("it cannot be opened"));
}

#[test]
fn a_process_of_its_own_compiles() {
    let wasm = Wasm::new(helper(), WasmLimits::default()).unwrap();
    let guest = Guest::new("elsewhere");
    assert_eq!(load(&wasm, &guest).hash(), blake3::hash(&guest.wasm()).to_hex().as_str());
    let cut = &guest.wasm()[..100];
    let refused = block(wasm.read("cut", cut)).map(drop).unwrap_err();
    assert!(matches!(refused, WasmError::Invalid { .. }), "{refused}");
}

/// A component that is small, and takes long to compile: one function of many nested loops.
fn bomb(functions: usize, operations: usize) -> Vec<u8> {
    let work = "(local.set 0 (i64.rotl (i64.mul (local.get 0) (local.get 1)) (local.get 0)))\n";
    let function = format!("(func (param i64 i64) {})\n", work.repeat(operations));
    let text = format!("(component (core module {}))", function.repeat(functions));
    wat::parse_str(text).unwrap()
}

#[test]
fn compiling_is_bounded_in_time() {
    let mut limits = WasmLimits::default();
    limits.compile_wall = Duration::from_millis(100);
    let wasm = Wasm::new(helper(), limits).unwrap();
    let refused = block(wasm.read("bomb", &bomb(20, 20_000))).map(drop).unwrap_err();
    let expected = "`bomb` was not compiled: it took longer than the bound of 100 ms";
    assert_eq!(refused.to_string(), expected);
}

#[test]
fn compiling_is_bounded_in_memory() {
    let mut limits = WasmLimits::default();
    limits.compile_memory = 80 << 20;
    let wasm = Wasm::new(helper(), limits).unwrap();
    let refused = block(wasm.read("bomb", &bomb(1, 400_000))).map(drop).unwrap_err();
    assert!(matches!(refused, WasmError::Compile { .. }), "{refused}");
    // A small one still is compiled within that.
    load(&wasm, &Guest::new("small"));
}

#[test]
fn what_is_compiled_is_bounded_in_bytes() {
    let mut limits = WasmLimits::default();
    limits.artifact_bytes = 1_000;
    let wasm = Wasm::new(helper(), limits).unwrap();
    let refused = block(wasm.read("large", &Guest::new("large").wasm())).map(drop).unwrap_err();
    let expected = "`large` was not compiled: what it compiles to exceeds the bound of 1000 bytes";
    assert_eq!(refused.to_string(), expected);
}

#[test]
fn a_compiler_that_is_none_is_an_error() {
    for (program, expected) in [
        ("/nonexistent/compiler", "cannot be started"),
        ("/bin/false", "the compiler ended with the exit code 1"),
    ] {
        let helper = Compiler::Helper(Helper::new(program, [""; 0]));
        let wasm = Wasm::new(helper, WasmLimits::default()).unwrap();
        let refused = block(wasm.read("it", &Guest::new("it").wasm())).map(drop).unwrap_err();
        assert!(refused.to_string().contains(expected), "{refused}");
    }
}
