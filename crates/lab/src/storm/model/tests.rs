use super::*;

fn sent(number: u64, stream: u16) -> Sent {
    Sent {
        number,
        stream,
        len: 100,
        options: SendOptions::default(),
    }
}

fn accepted(model: &mut Model, number: u64) -> Vec<u8> {
    model
        .on_accepted(MessageId(number), &sent(number, 0))
        .unwrap();
    let mut data = Vec::new();
    fill(&mut data, number, 100);
    data
}

fn on_time() -> Outcome {
    Outcome::OnTime {
        latency: std::time::Duration::ZERO,
        bound: std::time::Duration::ZERO,
    }
}

/// Each rule is seen to fail when it is broken: a checker that cannot fail checks nothing. (In whole storms: `Mutant`.)
#[test]
fn every_broken_promise_is_noticed() {
    let mut model = Model::default();
    accepted(&mut model, 7);
    let verdict = model.on_outcome(MessageId(7), 0, &on_time());
    assert_eq!(verdict.unwrap_err().0, Rule::TrueOutcome);

    let mut model = Model::default();
    let data = accepted(&mut model, 7);
    assert_eq!(model.check_settled().unwrap_err().0, Rule::OneOutcome);
    model.on_delivered(0, &data).unwrap();
    assert_eq!(
        model.on_delivered(0, &data).unwrap_err().0,
        Rule::AtMostOnce
    );
    model.on_outcome(MessageId(7), 0, &on_time()).unwrap();
    let verdict = model.on_outcome(MessageId(7), 0, &on_time());
    assert_eq!(verdict.unwrap_err().0, Rule::OneOutcome);
    model.check_settled().unwrap();

    let mut model = Model::default();
    let mut changed = accepted(&mut model, 8);
    changed[50] ^= 1;
    assert_eq!(
        model.on_delivered(0, &changed).unwrap_err().0,
        Rule::Genuine
    );
    let mut foreign = Vec::new();
    fill(&mut foreign, 9, 100);
    assert_eq!(
        model.on_delivered(0, &foreign).unwrap_err().0,
        Rule::Genuine
    );
    assert_eq!(model.on_delivered(0, &[]).unwrap_err().0, Rule::AtMostOnce);
    let dropped = Outcome::Dropped {
        why: MissReason::Loss,
    };
    let verdict = model.on_outcome(MessageId(8), 0, &dropped);
    assert_eq!(verdict.unwrap_err().0, Rule::TrueOutcome);
}

#[test]
fn cancels_and_streams_are_checked() {
    let mut model = Model::default();
    accepted(&mut model, 1);
    let unknown = model.on_cancel(MessageId(5), Cancel::Dropped);
    assert_eq!(unknown.unwrap_err().0, Rule::TrueCancel);
    let too_late = model.on_cancel(MessageId(1), Cancel::TooLate);
    assert_eq!(too_late.unwrap_err().0, Rule::TrueCancel);
    let config = StreamConfig::default();
    assert_eq!(
        model.on_opened(0, config).unwrap_err().0,
        Rule::Streams,
        "taken"
    );
    assert_eq!(
        model.on_opened(2, config).unwrap_err().0,
        Rule::Streams,
        "not the lowest"
    );
    model.on_stream_closed(0);
    let closed = model.on_accepted(MessageId(2), &sent(2, 0));
    assert_eq!(closed.unwrap_err().0, Rule::Streams);
}
