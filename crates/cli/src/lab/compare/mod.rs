//! `punctual lab compare-policies`: every policy over every trace of a folder, and whether a candidate holds what is asked of it.
//!
//! `comparison.rs` is what comes of it, `text.rs` and `page.rs` show it.

mod comparison;
mod page;
mod text;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use punctual_lab::compare::{
    DEADLINES_RTT, MESSAGES, MESSAGES_MAX, MESSAGES_MIN, ON_TIME_TARGETS, Plan, Recording,
    Recordings, Rivals, SYMBOLS, compare,
};
use punctual_policy::PolicyKind;

use crate::failure::Failure;
use crate::output::{self, OutputFile};
use crate::progress::Progress;
use crate::{interrupt, values};
use comparison::Comparison;

/// Play every policy over every trace of a folder, for several deadlines, targets and sizes of message, in virtual time; and judge one
/// policy beside pangolin (docs/manual/compare-policies.md).
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  punctual lab compare-policies --traces recordings --html policies.html"
)]
pub(crate) struct Args {
    /// A folder, looked through with all below it, or a file. Read is what `punctual lab replay` reads, if it has delays.
    #[arg(long, value_name = "DIR")]
    traces: PathBuf,
    /// Policies: retransmit, fixed(N), also written fixed:N, hairpin, hairpin(PRICE), pangolin, exact, steered (default: one of each kind).
    #[arg(long, value_name = "POLICY,..", value_delimiter = ',')]
    policies: Option<Vec<PolicyKind>>,
    /// Who is judged beside pangolin (default: steered if it plays, else exact).
    #[arg(long, value_name = "POLICY")]
    candidate: Option<PolicyKind>,
    /// Deadlines, in median round trips of each trace.
    #[arg(
        long,
        value_name = "RTTS,..",
        value_delimiter = ',',
        default_values_t = DEADLINES_RTT,
        value_parser = values::round_trips
    )]
    deadlines: Vec<f64>,
    /// Shares of messages that shall be on time.
    #[arg(long, value_name = "SHARE,..", value_delimiter = ',', default_values_t = ON_TIME_TARGETS, value_parser = values::on_time)]
    targets: Vec<f64>,
    /// Source symbols of a message, 1,000 bytes each.
    #[arg(long, value_name = "K,..", value_delimiter = ',', default_values_t = SYMBOLS, value_parser = values::whole::<u8>(1..=64))]
    symbols: Vec<u8>,
    /// Messages of each policy in each row.
    #[arg(long, value_name = "N", default_value_t = MESSAGES, value_parser = values::whole::<u64>(MESSAGES_MIN..=MESSAGES_MAX))]
    messages: u64,
    /// Rows that chance leaves open, of candidate and pangolin, are played again, each time with four times as many messages, up to so
    /// many (default: as --messages, never again).
    #[arg(long, value_name = "N", value_parser = values::whole::<u64>(MESSAGES_MIN..=MESSAGES_MAX))]
    messages_max: Option<u64>,
    /// Time from one message to the next.
    #[arg(long, value_name = "MS", default_value = "20", value_parser = values::millis_above_zero)]
    interval_ms: Duration,
    /// Where in each trace the messages begin, and all else that is drawn; the same for all policies.
    #[arg(long, default_value_t = 1, value_parser = values::whole::<u64>(0..=u64::MAX))]
    seed: u64,
    /// Rows played at the same time. The figures are the same.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = values::whole::<u16>(1..=1024))]
    threads: u16,
    /// Print one JSON object: its fields are in docs/manual/compare-policies.md.
    #[arg(long)]
    json: bool,
    /// Write a page.
    #[arg(long, value_name = "FILE", visible_alias = "report")]
    html: Option<PathBuf>,
}

