//! Dates and times by their parts, never normalised: zero and impossible dates stay what the server stored.
//!
//! The packed forms are those of MySQL's `mysys/my_time.cc` (`my_datetime_packed_from_binary`,
//! `my_time_packed_from_binary`, `my_timestamp_from_binary`); MariaDB writes the same. Parts outside the ranges that
//! the types here document are a [`DecodeError`], so a decoded value always keeps them.

use crate::wire::{Cursor, DecodeError};

const SECOND: i64 = 1_000_000;

/// The bits of the microseconds in a packed DATETIME with 6 fraction digits.
const MICROS: u64 = 0xff_ffff;

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
        // Which days a month has is asked for its last ones only.
        let is_last_days = self.day > 28 && self.day > days_in_month(self.year, self.month);
        if self.day == 0 || self.month == 0 || is_last_days {
            return None;
        }
        // The year is counted from March, so that the leap day is its last; 400 years more keep it above zero.
        let year = u32::from(self.year) + 400 - u32::from(self.month < 3);
        let century = year / 100;
        let before = DAYS_BEFORE_MONTH.get(usize::from(self.month)).copied()?;
        let day_of_year = u32::from(before) + u32::from(self.day);
        let days = 1461 * year / 4 - century + century / 4 + day_of_year;
        Some(i64::from(days) - (719_469 + 146_097))
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
    /// Reads DATETIME2 and checks its parts: a set bit, 17 bits `year * 13 + month`, 5 day, 5 hour, 6 minute, 6 second,
    /// big-endian, then the fraction. Gives them as they are with 6 fraction digits: microseconds in the lower 24 bits.
    #[inline(always)]
    pub(crate) fn read_packed(cursor: &mut Cursor<'_>, fsp: u8) -> Result<u64, DecodeError> {
        let [a, b, c, d, e] = cursor.array("datetime")?;
        let packed = u64::from_be_bytes([a, b, c, d, e, 0, 0, 0]);
        let micro = read_fraction(cursor, fsp, "datetime fraction")?;
        Self::check(packed | u64::from(micro))
    }

    /// The same for 5 or 6 fraction digits.
    #[inline(always)]
    pub(crate) fn read_packed_micros(cursor: &mut Cursor<'_>) -> Result<u64, DecodeError> {
        Self::check(u64::from_be_bytes(cursor.array("datetime")?))
    }

    #[inline(always)]
    fn check(packed: u64) -> Result<u64, DecodeError> {
        let (hour, minute, second) = (packed >> 36 & 31, packed >> 30 & 63, packed >> 24 & 63);
        // Without the set bit it is out of range, too.
        let year_month = (packed >> 46).wrapping_sub(1 << 17);
        if packed & MICROS > 999_999
            || hour > 23
            || minute > 59
            || second > 59
            || year_month > 9999 * 13 + 12
        {
            return Err(Self::out_of_range(packed));
        }
        Ok(packed)
    }

    /// The parts of what was read. Apart from it, so that they need not go through a `Result`, in memory, in which writing
    /// them byte by byte and reading them as a whole stalls the processor.
    #[inline(always)]
    pub(crate) const fn unpack(packed: u64, fsp: u8) -> Self {
        let year_month = packed >> 46 & 0x1_ffff;
        Self {
            date: Date {
                year: narrow16(year_month / 13),
                month: narrow8(year_month % 13),
                day: narrow8(packed >> 41 & 31),
            },
            hour: narrow8(packed >> 36 & 31),
            minute: narrow8(packed >> 30 & 63),
            second: narrow8(packed >> 24 & 63),
            fsp,
            micro: narrow32(packed & MICROS),
        }
    }

    #[cold]
    fn out_of_range(packed: u64) -> DecodeError {
        let micros = packed & MICROS;
        if micros > 999_999 {
            return DecodeError::Invalid { field: "datetime fraction", value: micros };
        }
        let year_month = packed >> 46 & 0x1_ffff;
        if packed >> 63 == 1 && year_month > 9999 * 13 + 12 {
            out_of_range("date", year_month / 13, year_month % 13, packed >> 41 & 31)
        } else {
            out_of_range("datetime", packed >> 36 & 31, packed >> 30 & 63, packed >> 24 & 63)
        }
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

/// Days from the first of March to the first of a month, by its number.
const DAYS_BEFORE_MONTH: [u16; 13] = [0, 306, 337, 0, 31, 61, 92, 122, 153, 184, 214, 245, 275];

/// Days of a month, 0 for a month that does not exist.
#[inline(never)]
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

#[expect(clippy::cast_possible_truncation, reason = "callers have checked the range")]
const fn narrow32(value: u64) -> u32 {
    value as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole<'a, T>(
        bytes: &'a [u8],
        read: impl Fn(&mut Cursor<'a>) -> Result<T, DecodeError>,
    ) -> Result<T, DecodeError> {
        for len in 0..bytes.len() {
            let error = read(&mut Cursor::new(&bytes[..len])).err();
            assert!(matches!(error, Some(DecodeError::Truncated { .. })), "{len}");
        }
        let mut cursor = Cursor::new(bytes);
        let value = read(&mut cursor);
        assert!(value.is_err() || cursor.is_empty());
        value
    }

    fn read_datetime(cursor: &mut Cursor<'_>, fsp: u8) -> Result<DateTime, DecodeError> {
        let packed = if fsp > 4 {
            DateTime::read_packed_micros(cursor)
        } else {
            DateTime::read_packed(cursor, fsp)
        };
        packed.map(|packed| DateTime::unpack(packed, fsp))
    }

    #[test]
    fn dates_count_days_in_the_proleptic_calendar() {
        let table = [
            (1970, 1, 1, Some(0)),
            (2024, 2, 29, Some(19_782)),
            (1000, 1, 1, Some(-354_285)),
            (1, 1, 1, Some(-719_162)),
            (0, 1, 1, Some(-719_528)),
            (0, 2, 29, Some(-719_469)),
            (1582, 10, 14, Some(-141_428)),
            (9999, 12, 31, Some(2_932_896)),
            (2000, 2, 29, Some(11_016)),
            (1900, 2, 29, None),
            (2023, 2, 29, None),
            (2024, 2, 30, None),
            (2024, 4, 31, None),
            (2024, 0, 1, None),
            (2024, 1, 0, None),
            (0, 0, 0, None),
        ];
        for (year, month, day, days) in table {
            let date = Date { year, month, day };
            assert_eq!(date.days_since_epoch(), days, "{date:?}");
        }
        let mut last = Date { year: 0, month: 1, day: 1 }.days_since_epoch().unwrap() - 1;
        for year in 0..=9999 {
            for month in 1..=12 {
                for day in 1..=31 {
                    if let Some(days) = (Date { year, month, day }).days_since_epoch() {
                        assert_eq!(days, last + 1);
                        last = days;
                    }
                }
            }
        }
    }

    #[test]
    fn a_packed_date_has_five_four_and_fifteen_bits() {
        let packed = |year: u32, month: u32, day: u32| {
            let [a, b, c, _] = (year << 9 | month << 5 | day).to_le_bytes();
            [a, b, c]
        };
        assert_eq!(
            whole(&packed(2024, 2, 29), Date::read),
            Ok(Date { year: 2024, month: 2, day: 29 })
        );
        assert_eq!(
            whole(&packed(2024, 0, 0), Date::read),
            Ok(Date { year: 2024, month: 0, day: 0 })
        );
        assert!(whole(&packed(0, 0, 0), Date::read).unwrap().is_zero());
        assert!(whole(&packed(2024, 13, 1), Date::read).is_err());
        assert!(whole(&packed(10_000, 1, 1), Date::read).is_err());
    }

    #[test]
    fn negative_times_are_the_complement_of_the_whole() {
        let table: [(&[u8], u8, i64); 10] = [
            (&[0x80, 0, 0], 0, 0),
            (&[0x80, 0xc8, 0xb8], 0, 45_296_000_000),
            (&[0x7f, 0xff, 0xff, 0xff, 0xf6], 3, -1000),
            (&[0x7f, 0xff, 0xff, 0xff, 0xff, 0xff], 6, -1),
            (&[0x7f, 0xff, 0xff, 0xf6], 1, -100_000),
            (&[0x7f, 0xff, 0xff, 0x00], 2, -1_000_000),
            (&[0x7f, 0xff, 0xff, 0, 0, 0], 6, -1_000_000),
            (&[0x7f, 0xff, 0xfe, 0xf8, 0x5e, 0xe0], 6, -1_500_000),
            (&[0xb4, 0x6e, 0xfb, 0x0f, 0x42, 0x3f], 6, 3_020_399_999_999),
            (&[0x4b, 0x91, 0x05], 0, -3_020_399_000_000),
        ];
        for (bytes, fsp, micros) in table {
            assert_eq!(
                whole(bytes, |c| Time::read(c, fsp)),
                Ok(Time { micros, fsp }),
                "{bytes:x?}"
            );
        }
        // 839 hours, 60 minutes, 100 hundredths of a second.
        assert!(Time::read(&mut Cursor::new(&[0xb4, 0x70, 0]), 0).is_err());
        assert!(Time::read(&mut Cursor::new(&[0x80, 0x0f, 0]), 0).is_err());
        assert!(Time::read(&mut Cursor::new(&[0x80, 0, 0, 100]), 2).is_err());
    }

    /// The five bytes of a DATETIME2 before its fraction.
    fn packed(year: u64, month: u64, day: u64, hour: u64, minute: u64, second: u64) -> Vec<u8> {
        let date = (year * 13 + month) << 5 | day;
        let clock = hour << 12 | minute << 6 | second;
        (1 << 39 | date << 17 | clock).to_be_bytes()[3..].to_vec()
    }

    #[test]
    fn datetimes_read_with_every_fraction_width() {
        let table: [(&[u8], u8, u32); 5] = [
            (&[], 0, 0),
            (&[70], 1, 700_000),
            (&[78], 2, 780_000),
            (&[0x1e, 0xd3], 4, 789_100),
            (&[0x0c, 0x0a, 0x83], 6, 789_123),
        ];
        for (fraction, fsp, micro) in table {
            let bytes = [&packed(2024, 2, 29, 12, 34, 56)[..], fraction].concat();
            let value = whole(&bytes, |cursor| read_datetime(cursor, fsp)).unwrap();
            assert_eq!(value.date, Date { year: 2024, month: 2, day: 29 });
            assert_eq!((value.hour, value.minute, value.second), (12, 34, 56));
            assert_eq!((value.fsp, value.micro), (fsp, micro));
            let micros = 1_709_210_096_000_000 + i64::from(micro);
            assert_eq!(value.micros_since_epoch(), Some(micros));
        }
        let zero = whole(&packed(0, 0, 0, 1, 2, 3), |cursor| read_datetime(cursor, 0)).unwrap();
        assert!(zero.date.is_zero());
        assert_eq!(zero.micros_since_epoch(), None);
        assert_eq!(zero.micros_of_day(), 3_723_000_000);
    }

    #[test]
    fn parts_out_of_range_are_an_error() {
        for parts in [
            packed(10_000, 1, 1, 0, 0, 0),
            packed(2024, 1, 1, 24, 0, 0),
            packed(2024, 1, 1, 0, 60, 0),
            packed(2024, 1, 1, 0, 0, 60),
        ] {
            assert!(read_datetime(&mut Cursor::new(&parts), 0).is_err(), "{parts:x?}");
        }
        let mut unsigned = packed(2024, 1, 1, 0, 0, 0);
        unsigned[0] &= 0x7f;
        assert!(read_datetime(&mut Cursor::new(&unsigned), 0).is_err());
        for (fraction, fsp) in [(&[100][..], 2), (&[0x27, 0x10], 4), (&[0x0f, 0x42, 0x40], 6)] {
            let bytes = [&packed(2024, 1, 1, 0, 0, 0)[..], fraction].concat();
            assert!(read_datetime(&mut Cursor::new(&bytes), fsp).is_err(), "{fsp}");
            let bytes = [&[0, 0, 0, 1][..], fraction].concat();
            assert!(Timestamp::read(&mut Cursor::new(&bytes), fsp).is_err(), "{fsp}");
        }
    }

    #[test]
    fn timestamps_are_seconds_and_a_fraction() {
        let bytes = [0x7f, 0xff, 0xff, 0xff, 0x13, 0x7e];
        let value = whole(&bytes, |cursor| Timestamp::read(cursor, 3)).unwrap();
        assert_eq!(value, Timestamp { seconds: 0x7fff_ffff, micro: 499_000, fsp: 3 });
        assert_eq!(value.micros(), 2_147_483_647_499_000);
        assert!(whole(&[0; 4], |cursor| Timestamp::read(cursor, 0)).unwrap().is_zero());
    }

    #[test]
    fn the_forms_before_mysql_5_6_are_decimal_numbers() {
        let [a, b, c, _] = 123_456_u32.to_le_bytes();
        let time = whole(&[a, b, c], Time::read_old).unwrap();
        assert_eq!(time, Time { micros: 45_296_000_000, fsp: 0 });
        let [a, b, c, _] = (-8_385_959_i32).to_le_bytes();
        let time = whole(&[a, b, c], Time::read_old).unwrap();
        assert_eq!(time.micros, -3_020_399_000_000);
        assert!(Time::read_old(&mut Cursor::new(&6000_u32.to_le_bytes()[..3])).is_err());

        let bytes = 20_240_229_123_456_u64.to_le_bytes();
        let datetime = whole(&bytes, DateTime::read_old).unwrap();
        assert_eq!(datetime.micros_since_epoch(), Some(1_709_210_096_000_000));
        assert!(DateTime::read_old(&mut Cursor::new(&u64::MAX.to_le_bytes())).is_err());

        let timestamp = whole(&[1, 2, 0, 0], Timestamp::read_old).unwrap();
        assert_eq!(timestamp.seconds, 513);
    }
}
