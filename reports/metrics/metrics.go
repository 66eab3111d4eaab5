// Package metrics tells Prometheus how the walls stand: the last run and what
// became of the runs before it.
//
// Every label has few values, all of them known beforehand: outcomes, verdicts,
// attempts, observers, reasons. Digests and versions stand on two info metrics
// only. Nothing of the guest's is told.
//
// What this package does not prove: a metric is neither signed nor checked by
// anyone. It is there to wake somebody, who then reads the report; a broker
// takes the attestation.
package metrics

import (
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"tenwalls.dev/harness/reports"
	"tenwalls.dev/harness/reports/history"
)

// State is what is told. Its zero value tells of the build and of no run.
type State struct {
	Report  *reports.Report     // of the last run; nil: it came to none, so that nothing is told of attempts
	Runs    history.Tally       // of the ledger
	Expires time.Time           // of the attestation that the last run made; zero: none
	Proof   time.Time           // when every check was last shown able to fail; zero: never
	Drift   *reports.Difference // from the last good run to the last one; nil: not compared
}

// Metrics tells one state at a time, whole.
type Metrics struct {
	mu       sync.Mutex
	state    State
	version  string
	registry *prometheus.Registry
}

// New returns metrics of a harness of that version, with the zero state.
func New(version string) *Metrics {
	m := &Metrics{version: version, registry: prometheus.NewPedanticRegistry()}
	m.registry.MustRegister(m) // the first collector of a fresh registry
	return m
}

// Set replaces what is told. The state is not changed afterwards by either side.
func (m *Metrics) Set(s State) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.state = s
}

// Registry is where they are gathered from, and where a daemon adds its own.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

// WriteTextfile writes them for the textfile collector of the node exporter,
// which wants a name that ends in .prom. The file is replaced atomically; on an
// error the earlier one stands.
func (m *Metrics) WriteTextfile(path string) error {
	if err := prometheus.WriteToTextfile(path, m.registry); err != nil {
		return fmt.Errorf("write metrics %s: %w", path, err)
	}
	return nil
}

// Describe names every metric there can be (see [prometheus.Collector]).
func (m *Metrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		outcome, verdict, routes, duration, expires, lastRun, lastQualified, lastProof, runs, drift, blind, buildInfo, identityInfo,
	} {
		out <- d
	}
}

// Collect tells the state (see [prometheus.Collector]).
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	m.mu.Lock()
	s := m.state
	m.mu.Unlock()
	t := teller(out)
	t.gauge(buildInfo, 1, m.version, runtime.Version(), reports.Schema)
	t.ledger(s)
	t.report(s.Report)
	t.moment(expires, s.Expires)
	t.moment(lastProof, s.Proof)
	if s.Drift != nil {
		t.gauge(drift, float64(len(s.Drift.Drift())))
	}
}
