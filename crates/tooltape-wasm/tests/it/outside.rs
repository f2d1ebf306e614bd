//! Files, pages and state reach as far as the tool declares and the run permits, and no further.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tooltape::{
    BoundKind, BoxFuture, CallContext, Executed, FaultKind, Grant, Reply, Right, Rights, Rules,
    Run, Store, ToolError,
};
use tooltape_wasm::{
    Compiler, Files, FolderEntry, HostFiles, HostWeb, Page, Trouble, Wasm, WasmLimits, Web,
};

use crate::guest::{Guest, escaped};
use crate::world::{block, call, loaded, toolbox};

/// Files in memory, which ask the call whether it may.
#[derive(Clone, Default)]
struct Memory {
    files: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    call: Option<CallContext>,
}

impl Memory {
    fn check(&self, action: &str, path: &str) -> Result<(), ToolError> {
        let right: Right = format!("fs:{action}:{path}").parse()?;
        let call = self.call.as_ref().expect("a call holds it");
        call.check(&right).map_err(|_| ToolError::not_done(format!("no right to `{path}`")))
    }
}

impl Grant for Memory {
    fn confers(&self) -> Rights {
        Rights::of(["fs:read:.", "fs:write:."].map(|right| right.parse().unwrap()))
    }

    fn for_call(mut self, context: &CallContext) -> Memory {
        self.call = Some(context.clone());
        self
    }
}

impl Files for Memory {
    fn read<'a>(
        &'a self,
        path: &'a str,
        offset: u64,
        length: u32,
    ) -> BoxFuture<'a, Result<Vec<u8>, ToolError>> {
        Box::pin(async move {
            self.check("read", path)?;
            let files = self.files.lock().unwrap();
            let file = files.get(path).ok_or_else(|| ToolError::not_done("no such file"))?;
            Ok(file.iter().skip(offset as usize).take(length as usize).copied().collect())
        })
    }

    fn list<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Vec<FolderEntry>, ToolError>> {
        Box::pin(async move {
            self.check("read", path)?;
            let entry = |name: &String| FolderEntry { name: name.clone(), is_folder: false };
            Ok(self.files.lock().unwrap().keys().map(entry).collect())
        })
    }

    fn write<'a>(
        &'a self,
        path: &'a str,
        content: Vec<u8>,
    ) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            self.check("write", path)?;
            self.files.lock().unwrap().insert(path.to_owned(), content);
            Ok(())
        })
    }
}

/// A web of which every page says where it is, or which never answers.
#[derive(Clone)]
struct Pages {
    /// The right that the next hop needs, of which only the web knows.
    hop: Option<&'static str>,
    moved_to: Option<&'static str>,
    silent: bool,
}

/// A web without surprises.
const PAGES: Pages = Pages { hop: None, moved_to: None, silent: false };

impl Grant for Pages {
    fn confers(&self) -> Rights {
        Rights::of(["net:get:*.example.com", "net:get:evil.org"].map(|it| it.parse().unwrap()))
    }
}

impl Web for Pages {
    fn get<'a>(
        &'a self,
        url: &'a str,
        length: u32,
        declared: &'a Rights,
    ) -> BoxFuture<'a, Result<Page, Trouble>> {
        Box::pin(async move {
            let hop = self.hop.map(|hop| hop.parse::<Right>().unwrap());
            if let Some(hop) = hop.filter(|hop| !declared.covers(hop)) {
                let message = format!("`{hop}` is not declared");
                return Err(Trouble { message, request_sent: true });
            }
            if self.silent {
                std::future::pending::<()>().await;
            }
            let url = self.moved_to.unwrap_or(url).to_owned();
            let (status, content_type) = (200, Some("text/plain".to_owned()));
            let body = vec![b'7'; length as usize + 10];
            Ok(Page { url, status, content_type, body, truncated: false })
        })
    }
}

