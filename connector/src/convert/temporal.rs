//! Dates and times: the calendar, and the units of `time.precision.mode`.

use holdfast_binlog::value::{Date, DateTime, Timestamp};

use super::datum::Logical;
use super::error::ConvertFailure;
use super::options::TimePrecisionMode;
use crate::format::json::two_digits;

const SECONDS_PER_DAY: i64 = 86_400;
const MICROS_PER_DAY: i64 = SECONDS_PER_DAY * 1_000_000;

/// A day of the proleptic Gregorian calendar that exists, from the year 0 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Day {
    year: i64,
    month: u8,
    day: u8,
}

impl Day {
    /// The day, if there is one. Year 0 is a leap year.
    pub(crate) fn new(year: i64, month: u8, day: u8) -> Option<Self> {
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let last = match month {
            1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
            4 | 6 | 9 | 11 => 30,
            2 if leap => 29,
            2 => 28,
            _ => return None,
        };
        (1..=last).contains(&day).then_some(Self { year, month, day })
    }

    /// The day that is this many days after 1970-01-01.
    fn from_days(days: i64) -> Self {
        // Years begin in March here, so that the leap day is the last of its year; an era is 400 such years.
        let days = days + 719_468;
        let era = days.div_euclid(146_097);
        let day_of_era = days.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
        let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        let small = |number: i64| u8::try_from(number).unwrap_or_default();
        Self { year, month: small(month), day: small(day) }
    }

    /// The same for a day that a TIMESTAMP reaches, in fewer steps.
    ///
    /// Source: Neri and Schneider, "Euclidean affine functions and their application to calendar algorithms", 2022, figure 12:
    /// quotients and remainders are the halves of products.
    #[inline]
    fn from_recent_days(days: u32) -> Self {
        let shifted = 4 * (days + 719_468) + 3;
        let (century, in_century) = (shifted / 146_097, shifted % 146_097 / 4);
        let product = u64::from(4 * in_century + 3) * 2_939_745;
        let [year_of_century, rest] = [product >> 32, product & 0xffff_ffff].map(low_u32);
        let day_of_year = rest / 2_939_745 / 4;
        let product = 2141 * day_of_year + 197_913;
        let (month_from_march, day) = (product >> 16, (product & 0xffff) / 2141);
        // Years begin in March here.
        let is_next = day_of_year >= 306;
        let month = if is_next { month_from_march - 12 } else { month_from_march };
        let year = 100 * century + year_of_century + u32::from(is_next);
        let [month, day] = [month, day + 1].map(|number| low_u32(number.into()).to_le_bytes()[0]);
        Self { year: year.into(), month, day }
    }

    /// Days since 1970-01-01.
    pub(crate) fn days(self) -> i64 {
        // Years begin in March here, so that the leap day is the last of its year, and 400 years later, so that none is
        // negative.
        let month = u32::from(self.month);
        let early = u32::from(month <= 2);
        let year = u32::try_from(self.year + 400).unwrap_or_default() - early;
        let day_of_year = (153 * (month + 12 * early - 3) + 2) / 5 + u32::from(self.day) - 1;
        let leap_days = year / 4 - year / 100 + year / 400;
        i64::from(year * 365 + leap_days + day_of_year) - 719_468 - 146_097
    }

    /// `2024-02-29`
    #[inline]
    fn text(self) -> [u8; 10] {
        let year = u32::try_from(self.year.clamp(0, 9999)).unwrap_or_default();
        let ([a, b], [c, d]) = (two_digits(year / 100), two_digits(year % 100));
        let ([e, f], [g, h]) = (two_digits(self.month.into()), two_digits(self.day.into()));
        [a, b, c, d, b'-', e, f, b'-', g, h]
    }

    /// Appends `2024-02-29`.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.text());
    }
}

/// A day and a time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    day: Day,
    /// Seconds since midnight.
    seconds: u32,
    /// Microseconds of the second.
    micros: u32,
}

impl Moment {
    /// 1970-01-01 00:00:00.
    pub(crate) const EPOCH: Self =
        Self { day: Day { year: 1970, month: 1, day: 1 }, seconds: 0, micros: 0 };

