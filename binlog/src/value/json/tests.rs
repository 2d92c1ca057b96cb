use super::*;

/// Both texts of a document: the server's, then Debezium's.
fn texts(document: &[u8]) -> Result<[String; 2], JsonError> {
    let text = |style| {
        let mut out = b"kept".to_vec();
        let result = JsonBinary(document).write_text(style, &mut out);
        if result.is_err() {
            assert_eq!(out, b"kept");
        }
        result.map(|()| String::from_utf8(out.split_off(4)).unwrap())
    };
    Ok([text(JsonStyle::Server)?, text(JsonStyle::Debezium)?])
}

#[test]
fn scalars_print_alike_in_both_styles() {
    let table: [(&[u8], &str); 13] = [
        (b"", "null"),
        (b"\x04\x00", "null"),
        (b"\x04\x01", "true"),
        (b"\x04\x02", "false"),
        (b"\x05\x00\x80", "-32768"),
        (b"\x06\xff\xff", "65535"),
        (b"\x07\x00\x00\x00\x80", "-2147483648"),
        (b"\x08\xff\xff\xff\xff", "4294967295"),
        (b"\x09\0\0\0\0\0\0\0\x80", "-9223372036854775808"),
        (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff", "18446744073709551615"),
        (b"\x0b\0\0\0\0\0\0\xf8\x3f", "1.5"),
        (b"\x0c\x03abc", "\"abc\""),
        (b"\x0f\xf6\x05\x05\x02\x7f\xf3\xe1", "-12.30"),
    ];
    for (document, text) in table {
        assert_eq!(texts(document), Ok([text.to_owned(), text.to_owned()]), "{document:x?}");
        for len in 1..document.len() {
            assert!(texts(&document[..len]).is_err(), "{:x?}", &document[..len]);
        }
    }
}
