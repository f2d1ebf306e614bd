//! The imports that reach outside of a call: `state`, `files` and `http`.

use std::time::Instant;

use tooltape::scope::{FileScope, Method, NetScope, Site};
use tooltape::{BoundKind, Canon, Doc, Limits, Right, Rights, ToolError};
use wasmtime::component::Linker;

use crate::guest::{GuestEntry, GuestPage, GuestTrouble};
use crate::host::{Host, Stop};
use crate::limit::{HOST_READ_BYTES_MAX, HOST_WRITE_BYTES_MAX};
use crate::seam::{Page, Trouble};

/// What a component reads where the host has not given what it imports.
const NOT_GIVEN: &str = "there is nothing behind this import now";

pub(super) fn define(linker: &mut Linker<Host>) -> Result<(), wasmtime::Error> {
    state(linker)?;
    files(linker)?;
    http(linker)
}

fn state(linker: &mut Linker<Host>) -> Result<(), wasmtime::Error> {
    let mut state = linker.instance("tooltape:tool/state@1.0.0")?;
    state.func_wrap_async("get", |mut store, (key,): (String,)| {
        Box::new(async move {
            Host::pay(&mut store, key.len()).await?;
            let Some(state) = store.data().given.state.clone() else {
                return Ok((Err(NOT_GIVEN.to_owned()),));
            };
            let found = bounded(store.data(), state.get::<Canon>(&key)).await?;
            let found = found.map(|found| found.map(|document| document.to_string()));
            let bytes = found.as_ref().map_or(0, |it| it.as_ref().map_or(0, String::len));
            Host::pay(&mut store, bytes).await?;
            Ok((found.map_err(told),))
        })
    })?;
    state.func_wrap_async("set", |mut store, (key, document): (String, String)| {
        Box::new(async move {
            Host::pay(&mut store, key.len() + document.len()).await?;
            let Some(state) = store.data().given.state.clone() else {
                return Ok((Err(NOT_GIVEN.to_owned()),));
            };
            let document = match Doc::read(document.as_str(), &Limits::RESULT) {
                Ok(document) => document.canonical(),
                Err(err) => return Ok((Err(format!("the document is no JSON: {err}")),)),
            };
            store.data_mut().wrote = true;
            let done = bounded(store.data(), state.set(&key, &document)).await?;
            Ok((done.map_err(told),))
        })
    })?;
    state.func_wrap_async("delete", |mut store, (key,): (String,)| {
        Box::new(async move {
            Host::pay(&mut store, key.len()).await?;
            let Some(state) = store.data().given.state.clone() else {
                return Ok((Err(NOT_GIVEN.to_owned()),));
            };
            store.data_mut().wrote = true;
            let done = bounded(store.data(), state.remove(&key)).await?;
            Ok((done.map_err(told),))
        })
    })
}

fn files(linker: &mut Linker<Host>) -> Result<(), wasmtime::Error> {
    let mut files = linker.instance("tooltape:tool/files@1.0.0")?;
    files.func_wrap_async("read", |mut store, (path, offset, length): (String, u64, u32)| {
        Box::new(async move {
            Host::pay(&mut store, path.len()).await?;
            let Some(files) = store.data().given.files.clone() else {
                return Ok((Err(NOT_GIVEN.to_owned()),));
            };
            if let Err(why) = declared_file(store.data(), &path, Right::FsRead) {
                return Ok((Err(why),));
            }
            let length = length.min(HOST_READ_BYTES_MAX);
            let read = bounded(store.data(), files.read(&path, offset, length)).await?;
            let mut read = read.map_err(told);
            if let Ok(bytes) = &mut read {
                // Whoever implements it may give more than was asked for.
                bytes.truncate(length as usize);
                Host::pay(&mut store, bytes.len()).await?;
            }
            Ok((read,))
        })
    })?;
    files.func_wrap_async("list-folder", |mut store, (path,): (String,)| {
        Box::new(async move {
            Host::pay(&mut store, path.len()).await?;
            let Some(files) = store.data().given.files.clone() else {
                return Ok((Err(NOT_GIVEN.to_owned()),));
            };
            if let Err(why) = declared_file(store.data(), &path, Right::FsRead) {
                return Ok((Err(why),));
            }
            let listed = bounded(store.data(), files.list(&path)).await?.map_err(told);
            let listed = listed.map(|entries| {
                let entries = entries.into_iter();
                let entry = |it: crate::seam::FolderEntry| GuestEntry {
                    name: it.name,
                    is_folder: it.is_folder,
                };
                entries.map(entry).collect::<Vec<_>>()
            });
            if let Ok(entries) = &listed {
                let bytes = entries.iter().map(|entry| entry.name.len() + 12).sum();
                Host::pay(&mut store, bytes).await?;
            }
            Ok((listed,))
        })
    })?;
    files.func_wrap_async("write", |mut store, (path, content): (String, Vec<u8>)| {
        Box::new(async move {
            Host::pay(&mut store, path.len() + content.len()).await?;
            let Some(files) = store.data().given.files.clone() else {
                return Ok((Err(NOT_GIVEN.to_owned()),));
            };
            if let Err(why) = declared_file(store.data(), &path, Right::FsWrite) {
                return Ok((Err(why),));
            }
            let bytes = content.len();
            if bytes > HOST_WRITE_BYTES_MAX {
                let most = format!("expected at most {HOST_WRITE_BYTES_MAX}");
                return Ok((Err(format!("the content has {bytes} bytes, {most}")),));
            }
            store.data_mut().wrote = true;
            let done = bounded(store.data(), files.write(&path, content)).await?;
            Ok((done.map_err(told),))
        })
    })
}

