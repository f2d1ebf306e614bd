//! Artifacts: what is put aside, who may read it, and what a damaged store does.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use tempfile::TempDir;
use tooltape::limits::{ARTIFACT_BYTES_MAX, ARTIFACT_READ_BYTES_MAX, PAGE_BYTES_MAX};
use tooltape::{
    ArtifactError, ArtifactId, Artifacts, Domain, Hash, Proposal, Run, Spawn, ToolError, builtin,
    input, tool, tools,
};

use crate::declaring::{over, reply};

/// Both stores, each with the folder that it needs.
fn stores() -> [(Artifacts, Option<TempDir>); 2] {
    let folder = TempDir::new().unwrap();
    let directory = Artifacts::in_dir(folder.path().join("a/b")).unwrap();
    [(Artifacts::memory(), None), (directory, Some(folder))]
}

/// A store in a folder, and the folder.
fn directory() -> (Artifacts, TempDir) {
    let folder = TempDir::new().unwrap();
    (Artifacts::in_dir(folder.path()).unwrap(), folder)
}

fn id_of(bytes: &[u8]) -> ArtifactId {
    ArtifactId(Hash::of(Domain::Content, bytes))
}

fn path_of(folder: &TempDir, id: ArtifactId) -> PathBuf {
    let hash = id.0.to_string();
    folder.path().join(&hash[..2]).join(hash)
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[tokio::test]
async fn what_is_put_is_read_back_by_the_hash_of_its_bytes() {
    for (artifacts, _folder) in stores() {
        for bytes in [b"".to_vec(), b"hello".to_vec(), vec![0xFF; 200_000]] {
            let artifact = artifacts.put(bytes.clone()).await.unwrap();
            assert_eq!((artifact.id, artifact.bytes), (id_of(&bytes), bytes.len() as u64));
            assert_eq!(*artifacts.get(artifact.id).await.unwrap(), bytes);
        }
        let missing = artifacts.get(id_of(b"never")).await.unwrap_err();
        assert!(matches!(missing, ArtifactError::Unknown { .. }), "{missing}");
    }
}

#[tokio::test]
async fn a_part_is_what_the_bytes_are_there_and_no_more_than_the_limit() {
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
    let total = bytes.len() as u64;
    for (artifacts, _folder) in stores() {
        let id = artifacts.put(bytes.clone()).await.unwrap().id;
        let edges = [0, 1, 65_535, 65_536, 65_537, 131_072, total - 1, total, total + 9, u64::MAX];
        for offset in edges {
            for length in [0, 1, 65_536, 100_000, u64::MAX] {
                let part = artifacts.read(id, offset, length).await.unwrap();
                let start = offset.min(total) as usize;
                let length = length.min(ARTIFACT_READ_BYTES_MAX);
                let end = offset.saturating_add(length).min(total) as usize;
                assert!(part.bytes == bytes[start..end], "{offset} and {length} on");
                assert_eq!(part.total, total);
            }
        }
    }
}

#[tokio::test]
async fn the_same_bytes_are_kept_once() {
    let (artifacts, folder) = directory();
    let puts = (0..8).map(|_| {
        let artifacts = artifacts.clone();
        tokio::spawn(async move { artifacts.put("the same").await.unwrap().id })
    });
    for put in puts.collect::<Vec<_>>() {
        assert_eq!(put.await.unwrap(), id_of(b"the same"));
    }
    assert_eq!(files(folder.path()).len(), 1, "and nothing half-written is left");
    let memory = Artifacts::memory_of(10);
    memory.put("12345678").await.unwrap();
    memory.put("12345678").await.unwrap();
    memory.put("12").await.unwrap();
    let full = memory.put("3").await.unwrap_err();
    assert_eq!(full.to_string(), "no more artifacts are kept: the limit is 10 bytes");
    assert_eq!(*memory.get(id_of(b"12345678")).await.unwrap(), b"12345678");
}

#[tokio::test]
async fn a_directory_keeps_so_many_bytes_and_what_is_removed_makes_room() {
    let folder = TempDir::new().unwrap();
    let store = || Artifacts::in_dir_of(folder.path(), 10).unwrap();
    let artifacts = store();
    artifacts.put("12345678").await.unwrap();
    artifacts.put("12345678").await.unwrap();
    // Another store over the same files counts what is there.
    for artifacts in [&artifacts, &store()] {
        let full = artifacts.put("123").await.unwrap_err();
        assert_eq!(full.to_string(), "no more artifacts are kept: the limit is 10 bytes");
    }
    assert_eq!(files(folder.path()).len(), 1, "what has no room leaves nothing behind");
    artifacts.put("12").await.unwrap();
    assert!(artifacts.put("3").await.is_err());
    artifacts.put("12345678").await.unwrap();
    fs::remove_file(path_of(&folder, id_of(b"12345678"))).unwrap();
    artifacts.put("123").await.unwrap();
}

#[cfg(unix)]
#[tokio::test]
async fn a_file_is_named_for_its_hash_and_only_its_owners() {
    use std::os::unix::fs::PermissionsExt;
    let (artifacts, folder) = directory();
    let id = artifacts.put("private").await.unwrap().id;
    let path = path_of(&folder, id);
    assert_eq!(files(folder.path()), std::slice::from_ref(&path));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
}

#[tokio::test]
async fn a_damaged_file_is_never_read_and_the_next_put_puts_it_right() {
    let (artifacts, folder) = directory();
    let bytes = vec![b'a'; 300_000];
    let id = artifacts.put(bytes.clone()).await.unwrap().id;
    let path = path_of(&folder, id);
    artifacts.read(id, 0, 10).await.unwrap();
    // Damage behind a page that was read before, within it, and in the length.
    for damage in [
        |bytes: &mut Vec<u8>| bytes[200_000] = b'b',
        |bytes: &mut Vec<u8>| bytes[3] = b'b',
        |bytes: &mut Vec<u8>| bytes.truncate(100),
        |bytes: &mut Vec<u8>| bytes.clear(),
        |bytes: &mut Vec<u8>| bytes.push(b'a'),
    ] {
        let mut damaged = bytes.clone();
        damage(&mut damaged);
        fs::write(&path, &damaged).unwrap();
        let whole = artifacts.get(id).await.unwrap_err();
        assert!(matches!(whole, ArtifactError::Corrupt { .. }), "{whole}");
        for offset in [0, 199_990, 299_999] {
            if let Ok(part) = artifacts.read(id, offset, 100_000).await {
                let (start, end) = (offset as usize, (offset as usize + 100_000).min(300_000));
                assert!(part.bytes == bytes[start..end], "a page is right or refused");
            }
        }
        assert_eq!(artifacts.put(bytes.clone()).await.unwrap().id, id);
        assert_eq!(*artifacts.get(id).await.unwrap(), bytes);
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_in_the_store_is_not_followed() {
    let (artifacts, folder) = directory();
    let elsewhere = TempDir::new().unwrap();
    let id = id_of(b"outside");
    let path = path_of(&folder, id);
    fs::write(elsewhere.path().join("file"), "outside").unwrap();
    fs::create_dir(path.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(elsewhere.path().join("file"), &path).unwrap();
    let linked = artifacts.get(id).await.unwrap_err();
    assert!(matches!(linked, ArtifactError::Corrupt { .. }), "{linked}");
    // Putting it replaces the link, and leaves what it led to alone.
    artifacts.put("outside").await.unwrap();
    assert!(fs::symlink_metadata(&path).unwrap().is_file());
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), path.parent().unwrap()).unwrap();
    let linked = artifacts.put("outside").await.unwrap_err();
    assert!(matches!(linked, ArtifactError::Corrupt { .. }), "{linked}");
    assert_eq!(files(elsewhere.path()).len(), 1, "nothing was written there");
}

#[tokio::test]
async fn an_artifact_over_the_limit_is_refused_before_it_is_read() {
    let bytes = vec![0; ARTIFACT_BYTES_MAX as usize + 1];
    let refused = Artifacts::memory_of(u64::MAX).put(bytes).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "an artifact of 268435457 bytes is too large, expected at most 268435456"
    );
}

#[input]
struct Text {
    text: String,
}

/// Puts a text aside.
#[tool(Read)]
async fn keep(args: Text, artifacts: Artifacts) -> Result<String, ToolError> {
    Ok(artifacts.put(args.text).await?.id.to_string())
}

fn keeping(artifacts: &Artifacts) -> Run {
    let tools = tools![keep].into_iter().chain([builtin::read_artifact()]);
    over(tools).grant(artifacts.clone())
}

/// What `read_artifact` answers.
async fn page(run: &Run, arguments: serde_json::Value) -> tooltape::Reply {
    reply(run, "read_artifact", &arguments.to_string()).await
}

#[tokio::test]
async fn a_run_reads_what_it_put_aside_and_nothing_that_others_did() {
    for (artifacts, _folder) in stores() {
        let (one, other) = (keeping(&artifacts), keeping(&artifacts));
        let id = reply(&one, "keep", r#"{"text":"mine"}"#).await;
        let id: String = id.value.as_ref().unwrap().parse().unwrap();
        let mine = page(&one, json!({ "artifact": id })).await;
        assert_eq!(mine.text(), "mine\nbytes 0 to 4 of 4; the end");
        // The other run was told the handle, and still learns nothing, not even that it exists.
        let theirs = page(&other, json!({ "artifact": id })).await;
        assert_eq!(theirs.text(), format!("failed: there is no `{id}` in this run"));
        let nobodys = id_of(b"nobody's").to_string();
        let nothing = page(&other, json!({ "artifact": nobodys })).await;
        assert_eq!(nothing.text(), format!("failed: there is no `{nobodys}` in this run"));
        // The host sees all of it, and may show it.
        assert_eq!(*artifacts.get(id.parse().unwrap()).await.unwrap(), b"mine");
        other.artifacts().admit(id.parse().unwrap()).unwrap();
        assert!(!page(&other, json!({ "artifact": id })).await.is_error);
    }
}

/// Lets a child read an artifact, and put one aside itself.
#[tool(Read)]
async fn delegate(args: Text, spawn: Spawn) -> Result<Vec<String>, ToolError> {
    let child = spawn.child()?.start();
    let read = json!({ "artifact": args.text }).to_string();
    let batch = [("keep", r#"{"text":"the child's"}"#.to_owned()), ("read_artifact", read)];
    let batch = batch.map(|(name, arguments)| Proposal::new(name, name, arguments));
    let replies = child.batch(batch.into()).await.map_err(ToolError::from)?;
    Ok(replies.iter().map(tooltape::Reply::text).collect())
}

#[tokio::test]
async fn a_run_and_its_children_see_what_each_of_them_put_aside() {
    let tools = tools![keep, delegate].into_iter().chain([builtin::read_artifact()]);
    let run = over(tools);
    let mine = run.artifacts().put("the parent's").await.unwrap().id;
    let arguments = json!({ "text": mine }).to_string();
    let seen = reply(&run, "delegate", &arguments).await;
    let seen: Vec<String> = seen.value.as_ref().unwrap().parse().unwrap();
    assert_eq!(seen[1], "the parent's\nbytes 0 to 12 of 12; the end");
    let theirs = page(&run, json!({ "artifact": seen[0] })).await;
    assert_eq!(theirs.text(), "the child's\nbytes 0 to 11 of 11; the end");
}

#[tokio::test]
async fn pages_of_a_text_are_whole_characters_and_together_the_text() {
    let run = keeping(&Artifacts::memory());
    let text: String = (0..9_000).map(|at| ["a", "é", "€", "𝄞", "\n"][at % 5]).collect();
    let id = run.artifacts().put(text.clone()).await.unwrap().id.to_string();
    for length in [4, 5, 1_000, 99_999] {
        let (mut read, mut offset) = (String::new(), Some(0));
        while let Some(at) = offset {
            let wanted = json!({ "artifact": id, "offset": at, "length": length });
            let page = page(&run, wanted).await.value.as_ref().unwrap().to_value();
            assert!(page["bytes"].as_u64().unwrap() <= PAGE_BYTES_MAX.min(length));
            read.push_str(page["content"].as_str().unwrap());
            offset = page["next_offset"].as_u64();
            // The last pages are like the others, and there would be thousands of them.
            if length < 10 && read.len() > 2_000 {
                break;
            }
        }
        assert!(text.starts_with(&read) && (length < 10 || read == text), "by {length} bytes");
    }
    // A page that is asked to begin inside of a character begins with the next one.
    let inside = page(&run, json!({ "artifact": id, "offset": 7, "length": 4 })).await;
    let inside = inside.value.as_ref().unwrap().to_value();
    assert_eq!((&inside["offset"], &inside["content"]), (&json!(10), &json!("\n")));
}

#[tokio::test]
async fn what_cannot_be_paged_is_refused_with_the_way_out() {
    let run = keeping(&Artifacts::memory());
    let id = run.artifacts().put([0, 159, 146, 150]).await.unwrap().id.to_string();
    let binary = page(&run, json!({ "artifact": id })).await;
    assert_eq!(
        binary.text(),
        "failed: these bytes are not text, expected `\"encoding\":\"base64\"` to read them"
    );
    let base64 = page(&run, json!({ "artifact": id, "encoding": "base64" })).await;
    assert_eq!(base64.text(), "AJ+Slg==\nbytes 0 to 4 of 4; the end");
    let behind = page(&run, json!({ "artifact": id, "offset": 5 })).await;
    assert_eq!(behind.text(), "failed: `offset` is 5, expected at most 4, where it ends");
    let path = page(&run, json!({ "artifact": "artifact:../secret" })).await;
    assert_eq!(
        path.text(),
        "not executed: /artifact: not an artifact, expected `artifact:` and 64 lower-case \
         hexadecimal digits"
    );
    // Half a character at the very end is no text.
    let cut = run.artifacts().put(b"caf\xC3".to_vec()).await.unwrap().id.to_string();
    assert!(page(&run, json!({ "artifact": cut })).await.is_error);
}

#[tokio::test]
async fn only_what_is_old_and_no_tape_refers_to_is_thrown_away() {
    let folder = tempfile::tempdir().unwrap();
    let artifacts = Artifacts::in_dir(folder.path()).unwrap();
    let kept = artifacts.put("kept").await.unwrap();
    let (lost, young) =
        (artifacts.put("lost").await.unwrap(), artifacts.put("young").await.unwrap());
    let hour = std::time::Duration::from_secs(3_600);
    let aged = std::time::SystemTime::UNIX_EPOCH + hour;
    for id in [kept.id, lost.id, young.id] {
        let name = id.0.to_string();
        let path = folder.path().join(&name[..2]).join(&name);
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(aged).unwrap();
    }
    // What is put again is young again.
    artifacts.put("young").await.unwrap();
    let referred = [kept.id.0].into();
    assert_eq!(artifacts.unreferred(&referred, aged).unwrap(), [], "nothing is older than that");
    let later = aged + hour;
    assert_eq!(artifacts.unreferred(&referred, later).unwrap(), [lost]);
    assert_eq!(artifacts.sweep(&referred, later).unwrap(), [lost]);
    assert!(artifacts.get(lost.id).await.is_err());
    assert_eq!(*artifacts.get(kept.id).await.unwrap(), b"kept");
    assert_eq!(*artifacts.get(young.id).await.unwrap(), b"young");
}
