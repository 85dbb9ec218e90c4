//! The page around the figures. Nothing in it is loaded from elsewhere, and there is no script.

use super::svg::{escape, measured};
use super::terminal::{COLUMNS, floor_row};
use super::{Card, Figures, LineChart, Table, bars, tail_plot};
use crate::stats::{Report, Summary};

/// The report as one HTML page that can be read offline.
pub fn html(report: &Report, figures: &Figures) -> String {
    let mut parts = [policies(report, figures), further(figures)];
    if figures.charts_lead {
        parts.reverse();
    }
    let mut main = parts.concat();
    for numbers in &figures.folded {
        main += &folded(numbers);
    }
    main += &settings(report, figures);
    let title = if figures.title.is_empty() {
        "Punctual report"
    } else {
        &figures.title
    };
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n\
         <p class=\"subtitle\">{subtitle}</p>\n{remarks}{verdicts}</header>\n<main>\n{main}</main>\n</body>\n</html>\n",
        title = escape(title),
        subtitle = escape(&figures.subtitle),
        remarks = remarks(figures),
        verdicts = verdicts(report, figures),
    )
}

fn remarks(figures: &Figures) -> String {
    let remarks = figures.remarks.iter();
    let remarks = remarks.map(|text| format!("<p class=\"remark\">{}</p>\n", escape(text)));
    remarks.collect()
}

/// What the policies did.
fn policies(report: &Report, figures: &Figures) -> String {
    let mut main = String::new();
    if figures
        .latency
        .iter()
        .any(|series| !series.points.is_empty())
    {
        main += &figure(
            "Latency",
            latency_caption(figures),
            &tail_plot::draw(figures),
        );
    }
    if !report.policies.is_empty() {
        main += &figure(
            "Late messages",
            "Dot: measured; bar: 95 % interval; upright mark: what the policy predicted.",
            &bars::late_shares(report, figures),
        );
        main += &figure("What it cost", "", &bars::overheads(report));
        main += &table(report);
    }
    main
}

/// What else there is to see.
fn further(figures: &Figures) -> String {
    let mut main = String::new();
    for chart in &figures.charts {
        main += &chart_figure(chart, || chart.svg());
    }
    for scatter in &figures.scatters {
        main += &chart_figure(&scatter.chart, || scatter.svg());
    }
    for numbers in &figures.tables {
        main += &section(numbers);
    }
    main
}

/// A chart as an SVG file of its own, with the style that a page would give it.
pub fn standalone_svg(chart: &LineChart) -> String {
    let style = format!(
        ">\n<style><![CDATA[\n{STYLE}]]></style>\n<rect width=\"100%\" height=\"100%\" style=\"fill: var(--panel)\"/>\n"
    );
    chart.svg().replacen(">\n", &style, 1)
}

const fn latency_caption(figures: &Figures) -> &'static str {
    if figures.deadline_ms.is_some() {
        "Each step up the left axis is ten times fewer messages. A policy keeps the promise when its line is above the \
         target where it crosses the deadline. Latencies beyond the right edge are in the table."
    } else {
        "Each step up the left axis is ten times fewer messages. Latencies beyond the right edge are in the table."
    }
}

/// Axes around nothing would show numbers that are nobody's.
fn chart_figure(chart: &LineChart, draw: impl FnOnce() -> String) -> String {
    if chart.is_empty() {
        let why = match chart.is_all_zeros() {
            true => "Nothing to show: all values are 0, which has no place on a logarithmic axis.",
            false => "Nothing to show: no row has a value for this.",
        };
        figure(&chart.title, why, "")
    } else {
        figure(&chart.title, &chart.caption, &draw())
    }
}

fn figure(title: &str, caption: &str, svg: &str) -> String {
    let caption = if caption.is_empty() {
        String::new()
    } else {
        format!("<figcaption>{}</figcaption>\n", escape(caption))
    };
    format!(
        "<figure>\n<h2>{}</h2>\n{caption}<div class=\"wide\">{svg}</div></figure>\n",
        escape(title)
    )
}

/// The answers, and a card a policy: what came of the promise, in words as well as in colour.
fn verdicts(report: &Report, figures: &Figures) -> String {
    let target = figures.on_time_target;
    let policies = report.policies.iter().map(|policy| verdict(policy, target));
    let cards: String = figures.cards.iter().map(answer).chain(policies).collect();
    if cards.is_empty() {
        cards
    } else {
        format!("<div class=\"cards\">\n{cards}</div>\n")
    }
}

fn answer(card: &Card) -> String {
    let class = match card.is_kept {
        None => "plain",
        Some(true) => "kept",
        Some(false) => "broken",
    };
    card_html(class, &card.name, &card.number, &card.words, &card.note)
}

fn verdict(policy: &Summary, target: Option<f64>) -> String {
    let (class, words) = match target.map(|target| 1.0 - target) {
        None => ("plain", "late"),
        Some(limit) if policy.late_share_95.high <= limit => ("kept", "late: promise kept"),
        Some(limit) if policy.late_share_95.low > limit => ("broken", "late: promise broken"),
        Some(limit) if policy.late_share <= limit => ("open", "late: kept, within the uncertainty"),
        Some(_) => ("open", "late: missed, within the uncertainty"),
    };
    let cost = format!("{} recovery overhead", measured(policy.recovery_overhead));
    let late = measured(policy.late_share);
    card_html(class, &policy.policy, &late, words, &cost)
}

