//! Statement text from the client's character set.

use std::borrow::Cow;

use mysql_common::collations::{Collation, CollationId};

use crate::convert::Charset;

/// Decodes a statement as the client wrote it. `client` is the collation id of the session's `character_set_client`,
/// from the query event's status variables; without one the text is UTF-8.
pub(crate) fn decode_statement(sql: &[u8], client: Option<u16>) -> Cow<'_, str> {
    let charset = client
        .map(|id| Collation::resolve(CollationId::from(id)))
        .and_then(|collation| Charset::named(collation.charset()))
        .unwrap_or(Charset::UTF8);
    charset.decode(sql)
}

/// The character set of a collation id; `None` for an id that is not known here, such as those of uca1400 collations.
pub(crate) fn charset_name(collation: u16) -> Option<String> {
    let collation = Collation::resolve(CollationId::from(collation));
    let name = collation.charset();
    (name != "unknown").then(|| name.to_owned())
}
