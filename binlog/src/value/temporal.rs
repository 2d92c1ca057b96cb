//! Dates and times by their parts, never normalised: zero and impossible dates stay what the server stored.
//!
//! The packed forms are those of MySQL's `mysys/my_time.cc` (`my_datetime_packed_from_binary`,
//! `my_time_packed_from_binary`, `my_timestamp_from_binary`); MariaDB writes the same. Parts outside the ranges that
//! the types here document are a [`DecodeError`], so a decoded value always keeps them.

use crate::wire::{Cursor, DecodeError};

const SECOND: i64 = 1_000_000;

/// A DATE: year 0 to 9999, month 0 to 12, day 0 to 31. Any part may be zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Date {
    /// Year, 0 to 9999.
    pub year: u16,
    /// Month, 1 to 12, 0 in a zero date.
    pub month: u8,
    /// Day of the month, 1 to 31, 0 in a zero date.
    pub day: u8,
}

impl Date {
    /// Reads the 3-byte form of DATE and NEWDATE: day in 5 bits, month in 4, year in 15, little-endian.
    #[inline]
    pub(crate) fn read(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        let packed = u64::from(cursor.u24_le("date")?);
        Self::from_parts(packed >> 9, packed >> 5 & 15, packed & 31)
    }

    /// Checks the parts against the documented ranges.
    #[inline]
    pub(crate) fn from_parts(year: u64, month: u64, day: u64) -> Result<Self, DecodeError> {
        if year > 9999 || month > 12 || day > 31 {
            return Err(out_of_range("date", year, month, day));
        }
        Ok(Self { year: narrow16(year), month: narrow8(month), day: narrow8(day) })
    }

    /// Whether year, month and day are all zero: `0000-00-00`.
    #[inline]
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.year == 0 && self.month == 0 && self.day == 0
    }

    /// Days since 1970-01-01 in the proleptic Gregorian calendar (the year 0000 is a leap year), or `None` when the
    /// date does not exist there: a zero month or day, 30 February, 29 February of a common year.
    #[inline]
    #[must_use]
    pub fn days_since_epoch(self) -> Option<i64> {
        if self.day == 0 || self.day > days_in_month(self.year, self.month) {
            return None;
        }
        // The year is counted from March, so that the leap day is its last; 400 years more keep it above zero.
        let shifted = self.month < 3;
        let year = u32::from(self.year) + 400 - u32::from(shifted);
        let month = (u32::from(self.month) + 9) % 12;
        let day_of_year = (153 * month + 2) / 5 + u32::from(self.day) - 1;
        let days = 365 * year + year / 4 - year / 100 + year / 400 + day_of_year;
        Some(i64::from(days) - (719_468 + 146_097))
    }
}

/// A TIME: from -838:59:59.999999 to 838:59:59.999999, held as signed microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Time {
    /// Microseconds, negative before midnight.
    pub micros: i64,
    /// Declared fraction digits, 0 to 6.
    pub fsp: u8,
}

impl Time {
    /// Reads TIME2: sign, one unused bit, 10 bits hour, 6 minute, 6 second, then the fraction, big-endian and offset
    /// by half its range, so that a negative time is the complement of the whole, fraction included.
    #[inline]
    pub(crate) fn read(cursor: &mut Cursor<'_>, fsp: u8) -> Result<Self, DecodeError> {
        let [a, b, c] = cursor.array("time")?;
        let high = i64::from(u32::from_be_bytes([0, a, b, c]));
        // The bits of the fraction and the microseconds that one unit of it stands for.
        let (low, bits, unit) = match fsp.div_ceil(2) {
            0 => (0, 0, 0),
            1 => (i64::from(cursor.u8("time")?), 8, 10_000),
            2 => (i64::from(u16::from_be_bytes(cursor.array("time")?)), 16, 100),
            _ => {
                let [a, b, c] = cursor.array("time")?;
                (i64::from(u32::from_be_bytes([0, a, b, c])), 24, 1)
            }
        };
        let signed = ((high - 0x80_0000) << bits) + low;
        let size = signed.unsigned_abs();
        let clock = size >> bits;
        let micros = (size & ((1 << bits) - 1)) * unit;
        let (hour, minute, second) = (clock >> 12, clock >> 6 & 63, clock & 63);
        if hour > 838 || minute > 59 || second > 59 || micros > 999_999 {
            return Err(DecodeError::Invalid { field: "time", value: size });
        }
        let micros = ((hour * 3600 + minute * 60 + second) * 1_000_000 + micros).cast_signed();
        Ok(Self { micros: if signed < 0 { -micros } else { micros }, fsp })
    }

