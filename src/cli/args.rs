//! What the person may type. Nothing here does anything.

use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::cluster::{HostKeys, NodeName, Role};
use crate::report::{ColorWhen, LogFormat};

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default());

const EXIT_CODES: &str = "\
Exit codes:
  0    done, or nothing to do
  1    unexpected error
  2    wrong usage or invalid inventory
  3    plan --exit-code: there is something to do
  4    a host cannot be reached or refuses the login
  5    a step failed; status --exit-code: the cluster is unhealthy, or nobody can tell
  6    something stands in the way, nothing was changed
  7    some hosts were left out or failed, the rest is done; plan --exit-code: nothing to do
       on the hosts that could be looked at
  130  interrupted or declined";

/// Turn bare Linux machines into a highly available Kubernetes cluster
///
/// One inventory file names the machines; k8sup reaches them over SSH, finds out what they
/// are, shows what it would do and does it. Running it again resumes or changes nothing.
#[derive(Debug, Parser)]
#[command(name = "k8sup", version, styles = STYLES, max_term_width = 100, after_long_help = EXIT_CODES)]
#[command(propagate_version = true, subcommand_required = true, arg_required_else_help = true)]
pub struct Cli {
    /// Flags of all commands.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Flags of all commands.
#[derive(Debug, Clone, Args)]
pub struct Global {
    /// Show the output of the steps, as lines instead of bars
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub verbose: u8,
    /// Write progress and messages in this format
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t, global = true)]
    pub log_format: LogFormat,
    /// Colour the output
    #[arg(long, value_enum, value_name = "WHEN", default_value_t, global = true)]
    pub color: ColorWhen,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Write an inventory to begin with, of what you say and what the hosts are
    ///
    /// Looks at the hosts that are named and writes beside each what it is. Asks for what it needs where it is given no
    /// controller. Nothing is changed on any host.
    #[command(after_help = "Examples:
  k8sup init homelab.yaml
  k8sup init homelab.yaml --user pi --load-balancer 192.168.7.140 \\
    --controller 192.168.7.201,192.168.7.202,192.168.7.203 --worker disk=192.168.7.204,192.168.7.205")]
    Init(Init),
    /// Find everything that is in the way, without changing anything
    #[command(after_help = "Examples:
  k8sup check homelab.yaml
  k8sup check homelab.yaml -o json | jq .findings")]
    Check(Check),
    /// Show what apply would do, host by host
    #[command(after_help = "Examples:
  k8sup plan homelab.yaml
  k8sup plan homelab.yaml --diff
  k8sup plan homelab.yaml --host worker-3
  k8sup plan homelab.yaml --exit-code -o json > plan.json")]
    Plan(Plan),
    /// Write what apply would bring to each host, as files to look at
    ///
    /// Looks at the hosts as plan does, or at what `k8sup facts` saved. For each host the folder has its steps in their
    /// order, as scripts with the values that they get, and the files that they leave. Secrets are masked, and what is
    /// known only on the way is named, as `<late:ca-cert>`.
    #[command(after_help = "Examples:
  k8sup render homelab.yaml -o rendered
  k8sup render homelab.yaml -o rendered --facts homelab-facts")]
    Render(Render),
    /// Make the hosts the cluster that the inventory describes
    #[command(after_help = "Examples:
  k8sup apply homelab.yaml
  k8sup apply homelab.yaml --yes
  k8sup apply homelab.yaml --host worker-3 --host worker-4")]
    Apply(Apply),
    /// Show hosts, nodes, etcd, certificates and load balancers
    #[command(after_help = "Examples:
  k8sup status homelab.yaml
  k8sup status homelab.yaml --exit-code -o json | jq .problems")]
    Status(Status),
    /// Try out whether the cluster does what it should, with pods of its own
    ///
    /// Pods start on every node and reach each other, a service answers by address and name, names are resolved, exec,
    /// logs and port-forward work, a deleted pod comes back. All of it in a namespace that is gone afterwards, also after
    /// Ctrl-C. Ends with 5 when something does not work.
    #[command(after_help = "Examples:
  k8sup test homelab.yaml
  k8sup test homelab.yaml --image registry.example.com/busybox:1.37 --outside example.com
  k8sup test homelab.yaml -o json | jq .checks")]
    Test(Test),
    /// Save what the hosts are in a folder, for a report of a bug
    ///
    /// The text of the probes, one file a host, without secrets, the names of people and comments in files. Host names,
    /// addresses and identifiers of machines stay: what is judged is judged by them. `check`, `plan` and `status` take
    /// the folder with --facts.
    #[command(after_help = "Examples:
  k8sup facts homelab.yaml -o homelab-facts
  k8sup check homelab.yaml --facts homelab-facts")]
    Facts(Facts),
    /// Print the cluster's kubeconfig, or merge it into your own
    #[command(after_help = "Examples:
  k8sup kubeconfig homelab.yaml > homelab.kubeconfig
  k8sup kubeconfig homelab.yaml --merge --context home")]
    Kubeconfig(Kubeconfig),
    /// Take the cluster off its hosts and put back what stood before
    #[command(after_help = "Examples:
  k8sup reset homelab.yaml
  k8sup reset homelab.yaml --host worker-3 --yes
  k8sup reset homelab.yaml --purge")]
    Reset(Reset),
    /// Run a command on the hosts, side by side
    #[command(after_help = "Examples:
  k8sup exec homelab.yaml -- uptime
  k8sup exec homelab.yaml --role worker --root -- 'journalctl -u kubelet -n 5 | cat'
  k8sup exec homelab.yaml --host cp1,cp2 --grouped -- df -h /var/lib

