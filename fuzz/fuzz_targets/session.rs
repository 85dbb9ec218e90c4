#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| punctual_fuzz::session(data));
