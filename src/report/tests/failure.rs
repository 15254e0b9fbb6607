//! A failure, and what a host says of it, as blocks of text.

use super::{failed_init, host};
use crate::execute::event::Evidence;
use crate::report::failure::{evidence_block, step_block};
use crate::report::style::Style;

#[test]
fn a_failure_is_told_as_a_block() {
    insta::assert_snapshot!(step_block(&failed_init(), Style::PLAIN), @r"
    ✗ cp1: kubeadm init
      the API server did not answer within 240 s
      stderr:
        [wait-control-plane] waiting
        error: timed out
      kubelet:
        … 2 lines before, in the debug log
        line 3
        line 4
        line 5
        line 6
        line 7
        line 8
        line 9
        line 10
        line 11
        line 12
        line 13
        line 14
        line 15
        line 16
        line 17
        line 18
        line 19
        line 20
        line 21
        line 22
      hint: read `journalctl -u kubelet` on cp1
    ");
}

#[test]
fn the_logs_of_a_host_are_shown_by_source() {
    let found = [Evidence {
        source: "kubelet".to_owned(),
        lines: vec!["E1130 \u{1b}[31mno sandbox\u{1b}[0m".to_owned()],
    }];
    insta::assert_snapshot!(evidence_block(&host("w1"), &found, Style::PLAIN), @r"
    What w1 says:
      kubelet:
        E1130 no sandbox
    ");
    assert_eq!(evidence_block(&host("w1"), &[], Style::PLAIN), "");
}
