//! What a receiver hands on of complete messages, by the order of their streams.

use punctual_proto::vectors::StreamOrder;
use punctual_proto::wire::Order;
use serde_json::{Value, json};

use super::blocks::described;

/// (stream, order, first block), in the order of completion.
type Arrivals = Vec<(u16, Order, u64)>;

pub(super) fn streams() -> Value {
    let sequence = |numbers: &[u16]| -> Arrivals {
        let arrival = |(block, number): (usize, &u16)| (2, Order::Sequence(*number), block as u64);
        numbers.iter().enumerate().map(arrival).collect()
    };
    let cases: [(&str, Arrivals); 6] = [
        (
            "without an order, as they come",
            vec![
                (0, Order::None, 4),
                (0, Order::None, 2),
                (1, Order::None, 3),
            ],
        ),
        ("in sequence, each once", sequence(&[1, 0, 0, 3, 1, 2, 2])),
        (
            "a void takes the place of a message, and comes too late for one that was handed on",
            vec![
                (2, Order::Sequence(1), 1),
                (2, Order::Void(0), 2),
                (2, Order::Void(1), 3),
                (2, Order::Sequence(0), 0),
                (2, Order::Sequence(2), 4),
            ],
        ),
        (
            "the newest only, by stream",
            vec![
                (3, Order::Newest, 5),
                (3, Order::Newest, 4),
                (4, Order::Newest, 2),
                (3, Order::Newest, 6),
            ],
        ),
        (
            "the newest of each key, by stream",
            vec![
                (5, Order::Key(1), 9),
                (5, Order::Key(2), 8),
                (5, Order::Key(1), 7),
                (6, Order::Key(1), 3),
                (5, Order::Key(1), 10),
            ],
        ),
        (
            "sequence numbers wrap",
            // The last ones before and the first ones after; all those before them in order.
            {
                let mut numbers: Vec<u16> = (0..=65_533).collect();
                numbers.extend([65_535, 0, 65_534, 1]);
                sequence(&numbers)
            },
        ),
    ];
    let vectors: Vec<Value> = cases
        .into_iter()
        .map(|(what, arrivals)| vector(what, arrivals))
        .collect();
    json!({ "streams": vectors })
}

fn vector(what: &str, arrivals: Arrivals) -> Value {
    let mut receiver = StreamOrder::default();
    let mut handed_on = Vec::new();
    let mut described_arrivals = Vec::new();
    // Of the long one only the end is written down; what came before is said in numbers.
    let skipped = arrivals.len().saturating_sub(16);
    for (at, (stream, order, first_block)) in arrivals.into_iter().enumerate() {
        let message = at as u8;
        let now = receiver.arrive(stream, order, first_block, message);
        if at < skipped {
            continue;
        }
        handed_on.extend(now);
        let (order, value) = described(order);
        described_arrivals.push(json!({
            "stream": stream, "order": order, "order_value": value, "first_block": first_block, "message": message,
        }));
    }
    json!({ "what": what, "in_order_before": skipped, "arrivals": described_arrivals, "handed_on": handed_on })
}
