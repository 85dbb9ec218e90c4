//! Files of a folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Files of a folder, at most: more is a wrong folder.
const FILES_MAX: usize = 10_000;

/// The regular files below a directory, in order of their paths. What links to a directory is not entered: it may lead in a circle.
///
/// # Errors
/// What cannot be read, with its path; the directory's when there are more than 10,000 files.
pub fn files_below(directory: &Path) -> Result<Vec<PathBuf>, (PathBuf, io::Error)> {
    let mut files = Vec::new();
    let mut left = vec![directory.to_owned()];
    while let Some(directory) = left.pop() {
        let unreadable = |error| (directory.clone(), error);
        for entry in fs::read_dir(&directory).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let path = entry.path();
            if entry.file_type().map_err(unreadable)?.is_dir() {
                left.push(path);
            } else if path.is_file() {
                files.push(path);
            }
            if files.len() > FILES_MAX {
                let many = format!("it has more than {FILES_MAX} files");
                return Err((directory, io::Error::other(many)));
            }
        }
    }
    files.sort();
    Ok(files)
}
