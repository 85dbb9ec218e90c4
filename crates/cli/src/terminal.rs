//! The terminals that the program writes to: how wide they are, and what fits.

use console::Term;

/// Columns of standard output; None where it is no terminal.
pub(crate) fn width() -> Option<usize> {
    columns(&Term::stdout())
}

fn columns(term: &Term) -> Option<usize> {
    let size = term.is_term().then(|| term.size_checked()).flatten();
    let (_, columns) = size?;
    // Some terminals do not know their size, and say 0.
    (columns > 0).then_some(usize::from(columns))
}

/// Every line cut so that it fits standard error beside so many other characters: a line that goes over the edge is not taken back when
/// it is drawn again.
pub(crate) fn cut(text: &str, beside: usize) -> String {
    match columns(&Term::stderr()) {
        Some(width) => cut_to(text, width.saturating_sub(beside + 1)),
        None => text.to_owned(),
    }
}

fn cut_to(text: &str, width: usize) -> String {
    let lines = text.lines();
    let lines = lines.map(|line| console::truncate_str(line, width.max(1), "…"));
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_one_by_one() {
        assert_eq!(cut_to("short\nrather long", 6), "short\nrathe…");
        assert_eq!(cut_to("wide", 0), "…");
        assert_eq!(cut_to("", 9), "");
    }
}
