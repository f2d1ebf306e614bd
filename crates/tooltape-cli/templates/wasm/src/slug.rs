//! What the tool computes, without a word about WASM.

use serde::{Deserialize, Serialize};

/// What a model hands over.
#[derive(Deserialize)]
pub struct Input {
    pub title: String,
}

/// What it gets.
#[derive(Debug, PartialEq, Serialize)]
pub struct Output {
    pub slug: String,
}

/// Lower-case words with hyphens between them; an error says what a model can do about it.
pub fn slug(input: &Input) -> Result<Output, String> {
    let words = input.title.split(|sign: char| !sign.is_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    if words.is_empty() {
        return Err(format!(
            "expected a title with a letter or a digit, found `{}`",
            input.title
        ));
    }
    Ok(Output {
        slug: words.join("-").to_lowercase(),
    })
}