/// A guest that reads a file and answers with what is in it, or fails with why not.
fn reader(path: &str) -> Guest {
    let body = format!(
        "(call $read (i32.const 65536) (i32.const {}) (i64.const 1) (i32.const 3) (i32.const 512))
        (if (result i32) (i32.load8_u (i32.const 512))
          (then (call $fail (i32.const 0) (i64.const 0) (i32.load (i32.const 516))
            (i32.load (i32.const 520))))
          (else (call $ok (i32.load (i32.const 516)) (i32.load (i32.const 520)))))",
        path.len()
    );
    let more = format!("(data (i32.const 65536) \"{}\")", escaped(path.as_bytes()));
    Guest { access: 1, more, ..Guest::new("reader").body(body) }.needs("fs:read:data").imports(
        "tooltape:tool/files@1.0.0",
        "read",
        "(param \"path\" string) (param \"offset\" u64) (param \"length\" u32) \
         (result (result (list u8) (error string)))",
        "(param i32 i32 i64 i32 i32)",
    )
}

/// A guest that writes a file, and then does something else.
fn writer(then: &str) -> Guest {
    let body = format!(
        "(call $write (i32.const 65536) (i32.const 10) (i32.const 65536) (i32.const 4)
          (i32.const 512))
        {then}"
    );
    let more = "(data (i32.const 65536) \"data/a.txt\")".to_owned();
    Guest { access: 2, more, ..Guest::new("writer").body(body) }.needs("fs:write:data").imports(
        "tooltape:tool/files@1.0.0",
        "write",
        "(param \"path\" string) (param \"content\" (list u8)) (result (result (error string)))",
        "(param i32 i32 i32 i32 i32)",
    )
}

/// A guest that asks for a page and answers with its body, or fails with the trouble.
fn browser(url: &str) -> Guest {
    let body = format!(
        "(call $get (i32.const 65536) (i32.const {}) (i32.const 2) (i32.const 512))
        (if (result i32) (i32.load8_u (i32.const 512))
          (then (call $fail (i32.const 0) (i64.const 0) (i32.load (i32.const 516))
            (i32.load (i32.const 520))))
          (else (call $ok (i32.load (i32.const 540)) (i32.load (i32.const 544)))))",
        url.len()
    );
    let more = format!("(data (i32.const 65536) \"{}\")", escaped(url.as_bytes()));
    let mut guest = Guest { access: 1, more, ..Guest::new("browser").body(body) };
    guest = guest.needs("net:get:api.example.com").imports(
        "PAGE",
        "get",
        "GET",
        "(param i32 i32 i32 i32)",
    );
    // Records must have names, so the interface is written out.
    let page = r#"(type $p (record (field "url" string) (field "status" u16)
        (field "content-type" (option string)) (field "body" (list u8)) (field "truncated" bool)))
      (export "page" (type $page (eq $p)))
      (type $t (record (field "message" string) (field "request-sent" bool)))
      (export "trouble" (type $trouble (eq $t)))"#;
    let get =
        r#"(param "url" string) (param "length" u32) (result (result $page (error $trouble)))"#;
    guest.imports = guest
        .imports
        .replace(
            "\"PAGE\" (instance $i0",
            &format!("\"tooltape:tool/http@1.0.0\" (instance $i0 {page}"),
        )
        .replace("GET", get);
    guest
}

fn fault(reply: &Reply) -> String {
    reply.fault.as_ref().unwrap().told.as_deref().unwrap_or_default().to_owned()
}

fn files() -> Memory {
    let memory = Memory::default();
    memory.files.lock().unwrap().insert("data/n".to_owned(), b"x123456".to_vec());
    memory.files.lock().unwrap().insert("secret".to_owned(), b"x999999".to_vec());
    memory
}

fn read(path: &str, run: impl FnOnce(Run) -> Run) -> Reply {
    let toolbox = toolbox(&loaded(&reader(path)));
    let run = run(Run::new(&toolbox).grant(HostFiles::new(files())));
    block(call(&run, "reader", "{}"))
}

