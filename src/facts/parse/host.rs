//! One host's sections made into [`HostFacts`].

use std::collections::{BTreeMap, BTreeSet};

use super::super::ruleset::Ruleset;
use super::super::{
    Cgroup, Containerd, FileFact, Holder, HostFacts, OsRelease, Package, Record, RecordedFile, Seen, Service,
};
use super::surroundings::surroundings;
use super::{ParseError, Sections, kube, network, platform, sections, swap};

/// Reads what `templates/probe.sh` printed.
///
/// # Errors
/// When the text is not the probe's, is cut, or lacks facts that a plan must not guess.
pub fn host(raw: &str, nonce: &str) -> Result<HostFacts, ParseError> {
    let sections = sections(raw, nonce);
    if sections.is_empty() {
        return Err(ParseError::Foreign(raw.trim().chars().take(200).collect()));
    }
    if !sections.is_complete() {
        return Err(ParseError::Cut(sections.last().to_owned()));
    }
    let mut reader = Reader {
        sections: &sections,
        problems: Vec::new(),
        unknown: BTreeMap::new(),
    };
    let mut facts = basics(&mut reader);
    network_facts(&mut reader, &mut facts);
    software(&mut reader, &mut facts);
    facts.platform = platform::platform(&sections);
    facts.kube = kube::kube(&sections);
    facts.kube.files = reader.required("kube-files", |text| Ok(lines(text).into_iter().collect()));
    let etcd = reader.required("etcd", |text| Ok(lines(text)));
    facts.kube.etcd_data = etcd.iter().any(|line| line == "member");
    facts.kube.etcd_dir_used = etcd.iter().any(|line| line == "used");
    let etcd_dir = etcd.iter().find_map(|line| line.strip_prefix("dir "));
    facts.kube.etcd_data_dir = etcd_dir.unwrap_or("/var/lib/etcd").into();
    facts.record = reader.seen("record", |text| Ok(record(text)));
    facts.holder = reader.lesser("holder", |text| Ok(holder(text)));
    let passwd = reader.lesser("login", |text| Ok(text.to_owned()));
    facts.login = kube::login(&passwd, sections.get("login-kubeconfig"));
    facts.surroundings = reader.lesser("surroundings", |text| Ok(surroundings(text)));
    facts.surroundings.ruleset = reader.seen("ruleset", |text| Ok(Ruleset::parse(text)));
    facts.unknown = reader.unknown;
    if reader.problems.is_empty() {
        Ok(facts)
    } else {
        Err(ParseError::Unreadable(reader.problems))
    }
}

/// Reads sections and remembers what stands in the way.
struct Reader<'a> {
    sections: &'a Sections,
    problems: Vec<String>,
    unknown: BTreeMap<String, String>,
}

impl Reader<'_> {
    /// A section whose absence is an answer.
    fn seen<T>(&self, name: &str, parse: impl FnOnce(&str) -> Result<T, String>) -> Seen<T> {
        match self.sections.get(name) {
            Seen::Present(text) => parse(text).map_or_else(Seen::Unknown, Seen::Present),
            Seen::Absent => Seen::Absent,
            Seen::Unknown(reason) => Seen::Unknown(reason),
        }
    }

    /// A section that must be there.
    fn required<T: Default>(&mut self, name: &str, parse: impl FnOnce(&str) -> Result<T, String>) -> T {
        match self.seen(name, parse) {
            Seen::Present(value) => return value,
            Seen::Absent => self.problems.push(format!("{name}: missing")),
            Seen::Unknown(reason) => self.problems.push(format!("{name}: {reason}")),
        }
        T::default()
    }

    /// A section that may be absent but must not be unknown.
    fn optional<T: Default>(&mut self, name: &str, parse: impl FnOnce(&str) -> Result<T, String>) -> T {
        match self.seen(name, parse) {
            Seen::Present(value) => return value,
            Seen::Absent => {}
            Seen::Unknown(reason) => self.problems.push(format!("{name}: {reason}")),
        }
        T::default()
    }

    /// A section that a plan can do without.
    fn lesser<T: Default>(&mut self, name: &str, parse: impl FnOnce(&str) -> Result<T, String>) -> T {
        match self.seen(name, parse) {
            Seen::Present(value) => return value,
            Seen::Absent => {}
            Seen::Unknown(reason) => {
                self.unknown.insert(name.to_owned(), reason);
            }
        }
        T::default()
    }
}

