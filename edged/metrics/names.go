package metrics

// The exported names. Times are seconds, sizes bytes. What each means, its type and its labels: catalog.go.
const (
	nameRequests         = "iop_requests_total"
	nameOpenRequests     = "iop_open_requests"
	nameRequestDuration  = "iop_request_duration_seconds"
	nameFirstByte        = "iop_first_byte_seconds"
	nameQueueWait        = "iop_queue_wait_seconds"
	nameRequeues         = "iop_requeues_total"
	nameTokensIn         = "iop_tokens_in_total"
	nameTokensOut        = "iop_tokens_out_total"
	nameUntold           = "iop_usage_untold_total"
	nameQueuePending     = "iop_queue_pending"
	nameQueueMax         = "iop_queue_max"
	nameQueueLong        = "iop_queue_long_pending"
	nameQueueDetached    = "iop_queue_detached"
	nameQueueOldest      = "iop_queue_oldest_wait_seconds"
	nameModelAvailable   = "iop_model_available"
	nameModelQueued      = "iop_model_queued"
	nameProviderUp       = "iop_provider_connected"
	nameProviderHealthy  = "iop_provider_healthy"
	nameProviderEnabled  = "iop_provider_enabled"
	nameProviderDraining = "iop_provider_draining"
	nameProviderCapacity = "iop_provider_capacity"
	nameProviderInFlight = "iop_provider_in_flight"
	nameProviderLongCap  = "iop_provider_long_capacity"
	nameProviderLong     = "iop_provider_long_in_flight"
	nameProviderFencing  = "iop_provider_fencing"
	nameProviderQueued   = "iop_provider_queued"
	nameProviderLongQ    = "iop_provider_long_queued"
	nameLeases           = "iop_leases"
	nameLeasesOver       = "iop_leases_over_capacity"
	nameFencing          = "iop_leases_fencing"
	nameGranted          = "iop_leases_granted_total"
	nameReturned         = "iop_leases_returned_total"
	nameReleaseRetries   = "iop_release_retries_total"
	nameGateRefusals     = "iop_gate_refusals_total"
	nameUnknownRuns      = "iop_unknown_run_frames_total"
	nameResponses        = "iop_stored_responses"
	nameResponsesBytes   = "iop_stored_responses_bytes"
	nameResponsesMax     = "iop_stored_responses_max_bytes"
	nameBackground       = "iop_background_responses"
	nameNodeUp           = "iop_node_connected"
	nameNodeGeneration   = "iop_node_generation"
	nameNodeLinks        = "iop_node_links"
	nameLinkEvents       = "iop_link_events_total"
	nameCommit           = "iop_commit_seconds"
	nameCommitWait       = "iop_commit_wait_seconds"
	nameSync             = "iop_log_sync_seconds"
	nameBatch            = "iop_commit_batch_commands"
	nameApply            = "iop_apply_seconds"
	nameSnapshot         = "iop_snapshot_seconds"
	nameSnapshotTime     = "iop_snapshot_timestamp_seconds"
	nameSnapshotIndex    = "iop_snapshot_index"
	nameSnapshotBytes    = "iop_snapshot_bytes"
	nameLogBytes         = "iop_log_bytes"
	nameLogFirst         = "iop_log_first_index"
	nameLogLast          = "iop_log_last_index"
	nameAppliedIndex     = "iop_applied_index"
	nameTerm             = "iop_term"
	nameLogEntries       = "iop_log_entries_total"
	nameLogWritten       = "iop_log_proposed_bytes_total"
	nameQueuedBytes      = "iop_log_queued_bytes"
	nameOverloaded       = "iop_log_overloaded_total"
	nameWatchMissed      = "iop_watch_missed_total"
	nameStorageFailed    = "iop_storage_failed"
	nameDiskFree         = "iop_data_dir_free_bytes"
	nameDiskSize         = "iop_data_dir_size_bytes"
	nameReady            = "iop_ready"
	nameHasLeader        = "iop_has_leader"
	nameLeaderless       = "iop_leaderless_seconds_total"
	nameLeader           = "iop_leader"
	nameLeaderChanges    = "iop_leader_changes_total"
	nameMembers          = "iop_cluster_members"
	nameVoters           = "iop_cluster_voters"
	nameLag              = "iop_replica_lag_entries"
	namePeerUp           = "iop_peer_up"
	namePeerRoundTrip    = "iop_peer_round_trip_seconds"
	namePeerForwarded    = "iop_peer_forwarded_batches_total"
	nameSessions         = "iop_sessions"
	nameReopenings       = "iop_session_reopenings_total"
	nameMismatch         = "iop_digest_mismatched_replicas"
	nameDigestChecks     = "iop_digest_checks_total"
	nameDigestTime       = "iop_digest_check_timestamp_seconds"
	nameRevision         = "iop_config_revision"
	nameConfigTime       = "iop_config_changed_timestamp_seconds"
	nameRefreshes        = "iop_config_refreshes_total"
	nameAdminChanges     = "iop_admin_changes_total"
	nameBuild            = "iop_build_info"
	nameWall             = "iop_wall_time_seconds"
	nameClockJumps       = "iop_clock_jumps_total"
	nameCertificate      = "iop_certificate_expiry_seconds"
	nameSpansExported    = "iop_trace_spans_exported_total"
	nameSpansLost        = "iop_trace_spans_lost_total"
)

