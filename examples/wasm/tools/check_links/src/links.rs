//! The links of a Markdown page, and where they lead.

/// Where a link leads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// To a file or folder, by its path from the root of the workspace.
    File(String),
    /// To a page of the web, by its address.
    Page(String),
    /// Out of the workspace, by what stands in the link.
    Outside(String),
}

/// Where the links of a page lead, each once, in order. `path` is where the page itself is.
///
/// Links within the page, and addresses of other kinds such as `mailto:`, are left out.
pub fn links(path: &str, page: &str) -> Vec<Target> {
    let ends = page.split("](").skip(1);
    let written = ends.filter_map(|rest| rest.split([')', ' ', '\n']).next());
    let mut targets: Vec<Target> = written.filter_map(|link| target(path, link)).collect();
    targets.sort_unstable();
    targets.dedup();
    targets
}

fn target(path: &str, link: &str) -> Option<Target> {
    let link = link.split('#').next().filter(|link| !link.is_empty())?;
    if link.starts_with("https://") {
        return Some(Target::Page(link.to_owned()));
    }
    if link.contains(':') {
        return None;
    }
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let folder = if link.starts_with('/') { "" } else { folder };
    let mut parts = Vec::new();
    for part in folder.split('/').chain(link.split('/')) {
        match part {
            "" | "." => {}
            ".." if parts.pop().is_none() => return Some(Target::Outside(link.to_owned())),
            ".." => {}
            part => parts.push(part),
        }
    }
    Some(Target::File(parts.join("/")))
}
