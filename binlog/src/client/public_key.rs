//! A check of the RSA public key that a server sends, before the cryptographic code sees it: that code takes a key
//! for well-formed.
//!
//! ```text
//! -----BEGIN PUBLIC KEY-----
//! base64 of SEQUENCE { SEQUENCE { algorithm, NULL }, BIT STRING { SEQUENCE { INTEGER modulus, INTEGER exponent } } }
//! -----END PUBLIC KEY-----
//! ```
//!
//! Source: RFC 5280 4.1 (`SubjectPublicKeyInfo`), RFC 8017 A.1.1, RFC 7468.

/// `rsaEncryption`, 1.2.840.113549.1.1.1, as an OBJECT IDENTIFIER followed by NULL.
const RSA: [u8; 13] = [0x06, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1, 0x05, 0];

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;

/// Checks a key and gives its modulus' length in bytes.
///
/// # Errors
///
/// What is wrong with the key.
pub(super) fn check(pem: &[u8]) -> Result<usize, &'static str> {
    let text = std::str::from_utf8(pem).map_err(|_| "it is not text")?;
    let body = text
        .trim_matches(|c: char| c.is_ascii_whitespace() || c == '\0')
        .strip_prefix("-----BEGIN PUBLIC KEY-----")
        .and_then(|rest| rest.strip_suffix("-----END PUBLIC KEY-----"))
        .ok_or("it is not a PEM public key")?;
    let der = base64(body.as_bytes()).ok_or("its base64 is broken")?;
    modulus_len(&der).ok_or("it is not an RSA key of 1024 to 16384 bits")
}

fn modulus_len(der: &[u8]) -> Option<usize> {
    let (info, []) = element(SEQUENCE, der)? else { return None };
    let (algorithm, rest) = element(SEQUENCE, info)?;
    let (bits, []) = element(BIT_STRING, rest)? else { return None };
    let (key, []) = element(SEQUENCE, bits.strip_prefix(&[0])?)? else { return None };
    let (modulus, rest) = element(INTEGER, key)?;
    let (exponent, []) = element(INTEGER, rest)? else { return None };
    // A positive number whose first bit is set has a zero byte before it; RSA moduli of whole bytes always do.
    let modulus = modulus.strip_prefix(&[0])?;
    let good = algorithm == RSA
        && (128..=2048).contains(&modulus.len())
        && modulus.first()? & 0x80 != 0
        && modulus.last()? & 1 == 1
        && exponent.len() <= 8
        && exponent.last()? & 1 == 1
        && exponent.first()? & 0x80 == 0;
    good.then_some(modulus.len())
}

/// The content of a DER element of type `tag`, and what follows it.
fn element(tag: u8, der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&[found, short], rest) = der.split_first_chunk()?;
    if found != tag {
        return None;
    }
    let (len, rest) = match short {
        0..=0x7f => (usize::from(short), rest),
        0x81 => {
            let (&[len], rest) = rest.split_first_chunk()?;
            (usize::from(len), rest)
        }
        0x82 => {
            let (len, rest) = rest.split_first_chunk()?;
            (usize::from(u16::from_be_bytes(*len)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(len)
}

fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut group, mut digits, mut padding) = (0_u32, 0, 0);
    for character in text.iter().filter(|byte| !byte.is_ascii_whitespace()) {
        let digit = match character {
            b'A'..=b'Z' => character - b'A',
            b'a'..=b'z' => character - b'a' + 26,
            b'0'..=b'9' => character - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'=' => {
                padding += 1;
                0
            }
            _ => return None,
        };
        if padding > 2 || (padding > 0 && *character != b'=') {
            return None;
        }
        group = group << 6 | u32::from(digit);
        digits += 1;
        if digits == 4 {
            let [_, a, b, c] = group.to_be_bytes();
            bytes.extend_from_slice([a, b, c].get(..3 - padding)?);
            (group, digits) = (0, 0);
        }
    }
    (digits == 0).then_some(bytes)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A 1024-bit key made for this test.
    pub(in crate::client) const KEY: &str = include_str!("testdata/public_key.pem");

    #[test]
    fn a_good_key_tells_its_length() {
        assert_eq!(check(KEY.as_bytes()), Ok(128));
        assert_eq!(check(format!("{KEY}\0").as_bytes()), Ok(128));
    }

    #[test]
    fn every_damaged_key_is_refused_or_still_a_key_and_encryption_does_not_panic() {
        for at in 0..KEY.len() {
            assert!(check(&KEY.as_bytes()[..at]).is_err() || KEY[at..].trim().is_empty(), "{at}");
            for byte in [b'A', b'/', b'=', b' ', 0xff, b'q'] {
                let mut damaged = KEY.as_bytes().to_vec();
                damaged[at] = byte;
                if check(&damaged).is_ok() {
                    let _ = mysql_common::crypto::encrypt(b"secret", &damaged);
                }
            }
        }
    }
}