    /// `micros`: microseconds since midnight.
    pub(crate) fn new(day: Day, micros: i64) -> Self {
        let micros = u64::try_from(micros).unwrap_or_default();
        let low = |number: u64| u32::try_from(number).unwrap_or_default();
        Self { day, seconds: low(micros / 1_000_000), micros: low(micros % 1_000_000) }
    }

    #[inline]
    pub(crate) fn of(timestamp: Timestamp) -> Self {
        let day = Day::from_recent_days(timestamp.seconds / 86_400);
        Self { day, seconds: timestamp.seconds % 86_400, micros: timestamp.micro }
    }

    /// A day and the microseconds since its midnight, if there is such a day.
    pub(crate) fn at(year: i64, month: u8, day: u8, micros: i64) -> Option<Self> {
        Some(Self::new(Day::new(year, month, day)?, micros))
    }

    /// The moment that is this many microseconds after the epoch; from the year 0 on.
    pub(crate) fn from_micros(micros: i64) -> Self {
        let day = Day::from_days(micros.div_euclid(MICROS_PER_DAY));
        Self::new(day, micros.rem_euclid(MICROS_PER_DAY))
    }

    /// Microseconds since the epoch, as if in UTC.
    pub(crate) fn micros_since_epoch(self) -> i64 {
        let seconds = self.day.days() * SECONDS_PER_DAY + i64::from(self.seconds);
        seconds * 1_000_000 + i64::from(self.micros)
    }

    /// Appends `2024-02-29T12:34:56.789Z` with this many fraction digits, or with as many as needed.
    #[inline]
    pub(crate) fn write(self, digits: Option<u8>, out: &mut Vec<u8>) {
        let [a, b, c, d, e, f, g, h, i, j] = self.day.text();
        let [k, l, m, n, o, p, q, r] = clock_text(self.seconds);
        let text = [a, b, c, d, e, f, g, h, i, j, b'T', k, l, m, n, o, p, q, r];
        out.extend_from_slice(&text);
        write_fraction(self.micros, digits, out);
    }
}

/// What a DATE, TIME or DATETIME is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Millis,
    Micros,
    Nanos,
    Iso,
}

impl Unit {
    /// The unit of a DATETIME with this many fraction digits.
    pub(crate) fn of_datetime(mode: TimePrecisionMode, fraction_digits: i32) -> Self {
        match mode {
            TimePrecisionMode::AdaptiveTimeMicroseconds if fraction_digits > 3 => Self::Micros,
            TimePrecisionMode::AdaptiveTimeMicroseconds | TimePrecisionMode::Connect => {
                Self::Millis
            }
            TimePrecisionMode::IsoString => Self::Iso,
            TimePrecisionMode::Microseconds => Self::Micros,
            TimePrecisionMode::Nanoseconds => Self::Nanos,
        }
    }

    /// The unit of a TIME.
    pub(crate) fn of_time(mode: TimePrecisionMode) -> Self {
        match mode {
            TimePrecisionMode::AdaptiveTimeMicroseconds | TimePrecisionMode::Microseconds => {
                Self::Micros
            }
            TimePrecisionMode::Connect => Self::Millis,
            TimePrecisionMode::IsoString => Self::Iso,
            TimePrecisionMode::Nanoseconds => Self::Nanos,
        }
    }
}

/// How dates are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Calendar {
    /// Whether years below 100 mean 1970 to 2069.
    pub(crate) adjust: bool,
    /// Whether a date that does not exist becomes 1970-01-01.
    pub(crate) epoch_if_invalid: bool,
}