fn basics(reader: &mut Reader) -> HostFacts {
    let units = reader.required("swap-units", |text| Ok(swap::units(text)));
    let sources = reader.required("swap-unit-sources", |text| Ok(text.to_owned()));
    let makers = reader.required("swap-makers", |text| Ok(text.to_owned()));
    let zram = reader.required("zram-generator", |text| Ok(text.to_owned()));
    let active = reader.optional("swaps", |text| Ok(swap::active(text)));
    HostFacts {
        os: reader.optional("os-release", |text| Ok(os_release(text))),
        architecture: reader.seen("architecture", word),
        machine: reader.required("machine", word),
        kernel: reader.required("kernel", word),
        hostname: reader.required("hostname", word),
        machine_id: not_empty(reader.seen("machine-id", word)),
        boot_id: reader.required("boot-id", word),
        product_uuid: not_empty(reader.seen("product-uuid", word)),
        clock: reader.required("clock", number),
        cpus: reader.required("cpus", number),
        memory_kib: reader.required("meminfo", memory),
        free_kib: reader.required("free", free),
        cgroup: reader.required("cgroup", cgroup),
        swap: swap::swap(active, &units, &sources, &makers, &zram),
        sysctls: reader.required("sysctls", |text| Ok(sysctls(text))),
        modules: reader.required("modules", |text| Ok(lines(text).into_iter().collect())),
        files: files(reader),
        ..HostFacts::default()
    }
}

fn network_facts(reader: &mut Reader, facts: &mut HostFacts) {
    let links = reader.required("addresses", network::links);
    facts.addresses = links.addresses;
    facts.links = links.mtus;
    facts.macs = links.macs;
    facts.routes = reader.required("routes", network::routes);
    facts.nameservers = reader.lesser("resolv-conf", |text| Ok(network::nameservers(text)));
    facts.endpoint_resolves = reader.seen("endpoint", |text| Ok(network::resolved(text)));
    facts.listening = reader.lesser("listening", |text| Ok(network::listeners(text)));
    facts.network_leftovers = links.leftovers;
    facts
        .network_leftovers
        .extend(reader.lesser("leftovers", |text| Ok(lines(text))));
}

fn software(reader: &mut Reader, facts: &mut HostFacts) {
    facts.packages = reader.optional("packages", |text| Ok(packages(text)));
    facts.legacy_sources = reader.lesser("legacy-sources", |text| Ok(lines(text)));
    facts.masked = reader.lesser("services", |text| Ok(masked(text)));
    facts.services = reader.required("services", |text| Ok(services(text)));
    let runs = |name: &str| facts.services.get(name).is_some_and(|service| service.active);

    // Its file may be left over from a time when it ran.
    if runs("systemd-resolved") {
        facts.resolved = reader.seen("resolved", |text| Ok(network::nameservers(text)));
    }
    let config = reader.seen("containerd-config", |text| {
        text.parse::<toml::Table>()
            .map_err(|error| format!("`containerd config dump` printed no TOML: {}", error.message()))
    });
    facts.containerd = reader.seen("containerd-version", |text| {
        containerd_version(text).map(|version| Containerd { version, config })
    });
    facts.images = match reader.seen("images", |text| Ok(lines(text).into_iter().collect::<BTreeSet<_>>())) {
        Seen::Absent if !facts.containerd.is_absent() => Seen::Unknown("containerd does not run".to_owned()),
        images => images,
    };
    facts.backends = match reader.seen("backends", backends) {
        Seen::Absent if runs("haproxy") => {
            Seen::Unknown("haproxy has no stats socket /run/haproxy/admin.sock".to_owned())
        }
        backends => backends,
    };
}

fn lines(text: &str) -> Vec<String> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

