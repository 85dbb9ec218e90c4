//! `punctual keygen`: a new key for a server.

use std::path::PathBuf;

use punctual_net::entropy;
use punctual_proto::ServerKey;
use serde::Serialize;

use crate::failure::Failure;
use crate::key_file::{self, Secret};
use crate::output;

/// Make a server's key: the private half into a file that only you can read, the public half on standard output.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  punctual keygen --out server.key")]
pub(crate) struct Args {
    /// Where the private key goes; a file that is there is not overwritten.
    #[arg(long, value_name = "FILE", default_value = "punctual.key")]
    out: PathBuf,
    /// Print one JSON object: `public_key`, `private_key_file`, `url`.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Made {
    public_key: String,
    private_key_file: String,
    url: String,
}

/// Runs the command.
pub(crate) fn run(args: Args) -> Result<(), Failure> {
    let private = entropy::seed().map_err(Failure::failed)?;
    let key = ServerKey::from_private(private);
    key_file::create(&args.out, Secret::ServerKey, &private)?;
    let public_key = key_file::encode(&key.public());
    let made = Made {
        url: format!("punctual://HOST:7777#{public_key}"),
        public_key,
        private_key_file: args.out.display().to_string(),
    };
    if args.json {
        return output::print_json(&made);
    }
    let file = made.private_key_file;
    output::print(&format!(
        "public key   {}\nprivate key  {file} (keep it on the server; whoever has it can pose as the server)\n\n\
         On the server:  punctual serve --key {file}\nOn a client:    punctual send '{}'\n",
        made.public_key, made.url
    ))
}
