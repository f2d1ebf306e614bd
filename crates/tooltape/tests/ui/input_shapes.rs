use tooltape::{ToolError, input, tool};

#[input]
enum Edit {
    Insert { text: String },
    Delete,
}

#[input]
struct Pair(u8, u8);

#[input]
struct Nothing;

#[input(chek)]
struct Misspelt {}

/// A choice of words is a field of an input, and no input.
#[input]
enum Order {
    Ascending,
    Descending,
}

/// Sorts.
#[tool(Pure)]
async fn sort(_: Order) -> Result<(), ToolError> {
    Ok(())
}

/// Does it all.
#[tool(Pure)]
async fn all(_: Edit) -> Result<(), ToolError> {
    Ok(())
}

fn main() {
    let _ = tooltape::tools![sort, all];
}
