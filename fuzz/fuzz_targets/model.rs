#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gustav_fuzz::model(data));