#[test]
fn files_are_read_as_far_as_the_tool_declares() {
    assert_eq!(read("data/n", |run| run).text(), "123");
    let undeclared = read("secret", |run| run);
    assert_eq!(fault(&undeclared), "the tool does not declare that it needs `fs:read:secret`");
    for path in ["data/../secret", "/etc/passwd", "data/./n", "", "@root/n", "data\\n"] {
        let reply = read(path, |run| run);
        assert!(reply.is_error, "{path}: {}", reply.text());
    }
    assert_eq!(fault(&read("data/none", |run| run)), "no such file");
}

#[test]
fn files_are_read_as_far_as_the_run_permits() {
    let denied = read("data/n", |run| run.rights(Rights::none()));
    assert_eq!(denied.fault.as_ref().unwrap().kind, FaultKind::Denied);
}

#[test]
fn a_tool_that_needs_files_does_not_run_without_them() {
    let toolbox = toolbox(&loaded(&reader("data/n")));
    let run = Run::new(&toolbox);
    let missing = block(run.batch(vec![tooltape::Proposal::new("c1", "reader", "{}")]));
    assert!(missing.is_err());
}

#[test]
fn a_trap_after_a_write_leaves_it_in_doubt() {
    let (done, trap) = ("(call $ok (i32.const 1016) (i32.const 2))", "unreachable");
    let lied = "(call $fail (i32.const 1) (i64.const 0) (i32.const 65536) (i32.const 4))";
    for (then, executed) in
        [(done, Executed::Executed), (trap, Executed::Unknown), (lied, Executed::Executed)]
    {
        let (toolbox, memory) = (toolbox(&loaded(&writer(then))), Memory::default());
        let run = Run::new(&toolbox).grant(HostFiles::new(memory.clone()));
        let run = run.policy(Rules::deny_all().allow("writer").allow("keep"));
        let reply = block(call(&run, "writer", "{}"));
        assert_eq!(reply.executed, executed, "{}", reply.text());
        assert_eq!(memory.files.lock().unwrap()["data/a.txt"], b"data");
    }
}

#[test]
fn a_tool_that_says_it_reads_writes_nothing() {
    let then = "(i32.store8 (i32.const 65536) (i32.add (i32.const 48) \
        (i32.load8_u (i32.const 512)))) (call $ok (i32.const 65536) (i32.const 1))";
    let mut guest = writer(then);
    (guest.access, guest.needs) = (1, vec!["fs:read:data"]);
    let (toolbox, memory) = (toolbox(&loaded(&guest)), Memory::default());
    let run = Run::new(&toolbox).grant(HostFiles::new(memory.clone()));
    // It is told that there was an error, and nothing was written.
    assert_eq!(block(call(&run, "writer", "{}")).text(), "1");
    assert!(memory.files.lock().unwrap().is_empty());
}

fn browse(url: &str, pages: Pages) -> Reply {
    let toolbox = toolbox(&loaded(&browser(url)));
    let run = Run::new(&toolbox).grant(HostWeb::new(pages));
    block(call(&run, "browser", "{}"))
}

#[test]
fn pages_are_asked_for_as_far_as_the_tool_declares() {
    // Of what the host gave, a component gets no more than it asked for.
    assert_eq!(browse("https://api.example.com/n", PAGES).text(), "77");
    for url in ["https://evil.org/", "http://api.example.com/", "https://api.example.com.evil.org"]
    {
        let reply = browse(url, PAGES);
        assert!(fault(&reply).contains("does not declare that it needs"), "{}", reply.text());
    }
    assert!(browse("file:///etc/passwd", PAGES).is_error);
    let moved = Pages { moved_to: Some("https://evil.org/"), ..PAGES };
    let reply = browse("https://api.example.com/n", moved);
    assert_eq!(fault(&reply), "the tool does not declare that it needs `net:get:evil.org`");
}

#[test]
fn the_web_knows_what_the_tool_declares_and_holds_each_hop_to_it() {
    let through = |hop| browse("https://api.example.com/n", Pages { hop: Some(hop), ..PAGES });
    assert_eq!(through("net:get:api.example.com").text(), "77");
    // The run permits it, and the page that answers is one that may be asked.
    assert_eq!(fault(&through("net:get:evil.org")), "`net:get:evil.org` is not declared");
}

