use super::*;

fn peer(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

fn put(batch: &mut SendBatch, len: usize, to: SocketAddr, ecn: Ecn) {
    let mark = u8::try_from(batch.committed).unwrap();
    batch.space().expect("room")[..len].fill(mark);
    batch.commit(len, to, ecn);
}

/// Sizes of the messages and of their segments.
fn shape(batch: &SendBatch) -> Vec<(usize, usize)> {
    let sizes = batch.pending().iter().map(|m| (m.len, m.segment_bytes));
    sizes.collect()
}

#[test]
fn equal_neighbours_join_and_a_shorter_one_ends_the_message() {
    let mut batch = SendBatch::new(SendLimits::default());
    for len in [100, 100, 40, 40, 100] {
        put(&mut batch, len, peer(1), Ecn::Ect0);
    }
    assert_eq!(shape(&batch), [(240, 100), (40, 40), (100, 100)]);
    assert_eq!(batch.len(), 5);
}

#[test]
fn another_peer_or_mark_begins_a_message() {
    let mut batch = SendBatch::new(SendLimits::default());
    put(&mut batch, 50, peer(1), Ecn::Ect0);
    put(&mut batch, 50, peer(2), Ecn::Ect0);
    put(&mut batch, 50, peer(2), Ecn::NotEct);
    put(&mut batch, 50, peer(2), Ecn::NotEct);
    assert_eq!(shape(&batch), [(50, 50), (50, 50), (100, 50)]);
}

#[test]
fn messages_stay_within_what_the_kernel_takes() {
    let mut batch = SendBatch::new(SendLimits {
        datagrams: 140,
        datagram_bytes_max: 9000,
    });
    for _ in 0..65 {
        put(&mut batch, 10, peer(1), Ecn::NotEct);
    }
    for _ in 0..8 {
        put(&mut batch, 9000, peer(1), Ecn::NotEct);
    }
    assert_eq!(
        shape(&batch),
        [(640, 10), (10, 10), (63_000, 9000), (9000, 9000)]
    );
}

#[test]
fn full_at_the_limit_and_roomy_again_when_drained() {
    let mut batch = SendBatch::new(SendLimits {
        datagrams: 3,
        datagram_bytes_max: 20,
    });
    for _ in 0..3 {
        assert_eq!(batch.space().unwrap().len(), 20);
        put(&mut batch, 20, peer(1), Ecn::NotEct);
    }
    assert!(batch.space().is_none());
    assert_eq!(batch.remove(2), 40);
    assert_eq!(batch.len(), 1);
    let last = batch.pending()[0];
    assert_eq!(batch.payload(&last), [2; 20], "the third is left");
    assert!(batch.space().is_none(), "room returns when all has left");
    assert_eq!(batch.remove(1), 20);
    assert!(batch.is_empty() && batch.space().is_some());
}

#[test]
#[should_panic(expected = "full")]
fn committing_beyond_the_limit_is_a_bug() {
    let mut batch = SendBatch::new(SendLimits {
        datagrams: 1,
        datagram_bytes_max: 20,
    });
    batch.commit(1, peer(1), Ecn::NotEct);
    batch.commit(1, peer(1), Ecn::NotEct);
}