impl Calendar {
    /// Reads a date. One without a month or a day is a zero date.
    ///
    /// DIFFERS: a date in the year 0 is a zero date in Debezium while streaming, and a date in a snapshot
    /// (`RowDeserializers#deserializeDate`, `BinlogValueConverters#stringToLocalDate`).
    #[inline]
    fn read(self, date: Date) -> Result<Reading, ConvertFailure> {
        if date.month == 0 || date.day == 0 {
            return Ok(Reading::Zero);
        }
        let year = i64::from(date.year);
        match Day::new(year, date.month, date.day) {
            // A leap year stays one: 0 and 4 become 2000 and 2004, 72 becomes 1972.
            Some(day) if self.adjust => Ok(Reading::Day(Day { year: adjusted_year(year), ..day })),
            Some(day) => Ok(Reading::Day(day)),
            None if self.epoch_if_invalid => Ok(Reading::Epoch),
            None => Err(ConvertFailure::InvalidDate),
        }
    }

    /// The date with its year adjusted.
    #[inline]
    const fn adjusted(self, date: Date) -> Date {
        let year = match date.year {
            year @ 0..=69 if self.adjust => year + 2000,
            year @ 70..=99 if self.adjust => year + 1900,
            year => year,
        };
        Date { year, ..date }
    }

    /// A date in days since the epoch; none for what is no day.
    #[inline]
    pub(crate) fn days(self, date: Date) -> Option<i64> {
        self.adjusted(date).days_since_epoch()
    }

    /// A date and time in a unit of count; none for what is no moment, and what the unit cannot say.
    #[inline]
    pub(crate) fn count(self, value: DateTime, unit: Unit) -> Option<i64> {
        let days = self.days(value.date)?;
        if value.hour > 23 || value.minute > 59 || value.second > 59 || value.micro > 999_999 {
            return None;
        }
        let clock = (u32::from(value.hour) * 60 + u32::from(value.minute)) * 60;
        let seconds = days * SECONDS_PER_DAY + i64::from(clock + u32::from(value.second));
        match unit {
            Unit::Millis => Some(seconds * 1000 + i64::from(value.micro / 1000)),
            Unit::Micros => Some(seconds * 1_000_000 + i64::from(value.micro)),
            Unit::Nanos | Unit::Iso => None,
        }
    }

    pub(crate) fn date<'v>(
        self,
        date: Date,
        iso: bool,
    ) -> Result<Option<Logical<'v>>, ConvertFailure> {
        Ok(match self.read(date)? {
            Reading::Zero => None,
            Reading::Day(day) => Some(day_in(day, iso)),
            Reading::Epoch => Some(epoch_day(iso)),
        })
    }

    #[inline]
    pub(crate) fn datetime<'v>(
        self,
        value: DateTime,
        unit: Unit,
    ) -> Result<Option<Logical<'v>>, ConvertFailure> {
        let day = match self.read(value.date)? {
            Reading::Zero => return Ok(None),
            Reading::Day(day) => day,
            Reading::Epoch => return Ok(Some(epoch(unit))),
        };
        if value.hour > 23 || value.minute > 59 || value.second > 59 || value.micro > 999_999 {
            return Err(ConvertFailure::Malformed);
        }
        let seconds =
            (i64::from(value.hour) * 60 + i64::from(value.minute)) * 60 + i64::from(value.second);
        moment_in(Moment::new(day, seconds * 1_000_000 + i64::from(value.micro)), unit).map(Some)
    }
}

/// What a date turns out to be.
enum Reading {
    /// A zero date: NULL.
    Zero,
    /// A day that exists.
    Day(Day),
    /// No day at all, taken for 1970-01-01 00:00:00.
    Epoch,
}

/// A day as days since the epoch or as text.
pub(crate) fn day_in<'v>(day: Day, iso: bool) -> Logical<'v> {
    if iso { Logical::IsoDate(day) } else { Logical::Int(day.days()) }
}

/// A moment in a unit. Nanoseconds reach from 1677 to 2262.
#[inline]
pub(crate) fn moment_in<'v>(moment: Moment, unit: Unit) -> Result<Logical<'v>, ConvertFailure> {
    let micros = moment.micros_since_epoch();
    Ok(match unit {
        Unit::Millis => Logical::Int(micros.div_euclid(1000)),
        Unit::Micros => Logical::Int(micros),
        Unit::Nanos => Logical::Int(micros.checked_mul(1000).ok_or(ConvertFailure::OutOfRange)?),
        Unit::Iso => Logical::IsoDateTime(moment),
    })
}

