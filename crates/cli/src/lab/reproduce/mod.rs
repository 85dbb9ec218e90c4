//! `punctual lab reproduce`: tables and figures of papers, run here, beside the papers' numbers.
//!
//! A [`Reproduction`] is one run and what it shows: some tables and figures come of the same one. `pangolin/` has those of
//! one paper, `games.rs` of two; [`all`] joins them. `show.rs` prints and draws, `stage.rs` is where they play.

mod games;
mod pangolin;
mod show;
mod stage;

use std::cell::RefCell;
use std::path::PathBuf;

use punctual_lab::emulator;
use punctual_lab::reproduce::Reproduced;
use serde_json::{Value, json};

use self::show::Reproductions;
use self::stage::Stage;
use super::inside::emulator_failed;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::{self, OutputFile};
use crate::values;

/// Tables or figures that come of one run.
trait Reproduction {
    /// Paper, then `table` or `figure`, then its number: `pangolin-table-1`.
    fn names(&self) -> &'static [&'static str];

    /// What it is, for lists.
    fn about(&self) -> &'static str;

    /// Whether it plays on an emulated network, which needs privileges.
    fn has_network(&self) -> bool {
        true
    }

    /// Runs it: what came of each name, in their order.
    ///
    /// # Errors
    /// When it could not be played to its end.
    fn run(&self, stage: &Stage) -> Result<Vec<Reproduced>, Failure>;
}

/// Every reproduction, in the order in which they are run.
fn all() -> Vec<Box<dyn Reproduction>> {
    let mut all = pangolin::all();
    all.extend(games::all());
    all
}

/// Repeat tables and figures of papers on this machine's kernel, beside the papers' numbers, with a verdict for each.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  punctual lab reproduce list\n  punctual lab reproduce table-2 --report table-2.html\n  punctual lab reproduce all --quick"
)]
pub(crate) struct Args {
    /// Tables and figures: all, list, or names such as table-1 (where only one paper has one) or pangolin-table-1.
    #[arg(required = true, value_name = "TABLE|FIGURE|all|list")]
    names: Vec<String>,
    /// Fewer clients and messages: all of it in under 3 minutes, with wide intervals.
    #[arg(long)]
    quick: bool,
    /// Repeats clients, fates and the instants of sending.
    #[arg(long, default_value_t = 1, value_parser = values::whole::<u64>(0..=u64::MAX))]
    seed: u64,
    /// Print one JSON object: `is_complete` (nothing ended it early), `reproductions`, a list of {`name`, `title`, `setup`, `rows` {`what`, `unit`, `paper`, `here`, `here_95`, `verdict`, `note`},
    /// `remarks`, `charts`}; of list: `list`, of {`names`, `about`}.
    #[arg(long)]
    json: bool,
    /// Write a page with the figures.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    if args.names.iter().any(|name| name == "list") {
        if args.names.len() > 1 {
            return Err(Failure::bad_input(
                "list stands alone: nothing is reproduced beside it",
            ));
        }
        if args.report.is_some() {
            return Err(Failure::bad_input(
                "list writes no page: leave --report out",
            ));
        }
        return match args.json {
            true => output::print_json(&list_json()),
            false => output::print(&list()),
        };
    }
    let all = all();
    let wanted = wanted(&all, &args.names)?;
    let chosen: Vec<_> = (all.iter())
        .filter(|one| one.names().iter().any(|name| wanted.contains(name)))
        .collect();
    if chosen.iter().any(|one| one.has_network()) {
        emulator::acquire_privilege().map_err(emulator_failed)?;
    }
    let page = OutputFile::page_if(args.report.as_ref())?;
    interrupt::watch();
    let stage = Stage {
        is_quick: args.quick,
        seed: args.seed,
        json: args.json,
        remarks: RefCell::default(),
    };
    let mut reproductions = Reproductions::new(args.quick, args.seed);
    let mut ended = Ok(());
    for one in chosen {
        let results = match one.run(&stage) {
            Ok(results) => results.into_iter(),
            // What took half an hour before it is not lost.
            Err(why) => {
                ended = Err(why);
                break;
            }
        };
        let remarks = stage.remarks.take();
        let results: Vec<_> = results
            .filter(|result| wanted.contains(&result.name))
            .map(|mut result| {
                result.remarks.extend_from_slice(&remarks);
                result
            })
            .collect();
        if !args.json {
            output::print(&show::text(&results))?;
        }
        reproductions.results.extend(results);
    }
    if ended.is_err() && reproductions.results.is_empty() {
        return ended;
    }
    reproductions.is_complete = ended.is_ok();
    let printed = match args.json {
        true => output::print_json(&reproductions),
        false => output::print(&reproductions.summary()),
    };
    let told = output::then_write(printed, page, || show::html(&reproductions));
    ended.and(told)
}

fn list() -> String {
    let rows = all().into_iter().map(|one| {
        let names = one.names().join(", ");
        vec![format!("{names}:  {}", one.about())]
    });
    output::table(&rows.collect::<Vec<_>>())
}

fn list_json() -> Value {
    let all = all().into_iter();
    let all = all.map(|one| json!({ "names": one.names(), "about": one.about() }));
    json!({ "list": all.collect::<Vec<_>>() })
}

/// The full names of those that are meant.
fn wanted(all: &[Box<dyn Reproduction>], names: &[String]) -> Result<Vec<&'static str>, Failure> {
    let known: Vec<&'static str> = all.iter().flat_map(|one| one.names()).copied().collect();
    let mut wanted = Vec::new();
    for name in names {
        if name == "all" {
            wanted.extend(&known);
            continue;
        }
        let suffix = format!("-{name}");
        let is_meant = |known: &&&str| **known == name || known.ends_with(&suffix);
        let meant: Vec<_> = known.iter().filter(is_meant).copied().collect();
        match meant[..] {
            [one] => wanted.push(one),
            [] => {
                let known = known.join(", ");
                return Err(Failure::bad_input(format_args!(
                    "there is no table or figure {name}: there are all, {known}"
                )));
            }
            _ => {
                let meant = meant.join(" or ");
                return Err(Failure::bad_input(format_args!(
                    "{name} can be {meant}: say which"
                )));
            }
        }
    }
    Ok(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Result<Vec<&'static str>, Failure> {
        let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
        wanted(&all(), &names)
    }

    #[test]
    fn names_are_unique_and_can_be_short() {
        let mut known: Vec<_> = all().iter().flat_map(|one| one.names()).copied().collect();
        assert_eq!(names(&["all"]).unwrap(), known);
        let count = known.len();
        known.sort_unstable();
        known.dedup();
        assert_eq!(known.len(), count);
        assert_eq!(names(&["pangolin-table-2"]).unwrap(), ["pangolin-table-2"]);
        assert_eq!(names(&["table-2"]).unwrap(), ["pangolin-table-2"]);
        assert!(matches!(names(&["table-99"]), Err(Failure::BadInput(_))));
        // Not a name, only its end.
        assert!(matches!(names(&["2"]), Err(Failure::BadInput(_))));
        for name in known {
            assert!(list().contains(name));
        }
    }
}
