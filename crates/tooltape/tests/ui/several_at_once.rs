use tooltape::{Secret, ToolError, tool};

#[tool(Pure)]
fn several<'a>(_: &'a str, _: Secret<u8>, _: Secret<u8>) -> Result<u64, ToolError> {
    Ok(0)
}

fn main() {
    let _ = tooltape::tools![several];
}