One word is a line for the shell, several are a program and its arguments. Ends with the
highest exit status of all hosts; with 4 when some could not be reached and no other was higher.")]
    Exec(Exec),
    /// Print the JSON schema of the inventory, for editors
    #[command(after_help = "Examples:
  k8sup schema > k8sup.schema.json
An inventory that begins with this line is completed and checked while you write, by editors with a YAML language server:
  # yaml-language-server: $schema=k8sup.schema.json")]
    Schema,
    /// Print the completions of a shell
    #[command(after_help = "Examples:
  k8sup completions bash > /etc/bash_completion.d/k8sup
  k8sup completions fish > ~/.config/fish/completions/k8sup.fish")]
    Completions(Completions),
    /// Write the manual pages
    #[command(after_help = "Examples:\n  k8sup man -o /usr/local/share/man/man1")]
    Man(Man),
}

impl Command {
    /// Its name, as typed.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Init(_) => "init",
            Self::Check(_) => "check",
            Self::Plan(_) => "plan",
            Self::Render(_) => "render",
            Self::Apply(_) => "apply",
            Self::Status(_) => "status",
            Self::Test(_) => "test",
            Self::Facts(_) => "facts",
            Self::Kubeconfig(_) => "kubeconfig",
            Self::Reset(_) => "reset",
            Self::Exec(_) => "exec",
            Self::Schema => "schema",
            Self::Completions(_) => "completions",
            Self::Man(_) => "man",
        }
    }
}

/// The inventory and how its hosts are reached.
#[derive(Debug, Clone, Args)]
pub struct Target {
    /// Inventory file
    #[arg(env = "K8SUP_INVENTORY", value_name = "INVENTORY")]
    pub inventory: PathBuf,
    /// Treat unknown host keys like this, whatever the inventory says
    #[arg(long, value_enum, value_name = "POLICY", help_heading = "Connection")]
    pub host_keys: Option<HostKeyPolicy>,
    /// Forget the known host key of this host and accept the one that it shows now
    #[arg(long, value_name = "HOST", value_parser = NodeName::parse, value_delimiter = ',', help_heading = "Connection")]
    pub replace_host_key: Vec<NodeName>,
    /// Work on at most this many hosts at once
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..), help_heading = "Connection")]
    pub parallel: u16,
}

/// What to do with a host key that is not known yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HostKeyPolicy {
    /// Show all new fingerprints and ask once
    Ask,
    /// Refuse
    Strict,
    /// Accept and remember
    AcceptNew,
}

impl From<HostKeyPolicy> for HostKeys {
    fn from(policy: HostKeyPolicy) -> Self {
        match policy {
            HostKeyPolicy::Ask => Self::Ask,
            HostKeyPolicy::Strict => Self::Strict,
            HostKeyPolicy::AcceptNew => Self::AcceptNew,
        }
    }
}

/// Form of data on standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum DataFormat {
    /// For a person
    #[default]
    Text,
    /// For a program
    Json,
}

