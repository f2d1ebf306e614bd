//! Finds what has a name, among few or many.

use std::cmp::Ordering;

/// The most names that are looked through from end to end; more are searched by halves.
const SCAN_MAX: usize = 32;

/// Something that is found by its name.
pub(super) trait Named {
    fn name(&self) -> &str;
}

/// Things by name.
///
/// Names are compared by their marks first, which stand side by side: one of up to eight bytes is
/// then known, and a longer one is compared in full with hardly any but its own.
pub(super) struct Fields<T> {
    marks: Box<[u64]>,
    /// In the order of their marks.
    fields: Box<[T]>,
}

impl<T: Named> Fields<T> {
    pub(super) fn new(mut fields: Vec<T>) -> Fields<T> {
        fields.sort_by_key(|field| mark(field.name()));
        let marks = fields.iter().map(|field| mark(field.name())).collect();
        Fields { marks, fields: fields.into() }
    }

    #[inline]
    pub(super) fn get(&self, name: &str) -> Option<&T> {
        let mark = mark(name);
        let first = match self.marks.len() {
            ..=SCAN_MAX => 0,
            _ => self.marks.partition_point(|other| *other < mark),
        };
        for (other, field) in self.marks[first..].iter().zip(&self.fields[first..]) {
            match other.cmp(&mark) {
                Ordering::Less => {}
                Ordering::Equal if is_named(field, name) => return Some(field),
                Ordering::Equal => {}
                Ordering::Greater => return None,
            }
        }
        None
    }
}

/// Whether it has that name, given that their marks are the same.
#[inline]
fn is_named(field: &impl Named, name: &str) -> bool {
    match name.len() {
        len @ ..=MARKED_BYTES => field.name().len() == len,
        _ => field.name() == name,
    }
}

/// The longest name, in bytes, that its mark and length tell from all others.
const MARKED_BYTES: usize = 8;

/// The first and last bytes of a name: up to eight, which are all that a short name has.
#[inline]
fn mark(name: &str) -> u64 {
    let bytes = name.as_bytes();
    match (bytes.first_chunk::<4>(), bytes.last_chunk::<4>(), bytes) {
        (Some(first), Some(last), _) => {
            u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last))
        }
        (_, _, &[first, .., last]) => {
            u64::from(first) | u64::from(bytes[bytes.len() / 2]) << 8 | u64::from(last) << 16
        }
        (_, _, &[only]) => u64::from(only),
        (_, _, []) => 0,
    }
}