    /// Reads the form before MySQL 5.6.4: the decimal number `HHMMSS` in 24 bits, signed.
    pub(crate) fn read_old(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        let packed = cursor.u24_le("time")?;
        let negative = packed >= 0x80_0000;
        let size = if negative { 0x100_0000 - packed } else { packed };
        let (hour, minute, second) = (size / 10_000, size / 100 % 100, size % 100);
        if hour > 838 || minute > 59 || second > 59 {
            return Err(DecodeError::Invalid { field: "time", value: packed.into() });
        }
        let micros = i64::from(hour * 3600 + minute * 60 + second) * SECOND;
        Ok(Self { micros: if negative { -micros } else { micros }, fsp: 0 })
    }
}

/// A DATETIME: a date and a time of day, in no time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DateTime {
    /// The date.
    pub date: Date,
    /// Hour, 0 to 23.
    pub hour: u8,
    /// Minute, 0 to 59.
    pub minute: u8,
    /// Second, 0 to 59.
    pub second: u8,
    /// Declared fraction digits, 0 to 6.
    pub fsp: u8,
    /// Microsecond, 0 to 999999.
    pub micro: u32,
}

impl DateTime {
    /// Reads DATETIME2: a set bit, 17 bits `year * 13 + month`, 5 day, 5 hour, 6 minute, 6 second, big-endian, then
    /// the fraction.
    #[inline]
    pub(crate) fn read(cursor: &mut Cursor<'_>, fsp: u8) -> Result<Self, DecodeError> {
        let (packed, micro) = if fsp > 4 {
            // Date, clock and fraction in one read.
            let all = u64::from_be_bytes(cursor.array("datetime")?);
            (all >> 24, micros(all & 0xff_ffff, 1, "datetime fraction")?)
        } else {
            let [a, b, c, d, e] = cursor.array("datetime")?;
            let packed = u64::from_be_bytes([0, 0, 0, a, b, c, d, e]);
            (packed, read_fraction(cursor, fsp, "datetime fraction")?)
        };
        let year_month = packed >> 22 & 0x1_ffff;
        let (day, hour) = (packed >> 17 & 31, packed >> 12 & 31);
        let (minute, second) = (packed >> 6 & 63, packed & 63);
        if packed >> 39 == 0 || hour > 23 || minute > 59 || second > 59 {
            return Err(out_of_range("datetime", hour, minute, second));
        }
        Ok(Self {
            date: Date::from_parts(year_month / 13, year_month % 13, day)?,
            hour: narrow8(hour),
            minute: narrow8(minute),
            second: narrow8(second),
            fsp,
            micro,
        })
    }

    /// Reads the form before MySQL 5.6.4: the decimal number `YYYYMMDDHHMMSS` in 64 bits.
    pub(crate) fn read_old(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        let packed = cursor.u64_le("datetime")?;
        let (date, clock) = (packed / 1_000_000, packed % 1_000_000);
        let (hour, minute, second) = (clock / 10_000, clock / 100 % 100, clock % 100);
        if hour > 23 || minute > 59 || second > 59 {
            return Err(DecodeError::Invalid { field: "datetime", value: packed });
        }
        Ok(Self {
            date: Date::from_parts(date / 10_000, date / 100 % 100, date % 100)?,
            hour: narrow8(hour),
            minute: narrow8(minute),
            second: narrow8(second),
            fsp: 0,
            micro: 0,
        })
    }

