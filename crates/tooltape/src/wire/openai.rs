//! Chat Completions: of OpenAI, of Mistral, and of all who are compatible.

pub(super) mod decode;
pub(super) mod encode;