/// `k8sup init`.
#[derive(Debug, Clone, Args)]
pub struct Init {
    /// The inventory that is to be written, and how hosts are reached.
    #[command(flatten)]
    pub target: Target,
    /// Name of the cluster
    #[arg(long, value_name = "NAME", default_value = "homelab")]
    pub name: String,
    /// The load balancer, as ADDRESS or NAME=ADDRESS
    #[arg(long = "load-balancer", value_name = "HOST", value_parser = NewHost::parse, value_delimiter = ',')]
    pub load_balancers: Vec<NewHost>,
    /// A controller; may be given several times
    #[arg(long = "controller", value_name = "HOST", value_parser = NewHost::parse, value_delimiter = ',')]
    pub controllers: Vec<NewHost>,
    /// A worker; may be given several times
    #[arg(long = "worker", value_name = "HOST", value_parser = NewHost::parse, value_delimiter = ',')]
    pub workers: Vec<NewHost>,
    /// Login name on the hosts
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// Private key file
    #[arg(long, value_name = "FILE")]
    pub key: Option<String>,
    /// Exact version of Kubernetes, instead of the newest that k8sup knows
    #[arg(long, value_name = "VERSION")]
    pub kubernetes: Option<String>,
    /// Network of the pods
    #[arg(long, value_name = "CIDR")]
    pub pod_cidr: Option<String>,
    /// Control-plane endpoint, instead of the load balancer's address
    #[arg(long, value_name = "HOST:PORT")]
    pub endpoint: Option<String>,
    /// Connect to nobody
    #[arg(long)]
    pub no_probe: bool,
    /// Write over a file that is there; it is kept as FILE.old
    #[arg(long)]
    pub force: bool,
}

/// A host that is to stand in a new inventory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewHost {
    /// Name of its Node, where one was given.
    pub name: Option<String>,
    /// Its address.
    pub address: String,
}

impl NewHost {
    /// `ADDRESS` or `NAME=ADDRESS`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, address) = match text.split_once('=') {
            Some((name, address)) => (Some(NodeName::parse(name)?), address),
            None => (None, text),
        };
        let address: std::net::Ipv4Addr = address
            .parse()
            .map_err(|_| format!("{address:?} is no IPv4 address, such as 192.168.7.201"))?;
        Ok(Self {
            name: name.map(|name| name.to_string()),
            address: address.to_string(),
        })
    }
}

/// `k8sup check`.
#[derive(Debug, Clone, Args)]
pub struct Check {
    /// The inventory and its hosts.
    #[command(flatten)]
    pub target: Target,
    /// Look at what `k8sup facts` saved in this folder, and connect to nobody
    #[arg(long, value_name = "DIR")]
    pub facts: Option<PathBuf>,
    /// Go on although this check refuses, at your own risk; may be given several times (see docs/checks.md)
    #[arg(long, value_name = "CODE", value_delimiter = ',')]
    pub allow: Vec<String>,
    /// Print what is found in this form
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t)]
    pub output: DataFormat,
}

/// `k8sup plan`.
#[derive(Debug, Clone, Args)]
pub struct Plan {
    /// The inventory and its hosts.
    #[command(flatten)]
    pub target: Target,
    /// Look at what `k8sup facts` saved in this folder, and connect to nobody
    #[arg(long, value_name = "DIR")]
    pub facts: Option<PathBuf>,
    /// Go on although this check refuses, at your own risk; may be given several times (see docs/checks.md)
    #[arg(long, value_name = "CODE", value_delimiter = ',')]
    pub allow: Vec<String>,
    /// Plan for only this host; may be given several times
    #[arg(long = "host", value_name = "HOST", value_parser = NodeName::parse, value_delimiter = ',')]
    pub hosts: Vec<NodeName>,
    /// Exit with 3 when there is something to do, with 7 when hosts could not be looked at
    #[arg(long)]
    pub exit_code: bool,
    /// Print the plan in this form
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t)]
    pub output: DataFormat,
    /// Show the content of new and removed files too
    #[arg(long)]
    pub diff: bool,
}