    /// Microseconds since midnight, 0 to 86,399,999,999.
    #[inline]
    #[must_use]
    pub fn micros_of_day(self) -> i64 {
        let seconds =
            (i64::from(self.hour) * 60 + i64::from(self.minute)) * 60 + i64::from(self.second);
        seconds * SECOND + i64::from(self.micro)
    }

    /// Microseconds since 1970-01-01 00:00:00, as if in UTC, or `None` when the date does not exist (see
    /// [`Date::days_since_epoch`]).
    #[inline]
    #[must_use]
    pub fn micros_since_epoch(self) -> Option<i64> {
        Some(self.date.days_since_epoch()? * (86_400 * SECOND) + self.micros_of_day())
    }
}

/// A TIMESTAMP: seconds since 1970-01-01 00:00:00 UTC; 0 with no fraction is the zero timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Timestamp {
    /// Seconds since the epoch.
    pub seconds: u32,
    /// Microsecond, 0 to 999999.
    pub micro: u32,
    /// Declared fraction digits, 0 to 6.
    pub fsp: u8,
}

impl Timestamp {
    /// Reads TIMESTAMP2: seconds in 32 bits, big-endian, then the fraction.
    #[inline]
    pub(crate) fn read(cursor: &mut Cursor<'_>, fsp: u8) -> Result<Self, DecodeError> {
        let seconds = u32::from_be_bytes(cursor.array("timestamp")?);
        Ok(Self { seconds, micro: read_fraction(cursor, fsp, "timestamp fraction")?, fsp })
    }

    /// Reads the form before MySQL 5.6.4: seconds in 32 bits, little-endian.
    #[inline]
    pub(crate) fn read_old(cursor: &mut Cursor<'_>) -> Result<Self, DecodeError> {
        Ok(Self { seconds: cursor.u32_le("timestamp")?, micro: 0, fsp: 0 })
    }

    /// Whether this is the zero timestamp, `0000-00-00 00:00:00`.
    #[inline]
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.seconds == 0 && self.micro == 0
    }

    /// Microseconds since 1970-01-01 00:00:00 UTC.
    #[inline]
    #[must_use]
    pub fn micros(self) -> i64 {
        i64::from(self.seconds) * SECOND + i64::from(self.micro)
    }
}

/// Reads the fraction of DATETIME2 and TIMESTAMP2 as microseconds: a big-endian number of `ceil(fsp / 2)` bytes, which
/// counts hundredths, ten-thousandths or millionths of a second.
#[inline]
fn read_fraction(
    cursor: &mut Cursor<'_>,
    fsp: u8,
    field: &'static str,
) -> Result<u32, DecodeError> {
    match fsp.div_ceil(2) {
        0 => Ok(0),
        1 => micros(cursor.u8(field)?.into(), 10_000, field),
        2 => micros(u16::from_be_bytes(cursor.array(field)?).into(), 100, field),
        _ => {
            let [a, b, c] = cursor.array(field)?;
            micros(u32::from_be_bytes([0, a, b, c]).into(), 1, field)
        }
    }
}

/// A fraction in units of so many microseconds, checked to be below a second.
#[inline]
fn micros(fraction: u64, unit: u64, field: &'static str) -> Result<u32, DecodeError> {
    match u32::try_from(fraction * unit) {
        Ok(micros @ ..1_000_000) => Ok(micros),
        _ => Err(DecodeError::Invalid { field, value: fraction }),
    }
}

/// Days of a month, 0 for a month that does not exist.
fn days_in_month(year: u16, month: u8) -> u8 {
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => {
            29
        }
        2 => 28,
        _ => 0,
    }
}

/// The error for parts outside their ranges; the value shows all three as one decimal number.
#[cold]
fn out_of_range(field: &'static str, a: u64, b: u64, c: u64) -> DecodeError {
    let value = a * 10_000 + b * 100 + c;
    DecodeError::Invalid { field, value }
}

#[expect(clippy::cast_possible_truncation, reason = "callers have checked the range")]
const fn narrow8(value: u64) -> u8 {
    value as u8
}

#[expect(clippy::cast_possible_truncation, reason = "callers have checked the range")]
const fn narrow16(value: u64) -> u16 {
    value as u16
}
