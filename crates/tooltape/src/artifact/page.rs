//! Pages of an artifact: what a model may see of it, and what it may not.

use std::ops::Range;

use super::{ArtifactError, ArtifactId, ArtifactPart, Artifacts};

/// Says what no page may show.
pub(crate) trait Veil: Send + Sync {
    /// How many bytes on either side of a place decide whether it is hidden.
    fn reach(&self) -> usize;

    /// The places that are hidden, in order and apart.
    fn hidden(&self, bytes: &[u8]) -> Vec<Range<usize>>;

    /// The bytes without what is hidden, as they are kept.
    fn over(&self, bytes: Vec<u8>) -> Vec<u8>;
}

/// A part of an artifact, and which places of it are hidden.
pub(crate) struct Page {
    pub(crate) bytes: Vec<u8>,
    pub(crate) total: u64,
    pub(crate) hidden: Vec<Range<usize>>,
}

impl Artifacts {
    /// Like [`read`](Artifacts::read), for a model. What is hidden depends on the artifact alone,
    /// and not on where its pages are cut: what stands around this one is looked at too.
    pub(crate) async fn page(
        &self,
        id: ArtifactId,
        offset: u64,
        length: u64,
    ) -> Result<Page, ArtifactError> {
        let reach = self.veil.as_ref().map_or(0, |veil| veil.reach() as u64);
        let before = reach.min(offset);
        let around = before.saturating_add(length).saturating_add(reach);
        let ArtifactPart { bytes, total } = self.read(id, offset - before, around).await?;
        let hidden = self.veil.as_ref().map(|veil| veil.hidden(&bytes)).unwrap_or_default();
        let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
        let (start, end) = (place(before), place(before.saturating_add(length)));
        let within = |it: &Range<usize>| it.start.clamp(start, end)..it.end.clamp(start, end);
        let hidden = hidden.iter().map(within).filter(|it| !it.is_empty());
        let hidden = hidden.map(|it| it.start - start..it.end - start).collect();
        Ok(Page { bytes: bytes[start..end].to_vec(), total, hidden })
    }
}
