//! The same cases against the embedded API server and, when `TEST_KUBECONFIG` names one, against a real Kubernetes.
//!
//! A case is a function over a client and a namespace of its own. What a case expects is what Kubernetes does; the
//! embedded server has to do the same.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "skipped tests are printed")]
#![allow(clippy::similar_names, reason = "a patch and its path are what they are called")]

mod cluster;
mod custom;
mod defaults;
mod deletion;
mod embedded_only;
mod lists;
mod objects;
mod patches;
mod rules;
mod tables;
mod watches;

/// One test a case and a kind of cluster.
macro_rules! cases {
    ($($module:ident: $($case:ident),+;)+) => {
        mod embedded {
            $($(
                #[tokio::test]
                async fn $case() {
                    let cluster = crate::cluster::Cluster::embedded().await;
                    crate::$module::$case(&cluster).await;
                }
            )+)+
        }

        mod real {
            $($(
                #[tokio::test]
                async fn $case() {
                    if let Some(cluster) = crate::cluster::Cluster::real().await {
                        crate::$module::$case(&cluster).await;
                        cluster.leave().await;
                    }
                }
            )+)+
        }
    };
}

cases! {
    objects:
        created_objects_get_what_the_server_gives,
        a_name_is_taken_once,
        names_are_generated,
        what_is_missing_is_told,
        stale_updates_conflict,
        updates_without_a_version_win,
        updates_that_change_nothing_write_nothing,
        a_dry_run_stores_nothing,
        unknown_fields_are_refused_when_asked,
        secrets_take_strings;
    lists:
        labels_select,
        fields_select,
        unknown_field_selectors_are_refused,
        pages_are_of_one_moment,
        a_broken_continue_token_is_refused,
        metadata_alone_can_be_listed;
    watches:
        a_watch_goes_on_where_a_list_ended,
        a_watch_without_a_version_begins_with_what_is_there,
        objects_come_and_go_as_they_match,
        a_watch_ends_when_asked,
        initial_events_end_with_a_bookmark;
    patches:
        json_patches_apply,
        a_failed_test_of_a_json_patch_changes_nothing,
        merge_patches_remove_by_null,
        strategic_patches_merge_lists_by_key,
        a_forced_apply_creates_and_changes,
        apply_is_idempotent,
        patches_respect_versions,
        unknown_kinds_of_patches_are_refused;
    deletion:
        finalizers_hold_an_object_back,
        a_pod_on_a_node_is_deleted_gracefully,
        a_pod_without_a_node_goes_at_once,
        preconditions_guard_a_deletion,
        a_collection_is_deleted_by_selector,
        dependents_follow_their_owner,
        a_namespace_goes_with_all_that_is_in_it;
    rules:
        invalid_objects_are_refused_with_causes,
        the_status_is_a_part_of_its_own,
        only_a_few_fields_of_a_pod_may_change,
        a_pod_is_bound_once,
        quotas_limit_a_namespace,
        immutable_config_stays;
    defaults:
        fields_have_their_defaults,
        broken_rules_are_causes_of_their_field;
    tables:
        quantities_are_those_of_the_table,
        names_are_those_of_the_table;
    custom:
        a_definition_makes_a_kind,
        custom_objects_are_held_to_their_schema;
}
