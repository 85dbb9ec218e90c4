#!/usr/bin/env python3
"""Decodes vectors/*.json knowing PROTOCOL.md alone (and the RFCs and the Noise specification that it names).

Nothing here is taken from the Rust code, and nothing but Python's standard library is used: varints, headers, frames,
the erasure code, X25519, ChaCha20-Poly1305, AES-128-GCM, HKDF and the Noise handshake are all written out below. Slow,
not constant in time, and only for checking.

Usage: python3 xtask/decode_vectors.py [directory of vectors]
"""

import hashlib
import hmac
import json
import pathlib
import sys


class Malformed(Exception):
    """The bytes are not what PROTOCOL.md allows."""


# ---------------------------------------------------------------- notation


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def left(self):
        return len(self.data) - self.at

    def bytes(self, count):
        if count > self.left():
            raise Malformed("ends early")
        self.at += count
        return self.data[self.at - count : self.at]

    def rest(self):
        return self.bytes(self.left())

    def uint(self, count):
        return int.from_bytes(self.bytes(count), "big")

    def varint(self):
        first = self.uint(1)
        length = 1 << (first >> 6)
        return (first & 0x3F) << (8 * (length - 1)) | self.uint(length - 1)


def write_varint(value):
    for code, bits in enumerate((6, 14, 30, 62)):
        if value < 1 << bits:
            length = 1 << code
            return (code << (8 * length - 2) | value).to_bytes(length, "big")
    raise ValueError(value)


def expand(truncated, bits, expected):
    window = 1 << bits
    value = expected - expected % window + truncated
    if value + window // 2 <= expected and value < (1 << 62) - window:
        return value + window
    if value > expected + window // 2 and value >= window:
        return value - window
    return value


# ---------------------------------------------------------------- wire


def read_header(packet):
    reader = Reader(packet)
    first = reader.uint(1)
    if first >> 5 != 0b101 or first & 7:
        raise Malformed("first byte")
    number_len = 4 if first & 8 else 2
    header = {"key_phase": first >> 4 & 1, "destination": reader.uint(4), "number_len": number_len}
    header["truncated"] = reader.uint(number_len)
    if reader.left() < 16:
        raise Malformed("no room for a tag")
    header["len"] = reader.at
    return header


def read_ack(reader, next_number, with_ecn):
    largest = expand(reader.uint(4), 32, next_number)
    if largest >= next_number:
        raise Malformed("acknowledges what was not sent")
    ack = {"type": "ACK", "received_at": reader.uint(4), "delay_us": reader.varint()}
    if ack["delay_us"] >= 1 << 32:
        raise Malformed("delay")
    more = reader.uint(1)
    ack["kept"] = more >= 128
    tells_frame, more = more & 64, more & 63
    runs = [[largest - reader.varint(), largest]]
    for _ in range(more):
        last = runs[-1][0] - reader.varint() - 2
        runs.append([last - reader.varint(), last])
    if any(first < max(0, largest - 1023) for first, _ in runs):
        raise Malformed("below zero, or too old")
    ack["runs"] = runs
    ack["frame_us"] = reader.varint() if tells_frame else 0
    if tells_frame and not 0 < ack["frame_us"] < 1 << 32:
        raise Malformed("frame")
    ack["ce_count"] = reader.varint() if with_ecn else 0
    return ack


