//! Every way to ask wrongly, and its answer.

use punctual_erasure::{CodeError, rebuild, repair_symbol, repair_symbols};

#[test]
fn empty_symbols_are_refused() {
    let error = CodeError::SymbolLength {
        length: 0,
        symbol_length: 0,
    };
    assert_eq!(repair_symbol(&[1], 0, &mut []), Err(error));
    assert_eq!(repair_symbols(&[1], 0, 0, &mut []), Err(error));
    let error = CodeError::SymbolLength {
        length: 1,
        symbol_length: 0,
    };
    assert_eq!(rebuild(&mut [1], 0, 1, &mut []), Err(error));
}

#[test]
fn buffers_hold_whole_symbols() {
    let error = CodeError::SymbolLength {
        length: 5,
        symbol_length: 2,
    };
    assert_eq!(repair_symbols(&[1; 4], 2, 0, &mut [0; 5]), Err(error));
    assert_eq!(rebuild(&mut [0; 5], 2, 0, &mut []), Err(error));
    let error = CodeError::SymbolLength {
        length: 3,
        symbol_length: 2,
    };
    assert_eq!(
        rebuild(&mut [0; 4], 2, 1, &mut [(0, &mut [0; 3])]),
        Err(error)
    );
}

#[test]
fn blocks_have_one_to_sixty_four_sources() {
    let error = |count| Err(CodeError::SourceSymbols { count });
    assert_eq!(repair_symbol(&[], 0, &mut [0; 2]), error(0));
    assert_eq!(repair_symbol(&[0; 129], 0, &mut [0; 2]), error(65));
    assert_eq!(repair_symbol(&[0; 128], 0, &mut [0; 2]), Ok(()));
    assert_eq!(rebuild(&mut [], 2, 0, &mut []), error(0));
    assert_eq!(rebuild(&mut [0; 130], 2, 0, &mut []), error(65));
}

#[test]
fn repair_symbols_end_at_191() {
    let error = |index| Err(CodeError::RepairIndex { index });
    assert_eq!(repair_symbol(&[1], 191, &mut [0]), Ok(()));
    assert_eq!(repair_symbol(&[1], 192, &mut [0]), error(192));
    assert_eq!(repair_symbol(&[1], 255, &mut [0]), error(255));
    assert_eq!(repair_symbols(&[1], 1, 190, &mut [0; 2]), Ok(()));
    assert_eq!(repair_symbols(&[1], 1, 190, &mut [0; 3]), error(192));
    assert_eq!(repair_symbols(&[1], 1, 0, &mut [0; 192]), Ok(()));
    assert_eq!(rebuild(&mut [0], 1, 0, &mut [(192, &mut [0])]), error(192));
}

#[test]
fn present_symbols_are_ones_that_the_block_has() {
    let error = CodeError::PresentMask {
        present: 0b100,
        source_symbols: 2,
    };
    assert_eq!(rebuild(&mut [0; 2], 1, 0b100, &mut []), Err(error));
    assert_eq!(rebuild(&mut [0; 64], 1, u64::MAX, &mut []), Ok(()));
}

#[test]
fn no_room_means_nothing_to_do() {
    assert_eq!(repair_symbols(&[1; 4], 2, 0, &mut []), Ok(()));
    assert_eq!(repair_symbols(&[1; 4], usize::MAX, 0, &mut []), Ok(()));
}

#[test]
fn missing_symbols_need_as_many_repairs() {
    let error = CodeError::NotEnough {
        missing: 2,
        repairs: 1,
    };
    assert_eq!(
        rebuild(&mut [0; 3], 1, 0b10, &mut [(4, &mut [0])]),
        Err(error)
    );
}

#[test]
fn repairs_are_distinct() {
    let error = CodeError::DuplicateRepair { repair: 150 };
    assert_eq!(
        rebuild(
            &mut [0; 3],
            1,
            0,
            &mut [(150, &mut [0]), (1, &mut [0]), (150, &mut [0])]
        ),
        Err(error)
    );
}

#[test]
fn extra_repairs_are_left_alone() {
    let (mut block, mut used, mut extra) = ([1, 2, 3], [0], [9]);
    repair_symbol(&block, 3, &mut used).unwrap();
    block[1] = 0;
    rebuild(&mut block, 1, 0b101, &mut [(3, &mut used), (8, &mut extra)]).unwrap();
    assert_eq!((block, extra), ([1, 2, 3], [9]));
}

#[test]
fn errors_say_what_is_wrong() {
    let cases = [
        (
            CodeError::SourceSymbols { count: 65 },
            "a block of 65 source symbols; 1 to 64 are possible",
        ),
        (
            CodeError::RepairIndex { index: 192 },
            "no repair symbol 192; they are numbered 0 to 191",
        ),
        (
            CodeError::SymbolLength {
                length: 5,
                symbol_length: 0,
            },
            "symbols of 0 bytes (in a buffer of 5 bytes)",
        ),
        (
            CodeError::SymbolLength {
                length: 5,
                symbol_length: 2,
            },
            "5 bytes where symbols of 2 bytes belong",
        ),
        (
            CodeError::PresentMask {
                present: 4,
                source_symbols: 2,
            },
            "presence bits 0x4 for a block of 2 source symbols",
        ),
        (
            CodeError::NotEnough {
                missing: 2,
                repairs: 1,
            },
            "2 source symbols are missing and only 1 repair symbols are there",
        ),
        (
            CodeError::DuplicateRepair { repair: 7 },
            "repair symbol 7 was given twice",
        ),
    ];
    for (error, text) in cases {
        assert_eq!(error.to_string(), text);
    }
}