/// `k8sup render`.
#[derive(Debug, Clone, Args)]
pub struct Render {
    /// The inventory and its hosts.
    #[command(flatten)]
    pub target: Target,
    /// Folder to write to; made when it does not exist
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// Look at what `k8sup facts` saved in this folder, and connect to nobody
    #[arg(long, value_name = "DIR")]
    pub facts: Option<PathBuf>,
    /// Go on although this check refuses, at your own risk; may be given several times (see docs/checks.md)
    #[arg(long, value_name = "CODE", value_delimiter = ',')]
    pub allow: Vec<String>,
}

/// `k8sup apply`.
#[derive(Debug, Clone, Args)]
pub struct Apply {
    /// The inventory and its hosts.
    #[command(flatten)]
    pub target: Target,
    /// Do not ask before changing anything
    #[arg(short, long)]
    pub yes: bool,
    /// Go on although this check refuses, at your own risk; may be given several times (see docs/checks.md)
    #[arg(long, value_name = "CODE", value_delimiter = ',')]
    pub allow: Vec<String>,
    /// Reboot hosts that need it, such as a Raspberry Pi whose memory control group is off
    #[arg(long)]
    pub reboot: bool,
    /// Change only this host; may be given several times
    ///
    /// All hosts are looked at, but only these are changed. What the whole cluster shares (Flannel, CoreDNS, what
    /// kubeadm publishes) is changed only when the controller that acts for the cluster is among them, or when these
    /// hosts cannot join without it. A host that joins is let in by that controller in any case: it makes the token and
    /// revokes it, gives an etcd turn and sets labels and taints.
    #[arg(long = "host", value_name = "HOST", value_parser = NodeName::parse, value_delimiter = ',')]
    pub hosts: Vec<NodeName>,
    /// Show the content of new and removed files too
    #[arg(long)]
    pub diff: bool,
    /// Write the run's timeline into this file: when each step ran, what it had waited for, what the time went to
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
}

/// `k8sup status`.
#[derive(Debug, Clone, Args)]
pub struct Status {
    /// The inventory and its hosts.
    #[command(flatten)]
    pub target: Target,
    /// Look at what `k8sup facts` saved in this folder, and connect to nobody
    #[arg(long, value_name = "DIR")]
    pub facts: Option<PathBuf>,
    /// Exit with 5 when the cluster is unhealthy, or nobody can tell
    #[arg(long)]
    pub exit_code: bool,
    /// Print the status in this form
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t)]
    pub output: DataFormat,
}

/// `k8sup test`.
#[derive(Debug, Clone, Args)]
pub struct Test {
    /// The inventory and its hosts.
    #[command(flatten)]
    pub target: Target,
    /// Image of the pods; it must have sh, httpd, wget, nslookup and sleep
    #[arg(long, value_name = "IMAGE", value_parser = image, default_value = "docker.io/library/busybox:1.37")]
    pub image: String,
    /// A name outside of the cluster that pods must be able to resolve, where the controller is
    #[arg(long, value_name = "NAME", value_parser = dns_name, default_value = "kubernetes.io")]
    pub outside: String,
    /// Pods must have started after this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub limit: u64,
    /// Print what is found in this form
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t)]
    pub output: DataFormat,
}

fn image(text: &str) -> Result<String, String> {
    made_of(text, "._-/:@")
}

fn dns_name(text: &str) -> Result<String, String> {
    made_of(text, ".-")
}

/// Of ASCII letters, digits and these signs.
fn made_of(text: &str, signs: &str) -> Result<String, String> {
    let strange = |c: &char| !c.is_ascii_alphanumeric() && !signs.contains(*c);
    match text.chars().find(strange) {
        _ if text.is_empty() => Err("it is empty".to_owned()),
        Some(c) => Err(format!("{c:?} cannot be in it")),
        None => Ok(text.to_owned()),
    }
}

/// `k8sup facts`.
#[derive(Debug, Clone, Args)]
pub struct Facts {
    /// The inventory and its hosts.
    #[command(flatten)]
    pub target: Target,
    /// Folder to write to; made when it does not exist
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
}

/// `k8sup kubeconfig`.
#[derive(Debug, Clone, Args)]
pub struct Kubeconfig {
    /// The inventory and its hosts.
    #[command(flatten)]
    pub target: Target,
    /// Merge it into your kubeconfig and make it the current context; other contexts stay
    #[arg(long)]
    pub merge: bool,
    /// Write (or merge) into this file instead
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Name the context like this instead of like the cluster
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}