// The labels.
const (
	labelModel     = "model"
	labelProvider  = "provider"
	labelOutcome   = "outcome"
	labelReason    = "reason"
	labelClass     = "class"
	labelPrincipal = "principal_ref"
	labelToken     = "token_ref"
	labelNode      = "node"
	labelEdge      = "edge"
	labelState     = "state"
	labelEvent     = "event"
	labelPeer      = "peer"
	labelVerdict   = "verdict"
	labelResult    = "result"
	labelChange    = "change"
	labelCert      = "certificate"
	labelVersion   = "version"
	labelGo        = "goversion"
)

// Unknown is the label of a model that the configuration does not have; None that of a request without a provider,
// principal or token.
const (
	Unknown = "unknown"
	None    = "none"
)

// Outcome is how a client's request ended.
type Outcome uint8

// The outcomes of requests.
const (
	OutcomeOK             Outcome = iota // answered below 400, to its end
	OutcomeBackendRefused                // the backend's own answer was 400 or above
	OutcomeBackendError                  // the backend broke, timed out or could not be reached
	OutcomeCanceled                      // the client left, or an operator took the request out of the queue
	OutcomeQueueFull                     // 429
	OutcomePrincipalLimit                // 429, the limits of the client's principal
	OutcomeQueueTimeout                  // waited past its deadline
	OutcomeUnavailable                   // no live candidate
	OutcomeModelNotFound                 // no such model
	OutcomeContextTooLong                // too long for every candidate
	OutcomeUnsupported                   // no candidate can do it
	OutcomeConflict                      // the request id is in progress elsewhere
	OutcomeUnauthorized                  // bad or missing key
	OutcomeMalformed                     // the request could not be understood
	OutcomeTooLarge                      // over max_body_bytes
	OutcomeClientTimeout                 // the client sent its body too slowly
	OutcomeOverloaded                    // the log is too far behind
	OutcomeNoLeader                      // the edge has no contact to its cluster
	OutcomeStopping                      // the edge is stopping
	OutcomeInternal                      // the log failed, or something broke in the edge
	outcomes
)

var outcomeNames = [outcomes]string{
	"ok", "backend_refused", "backend_error", "canceled", "queue_full", "principal_limit", "queue_timeout", "unavailable",
	"model_not_found", "context_too_long", "unsupported", "conflict", "unauthorized", "malformed", "too_large",
	"client_timeout", "overloaded", "no_leader", "stopping", "internal",
}

func (o Outcome) String() string {
	if o < outcomes {
		return outcomeNames[o]
	}
	return outcomeNames[OutcomeInternal]
}
