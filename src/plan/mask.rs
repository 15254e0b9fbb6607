//! What a shown file must not show: passwords in URLs, in HAProxy's lines and after keys that are named like secrets.
//!
//! Only text to be shown or saved passes here; steps carry files as they are. Rather a harmless word too many is
//! masked than a secret shown.

const DOTS: &str = "•••";
/// After these words of a line, with or without `:`, `=` or quotes, comes a secret.
const SECRET_KEYS: [&str; 11] = [
    "password",
    "passwd",
    "passphrase",
    "insecure-password",
    "secret",
    "token",
    "identitytoken",
    "registrytoken",
    "authorization",
    "auth",
    "key-data",
];

/// Both texts without their secrets; where only secrets differ, the second says so.
pub(super) fn pair(before: Option<&str>, after: Option<&str>) -> (Option<String>, Option<String>) {
    let (shown_before, shown_after) = (before.map(|text| mask(text, DOTS)), after.map(|text| mask(text, DOTS)));
    if before != after && shown_before == shown_after {
        return (shown_before, after.map(|text| mask(text, "••• (another)")));
    }
    (shown_before, shown_after)
}

/// The text with `dots` in place of its secrets.
pub(crate) fn mask(text: &str, dots: &str) -> String {
    text.split_inclusive('\n').map(|line| mask_line(line, dots)).collect()
}

fn mask_line(line: &str, dots: &str) -> String {
    mask_values(&mask_urls(line, dots), dots)
}

/// `http://user:password@proxy` keeps the user; what stands alone before the `@` may be a token.
fn mask_urls(line: &str, dots: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find("://") {
        let (head, tail) = rest.split_at(at + 3);
        shown.push_str(head);
        let end = tail
            .find(|c: char| c.is_whitespace() || matches!(c, '"' | '\''))
            .unwrap_or(tail.len());
        let (url, after) = tail.split_at(end);
        match url.rsplit_once('@') {
            // An `@` of the path, as before an image's digest, has no user before it.
            Some((user, host)) if !user.contains('/') || user.contains(':') => {
                if let Some((name, _)) = user.split_once(':') {
                    shown.push_str(name);
                    shown.push(':');
                }
                shown.push_str(dots);
                shown.push('@');
                shown.push_str(host);
            }
            _ => shown.push_str(url),
        }
        rest = after;
    }
    shown + rest
}

/// The value after a word that is named like a secret.
fn mask_values(line: &str, dots: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let mut shown = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(start) = rest.find(is_word) {
        shown.push_str(&rest[..start]);
        rest = &rest[start..];
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        shown.push_str(word);
        rest = after;
        if !names_a_secret(word) {
            continue;
        }
        let blank = |c: char| c.is_whitespace() || matches!(c, '=' | ':' | '[' | '"' | '\'');
        let value = rest.find(|c| !blank(c)).unwrap_or(rest.len());
        // A word that ends its line, or that only opens a block, has no value.
        if value == 0 || value == rest.len() || rest[value..].starts_with(['{', '#', ']']) {
            continue;
        }
        shown.push_str(&rest[..value]);
        rest = &rest[value..];
        let quote = shown.chars().next_back().filter(|c| matches!(c, '"' | '\''));
        let end = match quote {
            Some(quote) => rest.find(quote),
            // In an options field a comma ends it; else a value may have blanks, as `Basic …`.
            None if word.eq_ignore_ascii_case("authorization") => rest.find(['\r', '\n']),
            None => rest.find(|c: char| c.is_whitespace() || c == ','),
        };
        shown.push_str(dots);
        rest = &rest[end.unwrap_or(rest.len())..];
    }
    shown + rest
}

/// What stands behind such a word is a secret.
pub(crate) fn names_a_secret(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    SECRET_KEYS.iter().any(|key| {
        word.strip_suffix(key)
            .is_some_and(|head| head.is_empty() || head.ends_with(['-', '_']) || *key != "auth" && *key != "token")
    })
}

#[cfg(test)]
mod tests {
    use super::{mask, pair};

    #[test]
    fn secrets_are_masked_and_the_rest_is_kept() {
        for (text, expected) in [
            (
                "Acquire::http::Proxy \"http://me:geheim@proxy.lan:3128\";\n",
                "Acquire::http::Proxy \"http://me:•••@proxy.lan:3128\";\n",
            ),
            (
                "Environment=\"HTTPS_PROXY=http://me:p@ss/w@proxy.lan:3128\" \"NO_PROXY=10.0.0.0/8\"\n",
                "Environment=\"HTTPS_PROXY=http://me:•••@proxy.lan:3128\" \"NO_PROXY=10.0.0.0/8\"\n",
            ),
            (
                "URIs: https://ghp_token@apt.lan/deb\n",
                "URIs: https://•••@apt.lan/deb\n",
            ),
            (
                "deb https://a:b@one.lan/ x https://c:d@two.lan/ y",
                "deb https://a:•••@one.lan/ x https://c:•••@two.lan/ y",
            ),
            ("    stats auth admin:geheim\n", "    stats auth •••\n"),
            (
                "    user admin insecure-password geheim groups ops\n",
                "    user admin insecure-password ••• groups ops\n",
            ),
            (
                "    user admin password $5$salt$hash\n",
                "    user admin password •••\n",
            ),
            (
                "//nas/x /mnt cifs username=me,password=geheim,uid=0 0 0\n",
                "//nas/x /mnt cifs username=me,password=•••,uid=0 0 0\n",
            ),
            ("      password = \"ge heim\"\n", "      password = \"•••\"\n"),
            (
                "  auth = \"bWU6Z2VoZWlt\"\n  identitytoken = 'geheim'\n",
                "  auth = \"•••\"\n  identitytoken = '•••'\n",
            ),
            ("  Authorization = [\"Basic bWU6\"]\n", "  Authorization = [\"•••\"]\n"),
            (
                "http_proxy=http://me:ge,heim@proxy.lan\n",
                "http_proxy=http://me:•••@proxy.lan\n",
            ),
            ("Authorization: Basic bWU6\n", "Authorization: •••\n"),
            ("    client-key-data: geheim\n", "    client-key-data: •••\n"),
            ("API_TOKEN=geheim\n", "API_TOKEN=•••\n"),
        ] {
            assert_eq!(mask(text, "•••"), expected);
        }
    }

    #[test]
    fn what_is_no_secret_stays() {
        for text in [
            "server = \"https://registry-1.docker.io\"\n",
            "[host.\"https://mirror.lan:5000\"]\n  capabilities = [\"pull\", \"resolve\"]\n",
            "[plugins.\"io.containerd.grpc.v1.cri\".registry.configs.\"x\".auth]\n",
            "signed-by=/etc/apt/keyrings/k8sup-kubernetes.asc https://pkgs.k8s.io/core:/stable:/v1.34/deb/ /\n",
            "    option httpchk GET /readyz\n    server cp1 192.168.7.201:6443 check\n",
            "sandbox_image = \"registry.k8s.io/pause:3.10.1\"\n",
            "https://registry.lan/image@sha256\n",
            "UUID=1234 none swap sw 0 0\n",
            "author: me\n",
            "\n",
            "",
        ] {
            assert_eq!(mask(text, "•••"), text);
        }
    }

    #[test]
    fn a_change_of_nothing_but_a_secret_still_shows_as_one() {
        let (before, after) = pair(Some("stats auth a:one\n"), Some("stats auth a:two\n"));
        assert_eq!(before.as_deref(), Some("stats auth •••\n"));
        assert_eq!(after.as_deref(), Some("stats auth ••• (another)\n"));
    }
}
