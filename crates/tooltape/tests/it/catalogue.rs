//! Tool documents that others wrote, as they stand in the folder of data.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use serde_json::{Map, Value};

use crate::data;

/// How many documents the folder of data holds.
pub(crate) const DOCUMENTS: usize = 2_269;

/// One tool as somebody else describes it.
pub(crate) struct Document {
    /// The folder it is from.
    pub(crate) catalogue: &'static str,
    /// Where in that folder it is; no two documents have the same.
    pub(crate) id: String,
    /// Its name, with `_` for the dots of Python.
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) schema: Value,
}

/// All documents, or nothing where the data is absent, which is said once.
pub(crate) fn load() -> Option<&'static [Document]> {
    static LOADED: OnceLock<Option<Vec<Document>>> = OnceLock::new();
    LOADED.get_or_init(read).as_deref()
}

fn read() -> Option<Vec<Document>> {
    let folder = data::folder(DOCUMENTS)?;
    let mut documents = mcp_tools(&folder.join("mcp-tools"));
    documents.extend(bfcl(&folder.join("bfcl")));
    documents.extend(agentdojo(&folder.join("agentdojo")));
    assert_eq!(documents.len(), DOCUMENTS, "the data is another than this test knows");
    Some(documents)
}

/// What MCP servers answer to `tools/list`.
fn mcp_tools(folder: &Path) -> Vec<Document> {
    let mut documents = Vec::new();
    for (file, text) in texts(folder, ".tools.json") {
        for tool in array(&parsed(&text)) {
            let id = format!("{file}/{}", text_of(tool, "name"));
            documents.push(document("mcp-tools", id, tool, tool["inputSchema"].clone()));
        }
    }
    documents
}

/// The functions of a benchmark, whose schemas speak of Python types.
fn bfcl(folder: &Path) -> Vec<Document> {
    let mut documents = Vec::new();
    for (file, text) in texts(folder, ".json") {
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let prompt = parsed(line);
            for (index, tool) in array(&prompt["function"]).iter().enumerate() {
                let id = format!("{file}/{}/{index}", text_of(&prompt, "id"));
                documents.push(document("bfcl", id, tool, json_types(&tool["parameters"])));
            }
        }
    }
    for (file, text) in texts(&folder.join("multi_turn_func_doc"), ".json") {
        for tool in text.lines().filter(|line| !line.trim().is_empty()).map(parsed) {
            let id = format!("{file}/{}", text_of(&tool, "name"));
            documents.push(document("bfcl", id, &tool, json_types(&tool["parameters"])));
        }
    }
    documents
}

/// The tools of the suites of an attack benchmark.
fn agentdojo(folder: &Path) -> Vec<Document> {
    let file = fs::read_to_string(folder.join("tools.json")).expect("the data is complete");
    let mut documents = Vec::new();
    for (suite, tools) in parsed(&file).as_object().expect("suites by name") {
        for tool in array(tools) {
            let id = format!("{suite}/{}", text_of(tool, "name"));
            documents.push(document("agentdojo", id, tool, tool["parameters"].clone()));
        }
    }
    documents
}

fn document(catalogue: &'static str, id: String, tool: &Value, schema: Value) -> Document {
    let name = text_of(tool, "name").replace('.', "_");
    let description = tool["description"].as_str().unwrap_or_default().to_owned();
    Document { catalogue, id, name, description, schema }
}

/// A schema with the names of Python types replaced by those of JSON.
fn json_types(schema: &Value) -> Value {
    let Value::Object(schema) = schema else { return schema.clone() };
    let mut translated = Map::new();
    for (keyword, value) in schema {
        let value = match (keyword.as_str(), value) {
            ("type", Value::String(name)) => match name.as_str() {
                "any" => continue,
                "dict" => "object".into(),
                "float" => "number".into(),
                "tuple" => "array".into(),
                name => name.into(),
            },
            ("properties", Value::Object(named)) => {
                named.iter().map(|(name, schema)| (name.clone(), json_types(schema))).collect()
            }
            ("items" | "additionalProperties", schema) => json_types(schema),
            (_, value) => value.clone(),
        };
        translated.insert(keyword.clone(), value);
    }
    Value::Object(translated)
}

/// The files of a folder whose names end so, in order of their names.
fn texts(folder: &Path, suffix: &str) -> Vec<(String, String)> {
    let entries = fs::read_dir(folder).expect("the data is complete");
    let paths = entries.map(|entry| entry.expect("a readable folder").path());
    let mut texts = paths
        .filter_map(|path| {
            let name = path.file_name()?.to_str()?.to_owned();
            let text = name.ends_with(suffix).then(|| fs::read_to_string(&path))?;
            Some((name, text.expect("a readable file")))
        })
        .collect::<Vec<_>>();
    texts.sort();
    texts
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("the data is JSON")
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text_of<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().expect("the data has names")
}
