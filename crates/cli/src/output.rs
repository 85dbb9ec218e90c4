//! What a command leaves: text or one JSON object (`--json`) on standard output, and files.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::failure::Failure;
use crate::scoreboard::count;
use crate::terminal;

/// Prints `text` as it is.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| Failure::output(&error))
}

/// Prints one JSON object and a line end.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let mut text = serde_json::to_string_pretty(value)
        .expect("what the program prints has string keys and no foreign serialisers");
    text.push('\n');
    print(&text)
}

/// Rows of cells as aligned columns: the first to the left, the others to the right. On a terminal that is too narrow for all of them the
/// first stands before each part of the others.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    table_within(rows, terminal::width().unwrap_or(usize::MAX))
}

fn table_within(rows: &[Vec<String>], width_max: usize) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |i: usize| {
        let cells = rows.iter().filter_map(|row| row.get(i));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let parts = parts(&widths, width_max);
    let parts = parts.into_iter().map(|part| aligned(rows, &widths, part));
    parts.collect::<Vec<_>>().join("\n")
}

/// The columns after the first, as many at a time as fit beside it; one at least.
fn parts(widths: &[usize], width_max: usize) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let (mut from, mut taken) = (1, widths.first().copied().unwrap_or(0));
    for (i, width) in widths.iter().enumerate().skip(1) {
        if i > from && taken + 2 + width > width_max {
            parts.push(from..i);
            (from, taken) = (i, widths[0]);
        }
        taken += 2 + width;
    }
    parts.push(from..widths.len().max(from));
    parts
}

/// The first column, and some of the others.
fn aligned(rows: &[Vec<String>], widths: &[usize], others: Range<usize>) -> String {
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (i, (cell, &width)) in row.iter().zip(widths).enumerate() {
            line += &match i {
                0 => format!("{cell:<width$}"),
                i if others.contains(&i) => format!("  {cell:>width$}"),
                _ => String::new(),
            };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// Rows below a heading, whose cells are divided by `|`.
pub(crate) fn headed(
    heading: &str,
    rows: impl IntoIterator<Item = Vec<String>>,
) -> Vec<Vec<String>> {
    let heading = heading.split('|').map(ToOwned::to_owned).collect();
    std::iter::once(heading).chain(rows).collect()
}

/// Longest lines of prose.
const PROSE_WIDTH: usize = 100;

/// Prose in lines of at most 100 characters, and no wider than the terminal, as far as words allow. Each but the first begins with `indent`,
/// for which the first leaves room.
pub(crate) fn wrapped(text: &str, indent: &str) -> String {
    let width = terminal::width().map_or(PROSE_WIDTH, |width| width.clamp(40, PROSE_WIDTH));
    wrapped_at(width, text, indent)
}

fn wrapped_at(width_max: usize, text: &str, indent: &str) -> String {
    let mut lines = String::new();
    let mut length = indent.chars().count();
    for (i, word) in text.split_whitespace().enumerate() {
        let width = word.chars().count();
        if i > 0 && length + 1 + width > width_max {
            lines += &format!("\n{indent}");
            length = indent.chars().count();
        } else if i > 0 {
            lines.push(' ');
            length += 1;
        }
        lines += word;
        length += width;
    }
    lines.push('\n');
    lines
}

/// The cell of what there is no figure for.
pub(crate) fn dash() -> String {
    "-".to_owned()
}

/// A file that will be written at the end of the work: tried at its beginning, so that a wrong path is told at once. One that was
/// not there before is not there until it is written, whatever ends the work.
pub(crate) struct OutputFile {
    path: PathBuf,
    /// What was there: a file, a pipe, a device.
    existing: Option<File>,
}

impl OutputFile {
    /// Finds out whether the file can be written. What it held stays until [`OutputFile::write`].
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        if path == Path::new("-") {
            return Err(Failure::bad_input(
                "- would be a file of that name; standard output is what the figures go to",
            ));
        }
        let created = OpenOptions::new().write(true).create_new(true).open(path);
        let existing = match created {
            Ok(_) => fs::remove_file(path).map(|()| None),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                OpenOptions::new().write(true).open(path).map(Some)
            }
            Err(error) => Err(error),
        };
        let existing = existing.map_err(|error| {
            Failure::bad_input(format_args!(
                "{} cannot be written ({error}); choose another file",
                path.display()
            ))
        })?;
        let path = path.to_owned();
        Ok(Self { path, existing })
    }

    /// Opens the file that a flag may name for a page or a picture, and leaves alone what is neither: a recording, say.
    pub(crate) fn page_if(path: Option<&PathBuf>) -> Result<Option<Self>, Failure> {
        if let Some(path) = path {
            check_replaceable(path, "<")?;
        }
        Self::open_if(path)
    }

    /// Opens the file that a flag may name.
    pub(crate) fn open_if(path: Option<&PathBuf>) -> Result<Option<Self>, Failure> {
        path.map(|path| Self::open(path)).transpose()
    }

    /// Writes all of it, and says on standard error that it is there.
    pub(crate) fn write(self, text: &str) -> Result<(), Failure> {
        let opened = match self.existing {
            Some(file) => Ok(file),
            None => File::create(&self.path),
        };
        let written = opened.and_then(|mut file| {
            // Pipes and devices cannot be cut, and need not be.
            let _ = file.set_len(0);
            file.write_all(text.as_bytes())
        });
        written.map_err(|error| {
            Failure::failed(format_args!(
                "{} was not written: {error}",
                self.path.display()
            ))
        })?;
        note(&format!("wrote {}", self.path.display()));
        Ok(())
    }
}

