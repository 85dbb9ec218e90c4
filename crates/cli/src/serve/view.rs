//! What a server shows: its URL, who comes and goes, and counts: redrawn on a terminal, as lines of JSON, or a line a guest.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use super::guests::{Guest, Guests};
use super::print_line;
use crate::failure::Failure;
use crate::listen::Listen;
use crate::output;
use crate::scoreboard::count;
use crate::terminal;

/// Most sessions that are shown, so that they fit a terminal.
const SHOWN: usize = 16;
/// Time between two looks at the counts.
const SHOW_EVERY: Duration = Duration::from_secs(1);

/// Where it is shown.
pub(super) struct View {
    is_json: bool,
    bar: Option<ProgressBar>,
    next: Instant,
    messages_then: u64,
}

impl View {
    pub(super) fn new(is_json: bool) -> Self {
        let is_terminal = io::stderr().is_terminal();
        let bar = (is_terminal && !is_json).then(|| {
            let bar = ProgressBar::new_spinner();
            bar.set_style(
                ProgressStyle::with_template("{msg}").expect("the template is a constant"),
            );
            bar
        });
        Self {
            is_json,
            bar,
            next: Instant::now() + SHOW_EVERY,
            messages_then: 0,
        }
    }

    pub(super) fn on_listening(&self, urls: &[String], listen: &Listen) -> Result<(), Failure> {
        if listen.is_ephemeral() {
            output::note(
                "This key lasts until the server ends; for one that stays: punctual keygen --out server.key, then serve --key server.key",
            );
        }
        if self.is_json {
            return print_line(json!({"event": "listening", "urls": urls}));
        }
        let mut text = "Clients connect with one of:\n".to_owned();
        for url in urls {
            text += &format!("  punctual send '{url}'{}\n", listen.token_flag());
        }
        output::print(&text)
    }

    pub(super) fn on_connected(&self, guest: &Guest) -> Result<(), Failure> {
        let (text, event) = guest.connected();
        if self.is_json {
            return print_line(event);
        }
        self.say(&text);
        Ok(())
    }

    pub(super) fn on_closed(&self, guest: &Guest) -> Result<(), Failure> {
        let reason = guest.reason.as_deref().unwrap_or("over");
        if self.is_json {
            let mut counts = counts("closed", guest);
            counts["reason"] = json!(reason);
            return print_line(counts);
        }
        self.say(&format!(
            "{} left after {}, {} bytes: {reason}",
            guest.name(),
            output::counted(guest.messages, "message"),
            count(guest.bytes)
        ));
        Ok(())
    }

    /// Shows the counts, once a second.
    pub(super) fn show(&mut self, guests: &Guests) -> Result<(), Failure> {
        let now = Instant::now();
        if now < self.next {
            return Ok(());
        }
        self.next = now + SHOW_EVERY;
        if self.is_json {
            for guest in guests.open() {
                print_line(counts("counts", guest))?;
            }
        }
        if let Some(bar) = &self.bar {
            bar.set_message(terminal::cut(&live(guests, self.messages_then), 0));
            bar.tick();
        }
        self.messages_then = guests.messages();
        Ok(())
    }

    pub(super) fn on_end(&self, guests: &Guests) -> Result<(), Failure> {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        if self.is_json {
            return Ok(());
        }
        output::print(&format!(
            "{} sessions, {} messages.\n",
            count(guests.admitted),
            count(guests.messages())
        ))
    }

    /// A line that stays.
    fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => output::note(text),
        }
    }
}

fn counts(event: &str, guest: &Guest) -> serde_json::Value {
    json!({
        "event": event,
        "session": guest.number,
        "remote": guest.name(),
        "messages": guest.messages,
        "bytes": guest.bytes,
    })
}

fn live(guests: &Guests, messages_then: u64) -> String {
    let rate = guests.messages().saturating_sub(messages_then);
    let open = guests.open();
    let mut text = format!("{} sessions, {} messages a second", open.len(), count(rate));
    for guest in open.iter().take(SHOWN) {
        text += &format!(
            "\n  {:<24} {:>12} messages {:>16} bytes",
            guest.name(),
            count(guest.messages),
            count(guest.bytes)
        );
    }
    if open.len() > SHOWN {
        text += &format!("\n  and {} more", open.len() - SHOWN);
    }
    text
}
