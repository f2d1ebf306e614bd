//! The paths of a patch: with the prefixes and quotes of git, and without.

use crate::workspace::WorkspacePath;

/// What a patch calls a file that is not there.
const NOWHERE: &str = "/dev/null";

/// The path of a `---` or `+++` line; nothing, where the file is not there.
pub(super) fn in_header(text: &str) -> Result<Option<WorkspacePath>, String> {
    let text = text.trim_end_matches(['\r', '\n']);
    // A date may follow behind a tab.
    let name = text.split('\t').next().unwrap_or(text);
    if name == NOWHERE {
        return Ok(None);
    }
    let name = unquoted(name)?;
    let plain = name.strip_prefix("a/").or_else(|| name.strip_prefix("b/")).unwrap_or(&name);
    named_plainly(plain).map(Some)
}

/// The path of a line that has no prefix.
pub(super) fn named(text: &str) -> Result<WorkspacePath, String> {
    named_plainly(&unquoted(text)?)
}

/// The one path that `a/PATH b/PATH` names twice.
pub(super) fn both(names: &str) -> Option<WorkspacePath> {
    let names = names.trim_end_matches(['\r', '\n']);
    // A path may hold spaces, but both are as long as each other.
    let (from, to) = names.split_at_checked(names.len() / 2)?;
    let (from, to) = (unquoted(from).ok()?, unquoted(to.strip_prefix(' ')?).ok()?);
    let (from, to) = (from.strip_prefix("a/")?, to.strip_prefix("b/")?);
    (from == to).then(|| from.parse().ok()).flatten()
}

fn named_plainly(name: &str) -> Result<WorkspacePath, String> {
    name.parse().map_err(|err| format!("a path inside the workspace: {err}"))
}

/// A name without the quotes that git puts around one with unusual characters.
fn unquoted(name: &str) -> Result<String, String> {
    let Some(quoted) = name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) else {
        return Ok(name.to_owned());
    };
    let unreadable = || "a quoted path as git writes it, in UTF-8".to_owned();
    let (mut bytes, mut rest) = (Vec::new(), quoted.bytes());
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next().ok_or_else(unreadable)? {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'a' => 0x07,
            b'b' => 0x08,
            b'f' => 0x0c,
            b'v' => 0x0b,
            byte @ (b'"' | b'\\') => byte,
            byte @ b'0'..=b'3' => {
                let mut digit = || match rest.next() {
                    Some(digit @ b'0'..=b'7') => Ok(digit - b'0'),
                    Some(_) | None => Err(unreadable()),
                };
                (byte - b'0') << 6 | digit()? << 3 | digit()?
            }
            _ => return Err(unreadable()),
        });
    }
    String::from_utf8(bytes).map_err(|_| unreadable())
}