def read_frames(content, next_number):
    reader, frames = Reader(content), []
    while reader.left():
        kind = reader.uint(1)
        if kind == 0x00:
            break
        if kind == 0x01:
            frame = {"type": "PING"}
        elif kind in (0x02, 0x03):
            frame = read_ack(reader, next_number, kind == 0x03)
        elif kind == 0x04:
            frame = {"type": "ABANDON", "first": reader.varint(), "count": reader.varint()}
            if frame["count"] == 0:
                raise Malformed("abandons nothing")
            if frame["first"] + frame["count"] - 1 > 2**62 - 1:
                raise Malformed("abandons what cannot be")
        elif kind == 0x05:
            frame = {"type": "PATH_CHALLENGE", "data": reader.bytes(8).hex()}
        elif kind == 0x06:
            frame = {"type": "PATH_RESPONSE", "data": reader.bytes(8).hex()}
        elif kind == 0x07:
            frame = {"type": "CLOSE", "code": reader.uint(2)}
            length = reader.uint(1)
            if length > 200:
                raise Malformed("reason too long")
            frame["reason"] = reader.bytes(length).decode("utf-8", "replace")
        elif 0x40 <= kind < 0xC0:
            k = (kind & 0x3F) + 1
            frame = {"type": "SYMBOL", "k": k, "truncated_block": reader.uint(2), "esi": reader.uint(1)}
            if frame["esi"] >= k + 192:
                raise Malformed("no such symbol")
            data = reader.bytes(reader.varint()) if kind < 0x80 else reader.rest()
            if not data:
                raise Malformed("empty symbol")
            frame["data"] = data.hex()
        else:
            raise Malformed("unknown frame")
        frames.append(frame)
    return frames


def read_handshake_packet(datagram):
    reader = Reader(datagram)
    kind, version, connection_id = reader.uint(1), reader.uint(4), reader.uint(4)
    if kind == 0x83:
        code = reader.uint(1)
        if not 1 <= code <= 6:
            raise Malformed("unknown refusal")
        return {"type": "REFUSE", "destination": connection_id, "code": code}
    if version != 1:
        raise Malformed("another version")
    if kind == 0x80:
        if len(datagram) < 1200:
            raise Malformed("a HELLO too short")
        cookie = reader.bytes(reader.uint(1))
        noise = reader.bytes(reader.uint(2))
        return {"type": "HELLO", "source": connection_id, "cookie": cookie.hex(), "noise": noise.hex()}
    if kind == 0x81:
        return {"type": "RETRY", "destination": connection_id, "cookie": reader.bytes(reader.uint(1)).hex()}
    if kind == 0x82:
        return {"type": "ACCEPT", "destination": connection_id, "noise": reader.bytes(reader.uint(2)).hex()}
    raise Malformed("first byte")


def read_gone(datagram):
    reader = Reader(datagram)
    if reader.uint(1) != 0x84:
        raise Malformed("first byte")
    return {"source": reader.uint(4), "token": reader.bytes(16)}


def read_preamble(reader):
    flags = reader.uint(1)
    if flags == 0x80:
        distance, index = reader.varint(), reader.varint()
        if not 1 <= index <= 65535 or index > distance:
            raise Malformed("index")
        return {"distance": distance, "index": index}
    if flags & ~0x0F:
        raise Malformed("flags")
    order = {0: "none", 2: "sequence", 4: "newest", 6: "key"}[flags & 6]
    if flags & 8:
        if order != "sequence":
            raise Malformed("void")
        order = "void"
    stream = reader.varint() if flags & 1 else 0
    if stream >= 1024:
        raise Malformed("stream")
    value = None
    if order in ("sequence", "void"):
        value = reader.uint(2)
    elif order == "key":
        value = reader.varint()
    length = reader.varint()
    if length > 67108864:
        raise Malformed("message too long")
    if order == "void" and length:
        raise Malformed("void with content")
    return {"stream": stream, "order": order, "order_value": value, "message_len": length}


# ---------------------------------------------------------------- erasure code


def multiply(a, b):
    product = 0
    while b:
        if b & 1:
            product ^= a
        a <<= 1
        if a & 0x100:
            a ^= 0x11B
        b >>= 1
    return product


INVERSE = {a: b for a in range(1, 256) for b in range(1, 256) if multiply(a, b) == 1}
TIMES = {}


def coefficient(i, j):
    x = 64 + i
    return multiply(multiply(x, 64 ^ j), multiply(INVERSE[64], INVERSE[x ^ j]))


