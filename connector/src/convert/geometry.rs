//! Geometries and vectors.

use super::ConvertFailure;
use crate::format::json as token;

/// A geometry's well-known binary form and its spatial reference.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape<'a> {
    pub(crate) wkb: &'a [u8],
    /// Absent for 0.
    pub(crate) srid: Option<i32>,
}

/// What stands for a geometry that must be there and is not: an empty collection, as Debezium writes it.
pub(crate) const EMPTY: Shape<'static> = Shape { wkb: &[1, 7, 0, 0, 0, 0, 0, 0, 0], srid: None };

impl<'a> Shape<'a> {
    /// Splits the server's form: 4 bytes spatial reference, little-endian, then well-known binary.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, ConvertFailure> {
        let (srid, wkb) = bytes.split_first_chunk::<4>().ok_or(ConvertFailure::Malformed)?;
        let srid = i32::from_le_bytes(*srid);
        Ok(Self { wkb, srid: (srid != 0).then_some(srid) })
    }

    /// The coordinates of a point: byte order, type 1, two 64-bit floats, 21 bytes in all.
    pub(crate) fn coordinates(&self) -> Result<(f64, f64), ConvertFailure> {
        let bytes: &[u8; 21] = self.wkb.try_into().map_err(|_| ConvertFailure::Malformed)?;
        let (head, coordinates) = bytes.split_at(5);
        let [x, y] = coordinates.as_chunks::<8>().0 else { return Err(ConvertFailure::Malformed) };
        Ok(if head.first() == Some(&0) {
            (f64::from_be_bytes(*x), f64::from_be_bytes(*y))
        } else {
            (f64::from_le_bytes(*x), f64::from_le_bytes(*y))
        })
    }

    pub(crate) fn write_members(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\"wkb\":");
        token::write_base64(self.wkb, out);
        out.extend_from_slice(b",\"srid\":");
        match self.srid {
            Some(srid) => token::write_i64(i64::from(srid), out),
            None => token::write_null(out),
        }
    }
}

/// The items of a VECTOR: 32-bit floats, little-endian. Bytes that are no whole item are left out.
pub(crate) fn floats(bytes: &[u8]) -> impl Iterator<Item = f32> {
    bytes.as_chunks::<4>().0.iter().map(|item| f32::from_le_bytes(*item))
}
