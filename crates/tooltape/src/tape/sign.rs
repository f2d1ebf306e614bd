//! Signed heads: who vouches that a run ends so.

use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};

use super::{RunHead, TapeError};

/// A key that signs heads (Ed25519). It has no way to be printed.
///
/// ```
/// use tooltape::{Head, RunHead, RunId, SignKey};
///
/// let key = SignKey::from_seed([7; 32]);
/// let mut head = RunHead::new(RunId::new(1, [7; 10]), Head::empty());
/// key.sign(&mut head);
/// head.signed_by(&key.public())?;
/// head.head.len += 1;
/// assert!(head.signed_by(&key.public()).is_err());
/// # Ok::<(), tooltape::TapeError>(())
/// ```
pub struct SignKey(SigningKey);

impl SignKey {
    /// The key that comes from these secret bytes.
    pub fn from_seed(seed: [u8; 32]) -> SignKey {
        SignKey(SigningKey::from_bytes(&seed))
    }

    /// The part that may be known: 64 hexadecimal digits.
    pub fn public(&self) -> String {
        hex(self.0.verifying_key().as_bytes())
    }

    /// Signs a head.
    pub fn sign(&self, head: &mut RunHead) {
        let signature = self.0.sign(&head.signed_bytes());
        head.key = Some(self.public());
        head.signature = Some(hex(&signature.to_bytes()));
    }
}

impl RunHead {
    /// Checks that the holder of this public key signed exactly this head.
    pub fn signed_by(&self, public: &str) -> Result<(), TapeError> {
        let refused = |why: &str| TapeError::Foreign { why: format!("the head {why}") };
        let signature = self.signature.as_deref().ok_or_else(|| refused("is not signed"))?;
        let key = unhex::<32>(public).and_then(|key| VerifyingKey::from_bytes(&key).ok());
        let key = key.ok_or_else(|| refused("is compared with what is no public key"))?;
        let signature = unhex::<64>(signature).ok_or_else(|| refused("has no signature"))?;
        let signature = Signature::from_bytes(&signature);
        key.verify_strict(&self.signed_bytes(), &signature)
            .map_err(|_| refused("was not signed by this key, or was changed since"))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N || !text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return None;
    }
    let byte = |at: usize| u8::from_str_radix(&text[2 * at..2 * at + 2], 16);
    let mut bytes = [0; N];
    for (at, place) in bytes.iter_mut().enumerate() {
        *place = byte(at).ok()?;
    }
    Some(bytes)
}