/// Refuses a file with content that does not begin like what is to take its place: it would be lost by a slip of the hand.
pub(crate) fn check_replaceable(path: &Path, begins_with: &str) -> Result<(), Failure> {
    if !path.is_file() {
        return Ok(());
    }
    let mut head = Vec::new();
    // What cannot be read may still be written; whoever writes it says why not.
    let read = File::open(path).and_then(|file| {
        let length = begins_with.len() as u64;
        file.take(length).read_to_end(&mut head)
    });
    match read {
        Ok(length) if length > 0 && head != begins_with.as_bytes() => {
            Err(Failure::bad_input(format_args!(
                "{} holds something else and is not written over; choose another file, or remove it",
                path.display()
            )))
        }
        _ => Ok(()),
    }
}

/// Writes the page after what was printed, so that a full disk takes no figures with it; `printed` is what came of that.
pub(crate) fn then_write(
    printed: Result<(), Failure>,
    page: Option<OutputFile>,
    text: impl FnOnce() -> String,
) -> Result<(), Failure> {
    let written = page.map_or(Ok(()), |page| page.write(&text()));
    and_besides(printed, written)
}

/// The first that failed; but that nobody reads what was printed is no failure of anything else, and hides none.
pub(crate) fn and_besides(
    printed: Result<(), Failure>,
    besides: Result<(), Failure>,
) -> Result<(), Failure> {
    match (printed, besides) {
        (Err(Failure::OutputClosed), Err(besides)) => Err(besides),
        (printed, besides) => printed.and(besides),
    }
}

/// Refuses flags that name the same file: what is written last would be all that is left. (Pipes and devices take both.)
pub(crate) fn check_distinct(flags: &[(&str, Option<&PathBuf>)]) -> Result<(), Failure> {
    let files = flags
        .iter()
        .filter_map(|(flag, path)| Some((*flag, resolved((*path)?))));
    let files: Vec<(&str, PathBuf)> = files.collect();
    for (place, (flag, file)) in files.iter().enumerate() {
        let earlier = files[..place].iter().find(|(_, other)| other == file);
        if let Some((other, _)) = earlier.filter(|_| file.is_file() || !file.exists()) {
            return Err(Failure::bad_input(format_args!(
                "{other} and {flag} both name {}; choose another file for one of them",
                file.display()
            )));
        }
    }
    Ok(())
}

/// The file that a path leads to, also when it is not there yet.
fn resolved(path: &Path) -> PathBuf {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let there = || {
        let folder = fs::canonicalize(folder.unwrap_or_else(|| Path::new("."))).ok()?;
        Some(folder.join(path.file_name()?))
    };
    let file = fs::canonicalize(path).ok().or_else(there);
    file.unwrap_or_else(|| path.to_owned())
}