/// A TIME in a unit. Milliseconds and text hold a time of day only, from 00:00:00 to 24:00:00.
pub(crate) fn time_in<'v>(micros: i64, unit: Unit) -> Result<Logical<'v>, ConvertFailure> {
    let of_day = (0..=MICROS_PER_DAY).contains(&micros);
    Ok(match unit {
        Unit::Micros => Logical::Int(micros),
        Unit::Nanos => Logical::Int(micros.checked_mul(1000).ok_or(ConvertFailure::OutOfRange)?),
        Unit::Millis if of_day => Logical::Int(micros / 1000),
        Unit::Iso if of_day => Logical::IsoTime(micros),
        Unit::Millis | Unit::Iso => return Err(ConvertFailure::OutOfRange),
    })
}

/// 1970-01-01.
pub(crate) fn epoch_day<'v>(iso: bool) -> Logical<'v> {
    day_in(Moment::EPOCH.day, iso)
}

/// 1970-01-01 00:00:00, which is 0 in each unit of count.
pub(crate) fn epoch<'v>(unit: Unit) -> Logical<'v> {
    if unit == Unit::Iso { Logical::IsoDateTime(Moment::EPOCH) } else { Logical::Int(0) }
}

/// 00:00:00, which is 0 in each unit of count.
pub(crate) fn midnight<'v>(unit: Unit) -> Logical<'v> {
    if unit == Unit::Iso { Logical::IsoTime(0) } else { Logical::Int(0) }
}

/// A year below 100 as `enable.time.adjuster` reads it: 1970 to 2069.
pub(crate) fn adjusted_year(year: i64) -> i64 {
    match year {
        0..=69 => year + 2000,
        70..=99 => year + 1900,
        _ => year,
    }
}

/// Appends `12:34:56.789Z`; 24:00:00 is `00:00:00Z`.
pub(crate) fn write_iso_time(micros: i64, out: &mut Vec<u8>) {
    let Moment { seconds, micros, .. } =
        Moment::new(Moment::EPOCH.day, micros.rem_euclid(MICROS_PER_DAY));
    out.extend_from_slice(&clock_text(seconds));
    write_fraction(micros, None, out);
}

/// `12:34:56`
#[inline]
fn clock_text(seconds: u32) -> [u8; 8] {
    let [a, b] = two_digits(seconds / 3600);
    let [c, d] = two_digits(seconds / 60 % 60);
    let [e, f] = two_digits(seconds % 60);
    [a, b, b':', c, d, b':', e, f]
}

/// Appends a fraction of this many digits, or of as many as needed, and `Z`.
#[inline]
fn write_fraction(micros: u32, digits: Option<u8>, out: &mut Vec<u8>) {
    let digits = digits.unwrap_or_else(|| {
        let mut digits = 6;
        let mut rest = micros;
        while digits > 0 && rest.is_multiple_of(10) {
            rest /= 10;
            digits -= 1;
        }
        digits
    });
    if digits > 0 {
        let start = out.len();
        let [a, b] = two_digits(micros / 10_000);
        let [c, d] = two_digits(micros / 100 % 100);
        let [e, f] = two_digits(micros % 100);
        out.extend_from_slice(&[b'.', a, b, c, d, e, f]);
        out.truncate(start + 1 + usize::from(digits.min(6)));
    }
    out.push(b'Z');
}

#[expect(clippy::cast_possible_truncation, reason = "below 2³²")]
const fn low_u32(number: u64) -> u32 {
    number as u32
}

/// Year, month and day as written, and the microseconds of the day.
pub(crate) type WrittenDateTime = ((i64, u8, u8), i64);

/// Reads `yyyy-MM-dd[ HH:mm:ss[.f]]` as a default has it.
pub(crate) fn parse_datetime(text: &str) -> Option<WrittenDateTime> {
    let text = text.trim();
    let (date, clock) = match text.split_once([' ', 'T']) {
        Some((date, clock)) => (date, Some(clock)),
        None => (text, None),
    };
    let mut parts = date.split('-');
    let year = parts.next()?.parse().ok().filter(|year| (0..=9999).contains(year))?;
    let month = parts.next()?.parse().ok()?;
    let day = parts.next()?.parse().ok()?;
    if parts.next().is_some() {
        return None;
    }
    let micros = match clock {
        Some(clock) => parse_clock(clock.trim().trim_end_matches('Z'))?,
        None => 0,
    };
    Some(((year, month, day), micros))
}

