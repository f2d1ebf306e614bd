//! Gemini's `generateContent`.

pub(super) mod decode;
pub(super) mod encode;
mod partial;