/// `k8sup reset`.
#[derive(Debug, Clone, Args)]
pub struct Reset {
    /// The inventory and its hosts.
    #[command(flatten)]
    pub target: Target,
    /// Reset only this host; may be given several times
    #[arg(long = "host", value_name = "HOST", value_parser = NodeName::parse, value_delimiter = ',')]
    pub hosts: Vec<NodeName>,
    /// Do not ask for the cluster's name
    #[arg(short, long)]
    pub yes: bool,
    /// Remove the packages that k8sup installed too
    #[arg(long)]
    pub purge: bool,
}

/// `k8sup exec`.
#[derive(Debug, Clone, Args)]
pub struct Exec {
    /// The inventory and its hosts.
    #[command(flatten)]
    pub target: Target,
    /// Only hosts with this role; may be given several times
    #[arg(long = "role", value_enum, value_name = "ROLE", value_delimiter = ',')]
    pub roles: Vec<RoleName>,
    /// Only this host; may be given several times
    #[arg(long = "host", value_name = "HOST", value_parser = NodeName::parse, value_delimiter = ',')]
    pub hosts: Vec<NodeName>,
    /// Run it as root, through sudo where the login user is another
    #[arg(long)]
    pub root: bool,
    /// Show the output host after host when all have ended, instead of line by line as it comes
    #[arg(long)]
    pub grouped: bool,
    /// End the command on hosts where it takes longer than this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub timeout: u64,
    /// What to run
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// What a host is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RoleName {
    /// In front of the API servers
    LoadBalancer,
    /// Control plane and etcd
    Controller,
    /// Runs pods
    Worker,
}

impl From<RoleName> for Role {
    fn from(role: RoleName) -> Self {
        match role {
            RoleName::LoadBalancer => Self::LoadBalancer,
            RoleName::Controller => Self::Controller,
            RoleName::Worker => Self::Worker,
        }
    }
}

/// `k8sup completions`.
#[derive(Debug, Clone, Args)]
pub struct Completions {
    /// For this shell
    pub shell: clap_complete::Shell,
}

/// `k8sup man`.
#[derive(Debug, Clone, Args)]
pub struct Man {
    /// Write k8sup.1 and a page for each command into this folder
    #[arg(short, long, value_name = "FOLDER")]
    pub output: PathBuf,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use clap::error::ErrorKind;

    use super::*;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(line.split(' '))
    }

    #[test]
    fn the_definitions_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn hosts_may_be_repeated_or_separated_by_commas() {
        let cli = parse("k8sup apply lab.yaml --host w1,w2 --host w3 --host-keys accept-new -vv").unwrap();
        assert_eq!(cli.global.verbose, 2);
        assert_eq!(cli.command.name(), "apply");
        let Command::Apply(apply) = cli.command else {
            panic!("not apply")
        };
        assert_eq!(
            apply.hosts.iter().map(NodeName::as_str).collect::<Vec<_>>(),
            ["w1", "w2", "w3"]
        );
        assert_eq!(apply.target.host_keys.map(HostKeys::from), Some(HostKeys::AcceptNew));
        assert_eq!(apply.target.parallel, 20);
        assert!(!apply.yes);
    }

    #[test]
    fn mistakes_are_refused() {
        for (line, kind) in [
            ("k8sup apply lab.yaml --host W1", ErrorKind::ValueValidation),
            ("k8sup apply lab.yaml --parallel 0", ErrorKind::ValueValidation),
            ("k8sup plan lab.yaml -o yaml", ErrorKind::InvalidValue),
            ("k8sup destroy lab.yaml", ErrorKind::InvalidSubcommand),
            ("k8sup plan lab.yaml --yes", ErrorKind::UnknownArgument),
        ] {
            assert_eq!(parse(line).unwrap_err().kind(), kind, "{line}");
        }
    }

    #[test]
    fn every_command_has_an_example_and_says_what_it_does() {
        for command in Cli::command().get_subcommands() {
            let name = command.get_name();
            let about = command.get_about().unwrap().to_string();
            assert!(!about.ends_with('.'), "{name}: {about}");
            let help = command.get_after_help().unwrap().to_string();
            assert!(help.contains(&format!("k8sup {name} ")), "{name}: {help}");
        }
    }
}
