//! OpenAI's Responses.

pub(super) mod decode;
pub(super) mod encode;