#[expect(clippy::unnecessary_wraps, reason = "one shape for all parsers of sections")]
fn word(text: &str) -> Result<String, String> {
    Ok(text.trim().to_owned())
}

fn not_empty(text: Seen<String>) -> Seen<String> {
    match text {
        Seen::Present(text) if text.is_empty() => Seen::Absent,
        text => text,
    }
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.trim()
        .parse()
        .map_err(|_| format!("{:?} is no number", text.trim()))
}

fn os_release(text: &str) -> OsRelease {
    let value = |key: &str| {
        text.lines()
            .find_map(|line| line.trim().strip_prefix(key)?.strip_prefix('='))
            .map(|value| value.trim_matches(['"', '\'']).to_owned())
            .unwrap_or_default()
    };
    OsRelease {
        id: value("ID"),
        id_like: value("ID_LIKE").split_whitespace().map(str::to_owned).collect(),
        codename: value("VERSION_CODENAME"),
        pretty: value("PRETTY_NAME"),
        version_id: value("VERSION_ID"),
    }
}

fn memory(text: &str) -> Result<u64, String> {
    text.lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse().ok())
        .ok_or_else(|| "/proc/meminfo has no MemTotal".to_owned())
}

fn holder(text: &str) -> Option<Holder> {
    let mut lines = text.lines().map(|line| line.trim().to_owned());
    Some(Holder {
        run: lines.next()?,
        who: lines.next()?,
        since: lines.next()?,
    })
}

/// The last line of `df -kP`: file system, blocks, used, available, …
fn free(text: &str) -> Result<u64, String> {
    text.trim()
        .lines()
        .last()
        .and_then(|line| line.split_whitespace().rev().nth(2)?.parse().ok())
        .ok_or_else(|| format!("df printed {:?}", text.trim()))
}

fn cgroup(text: &str) -> Result<Cgroup, String> {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let kind = first.strip_prefix("type ").ok_or("no file system at /sys/fs/cgroup")?;
    if kind == "cgroup2fs" {
        return Ok(Cgroup {
            version: 2,
            controllers: rest.split_whitespace().map(str::to_owned).collect(),
        });
    }
    // Of /proc/cgroups: name, hierarchy, number of groups, enabled.
    let enabled = |line: &str| {
        let mut words = line.split_whitespace();
        let name = words.next().filter(|name| !name.starts_with('#'))?;
        (words.nth(2)? == "1").then(|| name.to_owned())
    };
    Ok(Cgroup {
        version: 1,
        controllers: rest.lines().filter_map(enabled).collect(),
    })
}

/// Lines of `net/ipv4/ip_forward:1`.
fn sysctls(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(key, value)| (key.replace('/', "."), value.trim().to_owned()))
        .collect()
}

/// Lines of `NAME STATUS|VERSION`; the status is dpkg's three letters: wanted, state, error.
fn packages(text: &str) -> BTreeMap<String, Package> {
    let mut packages: BTreeMap<String, Package> = BTreeMap::new();
    for line in text.lines() {
        let Some((name, (status, version))) = line
            .split_once(' ')
            .and_then(|(name, rest)| Some((name, rest.split_once('|')?)))
        else {
            continue;
        };
        let mut letters = status.chars();
        let held = letters.next() == Some('h');
        // Installed, or only waiting for triggers.
        let installed = matches!(letters.next(), Some('i' | 't' | 'W')).then(|| version.trim().to_owned());
        // The same package may be there for a foreign architecture.
        let package = packages.entry(name.to_owned()).or_default();
        package.held |= held;
        if package.installed.is_none() {
            package.installed = installed;
        }
    }
    packages
}

/// Of blocks of `systemctl show` those of masked services.
fn masked(text: &str) -> BTreeSet<String> {
    let blocks = text
        .split("\n\n")
        .filter(|block| block.lines().any(|line| line == "LoadState=masked"));
    let ids = blocks.filter_map(|block| block.lines().find_map(|line| line.strip_prefix("Id=")));
    ids.map(|id| id.strip_suffix(".service").unwrap_or(id).to_owned())
        .collect()
}