/// Beside whom the candidate is judged.
const REFERENCE: PolicyKind = PolicyKind::Pangolin;
/// Who plays unless asked otherwise: one of each kind, those that are not there yet left out.
const POLICIES: [&str; 7] = [
    "retransmit",
    "fixed(1)",
    "fixed(3)",
    "hairpin",
    "pangolin",
    "exact",
    "steered",
];
/// Who is judged unless asked otherwise: the first that plays.
const CANDIDATES: [&str; 2] = ["steered", "exact"];

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let policies = args.policies();
    let candidate = args.candidate(&policies)?;
    let recordings = Recordings::below(&args.traces).map_err(Failure::bad_input)?;
    let plan = args.plan(recordings.used, policies, candidate);
    plan.check().map_err(Failure::bad_input)?;
    // First: from here on Ctrl-C leads to the end of this function, and takes the page with it.
    interrupt::watch();
    let page = OutputFile::page_if(args.html.as_ref())?;
    let begin = Instant::now();
    let compared = {
        let progress = Progress::new(1000, args.json);
        let compared = compare(&plan, usize::from(args.threads), &|step| {
            let done = u128::from(step.messages) * 1000 / u128::from(step.of.max(1));
            let label = match step.messages_each > plan.messages {
                false => step.trace.to_owned(),
                true => format!("{}, again, {} messages", step.trace, step.messages_each),
            };
            progress.show(done as u64, &label);
            !interrupt::is_requested()
        });
        progress.clear();
        compared.map_err(Failure::bad_input)?
    };
    let is_complete = compared.is_complete;
    if compared.rows.is_empty() {
        return Err(Failure::Interrupted);
    }
    let comparison = Comparison::new(&plan, compared, recordings.passed_over, begin.elapsed());
    let printed = if args.json {
        output::print_json(&comparison)
    } else {
        output::print(&text::text(&comparison))
    };
    let told = output::then_write(printed, page, || page::html(&comparison));
    let played = if is_complete {
        Ok(())
    } else {
        Err(Failure::Interrupted)
    };
    output::and_besides(told, played)
}

impl Args {
    fn policies(&self) -> Vec<PolicyKind> {
        let policies = self.policies.clone().unwrap_or_else(|| {
            let known = POLICIES.iter().filter_map(|name| name.parse().ok());
            known.chain([PolicyKind::default()]).collect()
        });
        values::once_each(&policies)
    }

    /// Who is judged; None when nobody can be, since neither was asked for.
    fn candidate(&self, policies: &[PolicyKind]) -> Result<Option<PolicyKind>, Failure> {
        let Some(candidate) = self.candidate else {
            let known = CANDIDATES.iter().filter_map(|name| name.parse().ok());
            let playing = known.filter(|_| policies.contains(&REFERENCE));
            return Ok(playing.into_iter().find(|kind| policies.contains(kind)));
        };
        if candidate == REFERENCE {
            return Err(Failure::bad_input(format_args!(
                "--candidate is judged beside {REFERENCE}: name another policy"
            )));
        }
        match [candidate, REFERENCE]
            .iter()
            .find(|kind| !policies.contains(kind))
        {
            None => Ok(Some(candidate)),
            Some(missing) => Err(Failure::bad_input(format_args!(
                "--candidate {candidate} is judged beside {REFERENCE}: add {missing} to --policies"
            ))),
        }
    }

    fn plan(
        &self,
        recordings: Vec<Recording>,
        policies: Vec<PolicyKind>,
        candidate: Option<PolicyKind>,
    ) -> Plan {
        let rivals = candidate.map(|candidate| Rivals {
            candidate: candidate.to_string(),
            reference: REFERENCE.to_string(),
        });
        Plan {
            deadlines_rtt: values::once_each(&self.deadlines),
            on_time_targets: values::once_each(&self.targets),
            symbols: values::once_each(&self.symbols),
            messages: self.messages,
            messages_max: self.messages_max.unwrap_or(self.messages),
            rivals,
            interval: self.interval_ms,
            seed: self.seed,
            ..Plan::new(recordings, policies)
        }
    }
}