def scaled(factor, symbol):
    if factor not in TIMES:
        TIMES[factor] = bytes(multiply(factor, value) for value in range(256))
    return symbol.translate(TIMES[factor])


def add(a, b):
    return (int.from_bytes(a, "big") ^ int.from_bytes(b, "big")).to_bytes(len(a), "big")


def rebuild(k, symbols):
    """The source symbols out of any k of {ESI: symbol}, by Gauss and Jordan."""
    rows = []
    for esi, data in sorted(symbols.items()):
        row = [int(j == esi) for j in range(k)] if esi < k else [coefficient(esi - k, j) for j in range(k)]
        rows.append((bytes(row), data))
    for column in range(k):
        pivot = next(at for at in range(column, k) if rows[at][0][column])
        rows[column], rows[pivot] = rows[pivot], rows[column]
        factor = INVERSE[rows[column][0][column]]
        rows[column] = tuple(scaled(factor, part) for part in rows[column])
        for at in range(k):
            factor = rows[at][0][column]
            if at != column and factor:
                rows[at] = tuple(add(part, scaled(factor, own)) for part, own in zip(rows[at], rows[column]))
    return b"".join(data for _, data in rows)


# ---------------------------------------------------------------- ciphers


def hmac_sha256(key, data):
    return hmac.new(key, data, hashlib.sha256).digest()


def hkdf_expand(key, info, length):
    out, block, count = b"", b"", 0
    while len(out) < length:
        count += 1
        block = hmac_sha256(key, block + info + bytes([count]))
        out += block
    return out[:length]


def rotate(value, bits):
    return (value << bits | value >> (32 - bits)) & 0xFFFFFFFF


def chacha20_block(key, counter, nonce):
    def words(data):
        return [int.from_bytes(data[i : i + 4], "little") for i in range(0, len(data), 4)]

    start = words(b"expand 32-byte k") + words(key) + [counter] + words(nonce)
    state = start[:]

    def quarter(a, b, c, d):
        for x, y, z, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            state[x] = (state[x] + state[y]) & 0xFFFFFFFF
            state[z] = rotate(state[z] ^ state[x], bits)

    for _ in range(10):
        for i in range(4):
            quarter(i, 4 + i, 8 + i, 12 + i)
        for i in range(4):
            quarter(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4)
    return b"".join(((s + t) & 0xFFFFFFFF).to_bytes(4, "little") for s, t in zip(state, start))


def padded(data):
    return data + bytes(-len(data) % 16)


