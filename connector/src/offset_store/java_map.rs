//! Debezium's offset file: a `HashMap<byte[], byte[]>` written by `java.io.ObjectOutputStream`.
//!
//! ```text
//! AC ED 00 05                                  magic, version
//! 73 72 "java.util.HashMap" serial 03          object, class description, flags: serialisable, writes its own data
//!    00 02 'F' "loadFactor" 'I' "threshold"    fields
//!    78 70                                     no annotation, no superclass
//!    f32 i32                                   the fields' values
//!    77 08 i32 i32                             block of 8 bytes: capacity, number of entries
//!    (key value)*                              each an array or null
//!    78                                        end
//! array = 75 class length:i32 byte*            class: 72 "[B" serial 02 00 00 78 70 the first time, then 71 handle
//!       | 71 handle                            the same array again
//!       | 70                                   null
//! ```
//!
//! All numbers are big-endian. Handles count from 0x7e0000 in the order in which things are written: class
//! descriptions, objects, arrays.
//!
//! Source: Java Object Serialization Specification, chapter 6; `java.util.HashMap#writeObject` (OpenJDK 17); Kafka
//! Connect 4.3, `FileOffsetBackingStore#save`.

/// An entry: the bytes of key and value, `None` for Java's null.
pub(crate) type Entry<'a> = (Option<&'a [u8]>, Option<&'a [u8]>);

/// First bytes of a Java serialisation stream: magic and version.
pub(crate) const JAVA_STREAM: [u8; 4] = [0xac, 0xed, 0x00, 0x05];

const NULL: u8 = 0x70;
const REFERENCE: u8 = 0x71;
const OBJECT: u8 = 0x73;
const ARRAY: u8 = 0x75;
const BLOCK: u8 = 0x77;
const END: u8 = 0x78;
const FIRST_HANDLE: u32 = 0x007e_0000;
/// Handle of the class description of `byte[]`: behind those of the map's class and of the map.
const BYTES_CLASS: u32 = FIRST_HANDLE + 2;

/// Behind the object's tag: class description of `HashMap`, up to the values of its fields.
const HASH_MAP: &[u8] =
    b"\x72\0\x11java.util.HashMap\x05\x07\xda\xc1\xc3\x16\x60\xd1\x03\0\x02F\0\x0aloadFactorI\0\x09thresholdxp";
/// Class description of `byte[]`.
const BYTES: &[u8] = b"\x72\0\x02[B\xac\xf3\x17\xf8\x06\x08\x54\xe0\x02\0\0xp";

/// No offset file has more: one entry per connector.
const MAX_ENTRIES: u32 = 65_536;

/// Why a file is not such a map. Offsets count bytes from the file's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JavaMapError {
    /// The file ends too early.
    #[error("it ends at byte {at} inside {what}")]
    Truncated {
        /// What was being read.
        what: &'static str,
        /// Where that begins.
        at: usize,
    },
    /// Something else stands where a part of the map must be.
    #[error("there is no {what} at byte {at}")]
    Unexpected {
        /// What was expected.
        what: &'static str,
        /// Where.
        at: usize,
    },
    /// A back reference names nothing that was read before, or no array.
    #[error("the reference at byte {at} names no array that comes before it")]
    Reference {
        /// Where the reference begins.
        at: usize,
    },
    /// The number of entries is negative or beyond what an offset file holds.
    #[error("the number of entries at byte {at} is {count}, not one from 0 to {MAX_ENTRIES}")]
    Entries {
        /// Where the number begins.
        at: usize,
        /// The number.
        count: i32,
    },
    /// Bytes follow the map.
    #[error("{left} bytes follow the map at byte {at}")]
    Trailing {
        /// Where they begin.
        at: usize,
        /// How many.
        left: usize,
    },
}

/// Reads a whole file. Entries come in the file's order, which means nothing.
///
/// # Errors
///
/// [`JavaMapError`]: the bytes are not exactly one map of byte arrays.
pub(crate) fn read(bytes: &[u8]) -> Result<Vec<Entry<'_>>, JavaMapError> {
    let mut reader = Reader { bytes, at: 0, arrays: Vec::new(), class_known: false };
    reader.literal("Java serialisation stream", &JAVA_STREAM)?;
    reader.literal("object", &[OBJECT])?;
    reader.literal("description of java.util.HashMap", HASH_MAP)?;
    // Load factor and threshold say how Java grows the table; they are nothing of its content.
    reader.take("the map's fields", 8)?;
    reader.literal("block of 8 bytes", &[BLOCK, 8])?;
    reader.take("the map's capacity", 4)?;
    let at = reader.at;
    let count = i32::from_be_bytes(reader.array("the number of entries")?);
    let entries = u32::try_from(count)
        .ok()
        .filter(|&entries| entries <= MAX_ENTRIES)
        .ok_or(JavaMapError::Entries { at, count })?;
    let mut found = Vec::new();
    for _ in 0..entries {
        found.push((reader.bytes("key")?, reader.bytes("value")?));
    }
    reader.literal("end of the map", &[END])?;
    match bytes.len() - reader.at {
        0 => Ok(found),
        left => Err(JavaMapError::Trailing { at: reader.at, left }),
    }
}

