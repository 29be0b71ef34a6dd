//! Tests of the limits on connections.

use std::net::Ipv4Addr;

use futures::FutureExt as _;
use serde_json::json;

use super::*;

fn connections(http: serde_json::Value) -> Connections {
    let http: HttpConfig = serde_json::from_value(http).unwrap();
    Connections::to_api(&http, &[], None).unwrap()
}

fn address(last: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, last))
}

/// Admits as many visitors from `peer` as get in at once.
fn all_from(connections: &Connections, peer: IpAddr) -> Vec<Admitted> {
    // Without `unconstrained`, tokio makes a task wait after many steps even if there is a permit.
    let place = || tokio::task::unconstrained(connections.place()).now_or_never()?;
    let admitted = || connections.admit(place()?, peer);
    std::iter::from_fn(admitted).collect()
}

#[test]
fn one_address_has_a_fifth_of_the_connections_and_a_proxy_all_that_are_for_visitors() {
    let connections = connections(json!({ "max_connections": 100, "proxies": ["192.0.2.9"] }));
    let from_one = all_from(&connections, address(1));
    assert_eq!(from_one.len(), 20);
    assert_eq!(all_from(&connections, address(2)).len(), 20);
    drop(from_one);
    assert_eq!(all_from(&connections, address(9)).len(), 50);
}

#[test]
fn a_network_of_ipv6_counts_as_one_address() {
    let connections = connections(json!({ "max_connections": 100 }));
    let held = all_from(&connections, "2001:db8::1".parse().unwrap());
    assert_eq!(held.len(), 20);
    assert!(all_from(&connections, "2001:db8::ffff:1".parse().unwrap()).is_empty());
    assert_eq!(all_from(&connections, "2001:db8:0:1::1".parse().unwrap()).len(), 20);
    assert!(Block::from(address(1)) == Block::from("::ffff:192.0.2.1".parse::<IpAddr>().unwrap()));
}

#[tokio::test(start_paused = true)]
async fn who_has_shown_a_credential_leaves_the_place_to_others() {
    let connections = connections(json!({ "max_connections": 8 }));
    let mut callers = Vec::new();
    for last in 1..=6 {
        let visitor = Visitor::from_peer(&connections, address(last)).await;
        visitor.request_begins();
        visitor.becomes_caller(Who::Pod);
        assert!(visitor.answer_begins(), "it stays open");
        callers.push(visitor);
    }
    assert!(timeout(Duration::from_hours(1), callers[0].time_is_over()).await.is_err());
    let seventh = Visitor::from_peer(&connections, address(7)).await;
    seventh.becomes_caller(Who::Pod);
    assert!(!seventh.answer_begins(), "three quarters are for callers, and one is left for visitors");
    assert!(timeout(Duration::from_hours(1), seventh.time_is_over()).await.is_err(), "but it is answered");
    Visitor::from_peer(&connections, address(8)).await;
    callers.pop();
    seventh.becomes_caller(Who::Pod);
    assert!(seventh.answer_begins());
}

#[tokio::test]
async fn one_user_keeps_so_many_connections_open_unless_they_are_a_proxy_s() {
    let connections = connections(json!({ "max_connections_per_address": 1000, "proxies": ["192.0.2.9"] }));
    let kept = async |last: u8, name: &str| {
        let user = Username::parse(name).unwrap();
        let mut open = Vec::new();
        for _ in 0..100 {
            let visitor = Visitor::from_peer(&connections, address(last)).await;
            visitor.becomes_caller(Who::User(&user));
            open.push(visitor);
        }
        open.iter().filter(|visitor| visitor.answer_begins()).count()
    };
    let (ada, grace, proxy) = tokio::join!(kept(1, "ada"), kept(1, "grace"), kept(9, "ada"));
    assert_eq!((ada, grace, proxy), (64, 64, 100));
}

/// JupyterHub has one address and requests the labs of all users.
#[tokio::test(start_paused = true)]
async fn limits_by_address_do_not_hold_where_jupyterhub_has_called() {
    let connections = connections(json!({ "max_connections": 100 }));
    assert_eq!(all_from(&connections, address(1)).len(), 20);
    let visitor = Visitor::from_peer(&connections, address(1)).await;
    assert!(visitor.limited_block().is_some());
    visitor.becomes_caller(Who::Site);
    assert!(visitor.limited_block().is_none());
    assert_eq!(all_from(&connections, address(1)).len(), 50);
    assert_eq!(all_from(&connections, address(2)).len(), 20);
    tokio::time::sleep(OF_SITE).await;
    assert_eq!(all_from(&connections, address(1)).len(), 19, "and the one of before");
}

/// Columns: the connections, the time until the head is complete, the time from then until the answer begins, and the
/// lifetime of the connection.
#[tokio::test(start_paused = true)]
async fn a_visitor_has_little_time_and_less_while_others_wait() {
    for (max_connections, head, answer, lives) in [
        (16, None, None, 10),
        (2, None, None, 1),
        (16, Some(9), None, 9 + 30),
        (16, Some(9), Some(29), 9 + 29 + 10),
        (2, Some(0), None, 30),
        (2, Some(0), Some(29), 29 + 1),
    ] {
        let connections = connections(json!({ "max_connections": max_connections }));
        let visitor = Visitor::from_peer(&connections, address(1)).await;
        let began = Instant::now();
        let uses = async {
            let Some(head) = head else { return };
            tokio::time::sleep(Duration::from_secs(head)).await;
            visitor.request_begins();
            let Some(answer) = answer else { return };
            tokio::time::sleep(Duration::from_secs(answer)).await;
            assert!(!visitor.answer_begins(), "it is closed after the answer");
        };
        tokio::join!(uses, visitor.time_is_over());
        let expected = Duration::from_secs(lives);
        assert_eq!(began.elapsed(), expected, "{max_connections} {head:?} {answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_turn_gets_it_when_another_one_ends() {
    let connections = connections(json!({ "max_connections": 8, "max_connections_per_address": 8 }));
    let first = Visitor::from_peer(&connections, address(1)).await;
    let next = Visitor::from_peer(&connections, address(1));
    let mut next = std::pin::pin!(next);
    assert!(next.as_mut().now_or_never().is_none(), "one of four places is for one address");
    Visitor::from_peer(&connections, address(2)).await;
    drop(first);
    next.await;
}