/// `1 row`, `2 rows`.
pub(crate) fn counted(number: impl TryInto<u64>, thing: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    let end = if number == 1 { "" } else { "s" };
    format!("{} {thing}{end}", count(number))
}

/// What a reader must know to trust the numbers above.
pub(crate) fn remark(text: &str) -> String {
    wrapped(&format!("Note: {text}"), "  ")
}

/// A remark on standard error.
pub(crate) fn note(text: &str) {
    // When standard error is gone, nobody wants to know.
    let _ = writeln!(io::stderr(), "{text}");
}

/// The command line that was given, quoted for a shell: it repeats the run.
pub(crate) fn command_line() -> String {
    let given = std::env::args_os().skip(1);
    let words = given.map(|word| quoted(&word.to_string_lossy()));
    std::iter::once("punctual".to_owned())
        .chain(words)
        .collect::<Vec<_>>()
        .join(" ")
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A regression: a command whose reader had gone ended well, whatever else had failed.
    #[test]
    fn a_reader_that_has_gone_hides_no_failure() {
        let closed = || Err(Failure::OutputClosed);
        let failed = || Err(Failure::Interrupted);
        let both = |printed, besides| and_besides(printed, besides).err();
        assert!(matches!(
            both(closed(), failed()),
            Some(Failure::Interrupted)
        ));
        assert!(matches!(
            both(failed(), closed()),
            Some(Failure::Interrupted)
        ));
        assert!(matches!(
            both(closed(), Ok(())),
            Some(Failure::OutputClosed)
        ));
        assert!(both(Ok(()), Ok(())).is_none());
    }

    #[test]
    fn words_survive_a_shell() {
        for (word, expected) in [
            ("--loss=0.02", "--loss=0.02"),
            ("fixed(1)", "'fixed(1)'"),
            ("", "''"),
            ("it's $HOME", "'it'\\''s $HOME'"),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }

    #[test]
    fn a_new_file_is_there_once_it_is_written() {
        let path = std::env::temp_dir().join(format!("punctual-output-{}", std::process::id()));
        let open = || OutputFile::open(&path).expect("temporary files can be written");
        let held = || fs::read_to_string(&path).ok();
        let opened = open();
        assert_eq!(held(), None, "an interrupt would leave it");
        drop(opened);
        assert_eq!(held(), None);
        assert!(open().write("first").is_ok());
        drop(open());
        assert_eq!(held().as_deref(), Some("first"));
        assert!(open().write("2nd").is_ok());
        assert_eq!(held().as_deref(), Some("2nd"));
        let _ = fs::remove_file(&path);
    }

    #[test]
    fn prose_fits_a_terminal() {
        let text = wrapped_at(PROSE_WIDTH, &"twelve chars ".repeat(20), "   ");
        assert!(text.lines().all(|line| line.len() <= PROSE_WIDTH));
        assert!(text.lines().skip(1).all(|line| line.starts_with("   ")));
        assert_eq!(text.split_whitespace().count(), 40);
        assert_eq!(wrapped("", ""), "\n");
        assert_eq!(
            wrapped_at(9, "four words in all", " "),
            "four\n words in\n all\n"
        );
    }

    #[test]
    fn tables_are_aligned() {
        let rows = [
            vec!["a".to_owned(), "1".to_owned()],
            vec!["bcd".to_owned(), "23".to_owned()],
        ];
        assert_eq!(table(&rows), "a     1\nbcd  23\n");
        assert_eq!(table(&[]), "");
    }

    /// Goal: a table can be read on any terminal.   Method: widths from all of it down to nothing.
    #[test]
    fn wide_tables_are_parted() {
        let row = |cells: &str| cells.split(' ').map(str::to_owned).collect();
        let rows = [row("name one two"), row("a 1 22")];
        assert_eq!(table_within(&rows, 14), "name  one  two\na       1   22\n");
        for width in [13, 9, 0] {
            let parted = "name  one\na       1\n\nname  two\na      22\n";
            assert_eq!(table_within(&rows, width), parted);
        }
        assert_eq!(table_within(&[row("alone")], 2), "alone\n");
    }
}
