//! Each way in which a file tool is given a path: one line for each.

/// A call of a tool that is about one path.
pub(crate) struct Form {
    pub(crate) name: &'static str,
    pub(crate) tool: &'static str,
    /// The arguments, given the path as JSON and the same without its quotes.
    args: fn(&str, &str) -> String,
}

/// What is inside the workspace for a form that needs more than its path.
pub(crate) const MOVED: &str = "dir/moved.txt";

/// Reads, then changes.
pub(crate) const FORMS: [Form; 12] = [
    Form { name: "list_dir", tool: "list_dir", args: |path, _| format!(r#"{{"path":{path}}}"#) },
    Form { name: "read_file", tool: "read_file", args: |path, _| format!(r#"{{"path":{path}}}"#) },
    Form {
        name: "glob",
        tool: "glob",
        args: |path, _| format!(r#"{{"path":{path},"pattern":"**","hidden":true,"ignored":true}}"#),
    },
    Form {
        name: "grep",
        tool: "grep",
        args: |path, _| format!(r#"{{"path":{path},"pattern":"CANARY","hidden":true}}"#),
    },
    Form {
        name: "write_file",
        tool: "write_file",
        args: |path, _| {
            let flags = r#""overwrite":true,"create_dirs":true"#;
            format!(r#"{{"path":{path},"content":"OWNED\n",{flags}}}"#)
        },
    },
    Form {
        name: "edit_file",
        tool: "edit_file",
        args: |path, _| format!(r#"{{"path":{path},"edits":[{{"old":"ANARY","new":"OWNED"}}]}}"#),
    },
    Form {
        name: "apply_patch, change",
        tool: "apply_patch",
        args: |path, bare| {
            let hunk = r"@@ -1 +1 @@\n-CANARY\n+OWNED\n";
            format!(r#"{{"paths":[{path}],"patch":"--- a/{bare}\n+++ b/{bare}\n{hunk}"}}"#)
        },
    },
    Form {
        name: "apply_patch, create",
        tool: "apply_patch",
        args: |path, bare| {
            let hunk = r"@@ -0,0 +1 @@\n+OWNED\n";
            format!(r#"{{"paths":[{path}],"patch":"--- /dev/null\n+++ b/{bare}\n{hunk}"}}"#)
        },
    },
    Form {
        name: "apply_patch, rename",
        tool: "apply_patch",
        args: |path, bare| {
            let head = format!(r"diff --git a/{MOVED} b/{bare}\nrename from {MOVED}\n");
            format!(r#"{{"paths":["{MOVED}",{path}],"patch":"{head}rename to {bare}\n"}}"#)
        },
    },
    Form {
        name: "move_file, from",
        tool: "move_file",
        args: |path, _| format!(r#"{{"from":{path},"to":"dir/taken.txt"}}"#),
    },
    Form {
        name: "move_file, to",
        tool: "move_file",
        args: |path, _| format!(r#"{{"from":"{MOVED}","to":{path},"overwrite":true}}"#),
    },
    Form {
        name: "delete_file",
        tool: "delete_file",
        args: |path, _| format!(r#"{{"path":{path}}}"#),
    },
];

impl Form {
    /// The arguments of a call about this path, which is JSON.
    pub(crate) fn args(&self, path: &str) -> String {
        let bare = path.strip_prefix('"').and_then(|path| path.strip_suffix('"'));
        (self.args)(path, bare.unwrap_or("dir/inside.txt"))
    }

    /// Whether the tool changes something.
    pub(crate) fn is_change(&self) -> bool {
        !matches!(self.tool, "list_dir" | "read_file" | "glob" | "grep")
    }
}
