use super::kernel::parse;

#[test]
fn counters_have_the_names_of_their_lines() {
    let text = "TcpExt: A B C\nTcpExt: 1 -1 3\nIpExt: D\nIpExt: 4\n";
    let expected = [("TcpExt.A", 1), ("TcpExt.C", 3), ("IpExt.D", 4)];
    let expected = expected.map(|(name, count)| (name.to_owned(), count));
    assert_eq!(parse(text), expected);
    assert_eq!(parse("no counters at all\n\n"), []);
}
