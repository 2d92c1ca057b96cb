//! Dates and times by their parts, never normalised: zero and impossible dates stay what the server stored.

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

/// A TIME: from -838:59:59.999999 to 838:59:59.999999, held as signed microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Time {
    /// Microseconds, negative before midnight.
    pub micros: i64,
    /// Declared fraction digits, 0 to 6.
    pub fsp: u8,
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