/// The bytes of a file with these entries, in this order, as Java would write it.
///
/// `None` when a length is beyond Java's 31 bits, or there are too many entries.
pub(crate) fn write(entries: &[(&[u8], &[u8])]) -> Option<Vec<u8>> {
    let count = u32::try_from(entries.len()).ok().filter(|&count| count <= MAX_ENTRIES)?;
    // Java doubles the table when it is three quarters full.
    let mut capacity: u32 = 16;
    while capacity / 4 * 3 < count {
        capacity *= 2;
    }
    let mut out = JAVA_STREAM.to_vec();
    out.push(OBJECT);
    out.extend(HASH_MAP);
    out.extend(0.75_f32.to_be_bytes());
    out.extend((capacity / 4 * 3).to_be_bytes());
    out.extend([BLOCK, 8]);
    out.extend(capacity.to_be_bytes());
    out.extend(count.to_be_bytes());
    let arrays = entries.iter().flat_map(|&(key, value)| [key, value]);
    for (index, array) in arrays.enumerate() {
        out.push(ARRAY);
        if index == 0 {
            out.extend(BYTES);
        } else {
            out.push(REFERENCE);
            out.extend(BYTES_CLASS.to_be_bytes());
        }
        out.extend(i32::try_from(array.len()).ok()?.to_be_bytes());
        out.extend(array);
    }
    out.push(END);
    Some(out)
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Arrays so far; the first has the handle behind that of their class.
    arrays: Vec<&'a [u8]>,
    class_known: bool,
}

impl<'a> Reader<'a> {
    fn take(&mut self, what: &'static str, length: usize) -> Result<&'a [u8], JavaMapError> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let taken = rest.get(..length).ok_or(JavaMapError::Truncated { what, at: self.at })?;
        self.at += length;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], JavaMapError> {
        let at = self.at;
        self.take(what, N)?.try_into().map_err(|_| JavaMapError::Truncated { what, at })
    }

    fn literal(&mut self, what: &'static str, expected: &[u8]) -> Result<(), JavaMapError> {
        let at = self.at;
        if self.take(what, expected.len())? == expected {
            Ok(())
        } else {
            Err(JavaMapError::Unexpected { what, at })
        }
    }

