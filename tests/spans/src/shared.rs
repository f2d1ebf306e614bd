//! Artifacts in an object store, and heads that somebody signed.

use std::time::{Duration, SystemTime};

use tooltape::{ArtifactError, Artifacts};

fn url(folder: &std::path::Path) -> String {
    format!("file://{}", folder.display())
}

#[tokio::test]
async fn artifacts_in_an_object_store_are_shared_and_checked_whenever_they_are_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let (one, two) = (open(folder.path()), open(folder.path()));
    let artifact = one.put("a long story").await.expect("it is kept");
    assert_eq!(two.read(artifact.id, 2, 4).await.expect("it is there").bytes, b"long");
    assert_eq!(one.put("a long story").await.expect("once is enough").id, artifact.id);
    let name = artifact.id.0.to_string();
    std::fs::write(folder.path().join(&name[..2]).join(&name), "another story").expect("written");
    assert!(matches!(two.get(artifact.id).await, Err(ArtifactError::Corrupt { .. })));
    one.put("a long story").await.expect("what is damaged is put right");
    assert_eq!(**two.get(artifact.id).await.expect("whole again"), *b"a long story");
}

#[tokio::test]
async fn what_no_tape_refers_to_is_thrown_away_in_an_object_store_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let artifacts = open(folder.path());
    let kept = artifacts.put("kept").await.expect("it is kept");
    let lost = artifacts.put("lost").await.expect("it is kept");
    let later = SystemTime::now() + Duration::from_secs(3_600);
    let swept = artifacts.sweep(&[kept.id.0].into(), later).expect("it is swept");
    assert_eq!(swept, [lost]);
    assert!(matches!(artifacts.get(lost.id).await, Err(ArtifactError::Unknown { .. })));
    assert!(artifacts.get(kept.id).await.is_ok());
}

fn open(folder: &std::path::Path) -> Artifacts {
    Artifacts::at_url(&url(folder), []).expect("a folder is an object store")
}
