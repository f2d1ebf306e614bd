//! The web: one handle to it, and the tool that reads a page.

mod url;
mod vet;
mod seam;
mod error;
mod tls;
mod decode;
mod http;
mod route;
mod exchange;
mod get;
mod scan;
mod tidy;
mod page;
mod web_fetch;

use std::sync::Arc;

use tooltape::Tool;

pub use decode::{RATIO_MAX, WINDOW_BYTES_MAX, WIRE_BYTES_MAX};
pub use error::HttpError;
pub(crate) use exchange::Wire;
pub use exchange::{HEADER_BYTES_MAX, HEADERS_MAX};
pub use get::{Ask, Fetched, REDIRECTS_MAX};
pub use http::{FETCH_IDLE_DEFAULT, FETCH_WALL_DEFAULT, Http, Patience};
pub use page::HTML_BYTES_MAX;
pub use route::{ADDRESSES_MAX, DIALS_MAX};
pub use seam::{Dial, Resolve};
pub use tidy::HTML_DEPTH_MAX;
pub use url::{URL_BYTES_MAX, UrlError, WebUrl};
pub use web_fetch::{TEXT_BYTES_DEFAULT, TEXT_BYTES_MAX};

/// The tools for the web: `web_fetch`. It needs an [`Http`], and asks no host but through it.
pub fn tools() -> [Arc<dyn Tool>; 1] {
    tooltape::tools![web_fetch::web_fetch]
}