    /// An array, a reference to an earlier one, or null.
    fn bytes(&mut self, what: &'static str) -> Result<Option<&'a [u8]>, JavaMapError> {
        let at = self.at;
        let [tag] = self.array(what)?;
        match tag {
            NULL => Ok(None),
            REFERENCE => {
                let handle = u32::from_be_bytes(self.array("a reference")?);
                let index = handle.checked_sub(BYTES_CLASS + 1);
                index
                    .and_then(|index| self.arrays.get(usize::try_from(index).ok()?))
                    .map(|&array| Some(array))
                    .ok_or(JavaMapError::Reference { at })
            }
            ARRAY => {
                self.class()?;
                let at = self.at;
                let length = i32::from_be_bytes(self.array("the length of an array")?);
                let length = usize::try_from(length)
                    .map_err(|_| JavaMapError::Unexpected { what: "length of an array", at })?;
                let array = self.take(what, length)?;
                self.arrays.push(array);
                Ok(Some(array))
            }
            _ => Err(JavaMapError::Unexpected { what: "array of bytes", at }),
        }
    }

    /// The class of an array: described the first time, referred to after that.
    fn class(&mut self) -> Result<(), JavaMapError> {
        if self.class_known {
            self.literal("reference to byte[]", &[REFERENCE])?;
            return self.literal("reference to byte[]", &BYTES_CLASS.to_be_bytes());
        }
        self.class_known = true;
        self.literal("description of byte[]", BYTES)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Written by `ObjectOutputStream` of OpenJDK 17.0.15: four entries, two of which share one value array, one of
    /// which is null.
    const JAVA: &[u8] = include_bytes!("fixtures/openjdk-17.0.15.dat");

    fn texts(entries: &[Entry<'_>]) -> Vec<(String, Option<String>)> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        entries.iter().map(|&(key, value)| (text(key.unwrap()), value.map(text))).collect()
    }

    #[test]
    fn a_map_that_java_wrote_is_read() {
        let shared = r#"{"file":"mysql-bin.000009","pos":157}"#;
        let engine = r#"{"ts_sec":1767225600,"file":"mysql-bin.000003","pos":3687,"gtids":"3e11fa47-71ca-11e1-9e33-c80aa9429562:1-10","row":6,"server_id":1,"event":10}"#;
        let expected = [
            (r#"["engine",{"server":"spa"}]"#, Some(engine)),
            (r#"["another",{"server":"shop"}]"#, Some(shared)),
            (r#"["other",{"server":"shop"}]"#, Some(shared)),
            (r#"["gone",{"server":"spa"}]"#, None),
        ];
        let expected = expected.map(|(key, value)| (key.to_owned(), value.map(str::to_owned)));
        assert_eq!(texts(&read(JAVA).unwrap()), expected);
    }

    #[test]
    fn what_is_written_begins_with_javas_bytes() {
        let entries = read(JAVA).unwrap();
        let (key, value) = entries[0];
        let ours = write(&[(key.unwrap(), value.unwrap())]).unwrap();
        let count = HASH_MAP.len() + 5 + 8 + 2 + 4;
        assert_eq!(ours[..count], JAVA[..count]);
        assert_eq!(ours[count..count + 4], 1_u32.to_be_bytes());
        assert_eq!(ours[count + 4..ours.len() - 1], JAVA[count + 4..ours.len() - 1]);
        assert_eq!(ours.last(), Some(&END));
    }

    #[test]
    fn every_prefix_and_every_extra_byte_is_an_error() {
        for len in 0..JAVA.len() {
            let error = read(&JAVA[..len]).unwrap_err();
            assert!(
                matches!(error, JavaMapError::Truncated { at, .. } if at <= len),
                "{len} bytes: {error}"
            );
        }
        let longer = [JAVA, &[0]].concat();
        assert_eq!(read(&longer), Err(JavaMapError::Trailing { at: JAVA.len(), left: 1 }));
    }

    #[test]
    fn errors_name_what_is_wrong_and_where() {
        let changed = |at: usize, bytes: &[u8]| {
            let mut file = JAVA.to_vec();
            file[at..at + bytes.len()].copy_from_slice(bytes);
            read(&file).unwrap_err()
        };
        let entries = 0x4d;
        let reference = 0x197;
        let cases = [
            (changed(7, b"x"), "there is no description of java.util.HashMap at byte 5"),
            (
                changed(entries, &[0xff; 4]),
                "the number of entries at byte 77 is -1, not one from 0 to 65536",
            ),
            (
                changed(entries, &[0x7f, 0xff, 0xff, 0xff]),
                "the number of entries at byte 77 is 2147483647, not one from 0 to 65536",
            ),
            (changed(0x64, &[0xff; 4]), "there is no length of an array at byte 100"),
            (changed(0x64, &[0x7f, 0xff, 0xff, 0xff]), "it ends at byte 104 inside key"),
            (
                changed(reference, &[0x71, 0, 0x7e, 0, 9]),
                "the reference at byte 407 names no array that comes before it",
            ),
            (
                changed(reference, &[0x71, 0, 0x7e, 0, 2]),
                "the reference at byte 407 names no array that comes before it",
            ),
            (changed(reference, &[0x74]), "there is no array of bytes at byte 407"),
        ];
        for (error, text) in cases {
            assert_eq!(error.to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), start in 0..JAVA.len()) {
            let _ = read(&bytes);
            let _ = read(&[&JAVA[..start], bytes.as_slice()].concat());
        }

        #[test]
        fn what_is_written_is_read(entries in proptest::collection::vec((".{0,20}", ".{0,300}"), 0..40)) {
            let entries: Vec<(&[u8], &[u8])> =
                entries.iter().map(|(key, value)| (key.as_bytes(), value.as_bytes())).collect();
            let file = write(&entries).unwrap();
            let expected: Vec<Entry<'_>> =
                entries.iter().map(|&(key, value)| (Some(key), Some(value))).collect();
            prop_assert_eq!(read(&file), Ok(expected));
        }
    }
}