/// Blocks of `systemctl show`.
fn services(text: &str) -> BTreeMap<String, Service> {
    text.split("\n\n")
        .filter_map(|block| {
            let value = |key: &str| block.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
            let id = value("Id")?;
            let active = matches!(value("ActiveState")?, "active" | "reloading" | "activating");
            // A unit whose file is gone may still run.
            if value("LoadState")? == "not-found" && !active {
                return None;
            }
            let enabled = matches!(value("UnitFileState").unwrap_or_default(), "enabled" | "generated");
            Some((
                id.strip_suffix(".service").unwrap_or(id).to_owned(),
                Service { enabled, active },
            ))
        })
        .collect()
}

/// `containerd github.com/containerd/containerd 1.7.24~ds1 …` or `containerd containerd.io v2.1.5 …`.
fn containerd_version(text: &str) -> Result<String, String> {
    let version = text
        .split_whitespace()
        .nth(2)
        .unwrap_or_default()
        .trim_start_matches('v');
    let version = version.split(['~', '+']).next().unwrap_or_default();
    if version.starts_with(|first: char| first.is_ascii_digit()) {
        Ok(version.to_owned())
    } else {
        Err(format!("`containerd --version` printed {:?}", text.trim()))
    }
}

/// Sections `file:MODE:PATH`.
fn files(reader: &mut Reader) -> BTreeMap<String, FileFact> {
    let mut files = BTreeMap::new();
    for (name, content) in reader.sections.with_prefix("file:") {
        let Some((mode, path)) = name.split_once(':') else {
            continue;
        };
        match content {
            Seen::Present(content) => {
                let mode = u32::from_str_radix(mode, 8).unwrap_or_default();
                files.insert(
                    path.to_owned(),
                    FileFact {
                        mode,
                        content: content.clone(),
                    },
                );
            }
            // It went away between two looks.
            Seen::Absent => {}
            Seen::Unknown(reason) => reader.problems.push(format!("{path}: {reason}")),
        }
    }
    files
}

/// HAProxy's `show stat`: CSV whose first line names the columns.
fn backends(text: &str) -> Result<BTreeMap<String, String>, String> {
    let mut rows = text.lines();
    let header: Vec<&str> = rows
        .next()
        .and_then(|row| row.strip_prefix("# "))
        .ok_or("haproxy's stats have no header")?
        .split(',')
        .collect();
    let column = |name: &str| {
        header
            .iter()
            .position(|cell| *cell == name)
            .ok_or(format!("haproxy's stats lack {name}"))
    };
    let (name, status) = (column("svname")?, column("status")?);
    let server = |row: &str| {
        let cells: Vec<&str> = row.split(',').collect();
        let name = cells
            .get(name)
            .filter(|name| !matches!(**name, "FRONTEND" | "BACKEND"))?;
        Some(((*name).to_owned(), (*cells.get(status)?).to_owned()))
    };
    Ok(rows.filter_map(server).collect())
}

/// Lines `name files/%etc%fstab.before` of all files, and `PATH:LINE` of those with lines of ours.
fn record(text: &str) -> Record {
    let mut record = Record::default();
    for line in text.lines() {
        if let Some(kind) = line.strip_prefix("name entries/") {
            record.entries.entry(kind.to_owned()).or_default();
        } else if let Some(file) = line.strip_prefix("name files/") {
            if let Some(path) = file.strip_suffix(".before") {
                record.files.entry(path.replace('%', "/")).or_default().existed = true;
            } else if let Some(path) = file.strip_suffix(".absent") {
                record.files.entry(path.replace('%', "/")).or_default();
            }
        } else if let Some((kind, entry)) = line.strip_prefix("entries/").and_then(|rest| rest.split_once(':')) {
            record
                .entries
                .entry(kind.to_owned())
                .or_default()
                .push(entry.to_owned());
        } else if let Some((path, hash)) = line.strip_prefix("files/").and_then(|rest| rest.split_once(".ours:")) {
            let file: &mut RecordedFile = record.files.entry(path.replace('%', "/")).or_default();
            file.ours = Some(hash.split_whitespace().next().unwrap_or_default().to_owned());
        }
    }
    record
}