/// Reads `[-]h+:mm[:ss[.f]]` to microseconds.
pub(crate) fn parse_clock(text: &str) -> Option<i64> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let mut parts = text.split(':');
    let hours: i64 = parts.next()?.parse().ok().filter(|hours| (0..=838).contains(hours))?;
    let minutes: i64 = parts.next()?.parse().ok().filter(|minutes| (0..=59).contains(minutes))?;
    let (seconds, fraction) = match parts.next() {
        None => ("0", ""),
        Some(seconds) => seconds.split_once('.').unwrap_or((seconds, "")),
    };
    if parts.next().is_some()
        || fraction.len() > 9
        || !fraction.bytes().all(|byte| byte.is_ascii_digit())
    {
        return None;
    }
    let seconds: i64 = seconds.parse().ok().filter(|seconds| (0..=59).contains(seconds))?;
    let micros = format!("{fraction:0<6}").get(..6)?.parse::<i64>().ok()?;
    let micros = ((hours * 60 + minutes) * 60 + seconds) * 1_000_000 + micros;
    Some(if negative { -micros } else { micros })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_agree_over_all_years() {
        let mut days = Day::new(0, 1, 1).unwrap().days();
        assert_eq!(days, -719_528);
        for year in 0..=9999 {
            for (month, day) in [(1, 1), (2, 28), (3, 1), (12, 31)] {
                let date = Day::new(year, month, day).unwrap();
                assert_eq!(Day::from_days(date.days()), date);
                assert!(date.days() >= days);
                days = date.days();
            }
        }
        for days in 0..=u32::MAX / 86_400 {
            assert_eq!(Day::from_recent_days(days), Day::from_days(days.into()));
        }
        assert_eq!(Day::new(2024, 2, 29).unwrap().days(), 19_782);
        assert_eq!(Day::new(1000, 1, 1).unwrap().days(), -354_285);
    }

    #[test]
    fn an_adjusted_leap_day_exists() {
        for year in 0..100 {
            if Day::new(year, 2, 29).is_some() {
                assert!(Day::new(adjusted_year(year), 2, 29).is_some(), "{year}");
            }
        }
    }

    #[test]
    fn days_that_do_not_exist_are_none() {
        for (year, month, day) in
            [(2024, 2, 30), (2023, 2, 29), (1900, 2, 29), (2024, 13, 1), (2024, 4, 31)]
        {
            assert_eq!(Day::new(year, month, day), None);
        }
    }

    #[test]
    fn fractions_have_the_digits_asked_for() {
        for (micros, digits, text) in [
            (45_296_700_000, None, "12:34:56.7"),
            (45_296_700_000, Some(6), "12:34:56.700000"),
            (45_296_700_000, Some(0), "12:34:56"),
            (45_296_000_000, None, "12:34:56"),
            (1, None, "00:00:00.000001"),
        ] {
            let mut out = Vec::new();
            Moment::new(Moment::EPOCH.day, micros).write(digits, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), format!("1970-01-01T{text}Z"));
        }
    }

    #[test]
    fn defaults_are_read_as_the_server_writes_them() {
        assert_eq!(parse_clock("-01:02:03.456"), Some(-3_723_456_000));
        assert_eq!(parse_clock("1:02"), Some(3_720_000_000));
        assert_eq!(parse_clock("1:60"), None);
        assert_eq!(parse_clock("1:2:3:4"), None);
        assert_eq!(parse_datetime("2020-01-02"), Some(((2020, 1, 2), 0)));
        assert_eq!(parse_datetime("2020-01-02 00:00:01.5"), Some(((2020, 1, 2), 1_500_000)));
        assert_eq!(parse_datetime("20200102"), None);
    }
}
