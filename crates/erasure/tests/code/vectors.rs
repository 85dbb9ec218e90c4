//! Bytes written down: what goes over the wire may not drift.
//!
//! They were checked with a script that shares nothing with this crate but the definition of the matrix.

use punctual_erasure::{REPAIR_SYMBOLS_MAX, repair_symbol, repair_symbols};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The coefficients of a repair symbol, as the bytes that it makes of sources of which one is 1 and the others 0.
fn coefficients(repair: u8) -> Vec<u8> {
    let coefficient = |source: usize| {
        let (mut block, mut out) = ([0; 64], [0]);
        block[source] = 1;
        repair_symbol(&block, repair, &mut out).unwrap();
        out[0]
    };
    (0..64).map(coefficient).collect()
}

#[test]
fn rows_of_the_matrix() {
    let rows = [
        (
            1,
            "014ba43e763d0cc58067e3f7ddf6e08e16fe0770c1cd5ccac227a989e29a93ec\
             2e8f20877ba1792209d9b059614eaeadbcd7f21184c7fa302ba05404712fa682",
        ),
        (
            2,
            "01a4327d7a16512e6d80333e05d05dcc8eddc6c0718fe1ba95cf87ea8b43e8b0\
             ae17352c772554457f490ce60f5fc293509d37123a061afe8d1464dc5ec41cbe",
        ),
        (
            100,
            "0108489ecc3b81ef0d50916f8c4e29568552b0d97d77cb5de78368aef065fe37\
             72114bca87f3972b4a336c94907fde3054eea07517621d4504df42f40a6a1b26",
        ),
        (
            191,
            "01416bd6ebe842fd69cb389ccf1b9dd4f52779be7243a0662cf00c7bea5039d3\
             a996f451655d10daf961974e311987912d3fb878b24cd1601f0b7684de493053",
        ),
    ];
    for (repair, expected) in rows {
        assert_eq!(hex(&coefficients(repair)), expected, "row {repair}");
    }
}

#[test]
fn repair_symbols_of_a_sentence() {
    let block = b"Punctual: by when, and how sure?";
    let symbols = [
        (8, 0, "6b0e0c084f144c5e"),
        (8, 1, "758fc01e2ffbe86d"),
        (8, 2, "52d9d7b672853c07"),
        (8, 191, "5ccfb5682ad7b4aa"),
        (7, 1, "5bb3a6d3db3ad5"), // the last source has 4 bytes
        (1, 3, "64"),
    ];
    for (length, repair, expected) in symbols {
        let mut out = vec![0; length];
        repair_symbol(block, repair, &mut out).unwrap();
        assert_eq!(
            hex(&out),
            expected,
            "repair {repair} of symbols of {length} bytes"
        );
    }
}

/// All 192 repair symbols of 64 sources, as an FNV-1a hash.
#[test]
fn whole_code() {
    let block: Vec<u8> = (0..64 * 16u32).map(|i| (i * 7 + i / 16) as u8).collect();
    let mut symbols = [0; 16 * REPAIR_SYMBOLS_MAX];
    repair_symbols(&block, 16, 0, &mut symbols).unwrap();
    let hash = symbols
        .iter()
        .fold(0xCBF2_9CE4_8422_2325u64, |hash, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3)
        });
    assert_eq!(hash, 0xF2F0_F894_30BD_2F19);
}