#[test]
fn a_host_call_that_never_answers_is_stopped_with_the_time_it_took() {
    let mut limits = WasmLimits::default();
    limits.host_wall = Duration::from_millis(30);
    let wasm = Wasm::new(Compiler::InProcess, limits).unwrap();
    let guest = browser("https://api.example.com/n");
    let toolbox = toolbox(&block(wasm.read("browser", &guest.wasm())).unwrap());
    let silent = Pages { silent: true, ..PAGES };
    let reply = block(call(&Run::new(&toolbox).grant(HostWeb::new(silent)), "browser", "{}"));
    let fault = reply.fault.as_ref().unwrap();
    assert_eq!((fault.bound, fault.limit), (Some(BoundKind::Wall), Some(30)));
    assert!(fault.used.unwrap() >= 30);
}

#[test]
fn a_slow_host_call_is_stopped_by_the_tools_own_wall_time() {
    let bounds = [Some(40), None, None, None];
    let guest = Guest { bounds, ..browser("https://api.example.com/n") };
    let toolbox = toolbox(&loaded(&guest));
    let silent = Pages { silent: true, ..PAGES };
    let reply = block(call(&Run::new(&toolbox).grant(HostWeb::new(silent)), "browser", "{}"));
    let fault = reply.fault.as_ref().unwrap();
    assert_eq!((fault.bound, fault.limit), (Some(BoundKind::Wall), Some(40)));
}

#[test]
fn state_is_shared_by_the_calls_of_a_run() {
    let ty = "(param \"key\" string) (result (result (option string) (error string)))";
    let set = "(param \"key\" string) (param \"document\" string) (result (result (error string)))";
    // One interface, two functions: they are written out.
    let body = "(call $get (i32.const 65536) (i32.const 1) (i32.const 512))
        (if (i32.eqz (i32.load8_u (i32.const 516))) (then
          (call $set (i32.const 65536) (i32.const 1) (i32.const 65537) (i32.const 9)
            (i32.const 560))
          (if (i32.load8_u (i32.const 560)) (then (return (call $fail (i32.const 0) (i64.const 0)
            (i32.load (i32.const 564)) (i32.load (i32.const 568))))))
          (return (call $ok (i32.const 1016) (i32.const 2)))))
        (call $ok (i32.load (i32.const 520)) (i32.load (i32.const 524)))";
    let more = "(data (i32.const 65536) \"k{ \\\"a\\\": 1}\")".to_owned();
    let guest = |access| {
        let guest = Guest { access, more: more.clone(), ..Guest::new("keep").body(body) };
        let mut guest = guest
            .imports("tooltape:tool/state@1.0.0", "get", ty, "(param i32 i32 i32)")
            .imports("SECOND", "set", set, "(param i32 i32 i32 i32 i32)");
        let second = format!("(import \"SECOND\" (instance $i1 (export \"set\" (func {set}))))");
        let both = format!("(export \"get\" (func {ty})) (export \"set\" (func {set}))");
        guest.imports = guest
            .imports
            .replace(&second, "")
            .replace(&format!("(export \"get\" (func {ty}))"), &both)
            .replace("(func $i1 \"set\")", "(func $i0 \"set\")");
        guest
    };
    let toolbox_of = |access| toolbox(&loaded(&guest(access)));
    let (writing, reading) = (toolbox_of(2), toolbox_of(1));
    block(async {
        let (anything, store) =
            (|| Rules::deny_all().allow("writer").allow("keep"), Store::memory());
        let run = Run::new(&writing).grant(store.clone()).policy(anything());
        assert_eq!(call(&run, "keep", "{}").await.text(), "{}");
        assert_eq!(call(&run, "keep", "{}").await.text(), r#"{"a":1}"#);
        let another = Run::new(&writing).grant(store).policy(anything());
        assert_eq!(call(&another, "keep", "{}").await.text(), "{}");
        let reply = call(&Run::new(&reading).grant(Store::memory()), "keep", "{}").await;
        assert_eq!(fault(&reply), "the store was not changed: the tool says that it only reads");
    });
}
