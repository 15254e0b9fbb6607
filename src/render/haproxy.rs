//! haproxy.cfg of a load balancer: every controller from the start, so that a join does not
//! change it.

use serde::Serialize;

use super::kubeadm::API_PORT;
use super::template::{self, TemplateError};
use crate::cluster::{Cluster, Role};

/// Where HAProxy reads its configuration.
pub const CONFIG_FILE: &str = "/etc/haproxy/haproxy.cfg";
/// The socket on which its state is asked for.
pub const STATS_SOCKET: &str = "/run/haproxy/admin.sock";
/// The backend with one server for every controller, named as in the inventory.
pub const BACKEND: &str = "controllers";

#[derive(Serialize)]
struct Context {
    port: u16,
    expect: &'static str,
    servers: Vec<Server>,
}

#[derive(Serialize)]
struct Server {
    name: String,
    address: String,
    port: u16,
}

/// The whole file, the same on every load balancer.
pub fn config(cluster: &Cluster) -> Result<String, TemplateError> {
    let servers = cluster
        .role(Role::Controller)
        .map(|host| Server {
            name: host.name.to_string(),
            address: host.address.to_string(),
            port: API_PORT,
        })
        .collect();
    // An API server that refuses anonymous requests answers a check with 401, and is well.
    let expect = if refuses_anonymous(cluster) {
        "rstatus ^(200|401)$"
    } else {
        "status 200"
    };
    let context = Context {
        port: cluster.endpoint.port,
        expect,
        servers,
    };
    template::render(
        "haproxy.cfg.j2",
        include_str!("../../templates/haproxy.cfg.j2"),
        context,
    )
}

fn refuses_anonymous(cluster: &Cluster) -> bool {
    let arguments = cluster
        .overrides
        .kubeadm
        .as_ref()
        .and_then(|over| over.pointer("/apiServer/extraArgs")?.as_array());
    arguments
        .into_iter()
        .flatten()
        .any(|argument| argument["name"] == "anonymous-auth" && argument["value"] == "false")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::config;
    use crate::render::tests::homelab;

    #[test]
    fn golden() {
        insta::assert_snapshot!(config(&homelab()).unwrap());
    }

    #[test]
    fn an_api_server_without_anonymous_requests_is_well_with_401() {
        let mut cluster = homelab();
        cluster.overrides.kubeadm =
            Some(json!({ "apiServer": { "extraArgs": [{ "name": "anonymous-auth", "value": "false" }] } }));
        assert!(
            config(&cluster)
                .unwrap()
                .contains("    http-check expect rstatus ^(200|401)$\n")
        );
    }
}
