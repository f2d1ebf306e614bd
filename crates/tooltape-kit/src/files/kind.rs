//! What kind of file some bytes are, by how they begin.

/// How images begin that a model can look at, and their media types.
const IMAGES: [(usize, &[u8], &str); 5] = [
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (8, b"WEBP", "image/webp"),
];

/// How other files begin, and what they are.
const OTHERS: [(usize, &[u8], &str); 29] = [
    (0, b"%PDF-", "a PDF document"),
    (0, b"PK\x03\x04", "a ZIP archive, or an office document or package in one"),
    (0, b"PK\x05\x06", "an empty ZIP archive"),
    (0, b"\x1f\x8b", "gzip-compressed data"),
    (0, b"BZh", "bzip2-compressed data"),
    (0, b"\xfd7zXZ\0", "xz-compressed data"),
    (0, b"\x28\xb5\x2f\xfd", "zstd-compressed data"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (0, b"Rar!\x1a\x07", "a RAR archive"),
    (257, b"ustar", "a tar archive"),
    (0, b"!<arch>\n", "a library archive"),
    (0, b"\x7fELF", "an ELF program or library"),
    (0, b"MZ", "a Windows program or library"),
    (0, b"\xcf\xfa\xed\xfe", "a macOS program or library"),
    (0, b"\xca\xfe\xba\xbe", "a Java class or a macOS program"),
    (0, b"\0asm", "a WebAssembly module"),
    (0, b"SQLite format 3\0", "an SQLite database"),
    (0, b"ID3", "an MP3 recording"),
    (0, b"OggS", "an Ogg recording"),
    (0, b"fLaC", "a FLAC recording"),
    (0, b"RIFF", "a RIFF recording or film"),
    (4, b"ftyp", "an MP4 film, or an image in such a container"),
    (0, b"\x1a\x45\xdf\xa3", "a Matroska film"),
    (0, b"BM", "a bitmap image"),
    (0, b"II*\0", "a TIFF image"),
    (0, b"MM\0*", "a TIFF image"),
    (0, b"wOF2", "a font"),
    (0, b"\0\x01\0\0", "a font"),
    (0, b"\x80\x04", "a Python pickle"),
];

/// The media type of an image that a model can look at.
pub(super) fn image(bytes: &[u8]) -> Option<&'static str> {
    let media_type = known(&IMAGES, bytes)?;
    // The same container holds sound and film.
    (media_type != "image/webp" || bytes.starts_with(b"RIFF")).then_some(media_type)
}

/// What a file that is no text is, where that is known.
pub(super) fn other(bytes: &[u8]) -> Option<&'static str> {
    known(&OTHERS, bytes)
}

fn known(table: &[(usize, &[u8], &'static str)], bytes: &[u8]) -> Option<&'static str> {
    let begins = |at: usize, mark: &[u8]| bytes.get(at..).is_some_and(|it| it.starts_with(mark));
    table.iter().find(|(at, mark, _)| begins(*at, mark)).map(|(.., what)| *what)
}
