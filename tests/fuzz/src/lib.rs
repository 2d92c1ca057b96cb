//! What the targets for the decoder share.

/// Bytes that a decoder may hold whatever its input is: read buffers, windows, and one decompressed event of 1 MiB in each
/// of the places that hold one.
const FIXED: u64 = 8 << 20;

/// Bytes that it may hold for each byte of input.
const PER_BYTE: u64 = 256;

/// Runs a target and counts what it allocates: no declared size is believed, so that memory follows the input.
///
/// # Panics
///
/// When it follows something else, and when the target does.
pub fn bounded(data: &[u8], run: fn(&[u8])) {
    let most = allocation_counter::measure(|| run(data)).bytes_max;
    let limit = FIXED + PER_BYTE * data.len() as u64;
    assert!(most <= limit, "{most} bytes were allocated for {} bytes of input", data.len());
}