def chacha20_poly1305_open(key, nonce, header, sealed):
    content, tag = sealed[:-16], sealed[-16:]
    one_time = chacha20_block(key, 0, nonce)
    r = int.from_bytes(one_time[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
    s = int.from_bytes(one_time[16:32], "little")
    text = padded(header) + padded(content)
    text += len(header).to_bytes(8, "little") + len(content).to_bytes(8, "little")
    total = 0
    for i in range(0, len(text), 16):
        total = (total + int.from_bytes(text[i : i + 16] + b"\x01", "little")) * r % ((1 << 130) - 5)
    if ((total + s) % (1 << 128)).to_bytes(16, "little") != tag:
        raise Malformed("does not authenticate")
    stream = b"".join(chacha20_block(key, 1 + i, nonce) for i in range((len(content) + 63) // 64))
    return bytes(a ^ b for a, b in zip(content, stream))


def make_sbox():
    box = []
    for value in range(256):
        x = INVERSE.get(value, 0)
        y = 0x63
        for turn in range(5):
            y ^= (x << turn | x >> (8 - turn)) & 0xFF
        box.append(y)
    return box


SBOX = make_sbox()


def aes128_keys(key):
    words = [key[i : i + 4] for i in range(0, 16, 4)]
    constant = 1
    for i in range(4, 44):
        word = words[-1]
        if i % 4 == 0:
            word = bytes(SBOX[b] for b in word[1:] + word[:1])
            word = bytes([word[0] ^ constant]) + word[1:]
            constant = multiply(constant, 2)
        words.append(add(words[i - 4], word))
    return [b"".join(words[i : i + 4]) for i in range(0, 44, 4)]


def aes128(keys, block):
    state = add(block, keys[0])
    for turn in range(1, 11):
        state = bytes(SBOX[b] for b in state)
        state = bytes(state[(i + 4 * (i % 4)) % 16] for i in range(16))
        if turn < 10:
            mixed = []
            for i in range(0, 16, 4):
                column = state[i : i + 4]
                for j in range(4):
                    a, b, c, d = (column[(j + n) % 4] for n in range(4))
                    mixed.append(multiply(a, 2) ^ multiply(b, 3) ^ c ^ d)
            state = bytes(mixed)
        state = add(state, keys[turn])
    return state


def ghash(subkey, text):
    h, total = int.from_bytes(subkey, "big"), 0
    for i in range(0, len(text), 16):
        x, v, z = total ^ int.from_bytes(text[i : i + 16], "big"), h, 0
        for bit in range(127, -1, -1):
            if x >> bit & 1:
                z ^= v
            v = v >> 1 ^ (0xE1 << 120 if v & 1 else 0)
        total = z
    return total.to_bytes(16, "big")


def aes128_gcm_open(key, nonce, header, sealed):
    keys = aes128_keys(key)
    content, tag = sealed[:-16], sealed[-16:]
    text = padded(header) + padded(content)
    text += (8 * len(header)).to_bytes(8, "big") + (8 * len(content)).to_bytes(8, "big")
    expected = add(ghash(aes128(keys, bytes(16)), text), aes128(keys, nonce + b"\0\0\0\1"))
    if expected != tag:
        raise Malformed("does not authenticate")
    count = (len(content) + 15) // 16
    stream = b"".join(aes128(keys, nonce + (2 + i).to_bytes(4, "big")) for i in range(count))
    return bytes(a ^ b for a, b in zip(content, stream))


AEADS = {1: (16, aes128_gcm_open), 2: (32, chacha20_poly1305_open)}
PRIME = (1 << 255) - 19
BASE = (9).to_bytes(32, "little")


def x25519(scalar, point):
    """RFC 7748 section 5."""
    k = int.from_bytes(scalar, "little") & ~7 & ((1 << 255) - 1) | 1 << 254
    u = int.from_bytes(point, "little") & ((1 << 255) - 1)
    x2, z2, x3, z3 = 1, 0, u, 1
    for bit in range(254, -1, -1):
        if k >> bit & 1:
            x2, x3, z2, z3 = x3, x2, z3, z2
        a, b, c, d = x2 + z2, x2 - z2, x3 + z3, x3 - z3
        aa, bb, da, cb = a * a % PRIME, b * b % PRIME, d * a % PRIME, c * b % PRIME
        e = aa - bb
        x3, z3 = (da + cb) ** 2 % PRIME, u * (da - cb) ** 2 % PRIME
        x2, z2 = aa * bb % PRIME, e * (aa + 121665 * e) % PRIME
        if k >> bit & 1:
            x2, x3, z2, z3 = x3, x2, z3, z2
    return (x2 * pow(z2, PRIME - 2, PRIME) % PRIME).to_bytes(32, "little")


# ---------------------------------------------------------------- handshake


def noise_hkdf(ck, data, count):
    key, outputs, block = hmac_sha256(ck, data), [], b""
    for i in range(count):
        block = hmac_sha256(key, block + bytes([i + 1]))
        outputs.append(block)
    return outputs


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def noise_handshake(vector, server_private, message_1, message_2):
    """Both payloads, and the two traffic secrets."""
    client_private = bytes.fromhex(vector["client_ephemeral_private"])
    server_ephemeral = bytes.fromhex(vector["server_ephemeral_private"])
    server_public = x25519(server_private, BASE)
    prologue = b"punctual" + (1).to_bytes(4, "big") + vector["client_id"].to_bytes(4, "big")
    h = ck = sha256(b"Noise_NKpsk2_25519_ChaChaPoly_SHA256")
    h = sha256(sha256(h, prologue), server_public)
    e_c, c1 = message_1[:32], message_1[32:]
    equal("client's ephemeral key", e_c.hex(), x25519(client_private, BASE).hex())
    h = sha256(h, e_c)
    ck, _ = noise_hkdf(ck, e_c, 2)
    ck, k = noise_hkdf(ck, x25519(client_private, server_public), 2)
    payload_1 = chacha20_poly1305_open(k, bytes(12), h, c1)
    h = sha256(h, c1)
    e_s, c2 = message_2[:32], message_2[32:]
    equal("server's ephemeral key", e_s.hex(), x25519(server_ephemeral, BASE).hex())
    h = sha256(h, e_s)
    ck, _ = noise_hkdf(ck, e_s, 2)
    ck, _ = noise_hkdf(ck, x25519(client_private, e_s), 2)
    ck, t, k = noise_hkdf(ck, bytes.fromhex(vector["psk"]), 3)
    h = sha256(h, t)
    payload_2 = chacha20_poly1305_open(k, bytes(12), h, c2)
    return payload_1, payload_2, noise_hkdf(ck, b"", 2)


def read_token(token_key, sealed):
    salt, rest = sealed[:32], sealed[32:]
    key = hkdf_expand(hmac_sha256(salt, token_key), b"punctual v1 token", 32)
    reader = Reader(chacha20_poly1305_open(key, bytes(12), salt, rest))
    claims = {"expires_unix_s": reader.uint(8), "psk": reader.bytes(32).hex()}
    claims["servers"] = [reader.bytes(32).hex() for _ in range(reader.uint(1))]
    claims["identity"] = reader.bytes(reader.uint(1)).hex()
    return salt, key, claims


# ---------------------------------------------------------------- the checks

passed = 0
where = ""


def fail(message):
    print(f"FAILED {where}: {message}")
    print(f"{passed} passed, 1 failed")
    sys.exit(1)


def equal(what, got, expected):
    global passed
    if got != expected:
        fail(f"{what} is\n  {got}\nby PROTOCOL.md, and\n  {expected}\nin the vector")
    passed += 1


def rejected(read, vector):
    global passed
    try:
        got = read()
    except Malformed:
        passed += 1
        return
    fail(f"must be malformed ({vector}), but reads as {got}")


def each(name, vectors):
    global where
    for index, vector in enumerate(vectors):
        where = f"{name}[{index}]"
        yield vector


def check_varints(data):
    for vector in each("varints.written", data["written"]):
        equal("value", Reader(bytes.fromhex(vector["bytes"])).varint(), vector["value"])
        equal("shortest form", write_varint(vector["value"]).hex(), vector["bytes"])
    for vector in each("varints.longer_than_needed", data["longer_than_needed"]):
        equal("value", Reader(bytes.fromhex(vector["bytes"])).varint(), vector["value"])


def check_headers(data):
    for vector in each("headers.headers", data["headers"]):
        header = read_header(bytes.fromhex(vector["bytes"]) + bytes(16))
        for field in ("destination", "key_phase", "number_len"):
            equal(field, header[field], vector[field])
        acknowledged = vector["largest_acknowledged"]
        in_doubt = vector["number"] + 1 if acknowledged is None else vector["number"] - acknowledged
        equal("number length", header["number_len"], 2 if in_doubt < 1 << 14 else 4)
        number = expand(header["truncated"], 8 * header["number_len"], vector["expected"])
        equal("number", number, vector["number"])
    for vector in each("headers.expansions", data["expansions"]):
        equal("expansion", expand(vector["truncated"], vector["bits"], vector["expected"]), vector["value"])
    for vector in each("headers.invalid_packets", data["invalid_packets"]):
        rejected(lambda: read_header(bytes.fromhex(vector)), vector)


def check_frames(data):
    for vector in each("frames.contents", data["contents"]):
        equal("frames", read_frames(bytes.fromhex(vector["bytes"]), vector["next_number"]), vector["frames"])
    for vector in each("frames.invalid_contents", data["invalid_contents"]):
        rejected(lambda: read_frames(bytes.fromhex(vector["bytes"]), vector["next_number"]), vector["why"])


def check_handshake_packets(data):
    for vector in each("handshake_packets.packets", data["packets"]):
        datagram = bytes.fromhex(vector["bytes"])
        equal("packet", read_handshake_packet(datagram), vector["packet"])
        if vector["packet"]["type"] == "HELLO":
            equal("size", len(datagram), 1200)
    for vector in each("handshake_packets.invalid", data["invalid"]):
        rejected(lambda: read_handshake_packet(bytes.fromhex(vector["bytes"])), vector["why"])


def check_handshake(data):
    server_private = bytes.fromhex(data["server_private"])
    for vector in each("handshake.handshakes", data["handshakes"]):
        equal("server's key", x25519(server_private, BASE).hex(), data["server_public"])
        hello = read_handshake_packet(bytes.fromhex(vector["hello"]))
        accept = read_handshake_packet(bytes.fromhex(vector["accept"]))
        equal("client's id in HELLO", hello["source"], vector["client_id"])
        equal("client's id in ACCEPT", accept["destination"], vector["client_id"])
        equal("cookie", hello["cookie"], vector["cookie"])
        messages = (bytes.fromhex(packet["noise"]) for packet in (hello, accept))
        payload_1, payload_2, secrets = noise_handshake(vector, server_private, *messages)
        reader = Reader(payload_1)
        equal("offered", reader.uint(1), vector["offered"])
        equal("client's datagram", reader.uint(2), vector["client_datagram_max"])
        equal("client's idle timeout", reader.varint(), vector["client_idle_timeout_ms"])
        equal("token", reader.bytes(reader.uint(2)).hex(), vector["sealed_token"])
        reader = Reader(payload_2)
        equal("server's id", reader.uint(4), vector["server_id"])
        equal("chosen", reader.uint(1), vector["chosen"])
        equal("chosen was offered", vector["chosen"] & vector["offered"], vector["chosen"])
        equal("server's datagram", reader.uint(2), vector["server_datagram_max"])
        equal("server's idle timeout", reader.varint(), vector["server_idle_timeout_ms"])
        gone = read_gone(bytes.fromhex(vector["gone"]))
        equal("id in GONE", gone["source"], vector["server_id"])
        equal("token in GONE", reader.bytes(16).hex(), gone["token"].hex())
        salt = vector["server_id"].to_bytes(4, "big") + bytes.fromhex(vector["client_ip"])
        salt += vector["client_port"].to_bytes(2, "big")
        made = hkdf_expand(hmac_sha256(salt, server_private), b"punctual v1 gone", 16)
        equal("token", gone["token"].hex(), made.hex())
        equal("client to server", secrets[0].hex(), vector["client_to_server_secret"])
        equal("server to client", secrets[1].hex(), vector["server_to_client_secret"])


def check_tokens(data):
    token_key = bytes.fromhex(data["token_key"])
    for vector in each("tokens.tokens", data["tokens"]):
        sealed = bytes.fromhex(vector["sealed"])
        salt, key, claims = read_token(token_key, sealed)
        equal("salt", salt.hex(), vector["salt"])
        equal("sealing key", key.hex(), vector["sealing_key"])
        for field, value in claims.items():
            equal(field, value, vector[field])
        equal("connect token", vector["psk"] + vector["sealed"], vector["connect_token"])
        if len(sealed) > 800:
            fail("a sealed token of more than 800 bytes")
        damaged = sealed[:40] + bytes([sealed[40] ^ 1]) + sealed[41:]
        rejected(lambda: read_token(token_key, damaged), "damaged")


def check_cookies(data):
    secret = bytes.fromhex(data["secret"])
    for vector in each("cookies.cookies", data["cookies"]):
        info = vector["slot"].to_bytes(8, "big") + bytes.fromhex(vector["ip"])
        info += vector["port"].to_bytes(2, "big") + vector["source"].to_bytes(4, "big")
        equal("cookie", hkdf_expand(secret, info, 16).hex(), vector["cookie"])


def derive(secret, algorithm):
    key = hkdf_expand(secret, b"punctual v1 key", 32)[: AEADS[algorithm][0]]
    return key, hkdf_expand(secret, b"punctual v1 iv", 12), hkdf_expand(secret, b"punctual v1 next", 32)


def check_packets(data):
    for vector in each("packets.keys", data["keys"]):
        key, iv, following = derive(bytes.fromhex(vector["secret"]), vector["algorithm"])
        equal("key", key.hex(), vector["key"])
        equal("iv", iv.hex(), vector["iv"])
        equal("next secret", following.hex(), vector["next_secret"])
    for vector in each("packets.packets", data["packets"]):
        packet = bytes.fromhex(vector["packet"])
        header = read_header(packet)
        equal("key phase", header["key_phase"], vector["generation"] % 2)
        number = expand(header["truncated"], 8 * header["number_len"], vector["expected"])
        equal("number", number, vector["number"])
        secret = bytes.fromhex(vector["first_secret"])
        for _ in range(vector["generation"]):
            secret = derive(secret, vector["algorithm"])[2]
        key, iv, _ = derive(secret, vector["algorithm"])
        nonce = add(iv, number.to_bytes(12, "big"))
        start, open_packet = header["len"], AEADS[vector["algorithm"]][1]
        content = open_packet(key, nonce, packet[:start], packet[start:])
        equal("content", content.hex(), vector["content"])
        read_frames(content, 0)
        other = bytes([packet[0] ^ 0x10]) + packet[1:start]
        rejected(lambda: open_packet(key, nonce, other, packet[start:]), "another header")


def check_erasure(data):
    for vector in each("erasure.rows", data["rows"]):
        row = bytes(coefficient(vector["repair"], j) for j in range(64))
        equal("row", row.hex(), vector["coefficients"])
    for vector in each("erasure.blocks", data["blocks"]):
        k, length, block = vector["k"], vector["symbol_len"], bytes.fromhex(vector["block"])
        symbols = {symbol["esi"]: bytes.fromhex(symbol["data"]) for symbol in vector["symbols"]}
        equal("symbols", len(symbols), k)
        equal("rebuilt block", rebuild(k, symbols).hex(), (block + bytes(k * length - len(block))).hex())


def check_preambles(data):
    for vector in each("preambles.preambles", data["preambles"]):
        reader = Reader(bytes.fromhex(vector["bytes"]))
        equal("preamble", {**read_preamble(reader), "bytes": vector["bytes"]}, vector)
        equal("end", reader.left(), 0)
    for vector in each("preambles.invalid", data["invalid"]):
        rejected(lambda: read_preamble(Reader(bytes.fromhex(vector["bytes"]))), vector["why"])


WINDOW, AHEAD = 8192, (1 << 15) - 8192


class Receiver:
    """The section Blocks, for messages of one block."""

    def __init__(self):
        self.newest, self.done, self.held = 0, set(), {}

    def see(self, number):
        self.newest = max(self.newest, number)
        floor = self.newest - WINDOW + 1
        self.held = {block: cut for block, cut in self.held.items() if block >= floor}
        return floor

    def abandon(self, first, count):
        for block in range(first, first + count):
            self.done.add(block)
            self.held.pop(block, None)
        self.see(first + count - 1)

    def symbol(self, truncated, k, esi, data):
        number = expand(truncated, 16, self.newest)
        if number > self.newest + AHEAD:
            return "refused", []
        floor = self.see(number)
        if number < floor or number in self.done:
            return "acknowledged", []
        held_k, symbols = self.held.get(number, (k, {}))
        length = len(next(iter(symbols.values()), data))
        if (k, len(data)) != (held_k, length):
            if len(data) < length and k >= held_k:
                symbols = {}
            elif len(data) > length and k <= held_k:
                return "acknowledged", []
            else:
                return "malformed", []
        symbols[esi] = data
        self.held[number] = (k, symbols)
        if len(symbols) < k:
            return "acknowledged", []
        del self.held[number]
        self.done.add(number)
        reader = Reader(rebuild(k, symbols))
        length = read_preamble(reader)["message_len"]
        return "acknowledged", [reader.rest()[:length].hex()]


def check_blocks(data):
    for script in each("blocks.scripts", data["scripts"]):
        receiver = Receiver()
        for step in script["steps"]:
            if "abandon" in step:
                receiver.abandon(step["abandon"]["first"], step["abandon"]["count"])
                continue
            symbol = step["symbol"]
            told = receiver.symbol(symbol["block"], symbol["k"], symbol["esi"], bytes.fromhex(symbol["data"]))
            equal(script["what"], told, (step["result"], step["handed_on"]))


def check_messages(data):
    for vector in each("messages.messages", data["messages"]):
        blocks = {}
        for symbol in vector["symbols"]:
            k, symbols = blocks.setdefault(symbol["block"], (symbol["k"], {}))
            equal("k", symbol["k"], k)
            symbols[symbol["esi"]] = bytes.fromhex(symbol["data"])
        equal("blocks", len(blocks), vector["blocks"])
        message, head = b"", None
        for index, (number, (k, symbols)) in enumerate(sorted(blocks.items())):
            equal("block number", number, vector["first_block"] + index)
            reader = Reader(rebuild(k, symbols))
            preamble = read_preamble(reader)
            if index == 0:
                head = preamble
            else:
                equal("place", preamble, {"distance": index, "index": index})
            message += reader.rest()
        equal("stream", head["stream"], vector["stream"])
        equal("message", message[: head["message_len"]].hex(), vector["message"])


def check_streams(data):
    for vector in each("streams.streams", data["streams"]):
        waiting, newest, keys, handed_on = {}, {}, {}, []
        # So many messages of each stream were handed on in sequence before.
        following = {arrival["stream"]: vector["in_order_before"] for arrival in vector["arrivals"]}
        for arrival in vector["arrivals"]:
            stream, order, value = arrival["stream"], arrival["order"], arrival["order_value"]
            block, name = arrival["first_block"], arrival["message"]
            if order == "none":
                handed_on.append(name)
            elif order == "newest":
                if block > newest.get(stream, -1):
                    newest[stream] = block
                    handed_on.append(name)
            elif order == "key":
                if block > keys.get((stream, value), -1):
                    keys[stream, value] = block
                    handed_on.append(name)
            else:
                sequence = expand(value, 16, following.get(stream, 0))
                if sequence < following.get(stream, 0) or (stream, sequence) in waiting:
                    continue
                waiting[stream, sequence] = None if order == "void" else name
                while (stream, following.get(stream, 0)) in waiting:
                    turn = waiting.pop((stream, following.get(stream, 0)))
                    following[stream] = following.get(stream, 0) + 1
                    if turn is not None:
                        handed_on.append(turn)
        equal("handed on", handed_on, vector["handed_on"])


def main():
    default = pathlib.Path(__file__).resolve().parent.parent / "vectors"
    directory = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    checks = {name[6:]: check for name, check in globals().items() if name.startswith("check_")}
    files = {path.stem: path for path in sorted(directory.glob("*.json"))}
    if set(files) != set(checks):
        fail(f"{directory} holds {sorted(files)}, and this script checks {sorted(checks)}")
    for name, path in files.items():
        try:
            checks[name](json.loads(path.read_text()))
        except (Malformed, KeyError, StopIteration, ValueError) as error:
            fail(f"cannot be read by PROTOCOL.md: {error!r}")
    print(f"{passed} passed, 0 failed")


if __name__ == "__main__":
    main()
