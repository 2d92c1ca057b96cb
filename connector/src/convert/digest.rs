//! Salted digests of text: `column.mask.hash.ALGORITHM.with.salt.SALT` and its second version.

use md2::Md2;
use md5::Md5;
use sha1::Sha1;
use sha2::digest::Digest;
use sha2::{Sha224, Sha256, Sha384, Sha512, Sha512_224, Sha512_256};
use sha3::{Sha3_224, Sha3_256, Sha3_384, Sha3_512};

/// The digests there are, by Java's names for them.
pub(crate) const ALGORITHMS: &[(&str, Algorithm)] = &[
    ("MD2", Algorithm::Md2),
    ("MD5", Algorithm::Md5),
    ("SHA", Algorithm::Sha1),
    ("SHA1", Algorithm::Sha1),
    ("SHA-1", Algorithm::Sha1),
    ("SHA-224", Algorithm::Sha224),
    ("SHA-256", Algorithm::Sha256),
    ("SHA-384", Algorithm::Sha384),
    ("SHA-512", Algorithm::Sha512),
    ("SHA-512/224", Algorithm::Sha512Of224),
    ("SHA-512/256", Algorithm::Sha512Of256),
    ("SHA3-224", Algorithm::Sha3Of224),
    ("SHA3-256", Algorithm::Sha3Of256),
    ("SHA3-384", Algorithm::Sha3Of384),
    ("SHA3-512", Algorithm::Sha3Of512),
];

/// A digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Md2,
    Md5,
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
    Sha512Of224,
    Sha512Of256,
    Sha3Of224,
    Sha3Of256,
    Sha3Of384,
    Sha3Of512,
}

impl Algorithm {
    /// The digest that Java has under this name, in any case.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let mut known = ALGORITHMS.iter();
        known.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, algorithm)| *algorithm)
    }
}

/// What of a text is digested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HashedForm {
    /// The string as Java serialises it.
    Serialised,
    /// Its UTF-8 bytes (`hash.v2`).
    Plain,
}

/// A salted digest.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Hash {
    pub(crate) algorithm: Algorithm,
    pub(crate) salt: String,
    pub(crate) form: HashedForm,
}

/// The salt is left out: it is a secret.
impl std::fmt::Debug for Hash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hash")
            .field("algorithm", &self.algorithm)
            .field("form", &self.form)
            .finish_non_exhaustive()
    }
}

impl Hash {
    /// The digest of the salt and `text`, in lower-case hexadecimal digits.
    pub(crate) fn of(&self, text: &str) -> String {
        let mut data = self.salt.clone().into_bytes();
        match self.form {
            HashedForm::Serialised => write_serialised(text, &mut data),
            HashedForm::Plain => data.extend_from_slice(text.as_bytes()),
        }
        match self.algorithm {
            Algorithm::Md2 => digits(&Md2::digest(&data)),
            Algorithm::Md5 => digits(&Md5::digest(&data)),
            Algorithm::Sha1 => digits(&Sha1::digest(&data)),
            Algorithm::Sha224 => digits(&Sha224::digest(&data)),
            Algorithm::Sha256 => digits(&Sha256::digest(&data)),
            Algorithm::Sha384 => digits(&Sha384::digest(&data)),
            Algorithm::Sha512 => digits(&Sha512::digest(&data)),
            Algorithm::Sha512Of224 => digits(&Sha512_224::digest(&data)),
            Algorithm::Sha512Of256 => digits(&Sha512_256::digest(&data)),
            Algorithm::Sha3Of224 => digits(&Sha3_224::digest(&data)),
            Algorithm::Sha3Of256 => digits(&Sha3_256::digest(&data)),
            Algorithm::Sha3Of384 => digits(&Sha3_384::digest(&data)),
            Algorithm::Sha3Of512 => digits(&Sha3_512::digest(&data)),
        }
    }
}

fn digits(digest: &[u8]) -> String {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    let nibbles = digest.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    nibbles.filter_map(|nibble| DIGITS.get(usize::from(nibble))).collect()
}

/// Appends a string as Java's object stream has it: magic, version, tag, length, modified UTF-8.
fn write_serialised(text: &str, out: &mut Vec<u8>) {
    let mut modified = Vec::with_capacity(text.len());
    for unit in text.encode_utf16() {
        let [high, low] = unit.to_be_bytes();
        let tail = |byte: u8| 0x80 | byte & 0x3f;
        match unit {
            1..=0x7f => modified.push(low),
            0 | 0x80..=0x7ff => {
                modified.extend_from_slice(&[0xc0 | high << 2 | low >> 6, tail(low)]);
            }
            0x800.. => {
                modified.extend_from_slice(&[
                    0xe0 | high >> 4,
                    tail(high << 2 | low >> 6),
                    tail(low),
                ]);
            }
        }
    }
    out.extend_from_slice(&[0xac, 0xed, 0, 5]);
    match u16::try_from(modified.len()) {
        Ok(length) => {
            out.push(0x74);
            out.extend_from_slice(&length.to_be_bytes());
        }
        Err(_) => {
            out.push(0x7c);
            out.extend_from_slice(&(modified.len() as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(&modified);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_serialised_as_java_does() {
        for (text, bytes) in [
            ("a", &[0xac, 0xed, 0, 5, 0x74, 0, 1, b'a'][..]),
            ("\0é", &[0xac, 0xed, 0, 5, 0x74, 0, 4, 0xc0, 0x80, 0xc3, 0xa9]),
            ("€", &[0xac, 0xed, 0, 5, 0x74, 0, 3, 0xe2, 0x82, 0xac]),
            ("😀", &[0xac, 0xed, 0, 5, 0x74, 0, 6, 0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80]),
        ] {
            let mut out = Vec::new();
            write_serialised(text, &mut out);
            assert_eq!(out, bytes, "{text}");
        }
        let mut out = Vec::new();
        write_serialised(&"x".repeat(65_536), &mut out);
        assert_eq!(out.get(..13), Some(&[0xac, 0xed, 0, 5, 0x7c, 0, 0, 0, 0, 0, 1, 0, 0][..]));
    }

    /// Digests of "abc" as the standards give them.
    #[test]
    fn digests_are_those_of_the_standards() {
        for (name, digest) in [
            ("md5", "900150983cd24fb0d6963f7d28e17f72"),
            ("SHA", "a9993e364706816aba3e25717850c26c9cd0d89d"),
            ("sha-224", "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7"),
            ("MD2", "da853b0d3f88d99b30283a69e6ded6bb"),
            ("SHA3-224", "e642824c3f8cf24ad09234ee7d3c766fc9a3a5168d0c94ad73b46fdf"),
            ("sha3-256", "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532"),
            ("SHA-512/224", "4634270f707b6a54daae7530460842e20e37ed265ceee9a43e8924aa"),
        ] {
            let algorithm = Algorithm::named(name).unwrap();
            let hash = Hash { algorithm, salt: "ab".to_owned(), form: HashedForm::Plain };
            assert_eq!(hash.of("c"), digest, "{name}");
        }
        assert_eq!(Algorithm::named("CRC32"), None);
        let hash =
            Hash { algorithm: Algorithm::Md5, salt: "pepper".to_owned(), form: HashedForm::Plain };
        assert!(!format!("{hash:?}").contains("pepper"));
    }
}
