package metrics

import "github.com/prometheus/client_golang/prometheus"

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("tenwalls_"+name, help, labels, nil)
}

// The metrics that there are.
var (
	outcome = desc("run_outcome",
		"1 for the outcome of the last run that ended, 0 for the others. A selection of the trials counts only when it did not hold.", "outcome")
	verdict = desc("attempt_verdict",
		"1 for the worst verdict among the routes of an attempt in the last run, 0 for the others.", "attempt", "verdict")
	routes = desc("routes",
		"Routes of the last run by verdict.", "verdict")
	duration = desc("run_duration_seconds",
		"How long the last run took.")
	expires = desc("attestation_expires_timestamp_seconds",
		"When the attestation of the last run expires. Absent without one.")
	lastRun = desc("last_run_timestamp_seconds",
		"When the last run ended that came to an outcome. Absent when there was none.")
	lastQualified = desc("last_qualified_run_timestamp_seconds",
		"When the last run ended that qualified the runner. Absent when there was none.")
	lastProof = desc("last_proof_timestamp_seconds",
		"When every check was last shown able to fail. Absent when it never was.")
	runs = desc("runs_total",
		"Runs in the history by reason and outcome.", "reason", "outcome")
	drift = desc("drift_differences",
		"Differences of what is in force and of the entry-point census from the last good run. Absent when they were not compared.")
	blind = desc("observer_blind",
		"1 when the observer failed a control or lost its window in the last run.", "observer")
	buildInfo = desc("build_info",
		"1; the labels tell the harness.", "version", "goversion", "schema")
	identityInfo = desc("identity_info",
		"1; the labels tell what the last run was about.",
		"runtime_digest", "runtime_version", "platform", "config_digest", "image_digest", "harness_digest", "kernel", "boot_id")
)
