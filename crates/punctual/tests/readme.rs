//! What the README shows is what is compiled.

/// Lines of the first block of code that begins so, without those that the documentation hides.
fn block<'a>(lines: impl Iterator<Item = &'a str>, begins: &str) -> Vec<&'a str> {
    lines
        .skip_while(|line| *line != begins)
        .skip(1)
        .take_while(|line| *line != "```")
        .filter(|line| !line.starts_with("# "))
        .collect()
}

#[test]
fn its_example_is_the_one_of_the_documentation() {
    let readme = block(include_str!("../../../README.md").lines(), "```rust");
    let documented = include_str!("../src/lib.rs").lines();
    let documented = documented.map_while(|line| line.strip_prefix("//!"));
    let documented = block(
        documented.map(|line| line.strip_prefix(' ').unwrap_or(line)),
        "```",
    );
    assert!(readme.len() > 15);
    assert_eq!(readme, documented);
}
