//! Decoders: no panic on any bytes, and decode -> encode -> decode gives the same.

use punctual_lab::world::LabAead;
use punctual_proto::vectors::{
    decode_accept_payload, decode_claims, decode_hello_payload, open_token, token_bytes,
};
use punctual_proto::wire::{
    Ack, Frame, Gone, HandshakePacket, Header, Kind, Preamble, Reader, TAG_LEN, Writer, classify,
    expand,
};
use punctual_proto::{ConnectToken, TokenKey};

/// All decoders of the protocol, on the same bytes.
pub fn decode(data: &[u8]) {
    header(data);
    // What the reader of an ACK would send next decides what may be acknowledged: small, and past 32 bits.
    for next_number in [0, 1 << 14, (1 << 33) + 5] {
        frames(data, next_number);
    }
    handshake_packet(data);
    if let Ok(gone) = Gone::decode(data) {
        assert_eq!(
            (classify(data), &gone.encode()[..]),
            (Kind::Gone, &data[..Gone::LEN])
        );
    }
    preamble(data);
    token(data);
    let _ = decode_hello_payload(data);
    let _ = decode_accept_payload(data);
    varint(data);
}

fn written(encode: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut buffer = vec![0; 4096];
    let mut writer = Writer::new(&mut buffer);
    encode(&mut writer);
    let len = writer
        .finish()
        .expect("what was read from a datagram fits into one");
    buffer.truncate(len);
    buffer
}

fn varint(data: &[u8]) {
    let mut reader = Reader::new(data);
    if let Ok(value) = reader.varint() {
        let bytes = written(|writer| writer.varint(value));
        assert!(
            bytes.len() <= data.len() - reader.remaining(),
            "the shortest form is no longer"
        );
        assert_eq!(Reader::new(&bytes).varint(), Ok(value));
    }
}

fn header(data: &[u8]) {
    let Ok(header) = Header::decode(data) else {
        return;
    };
    assert_eq!(classify(data), Kind::Protected);
    let mut bytes = written(|writer| header.encode(writer));
    assert_eq!(bytes, data[..header.encoded_len()]);
    bytes.extend_from_slice(&[0; TAG_LEN]);
    assert_eq!(Header::decode(&bytes), Ok(header));
    for expected in [0, 1, 0x8000, 0x1_0000, 1 << 31, 1 << 32, (1 << 61) + 99] {
        let number = header.number(expected);
        let bits = 8 * header.number_len as u32;
        assert_eq!(
            number & ((1 << bits) - 1),
            u64::from(header.truncated_number)
        );
        assert_eq!(expand(number & ((1 << bits) - 1), bits, number), number);
    }
}

fn frames(data: &[u8], next_number: u64) {
    let mut reader = Reader::new(&data[..data.len().min(1500)]);
    let mut before = reader.remaining();
    while let Ok(Some(frame)) = Frame::decode(&mut reader, next_number) {
        assert!(
            reader.remaining() < before,
            "every frame takes at least its type byte"
        );
        before = reader.remaining();
        if let Frame::Ack(ack) = &frame {
            check_ack(ack, next_number);
        }
        let bytes = written(|writer| frame.encode(writer));
        let mut again = Reader::new(&bytes);
        assert_eq!(Frame::decode(&mut again, next_number), Ok(Some(frame)));
        assert_eq!(again.remaining(), 0);
        if let Frame::Symbol(symbol) = &frame {
            let bytes = written(|writer| symbol.encode_last(writer));
            assert_eq!(
                Frame::decode(&mut Reader::new(&bytes), next_number),
                Ok(Some(frame))
            );
        }
    }
}

/// Runs go downwards, do not touch, and acknowledge only what was sent.
fn check_ack(ack: &Ack, next_number: u64) {
    let runs: Vec<_> = ack.ranges.runs().collect();
    assert!(!runs.is_empty());
    let mut above = next_number + 1;
    for &(first, last) in &runs {
        assert!(first <= last && last + 1 < above, "{runs:?}");
        above = first;
    }
}

fn handshake_packet(data: &[u8]) {
    let _ = HandshakePacket::source_of(data);
    let Ok(packet) = HandshakePacket::decode(data) else {
        return;
    };
    assert_eq!(classify(data), Kind::Handshake);
    let mut buffer = vec![0; data.len().max(1200)];
    let len = packet
        .encode(&mut buffer)
        .expect("what was read fits where it was");
    assert_eq!(HandshakePacket::decode(&buffer[..len]), Ok(packet));
}

fn preamble(data: &[u8]) {
    let mut reader = Reader::new(data);
    let Ok(preamble) = Preamble::decode(&mut reader) else {
        return;
    };
    let bytes = written(|writer| preamble.encode(writer));
    assert!(bytes.len() <= Preamble::LEN_MAX);
    assert_eq!(bytes.len(), preamble.encoded_len());
    assert_eq!(Preamble::decode(&mut Reader::new(&bytes)), Ok(preamble));
}

fn token(data: &[u8]) {
    if let Ok(token) = ConnectToken::from_bytes(data) {
        assert_eq!(token.to_bytes(), data);
        let _ = open_token(
            &LabAead,
            &TokenKey([8; 32]),
            &[0; 32],
            0,
            token_bytes(&token.sealed),
        );
    }
    if let Some(claims) = decode_claims(data) {
        let key = TokenKey([8; 32]);
        let token = claims
            .seal(&LabAead, &key, [9; 32])
            .expect("what was read keeps the bounds");
        if claims.expires_unix_s > 0 {
            let server = claims.servers.first().copied().unwrap_or_default();
            let again = open_token(
                &LabAead,
                &key,
                &server,
                claims.expires_unix_s - 1,
                token_bytes(&token.sealed),
            );
            assert_eq!(again, Ok(claims));
        }
    }
}
