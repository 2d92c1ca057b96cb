#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| holdfast_tests::fuzz::history_line(data));
