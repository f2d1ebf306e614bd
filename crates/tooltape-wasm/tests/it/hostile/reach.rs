//! Tools that reach for what they did not declare.

use super::World;
use super::crafted::Crafted;
use super::interfaces::{FILES, FILESYSTEM, HTTP};

/// A tool that calls a function with a text, and answers 0 where that worked and 1 where not.
fn telling(imported: Crafted, text: &str, call: &str) -> Crafted {
    let escaped: String = text.bytes().map(|byte| format!("\\{byte:02x}")).collect();
    let fields = format!(r#"(data (i32.const 512) "{escaped}")"#);
    let call = call.replace("$length", &format!("(i32.const {})", text.len()));
    let call = format!("{call} (call $answer (i64.load8_u (i32.const 0)))");
    Crafted { fields: fields.leak(), call: call.leak(), ..imported }
}

fn reading(path: &str) -> Crafted {
    let imported =
        Crafted { imports: &[FILES], needs: &["fs:read:data"], access: 1, ..Crafted::default() };
    let call = "(call $read (i32.const 512) $length (i64.const 0) (i32.const 1) (i32.const 0))";
    telling(imported, path, call)
}

fn writing(path: &str, needs: &'static [&'static str]) -> Crafted {
    let imported = Crafted { imports: &[FILES], needs, access: 2, ..Crafted::default() };
    let call = "(call $write (i32.const 512) $length (i32.const 0) (i32.const 1) (i32.const 0))";
    telling(imported, path, call)
}

fn fetching(url: &str) -> Crafted {
    let imported = Crafted {
        imports: &[HTTP],
        needs: &["net:get:example.com"],
        access: 1,
        ..Crafted::default()
    };
    telling(imported, url, "(call $fetch (i32.const 512) $length (i32.const 1) (i32.const 0))")
}

#[tokio::test]
async fn no_path_leads_out_of_what_was_declared() {
    let world = World::new();
    assert_eq!(world.end(&reading("data/file")).await, "answered 0");
    assert_eq!(world.end(&writing("data/file", &["fs:write:data"])).await, "answered 0");
    assert_eq!(world.touched.take(), ["read data/file", "write data/file 1"]);
    let paths = [
        "other/file",
        "data/../other/file",
        "../data/file",
        "data/../../file",
        "/data/file",
        "/etc/passwd",
        "data2/file",
        "DATA/file",
        "data/\0file",
        "data\\..\\other",
        "./../data/file",
        "",
        ".",
        "..",
        "~/file",
    ];
    for path in paths {
        assert_eq!(world.end(&reading(path)).await, "answered 1", "read `{path}`");
        let end = world.end(&writing(path, &["fs:write:data"])).await;
        assert_eq!(end, "answered 1", "write `{path}`");
    }
    let naive = paths.iter().filter(|path| path.starts_with("data"));
    assert!(naive.count() > 2, "who compares how paths begin is fooled");
    // To read is not to write.
    assert_eq!(world.end(&writing("data/file", &["fs:read:data"])).await, "answered 1");
    assert_eq!(world.touched.take(), [""; 0]);
    println!("hostile: {} cases", 2 * paths.len() + 1);
}

#[tokio::test]
async fn no_address_leads_to_a_host_that_was_not_declared() {
    let world = World::new();
    assert_eq!(world.end(&fetching("https://example.com/")).await, "answered 0");
    assert_eq!(world.touched.take(), ["get https://example.com/"]);
    let addresses = [
        "https://other.example/",
        "https://example.com@other.example/",
        "https://example.com:443@other.example/",
        "https://example.com.other.example/",
        "https://other.example/?https://example.com/",
        "https://other.example#https://example.com/",
        "https://other.example\\@example.com/",
        "https://sub.example.com/",
        "https://example.com:8443/",
        "http://example.com/",
        "file:///etc/passwd",
        "//example.com/",
        "example.com",
        "https://169.254.169.254/",
        "https://[::1]/",
        "https:///",
        "",
    ];
    for address in addresses {
        assert_eq!(world.end(&fetching(address)).await, "answered 1", "`{address}`");
    }
    let naive = addresses.iter().filter(|it| it.starts_with("https://example.com"));
    assert!(naive.count() > 2, "who compares how addresses begin is fooled");
    assert_eq!(world.touched.take(), [""; 0]);
    println!("hostile: {} cases", addresses.len());
}

/// What bypassed other hosts by folders that were to be read (RUSTSEC-2026-0149, -0188): here is
/// no folder, and no handle that could be made up.
#[tokio::test]
async fn there_are_no_files_behind_those_of_wasi() {
    let world = World::new();
    let calling = |call| Crafted { imports: &[FILESYSTEM], call, ..Crafted::default() };
    world
        .check(&[
            (
                "looking for folders",
                calling(
                    "(call $folders (i32.const 0))
                    (call $answer (i64.extend_i32_u (i32.load (i32.const 4))))",
                ),
                "answered 0",
            ),
            (
                "cutting off a file",
                calling(
                    "(call $truncate (i32.const 1) (i64.const 0) (i32.const 0))
                    (unreachable)",
                ),
                "failed trap",
            ),
            (
                "linking a file to another name",
                calling(
                    "(call $link (i32.const 1) (i32.const 2048) (i32.const 7) (i32.const 1)
                    (i32.const 2048) (i32.const 6) (i32.const 0)) (unreachable)",
                ),
                "failed trap",
            ),
            (
                "renaming a file",
                calling(
                    "(call $rename (i32.const 1) (i32.const 2048) (i32.const 7) (i32.const 1)
                    (i32.const 2048) (i32.const 6) (i32.const 0)) (unreachable)",
                ),
                "failed trap",
            ),
            (
                "deleting a file",
                calling(
                    "(call $unlink (i32.const 1) (i32.const 2048) (i32.const 7)
                    (i32.const 0)) (unreachable)",
                ),
                "failed trap",
            ),
        ])
        .await;
    assert_eq!(world.touched.take(), [""; 0]);
}