fn http(linker: &mut Linker<Host>) -> Result<(), wasmtime::Error> {
    linker.instance("tooltape:tool/http@1.0.0")?.func_wrap_async(
        "get",
        |mut store, (url, length): (String, u32)| {
            Box::new(async move {
                Host::pay(&mut store, url.len()).await?;
                let unsent = |message| GuestTrouble { message, request_sent: false };
                let Some(web) = store.data().given.web.clone() else {
                    return Ok((Err(unsent(NOT_GIVEN.to_owned())),));
                };
                if let Err(why) = declared_site(store.data(), &url) {
                    return Ok((Err(unsent(why)),));
                }
                let length = length.min(HOST_READ_BYTES_MAX);
                let declared = Rights::of(store.data().given.declared.iter().cloned());
                let asked = web.get(&url, length, &declared);
                let page = match bounded(store.data(), asked).await? {
                    Ok(page) => page,
                    Err(Trouble { message, request_sent }) => {
                        return Ok((Err(GuestTrouble { message, request_sent }),));
                    }
                };
                // Who was asked in the end must be one who may be asked, too.
                if let Err(message) = declared_site(store.data(), &page.url) {
                    return Ok((Err(GuestTrouble { message, request_sent: true }),));
                }
                let Page { url, status, content_type, mut body, truncated } = page;
                let truncated = truncated || body.len() > length as usize;
                body.truncate(length as usize);
                let text = content_type.as_ref().map_or(0, String::len);
                Host::pay(&mut store, url.len() + text + body.len()).await?;
                Ok((Ok(GuestPage { url, status, content_type, body, truncated }),))
            })
        },
    )
}

/// Waits for what the host does, and no longer than it may take.
async fn bounded<T>(
    host: &Host,
    future: impl Future<Output = T> + Send,
) -> Result<T, wasmtime::Error> {
    let (limit, began) = (host.limits.host_wall, Instant::now());
    tokio::time::timeout(limit, future).await.map_err(|_| {
        let ms = |duration: std::time::Duration| u64::try_from(duration.as_millis());
        let limit = ms(limit).unwrap_or(u64::MAX);
        let used = ms(began.elapsed()).unwrap_or(u64::MAX).max(limit);
        wasmtime::Error::new(Stop::Exceeded { bound: BoundKind::Wall, limit, used })
    })
}

/// Whether the tool declares a right to this file.
fn declared_file(host: &Host, path: &str, right: fn(FileScope) -> Right) -> Result<(), String> {
    let path = path.parse().map_err(|err| format!("{err}"))?;
    declared(host, &right(FileScope { root: None, path }))
}

/// Whether the tool declares a right to ask this address.
fn declared_site(host: &Host, url: &str) -> Result<(), String> {
    let Site { host: name, port, .. } = Site::of(url).map_err(|err| err.to_string())?;
    let scope = NetScope { hosts: name.into(), port, method: Method::Get };
    declared(host, &Right::Net(scope))
}

fn declared(host: &Host, right: &Right) -> Result<(), String> {
    match host.given.declared.iter().any(|declared| declared.covers(right)) {
        true => Ok(()),
        false => Err(format!("the tool does not declare that it needs `{right}`")),
    }
}

/// What a component reads of a failure of the host: what a model would.
fn told(err: ToolError) -> String {
    err.told().to_owned()
}
