//! `punctual token`: a connect token, as a game's backend would make it.

use std::path::PathBuf;
use std::time::Duration;

use punctual::{PublicKey, ServerUrl, TokenIssuer, TokenKey};
use punctual_net::entropy;
use serde::Serialize;

use crate::failure::Failure;
use crate::key_file::{self, Secret};
use crate::output;
use crate::values;

/// Make a connect token for one client: who it is, until when it may connect, and to which server.
///
/// A server that is given the same token key admits only clients with a token. In a game the backend makes tokens, with
/// `TokenIssuer` of the library.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  punctual token --new-key --key token.key --identity 'player 17' --out player17.token\n  \
                  punctual serve --token-key token.key\n  punctual send URL --token player17.token"
)]
pub(crate) struct Args {
    /// The token key that the backend shares with its servers.
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Makes that key first; a file that is there is not overwritten.
    #[arg(long)]
    new_key: bool,
    /// Who the client is; the server's application is told.
    #[arg(long, value_name = "NAME", default_value = "")]
    identity: String,
    /// How long the token is good for, in seconds.
    #[arg(long, value_name = "S", default_value_t = 3600, value_parser = values::whole::<u64>(1..=u64::MAX))]
    valid_s: u64,
    /// The only server that may accept it, by its URL; without one, every server that has the token key.
    #[arg(long, value_name = "URL")]
    server: Option<ServerUrl>,
    /// Where the token goes; a file that is there is not overwritten.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Print one JSON object: `token_file`, `identity`, `valid_s`.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Made {
    token_file: String,
    identity: String,
    valid_s: u64,
}

/// Runs the command.
pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let key = match args.new_key {
        true => entropy::seed().map_err(Failure::failed)?,
        false => key_file::read_key(&args.key, Secret::TokenKey)?,
    };
    let issuer = TokenIssuer::new(TokenKey(key));
    let issuer = match &args.server {
        Some(url) => issuer.for_servers([server_key(url)]),
        None => issuer,
    };
    let token = issuer
        .issue(args.identity.as_bytes(), Duration::from_secs(args.valid_s))
        .map_err(Failure::bad_input)?;
    if args.new_key {
        key_file::create(&args.key, Secret::TokenKey, &key)?;
    }
    if let Err(failure) = key_file::create(&args.out, Secret::Token, &token.to_bytes()) {
        // Nothing was made of it: the command can be given again.
        if args.new_key {
            let _ = std::fs::remove_file(&args.key);
        }
        return Err(failure);
    }
    let made = Made {
        token_file: args.out.display().to_string(),
        identity: args.identity,
        valid_s: args.valid_s,
    };
    if args.json {
        return output::print_json(&made);
    }
    output::print(&format!(
        "token  {} (good for {} s; whoever has it can connect as {:?})\n",
        made.token_file, made.valid_s, made.identity
    ))
}

fn server_key(url: &ServerUrl) -> PublicKey {
    url.key()
}