fn card_html(class: &str, name: &str, number: &str, words: &str, note: &str) -> String {
    let [name, number, words, note] = [name, number, words, note].map(escape);
    format!(
        "<div class=\"card {class}\"><div class=\"name\">{name}</div><div class=\"number\">{number}</div><div>{words}</div>\
         <div class=\"cost\">{note}</div></div>\n"
    )
}

fn table(report: &Report) -> String {
    let headings: String = COLUMNS
        .iter()
        .map(|(heading, _)| format!("<th scope=\"col\">{}</th>", escape(heading)))
        .collect();
    let policies = report.policies.iter();
    let rows: String = policies
        .map(|summary| COLUMNS.map(|(_, cell)| cell(summary)))
        .chain(report.floors.as_ref().map(floor_row))
        .map(|cells| row(&cells))
        .collect();
    let floors = if report.floors.is_some() { FLOORS } else { "" };
    format!(
        "<section>\n<h2>Numbers</h2>\n<p class=\"note\">Quantiles are over all messages; <i>never</i> is one that falls among \
         those that did not arrive.{floors}</p>\n<div class=\"wide\"><table>\n<thead><tr>{headings}</tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table></div>\n</section>\n"
    )
}

/// What the last row of the table is.
const FLOORS: &str = " <i>floor</i>: late whatever is sent, all the time from the message to its deadline; and about \
     what replacing each loss costs, and nothing else: who is lucky pays less.";

/// A longer cell is words, and goes over several lines; others are numbers, and do not.
const WORDS: usize = 34;

fn row(cells: &[String]) -> String {
    let cells = cells.iter();
    let cells: String = cells
        .map(|cell| {
            let class = if cell.chars().count() > WORDS {
                " class=\"words\""
            } else {
                ""
            };
            format!("<td{class}>{}</td>", cell_html(cell))
        })
        .collect();
    format!("<tr>{cells}</tr>\n")
}

/// Numbers that are cells already.
fn section(numbers: &Table) -> String {
    match plain_table(numbers) {
        None => String::new(),
        Some(table) => format!(
            "<section>\n<h2>{}</h2>\n{table}</section>\n",
            escape(&numbers.title)
        ),
    }
}

/// The same, closed at first.
fn folded(numbers: &Table) -> String {
    match plain_table(numbers) {
        None => String::new(),
        Some(table) => format!(
            "<section>\n<details>\n<summary>{}</summary>\n{table}</details>\n</section>\n",
            escape(&numbers.title)
        ),
    }
}

/// None without a row.
fn plain_table(numbers: &Table) -> Option<String> {
    let (headings, rows) = numbers.rows.split_first()?;
    // A thing, and what is said of it.
    let class = match headings.len() {
        2 => " class=\"facts\"",
        _ => "",
    };
    let headings: String = headings
        .iter()
        .map(|heading| format!("<th scope=\"col\">{}</th>", escape(heading)))
        .collect();
    let rows: String = rows.iter().map(|cells| row(cells)).collect();
    Some(format!(
        "<div class=\"wide\"><table{class}>\n<thead><tr>{headings}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n"
    ))
}

/// An interval goes below its value: beside it the table would be too wide for most screens.
fn cell_html(cell: &str) -> String {
    escape(cell).replacen(" [", "<br>[", 1)
}

/// How to run it again: the command, the seeds, and every setting.
fn settings(report: &Report, figures: &Figures) -> String {
    let mut seeds: Vec<u64> = report.policies.iter().map(|policy| policy.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    let seeds: Vec<String> = seeds.iter().map(u64::to_string).collect();
    let mut rows = String::new();
    let mut add = |name: &str, value: &str| {
        rows += &format!(
            "<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n",
            escape(name),
            escape(value)
        );
    };
    if !seeds.is_empty() {
        add("seed", &seeds.join(", "));
    }
    match &report.settings {
        serde_json::Value::Object(fields) => {
            // The seeds stand above, and so does the command.
            let is_shown = |name: &str| name != "seed" && name != "command";
            for (name, value) in fields.iter().filter(|(name, _)| is_shown(name)) {
                add(name, &plain(value));
            }
        }
        serde_json::Value::Null => {}
        other => add("settings", &plain(other)),
    }
    let command = if figures.command.is_empty() {
        String::new()
    } else {
        format!(
            "<p class=\"note\">Run it again:</p>\n<pre>{}</pre>\n",
            escape(&figures.command)
        )
    };
    format!(
        "<section>\n<h2>Settings</h2>\n{command}<div class=\"wide\"><table class=\"settings\">\n<tbody>\n{rows}</tbody>\n</table></div>\n</section>\n"
    )
}

fn plain(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Colours after Okabe and Ito, who chose them to be told apart by everyone; darker on light, lighter on dark. Series also
/// differ in their dashes.
const STYLE: &str = include_str!("page.css");
